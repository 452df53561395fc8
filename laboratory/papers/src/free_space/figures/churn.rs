//! Figures 10 to 16: creating and deleting by one and by four streams of transactions
//! (McAuliffe §5.3, §5.4). Owns no state.

use super::cost::PAPER_DISK;
use super::parts::{
    self, Column, created, deleted, each, fetches, head, misses, named, points, rate, reads,
    series, tabled, tail, transactions,
};
use super::runs::{PAPER_KINDS, Workload, outcome, runs};
use crate::free_space::algorithm::Kind;
use crate::free_space::volume::Purpose;
use crate::free_space::workload::{Run, Sample};
use crate::kit::{claims, plot::from_zero};
use anyhow::Result;
use holdall_instrument::draw::{axis, axis_in, paper_points, percent};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::{Panel, Series, Table};
use std::sync::Arc;

fn throughput_panels(runs: &[Arc<Run>]) -> Vec<Panel> {
    parts::throughput(runs, transactions, "transactions", "transactions per second")
}

/// Utilization and pages, beside the paper's pages at some transactions.
fn space_panels(runs: &[Arc<Run>], paper: Vec<Series>) -> Vec<Panel> {
    let pages = |run: &Run| points(run, transactions, |s| f64::from(s.pages));
    let percent = axis_in("utilization, %", 0.0, 100.0);
    let mut drawn = series(runs, pages);
    drawn.extend(paper);
    let about = ["pages", "Pages of the file"];
    vec![
        parts::utilization(runs, transactions, "transactions", percent),
        from_zero(about, axis("transactions"), "pages", drawn),
    ]
}

fn panel(
    about: [&str; 2],
    y: &str,
    runs: &[Arc<Run>],
    of: Rates,
    paper: Vec<Series>,
) -> Vec<Panel> {
    let mut drawn = series(runs, of);
    drawn.extend(paper);
    vec![from_zero(about, axis("transactions"), y, drawn)]
}

/// A rate window by window.
type Rates = fn(&Run) -> Vec<(f64, f64)>;

const MISSES: Rates = |run| run.rates(transactions, reads(Purpose::Delete), deleted);
const FETCHES: Rates = |run| run.rates(transactions, reads(Purpose::Create), created);
const COLLISIONS: Rates = |run| run.rates(transactions, collisions_of, created);

fn collisions_of(s: &Sample) -> f64 {
    s.counters.collisions as f64
}

pub(super) fn collision_rate(run: &Run) -> f64 {
    run.rate(collisions_of, created)
}

/// Whether collisions are many for FF and BF, near none for HY.
pub(super) fn few_for_hy(runs: &[Arc<Run>]) -> Result<bool> {
    let of = |name: &str| named(runs, name).map(collision_rate);
    let (ff, bf, hy) = (of("FF")?, of("BF")?, of("HY(8,87)")?);
    Ok(ff > 0.2 && bf > 0.2 && hy < 0.05 && hy < 0.1 * ff.min(bf))
}

/// What grew since the objects were put there.
pub(super) fn grown(run: &Run, of: impl Fn(&Sample) -> u64) -> String {
    (of(&run.last()) - of(&run.first())).to_string()
}

const TOTALS: [Column; 10] = [
    ("pages", |r| format!("{} → {}", r.first().pages, r.last().pages)),
    ("utilization", |r| percent(r.last().utilization())),
    ("create reads", |r| grown(r, |s| s.reads(Purpose::Create))),
    ("delete reads", |r| grown(r, |s| s.reads(Purpose::Delete))),
    ("pages written", |r| grown(r, |s| s.counters.pool.writes)),
    ("FSIP entries", |r| grown(r, |s| s.counters.looks.entries)),
    ("collisions", |r| grown(r, |s| s.counters.collisions)),
    ("disk s", |r| grown(r, |s| s.disk_time(&PAPER_DISK) as u64)),
    ("processor s", |r| format!("{:.2}", r.last().cpu)),
    ("transactions / s", |r| format!("{:.2}", rate(r))),
];

fn totals(runs: &[Arc<Run>]) -> Table {
    tabled("totals", "The whole run", runs, &TOTALS)
}

