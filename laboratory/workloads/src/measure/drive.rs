//! Loops of operations, by one thread or several, each operation timed.

use anyhow::{Result, anyhow};
use holdall_instrument::contest::Recorder;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// What a loop did.
#[derive(Debug)]
pub struct Driven {
    /// Operations per second; of several threads the sum.
    pub rate: f64,
    /// Operations.
    pub count: u64,
    /// Each one's time.
    pub latency: Recorder,
}

/// Calls `op` with 0, 1, 2 … for `time`, at most `most` times and at least once.
///
/// # Errors
/// The first of `op`.
pub fn repeat(time: Duration, most: u64, op: impl FnMut(u64) -> Result<()>) -> Result<Driven> {
    run(|count, passed| count < most && passed < time, op)
}

/// Calls `op` with 0, 1, 2 … until `stop` is set, at least once.
///
/// # Errors
/// The first of `op`.
pub fn until(stop: &AtomicBool, op: impl FnMut(u64) -> Result<()>) -> Result<Driven> {
    run(|_, _| !stop.load(Ordering::Relaxed), op)
}

/// Calls `op` as long as there shall be `more`, by count and time passed; at least once.
fn run(
    more: impl Fn(u64, Duration) -> bool,
    mut op: impl FnMut(u64) -> Result<()>,
) -> Result<Driven> {
    let mut latency = Recorder::new()?;
    let (begin, mut count) = (Instant::now(), 0);
    let mut last = begin;
    loop {
        op(count)?;
        count += 1;
        // One look at the clock serves as the end of this and the start of the next.
        let now = Instant::now();
        latency.add(now - last);
        last = now;
        let passed = now - begin;
        if !more(count, passed) {
            return Ok(Driven { rate: count as f64 / passed.as_secs_f64(), count, latency });
        }
    }
}

/// As [`repeat`] by `threads` threads; `op` gets the thread's number and its own count.
///
/// # Errors
/// One of `op`; a thread that panicked.
pub fn threads(
    threads: usize,
    time: Duration,
    op: &(dyn Fn(usize, u64) -> Result<()> + Sync),
) -> Result<Driven> {
    std::thread::scope(|scope| {
        let spawn = |t| scope.spawn(move || repeat(time, u64::MAX, |i| op(t, i)));
        join((0..threads).map(spawn).collect())
    })
}

/// The sum of what several threads did.
///
/// # Errors
/// One of theirs; a thread that panicked.
pub fn join(threads: Vec<ScopedJoinHandle<'_, Result<Driven>>>) -> Result<Driven> {
    let mut sum = Driven { rate: 0.0, count: 0, latency: Recorder::new()? };
    for thread in threads {
        let one = thread.join().map_err(|_| anyhow!("a thread panicked"))??;
        sum.rate += one.rate;
        sum.count += one.count;
        sum.latency.merge(&one.latency)?;
    }
    Ok(sum)
}
