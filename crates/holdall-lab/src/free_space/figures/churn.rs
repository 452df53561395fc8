//! Figures 10 to 13: creating and deleting (McAuliffe §5.3). Owns no state.

use super::cost::{Cpu, PAPER_DISK, time};
use super::parts::{each, head, named, points, series, tail};
use super::runs::{PAPER_KINDS, Workload, churn_params, notes, runs};
use crate::experiment::{Claim, Outcome, Settings};
use crate::free_space::purpose::Purpose;
use crate::free_space::workload::{Run, Sample};
use crate::kit::claim;
use crate::kit::draw::{axis, axis_in, lines, percent, table};
use anyhow::Result;
use holdall_plot::{Panel, Table};
use std::sync::Arc;

pub(super) fn transactions(s: &Sample) -> f64 {
    s.transactions as f64
}

pub(super) fn throughput_panel(id: &str, runs: &[Arc<Run>], cpu: Cpu) -> Panel {
    let rate = |run: &Run| run.rates(transactions, transactions, |s| time(s, &PAPER_DISK, cpu));
    let y = axis("transactions per second");
    lines(id, cpu.label(), axis("transactions"), y, series(runs, rate))
}

pub(super) fn utilization_panel(runs: &[Arc<Run>]) -> Panel {
    let curve = |run: &Run| points(run, transactions, |s| s.utilization() * 100.0);
    let y = axis_in("utilization, %", 0.0, 100.0);
    lines("utilization", "Space utilization", axis("transactions"), y, series(runs, curve))
}

pub(super) fn pages_panel(runs: &[Arc<Run>]) -> Panel {
    let curve = |run: &Run| points(run, transactions, |s| f64::from(s.pages));
    lines("pages", "Pages of the file", axis("transactions"), axis("pages"), series(runs, curve))
}

/// Delete reads per object deleted, window by window.
fn misses(run: &Run) -> Vec<(f64, f64)> {
    let reads = |s: &Sample| s.reads(Purpose::Delete) as f64;
    run.rates(transactions, reads, |s| s.counters.deleted as f64)
}

/// Create reads per object created, window by window.
fn fetches(run: &Run) -> Vec<(f64, f64)> {
    let reads = |s: &Sample| s.reads(Purpose::Create) as f64;
    run.rates(transactions, reads, |s| s.counters.created as f64)
}

pub(super) fn rate(run: &Run, cpu: Cpu) -> f64 {
    run.rate(transactions, |s| time(s, &PAPER_DISK, cpu))
}

pub(super) fn totals(runs: &[Arc<Run>]) -> Table {
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
            format!("{:.2}", rate(run, Cpu::Measured)),
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

fn outcome(
    panels: Vec<Panel>,
    runs: &[Arc<Run>],
    claims: Vec<Claim>,
    settings: &Settings<'_>,
) -> Outcome {
    let notes = notes(Workload::Churn, settings);
    Outcome { panels, tables: vec![totals(runs)], claims, notes }
}

/// Figure 10.
pub(super) fn throughput(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Churn, &PAPER_KINDS, settings)?;
    let measured = |name: &str| named(&runs, name).map(|run| rate(run, Cpu::Measured));
    let hy = measured("HY(8,87)")?;
    let best = runs.iter().map(|r| rate(r, Cpu::Measured)).fold(0.0, f64::max);
    let ao = measured("AO(8)")?;
    let claims = vec![
        claim::holds(
            "M4 best",
            "HY(8,87) has the best throughput",
            "best",
            each(&runs, |r| format!("{:.2}/s", rate(r, Cpu::Measured))),
            "at least 97 % of the best",
            hy >= 0.97 * best,
        )
        .ratio(hy / best),
        claim::holds(
            "M4 matched",
            "AO's throughput is about HY's",
            "matched",
            format!("AO(8) {ao:.2}/s, HY {hy:.2}/s"),
            "15 %",
            (ao / hy - 1.0).abs() <= 0.15,
        )
        .ratio(ao / hy)
        .remark("AO falls behind as its file grows: its deletions miss more often."),
    ];
    let panels = vec![
        throughput_panel("measured", &runs, Cpu::Measured),
        throughput_panel("paper-cpu", &runs, Cpu::Paper),
    ];
    Ok(outcome(panels, &runs, claims, settings))
}

