//! What the paper leaves open, varied. Owns no state.

use super::churn::grown;
use super::cost::{Cpu, PAPER_DISK, time};
use super::parts::{Column, created, fetches, misses, rate, tabled, transactions};
use super::runs::{PAPER_KINDS, Share, Workload, fill_params, one_at_a_time, runs};
use crate::free_space::algorithm::{CacheOptions, Kind};
use crate::free_space::workload::{self, Run};
use crate::kit::notes;
use anyhow::Result;
use holdall_instrument::draw::percent;
use holdall_instrument::experiment::{Outcome, Settings};
use holdall_instrument::picture::Table;
use holdall_testkit::{CostModel, SeekRule};
use std::sync::Arc;

const AO_BUCKETS: CacheOptions = CacheOptions { exact: false, ..CacheOptions::AO };
const HY_EXACT: CacheOptions = CacheOptions { exact: true, ..CacheOptions::HY };

/// What is varied, for fills and for Create-Delete.
const VARIANTS: [Kind; 9] = [
    Kind::Ao(8),
    Kind::AoWith(8, AO_BUCKETS, "buckets"),
    Kind::AoWith(8, CacheOptions::HY, "as HY's: buckets, the fullest page leaves"),
    Kind::NfWh,
    Kind::NfWhSearches,
    Kind::NfH,
    Kind::Hy(8, 0.875),
    Kind::HyWith(8, 0.875, HY_EXACT, "exact free bytes"),
    Kind::HyEngine(8, 87),
];

/// For Create-Delete, the rest of the family, and what "u = 87 %" may mean besides 7/8.
const FAMILY: [Kind; 7] =
    [Kind::Ao(1), Kind::Ff, Kind::FfDb2, Kind::Nf, Kind::Bf, Kind::Hy(8, 0.87), Kind::Hy(8, 0.90)];

/// Fills are run on this part of the paper's volume.
const PART: u32 = 10;

/// Objects per second of a fill.
fn pace(run: &Run, cpu: Cpu) -> String {
    format!("{:.0}", created(&run.last()) / time(&run.last(), &PAPER_DISK, cpu))
}

const FILLS: [Column; 7] = [
    ("pages", |r| r.last().pages.to_string()),
    ("utilization", |r| percent(r.last().utilization())),
    ("FSIP entries", |r| r.last().counters.looks.entries.to_string()),
    ("per object", |r| format!("{:.2}", r.rate(|s| s.counters.looks.entries as f64, created))),
    ("searches", |r| r.last().counters.looks.searches.to_string()),
    ("objects / s", |r| pace(r, Cpu::Measured)),
    ("on the paper's processor", |r| pace(r, Cpu::Paper)),
];

fn fills(workload: Workload, settings: &Settings<'_>, done: u64, of: u64) -> Result<Table> {
    let mut runs = Vec::new();
    for (n, kind) in VARIANTS.into_iter().enumerate() {
        let share = Share { done: done + n as u64, of, settings };
        let mut params = fill_params(workload, kind, settings);
        // NF(WH) over the whole volume: where its searches begin shows with the file's size.
        let whole =
            workload == Workload::Uniform && matches!(kind, Kind::NfWh | Kind::NfWhSearches);
        params.cut = params.options.max_pages / if whole { 1 } else { PART };
        let goal = u64::from(params.cut);
        let _turn = one_at_a_time();
        runs.push(Arc::new(workload::fill(kind, &params, &|pages| share.tell(pages, goal))?));
    }
    let (id, title) = match workload {
        Workload::Mixed => ("mixed", "Mixed Create on a tenth of the volume"),
        _ => ("uniform", "Uniform Create: NF(WH) on the whole volume, others on a tenth"),
    };
    Ok(tabled(id, title, &runs, &FILLS))
}

/// Transactions per second by another disk: the order of the algorithms is what matters.
fn priced(run: &Run, seek_ms: f64, ms_per_kib: f64, seeks: SeekRule) -> String {
    let disk = CostModel { seek_ms, ms_per_kib, seeks, ..PAPER_DISK };
    format!("{:.2}", run.rate(transactions, |s| time(s, &disk, Cpu::Measured)))
}

const DISKS: [Column; 4] = [
    ("8 ms", |r| priced(r, 8.0, PAPER_DISK.ms_per_kib, PAPER_DISK.seeks)),
    ("14.5 ms", |r| format!("{:.2}", rate(r))),
    ("33 ms, 1 KiB/ms", |r| priced(r, 33.0, 1.0, PAPER_DISK.seeks)),
    ("each access a seek", |r| {
        priced(r, PAPER_DISK.seek_ms, PAPER_DISK.ms_per_kib, SeekRule::EveryAccess)
    }),
];

const CHURNS: [Column; 7] = [
    ("pages", |r| r.last().pages.to_string()),
    ("utilization", |r| percent(r.last().utilization())),
    ("create reads per object", |r| format!("{:.4}", fetches(r))),
    ("delete reads per object", |r| format!("{:.3}", misses(r))),
    ("FSIP entries", |r| grown(r, |s| s.counters.looks.entries)),
    ("transactions / s", |r| format!("{:.2}", rate(r))),
    ("memory bytes", |r| r.last().memory.to_string()),
];

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let of = 2 * VARIANTS.len() as u64 + 1;
    let mixed = fills(Workload::Mixed, settings, 0, of)?;
    let uniform = fills(Workload::Uniform, settings, VARIANTS.len() as u64, of)?;
    let family = runs(Workload::Churn, &[&VARIANTS[..], &FAMILY].concat(), settings)?;
    let title = "Create-Delete: variants and the whole family";
    let churns = tabled("create-delete", title, &family, &CHURNS);
    let title = "Create-Delete: transactions per second by cost of the disk";
    let paper = runs(Workload::Churn, &PAPER_KINDS, settings)?;
    let disks = tabled("disks", title, &paper, &DISKS);
    Ok(Outcome {
        panels: Vec::new(),
        tables: vec![uniform, mixed, churns, disks],
        claims: Vec::new(),
        notes: notes::of("mcauliffe-assumptions", &[]),
    })
}
