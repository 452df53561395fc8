//! Best-fit, BF (McAuliffe §4): the fullest page that takes the object, by a tree in memory of
//! all pages of the file ordered by free bytes.
//!
//! Owns the tree and the free bytes it has each page under. The inventory is read only to fill
//! the tree; from then on the tree is exact. No threads.

use super::{Algorithm, Cause, Change, Request};
use crate::free_space::buckets::{Buckets, UNALLOCATED};
use crate::free_space::volume::Volume;
use crate::kit::error::Result;
use crate::mutation::{Mutation, is};
use std::collections::BTreeSet;

/// BF.
#[derive(Debug)]
pub struct BestFit {
    buckets: Buckets,
    /// (free bytes, page).
    tree: BTreeSet<(u16, u32)>,
    /// Free bytes of each page in the tree; [`ABSENT`] for others.
    free: Vec<u16>,
}

const ABSENT: u16 = u16::MAX;

impl BestFit {
    /// BF.
    pub fn new(buckets: Buckets) -> Self {
        Self { buckets, tree: BTreeSet::new(), free: Vec::new() }
    }

    fn put(&mut self, page: u32, free: u16) {
        let at = page as usize;
        if self.free.len() <= at {
            self.free.resize(at + 1, ABSENT);
        }
        let old = std::mem::replace(&mut self.free[at], free);
        if old == free {
            return;
        }
        if old != ABSENT {
            self.tree.remove(&(old, page));
        }
        if free != ABSENT {
            self.tree.insert((free, page));
        }
    }
}

impl Algorithm for BestFit {
    fn load(&mut self, volume: &mut Volume) -> Result<()> {
        self.tree.clear();
        self.free.clear();
        volume.histogram()?; // counts the entries of this scan
        for page in 0..volume.pages() {
            let bucket = volume.bucket(page)?;
            if bucket < UNALLOCATED {
                self.put(page, self.buckets.floor(bucket) as u16);
            }
        }
        Ok(())
    }

    fn choose(&mut self, request: &Request<'_>, _: &mut Volume) -> Result<Option<u32>> {
        let mut from = self.tree.range((request.need as u16, 0)..);
        let tried = |entry: &&(u16, u32)| !request.refused.contains(&entry.1);
        let best = if is(Mutation::BfFullest) { from.rfind(tried) } else { from.find(tried) };
        Ok(best.map(|&(_, page)| page))
    }

    fn refused(&mut self, _: u32) {}

    fn changed(&mut self, change: &Change) {
        let free = if change.cause == Cause::Reclaimed { ABSENT } else { change.free as u16 };
        self.put(change.page, free);
    }

    /// The least the tree can take: its entries, without the slack and pointers of its nodes.
    fn memory(&self) -> usize {
        self.tree.len() * size_of::<(u16, u32)>() + self.free.capacity() * size_of::<u16>()
    }
}
