//! I1: accesses of each operation, counted. Owns no state.

use super::columns;
use crate::allocation::block::{Method, Params};
use crate::allocation::workload::{Pareto, Stream};
use crate::kit::{claims, notes};
use anyhow::Result;
use holdall_instrument::draw::number;
use holdall_instrument::experiment::{Outcome, Settings};
use holdall_testkit::{CostModel, CountedDisk, DiskStats, SparseDisk};
use std::sync::Arc;

/// Accesses of operations of one kind.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    operations: u64,
    accesses: u64,
    most: u64,
}

impl Tally {
    fn add(&mut self, stats: DiskStats) {
        let accesses = stats.reads + stats.writes;
        self.operations += 1;
        self.accesses += accesses;
        self.most = self.most.max(accesses);
    }

    fn mean(&self) -> f64 {
        self.accesses as f64 / self.operations as f64
    }

    fn words(&self) -> String {
        format!("{} (at most {})", number(self.mean()), self.most)
    }
}

struct Run {
    method: Method,
    /// Deallocations, without those that lead to a checkpoint.
    free: Tally,
    /// Allocations from free lists without a split, and such from the tail.
    plain: Tally,
    tail: Tally,
    split: Tally,
    all: Tally,
    unlinks: u64,
}

fn run_of(method: Method, n: u64, replacements: u64, seed: u64) -> Result<Run> {
    let disk = Arc::new(SparseDisk::with_granules(512));
    let disk = Arc::new(CountedDisk::new(disk, CostModel::default()));
    let params = Params { method, ..Params::default() };
    let mut stream = Stream::new(disk.clone(), params, Pareto::olympic(), seed)?;
    for _ in 0..n {
        stream.create()?;
    }
    let none = Tally::default();
    let (free, plain, tail) = (none, none, none);
    let mut run = Run { method, free, plain, tail, split: none, all: none, unlinks: 0 };
    let checkpoints = |stream: &Stream| stream.store.counts().checkpoints;
    for _ in 0..replacements {
        let which = stream.victim();
        let (before, kept) = (disk.stats(), checkpoints(&stream));
        stream.remove(which)?;
        let freed = disk.stats() - before;
        if checkpoints(&stream) == kept {
            run.free.add(freed);
        }
        run.all.add(freed);
        let (before, counts) = (disk.stats(), stream.store.counts());
        stream.refill(which)?;
        let (took, now) = (disk.stats() - before, stream.store.counts());
        run.all.add(took);
        if now.checkpoints != counts.checkpoints {
            continue;
        }
        let kind = match (now.splits - counts.splits, now.tail - counts.tail) {
            (0, 0) => &mut run.plain,
            (0, _) => &mut run.tail,
            _ => &mut run.split,
        };
        kind.add(took);
    }
    stream.verify()?;
    run.unlinks = stream.store.counts().unlinks;
    Ok(run)
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let (n, replacements) = if settings.quick { (5000, 10_000) } else { (100_000, 200_000) };
    let mut runs = Vec::new();
    for method in Method::ALL {
        runs.push(run_of(method, n, replacements, settings.seed)?);
    }
    let mut claims = Vec::new();
    for run in &runs {
        let name = run.method.name();
        if run.method == Method::Ts {
            claims.push(claims::measures("I1 allocation", &[], run.plain.mean()));
            claims.push(claims::measures("I1 deallocation", &[], run.free.mean()));
            claims.push(claims::measures("I3 one access", &[], run.tail.mean()));
        }
        let ours = format!("{:.4}", run.all.mean());
        claims.push(claims::says("I1 all operations, {0}", &[&name], ours, true));
    }
    let table = columns(
        "accesses",
        "Accesses of operations, counted",
        &runs,
        &[
            ("method", |r| r.method.name().to_owned()),
            ("deallocations", |r| r.free.operations.to_string()),
            ("accesses each", |r| r.free.words()),
            ("allocations from lists", |r| r.plain.operations.to_string()),
            ("accesses each", |r| r.plain.words()),
            ("from the tail", |r| r.tail.operations.to_string()),
            ("accesses each", |r| r.tail.words()),
            ("with a split", |r| r.split.operations.to_string()),
            ("accesses each", |r| r.split.words()),
            ("all operations", |r| r.all.operations.to_string()),
            ("accesses each", |r| r.all.words()),
            ("links within a list written", |r| r.unlinks.to_string()),
        ],
    );
    let notes =
        [notes::of("iyengar", &[]), notes::of("iyengar-accesses", &[&n, &replacements])].concat();
    Ok(Outcome { tables: vec![table], claims, notes, ..Outcome::default() })
}
