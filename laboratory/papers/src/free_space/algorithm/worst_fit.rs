//! Worst-fit, WF: the emptiest page that takes the object, so that what it leaves stays useful.
//! Not of the paper; its counterpart to best-fit.
//!
//! Owns a set of pages for each bucket, filled from the inventory and exact to the bucket from
//! then on. No threads.

use super::{Algorithm, Cause, Change, Request};
use crate::free_space::buckets::{Buckets, UNALLOCATED};
use crate::free_space::volume::Volume;
use crate::kit::error::Result;
use std::collections::BTreeSet;

/// WF.
#[derive(Debug)]
pub struct WorstFit {
    buckets: Buckets,
    /// The pages of each bucket.
    pages: [BTreeSet<u32>; UNALLOCATED as usize],
}

impl WorstFit {
    /// WF.
    pub fn new(buckets: Buckets) -> Self {
        Self { buckets, pages: Default::default() }
    }
}

impl Algorithm for WorstFit {
    fn load(&mut self, volume: &mut Volume) -> Result<()> {
        self.pages = Default::default();
        volume.histogram()?; // counts the entries of this scan
        for page in 0..volume.pages() {
            if let Some(of) = self.pages.get_mut(usize::from(volume.bucket(page)?)) {
                of.insert(page);
            }
        }
        Ok(())
    }

    fn choose(&mut self, request: &Request<'_>, _: &mut Volume) -> Result<Option<u32>> {
        let least = usize::from(self.buckets.promising(request.need));
        let emptiest_first = self.pages.iter().skip(least).rev().flatten();
        Ok(emptiest_first.copied().find(|page| !request.refused.contains(page)))
    }

    fn refused(&mut self, _: u32) {}

    fn changed(&mut self, change: &Change) {
        if let Some(old) = self.pages.get_mut(usize::from(change.old)) {
            old.remove(&change.page);
        }
        if change.cause != Cause::Reclaimed
            && let Some(new) = self.pages.get_mut(usize::from(change.new))
        {
            new.insert(change.page);
        }
    }

    /// The least the sets can take: their entries.
    fn memory(&self) -> usize {
        self.pages.iter().map(|of| of.len() * size_of::<u32>()).sum()
    }
}
