//! Processor time and memory of a server, and of this generator beside it.

use anyhow::{Context as _, Result};
use holdall_bench::measure::Driven;
use holdall_instrument::contest::Unit;
use holdall_instrument::system;
use serde::Serialize;
use std::fs;
use std::time::Instant;

/// Counts from its start on.
#[derive(Debug)]
pub struct Meter {
    pid: u32,
    begun: Instant,
    own: f64,
    server: f64,
}

/// What was used since a meter's start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// Seconds of processor that this process took.
    pub own: f64,
    /// Seconds that the server took.
    pub server: f64,
    /// Seconds that passed.
    pub passed: f64,
    /// Most bytes the server had resident.
    pub peak: u64,
}

impl Used {
    /// Adds what was used in another stretch of time.
    pub fn add(&mut self, other: &Self) {
        self.own += other.own;
        self.server += other.server;
        self.passed += other.passed;
        self.peak = self.peak.max(other.peak);
    }
}

/// Seconds of processor that a process has taken, in steps of the system's clock (10 ms).
fn processor(pid: u32) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = ticks(&text).context("a line of /proc/PID/stat")?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// User's and system's ticks in a line of /proc/PID/stat; the name may hold spaces.
fn ticks(stat: &str) -> Option<u64> {
    let behind = stat.rsplit_once(')')?.1;
    let mut fields = behind.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

impl Meter {
    /// Starts counting; the server's peak of memory begins anew where the system allows.
    ///
    /// # Errors
    /// A process that has ended.
    pub fn start(pid: u32) -> Result<Self> {
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
        let (own, server) = (processor(std::process::id())?, processor(pid)?);
        Ok(Self { pid, begun: Instant::now(), own, server })
    }

    /// What was used since.
    ///
    /// # Errors
    /// A process that has ended.
    pub fn stop(&self) -> Result<Used> {
        Ok(Used {
            own: processor(std::process::id())? - self.own,
            server: processor(self.pid)? - self.server,
            passed: self.begun.elapsed().as_secs_f64(),
            peak: system::peak_memory(self.pid)?,
        })
    }
}

/// What one server reached in one row of one round.
#[derive(Debug, Clone, Serialize)]
pub struct Reading {
    /// The row.
    pub row: &'static str,
    /// What `value` counts.
    pub unit: Unit,
    /// The main figure.
    pub value: f64,
    /// Requests.
    pub count: u64,
    /// Half of all requests took this or less, in milliseconds.
    pub p50_ms: f64,
    /// 99 of 100 did.
    pub p99_ms: f64,
    /// Processor of this generator for each request, in microseconds.
    pub generator_us: f64,
    /// Processor of the server for each request, in microseconds.
    pub server_us: f64,
    /// Share of one processor that the generator took: near 1 it is the limit.
    pub generator_share: f64,
    /// Most bytes the server had resident.
    pub peak_bytes: u64,
}

impl Reading {
    /// Of a loop of requests; `value` by its rate of requests.
    pub fn new(
        row: &'static str,
        unit: Unit,
        driven: &Driven,
        used: Used,
        value: impl FnOnce(f64) -> f64,
    ) -> Self {
        let latency = driven.latency.summary();
        let ms = |us: f64| us / 1e3;
        let each = |seconds: f64| seconds * 1e6 / driven.count.max(1) as f64;
        Self {
            row,
            unit,
            value: value(driven.rate),
            count: driven.count,
            p50_ms: latency.as_ref().map_or(0.0, |l| ms(l.p50)),
            p99_ms: latency.as_ref().map_or(0.0, |l| ms(l.p99)),
            generator_us: each(used.own),
            server_us: each(used.server),
            generator_share: used.own / used.passed.max(f64::MIN_POSITIVE),
            peak_bytes: used.peak,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_stand_behind_the_name() {
        let line = "7 (a) b c) S 1 2 3 4 5 6 7 8 9 10 31 11 13 14";
        assert_eq!(ticks(line), Some(42));
        assert_eq!(ticks("7 (a"), None);
        let before = processor(std::process::id()).unwrap();
        let begun = Instant::now();
        while begun.elapsed().as_millis() < 60 {
            std::hint::black_box(0);
        }
        assert!(processor(std::process::id()).unwrap() > before);
    }
}
