//! Concurrent Create-Delete by real threads, beside streams that share a disk arm (McAuliffe
//! §5.4). Owns no state.

use super::churn::{collision_rate, few_for_hy};
use super::parts::{each, head, named, rate, series, tail, transactions};
use super::runs::{PAPER_KINDS, Workload, churn_params, runs};
use crate::free_space::algorithm::Kind;
use crate::free_space::workload::{Churn, Run, threads};
use crate::kit::notes;
use crate::kit::{
    claims,
    plot::{from_zero, heads},
};
use anyhow::Result;
use holdall_instrument::draw::{axis, table};
use holdall_instrument::experiment::{Outcome, Settings};
use holdall_instrument::picture::Panel;
use std::sync::Arc;

/// Transactions of each thread, and of the one alone.
const EACH: u64 = 60_000;

/// Transactions per second on the wall.
fn rates(run: &Run) -> Vec<(f64, f64)> {
    run.rates(transactions, transactions, |s| s.cpu)
}

/// Of the table.
const COLUMNS: &str = "algorithm | threads, four ÷ one at first | at the end | streams on one \
                       arm, four ÷ one | collisions per object, threads | syncs per transaction";

fn panel(id: &'static str, title: &'static str, runs: &[Arc<Run>]) -> Panel {
    from_zero([id, title], axis("transactions"), "transactions per second", series(runs, rates))
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let quiet = Settings { progress: &|_, _| (), ..*settings };
    let alone = runs(Workload::Churn, &PAPER_KINDS, &quiet)?;
    let streams = runs(Workload::Concurrent, &PAPER_KINDS, &quiet)?;
    let (mut fours, mut ones, mut rows, mut speedups) = (vec![], vec![], vec![], vec![]);
    let mut why = String::new();
    for (n, kind) in PAPER_KINDS.into_iter().enumerate() {
        (settings.progress)(n as u64, PAPER_KINDS.len() as u64);
        let of = |streams: usize| {
            let scratch = settings.scratch()?;
            let transactions = EACH / if settings.quick { 600 } else { 1 } * streams as u64;
            let all = churn_params(Workload::Churn, settings);
            threads(kind, &Churn { streams, transactions, ..all }, scratch.path())
        };
        let ((four, syncs), (one, _)) = (of(4)?, of(1)?);
        let name = kind.name();
        let speedup = [head, tail].map(|part| part(&rates(&four)) / part(&rates(&one)));
        let arm = rate(named(&streams, &name)?) / rate(named(&alone, &name)?);
        let us = syncs.seconds * 1e6 / syncs.count.max(1) as f64;
        let shared = syncs.count as f64 / syncs.records.max(1) as f64;
        rows.push(vec![
            name,
            format!("{:.2}", speedup[0]),
            format!("{:.2}", speedup[1]),
            format!("{arm:.2}"),
            format!("{:.4}", collision_rate(&four)),
            format!("{shared:.3}"),
        ]);
        // HY is the last.
        why = format!(
            "waiting is for the log: a sync takes {us:.0} µs, and four threads of {} share \
             {shared:.2} syncs per transaction. The volume's pages come from the memory of the \
             operating system: no arm makes threads wait for it, as the paper's did",
            kind.name()
        );
        speedups.push(speedup);
        fours.push(Arc::new(four));
        ones.push(Arc::new(one));
    }
    let ends = speedups.iter().zip(PAPER_KINDS).map(|(s, k)| format!("{} {:.2} ×", k.name(), s[1]));
    let ends = ends.collect::<Vec<_>>().join(", ");
    let inside = speedups.iter().filter(|s| (1.25..=1.5).contains(&s[1])).count();
    let hy = PAPER_KINDS.iter().position(|kind| *kind == Kind::Hy(8, 0.875)).unwrap_or(0);
    let many = each(&fours, |r| format!("{:.4}", collision_rate(r)));
    Ok(Outcome {
        panels: vec![panel("four", "Four threads", &fours), panel("one", "One thread", &ones)],
        tables: vec![table("threads", "Real threads and streams", &heads(COLUMNS), rows)],
        claims: vec![
            claims::measures("M9 at first", &[], speedups[hy][0]).because(&why),
            claims::says("M9 at the end", &[], ends, inside >= 4).because(&why),
            claims::says("M9 collisions", &[], many, few_for_hy(&fours)?).because(format!(
                "HY's cache has the pages of others' deletions too; streams that share an arm have \
                 {:.4} over as many transactions",
                collision_rate(&streams[hy])
            )),
        ],
        notes: notes::of("mcauliffe-threads", &[]),
    })
}