/// Figure 11.
pub(super) fn utilization(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Churn, &PAPER_KINDS, settings)?;
    let ao = named(&runs, "AO(8)")?;
    let (from, to) = (f64::from(ao.first().pages), f64::from(ao.last().pages));
    let slope = |at: usize| {
        let s = |i: usize| ao.samples.get(i).map_or(0.0, |s| f64::from(s.pages));
        s(at + 10) - s(at)
    };
    let late = slope(ao.samples.len().saturating_sub(11)) / slope(0).max(1.0);
    let claims = vec![
        claim::holds(
            "M4 initial pages",
            "the file initially filled by AO(8)",
            "5059 pages",
            format!("{from} pages"),
            "3 %",
            (from / 5059.0 - 1.0).abs() <= 0.03,
        )
        .ratio(from / 5059.0)
        .remark(
            "The paper calls this file 90 % utilized; 200,000 objects of 204 bytes \
                          on 5059 pages of 8108 are 99 %.",
        ),
        claim::holds(
            "M4 growth",
            "AO's file grows to almost three times its size",
            "≈ 2.8 × (≈ 14000 pages)",
            format!("{:.2} × ({to} pages)", to / from),
            "15 %",
            (to / from / 2.77 - 1.0).abs() <= 0.15,
        )
        .ratio(to / from / 2.77),
        claim::holds(
            "M4 keeps growing",
            "and keeps growing",
            "grows",
            format!("at {} of its first rate in the last quarter", percent(late)),
            "> 50 % of the first rate",
            late > 0.5,
        )
        .remark(
            "Hardly a page has become empty yet; the limit of appendix A, 1/H_40 = \
                          23 %, is far off.",
        ),
    ];
    Ok(outcome(vec![utilization_panel(&runs), pages_panel(&runs)], &runs, claims, settings))
}

/// Figure 12.
pub(super) fn delete_reads(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Churn, &PAPER_KINDS, settings)?;
    let y = axis("delete reads per object deleted");
    let panels =
        vec![lines("delete-reads", "Delete reads", axis("transactions"), y, series(&runs, misses))];
    let last = |name: &str| named(&runs, name).map(|run| tail(&misses(run)));
    let (hy, ao) = (last("HY(8,87)")?, last("AO(8)")?);
    let pool = churn_params(Workload::Churn, settings).options.pool_pages as f64;
    let hy_pages = f64::from(named(&runs, "HY(8,87)")?.last().pages);
    let others: Vec<_> =
        runs.iter().filter(|r| !r.kind.name().starts_with("AO")).cloned().collect();
    let off = others.iter().map(|r| (tail(&misses(r)) - 0.80).abs()).fold(0.0, f64::max);
    let first = runs.iter().map(|r| head(&misses(r)) - 0.80).fold(0.0, |m: f64, d| m.max(d.abs()));
    let claims = vec![
        claim::holds(
            "M5 all",
            "of the deletions about 80 % miss the pool, initially for every algorithm and \
                   throughout for all but AO",
            "≈ 80 %",
            each(&runs, |r| percent(tail(&misses(r)))),
            "± 3 points",
            off <= 0.03 && first <= 0.05,
        )
        .ratio(hy / 0.80)
        .remark(format!(
            "Last quarter of the run. HY's file has grown to {} pages, {} of them outside of \
                 the pool.",
            hy_pages,
            percent(1.0 - pool / hy_pages)
        )),
        claim::holds(
            "M5 AO",
            "AO's rate of misses rises",
            "≈ 88 %",
            percent(ao),
            "± 3 points",
            (ao - 0.88).abs() <= 0.03,
        )
        .ratio(ao / 0.88)
        .remark(format!(
            "Below the {} of pages outside of the pool, as newer pages are fuller and in it.",
            percent(1.0 - pool / f64::from(named(&runs, "AO(8)")?.last().pages))
        )),
    ];
    Ok(outcome(panels, &runs, claims, settings))
}

/// Figure 13.
pub(super) fn create_reads(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(Workload::Churn, &PAPER_KINDS, settings)?;
    let y = axis("create reads per object created");
    let panels = vec![lines(
        "create-reads",
        "Create reads",
        axis("transactions"),
        y,
        series(&runs, fetches),
    )];
    let all = |run: &Run| {
        let reads = |s: &Sample| s.reads(Purpose::Create) as f64;
        run.rate(reads, |s| s.counters.created as f64)
    };
    let nfwh = all(named(&runs, "NF(WH)")?);
    let others = runs.iter().filter(|r| r.kind.name() != "NF(WH)").map(|r| all(r));
    let others = others.fold(0.0, f64::max);
    let check = claim::holds(
        "M6",
        "create reads are significant for NF(WH) only",
        "NF(WH) only",
        each(&runs, |r| format!("{:.4}", all(r))),
        "NF(WH) > 0.1, others < 0.1 and < a quarter of it",
        nfwh > 0.1 && others < 0.1 && nfwh > 4.0 * others,
    )
    .remark(
        "FF and BF read a little: while deletions are ahead of creations, holes \
                      outlive their page's stay in the pool.",
    );
    let claims = vec![check];
    Ok(outcome(panels, &runs, claims, settings))
}
