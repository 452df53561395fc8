//! What the summary reads of `results.json`.

use holdall_instrument::contest::{BARE, is_ours};
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Results {
    date: Option<String>,
    commit: Option<String>,
    pub(super) complete: bool,
    pub(super) machine: String,
    pub(super) quick: bool,
    pub(super) rounds: usize,
    pub(super) workloads: Vec<Workload>,
}

#[derive(Deserialize)]
pub(super) struct Workload {
    pub(super) workload: String,
    pub(super) rows: Vec<Row>,
    pub(super) probes: Vec<Probed>,
}

#[derive(Deserialize)]
pub(super) struct Probed {
    /// None where the round was not probed.
    pub(super) quiet: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) row: String,
    pub(super) unit: String,
    pub(super) less_is_better: bool,
    pub(super) stores: Vec<Line>,
}

#[derive(Deserialize)]
pub(super) struct Line {
    pub(super) store: String,
    pub(super) value: Median,
    pub(super) disk_per_logical: Option<Median>,
    to_best_peer: Option<Median>,
}

#[derive(Deserialize, Clone, Copy)]
pub(super) struct Median {
    pub(super) median: f64,
}

impl Results {
    /// Day and commit.
    pub(super) fn name(&self) -> String {
        let part = |p: &Option<String>| p.clone().unwrap_or_else(|| "unknown".into());
        format!("{}, commit {}", part(&self.date), part(&self.commit))
    }
}

impl Workload {
    /// A row's name with the workload's before it, and a mark behind it where the workload was
    /// disturbed.
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

    pub(super) fn best_other(&self) -> Option<&Line> {
        let better = |a: &Line, b: &Line| (a.value.median < b.value.median) == self.less_is_better;
        self.others().reduce(|a, b| if better(a, b) { a } else { b })
    }

    /// How much better than the best other store.
    pub(super) fn ratio(&self, line: &Line) -> Option<f64> {
        let ratio = line.to_best_peer?.median;
        Some(if self.less_is_better { 1.0 / ratio } else { ratio })
    }
}
