//! The mix of Biliris §4.4: reads, inserts and deletes at random places.
//!
//! Owns: [`Mix`], what is drawn, and [`run`], which applies it and sums up costs between
//! marks. A delete takes the size of the insert before it; sizes vary by half about the mean.
//! All draws come from one seeded generator.

use anyhow::Result;
use holdall_instrument::draw::number;
use holdall_testkit::{CostModel, DiskStats};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rand_distr::{Distribution, Zipf};

use super::technique::LargeObject;

/// Where operations go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Places {
    /// Uniform over all bytes (the paper).
    Uniform,
    /// Zipf with this exponent over stretches of 4 KiB, ranks scattered over the object.
    Zipf(f64),
}

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Mean size of an operation in bytes.
    pub mean: u64,
    /// Where they go.
    pub places: Places,
    /// Share of reads; the rest is half inserts and half deletes.
    pub reads: f64,
    /// Whether inserted bytes are zeros: for the sparse disk.
    pub zeros: bool,
    /// Whether inserts and deletes take turns, so that the object keeps its size, as the paper
    /// says it does; else each is drawn, and the size walks.
    pub turns: bool,
}

impl Mix {
    /// The paper's: 40 % reads, 30 % inserts, 30 % deletes, uniform.
    pub fn paper(mean: u64) -> Self {
        Self { mean, places: Places::Uniform, reads: 0.4, zeros: false, turns: true }
    }
}

/// Operations of one kind and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cost {
    /// Operations.
    pub count: u64,
    /// Their accesses.
    pub stats: DiskStats,
    /// Of these the ones to index pages.
    pub index: DiskStats,
}

impl Cost {
    fn add(&mut self, stats: DiskStats, index: DiskStats) {
        self.count += 1;
        self.stats = self.stats + stats;
        self.index = self.index + index;
    }

    /// The two together.
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            stats: self.stats + other.stats,
            index: self.index + other.index,
        }
    }

    /// What one operation does, in words.
    pub fn counted(&self) -> String {
        let per = |n: u64| number(n as f64 / self.count.max(1) as f64);
        let (all, index) = (self.stats, self.index);
        format!(
            "{} reads of {} pages and {} writes of {}, of these {} and {} of index pages",
            per(all.reads),
            per(all.pages_read),
            per(all.writes),
            per(all.pages_written),
            per(index.reads),
            per(index.writes)
        )
    }

    /// Mean milliseconds of an operation by a model; 0 without one.
    pub fn mean_ms(&self, model: &CostModel) -> f64 {
        model.time_ms(&self.stats) / self.count.max(1) as f64
    }
}

/// What happened since the mark before.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Mark {
    /// Operations since the start.
    pub ops: u64,
    /// Storage utilization now.
    pub utilization: f64,
    /// Leaf segments now.
    pub segments: u64,
    /// Reads since the mark before.
    pub read: Cost,
    /// Inserts since then.
    pub insert: Cost,
    /// Deletes since then.
    pub delete: Cost,
}

impl Mark {
    /// With the operations of another.
    pub fn and(self, other: &Self) -> Self {
        Self {
            read: self.read.and(other.read),
            insert: self.insert.and(other.insert),
            delete: self.delete.and(other.delete),
            ..self
        }
    }

    /// Inserts and deletes.
    pub fn updates(&self) -> Cost {
        self.insert.and(self.delete)
    }
}

/// Draws places.
struct Placer {
    stretches: u64,
    /// Ranks of stretches from one on.
    zipf: Option<Zipf<f64>>,
}

impl Placer {
    fn new(places: Places, size: u64) -> Self {
        let stretches = (size / 4096).max(1);
        let zipf = match places {
            Places::Zipf(exponent) => Zipf::new(stretches as f64, exponent).ok(),
            Places::Uniform => None,
        };
        Self { stretches, zipf }
    }

    /// A place in `0..=most`.
    fn draw(&self, rng: &mut SmallRng, most: u64) -> u64 {
        let Some(zipf) = &self.zipf else { return rng.random_range(0..=most) };
        let rank = zipf.sample(rng) as u64 - 1;
        // An odd multiplier scatters ranks; the remainder keeps them in the object.
        let stretch = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.stretches;
        (stretch * 4096 + rng.random_range(0..4096)).min(most)
    }
}

/// Bytes to insert: drawn once, taken from anywhere.
pub fn source(len: usize, zeros: bool, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    if !zeros {
        SmallRng::seed_from_u64(seed ^ 0x5eed).fill(bytes.as_mut_slice());
    }
    bytes
}

/// Applies `ops` operations of `mix`, with a mark every `every`; `step` is called at each.
pub fn run(
    object: &mut dyn LargeObject,
    mix: &Mix,
    ops: u64,
    every: u64,
    seed: u64,
    step: &mut dyn FnMut(u64),
) -> Result<Vec<Mark>> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let placer = Placer::new(mix.places, object.size());
    let largest = (mix.mean + mix.mean / 2).max(1);
    let bytes = source(2 * largest as usize, mix.zeros, seed);
    let mut buf = vec![0; largest as usize];
    let (mut marks, mut mark, mut last_insert) = (Vec::new(), Mark::default(), None);
    let page = object.volume().page();
    let mut last_was_insert = false;
    let mut before = (object.stats(), object.volume().index_stats());
    for op in 1..=ops {
        let size = rng.random_range(mix.mean - mix.mean / 2..=largest).max(1);
        let draw: f64 = rng.random();
        let kind = if draw < mix.reads {
            let n = size.min(object.size());
            let at = placer.draw(&mut rng, object.size() - n);
            object.read(at, &mut buf[..n as usize])?;
            &mut mark.read
        } else if insert_next(mix, draw, last_was_insert) {
            last_was_insert = true;
            let at = placer.draw(&mut rng, object.size());
            let from = rng.random_range(0..=bytes.len() - size as usize);
            object.insert(at, &bytes[from..from + size as usize])?;
            last_insert = Some(size);
            &mut mark.insert
        } else {
            last_was_insert = false;
            let n = last_insert.unwrap_or(size).min(object.size());
            let at = placer.draw(&mut rng, object.size() - n);
            object.delete(at, n)?;
            &mut mark.delete
        };
        let now = (object.stats(), object.volume().index_stats());
        kind.add(now.0 - before.0, now.1 - before.1);
        before = now;
        if op % every == 0 {
            mark.ops = op;
            let shape = object.shape()?;
            (mark.utilization, mark.segments) = (shape.utilization(page), shape.segments);
            marks.push(std::mem::take(&mut mark));
            step(op);
        }
    }
    Ok(marks)
}

/// Whether an update is an insert.
fn insert_next(mix: &Mix, draw: f64, last_was_insert: bool) -> bool {
    if mix.turns { !last_was_insert } else { draw < mix.reads + (1.0 - mix.reads) / 2.0 }
}