/// The runs of one stream.
fn single(settings: &Settings<'_>) -> Result<Vec<Arc<Run>>> {
    runs(Workload::Churn, &PAPER_KINDS, settings)
}

/// The runs of four.
fn four(settings: &Settings<'_>) -> Result<Vec<Arc<Run>>> {
    runs(Workload::Concurrent, &PAPER_KINDS, settings)
}

/// That HY has the best throughput.
fn hy_best(id: &str, runs: &[Arc<Run>]) -> Result<Claim> {
    let hy = rate(named(runs, "HY(8,87)")?);
    let best = runs.iter().map(|r| rate(r)).fold(0.0, f64::max);
    let ours = each(runs, |r| format!("{:.2}/s", rate(r)));
    let so = hy >= 0.97 * best;
    Ok(claims::says(id, &[], ours, so).ratio(hy / best))
}

/// Figure 10.
pub(super) fn throughput(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = single(settings)?;
    let (hy, ao) = (rate(named(&runs, "HY(8,87)")?), rate(named(&runs, "AO(8)")?));
    let ours = format!("AO(8) {ao:.2}/s, HY {hy:.2}/s");
    let so = (ao / hy - 1.0).abs() <= 0.15;
    let claims = vec![
        hy_best("M4 best", &runs)?,
        claims::says("M4 matched", &[], ours, so)
            .ratio(ao / hy)
            .remark("AO falls behind as its file grows: its deletions miss more often."),
    ];
    Ok(outcome(throughput_panels(&runs), totals(&runs), claims, Workload::Churn, settings))
}

/// Figure 11.
pub(super) fn utilization(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = single(settings)?;
    let ao = named(&runs, "AO(8)")?;
    let (from, to) = (f64::from(ao.first().pages), f64::from(ao.last().pages));
    let slope = |at: usize| {
        let s = |i: usize| ao.samples.get(i).map_or(0.0, |s| f64::from(s.pages));
        s(at + 10) - s(at)
    };
    let late = slope(ao.samples.len().saturating_sub(11)) / slope(0).max(1.0);
    let near = |of: f64, within: f64| (of - 1.0).abs() <= within;
    let (first, growth) = (from / 5059.0, to / from / 2.77);
    let grown = format!("{:.2} × ({to} pages)", to / from);
    let goes_on = format!("at {} of its first rate in the last quarter", percent(late));
    let claims = vec![
        claims::says("M4 initial pages", &[], format!("{from} pages"), near(first, 0.03))
            .ratio(first),
        claims::says("M4 growth", &[], grown, near(growth, 0.15)).ratio(growth),
        claims::says("M4 keeps growing", &[], goes_on, late > 0.5),
    ];
    // Quick runs have a tenth of the pages.
    let mut paper = vec![paper_points("paper: AO(8)", vec![(0.0, 5059.0), (60_000.0, 14_000.0)])];
    paper.retain(|_| !settings.quick);
    Ok(outcome(space_panels(&runs, paper), totals(&runs), claims, Workload::Churn, settings))
}

/// Figure 12.
pub(super) fn delete_reads(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = single(settings)?;
    let ended = runs.iter().map(|r| r.last().transactions).max().unwrap_or(0) as f64;
    let paper = vec![
        paper_points("paper", vec![(0.0, 0.80), (ended, 0.80)]),
        paper_points("paper: AO(8)", vec![(ended, 0.88)]),
    ];
    let about = ["delete-reads", "Delete reads"];
    let panels = panel(about, "delete reads per object deleted", &runs, MISSES, paper);
    let last = |name: &str| named(&runs, name).map(|run| tail(&MISSES(run)));
    let (hy, ao) = (last("HY(8,87)")?, last("AO(8)")?);
    let others = runs.iter().filter(|r| !r.kind.name().starts_with("AO"));
    let off = others.map(|r| (tail(&MISSES(r)) - 0.80).abs()).fold(0.0, f64::max);
    let first = runs.iter().map(|r| (head(&MISSES(r)) - 0.80).abs()).fold(0.0, f64::max);
    let so = off <= 0.03 && first <= 0.05;
    let claims = vec![
        claims::says("M5 all", &[], each(&runs, |r| percent(tail(&MISSES(r)))), so)
            .ratio(hy / 0.80),
        claims::says("M5 AO", &[], percent(ao), (ao - 0.88).abs() <= 0.03).ratio(ao / 0.88),
    ];
    Ok(outcome(panels, totals(&runs), claims, Workload::Churn, settings))
}

