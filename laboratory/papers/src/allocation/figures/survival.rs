//! I2, I3, I12: what a crash leaves, shown once; the tests crash at every write of more work.
//! Owns no state.

use super::columns;
use crate::allocation::block::{Method, Params};
use crate::allocation::htod::{Htod, Shape};
use crate::allocation::pmflf::Pmflf;
use crate::allocation::recovery::Recovery;
use crate::allocation::workload::{Pareto, Stream};
use crate::kit::{claims, notes};
use anyhow::{Result, ensure};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_io::Storage;
use holdall_testkit::{CostModel, CountedDisk, CrashKind, FaultPlan, FaultyStorage, SparseDisk};
use std::sync::Arc;

/// A file whose process ended between two checkpoints, opened again.
struct Crash {
    method: Method,
    found: Recovery,
    /// Accesses that read, of opening.
    reads: u64,
    /// Checkpoints in between: creation's, and those that were due.
    checkpoints: u64,
    changes: u64,
    /// Free blocks before the crash and found after it, then after the scan.
    free: [u64; 3],
    tails: [u64; 2],
}

fn crash(method: Method, n: u64, seed: u64) -> Result<Crash> {
    let disk = Arc::new(SparseDisk::with_granules(512));
    let disk = Arc::new(CountedDisk::new(disk, CostModel::default()));
    let params = Params { method, ..Params::default() };
    let mut stream = Stream::new(disk.clone(), params, Pareto::olympic(), seed)?;
    for _ in 0..n {
        stream.create()?;
    }
    stream.store.checkpoint()?;
    let before = stream.store.counts();
    // An odd stretch more, so that the crash comes between two checkpoints.
    for _ in 0..10 * n + 37 {
        stream.replace()?;
    }
    let counts = stream.store.counts();
    let usage = stream.usage();
    let before_opening = disk.stats();
    let (mut store, found) = Pmflf::open(disk.clone(), params)?;
    let reads = (disk.stats() - before_opening).reads;
    let after = store.usage();
    store.reclaim()?;
    stream.verify()?;
    Ok(Crash {
        method,
        found,
        reads,
        checkpoints: counts.checkpoints - before.checkpoints,
        changes: counts.tail - before.tail + counts.freed - before.freed,
        free: [usage.free_blocks, after.free_blocks, store.usage().free_blocks],
        tails: [usage.tail, after.tail],
    })
}

/// Doublings broken off at each of their writes: how many there were, how many of them were
/// finished with every key in place, and the most blocks that one left without use.
fn doublings(buckets: u64) -> Result<[u64; 3]> {
    let params = Params { growth: 4096, ..Params::default() };
    let before = FaultyStorage::new(1);
    let shape = Shape { buckets, ratio: 1.5 };
    let mut table = Htod::create(before.volume(), params, shape, 1)?;
    let keys = buckets * 3 / 2;
    for i in 0..keys {
        table.put(&i.to_le_bytes(), &(i * i).to_le_bytes())?;
    }
    drop(table);
    let [mut tried, mut whole, mut left] = [0; 3];
    for change in 1.. {
        let storage = before.fork();
        let (mut table, _) = Htod::open(storage.volume(), params, 1.5)?;
        storage.set_plan(FaultPlan { crash_at_change: Some(change), ..FaultPlan::default() });
        let done = table.put(b"one more", b"").is_ok();
        let after = storage.crash(CrashKind::ProcessKilled, change)?;
        let (mut table, _) = Htod::open(after.volume(), params, 1.5)?;
        let mut all = true;
        for i in 0..keys {
            all &= table.get(&i.to_le_bytes())?.as_deref() == Some(&(i * i).to_le_bytes());
        }
        left = left.max(table.sweep()?);
        tried += 1;
        ensure!(table.len() <= keys + 1, "more keys than were stored");
        whole += u64::from(all);
        if done {
            break;
        }
    }
    ensure!(tried > 1, "the doubling has no writes to break it off at");
    Ok([tried, whole, left])
}

/// The rows of I2 and I3 for one method.
fn judged(crash: &Crash) -> Vec<Claim> {
    let Crash { method, found, free, tails, .. } = crash;
    let name = method.name();
    let row = |id: &str, ours: String, so: bool| claims::says(id, &[&name], ours, so);
    let first = if !method.has_lists() {
        row("I2 {0}", format!("{} of {}", free[1], free[0]), free[1] == free[0])
    } else {
        let ours = format!("{} checkpoints for {} changes", crash.checkpoints, crash.changes);
        let few = crash.checkpoints * 20 < crash.changes;
        row("I2 {0} heads", ours, few)
    };
    let repair = *method == Method::Pfl;
    let dropped = found.dropped.to_string();
    let scan = format!("{} of {}", free[2], free[0]);
    let tail = format!("{} blocks behind the tail on disk", found.behind_tail);
    let repaired = if repair { "I2 {0} repair" } else { "I2 {0} no repair" };
    let mut rows = vec![
        first,
        row(repaired, dropped, (found.dropped > 0) == repair),
        row("I2 {0} scan", scan, free[2] == free[0]),
        row("I3 {0} tail", tail, tails[0] == tails[1]),
    ];
    if *method == Method::Area {
        let ours = format!("{} reads for {} headers", crash.reads, found.headers);
        rows.push(row("I2 {0} reads", ours, crash.reads * 100 < found.headers));
    }
    rows
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let n = if settings.quick { 1000 } else { 20_000 };
    let mut crashes = Vec::new();
    for method in Method::ALL {
        crashes.push(crash(method, n, settings.seed)?);
    }
    let [tried, whole, left] = doublings(if settings.quick { 64 } else { 512 })?;
    let mut claims: Vec<Claim> = crashes.iter().flat_map(judged).collect();
    let ours = format!("{whole} of {tried}");
    claims.push(claims::says("I12", &[], ours, whole == tried));
    let claims = claims.into_iter().map(|c| c.judged_when_quick()).collect();
    let table = columns(
        "crashes",
        "A file opened after a crash",
        &crashes,
        &[
            ("method", |c| c.method.name().to_owned()),
            ("headers read", |c| c.found.headers.to_string()),
            ("reads of opening", |c| c.reads.to_string()),
            ("dropped from heads", |c| c.found.dropped.to_string()),
            ("behind the tail", |c| c.found.behind_tail.to_string()),
            ("free blocks before", |c| c.free[0].to_string()),
            ("found", |c| c.free[1].to_string()),
            ("after the scan", |c| c.free[2].to_string()),
            ("checkpoints", |c| c.checkpoints.to_string()),
        ],
    );
    let notes = [notes::of("iyengar", &[]), notes::of("iyengar-crashes", &[&n, &left])].concat();
    Ok(Outcome { tables: vec![table], claims, notes, ..Outcome::default() })
}
