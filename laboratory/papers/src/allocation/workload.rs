//! Sizes and request streams (Iyengar §3.2 to §3.4). Owns the truncated Pareto distribution and
//! the stream of creations and replacements; every draw comes from its seed.

use super::block::{Block, Params};
use super::pmflf::{Pmflf, Usage};
use crate::kit::error::{Error, Result};
use holdall_io::Disk;
use holdall_testkit::SparseDisk;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// A Pareto distribution cut off at C (§3.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pareto {
    /// How heavy its tail is: the less, the heavier.
    pub alpha: f64,
    /// Smallest size k, in bytes.
    pub scale: f64,
    /// Largest size C, in bytes.
    pub cutoff: f64,
}

impl Pareto {
    /// With k = 512 bytes and C in grains of 512 bytes, as the paper has it.
    pub fn new(alpha: f64, grains: u64) -> Self {
        Self { alpha, scale: 512.0, cutoff: 512.0 * grains as f64 }
    }

    /// Sizes as of the Olympic Games' objects: α = 1, C = 2^10 grains, for which §3.4 names a
    /// mean close to theirs, 3.7 KB.
    pub fn olympic() -> Self {
        Self::new(1.0, 1 << 10)
    }

    /// Sizes as of the DEC proxy log: α = 0.91, and a mean of 15.2 KB. The paper names neither
    /// k nor C; with C = 32 MB the mean asks for k = 891 bytes.
    pub fn dec_proxy() -> Self {
        let (alpha, cutoff, mean) = (0.91, f64::from(32 << 20), 15_200.0);
        // The mean rises with the scale: halving finds it.
        let (mut low, mut high) = (1.0, mean);
        for _ in 0..60 {
            let scale = (low + high) / 2.0;
            if (Self { alpha, scale, cutoff }).mean() < mean { low = scale } else { high = scale }
        }
        Self { alpha, scale: low, cutoff }
    }

    /// The mean, in bytes.
    pub fn mean(&self) -> f64 {
        let Self { alpha, scale, cutoff } = *self;
        let share = 1.0 - (cutoff / scale).powf(-alpha);
        if (alpha - 1.0).abs() < 1e-9 {
            return scale * (cutoff / scale).ln() / share;
        }
        let grown = (cutoff / scale).powf(1.0 - alpha) - 1.0;
        alpha * scale * grown / (1.0 - alpha) / share
    }

    /// The size at `r` in 0..1: the integer nearest to F⁻¹(r).
    pub fn size(&self, r: f64) -> usize {
        let share = 1.0 - (self.cutoff / self.scale).powf(-self.alpha);
        (self.scale * (1.0 - r * share).powf(-1.0 / self.alpha)).round() as usize
    }

    /// A size drawn.
    pub fn draw(&self, rng: &mut SmallRng) -> usize {
        self.size(rng.random())
    }
}

/// Objects in a file, some of which are replaced.
#[derive(Debug)]
pub struct Stream {
    /// The file.
    pub store: Pmflf,
    sizes: Pareto,
    rng: SmallRng,
    /// Block, length and number of each object.
    objects: Vec<(Block, usize, u64)>,
    number: u64,
}

impl Stream {
    /// A stream over a new file.
    pub fn new(disk: Arc<dyn Disk>, params: Params, sizes: Pareto, seed: u64) -> Result<Self> {
        let store = Pmflf::create(disk, params, seed)?;
        let rng = SmallRng::seed_from_u64(seed);
        Ok(Self { store, sizes, rng, objects: Vec::new(), number: 0 })
    }

    /// A stream over a new file in memory, `objects` of them created.
    pub fn filled(params: Params, sizes: Pareto, seed: u64, objects: u64) -> Result<Self> {
        let disk = Arc::new(SparseDisk::with_granules(params.grain as usize));
        let mut stream = Self::new(disk, params, sizes, seed)?;
        for _ in 0..objects {
            stream.create()?;
        }
        Ok(stream)
    }

    /// Creates an object: its block, and its number in it.
    pub fn create(&mut self) -> Result<()> {
        let object = self.make()?;
        self.objects.push(object);
        Ok(())
    }

    fn make(&mut self) -> Result<(Block, usize, u64)> {
        let len = self.sizes.draw(&mut self.rng);
        self.number += 1;
        let block = self.store.allocate_with(len, &self.number.to_le_bytes())?;
        Ok((block, len, self.number))
    }

    /// Gives an object drawn evenly back and creates another.
    pub fn replace(&mut self) -> Result<()> {
        let which = self.victim();
        self.remove(which)?;
        self.objects[which] = self.make()?;
        Ok(())
    }

    /// An object drawn evenly.
    pub fn victim(&mut self) -> usize {
        self.rng.random_range(0..self.objects.len())
    }

    /// Gives an object back.
    pub fn remove(&mut self, which: usize) -> Result<()> {
        let (block, len, _) = self.objects[which];
        self.store.free(block, len)
    }

    /// Creates an object in the place of one that was removed.
    pub fn refill(&mut self, which: usize) -> Result<()> {
        self.objects[which] = self.make()?;
        Ok(())
    }

    /// Compares every object with what was stored.
    pub fn verify(&self) -> Result<()> {
        for &(block, len, number) in &self.objects {
            let mut found = [0; 8];
            let kept = len.min(8);
            self.store.read(block.at, 0, &mut found[..kept])?;
            if found[..kept] != number.to_le_bytes()[..kept] {
                return Err(Error::Corrupt(format!("object {number} is not what was stored")));
            }
        }
        Ok(())
    }

    /// Bytes of the largest object.
    pub fn largest(&self) -> usize {
        self.objects.iter().map(|(_, len, _)| *len).max().unwrap_or_default()
    }

    /// What the file holds.
    pub fn usage(&self) -> Usage {
        self.store.usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_io::MemoryDisk;

    #[test]
    fn sizes_follow_the_distribution() {
        for pareto in [Pareto::olympic(), Pareto::new(0.8, 16), Pareto::new(1.6, 1 << 12)] {
            assert_eq!(pareto.size(0.0), 512);
            assert_eq!(pareto.size(1.0), pareto.cutoff as usize);
            let n = 200_000;
            let sum: usize = (0..n).map(|i| pareto.size((f64::from(i) + 0.5) / f64::from(n))).sum();
            let mean = sum as f64 / f64::from(n);
            assert!((mean / pareto.mean() - 1.0).abs() < 0.01, "{mean} {}", pareto.mean());
        }
        // Half the objects of α = 1 are below twice the smallest.
        assert_eq!(Pareto::new(1.0, 1 << 20).size(0.5), 1024);
        let dec = Pareto::dec_proxy();
        assert!((dec.mean() - 15_200.0).abs() < 1.0 && (800.0..1000.0).contains(&dec.scale));
    }

    #[test]
    fn a_stream_keeps_its_objects_and_notices_damage() {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let sizes = Pareto::olympic();
        let mut stream = Stream::new(disk.clone(), Params::default(), sizes, 5).unwrap();
        for _ in 0..200 {
            stream.create().unwrap();
        }
        for _ in 0..500 {
            stream.replace().unwrap();
        }
        stream.verify().unwrap();
        let usage = stream.usage();
        assert_eq!(usage.blocks, 200);
        assert!(usage.internal() > 1.0 && usage.external() > 1.0);
        assert_eq!(usage.allocated + usage.free, usage.tail);
        let (block, _, _) = stream.objects[7];
        disk.write_at(block.at + 8, &[255]).unwrap();
        assert!(stream.verify().is_err());
    }
}
