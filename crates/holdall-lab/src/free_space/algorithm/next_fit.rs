//! Next-fit, NF, and next-fit with histogram, NF(H) (McAuliffe §3.2): the first page with room
//! from the page last used on, round the file; with the histogram no search that must fail.
//!
//! Owns the cursor, the search under way and the histogram. No threads.

use super::histogram::Histogram;
use super::scan::Scan;
use super::{Algorithm, Cause, Change, Request};
use crate::free_space::buckets::Buckets;
use crate::free_space::error::Result;
use crate::free_space::volume::Volume;
use crate::mutation::{Mutation, is};

/// NF or NF(H).
#[derive(Debug)]
pub struct NextFit {
    buckets: Buckets,
    cursor: u32,
    scan: Scan,
    histogram: Option<Histogram>,
}

impl NextFit {
    /// NF; NF(H) where `histogram`.
    #[must_use]
    pub fn new(buckets: Buckets, histogram: bool) -> Self {
        let histogram = histogram.then(Histogram::default);
        Self { buckets, cursor: 0, scan: Scan::default(), histogram }
    }
}

impl Algorithm for NextFit {
    fn load(&mut self, volume: &mut Volume) -> Result<()> {
        self.cursor = 0;
        if let Some(histogram) = &mut self.histogram {
            *histogram = Histogram::new(volume.histogram()?);
        }
        Ok(())
    }

    fn choose(&mut self, request: &Request<'_>, volume: &mut Volume) -> Result<Option<u32>> {
        let least = self.buckets.promising(request.need);
        if request.refused.is_empty() {
            let none = self.histogram.as_ref().is_some_and(|h| !h.any_from(least));
            if none && !is(Mutation::NfHistogram) {
                return Ok(None);
            }
            self.scan = Scan::new(self.cursor, volume);
        }
        Ok(self.scan.step(volume, least)?.hit)
    }

    fn refused(&mut self, _: u32) {}

    fn changed(&mut self, change: &Change) {
        if let Some(histogram) = &mut self.histogram {
            histogram.follow(change);
        }
        if change.cause == Cause::Created && !is(Mutation::NfCursor) {
            self.cursor = change.page;
        }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() - size_of::<Buckets>()
    }
}
