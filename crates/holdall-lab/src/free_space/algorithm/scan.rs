//! A next-fit search of the inventory: from a cursor to the end, then from the beginning.
//!
//! Owns where it stands, so that it goes on where a page was refused. No threads.

use crate::free_space::error::Result;
use crate::free_space::volume::Volume;
use crate::mutation::{Mutation, is};
use std::ops::Range;

/// A search that wraps round once.
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
    /// A search of all entries that begins at `cursor`.
    pub(super) fn new(cursor: u32, volume: &mut Volume) -> Self {
        volume.count_search();
        let pages = volume.pages();
        let next = if cursor < pages { cursor } else { 0 };
        Self { next, left: if is(Mutation::NfWrap) { pages - next } else { pages } }
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
}
