//! What the figures share: each base is built once per technique and asked everything. Owns the
//! results kept.

use std::sync::Arc;

use anyhow::Result;
use holdall_io::MemoryDisk;

use super::super::pages::Faults;
use super::super::workload::{Base, TABLE_2, Technique, WARM, Workload};
use holdall_instrument::cache::{Cache, cached};
use holdall_instrument::experiment::Settings;

/// Module sizes of figure 10, in pages.
pub const MODULES: [usize; 10] = [5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];
/// Buffers of the large base, in pages.
const BUFFERS: [usize; 6] = [500, 1000, 1500, 2000, 2500, 3000];
/// New objects of table 3: 20 handle pages of them.
pub const NEW: usize = 3400;

/// What is measured for each module size, in faults per request.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// Scan, in steady use.
    Scan,
    /// Scan with an empty buffer before each module.
    Cold,
    /// Select of every page of the module.
    Select,
    /// Select of five pages.
    Five,
    /// Scan, ten times as many requests.
    Long,
}

/// What a technique did.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Which.
    pub technique: Technique,
    /// Pages of its file.
    pub used: u64,
    /// Of Sequential, Random and Hot: buffer in pages, faults per request.
    pub curves: Vec<Vec<(f64, f64)>>,
    /// Of Sequential with an empty buffer before each module: faults per request.
    pub cold: f64,
    /// By module size, each [`What`].
    pub modules: Vec<[f64; 5]>,
    /// Faults of [`NEW`] objects; of a hash table before and after the first split, and after it
    /// with new OIDs in no order.
    pub created: Vec<Faults>,
    /// The most faults of one request.
    pub worst: u64,
}

type All = Arc<Vec<Measured>>;
static RUNS: Cache<All> = Cache::new(Default::default);

/// Objects of the small and the large base; quick runs have a tenth of the large one.
pub fn objects(large: bool, quick: bool) -> usize {
    match (large, quick) {
        (false, _) => 200_000,
        (true, true) => 500_000,
        (true, false) => 5_000_000,
    }
}

/// A buffer of the large base in proportion to the base that is there.
pub fn scaled(frames: usize, objects: usize) -> usize {
    frames * objects / 5_000_000
}

/// Every technique on one of the bases.
pub fn all(settings: &Settings<'_>, large: bool) -> Result<All> {
    let key = format!("{} {} {large}", settings.seed, settings.quick);
    cached(&RUNS, &key, || {
        let mut done = Vec::new();
        for (n, technique) in Technique::ALL.into_iter().enumerate() {
            (settings.progress)(n as u64, Technique::ALL.len() as u64);
            done.push(measure(settings, technique, large)?);
        }
        Ok(Arc::new(done))
    })
}

fn measure(settings: &Settings<'_>, technique: Technique, large: bool) -> Result<Measured> {
    let objects = objects(large, settings.quick);
    let requests = if settings.quick { 10_000 } else { 100_000 };
    let build = |technique, extra| {
        Base::build(Arc::new(MemoryDisk::new()), technique, objects, extra, settings.seed)
    };
    let mut base = build(technique, 0)?;
    base.mapping.flush()?;
    let used = base.mapping.used();
    let mut curves = Vec::new();
    for work in TABLE_2 {
        let mut points = Vec::new();
        for frames in BUFFERS.map(|frames| scaled(frames, objects)) {
            points.push((frames as f64, base.rate(work, frames, requests)?));
        }
        curves.push(points);
    }
    let frames = scaled(1000, objects);
    let cold = base.cold(TABLE_2[0], frames)?;
    let direct = matches!(
        technique,
        Technique::RandomDirect | Technique::LinearDirect | Technique::MatrixDirect
    );
    let mut modules = Vec::new();
    for module in MODULES.into_iter().filter(|_| direct && large) {
        let scan = Workload { module, select: None, hot: false };
        let select = |r| Workload { select: Some(r), ..scan };
        modules.push([
            base.rate(scan, frames, requests)?,
            base.cold(scan, frames)?,
            base.rate(select(module), frames, requests)?,
            base.rate(select(5), frames, requests)?,
            base.rate(scan, frames, requests * 10)?,
        ]);
    }
    let mut worst = 0;
    base.mapping.pages().set_buffer(2)?;
    for _ in 0..requests {
        worst = worst.max(base.any()?);
    }
    let mut created = Vec::new();
    let kept = match technique {
        // The last leaf and the nodes above it.
        Technique::ClusteredTree => 4,
        Technique::MatrixDirect => 20,
        _ => 0,
    };
    let hash = technique == Technique::Hash;
    if large && hash {
        created.push(build(technique, NEW + WARM)?.creation(NEW, frames, kept, false)?);
    }
    if large && (hash || kept > 0) {
        created.push(base.creation(NEW, frames, kept, hash)?);
    }
    if large && hash {
        created.push(build(Technique::ScatteredHash, 0)?.creation(NEW, frames, kept, true)?);
    }
    Ok(Measured { technique, used, curves, cold, modules, created, worst })
}
