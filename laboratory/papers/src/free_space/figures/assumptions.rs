//! What the paper leaves open, varied. Owns no state.

use super::cost::{Cpu, PAPER_DISK, time};
use super::parts::{fetches, misses, rate, transactions};
use super::runs::{Share, Workload, churn_params, fill_params, one_at_a_time, runs};
use crate::free_space::algorithm::{CacheOptions, Kind, Pick, WitnessOptions};
use crate::free_space::workload::{self, Run};
use anyhow::Result;
use holdall_instrument::draw::{percent, table};
use holdall_instrument::experiment::{Outcome, Settings};
use holdall_instrument::picture::Table;
use holdall_testkit::CostModel;

const EMPTIEST: WitnessOptions = WitnessOptions { emptiest: true, cursor_of_searches: false };
const AO_EXACT: CacheOptions = CacheOptions { exact: true, ..CacheOptions::AO };
const HY_EXACT: CacheOptions = CacheOptions { exact: true, ..CacheOptions::HY };
const OLDEST_FIRST: CacheOptions = CacheOptions { pick: Pick::Oldest, ..CacheOptions::HY };

/// AO(8) read as HY's cache is: the fullest page leaves.
pub(super) const AO_FULLEST: Kind = Kind::AoWith(8, CacheOptions::HY, "the fullest page leaves");
/// NF(WH) read so that only searches move the cursor.
pub(super) const NF_WH_SEARCHES: Kind = Kind::NfWhWith(
    WitnessOptions { emptiest: false, cursor_of_searches: true },
    "the cursor moves with searches",
);

/// What is varied, for fills and for Create-Delete.
const VARIANTS: [Kind; 11] = [
    Kind::Ao(8),
    AO_FULLEST,
    Kind::AoWith(8, AO_EXACT, "exact free bytes"),
    Kind::NfWh,
    NF_WH_SEARCHES,
    Kind::NfWhWith(EMPTIEST, "emptiest witness first"),
    Kind::NfH,
    Kind::Wf,
    Kind::Hy(8, 0.875),
    Kind::HyWith(8, 0.875, HY_EXACT, "exact free bytes"),
    Kind::HyEngine(8, 87),
];

/// For Create-Delete, the rest of the family.
const FAMILY: [Kind; 6] = [
    Kind::Ao(1),
    Kind::Ff,
    Kind::FfDb2,
    Kind::Nf,
    Kind::Bf,
    Kind::HyWith(8, 0.875, OLDEST_FIRST, "oldest page first"),
];

/// Pairs of name and a value of u that the paper's "u = 87 %" may mean.
pub(super) const TARGETS: [(&str, f64); 3] =
    [("7/8: pages from bucket 5 on", 0.875), ("0.87: from bucket 6 on", 0.87), ("0.90", 0.90)];

/// Fills are run on this part of the paper's volume.
const PART: u32 = 10;

fn fills(workload: Workload, settings: &Settings<'_>, done: u64, of: u64) -> Result<Table> {
    let mut rows = Vec::new();
    for (n, kind) in VARIANTS.into_iter().enumerate() {
        let share = Share { done: done + n as u64, of, settings };
        let mut params = fill_params(workload, kind, settings);
        // NF(WH) over the whole volume: where its searches begin shows with the file's size.
        let whole =
            workload == Workload::Uniform && matches!(kind, Kind::NfWh | Kind::NfWhWith(..));
        params.cut = params.options.max_pages / if whole { 1 } else { PART };
        let goal = u64::from(params.cut);
        let turn = one_at_a_time();
        let run = workload::fill(kind, &params, &|pages| share.tell(pages, goal))?;
        drop(turn);
        let s = run.last();
        let per = |x: u64| format!("{:.2}", x as f64 / s.counters.created.max(1) as f64);
        rows.push(vec![
            kind.name(),
            s.pages.to_string(),
            percent(s.utilization()),
            s.counters.looks.entries.to_string(),
            per(s.counters.looks.entries),
            s.counters.looks.searches.to_string(),
            format!("{:.0}", s.counters.created as f64 / time(&s, &PAPER_DISK, Cpu::Measured)),
            format!("{:.0}", s.counters.created as f64 / time(&s, &PAPER_DISK, Cpu::Paper)),
        ]);
    }
    let (id, title) = match workload {
        Workload::Mixed => ("mixed", "Mixed Create on a tenth of the volume"),
        _ => ("uniform", "Uniform Create: NF(WH) on the whole volume, others on a tenth"),
    };
    let columns = [
        "algorithm",
        "pages",
        "utilization",
        "FSIP entries",
        "per object",
        "searches",
        "objects / s",
        "on the paper's processor",
    ];
    Ok(table(id, title, &columns, rows))
}

