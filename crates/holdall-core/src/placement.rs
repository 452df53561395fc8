//! Which page takes a record: HY(n,u) (McAuliffe §3.2).
//!
//! Owns: the free-space classes, the pid cache of up to n pages and the decision to search
//! the file. Pure, on counts: it never looks at a page, so it can be run in a model. What it
//! remembers is a hint; the heap file checks it against the page.
//!
//! The map records a cached page as class 0 ("full"): its class is written when it leaves
//! the cache ([`Cached::marked`]). Threads: belongs to the writer of its collection.

use crate::PageNo;
use crate::heap_page::Room;
use crate::page_map_node::FRESH;

/// Parameters of HY(n,u).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// n: pages in the pid cache, at least 1.
    pub cache_pages: usize,
    /// u: utilization in percent below which a file is searched for pages with room, and
    /// below which a page is taken by that search.
    pub utilization: u8,
}

impl Default for Policy {
    fn default() -> Self {
        Self { cache_pages: 64, utilization: 94 }
    }
}

/// Class of a page of a file whose empty pages have room for `max` bytes: 15 where it is
/// empty, else the largest c of 0..=14 with `room.free >= c/15 max`.
pub fn class_of(room: Room, max: usize) -> u8 {
    if room.empty { FRESH } else { (room.free * 15 / max.max(1)).min(14) as u8 }
}

/// The least class that promises room for a record of `need` bytes: 1..=15.
pub fn class_for(need: usize, max: usize) -> u8 {
    (need * 15).div_ceil(max.max(1)).clamp(1, 15) as u8
}

/// Pages to allocate together for a file of `pages` pages: 1, 1, 2, 4 and so on to `most`,
/// so that small files stay small and the pages of large ones lie together.
pub fn extent(pages: u32, most: u32) -> u32 {
    1 << pages.clamp(1, most.max(1)).ilog2()
}

/// A page in the pid cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cached {
    /// Logical index in the file.
    pub index: u32,
    /// The page.
    pub page: PageNo,
    /// Length of the longest record that fits.
    pub free: usize,
    /// The map records the page as class 0; else its class there is right.
    pub marked: bool,
}

/// What [`Placement::offer`] did with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// It was in the cache already.
    Kept,
    /// It was put into the cache, maybe in another's place.
    Added(Option<Cached>),
    /// Every page in the cache has at least as much room.
    Refused,
}

/// The transient state of HY(n,u) for one collection.
///
/// It describes the pages as its transaction left them: keep a clone from the start of a
/// transaction and put it back if that is aborted. One that does not belong to the file's
/// present state is found by its stamp and forgets its pages ([`Placement::sync`]).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Placement {
    policy: Policy,
    cache: Vec<Cached>,
    stamp: u32,
    /// A page that takes no record for now.
    closed: Option<u32>,
    /// Where the next search of the map starts (next-fit).
    pub cursor: u32,
}

impl Placement {
    /// An empty cache.
    pub fn new(policy: Policy) -> Self {
        let policy = Policy { cache_pages: policy.cache_pages.max(1), ..policy };
        Self { policy, ..Self::default() }
    }

    /// Forgets everything. Pages marked as full in the map stay so until they are next
    /// changed: for a collection whose pages are gone, or where no earlier state was kept.
    pub fn reset(&mut self) {
        *self = Self::new(self.policy);
    }

    /// To be called before each use with the file's count of changes: where it is not the one
    /// last given to [`Placement::follow`], the cache describes another state, and is emptied.
    pub fn sync(&mut self, changes: u32) {
        if self.stamp != changes {
            self.cache.clear();
            self.stamp = changes;
        }
    }

    /// Goes along with a change of the file.
    pub fn follow(&mut self, changes: u32) {
        self.stamp = changes;
    }

    /// The pages in the cache.
    pub fn cached(&self) -> &[Cached] {
        &self.cache
    }

    /// The page in the cache with the least room that takes `need` bytes: filling one page
    /// after the other keeps objects created together together.
    pub fn choose(&self, need: usize) -> Option<Cached> {
        let open = |c: &&Cached| c.free >= need && !self.is_closed(c.index);
        let fits = self.cache.iter().filter(open);
        fits.min_by_key(|c| (c.free, c.index)).copied()
    }

    /// The `most` pages in the cache with the most room, the emptiest first.
    pub fn emptiest(&self, most: usize) -> Vec<Cached> {
        let mut all = self.cache.clone();
        all.sort_unstable_by_key(|c| (std::cmp::Reverse(c.free), c.index));
        all.truncate(most);
        all
    }

    /// Has a page take no record until another is named, or none.
    pub fn close(&mut self, index: Option<u32>) {
        self.closed = index;
    }

    /// Whether `index` takes no record for now.
    pub fn is_closed(&self, index: u32) -> bool {
        self.closed == Some(index)
    }

    /// Whether the file is too thinly filled to grow for a record that records of other pages
    /// could make room for. `used` of `capacity` bytes of the file are in use.
    pub fn is_sparse(&self, used: u64, capacity: u64) -> bool {
        let u = u128::from(self.policy.utilization);
        u128::from(used) * 100 < u128::from(capacity) * u
    }

