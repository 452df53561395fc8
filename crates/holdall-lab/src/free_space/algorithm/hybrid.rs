//! The hybrid, HY(n,u) (McAuliffe §3.2): append-only from a pid cache of n pages while the file
//! is fuller than u, else next-fit with histogram over pages that are emptier than u.
//!
//! Owns the cache, the histogram and the cursor. A deletion puts its page into the cache where
//! it has more free space than the fullest there, reserved space included; a creator refused by
//! reserved space takes it out (§3.3). No threads.

use super::histogram::Histogram;
use super::pid_cache::{CacheOptions, PidCache};
use super::scan::Scan;
use super::{Algorithm, Cause, Change, Request};
use crate::free_space::buckets::Buckets;
use crate::free_space::error::Result;
use crate::free_space::volume::Volume;
use crate::mutation::{Mutation, is};

/// HY(n,u).
#[derive(Debug)]
pub struct Hybrid {
    buckets: Buckets,
    utilization: f64,
    cache: PidCache,
    histogram: Histogram,
    cursor: u32,
    scan: Option<Scan>,
}

impl Hybrid {
    /// HY with `n` pages and a target utilization of `u` (0 to 1).
    #[must_use]
    pub fn new(buckets: Buckets, n: usize, u: f64, options: CacheOptions) -> Self {
        Self {
            buckets,
            utilization: u,
            cache: PidCache::new(n, options),
            histogram: Histogram::default(),
            cursor: 0,
            scan: None,
        }
    }

    /// The least bucket whose pages are emptier than u and have room.
    fn least(&self, need: usize) -> u8 {
        let free = (1.0 - self.utilization) * self.buckets.usable() as f64;
        let free = if is(Mutation::HyEmptier) { 0.0 } else { free };
        self.buckets.promising(need.max(free.floor() as usize))
    }
}

impl Algorithm for Hybrid {
    fn load(&mut self, volume: &mut Volume) -> Result<()> {
        self.histogram = Histogram::new(volume.histogram()?);
        self.cache.clear();
        (self.cursor, self.scan) = (0, None);
        Ok(())
    }

    fn choose(&mut self, request: &Request<'_>, volume: &mut Volume) -> Result<Option<u32>> {
        if request.refused.is_empty() {
            self.scan = None;
        }
        if let Some(page) = self.cache.choose(request.need, request.refused) {
            return Ok(Some(page));
        }
        let least = self.least(request.need);
        if self.scan.is_none() {
            let dense = self.histogram.utilization(&self.buckets) >= self.utilization;
            if dense && !is(Mutation::HyDense) || !self.histogram.any_from(least) {
                return Ok(None);
            }
        }
        let mut scan = self.scan.unwrap_or_else(|| Scan::new(self.cursor, volume));
        loop {
            let hit = scan.step(volume, least)?.hit;
            if hit.is_none_or(|page| !request.refused.contains(&page)) {
                self.scan = Some(scan);
                self.cursor = hit.unwrap_or(self.cursor);
                return Ok(hit);
            }
        }
    }

    fn refused(&mut self, page: u32) {
        if !is(Mutation::HyRefused) {
            self.cache.remove(page);
        }
    }

    fn changed(&mut self, change: &Change) {
        self.histogram.follow(change);
        if change.cause == Cause::Reclaimed {
            return self.cache.remove(change.page);
        }
        let free = self.cache.known(change, &self.buckets);
        let kept_out = is(Mutation::HyDeleted) && change.cause == Cause::Deleted;
        if !self.cache.update(change.page, free) && !kept_out {
            self.cache.offer(change.page, free);
        }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() - size_of::<Buckets>() - size_of::<PidCache>() + self.cache.memory()
    }
}
