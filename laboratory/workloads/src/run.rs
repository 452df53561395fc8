//! How measurements run: where, how long, in which order.
//!
//! Invariant: the sides of a comparison take turns, and every second round in reverse order,
//! so that neither gets the better half of a noisy machine.

use crate::report::Section;
use anyhow::{Context as _, Result};
use holdall::{Options, Store};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A directory of this run's own, removed when the run ends.
#[derive(Debug)]
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What all measurements share.
#[derive(Debug)]
pub struct Run {
    scratch: Scratch,
    /// Smaller and shorter, for a look in passing.
    pub quick: bool,
    /// Rounds of each comparison.
    pub rounds: usize,
    sections: Vec<Section>,
}

impl Run {
    /// A run below `dir`.
    pub fn new(dir: &Path, quick: bool, rounds: Option<usize>) -> Result<Self> {
        let own = dir.join(format!("holdall-bench-{}", std::process::id()));
        std::fs::create_dir_all(&own).with_context(|| format!("making {}", own.display()))?;
        let rounds = rounds.unwrap_or(if quick { 5 } else { 9 }).max(1);
        Ok(Self { scratch: Scratch(own), quick, rounds, sections: Vec::new() })
    }

    /// The run's directory.
    pub fn dir(&self) -> &Path {
        &self.scratch.0
    }

    /// A path in the run's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir().join(name)
    }

    /// `full`, or `quick` where little time is to be spent.
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// How long a side of a comparison has in each round.
    pub fn slice(&self) -> Duration {
        Duration::from_millis(self.pick(500, 200))
    }

    /// A new store, in place of one of that name.
    pub fn store(&self, name: &str, options: &Options) -> Result<Store> {
        self.remove(name)?;
        Ok(options.create(self.path(name))?)
    }

    /// Removes a file or store of the run's.
    pub fn remove(&self, name: &str) -> Result<()> {
        for path in [self.path(name), self.path(&format!("{name}-log"))] {
            match std::fs::remove_file(&path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// Says on standard error what comes now.
    pub fn say(&self, text: &str) {
        eprintln!("… {text}");
    }

    /// Keeps a finished table.
    pub fn finish(&mut self, section: Section) {
        self.sections.push(section);
    }

    /// The finished tables.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }
}

/// One side of a comparison: does its part of a round and returns its figure.
pub type Side<'a> = &'a mut dyn FnMut() -> Result<f64>;

/// Lets the sides take turns for `rounds` rounds. Returns each side's figures.
pub fn interleave(rounds: usize, sides: &mut [Side<'_>]) -> Result<Vec<Vec<f64>>> {
    let mut figures = vec![Vec::with_capacity(rounds); sides.len()];
    for round in 0..rounds {
        let mut order: Vec<usize> = (0..sides.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for i in order {
            figures[i].push(sides[i]()?);
        }
    }
    Ok(figures)
}

/// Calls `op` again and again for `time`. Returns calls per second.
pub fn rate(time: Duration, mut op: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    let mut count = 0_u64;
    loop {
        op()?;
        count += 1;
        let passed = start.elapsed();
        if passed >= time {
            return Ok(count as f64 / passed.as_secs_f64());
        }
    }
}

/// As [`rate`], with `threads` threads; `op` gets the thread's number. Returns the sum.
pub fn rate_of_threads(
    threads: usize,
    time: Duration,
    op: &(dyn Fn(usize) -> Result<()> + Sync),
) -> Result<f64> {
    std::thread::scope(|scope| {
        let spawn = |i| scope.spawn(move || rate(time, || op(i)));
        let all: Vec<_> = (0..threads).map(spawn).collect();
        let mut sum = 0.0;
        for thread in all {
            sum += thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        Ok(sum)
    })
}

/// Seconds that `op` takes.
pub fn seconds(op: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    op()?;
    Ok(start.elapsed().as_secs_f64())
}