    /// Whether, and from which class on, the map is to be searched for a record of `need`
    /// bytes that no cached page takes. `used` of `capacity` bytes of the file are in use.
    ///
    /// The file is searched while its utilization is below u (McAuliffe §3.2), and while the
    /// cache is not full: the latter finds the partly filled pages again after opening.
    pub fn search_class(&self, need: usize, max: usize, used: u64, capacity: u64) -> Option<u8> {
        if !self.is_sparse(used, capacity) && self.cache.len() >= self.policy.cache_pages {
            return None;
        }
        let free = 100usize.saturating_sub(usize::from(self.policy.utilization));
        Some(class_for(need, max).max(class_for(free * max / 100, max)))
    }

    /// Tells of the room a page has after a change. A page with more room than the fullest in
    /// a full cache takes its place.
    pub fn offer(&mut self, index: u32, page: PageNo, free: usize) -> Offer {
        if let Some(cached) = self.cache.iter_mut().find(|c| c.index == index) {
            (cached.page, cached.free) = (page, free);
            return Offer::Kept;
        }
        let new = Cached { index, page, free, marked: false };
        if self.cache.len() < self.policy.cache_pages {
            self.cache.push(new);
            return Offer::Added(None);
        }
        match self.cache.iter_mut().min_by_key(|c| (c.free, c.index)) {
            Some(fullest) if fullest.free < free => {
                Offer::Added(Some(std::mem::replace(fullest, new)))
            }
            _ => Offer::Refused,
        }
    }

    /// Records that the map has class 0 (`true`) or the right class for a cached page.
    pub fn mark(&mut self, index: u32, marked: bool) {
        if let Some(cached) = self.cache.iter_mut().find(|c| c.index == index) {
            cached.marked = marked;
        }
    }

    /// Whether `index` is in the cache and marked.
    pub fn is_marked(&self, index: u32) -> bool {
        self.cache.iter().any(|c| c.index == index && c.marked)
    }

    /// Corrects what is remembered of a page, if it is in the cache.
    pub fn correct(&mut self, index: u32, free: usize) {
        if let Some(cached) = self.cache.iter_mut().find(|c| c.index == index) {
            cached.free = free;
        }
    }

    /// Takes a page out of the cache.
    pub fn remove(&mut self, index: u32) -> Option<Cached> {
        let at = self.cache.iter().position(|c| c.index == index)?;
        Some(self.cache.swap_remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_promises_what_a_need_asks() {
        for max in [4048, 8144, 65488] {
            for free in (0..=max).step_by(37).chain([max]) {
                let class = class_of(Room { free, empty: false }, max);
                let empty = class_of(Room { free, empty: true }, max);
                assert_eq!(empty, FRESH);
                for need in (1..=max).step_by(53).chain([free.max(1), max]) {
                    if class_for(need, max) <= class {
                        assert!(need <= free, "need {need} free {free} class {class}");
                    }
                }
                // One class is a fifteenth: nothing more is lost by it.
                if free * 15 > max && free * 15 < 14 * max {
                    assert!(class_for(free - max / 15 - 1, max) <= class, "{free} of {max}");
                }
            }
        }
    }

    #[test]
    fn extents_grow_to_their_limit() {
        let mut sizes = Vec::new();
        let mut pages = 0;
        for _ in 0..7 {
            sizes.push(extent(pages, 8));
            pages += extent(pages, 8);
        }
        assert_eq!(sizes, [1, 1, 2, 4, 8, 8, 8]);
        assert_eq!(extent(1000, 16), 16);
    }

    #[test]
    fn the_cache_keeps_the_emptiest_and_gives_the_fullest_that_fits() {
        let mut p = Placement::new(Policy { cache_pages: 2, utilization: 87 });
        assert_eq!(p.offer(1, PageNo(11), 100), Offer::Added(None));
        assert_eq!(p.offer(2, PageNo(12), 500), Offer::Added(None));
        assert_eq!(p.offer(3, PageNo(13), 100), Offer::Refused);
        p.mark(1, true);
        let out = Cached { index: 1, page: PageNo(11), free: 100, marked: true };
        assert_eq!(p.offer(3, PageNo(13), 300), Offer::Added(Some(out)));
        assert_eq!(p.offer(3, PageNo(13), 200), Offer::Kept);
        assert_eq!(p.choose(200).map(|c| c.index), Some(3));
        assert_eq!(p.choose(201).map(|c| c.index), Some(2));
        assert_eq!(p.choose(501), None);
        p.remove(2);
        assert_eq!(p.choose(201), None);
    }

    #[test]
    fn a_search_waits_for_low_utilization_once_the_cache_is_full() {
        let mut p = Placement::new(Policy { cache_pages: 1, utilization: 87 });
        assert_eq!(p.search_class(100, 4000, 1000, 1000), Some(2));
        p.offer(1, PageNo(11), 10);
        assert_eq!(p.search_class(100, 4000, 870, 1000), None);
        assert_eq!(p.search_class(100, 4000, 869, 1000), Some(2));
        assert_eq!(p.search_class(3000, 4000, 0, 1000), Some(12));
    }
}
