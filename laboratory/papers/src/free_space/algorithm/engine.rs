//! HY(n,u) as the engine has it: the cache and the decision to search are
//! [`holdall_core::techniques::heap_placement`], on the inventory of the lab.
//!
//! It differs from the paper's: it knows the file's bytes in use instead of a histogram, it also
//! searches while its cache has a free place, and its classes are fifteenths of a page. Owns the
//! placement and the bytes in use. No threads.

use super::search::Scan;
use super::{Algorithm, Cause, Change, Request};
use crate::free_space::buckets::{Buckets, UNALLOCATED};
use crate::free_space::volume::Volume;
use crate::kit::error::Result;
use holdall_core::techniques::PageNo;
use holdall_core::techniques::heap_placement::{Placement, Policy};

/// The engine's HY.
#[derive(Debug)]
pub struct EngineHybrid {
    buckets: Buckets,
    placement: Placement,
    policy: Policy,
    /// Pages of the file, and their free bytes as far as buckets tell it.
    pages: u64,
    free: u64,
    scan: Option<Scan>,
}

impl EngineHybrid {
    /// HY with `n` pages and a target utilization of `u` percent.
    pub fn new(buckets: Buckets, n: usize, u: u8) -> Self {
        let policy = Policy { cache_pages: n, utilization: u };
        let placement = Placement::new(policy);
        Self { buckets, placement, policy, pages: 0, free: 0, scan: None }
    }

    fn follow(&mut self, bucket: u8, add: bool) {
        if bucket < UNALLOCATED {
            let free = self.buckets.middle(bucket) as u64;
            if add {
                (self.pages, self.free) = (self.pages + 1, self.free + free);
            } else {
                (self.pages, self.free) = (self.pages - 1, self.free - free);
            }
        }
    }
}

impl Algorithm for EngineHybrid {
    fn load(&mut self, volume: &mut Volume) -> Result<()> {
        (self.pages, self.free, self.scan) = (0, 0, None);
        for (bucket, n) in volume.histogram()?.into_iter().enumerate().take(15) {
            self.pages += u64::from(n);
            self.free += u64::from(n) * self.buckets.middle(bucket as u8) as u64;
        }
        self.placement = Placement::new(self.policy);
        Ok(())
    }

    fn choose(&mut self, request: &Request<'_>, volume: &mut Volume) -> Result<Option<u32>> {
        if request.refused.is_empty() {
            self.scan = None;
        }
        if let Some(cached) = self.placement.choose(request.need) {
            return Ok(Some(cached.index));
        }
        let usable = self.buckets.usable();
        let capacity = self.pages * usable as u64;
        let class =
            self.placement.search_class(request.need, usable, capacity - self.free, capacity);
        let Some(class) = class else { return Ok(None) };
        let floor = (usize::from(class) * usable).div_ceil(15);
        let least = self.buckets.promising(floor.max(request.need).min(usable));
        let mut scan = self.scan.unwrap_or_else(|| Scan::new(self.placement.cursor, true, volume));
        let hit = scan.find(volume, least, request.refused)?;
        self.scan = Some(scan);
        Ok(hit)
    }

    fn refused(&mut self, page: u32) {
        self.placement.remove(page);
    }

    fn changed(&mut self, change: &Change) {
        self.follow(change.old, false);
        self.follow(change.new, true);
        if change.cause == Cause::Reclaimed {
            self.placement.remove(change.page);
        } else {
            self.placement.offer(change.page, PageNo(u64::from(change.page)), change.free);
        }
        if change.cause == Cause::Created {
            self.placement.cursor = change.page;
        }
    }

    fn memory(&self) -> usize {
        let cache = size_of_val(self.placement.cached());
        size_of::<Self>() - size_of::<Buckets>() + cache
    }
}
