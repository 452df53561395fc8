//! Whether the machine was quiet while a round ran.
//!
//! Owns: [`Probe`], two short loops that other work on the machine slows down; [`Attempts`],
//! the probes around each attempt at a round; and the decision whether a round counts.

use crate::picture::number::plain as number;
use crate::small_sync::SmallSync;
use crate::spread::Spread;
use crate::system;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Two probes agree if neither figure of one exceeds the other's by more than this factor.
const AGREE: f64 = 1.1;
/// Attempts at a round: the first and at most three more.
const MOST: usize = 4;
/// How long each loop is measured, after a tenth of that to warm up.
const SYNC_TIME: Duration = Duration::from_millis(900);
const COPY_TIME: Duration = Duration::from_millis(300);
/// Bytes of one copy: more than processors cache.
const COPY: usize = 64 << 20;

/// What the loops measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Median of a 4 KiB pwrite + fdatasync, in microseconds.
    pub sync_p50_us: f64,
    /// Median bandwidth of memcpy.
    pub memcpy_gb_per_s: f64,
}

impl Probe {
    /// Runs both loops, which takes less than 2 s. Writes and removes a file in `dir`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn take(dir: &Path) -> Result<Self> {
        // What the round left in the page cache must not be written beside the loop.
        system::sync_all(dir)?;
        let path = dir.join("probe");
        let mut file = SmallSync::new(&path)?;
        let sync = median_seconds(SYNC_TIME, || file.put())?;
        std::fs::remove_file(&path)?;
        let (from, mut to) = (vec![1_u8; COPY], vec![2_u8; COPY]);
        let copy = median_seconds(COPY_TIME, || {
            to.copy_from_slice(std::hint::black_box(&from));
            std::hint::black_box(&to);
            Ok(())
        })?;
        let digits = |value: f64| (value * 100.0).round() / 100.0;
        Ok(Self {
            sync_p50_us: digits(sync * 1e6),
            memcpy_gb_per_s: digits(COPY as f64 / 1e9 / copy),
        })
    }

    fn agrees(&self, other: &Self) -> bool {
        let near = |a: f64, b: f64| a.max(b) <= a.min(b) * AGREE;
        near(self.sync_p50_us, other.sync_p50_us)
            && near(self.memcpy_gb_per_s, other.memcpy_gb_per_s)
    }
}

/// Median of the times that `op` takes, repeated for `time`.
fn median_seconds(time: Duration, mut op: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut all = Vec::new();
    for part in [time / 10, time] {
        all.clear();
        let start = Instant::now();
        while all.is_empty() || start.elapsed() < part {
            let before = Instant::now();
            op()?;
            all.push(before.elapsed().as_secs_f64());
        }
    }
    Ok(Spread::of(&all).median)
}

/// The probes around one attempt at a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Before its first store.
    pub before: Probe,
    /// After its last store; none while it runs.
    pub after: Option<Probe>,
}

impl Attempt {
    /// Whether both probes agree; none while it runs.
    pub fn quiet(&self) -> Option<bool> {
        self.after.map(|after| self.before.agrees(&after))
    }
}

impl fmt::Display for Attempt {
    /// Both figures, before and after.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, after) = (self.before, self.after.unwrap_or(self.before));
        let sync = [before.sync_p50_us, after.sync_p50_us].map(number);
        let copy = [before.memcpy_gb_per_s, after.memcpy_gb_per_s].map(number);
        write!(
            f,
            "sync {}, then {} µs; memcpy {}, then {} GB/s",
            sync[0], sync[1], copy[0], copy[1]
        )
    }
}

/// All attempts at one round; the figures are the last one's. None at all: the round was not
/// probed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempts(pub Vec<Attempt>);

/// What is to be done for a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Begin an attempt with a probe.
    Begin,
    /// End the attempt that runs.
    GoOn,
    /// The last attempt counts, or no other is to be made.
    Done,
}

impl Attempts {
    /// Whether the last attempt's probes agree; none if there was no probe.
    pub fn quiet(&self) -> Option<bool> {
        self.0.last().and_then(Attempt::quiet)
    }

    /// What comes next.
    pub(super) fn step(&self) -> Step {
        match self.0.last().map(Attempt::quiet) {
            None => Step::Begin,
            Some(None) => Step::GoOn,
            Some(Some(quiet)) if quiet || self.0.len() >= MOST => Step::Done,
            Some(Some(_)) => Step::Begin,
        }
    }

    /// The last attempt begins with this probe.
    pub(super) fn begin(&mut self, before: Probe) {
        self.0.push(Attempt { before, after: None });
    }

    /// The last attempt ends with this probe; with none it goes on.
    pub(super) fn end(&mut self, after: Option<Probe>) {
        if let Some(last) = self.0.last_mut() {
            last.after = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(sync_p50_us: f64, memcpy_gb_per_s: f64) -> Probe {
        Probe { sync_p50_us, memcpy_gb_per_s }
    }

    #[test]
    fn both_figures_must_agree() {
        let before = probe(200.0, 10.0);
        assert!(before.agrees(&probe(219.0, 9.2)));
        assert!(before.agrees(&probe(182.0, 10.9)));
        assert!(!before.agrees(&probe(221.0, 10.0)));
        assert!(!before.agrees(&probe(200.0, 9.0)));
    }

    #[test]
    fn a_disturbed_round_is_repeated_three_times() {
        let mut all = Attempts::default();
        assert_eq!((all.step(), all.quiet()), (Step::Begin, None));
        for attempt in 1..=4 {
            all.begin(probe(200.0, 10.0));
            assert_eq!((all.step(), all.quiet()), (Step::GoOn, None));
            all.end(Some(probe(300.0, 10.0)));
            let next = if attempt < 4 { Step::Begin } else { Step::Done };
            assert_eq!((all.step(), all.quiet()), (next, Some(false)), "attempt {attempt}");
        }
    }

    #[test]
    fn a_quiet_round_counts_at_once() {
        let mut all = Attempts::default();
        all.begin(probe(200.0, 10.0));
        all.end(Some(probe(205.0, 10.1)));
        assert_eq!((all.step(), all.quiet()), (Step::Done, Some(true)));
        all.end(None);
        assert_eq!(all.step(), Step::GoOn, "a store's part is missing");
    }

    #[test]
    fn a_probe_has_figures_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let start = Instant::now();
        let probe = Probe::take(dir.path()).unwrap();
        assert!(probe.sync_p50_us > 0.0 && probe.memcpy_gb_per_s > 0.0, "{probe:?}");
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
