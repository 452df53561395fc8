//! Timing on a real file: phases of stores in turns, and what the device did meanwhile. Owns no
//! state.

use anyhow::Result;
use holdall_instrument::spread::Spread;
use serde::{Deserialize, Serialize};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Rates by store and phase, in the order in which they first came.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Board(Vec<(String, String, Vec<f64>)>);

impl Board {
    /// Times `work` on `n` objects.
    pub fn time(
        &mut self,
        store: &str,
        phase: &str,
        n: usize,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let start = Instant::now();
        work()?;
        self.add(store, phase, n as f64 / start.elapsed().as_secs_f64().max(1e-9));
        Ok(())
    }

    /// Adds a value.
    pub fn add(&mut self, store: &str, phase: &str, value: f64) {
        match self.0.iter_mut().find(|r| r.0 == store && r.1 == phase) {
            Some(rates) => rates.2.push(value),
            None => self.0.push((store.to_owned(), phase.to_owned(), vec![value])),
        }
    }

    /// Takes in the values of another.
    pub fn merge(&mut self, other: Self) {
        for (store, phase, values) in other.0 {
            for value in values {
                self.add(&store, &phase, value);
            }
        }
    }

    /// The spread of one; nothing if it was not measured.
    pub fn spread(&self, store: &str, phase: &str) -> Option<Spread> {
        let found = self.0.iter().find(|r| r.0 == store && r.1 == phase)?;
        Some(Spread::of(&found.2))
    }

    /// Its median; not a number if nothing was measured.
    pub fn median(&self, store: &str, phase: &str) -> f64 {
        self.spread(store, phase).map_or(f64::NAN, |s| s.median)
    }

    /// Stores, in the order in which they came.
    pub fn stores(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for (store, ..) in &self.0 {
            if !all.contains(&store.as_str()) {
                all.push(store);
            }
        }
        all
    }

    /// One row for each store: its name, then each phase.
    pub fn rows(&self, phases: &[&str]) -> Vec<Vec<String>> {
        let cell = |store: &str, phase: &str| {
            self.spread(store, phase).map_or_else(|| "–".to_owned(), |s| s.to_string())
        };
        let row = |store: &str| {
            let cells = phases.iter().map(|phase| cell(store, phase));
            std::iter::once(store.to_owned()).chain(cells).collect()
        };
        self.stores().into_iter().map(row).collect()
    }
}

/// What the device under a directory has served so far, for whomever.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Device {
    pub reads: f64,
    pub discards: f64,
    pub discard_ms: f64,
}

impl Device {
    /// By the kernel's own count; all zero if it keeps none.
    pub fn of(dir: &Path) -> Self {
        let text = fs::metadata(dir).and_then(|found| {
            let (major, minor) = (libc::major(found.dev()), libc::minor(found.dev()));
            fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat"))
        });
        let text = text.unwrap_or_default();
        let fields: Vec<f64> = text.split_whitespace().filter_map(|f| f.parse().ok()).collect();
        let at = |i: usize| fields.get(i).copied().unwrap_or_default();
        Self { reads: at(0), discards: at(11), discard_ms: at(14) }
    }
}

/// Has the kernel forget what it keeps of files: pages, inodes and names. Only root may ask.
pub(super) fn forget_caches(dir: &Path) -> bool {
    write_out(dir);
    // Pages that inodes held go only when these are gone.
    (0..2).all(|_| fs::write("/proc/sys/vm/drop_caches", "3").is_ok())
}

/// Writes out what earlier phases left dirty, so that it does not disturb the next ones. If
/// the program is missing nothing is done.
pub(super) fn write_out(dir: &Path) {
    let mut sync = Command::new("sync");
    let _ = sync.arg("-f").arg(dir).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
