//! Series, words and rates of the runs that figures share. Owns no state.

use super::cost::{Cpu, PAPER_DISK, time};
use crate::free_space::volume::Purpose;
use crate::free_space::workload::{Run, Sample};
use crate::kit::plot::from_zero;
use holdall_instrument::draw::{self, axis, table};
use holdall_instrument::picture::{Axis, Panel, Series, Table};
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

/// A column of a table of runs: its head, and what it has of a run.
pub(super) type Column = (&'static str, fn(&Run) -> String);

/// A row for each run, the algorithm first.
pub(super) fn tabled(id: &str, title: &str, runs: &[Arc<Run>], columns: &[Column]) -> Table {
    let head: Vec<&str> = ["algorithm"].into_iter().chain(columns.iter().map(|c| c.0)).collect();
    let row = |run: &Arc<Run>| {
        let cells = columns.iter().map(|(_, cell)| cell(run));
        [run.kind.name()].into_iter().chain(cells).collect()
    };
    table(id, title, &head, runs.iter().map(row).collect())
}

/// The run of the algorithm with this name.
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

pub(super) fn created(s: &Sample) -> f64 {
    s.counters.created as f64
}

pub(super) fn deleted(s: &Sample) -> f64 {
    s.counters.deleted as f64
}

pub(super) fn transactions(s: &Sample) -> f64 {
    s.transactions as f64
}

/// Pages read for a purpose.
pub(super) fn reads(purpose: Purpose) -> impl Fn(&Sample) -> f64 {
    move |s| s.reads(purpose) as f64
}

/// Transactions per second over the whole run.
pub(super) fn rate(run: &Run) -> f64 {
    run.rate(transactions, |s| time(s, &PAPER_DISK, Cpu::Measured))
}

/// Delete reads per object deleted.
pub(super) fn misses(run: &Run) -> f64 {
    run.rate(reads(Purpose::Delete), deleted)
}

/// Create reads per object created.
pub(super) fn fetches(run: &Run) -> f64 {
    run.rate(reads(Purpose::Create), created)
}

/// Throughput by measured processor time and by the paper's processor, in a panel each.
pub(super) fn throughput(
    runs: &[Arc<Run>],
    count: fn(&Sample) -> f64,
    x: &str,
    y: &str,
) -> Vec<Panel> {
    let panel = |id, cpu: Cpu| {
        let rate = |run: &Run| run.rates(count, count, |s| time(s, &PAPER_DISK, cpu));
        from_zero([id, cpu.label()], axis(x), y, series(runs, rate))
    };
    vec![panel("measured", Cpu::Measured), panel("paper-cpu", Cpu::Paper)]
}

/// Space utilization in percent.
pub(super) fn utilization(runs: &[Arc<Run>], of: fn(&Sample) -> f64, x: &str, y: Axis) -> Panel {
    let curve = |run: &Run| points(run, of, |s| s.utilization() * 100.0);
    draw::lines("utilization", "Space utilization", axis(x), y, series(runs, curve))
}
