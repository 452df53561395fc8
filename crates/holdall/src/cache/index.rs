//! Where readers find the newest versions of pages without a lock.
//!
//! Owns: [`Index`], a table of pointers to page versions, and [`Pin`], under which what was
//! found there stays in memory. It repeats what the pool's shards know and may know less: a
//! reader that does not find its page here asks the shard.
//!
//! Threads: each place belongs to one shard, under whose lock alone it is changed, apart from
//! the mark of use. Readers take no lock and write nothing but that mark, when it changes.
//!
//! The argument for the unsafe code:
//! - A place is null or a `PageRef` of `page_size` bytes turned into a pointer, one count
//!   of which the place owns. Bytes that are shared are never written.
//! - Who takes a pointer out of its place gives the count up only through the collector,
//!   which waits for every pin taken before. A reader loads a place under a pin, so the count
//!   it relies on is there until the pin ends; what it is lent does not outlive the pin.
//! - The store of a pointer releases, the load acquires: the bytes are seen as written.
//! - The lowest bit of a pointer is the mark of use: a `PageRef` aligns its bytes as its
//!   count, checked below.
#![expect(unsafe_code, reason = "pointers shared without a lock; the argument is above")]

use crate::prefetch;
use crossbeam_epoch::{self as epoch, Guard};
use holdall_core::page;
use holdall_core::{Lsn, PageNo, PageRef};
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::AcqRel};
use std::sync::atomic::{Ordering::Acquire, Ordering::Relaxed};

/// The bit of a pointer that says the page was used since the clock's hand passed.
const USED: usize = 1;
/// Most places: 64 MiB of them. In a larger pool more pages are found in their shard only.
const MOST_PLACES: usize = 1 << 23;
/// Neighbours among this many pages, the smallest space by default, keep neighbouring places.
const STRIDE_BITS: u32 = 14;
// A `PageRef` keeps its count before the bytes, so these are aligned as the count is.
const _: () = assert!(align_of::<AtomicUsize>() > USED);

/// While it lives, pages found in an [`Index`] stay in memory.
pub(crate) struct Pin(Guard);

impl Pin {
    /// Begins to look. Cheap, and cheaper if the thread has a pin already. While any thread
    /// keeps one, no page taken out of any index is freed: it is for one call's look-ups.
    pub(crate) fn new() -> Self {
        Self(epoch::pin())
    }
}

/// Newest versions by page number.
#[derive(Debug)]
pub(crate) struct Index {
    places: Box<[AtomicPtr<u8>]>,
    page_size: usize,
}

impl Index {
    /// An index for a pool of `pages` pages of `page_size` bytes. Cost: 16 to 32 bytes a
    /// page, at most [`MOST_PLACES`] of 8.
    pub(crate) fn new(pages: usize, page_size: usize) -> Self {
        // A power of two from the start, since rounding up the largest number overflows.
        let places = (pages.clamp(1, MOST_PLACES / 2) * 2).next_power_of_two();
        Self { places: empty_places(places), page_size }
    }

    /// The number of the pair of places a page can have: pages that share it must share a
    /// shard. Neighbouring pages have neighbouring places, which share lines of the cache.
    #[inline]
    pub(crate) fn pair(&self, page: PageNo) -> usize {
        self.first(page) / 2
    }

    #[inline]
    fn first(&self, page: PageNo) -> usize {
        // The directories of spaces lie a power of two apart: without the upper bits they would
        // all have the same few places.
        (page.0 ^ page.0 >> STRIDE_BITS) as usize & (self.places.len() - 1)
    }

