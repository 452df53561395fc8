//! Runs of the paper's workloads, made once per process and shared by the figures.
//!
//! Owns the cache, keyed by workload, algorithm, size and seed, and the mutex that lets one
//! large run be made at a time.

use super::cost::PAPER_DISK;
use crate::free_space::algorithm::Kind;
use crate::free_space::heap_file::Options;
use crate::free_space::workload::{Churn, Fill, Run, Sizes, churn, fill};
use crate::kit::notes;
use anyhow::Result;
use holdall_instrument::cache::{Cache, Results, cached};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::{Panel, Table};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A workload of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Workload {
    /// §5.1.
    Uniform,
    /// §5.2.
    Mixed,
    /// §5.3.
    Churn,
    /// §5.4.
    Concurrent,
}

/// AO(1), AO(8), FF, NF(WH), BF, HY(8,87): the algorithms of the paper's figures.
pub(super) const PAPER_KINDS: [Kind; 6] =
    [Kind::Ao(1), Kind::Ao(8), Kind::Ff, Kind::NfWh, Kind::Bf, Kind::Hy(8, 0.875)];

static RUNS: Cache<Arc<Run>> = Cache::new(Results::default);
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Held while a run is made that may take 2 GB of memory, so that there is one at a time.
pub(super) fn one_at_a_time() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runs of `kinds` under a workload, from the cache or made now.
pub(super) fn runs(
    workload: Workload,
    kinds: &[Kind],
    settings: &Settings<'_>,
) -> Result<Vec<Arc<Run>>> {
    let mut all = Vec::new();
    for (n, &kind) in kinds.iter().enumerate() {
        let key = format!("{workload:?} {} {} {}", kind.name(), settings.quick, settings.seed);
        let run = cached(&RUNS, &key, || {
            let _turn = one_at_a_time();
            let share = Share { done: n as u64, of: kinds.len() as u64, settings };
            Ok(Arc::new(make(workload, kind, settings, &share)?))
        })?;
        all.push(run);
        (settings.progress)((n as u64 + 1) * 1000, kinds.len() as u64 * 1000);
    }
    Ok(all)
}

/// Progress of one run among several.
pub(super) struct Share<'a> {
    pub(super) done: u64,
    pub(super) of: u64,
    pub(super) settings: &'a Settings<'a>,
}

impl Share<'_> {
    pub(super) fn tell(&self, now: u64, goal: u64) {
        let part = (now * 1000 / goal.max(1)).min(1000);
        (self.settings.progress)(self.done * 1000 + part, self.of * 1000);
    }
}

fn make(workload: Workload, kind: Kind, settings: &Settings<'_>, share: &Share<'_>) -> Result<Run> {
    match workload {
        Workload::Uniform | Workload::Mixed => {
            let params = fill_params(workload, kind, settings);
            let goal = u64::from(params.cut.min(params.options.max_pages));
            fill(kind, &params, &|pages| share.tell(pages, goal))
        }
        _ => {
            let params = churn_params(workload, settings);
            churn(kind, &params, &|done| share.tell(done, params.transactions))
        }
    }
}

/// The paper's fill; a volume of 49 MB when quick. Searches from the beginning of the file are
/// cut at 5 % of the volume, if the paper gave FF up.
pub(super) fn fill_params(workload: Workload, kind: Kind, settings: &Settings<'_>) -> Fill {
    let mut options = Options::default();
    if settings.quick {
        options.max_pages = 6000;
    }
    let slow = matches!(kind, Kind::Ff | Kind::FfDb2 | Kind::Nf);
    let cut = if slow && !settings.quick { options.max_pages / 20 } else { options.max_pages };
    let sizes = if workload == Workload::Mixed { Sizes::Mixed } else { Sizes::Uniform };
    let batch = if settings.quick { 1000 } else { 10_000 };
    Fill { sizes, options, cut, batch, disk: PAPER_DISK, seed: settings.seed }
}

/// The paper's Create-Delete; when quick a tenth of objects, transactions and pool.
pub(super) fn churn_params(workload: Workload, settings: &Settings<'_>) -> Churn {
    let scale = if settings.quick { 10 } else { 1 };
    let (streams, transactions) = match workload {
        Workload::Concurrent => (4, 240_000),
        _ => (1, 60_000),
    };
    let pool_pages = 1000 / scale as usize;
    Churn {
        objects: 200_000 / scale,
        sizes: Sizes::Uniform,
        streams,
        transactions: transactions / scale,
        batch: (8, 16),
        random: true,
        filler: Kind::Ao(8),
        options: Options { pool_pages, ..Options::default() },
        disk: PAPER_DISK,
        seed: settings.seed,
    }
}

/// What a figure found, with the notes of its workload.
pub(super) fn outcome(
    panels: Vec<Panel>,
    totals: Table,
    claims: Vec<Claim>,
    workload: Workload,
    settings: &Settings<'_>,
) -> Outcome {
    Outcome { panels, tables: vec![totals], claims, notes: notes(workload, settings) }
}

/// What all figures of a workload say about it.
fn notes(workload: Workload, settings: &Settings<'_>) -> Vec<String> {
    let of_it = match workload {
        Workload::Uniform | Workload::Mixed => "mcauliffe fills",
        Workload::Churn => "mcauliffe one stream",
        Workload::Concurrent => "mcauliffe four streams",
    };
    let quick = if settings.quick { notes::of("mcauliffe quick", &[]) } else { Vec::new() };
    [notes::of("mcauliffe", &[]), notes::of(of_it, &[]), quick].concat()
}
