//! Which chunks of a simulated file have no blocks ([`Holes`]).
//!
//! Owns a set of chunk numbers. Threads: none of its own, the storage locks.

use std::collections::BTreeSet;
use std::ops::Range;

use super::image::CHUNK;

/// Chunks without blocks.
#[derive(Clone, Default)]
pub(super) struct Holes(BTreeSet<u64>);

impl Holes {
    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    pub(super) fn within(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        self.0.range(range).copied()
    }

    pub(super) fn add(&mut self, range: Range<u64>) {
        self.0.extend(range);
    }

    pub(super) fn remove(&mut self, range: Range<u64>) {
        let gone: Vec<u64> = self.within(range).collect();
        for chunk in gone {
            self.0.remove(&chunk);
        }
    }

    /// Forgets what lies behind this many bytes.
    pub(super) fn cut(&mut self, len: u64) {
        drop(self.0.split_off(&len.div_ceil(CHUNK as u64)));
    }
}

/// The chunks that a range of bytes touches.
pub(super) fn chunks(offset: u64, len: u64) -> Range<u64> {
    let size = CHUNK as u64;
    offset / size..offset.saturating_add(len).div_ceil(size)
}

/// Bytes of these chunks.
pub(super) fn len_of(range: &Range<u64>) -> u64 {
    (range.end - range.start) * CHUNK as u64
}
