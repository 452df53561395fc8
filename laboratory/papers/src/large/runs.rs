//! Runs that several figures share: building, scanning, the mix; each done once per process.
//!
//! Owns: the objects' making. Threads: the caches of results let one run be made at a time.

use std::sync::{Arc, LazyLock};

use anyhow::Result;
use holdall_io::{Disk, MemoryDisk};
use holdall_testkit::{DiskStats, SparseDisk};

use holdall_instrument::cache::{Cache, Results, cached};
use holdall_instrument::experiment::Settings;

use super::store::Config;
use super::technique::{LargeObject, Technique};
use super::workload::{Mark, Mix, run, source};

/// Bytes of 1 MiB.
pub const MIB: u64 = 1 << 20;
/// The paper's object (§4.1).
pub const OBJECT: u64 = 10 * MIB;
/// Mean sizes of operations (§4.4), with the panels' letters.
pub const MEANS: [(u64, &str); 3] = [(100, "a"), (10 * 1024, "b"), (100 * 1024, "c")];
/// Leaf sizes of ESM and thresholds of EOS (§4.1).
pub const SIZES: [u16; 4] = [1, 4, 16, 64];
/// A mark at intervals of this many operations (§4.4).
pub const EVERY: u64 = 2000;
/// Append size the objects of the mix are built with (open in the paper).
pub const BUILD_APPEND: u64 = 512 * 1024;

/// The four of ESM.
pub fn esm() -> [Technique; 4] {
    SIZES.map(Technique::Esm)
}

/// The four of EOS.
pub fn eos() -> [Technique; 4] {
    SIZES.map(Technique::Eos)
}

/// An empty object in memory.
pub fn in_memory(technique: Technique, config: Config) -> Result<Box<dyn LargeObject>> {
    let disk = || -> Arc<dyn Disk> { Arc::new(MemoryDisk::new()) };
    technique.create(config, disk(), disk())
}

/// An object of `size` zeros over a disk that does not store them.
pub fn sparse(technique: Technique, config: Config, size: u64) -> Result<Box<dyn LargeObject>> {
    let disk = || -> Arc<dyn Disk> { Arc::new(SparseDisk::new()) };
    let mut object = technique.create(config, disk(), disk())?;
    object.create_zeros(size)?;
    Ok(object)
}

/// Builds an object by appends of `append` bytes, the last one shorter, and trims it.
pub fn build(object: &mut dyn LargeObject, size: u64, append: u64) -> Result<()> {
    let bytes = source(append as usize, false, append);
    let mut left = size;
    while left > 0 {
        let now = left.min(append);
        object.append(&bytes[..now as usize])?;
        left -= now;
    }
    object.finish()
}

/// Reads the object from end to end in pieces of `chunk` bytes.
pub fn scan(object: &mut dyn LargeObject, chunk: u64) -> Result<()> {
    let mut buf = vec![0; chunk as usize];
    let mut at = 0;
    while at < object.size() {
        let n = chunk.min(object.size() - at);
        object.read(at, &mut buf[..n as usize])?;
        at += n;
    }
    Ok(())
}

/// Accesses of building an object by appends of one size, and of scanning it in pieces of the
/// same size.
#[derive(Debug, Clone, Copy)]
pub struct BuildAndScan {
    /// The appends.
    pub build: DiskStats,
    /// Of these the ones to index pages.
    pub index: DiskStats,
    /// The scan.
    pub scan: DiskStats,
}

/// Builds and scans.
pub fn build_and_scan(
    technique: Technique,
    config: Config,
    size: u64,
    append: u64,
) -> Result<BuildAndScan> {
    static DONE: Cache<BuildAndScan> = LazyLock::new(Results::default);
    cached(&DONE, &format!("{technique:?} {config:?} {size} {append}"), || {
        let mut object = in_memory(technique, config)?;
        build(object.as_mut(), size, append)?;
        let (build, index) = (object.stats(), object.volume().index_stats());
        scan(object.as_mut(), append)?;
        Ok(BuildAndScan { build, index, scan: object.stats() - build })
    })
}

/// A run of the mix on an object built by appends.
#[derive(Debug, Clone, Copy)]
pub struct MixRun {
    /// What is run.
    pub technique: Technique,
    /// On what.
    pub config: Config,
    /// Append size the object of 10 MiB is built with.
    pub append: u64,
    /// The operations.
    pub mix: Mix,
    /// How many.
    pub ops: u64,
    /// A mark at intervals of this many operations.
    pub every: u64,
    /// Of all draws.
    pub seed: u64,
}

impl MixRun {
    /// The paper's parameters, and our assumptions if it has none.
    pub fn paper(technique: Technique, mean: u64, settings: &Settings<'_>) -> Self {
        // A Starburst update copies the whole object at one and the same cost.
        let ops = match (technique, settings.quick) {
            (Technique::Starburst, true) => 40,
            (Technique::Starburst, false) => 2000,
            (_, true) => 2000,
            (_, false) => 20_000,
        };
        let every = if settings.quick { ops / 4 } else { EVERY };
        let (config, mix) = (Config::default(), Mix::paper(mean));
        let (append, seed) = (BUILD_APPEND, settings.seed);
        Self { technique, config, append, mix, ops, every, seed }
    }

    /// The marks.
    pub fn marks(&self) -> Result<Arc<Vec<Mark>>> {
        static DONE: Cache<Arc<Vec<Mark>>> = LazyLock::new(Results::default);
        cached(&DONE, &format!("{self:?}"), || {
            let mut object = in_memory(self.technique, self.config)?;
            build(object.as_mut(), OBJECT, self.append)?;
            let marks =
                run(object.as_mut(), &self.mix, self.ops, self.every, self.seed, &mut |_| ())?;
            object.check()?;
            Ok(Arc::new(marks))
        })
    }

    /// The steady state: the marks of the second half, all as one, utilization averaged.
    pub fn steady(&self) -> Result<Mark> {
        Ok(steady(&self.marks()?))
    }
}

/// The marks from half of all operations on, as one; utilization averaged (the paper's steady
/// state is from 10,000 of our 20,000 on).
pub fn steady(marks: &[Mark]) -> Mark {
    let last = marks.last().map_or(0, |m| m.ops);
    let late: Vec<&Mark> = marks.iter().filter(|m| 2 * m.ops >= last).collect();
    let mut all = Mark { ops: last, ..Mark::default() };
    for mark in &late {
        all = all.and(mark);
        all.utilization += mark.utilization / late.len() as f64;
        all.segments = mark.segments;
    }
    all
}
