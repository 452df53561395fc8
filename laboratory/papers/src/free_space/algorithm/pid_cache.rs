//! The pid cache: a few pages with their free space (McAuliffe §3.2).
//!
//! Owns up to n entries of 8 bytes. AO(n) has the n pages most recently added, so the oldest
//! leaves, and knows their free bytes, as nothing else of it needs buckets. From HY's the fullest
//! leaves, and it knows the floor of a page's bucket (figure 3 of the paper shows buckets). Of
//! several that fit the fullest is taken; the paper does not say. Pure; no threads.

use super::Change;
use crate::free_space::buckets::Buckets;
use crate::mutation::{Mutation, is};

/// Which page leaves a full cache for a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// The one longest in it: the cache has the n pages most recently added.
    Oldest,
    /// The one with the least free space, and only if the new page has more.
    Fullest,
}

/// How a cache is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheOptions {
    /// Which page leaves.
    pub eviction: Eviction,
    /// The cache knows the free bytes of its pages, not only their buckets.
    pub exact: bool,
}

impl CacheOptions {
    /// AO(n)'s: the oldest leaves (the paper's words, §3.2).
    pub const AO: Self = Self { eviction: Eviction::Oldest, exact: true };
    /// HY(n,u)'s: the fullest leaves for an emptier page, and buckets are known (the paper's words
    /// and figure, §3.2).
    pub const HY: Self = Self { eviction: Eviction::Fullest, exact: false };
}

#[derive(Debug, Clone, Copy)]
struct Pid {
    page: u32,
    free: u16,
}

/// The cache; entries in order of entering.
#[derive(Debug)]
pub(super) struct PidCache {
    pids: Vec<Pid>,
    n: usize,
    options: CacheOptions,
}

impl PidCache {
    pub(super) fn new(n: usize, options: CacheOptions) -> Self {
        let n = n.max(1);
        Self { pids: Vec::with_capacity(n), n, options }
    }

    /// Free bytes of a changed page, as far as the cache is to know them.
    pub(super) fn known(&self, change: &Change, buckets: &Buckets) -> usize {
        if self.options.exact && !is(Mutation::AoExact) {
            change.free
        } else {
            buckets.floor(change.new)
        }
    }

    /// A page with `need` bytes that has not been refused.
    pub(super) fn choose(&self, need: usize, refused: &[u32]) -> Option<u32> {
        let fit = |p: &&Pid| usize::from(p.free) >= need && !refused.contains(&p.page);
        let pid = self.pids.iter().filter(fit).min_by_key(|p| p.free);
        pid.map(|p| p.page)
    }

    /// Corrects the free space of a page, if it is here.
    pub(super) fn update(&mut self, page: u32, free: usize) -> bool {
        let pid = self.pids.iter_mut().find(|p| p.page == page);
        pid.map(|p| p.free = free as u16).is_some()
    }

    /// Puts a page in that is not here, if the eviction lets it.
    pub(super) fn offer(&mut self, page: u32, free: usize) {
        if self.pids.len() == self.n {
            let fullest = (0..self.n).min_by_key(|&i| self.pids[i].free).unwrap_or(0);
            match self.options.eviction {
                Eviction::Oldest if is(Mutation::AoRecent) => drop(self.pids.remove(fullest)),
                Eviction::Oldest => drop(self.pids.remove(0)),
                Eviction::Fullest if is(Mutation::HyFullestLeaves) => drop(self.pids.remove(0)),
                Eviction::Fullest if usize::from(self.pids[fullest].free) < free => {
                    self.pids.remove(fullest);
                }
                Eviction::Fullest => return,
            }
        }
        self.pids.push(Pid { page, free: free as u16 });
    }

    pub(super) fn remove(&mut self, page: u32) {
        self.pids.retain(|p| p.page != page);
    }

    pub(super) fn clear(&mut self) {
        self.pids.clear();
    }

    pub(super) fn memory(&self) -> usize {
        size_of::<Self>() + self.pids.capacity() * size_of::<Pid>()
    }
}
