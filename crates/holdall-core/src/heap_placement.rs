//! Which page takes a record: HY(n,u) (McAuliffe §3.2).
//!
//! Owns: the free-space classes, the pid cache of up to n pages and the decision to search
//! the file. Pure, on counts: it never looks at a page, so it can be run in a model. What it
//! remembers is a hint; the heap file checks it against the page.
//!
//! The map records a cached page as class 0 ("full"): its class is written when it leaves
//! the cache ([`Cached::marked`]). Threads: belongs to the writer of its collection.

use crate::PageNo;
use crate::heap_page::FreeSpace;
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

/// Class of a page of a file whose empty pages have room for `max` bytes: 15 if it is
/// empty, else the largest c of 0..=14 with `room.free >= c/15 max`.
pub fn class_of(room: FreeSpace, max: usize) -> u8 {
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
    /// The fullest first, by room and index: new records mostly go to one of the
    /// last, where a look begins.
    cache: Vec<Cached>,
    stamp: u32,
    /// A page that takes no record for now.
    closed: Option<u32>,
    /// No page can be had: whatever room there is counts.
    tight: bool,
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
    /// changed: for a collection whose pages are gone, or if no earlier state was kept.
    pub fn reset(&mut self) {
        *self = Self::new(self.policy);
    }

    /// To be called before each use with the file's count of changes: if it is not the one
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
        let fits = &self.cache[self.cache.partition_point(|c| c.free < need)..];
        fits.iter().find(|c| !self.is_closed(c.index)).copied()
    }

    /// As [`Placement::choose`], and how long a record at least must be to go there too: a
    /// shorter one goes to a page with less room. Good until that page has no room for it.
    pub fn choose_for_run(&self, need: usize) -> Option<(Cached, usize)> {
        if self.closed.is_some() {
            return None;
        }
        let at = self.cache.partition_point(|c| c.free < need);
        let before = at.checked_sub(1).and_then(|at| self.cache.get(at));
        Some((*self.cache.get(at)?, before.map_or(0, |c| c.free + 1)))
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

    /// Says whether pages run out: the file then counts as sparse, however full it is.
    pub fn tighten(&mut self, tight: bool) {
        self.tight = tight;
    }

    /// Whether `index` takes no record for now.
    pub fn is_closed(&self, index: u32) -> bool {
        self.closed == Some(index)
    }

    /// Whether the file is too thinly filled to grow for a record that records of other pages
    /// could make room for. `used` of `capacity` bytes of the file are in use.
    pub fn is_sparse(&self, used: u64, capacity: u64) -> bool {
        let u = u128::from(self.policy.utilization);
        self.tight || u128::from(used) * 100 < u128::from(capacity) * u
    }

    /// Whether a further page would push one out of the cache that has room for `free` bytes,
    /// which is then as good as lost.
    pub fn would_lose(&self, free: usize) -> bool {
        self.cache.len() >= self.policy.cache_pages
            && self.cache.first().is_some_and(|fullest| fullest.free >= free)
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
        if self.tight {
            return Some(class_for(need, max));
        }
        let free = 100usize.saturating_sub(usize::from(self.policy.utilization));
        Some(class_for(need, max).max(class_for(free * max / 100, max)))
    }

    /// Tells of the room a page has after a change. A page with more room than the fullest in
    /// a full cache takes its place.
    pub fn offer(&mut self, index: u32, page: PageNo, free: usize) -> Offer {
        if let Some(at) = self.position(index) {
            let cached = Cached { page, free, ..self.cache[at] };
            self.put(at, cached);
            return Offer::Kept;
        }
        let new = Cached { index, page, free, marked: false };
        let mut out = None;
        if self.cache.len() >= self.policy.cache_pages {
            if self.cache.first().is_none_or(|fullest| fullest.free >= free) {
                return Offer::Refused;
            }
            out = Some(self.cache.remove(0));
        }
        let at = self.cache.len();
        self.cache.push(new);
        self.put(at, new);
        Offer::Added(out)
    }

    /// Tells of the room that a page in the cache has, if the map records it as class 0:
    /// nothing else is to be done then. Returns whether it is so.
    #[inline]
    pub fn renew(&mut self, index: u32, free: usize) -> bool {
        let Some(at) = self.position(index) else { return false };
        let known = self.cache[at];
        if known.marked {
            self.put(at, Cached { free, ..known });
        }
        known.marked
    }

    /// Where a page is in the cache.
    fn position(&self, index: u32) -> Option<usize> {
        self.cache.iter().rposition(|c| c.index == index)
    }

    /// Puts `cached` in the place of the one at `at`, and then where it belongs in the order.
    fn put(&mut self, at: usize, cached: Cached) {
        let key = |c: &Cached| (c.free, c.index);
        self.cache[at] = cached;
        let near = |i: usize| self.cache.get(i).map(key);
        let before = at.checked_sub(1).and_then(near);
        if before <= Some(key(&cached)) && near(at + 1).is_none_or(|k| k >= key(&cached)) {
            // Mostly, for a record takes little of a page's room.
            return;
        }
        let (below, above) = (&self.cache[..at], &self.cache[at + 1..]);
        let to = below.partition_point(|c| key(c) < key(&cached));
        if to < at {
            self.cache[to..=at].rotate_right(1);
        } else {
            let behind = above.partition_point(|c| key(c) < key(&cached));
            self.cache[at..=at + behind].rotate_left(1);
        }
    }

    /// Records that the map has class 0 (`true`) or the right class for a cached page.
    pub fn mark(&mut self, index: u32, marked: bool) {
        if let Some(at) = self.position(index) {
            self.cache[at].marked = marked;
        }
    }

    /// Whether `index` is in the cache and marked.
    pub fn is_marked(&self, index: u32) -> bool {
        self.position(index).is_some_and(|at| self.cache[at].marked)
    }

    /// Corrects what is remembered of a page, if it is in the cache.
    pub fn correct(&mut self, index: u32, free: usize) {
        if let Some(at) = self.position(index) {
            let cached = Cached { free, ..self.cache[at] };
            self.put(at, cached);
        }
    }

    /// Takes a page out of the cache.
    pub fn remove(&mut self, index: u32) -> Option<Cached> {
        self.position(index).map(|at| self.cache.remove(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn a_class_promises_what_a_need_asks() {
        for max in [4048, 8144, 65488] {
            for free in (0..=max).step_by(37).chain([max]) {
                let class = class_of(FreeSpace { free, empty: false }, max);
                let empty = class_of(FreeSpace { free, empty: true }, max);
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
    fn the_cache_does_what_a_list_looked_through_would() {
        let (mut rng, mut p) = (SmallRng::seed_from_u64(3), Placement::new(Policy::default()));
        let mut model: Vec<Cached> = Vec::new();
        for _ in 0..20_000 {
            let (index, free) = (rng.random_range(0..100_u32), rng.random_range(0..300));
            let page = PageNo(u64::from(index) + 7);
            let known = model.iter().position(|c| c.index == index);
            match rng.random_range(0..10) {
                0 => assert_eq!(p.remove(index), known.map(|at| model.remove(at))),
                1 => {
                    p.correct(index, free);
                    known.into_iter().for_each(|at| model[at].free = free);
                }
                2 => {
                    p.mark(index, free > 150);
                    known.into_iter().for_each(|at| model[at].marked = free > 150);
                }
                3 => {
                    let marked = known.filter(|at| model[*at].marked);
                    marked.into_iter().for_each(|at| model[at].free = free);
                    assert_eq!(p.renew(index, free), marked.is_some());
                }
                _ => {
                    let new = Cached { index, page, free, marked: false };
                    let least = (0..model.len()).min_by_key(|i| (model[*i].free, model[*i].index));
                    let want = match (known, least) {
                        (Some(at), _) => {
                            model[at].free = free;
                            Offer::Kept
                        }
                        (None, Some(at)) if model.len() == 64 && model[at].free >= free => {
                            Offer::Refused
                        }
                        (None, Some(at)) if model.len() == 64 => {
                            Offer::Added(Some(std::mem::replace(&mut model[at], new)))
                        }
                        (None, _) => {
                            model.push(new);
                            Offer::Added(None)
                        }
                    };
                    assert_eq!(p.offer(index, page, free), want);
                }
            }
            p.close((free % 3 == 0).then_some(index));
            let need = rng.random_range(1..320);
            let fits = model.iter().filter(|c| c.free >= need && !p.is_closed(c.index));
            assert_eq!(p.choose(need), fits.min_by_key(|c| (c.free, c.index)).copied());
            if let Some((chosen, least)) = p.choose_for_run(need) {
                let there = |need| p.choose(need).map(|c| c.index) == Some(chosen.index);
                assert!((0..=chosen.free).all(|need| there(need) == (need >= least)));
            }
            assert_eq!(p.is_marked(index), model.iter().any(|c| c.index == index && c.marked));
            assert_eq!(p.cached().len(), model.len());
        }
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
