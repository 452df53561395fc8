//! Figures 10 to 16: creating and deleting by one and by four streams of transactions
//! (McAuliffe §5.3, §5.4). Owns no state.

use super::cost::PAPER_DISK;
use super::parts::{
    self, created, deleted, each, fetches, head, misses, named, points, rate, reads, series, tail,
    transactions,
};
use super::runs::{PAPER_KINDS, Workload, churn_params, outcome, runs};
use crate::free_space::algorithm::Kind;
use crate::free_space::volume::Purpose;
use crate::free_space::workload::{Run, Sample};
use crate::kit::claims;
use anyhow::Result;
use holdall_instrument::draw::{axis, axis_in, lines, percent, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::{Panel, Table};
use std::sync::Arc;

fn throughput_panels(runs: &[Arc<Run>]) -> Vec<Panel> {
    parts::throughput(runs, transactions, "transactions", "transactions per second")
}

fn space_panels(runs: &[Arc<Run>]) -> Vec<Panel> {
    let pages = |run: &Run| points(run, transactions, |s| f64::from(s.pages));
    let (x, y) = (axis("transactions"), axis("pages"));
    let percent = axis_in("utilization, %", 0.0, 100.0);
    vec![
        parts::utilization("utilization", runs, transactions, "transactions", percent),
        lines("pages", "Pages of the file", x, y, series(runs, pages)),
    ]
}

fn panel(id: &str, title: &str, y: &str, runs: &[Arc<Run>], of: Rates) -> Vec<Panel> {
    vec![lines(id, title, axis("transactions"), axis(y), series(runs, of))]
}

/// A rate window by window.
type Rates = fn(&Run) -> Vec<(f64, f64)>;

const MISSES: Rates = |run| run.rates(transactions, reads(Purpose::Delete), deleted);
const FETCHES: Rates = |run| run.rates(transactions, reads(Purpose::Create), created);
const COLLISIONS: Rates = |run| run.rates(transactions, collisions_of, created);

fn collisions_of(s: &Sample) -> f64 {
    s.counters.collisions as f64
}

fn collision_rate(run: &Run) -> f64 {
    run.rate(collisions_of, created)
}

fn totals(runs: &[Arc<Run>]) -> Table {
    let row = |run: &Arc<Run>| {
        let (a, z) = (run.first(), run.last());
        let reads = |p: Purpose| (z.reads(p) - a.reads(p)).to_string();
        vec![
            run.kind.name(),
            format!("{} → {}", a.pages, z.pages),
            percent(z.utilization()),
            reads(Purpose::Create),
            reads(Purpose::Delete),
            (z.counters.pool.writes - a.counters.pool.writes).to_string(),
            (z.counters.looks.entries - a.counters.looks.entries).to_string(),
            z.counters.collisions.to_string(),
            format!("{:.0}", z.disk_time(&PAPER_DISK) - a.disk_time(&PAPER_DISK)),
            format!("{:.2}", z.cpu),
            format!("{:.2}", rate(run)),
        ]
    };
    let columns = [
        "algorithm",
        "pages",
        "utilization",
        "create reads",
        "delete reads",
        "pages written",
        "FSIP entries",
        "collisions",
        "disk s",
        "processor s",
        "transactions / s",
    ];
    table("totals", "The whole run", &columns, runs.iter().map(row).collect())
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
    let claims = vec![
        claims::says("M4 initial pages", &[], format!("{from} pages"), near(from / 5059.0, 0.03))
            .ratio(from / 5059.0)
            .remark(
                "The paper calls this file 90 % utilized; 200,000 objects of 204 bytes \
                          on 5059 pages of 8108 are 99 %.",
            ),
        claims::says(
            "M4 growth",
            &[],
            format!("{:.2} × ({to} pages)", to / from),
            near(to / from / 2.77, 0.15),
        )
        .ratio(to / from / 2.77),
        claims::says(
            "M4 keeps growing",
            &[],
            format!("at {} of its first rate in the last quarter", percent(late)),
            late > 0.5,
        ),
    ];
    Ok(outcome(space_panels(&runs), totals(&runs), claims, Workload::Churn, settings))
}

/// Figure 12.
pub(super) fn delete_reads(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = single(settings)?;
    let panels =
        panel("delete-reads", "Delete reads", "delete reads per object deleted", &runs, MISSES);
    let last = |name: &str| named(&runs, name).map(|run| tail(&MISSES(run)));
    let (hy, ao) = (last("HY(8,87)")?, last("AO(8)")?);
    let pool = churn_params(Workload::Churn, settings).options.pool_pages as f64;
    let pages = |name: &str| named(&runs, name).map(|run| f64::from(run.last().pages));
    let (hy_pages, ao_pages) = (pages("HY(8,87)")?, pages("AO(8)")?);
    let others = runs.iter().filter(|r| !r.kind.name().starts_with("AO"));
    let off = others.map(|r| (tail(&MISSES(r)) - 0.80).abs()).fold(0.0, f64::max);
    let first = runs.iter().map(|r| (head(&MISSES(r)) - 0.80).abs()).fold(0.0, f64::max);
    let claims = vec![
        claims::says(
            "M5 all",
            &[],
            each(&runs, |r| percent(tail(&MISSES(r)))),
            off <= 0.03 && first <= 0.05,
        )
        .ratio(hy / 0.80)
        .remark(format!(
            "Last quarter of the run. HY's file has grown to {} pages, {} of them outside of \
                 the pool.",
            hy_pages,
            percent(1.0 - pool / hy_pages)
        )),
        claims::says("M5 AO", &[], percent(ao), (ao - 0.88).abs() <= 0.03).ratio(ao / 0.88).remark(
            format!(
                "Below the {} of pages outside of the pool, as newer pages are fuller and in it.",
                percent(1.0 - pool / ao_pages)
            ),
        ),
    ];
    Ok(outcome(panels, totals(&runs), claims, Workload::Churn, settings))
}

/// Figure 13.
pub(super) fn create_reads(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = single(settings)?;
    let panels =
        panel("create-reads", "Create reads", "create reads per object created", &runs, FETCHES);
    let nfwh = fetches(named(&runs, "NF(WH)")?);
    let others = runs.iter().filter(|r| r.kind.name() != "NF(WH)");
    let others = others.map(|r| fetches(r)).fold(0.0, f64::max);
    let check = claims::says(
        "M6",
        &[],
        each(&runs, |r| format!("{:.4}", fetches(r))),
        nfwh > 0.1 && others < 0.1 && nfwh > 4.0 * others,
    );
    Ok(outcome(panels, totals(&runs), vec![check], Workload::Churn, settings))
}

/// Figure 14.
pub(super) fn throughput_of_four(settings: &Settings<'_>) -> Result<Outcome> {
    let (single, four) = (single(settings)?, four(settings)?);
    let run = |name: &str| named(&four, name);
    let (ao, hy) = (run("AO(8)")?, run("HY(8,87)")?);
    let matches = |r: &&Arc<Run>| (rate(r) / rate(hy) - 1.0).abs() <= 0.15;
    let others = four.iter().filter(|r| r.kind != Kind::Hy(8, 0.875));
    let matching: Vec<String> = others.filter(matches).map(|r| r.kind.name()).collect();
    let claims = vec![
        hy_best("M4 best, four streams", &four)?,
        claims::says("M4 matched by AO only, four streams", &[], if matching.is_empty() { "none".to_owned() } else { matching.join(", ") }, matching == ["AO(1)", "AO(8)"])
        .because(format!(
            "AO falls behind: AO(8)'s file grows to {:.1} times its size. Of its deletions {} miss \
             the pool, of HY's {}, of FF's {} and of BF's {}, and these two read only {:.3} and \
             {:.3} pages to create an object: with one disk arm little is left to tell them from HY",
            f64::from(ao.last().pages) / f64::from(ao.first().pages),
            percent(misses(ao)),
            percent(misses(hy)),
            percent(misses(run("FF")?)),
            percent(misses(run("BF")?)),
            fetches(run("FF")?),
            fetches(run("BF")?),
        )),
        claims::says("Speedup of four threads", &[], format!("HY {:.2} ×", rate(hy) / rate(named(&single, "HY(8,87)")?)), true),
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
    Ok(outcome(space_panels(&four), totals(&four), vec![check], Workload::Concurrent, settings))
}

fn eager_table(eager: &[Arc<Run>], lazy: &[Arc<Run>]) -> Result<Table> {
    let mut rows = Vec::new();
    for run in eager {
        let other = named(lazy, &run.kind.name())?;
        rows.push(vec![
            run.kind.name(),
            format!("{:.4}", collision_rate(other)),
            format!("{:.4}", collision_rate(run)),
            format!("{:.4}", run.rate(reads(Purpose::Release), deleted)),
            percent(other.last().utilization()),
            percent(run.last().utilization()),
            format!("{:.2}", rate(other)),
            format!("{:.2}", rate(run)),
        ]);
    }
    let columns = [
        "algorithm",
        "collisions per object, lazy",
        "eager",
        "reads to release per object deleted, eager",
        "utilization, lazy",
        "eager",
        "transactions / s, lazy",
        "eager",
    ];
    let title = "Lazy and eager release of reserved space (eager: a quarter of the transactions)";
    Ok(table("eager", title, &columns, rows))
}

/// Figure 16.
pub(super) fn collisions(settings: &Settings<'_>) -> Result<Outcome> {
    let lazy = four(settings)?;
    let eager = runs(Workload::Eager, &PAPER_KINDS, settings)?;
    let y = "reserved-space collisions per object created";
    let panels = panel("collisions", "Collisions, lazy release", y, &lazy, COLLISIONS);
    let of = |name: &str| named(&lazy, name).map(collision_rate);
    let (ff, bf, hy) = (of("FF")?, of("BF")?, of("HY(8,87)")?);
    let check = claims::says(
        "M7",
        &[],
        each(&lazy, |r| format!("{:.4}", collision_rate(r))),
        ff > 0.2 && bf > 0.2 && hy < 0.05 && hy < 0.1 * ff.min(bf),
    );
    let mut outcome = outcome(panels, totals(&lazy), vec![check], Workload::Concurrent, settings);
    outcome.tables.push(eager_table(&eager, &lazy)?);
    Ok(outcome)
}
