//! Timing on a real file: phases of stores in turns. Owns no state.

use crate::kit::spread::Spread;
use anyhow::Result;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Rates of one phase of one store, one for each repetition.
#[derive(Debug, Clone)]
pub(super) struct Rates {
    pub store: String,
    pub phase: &'static str,
    pub values: Vec<f64>,
}

/// Rates by store and phase, in the order in which they first came.
#[derive(Debug, Clone, Default)]
pub(super) struct Board(pub Vec<Rates>);

impl Board {
    /// Times `work` on `n` objects.
    pub fn time(
        &mut self,
        store: &str,
        phase: &'static str,
        n: usize,
        work: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let start = Instant::now();
        work()?;
        self.add(store, phase, n as f64 / start.elapsed().as_secs_f64().max(1e-9));
        Ok(())
    }

    /// Adds a value.
    pub fn add(&mut self, store: &str, phase: &'static str, value: f64) {
        match self.0.iter_mut().find(|r| r.store == store && r.phase == phase) {
            Some(rates) => rates.values.push(value),
            None => self.0.push(Rates { store: store.into(), phase, values: vec![value] }),
        }
    }

    /// The spread of one.
    pub fn spread(&self, store: &str, phase: &str) -> Option<Spread> {
        let found = self.0.iter().find(|r| r.store == store && r.phase == phase)?;
        Some(Spread::of(&found.values))
    }

    /// Its median; not a number where nothing was measured.
    pub fn median(&self, store: &str, phase: &str) -> f64 {
        self.spread(store, phase).map_or(f64::NAN, |s| s.median)
    }

    /// Stores, in the order in which they came.
    pub fn stores(&self) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for rates in &self.0 {
            if !all.contains(&rates.store) {
                all.push(rates.store.clone());
            }
        }
        all
    }

    /// One row for each store: its name, then each phase.
    pub fn rows(&self, phases: &[&str]) -> Vec<Vec<String>> {
        let cell = |store: &str, phase: &str| {
            self.spread(store, phase).map_or_else(|| "–".to_owned(), |s| s.to_string())
        };
        let row = |store: String| {
            let cells = phases.iter().map(|phase| cell(&store, phase));
            std::iter::once(store.clone()).chain(cells).collect()
        };
        self.stores().into_iter().map(row).collect()
    }
}

/// Writes out what earlier phases left dirty, so that it does not disturb the next ones. Where
/// the program is missing nothing is done.
pub(super) fn write_out(dir: &Path) {
    let mut sync = Command::new("sync");
    let _ = sync.arg("-f").arg(dir).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
