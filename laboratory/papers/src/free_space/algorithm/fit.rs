//! First-fit and next-fit (McAuliffe §3.2, §4): the first page with room by its inventory entry,
//! from where the rule says on. Owns the page last used, the search under way and, for NF(H),
//! the histogram, which spares searches that must fail. No threads.

use super::search::{Histogram, Scan};
use super::{Algorithm, Cause, Change, Request};
use crate::free_space::buckets::Buckets;
use crate::free_space::volume::Volume;
use crate::kit::error::Result;
use crate::mutation::{Mutation, is};

/// Where a search begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// FF: at the beginning of the file.
    First,
    /// FF of DB2/2: at the page last used, and at the beginning of the file only for a request
    /// smaller than the one before.
    FirstOfDb2,
    /// NF: at the page last used, and it goes round the file.
    Next,
}

/// FF, FF of DB2/2, NF or NF(H).
#[derive(Debug)]
pub struct Fit {
    buckets: Buckets,
    rule: Rule,
    /// Page of the last object.
    cursor: u32,
    last_need: usize,
    scan: Scan,
    histogram: Option<Histogram>,
}

impl Fit {
    /// By a rule; with the histogram if `histogram`.
    pub fn new(buckets: Buckets, rule: Rule, histogram: bool) -> Self {
        let histogram = histogram.then(Histogram::default);
        Self { buckets, rule, cursor: 0, last_need: usize::MAX, scan: Scan::default(), histogram }
    }
}

impl Algorithm for Fit {
    fn load(&mut self, volume: &mut Volume) -> Result<()> {
        (self.cursor, self.last_need) = (0, usize::MAX);
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
            let before = std::mem::replace(&mut self.last_need, request.need);
            let beginning = match self.rule {
                Rule::First => !is(Mutation::FfBeginning),
                Rule::FirstOfDb2 => request.need < before && !is(Mutation::Db2Smaller),
                Rule::Next => false,
            };
            let from = if beginning { 0 } else { self.cursor };
            self.scan = Scan::new(from, self.rule == Rule::Next, volume);
        }
        self.scan.find(volume, least, request.refused)
    }

    fn refused(&mut self, _: u32) {}

    fn changed(&mut self, change: &Change) {
        if let Some(histogram) = &mut self.histogram {
            histogram.follow(change);
        }
        let still = self.rule == Rule::Next && is(Mutation::NfCursor);
        if change.cause == Cause::Created && !still {
            self.cursor = change.page;
        }
    }

    /// Of what the rule needs, in whole words.
    fn memory(&self) -> usize {
        match self.rule {
            Rule::First | Rule::FirstOfDb2 => size_of::<(bool, u32, usize)>(),
            Rule::Next => size_of::<(u32, Scan, Option<Histogram>)>().next_multiple_of(8),
        }
    }
}