/// Figure 13.
pub(super) fn create_reads(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = single(settings)?;
    let about = ["create-reads", "Create reads"];
    let panels = panel(about, "create reads per object created", &runs, FETCHES, Vec::new());
    let nfwh = fetches(named(&runs, "NF(WH)")?);
    let others = runs.iter().filter(|r| r.kind.name() != "NF(WH)");
    let others = others.map(|r| fetches(r)).fold(0.0, f64::max);
    let ours = each(&runs, |r| format!("{:.4}", fetches(r)));
    let check = claims::says("M6", &[], ours, nfwh > 0.1 && others < 0.1 && nfwh > 4.0 * others);
    Ok(outcome(panels, totals(&runs), vec![check], Workload::Churn, settings))
}

/// Figure 14.
pub(super) fn throughput_of_four(settings: &Settings<'_>) -> Result<Outcome> {
    let four = four(settings)?;
    let run = |name: &str| named(&four, name);
    let (ao, hy) = (run("AO(8)")?, run("HY(8,87)")?);
    let matches = |r: &&Arc<Run>| (rate(r) / rate(hy) - 1.0).abs() <= 0.15;
    let others = four.iter().filter(|r| r.kind != Kind::Hy(8, 0.875));
    let matching: Vec<String> = others.filter(matches).map(|r| r.kind.name()).collect();
    let so = matching == ["AO(1)", "AO(8)"];
    let ours = if matching.is_empty() { "none".to_owned() } else { matching.join(", ") };
    let claims = vec![
        hy_best("M4 best, four streams", &four)?,
        claims::says("M4 matched by AO only, four streams", &[], ours, so).because(format!(
            "AO falls behind: AO(8)'s file grows to {:.1} times its size. Of its deletions {} miss \
             the pool, of HY's {}, of FF's {} and of BF's {}, and these two read only {:.3} and \
             {:.3} pages to create an object: with one disk arm little is left to tell them from \
             HY",
            f64::from(ao.last().pages) / f64::from(ao.first().pages),
            percent(misses(ao)),
            percent(misses(hy)),
            percent(misses(run("FF")?)),
            percent(misses(run("BF")?)),
            fetches(run("FF")?),
            fetches(run("BF")?),
        )),
    ];
    Ok(outcome(throughput_panels(&four), totals(&four), claims, Workload::Concurrent, settings))
}

/// Figure 15.
pub(super) fn utilization_of_four(settings: &Settings<'_>) -> Result<Outcome> {
    let (single, four) = (single(settings)?, four(settings)?);
    let end = |run: &Run| run.last().utilization();
    let mut off = 0.0_f64;
    for run in four.iter().filter(|r| !r.kind.name().starts_with("AO")) {
        off = off.max((end(run) - end(named(&single, &run.kind.name())?)).abs());
    }
    let check =
        claims::says("Similar utilization", &[], each(&four, |r| percent(end(r))), off <= 0.02);
    let panels = space_panels(&four, Vec::new());
    Ok(outcome(panels, totals(&four), vec![check], Workload::Concurrent, settings))
}

/// Figure 16.
pub(super) fn collisions(settings: &Settings<'_>) -> Result<Outcome> {
    let lazy = four(settings)?;
    let y = "reserved-space collisions per object created";
    let about = ["collisions", "Collisions, lazy release"];
    let panels = panel(about, y, &lazy, COLLISIONS, Vec::new());
    let ours = each(&lazy, |r| format!("{:.4}", collision_rate(r)));
    let check = claims::says("M7", &[], ours, few_for_hy(&lazy)?);
    Ok(outcome(panels, totals(&lazy), vec![check], Workload::Concurrent, settings))
}
