//! Panels, tables and claims of the figures, made short. Owns no state.

use crate::experiment::{Claim, Settings, Verdict};
use crate::free_space::workload::{Run, Sample};
use crate::parts::NoParts;
use crate::price::{DiskPrice, Price};
use holdall_plot::{Axis, Kind, Panel, Scale, Series, Table};
use std::sync::Arc;

pub(super) fn axis(label: &str) -> Axis {
    Axis { label: label.to_owned(), scale: Scale::Linear, range: None, ticks: Vec::new() }
}

pub(super) fn axis_in(label: &str, from: f64, to: f64) -> Axis {
    Axis { range: Some((from, to)), ..axis(label) }
}

pub(super) fn log_axis(label: &str) -> Axis {
    Axis { scale: Scale::Log10, ..axis(label) }
}

pub(super) fn lines(id: &str, title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Panel {
    Panel { id: id.to_owned(), title: title.to_owned(), kind: Kind::Lines, x, y, series }
}

/// A series for each run, of the points that `points` makes of it.
pub(super) fn series(runs: &[Arc<Run>], points: impl Fn(&Run) -> Vec<(f64, f64)>) -> Vec<Series> {
    let one = |run: &Arc<Run>| Series { name: run.kind.name(), points: points(run) };
    runs.iter().map(one).collect()
}

/// Points of all samples with pages, of x and y of each.
pub(super) fn points(
    run: &Run,
    x: impl Fn(&Sample) -> f64,
    y: impl Fn(&Sample) -> f64,
) -> Vec<(f64, f64)> {
    run.samples.iter().filter(|s| s.pages > 0).map(|s| (x(s), y(s))).collect()
}

pub(super) fn table(id: &str, title: &str, head: &[&str], rows: Vec<Vec<String>>) -> Table {
    let head = head.iter().map(|&h| h.to_owned()).collect();
    Table { id: id.to_owned(), title: title.to_owned(), head, rows }
}

/// One claim to check.
pub(super) struct Check<'a> {
    pub(super) id: &'a str,
    pub(super) text: &'a str,
    pub(super) paper: String,
    pub(super) ours: String,
    pub(super) ratio: Option<f64>,
    pub(super) tolerance: &'a str,
    pub(super) holds: bool,
    /// Said in any case where it is not empty.
    pub(super) explanation: String,
}

impl Check<'_> {
    /// The claim; a note where the run was a quick one.
    pub(super) fn claim(self, settings: &Settings<'_>) -> Claim {
        let verdict = match (settings.quick, self.holds) {
            (true, _) => Verdict::Note,
            (false, true) => Verdict::Holds,
            (false, false) => Verdict::Fails,
        };
        Claim {
            id: self.id.to_owned(),
            text: self.text.to_owned(),
            paper: self.paper,
            ours: self.ours,
            ratio: self.ratio,
            tolerance: self.tolerance.to_owned(),
            verdict,
            explanation: self.explanation,
        }
    }

    /// The claim as an observation.
    pub(super) fn note(self) -> Claim {
        let price = DiskPrice::given(Price::QUICK, "given");
        let progress = &|_: u64, _: u64| ();
        let quick = Settings { quick: true, seed: 0, price: &price, parts: &NoParts, progress };
        self.claim(&quick)
    }
}

/// 0.1234 as "12.3 %".
pub(super) fn percent(x: f64) -> String {
    format!("{:.1} %", x * 100.0)
}

/// "AO(1) 97.3 %, FF 99.1 %".
pub(super) fn each(runs: &[Arc<Run>], value: impl Fn(&Run) -> String) -> String {
    let one = |run: &Arc<Run>| format!("{} {}", run.kind.name(), value(run));
    runs.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The run of the algorithm with this name.
///
/// # Errors
/// Where there is none.
pub(super) fn named<'a>(runs: &'a [Arc<Run>], name: &str) -> anyhow::Result<&'a Run> {
    let run = runs.iter().find(|run| run.kind.name() == name);
    run.map(Arc::as_ref).ok_or_else(|| anyhow::anyhow!("no run of {name}"))
}

/// Mean of y over the last quarter of the points.
pub(super) fn tail(points: &[(f64, f64)]) -> f64 {
    let n = points.len().div_ceil(4);
    points.iter().rev().take(n).map(|p| p.1).sum::<f64>() / n.max(1) as f64
}

/// Mean of y over the first quarter of the points.
pub(super) fn head(points: &[(f64, f64)]) -> f64 {
    let n = points.len().div_ceil(4);
    points.iter().take(n).map(|p| p.1).sum::<f64>() / n.max(1) as f64
}
