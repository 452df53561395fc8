//! Kept runs, as far as documents show them.
//!
//! Owns: which runs count. A run counts if it is complete, of full size and of a commit that
//! anybody can check out; others are no ground for a figure.

use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::path::Path;

/// What the workloads' command keeps.
const RESULTS: &str = "results.json";

/// A kept run.
#[derive(Debug, Deserialize)]
pub struct Run {
    /// The day it began, UTC.
    pub date: Option<String>,
    /// Seconds since 1970; runs from before this was noted have none.
    #[serde(default)]
    begun: u64,
    /// Of what.
    pub commit: Option<String>,
    complete: bool,
    quick: bool,
    /// Processors, memory, disk, system.
    pub machine: String,
    /// How often each contestant did each row.
    pub rounds: usize,
    /// Whether it was looked for other work on the machine.
    #[serde(default)]
    probed: bool,
    workloads: Vec<Workload>,
}

/// One contest of a run.
#[derive(Debug, Deserialize)]
pub struct Workload {
    workload: String,
    /// Its rows, in order.
    pub rows: Vec<Row>,
    #[serde(default)]
    probes: Vec<Probed>,
}

#[derive(Debug, Deserialize)]
struct Probed {
    quiet: Option<bool>,
}

/// One row with all who took part.
#[derive(Debug, Deserialize)]
pub struct Row {
    /// Its name.
    pub row: String,
    /// What values count.
    pub unit: String,
    /// Whether a smaller value is better.
    pub less_is_better: bool,
    /// Who took part.
    pub stores: Vec<Line>,
}

/// What one reached.
#[derive(Debug, Deserialize)]
pub struct Line {
    /// Its name.
    pub store: String,
    /// The main figure.
    pub value: Median,
    /// Bytes on disk for a byte of objects.
    pub disk_per_logical: Option<Median>,
    to_best_peer: Option<Median>,
}

/// The median of the rounds.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Median {
    /// It.
    pub median: f64,
}

/// All runs below `folder` that count, the newest first.
///
/// # Errors
/// A `results.json` that cannot be read or is none of a run.
pub fn all(folder: &Path) -> Result<Vec<Run>> {
    let mut out = Vec::new();
    if !folder.exists() {
        return Ok(out);
    }
    for entry in std::fs::read_dir(folder).context("reading the folder of kept runs")? {
        let path = entry?.path().join(RESULTS);
        if !path.is_file() {
            continue;
        }
        let shown = path.display();
        let bytes = std::fs::read(&path).with_context(|| format!("reading {shown}"))?;
        let run: Run = serde_json::from_slice(&bytes)
            .with_context(|| format!("{shown} holds no results of a run"))?;
        if run.counts() {
            out.push(run);
        }
    }
    out.sort_by(|a, b| (&b.date, b.begun, &b.commit).cmp(&(&a.date, a.begun, &a.commit)));
    Ok(out)
}

impl Run {
    fn counts(&self) -> bool {
        let known = |c: &String| c != "unknown" && !c.ends_with("-dirty");
        self.complete
            && !self.quick
            && self.date.is_some()
            && self.commit.as_ref().is_some_and(known)
    }

    /// The contest of this id.
    pub fn workload(&self, id: &str) -> Option<&Workload> {
        self.workloads.iter().find(|w| w.workload == id)
    }

    /// `Commit 2d44270 of 2026-11-22, 3 rounds, on MACHINE.`
    pub fn origin(&self) -> String {
        let text = |part: &Option<String>| part.clone().unwrap_or_else(|| "unknown".into());
        let rounds = if self.rounds == 1 { "round" } else { "rounds" };
        let probed = if self.probed { "" } else { ", not probed for other work" };
        format!(
            "Commit {} of {}, {} {rounds}, on {}{probed}.",
            text(&self.commit),
            text(&self.date),
            self.rounds,
            self.machine
        )
    }
}

impl Workload {
    /// Whether other work on the machine disturbed a round.
    pub fn is_disturbed(&self) -> bool {
        self.probes.iter().any(|p| p.quiet == Some(false))
    }
}

impl Line {
    /// Whether it is Holdall's, and which of its adapters.
    pub fn ours(&self) -> Option<&str> {
        self.store.strip_prefix("Holdall").map(str::trim)
    }

    /// How many times as good as the best peer of the same round; above one is better, also for
    /// times.
    pub fn ratio(&self, less_is_better: bool) -> Option<f64> {
        let ratio = self.to_best_peer?.median;
        Some(if less_is_better { 1.0 / ratio } else { ratio })
    }
}

impl Row {
    /// Those that are neither Holdall nor the bare machine.
    pub fn best_peer(&self) -> Option<&Line> {
        let peers =
            self.stores.iter().filter(|l| l.ours().is_none() && !l.store.starts_with("bare"));
        let better = |a: &Line, b: &Line| (a.value.median < b.value.median) == self.less_is_better;
        peers.reduce(|a, b| if better(a, b) { a } else { b })
    }
}
