//! Memory of a server, and the processor time of this generator beside it.

use crate::measure::Driven;
use anyhow::{Context as _, Result};
use holdall_instrument::contest::{Figure, Unit};
use holdall_instrument::system;
use std::fs;
use std::time::Instant;

/// Share of a processor beyond which the generator may be what is measured.
const BOUND: f64 = 0.9;

/// Counts from its start on.
#[derive(Debug)]
pub struct Meter {
    pid: u32,
    begun: Instant,
    own: f64,
}

/// What was used since a meter's start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Used {
    /// Seconds of processor that this process took.
    pub own: f64,
    /// Seconds that passed.
    pub passed: f64,
    /// Most bytes the server had resident.
    pub peak: u64,
}

impl Used {
    /// Adds what was used in another stretch of time.
    pub fn add(&mut self, other: &Self) {
        self.own += other.own;
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
    /// Starts counting; the server's peak of memory begins anew if the system allows.
    ///
    /// # Errors
    /// A process that has ended.
    pub fn start(pid: u32) -> Result<Self> {
        let _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
        Ok(Self { pid, begun: Instant::now(), own: processor(std::process::id())? })
    }

    /// What was used since.
    ///
    /// # Errors
    /// A process that has ended.
    pub fn stop(&self) -> Result<Used> {
        Ok(Used {
            own: processor(std::process::id())? - self.own,
            passed: self.begun.elapsed().as_secs_f64(),
            peak: system::peak_memory(self.pid)?,
        })
    }
}

/// What a loop of requests reached; `value` makes the main figure of its rate of requests.
pub fn figure(
    row: &str,
    unit: Unit,
    driven: &Driven,
    used: Used,
    value: impl FnOnce(f64) -> f64,
) -> Figure {
    let mut figure = Figure::new(row, unit, value(driven.rate)).latency(&driven.latency);
    figure.memory = Some(used.peak);
    if used.own / used.passed.max(f64::MIN_POSITIVE) > BOUND {
        figure.note = Some("the generator took more than 90 % of a processor".into());
    }
    figure
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
