//! Next-fit with witnesses and histogram, NF(WH) (McAuliffe §3.2).
//!
//! Owns for each bucket the count of its pages and one page known to be in it. A bucket with
//! room and a known witness needs no search; one without is searched for round the file, and
//! the search picks up witnesses for other buckets on its way. As in NF the cursor is the page
//! last used for an allocation, on a witness too. Of several witnesses the fullest bucket's is
//! taken; the paper does not say. No threads.

use super::search::{Histogram, Scan};
use super::{Algorithm, Cause, Change, Request};
use crate::free_space::buckets::{Buckets, EMPTY, UNALLOCATED};
use crate::free_space::volume::Volume;
use crate::kit::error::Result;
use crate::mutation::{Mutation, is};

const UNKNOWN: u32 = u32::MAX;

/// NF(WH).
#[derive(Debug)]
pub struct Witnesses {
    buckets: Buckets,
    histogram: Histogram,
    pages: [u32; 15],
    cursor: u32,
    /// The search under way for the present object.
    scan: Option<Scan>,
    /// A search begins where the last search ended; else at the page last used for an allocation of
    /// any kind, which are the paper's words.
    cursor_of_searches: bool,
}

impl Witnesses {
    /// NF(WH).
    pub fn new(buckets: Buckets, cursor_of_searches: bool) -> Self {
        let (histogram, pages) = (Histogram::default(), [UNKNOWN; 15]);
        Self { buckets, histogram, pages, cursor: 0, scan: None, cursor_of_searches }
    }

    fn witness(&self, least: u8, refused: &[u32]) -> Option<u32> {
        let from = self.pages.get(usize::from(least)..).filter(|_| !is(Mutation::WitnessFirst))?;
        from.iter().copied().find(|p| *p != UNKNOWN && !refused.contains(p))
    }

    /// Takes as witness the first page looked at of each bucket that has none.
    fn pick_up(
        &mut self,
        volume: &mut Volume,
        looked: [std::ops::Range<u32>; 2],
        refused: &[u32],
    ) -> Result<()> {
        for bucket in 0..=EMPTY {
            for range in &looked {
                let wanted = self.pages[usize::from(bucket)] == UNKNOWN;
                if wanted && self.histogram.has(bucket) && !is(Mutation::WitnessSeen) {
                    let page = volume.find_again(range.start, range.end, bucket)?;
                    let page = page.filter(|p| !refused.contains(p));
                    self.pages[usize::from(bucket)] = page.unwrap_or(UNKNOWN);
                }
            }
        }
        Ok(())
    }
}

impl Algorithm for Witnesses {
    fn load(&mut self, volume: &mut Volume) -> Result<()> {
        self.histogram = Histogram::new(volume.histogram()?);
        (self.pages, self.cursor, self.scan) = ([UNKNOWN; 15], 0, None);
        Ok(())
    }

    fn choose(&mut self, request: &Request<'_>, volume: &mut Volume) -> Result<Option<u32>> {
        let least = self.buckets.promising(request.need);
        if request.refused.is_empty() {
            self.scan = None;
        }
        if let Some(page) = self.witness(least, request.refused) {
            return Ok(Some(page));
        }
        if !self.histogram.any_from(least) {
            return Ok(None);
        }
        let mut scan = self.scan.unwrap_or_else(|| Scan::new(self.cursor, true, volume));
        loop {
            let step = scan.step(volume, least)?;
            self.pick_up(volume, step.looked, request.refused)?;
            // A witness tried before the search began may turn up again.
            if step.hit.is_none_or(|page| !request.refused.contains(&page)) {
                self.scan = Some(scan);
                self.cursor = step.hit.unwrap_or(self.cursor);
                return Ok(step.hit);
            }
        }
    }

    fn refused(&mut self, page: u32) {
        for witness in self.pages.iter_mut().filter(|w| **w == page) {
            *witness = UNKNOWN;
        }
    }

    fn changed(&mut self, change: &Change) {
        self.histogram.follow(change);
        if change.old < UNALLOCATED && change.old != change.new {
            let old = &mut self.pages[usize::from(change.old)];
            if *old == change.page && !is(Mutation::WitnessMoved) {
                *old = UNKNOWN;
            }
        }
        if change.new < UNALLOCATED && change.old != change.new {
            let new = &mut self.pages[usize::from(change.new)];
            if *new == UNKNOWN {
                *new = change.page;
            }
        }
        let moves = !self.cursor_of_searches && !is(Mutation::WitnessCursor);
        if moves && change.cause == Cause::Created {
            self.cursor = change.page;
        }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() - size_of::<Buckets>()
    }
}
