//! The table's root: which index is in use, and how far a doubling got. Owns the format.

use super::super::block::Block;
use crate::kit::error::{Error, Result};
use holdall_core::techniques::bytes::{u32_at, u64_at};

/// Bytes of the root.
pub(super) const BYTES: usize = 80;
/// Bytes of a bucket head.
pub(super) const INDEX: usize = 8;
const MAGIC: u64 = u64::from_le_bytes(*b"HTOD\0\0\0\x01");
const NONE: Block = Block { at: 0, grains: 0 };

/// What one write of less than a sector changes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Root {
    /// Doublings so far; the lowest bit says which link of an item is in use.
    pub doublings: u64,
    pub index: Block,
    pub buckets: u64,
    /// The index being made; address 0 for none.
    pub new: Block,
    /// Buckets of the index in use that are in the new one.
    pub done: u64,
    /// An index to give back; address 0 for none.
    pub retired: Block,
}

impl Default for Root {
    fn default() -> Self {
        Self { doublings: 0, index: NONE, buckets: 0, new: NONE, done: 0, retired: NONE }
    }
}

impl Root {
    /// Which of an item's links is in use.
    pub fn generation(&self) -> usize {
        (self.doublings & 1) as usize
    }

    /// Forgets the index to give back.
    pub fn forget_retired(&mut self) {
        self.retired = NONE;
    }

    /// Takes the new index into use.
    pub fn turn(&mut self) {
        self.retired = std::mem::replace(&mut self.index, self.new);
        self.new = NONE;
        self.buckets *= 2;
        self.doublings += 1;
        self.done = 0;
    }

    pub fn encode(&self) -> [u8; BYTES] {
        let grains = |b: Block| u64::from(b.grains);
        let words = [
            MAGIC,
            self.doublings,
            self.index.at,
            grains(self.index),
            self.buckets,
            self.new.at,
            grains(self.new),
            self.done,
            self.retired.at,
            grains(self.retired),
        ];
        let mut out = [0; BYTES];
        for (bytes, word) in out.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    pub fn decode(bytes: &[u8; BYTES]) -> Result<Self> {
        let word = |i: usize| u64_at(bytes, 8 * i);
        let block = |i: usize| Block { at: word(i), grains: u32_at(bytes, 8 * i + 8) };
        if word(0) != MAGIC || !word(4).is_power_of_two() {
            return Err(Error::Corrupt("the table's root holds something else".into()));
        }
        Ok(Self {
            doublings: word(1),
            index: block(2),
            buckets: word(4),
            new: block(5),
            done: word(7),
            retired: block(8),
        })
    }
}
