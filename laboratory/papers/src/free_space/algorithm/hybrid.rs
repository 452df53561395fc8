//! Append only, AO(n), and the hybrid, HY(n,u) (McAuliffe §3.2). A new object goes to a page of a
//! pid cache of n pages or to a new page; the hybrid, while the file is not fuller than u, makes
//! a next-fit search with histogram over pages that are emptier than u before it adds one.
//!
//! Owns the cache, the histogram and the cursor. AO's cache takes pages that are added, never
//! looks at one again that left, and uses no inventory. A deletion puts its page into HY's cache
//! if it has more free space than the fullest there, reserved space included; a creator
//! refused by reserved space takes it out (§3.3). No threads.

use super::pid_cache::{CacheOptions, PidCache};
use super::search::{Histogram, Scan};
use super::{Algorithm, Cause, Change, Request};
use crate::free_space::buckets::Buckets;
use crate::free_space::volume::Volume;
use crate::kit::error::Result;
use crate::mutation::{Mutation, is};

/// AO(n) or HY(n,u).
#[derive(Debug)]
pub struct Hybrid {
    buckets: Buckets,
    /// u; none for AO, which never searches.
    utilization: Option<f64>,
    cache: PidCache,
    histogram: Histogram,
    cursor: u32,
    scan: Option<Scan>,
}

impl Hybrid {
    /// HY with `n` pages and a target utilization of `u` (0 to 1); AO without one.
    pub fn new(buckets: Buckets, n: usize, u: Option<f64>, options: CacheOptions) -> Self {
        Self {
            buckets,
            utilization: u,
            cache: PidCache::new(n, options),
            histogram: Histogram::default(),
            cursor: 0,
            scan: None,
        }
    }

    /// The least bucket whose pages are emptier than `u` and have room.
    fn least(&self, need: usize, u: f64) -> u8 {
        let free = (1.0 - u) * self.buckets.usable() as f64;
        let free = if is(Mutation::HyEmptier) { 0.0 } else { free };
        self.buckets.promising(need.max(free.floor() as usize))
    }
}

impl Algorithm for Hybrid {
    fn load(&mut self, volume: &mut Volume) -> Result<()> {
        if self.utilization.is_some() {
            self.histogram = Histogram::new(volume.histogram()?);
        }
        self.cache.clear();
        (self.cursor, self.scan) = (0, None);
        Ok(())
    }

    fn choose(&mut self, request: &Request<'_>, volume: &mut Volume) -> Result<Option<u32>> {
        if request.refused.is_empty() {
            self.scan = None;
        }
        let cached = self.cache.choose(request.need, request.refused);
        let Some(u) = self.utilization.filter(|_| cached.is_none()) else { return Ok(cached) };
        let least = self.least(request.need, u);
        if self.scan.is_none() {
            let dense = self.histogram.utilization(&self.buckets) >= u;
            if dense && !is(Mutation::HyDense) || !self.histogram.any_from(least) {
                return Ok(None);
            }
        }
        let mut scan = self.scan.unwrap_or_else(|| Scan::new(self.cursor, true, volume));
        let hit = scan.find(volume, least, request.refused)?;
        self.scan = Some(scan);
        self.cursor = hit.unwrap_or(self.cursor);
        Ok(hit)
    }

    fn refused(&mut self, page: u32) {
        if self.utilization.is_some() && !is(Mutation::HyRefused) {
            self.cache.remove(page);
        }
    }

    fn changed(&mut self, change: &Change) {
        let (searches, deleted) = (self.utilization.is_some(), change.cause == Cause::Deleted);
        if searches {
            self.histogram.follow(change);
        }
        if change.cause == Cause::Reclaimed {
            return self.cache.remove(change.page);
        }
        let free = self.cache.known(change, &self.buckets);
        let taken = if searches {
            !(deleted && is(Mutation::HyDeleted))
        } else {
            change.cause == Cause::Added || deleted && is(Mutation::AoDeleted)
        };
        if !self.cache.update(change.page, free) && taken {
            self.cache.offer(change.page, free);
        }
    }

    fn memory(&self) -> usize {
        let searching = size_of::<(f64, Histogram, u32, Option<Scan>)>();
        self.cache.memory() + if self.utilization.is_some() { searching } else { 0 }
    }
}