    /// The page's newest version, if it is here and a reader at `lsn` sees it.
    #[inline]
    pub(crate) fn get<'p>(&self, page: PageNo, lsn: Lsn, pin: &'p Pin) -> Option<&'p [u8]> {
        let first = self.first(page);
        let bytes = self.at(first, page, pin).or_else(|| self.at(first ^ 1, page, pin))?;
        (page::lsn(bytes) <= lsn).then_some(bytes)
    }

    /// Has the page's place prefetched.
    #[inline]
    pub(crate) fn prefetch_entry(&self, page: PageNo) {
        if let Some(place) = self.places.get(self.first(page)) {
            prefetch::line(place);
        }
    }

    /// Has these bytes of the version prefetched that the page's place points to.
    /// Looks at nothing that a pin would be needed for.
    #[inline]
    pub(crate) fn prefetch(&self, page: PageNo, bytes: Range<usize>) {
        let first = self.first(page);
        let start = match self.peek(first) {
            none if none.is_null() => self.peek(first ^ 1),
            start => start,
        };
        if !start.is_null() {
            prefetch::range(start, bytes);
        }
    }

    /// As [`Index::get`], counting a reference.
    pub(crate) fn share(&self, page: PageNo, lsn: Lsn) -> Option<PageRef> {
        let pin = Pin::new();
        let bytes = self.get(page, lsn, &pin)?.as_ptr();
        // SAFETY: the pointer came from `PageRef::into_raw` of bytes of this length, and the
        // place's own count is there while the pin lives.
        let shared = ManuallyDrop::new(unsafe { PageRef::from_raw(bytes, self.page_size) });
        Some((*shared).clone())
    }

    #[inline]
    fn at<'p>(&self, place: usize, page: PageNo, _pin: &'p Pin) -> Option<&'p [u8]> {
        let place = &self.places[place];
        let found = place.load(Acquire);
        let start = untagged(found);
        if start.is_null() {
            return None;
        }
        // SAFETY: not null, so a place's pointer, loaded under the pin: `page_size` bytes that
        // nobody writes and that are there while the pin lives (see the head of this file).
        let bytes: &'p [u8] = unsafe { std::slice::from_raw_parts(start, self.page_size) };
        if page::address(bytes) != page {
            return None;
        }
        if found == start {
            // Only if it changes. If the place changed too, the mark is lost: a hint.
            let marked = start.map_addr(|a| a | USED);
            let _ = place.compare_exchange(start, marked, Relaxed, Relaxed);
        }
        Some(bytes)
    }

    /// Puts `new` in the place of `old`, the version it follows, or in a free place, or in
    /// another page's. Call it under the lock of the page's shard.
    pub(crate) fn publish(&self, page: PageNo, old: Option<&PageRef>, new: &PageRef) {
        if new.len() != self.page_size || page::address(new) != page {
            // Not what readers may be given; the shard has it.
            if let Some(old) = old {
                self.withdraw(page, old);
            }
            return;
        }
        let first = self.first(page);
        let holds = |place: usize, what: *const u8| ptr::eq(self.peek(place), what);
        let start = new.clone().into_raw().cast_mut();
        let chosen = old
            .and_then(|old| [first, first ^ 1].into_iter().find(|p| holds(*p, old.as_ptr())))
            .or_else(|| [first, first ^ 1].into_iter().find(|p| holds(*p, ptr::null())));
        self.exchange(chosen.unwrap_or(first), start);
    }

    /// Takes `bytes`, the version of `page` that was published last, out of its place, if it
    /// has one. Call it under the lock of the page's shard.
    pub(crate) fn withdraw(&self, page: PageNo, bytes: &PageRef) {
        if let Some(place) = self.place_of(page, bytes) {
            self.exchange(place, ptr::null_mut());
        }
    }

    /// Whether the version published last was used since this was last asked. Call it under
    /// the lock of the page's shard.
    pub(crate) fn take_used(&self, page: PageNo, bytes: &PageRef) -> bool {
        let Some(place) = self.place_of(page, bytes) else { return false };
        let start = bytes.as_ptr().cast_mut();
        let marked = start.map_addr(|a| a | USED);
        // Only this thread changes what the place points to.
        self.places[place].compare_exchange(marked, start, Relaxed, Relaxed).is_ok()
    }

    fn place_of(&self, page: PageNo, bytes: &PageRef) -> Option<usize> {
        let first = self.first(page);
        [first, first ^ 1].into_iter().find(|p| ptr::eq(self.peek(*p), bytes.as_ptr()))
    }

    /// Where a place points, only to be compared.
    fn peek(&self, place: usize) -> *const u8 {
        untagged(self.places[place].load(Relaxed))
    }

    fn exchange(&self, place: usize, new: *mut u8) {
        let old = untagged(self.places[place].swap(new, AcqRel));
        if !old.is_null() {
            let pin = Pin::new();
            let len = self.page_size;
            // SAFETY: no place holds the pointer any more and its count is ours; readers that
            // loaded it before the swap have pins, which the collector waits for. Giving up a
            // count borrows nothing and may happen on any thread.
            unsafe { pin.0.defer_unchecked(move || drop(PageRef::from_raw(old, len))) };
        }
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        for place in &mut self.places {
            let start = untagged(*place.get_mut());
            if !start.is_null() {
                // SAFETY: nobody else has the index; the count is the place's own.
                drop(unsafe { PageRef::from_raw(start, self.page_size) });
            }
        }
    }
}

