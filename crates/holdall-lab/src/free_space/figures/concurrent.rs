//! Figures 14 to 16: four streams of transactions at once (McAuliffe §5.4). Owns no state.

use super::churn::{pages_panel, rate, throughput_panel, totals, transactions, utilization_panel};
use super::cost::Cpu;
use super::parts::{each, named, series};
use super::runs::{PAPER_KINDS, Workload, notes, runs};
use crate::experiment::{Claim, Outcome, Settings};
use crate::free_space::algorithm::Kind;
use crate::free_space::purpose::Purpose;
use crate::free_space::workload::{Run, Sample};
use crate::kit::claim;
use crate::kit::draw::{axis, lines, percent, table};
use anyhow::Result;
use holdall_plot::{Panel, Table};
use std::sync::Arc;

fn outcome(
    panels: Vec<Panel>,
    runs: &[Arc<Run>],
    claims: Vec<Claim>,
    settings: &Settings<'_>,
) -> Outcome {
    let notes = notes(Workload::Concurrent, settings);
    Outcome { panels, tables: vec![totals(runs)], claims, notes }
}

/// Figure 14.
pub(super) fn throughput(settings: &Settings<'_>) -> Result<Outcome> {
    let single = runs(Workload::Churn, &PAPER_KINDS, settings)?;
    let four = runs(Workload::Concurrent, &PAPER_KINDS, settings)?;
    let measured = |run: &Run| rate(run, Cpu::Measured);
    let ao = named(&four, "AO(8)")?;
    let hy = measured(named(&four, "HY(8,87)")?);
    let best = four.iter().map(|r| measured(r)).fold(0.0, f64::max);
    let matches = |r: &&Arc<Run>| (measured(r) / hy - 1.0).abs() <= 0.15;
    let others = four.iter().filter(|r| r.kind != Kind::Hy(8, 0.875));
    let matching: Vec<String> = others.filter(matches).map(|r| r.kind.name()).collect();
    let speedup = |name: &str| -> Result<f64> {
        Ok(measured(named(&four, name)?) / measured(named(&single, name)?))
    };
    let claims = vec![
        claim::holds(
            "M4 best, four streams",
            "HY(8,87) has the best throughput here too",
            "best",
            each(&four, |r| format!("{:.2}/s", measured(r))),
            "at least 97 % of the best",
            hy >= 0.97 * best,
        )
        .ratio(hy / best),
        claim::holds(
            "M4 matched by AO only, four streams",
            "HY's throughput is matched by the two AO algorithms and by no other",
            "AO(1) and AO(8)",
            if matching.is_empty() { "none".to_owned() } else { matching.join(", ") },
            "within 15 % of HY's: AO(1) and AO(8), no other",
            matching == ["AO(1)", "AO(8)"],
        )
        .because(format!(
            "AO falls behind: four times the transactions let AO(8)'s file grow to {:.1} times its \
             size, and {} of its deletions miss the pool, of HY's {}. BF and FF fill holes while \
             their pages are in the pool, and their collisions cost processor time, of which a \
             processor of today has plenty",
            f64::from(ao.last().pages) / f64::from(ao.first().pages),
            percent(misses(ao)),
            percent(misses(named(&four, "HY(8,87)")?)),
        )),
        claim::holds(
            "Speedup of four threads",
            "four threads are faster than one",
            "≈ 4 × at first, 1.25 to 1.5 × at the end",
            format!("HY {:.2} ×", speedup("HY(8,87)")?),
            "none",
            false,
        )
        .remark(
            "Not reproduced and not a claim checked: nothing overlaps in this model \
                          of one disk arm. What the paper gained is waiting for the log's and the \
                          volume's disk at the same time and the processor's work beside both; \
                          counts per transaction do not show it.",
        )
        .as_note(),
    ];
    let panels = vec![
        throughput_panel("measured", &four, Cpu::Measured),
        throughput_panel("paper-cpu", &four, Cpu::Paper),
    ];
    Ok(outcome(panels, &four, claims, settings))
}

/// Figure 15.
pub(super) fn utilization(settings: &Settings<'_>) -> Result<Outcome> {
    let single = runs(Workload::Churn, &PAPER_KINDS, settings)?;
    let four = runs(Workload::Concurrent, &PAPER_KINDS, settings)?;
    let end = |run: &Run| run.last().utilization();
    let mut off = 0.0_f64;
    for run in four.iter().filter(|r| !r.kind.name().starts_with("AO")) {
        off = off.max((end(run) - end(named(&single, &run.kind.name())?)).abs());
    }
    let check = claim::holds(
        "Similar utilization",
        "utilization is similar to that of one thread (AO apart, which never settles)",
        "similar",
        each(&four, |r| percent(end(r))),
        "2 points",
        off <= 0.02,
    )
    .remark("AO's falls on: it has four times the transactions.");
    let claims = vec![check];
    Ok(outcome(vec![utilization_panel(&four), pages_panel(&four)], &four, claims, settings))
}

/// Delete reads per object deleted.
fn misses(run: &Run) -> f64 {
    run.rate(|s| s.reads(Purpose::Delete) as f64, |s| s.counters.deleted as f64)
}

fn collision_rate(run: &Run) -> f64 {
    run.rate(|s| s.counters.collisions as f64, |s| s.counters.created as f64)
}

fn eager_table(eager: &[Arc<Run>], lazy: &[Arc<Run>]) -> Result<Table> {
    let mut rows = Vec::new();
    for run in eager {
        let other = named(lazy, &run.kind.name())?;
        let back = |r: &Run| {
            let reads = |s: &Sample| s.reads(Purpose::Release) as f64;
            r.rate(reads, |s| s.counters.deleted as f64)
        };
        rows.push(vec![
            run.kind.name(),
            format!("{:.4}", collision_rate(other)),
            format!("{:.4}", collision_rate(run)),
            format!("{:.4}", back(run)),
            percent(other.last().utilization()),
            percent(run.last().utilization()),
            format!("{:.2}", rate(other, Cpu::Measured)),
            format!("{:.2}", rate(run, Cpu::Measured)),
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
    let lazy = runs(Workload::Concurrent, &PAPER_KINDS, settings)?;
    let eager = runs(Workload::Eager, &PAPER_KINDS, settings)?;
    let curve = |run: &Run| {
        let created = |s: &Sample| s.counters.created as f64;
        run.rates(transactions, |s| s.counters.collisions as f64, created)
    };
    let y = axis("reserved-space collisions per object created");
    let x = axis("transactions");
    let panels = vec![lines("collisions", "Collisions, lazy release", x, y, series(&lazy, curve))];
    let of = |name: &str| named(&lazy, name).map(collision_rate);
    let (ff, bf, hy) = (of("FF")?, of("BF")?, of("HY(8,87)")?);
    let check = claim::holds(
        "M7",
        "collisions with reserved space are many for FF and BF, near none for HY",
        "high; near none",
        each(&lazy, |r| format!("{:.4}", collision_rate(r))),
        "FF, BF > 0.2; HY < 0.05 and a tenth of both",
        ff > 0.2 && bf > 0.2 && hy < 0.05 && hy < 0.1 * ff.min(bf),
    )
    .remark(
        "HY's few come from its pid cache, into which deleters put pages with \
                      reserved space; most of them while the file is still packed. Under eager \
                      release there are none, and the pages to go back to at commit are still in \
                      the pool, these transactions being short.",
    );
    let claims = vec![check];
    let mut outcome = outcome(panels, &lazy, claims, settings);
    outcome.tables.push(eager_table(&eager, &lazy)?);
    Ok(outcome)
}
