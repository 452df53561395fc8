//! Series and words of the runs that figures share. Owns no state.

use crate::free_space::workload::{Run, Sample};
use crate::kit::draw;
use holdall_plot::Series;
use std::sync::Arc;

/// A series for each run, of the points that `points` makes of it.
pub(super) fn series(runs: &[Arc<Run>], points: impl Fn(&Run) -> Vec<(f64, f64)>) -> Vec<Series> {
    let one = |run: &Arc<Run>| draw::series(run.kind.name(), points(run));
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
