//! Keys and bytes of objects, from a seed.
//!
//! Invariant: an object's length and bytes follow from seed, ordinal and version alone, so
//! that any answer of a store can be checked without keeping what was put.

use crate::data;
use crate::peer::Peer;
use anyhow::{Result, ensure};

/// Random bytes that objects are cut from, beyond their own length.
const POOL: usize = 16 << 20;
/// Objects of a commit before a measurement.
const PRELOAD: u64 = 10_000;
/// Lower end, exponent and upper end of lengths of web objects: a Pareto distribution, cut
/// off; the mean is near 3.8 KB.
const WEB: (f64, f64, usize) = (860.0, 1.2, 256 << 10);

/// How long objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// All so long.
    Exactly(usize),
    /// Evenly from the first to the last.
    Uniform(usize, usize),
    /// As objects of the web.
    Web,
}

impl Sizes {
    /// 100 to 300 bytes.
    pub const SMALL: Self = Self::Uniform(100, 300);

    fn most(self) -> usize {
        match self {
            Sizes::Exactly(len) | Sizes::Uniform(_, len) => len,
            Sizes::Web => WEB.2,
        }
    }
}

/// Mixes the bits of a number; a bijection (the finalizer of SplitMix64, Steele et al. 2014).
pub fn hashed(i: u64) -> u64 {
    let mut z = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A key of eight bytes, big-endian: order of keys is order of numbers.
pub fn key(i: u64) -> [u8; 8] {
    i.to_be_bytes()
}

/// Objects of a kind.
#[derive(Debug)]
pub struct Objects {
    pool: Vec<u8>,
    seed: u64,
    sizes: Sizes,
}

impl Objects {
    /// Draws the bytes that objects are cut from; their memory is touched by that.
    pub fn new(seed: u64, sizes: Sizes) -> Self {
        let pool = data::bytes(POOL + sizes.most(), seed);
        Self { pool, seed, sizes }
    }

    fn draw(&self, i: u64, version: u64) -> u64 {
        hashed(self.seed ^ hashed(i ^ (version << 40)))
    }

    /// Length of object `i` in its version `version`.
    pub fn len(&self, i: u64, version: u64) -> usize {
        let draw = self.draw(i, version);
        match self.sizes {
            Sizes::Exactly(len) => len,
            Sizes::Uniform(least, most) => least + (draw % (most - least + 1) as u64) as usize,
            Sizes::Web => {
                let u = ((draw >> 11) + 1) as f64 / (1_u64 << 53) as f64;
                ((WEB.0 * u.powf(-1.0 / WEB.1)) as usize).min(WEB.2)
            }
        }
    }

    /// Its bytes.
    pub fn bytes(&self, i: u64, version: u64) -> &[u8] {
        let start = (hashed(self.draw(i, version)) % POOL as u64) as usize;
        &self.pool[start..start + self.len(i, version)]
    }

    /// Bytes of objects `0..count` in version 0.
    pub fn total(&self, count: u64) -> u64 {
        (0..count).map(|i| self.len(i, 0) as u64).sum()
    }

    /// Checks that the store has object `i` in that version under `key`.
    ///
    /// # Errors
    /// It has not.
    pub fn check(&self, peer: &dyn Peer, key: &[u8], i: u64, version: u64) -> Result<()> {
        let mut out = Vec::new();
        ensure!(peer.get(key, &mut out)?, "object {i} is missing");
        ensure!(out == self.bytes(i, version), "object {i} has other bytes than were put");
        Ok(())
    }

    /// Checks a hundred of objects `0..count`, which have keys of their ordinals and the
    /// version that `version` names.
    ///
    /// # Errors
    /// One is wrong.
    pub fn check_some(
        &self,
        peer: &dyn Peer,
        count: u64,
        version: impl Fn(u64) -> u64,
    ) -> Result<()> {
        for n in 0..count.min(100) {
            let i = hashed(n) % count;
            self.check(peer, &key(i), i, version(i))?;
        }
        Ok(())
    }

    /// Sees that objects `0..count` are there in version 0, with the key that `name` gives
    /// each ordinal, and settles the store. Not for what is measured.
    ///
    /// # Errors
    /// The store's.
    pub fn preload(
        &self,
        peer: &dyn Peer,
        count: u64,
        name: impl Fn(u64) -> [u8; 8],
    ) -> Result<()> {
        for first in (0..count).step_by(PRELOAD as usize) {
            let which = first..count.min(first + PRELOAD);
            let all: Vec<_> = which.map(|i| (name(i), self.bytes(i, 0))).collect();
            peer.preload(&all.iter().map(|(k, v)| (&k[..], *v)).collect::<Vec<_>>())?;
        }
        peer.settle()
    }

    /// Puts these objects in one commit.
    ///
    /// # Errors
    /// The store's.
    pub fn put(
        &self,
        peer: &dyn Peer,
        which: impl Iterator<Item = u64>,
        version: impl Fn(u64) -> u64,
    ) -> Result<()> {
        let all: Vec<_> = which.map(|i| (key(i), self.bytes(i, version(i)))).collect();
        let items: Vec<(&[u8], &[u8])> = all.iter().map(|(k, v)| (&k[..], *v)).collect();
        peer.put(&items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_as_said() {
        let mean = |sizes| {
            let objects = Objects::new(1, sizes);
            (objects.total(100_000) / 1000) as f64 / 100.0
        };
        let web = mean(Sizes::Web);
        assert!((3500.0..4100.0).contains(&web), "{web}");
        let small = mean(Sizes::SMALL);
        assert!((198.0..202.0).contains(&small), "{small}");
        let objects = Objects::new(1, Sizes::SMALL);
        assert!((0..10_000).all(|i| (100..=300).contains(&objects.bytes(i, 3).len())));
        assert_ne!(objects.bytes(1, 0), objects.bytes(1, 1), "versions differ");
    }
}
