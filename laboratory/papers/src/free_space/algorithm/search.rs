//! What searches of the inventory share (McAuliffe §3.2): the histogram of buckets, and a search
//! from a cursor to the end, then from the beginning. Owns 15 counts and where a search stands.

use super::Change;
use crate::free_space::buckets::{Buckets, UNALLOCATED};
use crate::free_space::volume::Volume;
use crate::kit::error::Result;
use crate::mutation::{Mutation, is};
use std::ops::Range;

/// Pages per bucket: a hint that agrees with the inventory after every change told.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram([u32; 15]);

impl Histogram {
    pub(super) fn new(counts: [u32; 16]) -> Self {
        let mut this = Self::default();
        this.0.copy_from_slice(&counts[..15]);
        this
    }

    pub(super) fn follow(&mut self, change: &Change) {
        if change.old < UNALLOCATED {
            self.0[usize::from(change.old)] -= 1;
        }
        if change.new < UNALLOCATED {
            self.0[usize::from(change.new)] += 1;
        }
    }

    /// Whether a page is in `least` or a bucket above.
    pub(super) fn any_from(&self, least: u8) -> bool {
        self.0.iter().skip(usize::from(least)).any(|&n| n > 0)
    }

    pub(super) fn has(&self, bucket: u8) -> bool {
        self.0[usize::from(bucket)] > 0
    }

    /// The file's utilization as far as buckets tell it: the middle of each; 1 for no pages.
    pub(super) fn utilization(&self, buckets: &Buckets) -> f64 {
        let pages: u64 = self.0.iter().map(|&n| u64::from(n)).sum();
        let free = |(b, &n): (usize, &u32)| u64::from(n) * buckets.middle(b as u8) as u64;
        let free: u64 = self.0.iter().enumerate().map(free).sum();
        1.0 - free as f64 / (pages * buckets.usable() as u64).max(1) as f64
    }
}

/// A search that goes on if a page was refused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scan {
    next: u32,
    left: u32,
}

/// What one step of it found and looked at.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) hit: Option<u32>,
    pub(super) looked: [Range<u32>; 2],
}

impl Scan {
    /// A search that begins at `cursor`, and goes round the file or to its end.
    pub(super) fn new(cursor: u32, round: bool, volume: &mut Volume) -> Self {
        volume.count_search();
        let pages = volume.pages();
        let next = if cursor < pages { cursor } else { 0 };
        let round = round && !is(Mutation::NfWrap);
        Self { next, left: if round { pages } else { pages - next } }
    }

    /// On to the next page with a bucket of at least `least`.
    pub(super) fn step(&mut self, volume: &mut Volume, least: u8) -> Result<Step> {
        let pages = volume.pages();
        let mut looked = [0..0, 0..0];
        for range in &mut looked {
            let end = pages.min(self.next + self.left);
            let hit = volume.find(self.next, end, least)?;
            let stop = hit.map_or(end, |page| page + 1);
            *range = self.next..stop;
            self.left -= stop - self.next;
            self.next = if stop == pages { 0 } else { stop };
            if hit.is_some() || self.left == 0 {
                return Ok(Step { hit, looked });
            }
        }
        Ok(Step { hit: None, looked })
    }

    /// On to the next such page that was not refused.
    pub(super) fn find(
        &mut self,
        volume: &mut Volume,
        least: u8,
        refused: &[u32],
    ) -> Result<Option<u32>> {
        loop {
            let hit = self.step(volume, least)?.hit;
            if hit.is_none_or(|page| !refused.contains(&page)) {
                return Ok(hit);
            }
        }
    }
}
