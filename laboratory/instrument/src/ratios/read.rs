//! What the picture reads of `results.json`.
//!
//! Owns nothing.

use crate::contest::{BARE, is_ours};
use serde::Deserialize;

/// What one run has.
#[derive(Deserialize)]
pub(super) struct Run {
    date: Option<String>,
    commit: Option<String>,
    workloads: Vec<Workload>,
}

/// What the picture is of.
#[derive(Default)]
pub(super) struct Results {
    /// Day and commit of each run, once.
    names: Vec<String>,
    /// In their order.
    pub(super) workloads: Vec<Workload>,
}

#[derive(Deserialize)]
pub(super) struct Workload {
    pub(super) workload: String,
    pub(super) rows: Vec<Row>,
    probes: Vec<Probed>,
}

#[derive(Deserialize)]
struct Probed {
    /// None if the round was not probed.
    quiet: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Row {
    row: String,
    less_is_better: bool,
    stores: Vec<Line>,
}

#[derive(Deserialize)]
pub(super) struct Line {
    pub(super) store: String,
    disk_per_logical: Option<Median>,
    to_best_peer: Option<Median>,
}

#[derive(Deserialize, Clone, Copy)]
struct Median {
    median: f64,
}

impl Results {
    /// Adds the workloads that no run before has.
    pub(super) fn add(&mut self, run: Run) {
        let part = |p: &Option<String>| p.clone().unwrap_or_else(|| "unknown".into());
        let name = format!("{}, commit {}", part(&run.date), part(&run.commit));
        if !self.names.contains(&name) {
            self.names.push(name);
        }
        for workload in run.workloads {
            if self.workloads.iter().all(|w| w.workload != workload.workload) {
                self.workloads.push(workload);
            }
        }
        self.workloads.sort_by_key(Workload::number);
    }

    /// Day and commit of each run.
    pub(super) fn name(&self) -> String {
        self.names.join("; ")
    }
}

impl Workload {
    /// Its place among W1 to W10; others come behind, in the order they are read.
    fn number(&self) -> u32 {
        self.workload.strip_prefix('w').and_then(|n| n.parse().ok()).unwrap_or(u32::MAX)
    }

    /// A row's name with the workload's before it, and a mark behind it if other work disturbed
    /// the workload.
    pub(super) fn title(&self, row: &Row) -> String {
        let id = self.workload.to_uppercase();
        let mark = if self.disturbed() > 0 { " †" } else { "" };
        // "W3c: cold" has it already.
        let before = if row.row.starts_with(&id) { String::new() } else { id + " " };
        format!("{before}{}{mark}", row.row)
    }

    /// Rounds that other work disturbed.
    pub(super) fn disturbed(&self) -> usize {
        self.probes.iter().filter(|p| p.quiet == Some(false)).count()
    }
}

impl Row {
    pub(super) fn of(&self, store: &str) -> Option<&Line> {
        self.stores.iter().find(|line| line.store == store)
    }

    /// Stores that are neither Holdall nor the bare machine.
    pub(super) fn others(&self) -> impl Iterator<Item = &Line> {
        self.stores.iter().filter(|line| line.store != BARE && !is_ours(&line.store))
    }

    /// Holdall's.
    pub(super) fn ours(&self) -> impl Iterator<Item = &Line> {
        self.stores.iter().filter(|line| is_ours(&line.store))
    }

    /// Whether Holdall and another store have it.
    pub(super) fn compares(&self) -> bool {
        self.others().next().is_some() && self.ours().next().is_some()
    }

    /// How much better than the best other store.
    pub(super) fn ratio(&self, line: &Line) -> Option<f64> {
        let ratio = line.to_best_peer?.median;
        Some(if self.less_is_better { 1.0 / ratio } else { ratio })
    }

    /// The least space that another store takes, divided by what this one takes: above one this
    /// one takes less.
    pub(super) fn space_ratio(&self, line: &Line) -> Option<f64> {
        let disk = |line: &Line| Some(line.disk_per_logical?.median);
        let least = self.others().filter_map(disk).reduce(f64::min)?;
        Some(least / disk(line)?)
    }
}