/// Time per transaction under other costs: the order of the algorithms is what matters.
fn disks(settings: &Settings<'_>) -> Result<Table> {
    let runs = runs(Workload::Churn, &super::runs::PAPER_KINDS, settings)?;
    let seek = |seek_ms: f64| CostModel { seek_ms, ..PAPER_DISK };
    let every = holdall_testkit::SeekRule::EveryAccess;
    let models = [
        ("8 ms", seek(8.0)),
        ("14.5 ms", PAPER_DISK),
        ("33 ms, 1 KiB/ms", CostModel { seek_ms: 33.0, ms_per_kib: 1.0, ..PAPER_DISK }),
        ("each access a seek", CostModel { seeks: every, ..PAPER_DISK }),
    ];
    let mut rows = Vec::new();
    for run in &runs {
        let mut row = vec![run.kind.name()];
        for (_, model) in &models {
            let spent = |s: &workload::Sample| time(s, model, Cpu::Measured);
            row.push(format!("{:.2}", run.rate(transactions, spent)));
        }
        let (a, z) = (run.first(), run.last());
        let reads = z.counters.pool.all_reads() - a.counters.pool.all_reads();
        let only_reads = reads as f64 * (PAPER_DISK.seek_ms + 8.0 * PAPER_DISK.ms_per_kib) / 1000.0;
        row.push(format!("{:.2}", z.transactions as f64 / (only_reads + z.cpu)));
        rows.push(row);
    }
    let mut columns = vec!["algorithm"];
    columns.extend(models.iter().map(|m| m.0));
    columns.push("writes free (a cleaner in the background)");
    Ok(table("disks", "Create-Delete: transactions per second by cost of the disk", &columns, rows))
}

fn row(name: &str, run: &Run) -> Vec<String> {
    let z = run.last();
    vec![
        name.to_owned(),
        z.pages.to_string(),
        percent(z.utilization()),
        format!("{:.4}", fetches(run)),
        format!("{:.3}", misses(run)),
        (z.counters.looks.entries - run.first().counters.looks.entries).to_string(),
        format!("{:.2}", rate(run)),
        z.memory.to_string(),
    ]
}

const COLUMNS: [&str; 8] = [
    "algorithm",
    "pages",
    "utilization",
    "create reads per object",
    "delete reads per object",
    "FSIP entries",
    "transactions / s",
    "memory bytes",
];

fn targets(settings: &Settings<'_>) -> Result<Table> {
    let mut rows = Vec::new();
    for (name, u) in TARGETS {
        let params = churn_params(Workload::Churn, settings);
        let run = workload::churn(Kind::Hy(8, u), &params, &|_| ())?;
        rows.push(row(name, &run));
    }
    Ok(table("target", "Create-Delete: what u = 87 % means for HY(8,u)", &COLUMNS, rows))
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let of = 2 * VARIANTS.len() as u64 + 1;
    let mixed = fills(Workload::Mixed, settings, 0, of)?;
    let uniform = fills(Workload::Uniform, settings, VARIANTS.len() as u64, of)?;
    let family = runs(Workload::Churn, &[&VARIANTS[..], &FAMILY].concat(), settings)?;
    let rows = family.iter().map(|run| row(&run.kind.name(), run)).collect();
    let churns =
        table("create-delete", "Create-Delete: variants and the whole family", &COLUMNS, rows);
    Ok(Outcome {
        panels: Vec::new(),
        tables: vec![uniform, mixed, churns, targets(settings)?, disks(settings)?],
        claims: Vec::new(),
        notes: NOTES.map(str::to_owned).into(),
    })
}

const NOTES: [&str; 7] = [
    "Pid cache: taken to know buckets. Figure 3 of the paper shows buckets, and its footnote 4 says \
     that no algorithm counts on more than a bucket guarantees. With exact free bytes it packs \
     denser, and HY passes FF and NF(WH) in Mixed Create: the order of claim M3 hangs on this.",
    "Pid cache of AO(n): by the paper's words it has the n most recently added pages, so the \
     oldest leaves; BF is then more than a point above AO(8) in Mixed Create. As HY's, which the \
     fullest leaves, it packs denser, and claim M3 holds.",
    "NF(WH), where a search begins: by the paper's words at the page last used for an allocation. A \
     page wanted just behind it makes the search go round the whole file, and the number of \
     entries of claim M2 is missed by orders of magnitude; if only searches move the cursor, it \
     holds. Of several known witnesses: taken to be the fullest bucket's.",
    "u = 87 %: taken as 7/8, as the paper says approximately, so that pages of bucket 5 (1024 bytes \
     free) count as emptier than u; 0.87 strictly asks for 1054 bytes, and the next bucket begins \
     at 1811.",
    "Utilization of the file as HY sees it: from the histogram, each bucket's middle. BF: exact free \
     bytes, but the inventory's floors for pages it has not met since the file was opened.",
    "Locks: a transaction never meets another's object, as the workload draws only committed ones. \
     Slots of deleted objects stay reserved as their bytes do. A page has room for the reservations \
     of five transactions.",
    "The disk's cost, seeks and writes: the order of the algorithms in Create-Delete is in the last \
     table under five assumptions.",
];