/// `count` places that hold nothing. Zeroed memory of this size comes from the system page by
/// page when it is first touched: opening a store does not pay for a pool it may never fill.
fn empty_places(count: usize) -> Box<[AtomicPtr<u8>]> {
    const _: () = assert!(size_of::<AtomicPtr<u8>>() == size_of::<usize>());
    const _: () = assert!(align_of::<AtomicPtr<u8>>() == align_of::<usize>());
    let zeros = Box::into_raw(vec![0_usize; count].into_boxed_slice());
    // SAFETY: the memory is that of a box of as many values of the same size and alignment
    // (above), owned by nobody else; a pointer whose bytes are all zero is the null pointer.
    unsafe { Box::from_raw(zeros as *mut [AtomicPtr<u8>]) }
}

#[inline]
fn untagged(pointer: *mut u8) -> *mut u8 {
    pointer.map_addr(|a| a & !USED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_core::page::PageKind;
    use parking_lot::Mutex;
    use std::sync::atomic::AtomicBool;

    const SIZE: usize = 64;

    /// A page whose bytes after the header repeat its version.
    fn version(no: u64, lsn: u64) -> PageRef {
        let mut bytes = vec![0; SIZE];
        page::format(&mut bytes, PageKind::Heap, PageNo(no), 0);
        bytes[page::HEADER..].fill(lsn as u8);
        page::seal(&mut bytes, Lsn(lsn));
        bytes.into()
    }

    #[test]
    fn a_reader_finds_the_newest_version_it_may_see() {
        let index = Index::new(4, SIZE);
        let (pin, all) = (Pin::new(), Lsn(u64::MAX));
        assert!(index.get(PageNo(3), all, &pin).is_none());
        let (a, b) = (version(3, 10), version(3, 20));
        index.publish(PageNo(3), None, &a);
        assert_eq!(index.get(PageNo(3), Lsn(10), &pin), Some(&*a));
        assert!(index.get(PageNo(3), Lsn(9), &pin).is_none(), "too new for it");
        assert!(index.get(PageNo(11), all, &pin).is_none(), "another page of this place");
        let lent = index.get(PageNo(3), all, &pin).unwrap();
        index.publish(PageNo(3), Some(&a), &b);
        assert_eq!(a.count(), 2, "what is lent keeps its count while the pin lives");
        assert_eq!(lent, &*a);
        assert!(index.get(PageNo(3), Lsn(19), &pin).is_none());
        assert!(index.share(PageNo(3), Lsn(20)).is_some_and(|s| s.is_same(&b)));
        index.withdraw(PageNo(3), &b);
        assert!(index.get(PageNo(3), all, &pin).is_none());
    }

    #[test]
    fn two_pages_share_a_pair_and_a_third_takes_a_place() {
        let index = Index::new(4, SIZE);
        let pages: Vec<_> = [1, 9, 17].map(|no| version(no, 5)).into();
        let found = |no| index.share(PageNo(no), Lsn(5)).is_some();
        index.publish(PageNo(1), None, &pages[0]);
        index.publish(PageNo(9), None, &pages[1]);
        assert!(found(1) && found(9));
        index.publish(PageNo(17), None, &pages[2]);
        assert!(!found(1) && found(9) && found(17));
        index.withdraw(PageNo(1), &pages[0]);
        assert!(found(9) && found(17), "what has no place is withdrawn from none");
        drop(index);
        // What was taken out may wait for the collector; what was there to the end does not.
        assert_eq!(pages[1].count(), 1);
    }

    #[test]
    fn the_largest_pool_has_an_index_and_the_smallest_two_places() {
        assert_eq!(Index::new(0, SIZE).places.len(), 2);
        assert_eq!(Index::new(3, SIZE).places.len(), 8);
        assert_eq!(Index::new(usize::MAX, SIZE).places.len(), MOST_PLACES);
    }

    #[test]
    fn a_use_is_marked_once_and_taken_once() {
        let index = Index::new(4, SIZE);
        let a = version(2, 1);
        index.publish(PageNo(2), None, &a);
        assert!(!index.take_used(PageNo(2), &a));
        for _ in 0..2 {
            assert!(index.get(PageNo(2), Lsn(1), &Pin::new()).is_some());
        }
        assert!(index.take_used(PageNo(2), &a));
        assert!(!index.take_used(PageNo(2), &a));
    }

    #[test]
    fn readers_see_whole_versions_while_they_are_replaced() {
        let rounds = if cfg!(miri) { 50 } else { 20_000 };
        let (index, stop) = (Index::new(2, SIZE), AtomicBool::new(false));
        let shard = Mutex::new([None, None, None]);
        std::thread::scope(|scope| {
            for reader in 0..2 {
                let (index, stop) = (&index, &stop);
                scope.spawn(move || {
                    let (mut seen, mut no) = ([0; 3], reader);
                    while !stop.load(Relaxed) {
                        no = (no + 1) % 3;
                        let pin = Pin::new();
                        let page = PageNo(4 * no as u64 + 1);
                        let Some(bytes) = index.get(page, Lsn(u64::MAX), &pin) else { continue };
                        let lsn = page::lsn(bytes).0;
                        assert!(lsn >= seen[no], "an older version came back");
                        assert!(bytes[page::HEADER..].iter().all(|b| *b == lsn as u8));
                        assert!(page::check(bytes, page).is_ok());
                        seen[no] = lsn;
                    }
                });
            }
            for writer in 0..2 {
                let (index, shard) = (&index, &shard);
                scope.spawn(move || {
                    for round in 0..rounds {
                        let no = (round + writer) % 3;
                        let page = PageNo(4 * no as u64 + 1);
                        let mut shard = shard.lock();
                        let old: Option<(u64, PageRef)> = shard[no].take();
                        let lsn = old.as_ref().map_or(1, |(lsn, _)| lsn + 1);
                        let new = version(page.0, lsn);
                        match old {
                            Some((_, old)) if round % 7 == 0 => index.withdraw(page, &old),
                            Some((_, old)) => index.publish(page, Some(&old), &new),
                            None => index.publish(page, None, &new),
                        }
                        shard[no] = Some((lsn, new));
                    }
                });
            }
            scope.spawn(|| {
                // Ends when the writers have: each takes the lock for every round.
                while shard.lock().iter().flatten().map(|(lsn, _)| lsn).sum::<u64>()
                    < 2 * rounds as u64
                {
                    std::thread::yield_now();
                }
                stop.store(true, Relaxed);
            });
        });
    }
}
