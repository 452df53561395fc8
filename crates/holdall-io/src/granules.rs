//! A sparse map of equally long pieces of bytes ([`Granules`]), for disks in memory
//! and for [`crate::OverlayDisk`].
//!
//! Owns the granules that exist; knows nothing of lengths or of what lies below. Invariant: every
//! stored granule is exactly one granule long. Threads: none of its own, the owner locks.

use std::collections::BTreeMap;
use std::ops::Range;

/// Granules by their number (offset / granule size).
#[derive(Clone)]
pub struct Granules {
    size: usize,
    map: BTreeMap<u64, Box<[u8]>>,
}

/// The part of a byte range that lies in one granule.
pub struct Piece {
    /// Which granule.
    pub index: u64,
    /// The part of the granule.
    pub inside: Range<usize>,
    /// The part of the range, counted from its start.
    pub outside: Range<usize>,
}

impl Granules {
    /// No granules, each of `size` bytes.
    pub fn new(size: usize) -> Self {
        Self { size, map: BTreeMap::new() }
    }

    /// Cuts `len` bytes at `offset` at the borders of granules. The caller has checked that the
    /// end does not overflow.
    pub fn pieces(&self, offset: u64, len: usize) -> impl Iterator<Item = Piece> + use<> {
        let size = self.size;
        let mut done = 0;
        std::iter::from_fn(move || {
            if done == len {
                return None;
            }
            let at = offset + done as u64;
            let start = (at % size as u64) as usize;
            let n = (size - start).min(len - done);
            let outside = done..done + n;
            done += n;
            Some(Piece { index: at / size as u64, inside: start..start + n, outside })
        })
    }

    /// The granule, if stored.
    pub fn get(&self, index: u64) -> Option<&[u8]> {
        self.map.get(&index).map(|bytes| &**bytes)
    }

    /// Whether any granule of these bytes, at least one, is stored.
    pub fn any(&self, bytes: Range<u64>) -> bool {
        let size = self.size as u64;
        self.map.range(bytes.start / size..bytes.end.div_ceil(size)).next().is_some()
    }

    /// The granule, stored as zeros if it was not.
    pub fn get_or_zeros(&mut self, index: u64) -> &mut [u8] {
        self.map.entry(index).or_insert_with(|| vec![0; self.size].into())
    }

    /// Forgets everything from `len` (bytes) on: whole granules are dropped, the rest of the one
    /// that `len` cuts becomes zeros.
    pub fn cut(&mut self, len: u64) {
        let index = len / self.size as u64;
        let tail = self.map.split_off(&index);
        let keep = (len % self.size as u64) as usize;
        if keep > 0
            && let Some(mut bytes) = tail.into_iter().next().filter(|(at, _)| *at == index)
        {
            bytes.1[keep..].fill(0);
            self.map.insert(index, bytes.1);
        }
    }

    /// Bytes stored.
    pub fn stored(&self) -> u64 {
        self.map.len() as u64 * self.size as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_range() {
        let granules = Granules::new(8);
        let pieces: Vec<_> = granules
            .pieces(6, 13)
            .map(|p| (p.index, p.inside.clone(), p.outside.clone()))
            .collect();
        assert_eq!(pieces, [(0, 6..8, 0..2), (1, 0..8, 2..10), (2, 0..3, 10..13)]);
        assert_eq!(granules.pieces(8, 0).count(), 0);
    }

    #[test]
    fn cut_drops_granules_and_zeros_the_rest_of_one() {
        let mut granules = Granules::new(8);
        for index in [0, 1, 3] {
            granules.get_or_zeros(index).fill(9);
        }
        granules.cut(11);
        assert_eq!(granules.get(1).unwrap(), [9, 9, 9, 0, 0, 0, 0, 0]);
        assert_eq!(granules.stored(), 16);
        granules.cut(8);
        assert!(granules.get(1).is_none());
        granules.get_or_zeros(3).fill(9);
        granules.cut(20);
        assert!(granules.get(3).is_none());
        assert_eq!(granules.stored(), 8);
    }
}
