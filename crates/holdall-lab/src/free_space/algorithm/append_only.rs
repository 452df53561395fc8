//! Append only, AO(n) (McAuliffe §3.2): a new object goes to one of the n pages most recently
//! added, or to a new one. Never uses the inventory. Owns a pid cache. No threads.

use super::pid_cache::{CacheOptions, PidCache};
use super::{Algorithm, Cause, Change, Request};
use crate::free_space::buckets::Buckets;
use crate::free_space::error::Result;
use crate::free_space::volume::Volume;
use crate::mutation::{Mutation, is};

/// AO(n).
#[derive(Debug)]
pub struct AppendOnly {
    buckets: Buckets,
    cache: PidCache,
}

impl AppendOnly {
    /// AO(n) with `n` pages.
    #[must_use]
    pub fn new(buckets: Buckets, n: usize, options: CacheOptions) -> Self {
        Self { buckets, cache: PidCache::new(n, options) }
    }
}

impl Algorithm for AppendOnly {
    fn load(&mut self, _: &mut Volume) -> Result<()> {
        self.cache.clear();
        Ok(())
    }

    fn choose(&mut self, request: &Request<'_>, _: &mut Volume) -> Result<Option<u32>> {
        Ok(self.cache.choose(request.need, request.refused))
    }

    fn refused(&mut self, _: u32) {}

    fn changed(&mut self, change: &Change) {
        if change.cause == Cause::Reclaimed {
            return self.cache.remove(change.page);
        }
        let free = self.cache.known(change, &self.buckets);
        let added = change.cause == Cause::Added;
        if added || is(Mutation::AoDeleted) && change.cause == Cause::Deleted {
            self.cache.offer(change.page, free);
        } else {
            self.cache.update(change.page, free);
        }
    }

    fn memory(&self) -> usize {
        self.cache.memory()
    }
}
