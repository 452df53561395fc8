//! The pages of a snapshot, looked at under one pin.
//!
//! Owns: [`Pinned`]. A lookup is a chain of looks at pages that are mostly in memory: together
//! they take one pin and one look at the snapshot's registration. A page that is not in memory
//! is read as by the snapshot, or is an error of a look that must not wait for the disk.
//!
//! Invariant: what the index has of a page is its newest version; if that is not newer than
//! the snapshot, it is the one the snapshot sees, for as long as the snapshot was not given
//! up. So one look at the registration after the last page is enough: what was seen until
//! then was sound bytes in any case, and of the snapshot's state if it still holds.
//!
//! Threads: none of its own. Short-lived: memory of replaced pages is not freed meanwhile, so
//! the pin ends if a page is read from disk.

use super::Snapshot;
use crate::cache::index::Pin;
use crate::cache::thread_number;
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, PageNo, PageRead, PageRef, Result};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Most pages that are expected at a time.
pub const MOST_EXPECTED: usize = 16;

/// Pages of a snapshot for one lookup, or for several that go on side by side.
pub struct Pinned<'a> {
    snapshot: &'a Snapshot,
    /// None while a page is read from disk.
    pin: RefCell<Option<Pin>>,
    /// Lookups, and pages in memory that they looked at.
    lookups: Cell<u32>,
    looks: Cell<u32>,
    /// Whether a page may be read from disk.
    waits: bool,
    /// What will be looked at next, and how many they are.
    expected: Cell<[PageNo; MOST_EXPECTED]>,
    expecting: Cell<usize>,
}

impl Snapshot {
    /// What `f` finds in this state's pages. `f` runs no code of the user's.
    ///
    /// # Errors
    /// Those of `f`; [`holdall_core::Error::SnapshotTooOld`] if the snapshot was given up.
    #[inline]
    pub fn pinned<T>(&self, f: impl FnOnce(&Pinned<'_>) -> Result<T>) -> Result<T> {
        self.look(true, f)
    }

    /// As [`Snapshot::pinned`], without the disk: [`Error::Cancelled`] if a page is not in
    /// memory.
    ///
    /// # Errors
    /// As [`Snapshot::pinned`].
    #[inline]
    pub fn pinned_in_memory<T>(&self, f: impl FnOnce(&Pinned<'_>) -> Result<T>) -> Result<T> {
        self.look(false, f)
    }

    #[inline]
    fn look<T>(&self, waits: bool, f: impl FnOnce(&Pinned<'_>) -> Result<T>) -> Result<T> {
        let pin = RefCell::new(Some(Pin::new()));
        let (lookups, looks) = (Cell::new(0), Cell::new(0));
        let (expected, expecting) = (Cell::new([PageNo::NONE; MOST_EXPECTED]), Cell::new(0));
        let pages = Pinned { snapshot: self, pin, lookups, looks, waits, expected, expecting };
        let result = f(&pages);
        self.seen.pager.looks.add(thread_number(), pages.lookups.get(), pages.looks.get());
        // Looked at after the last read: pages may have gone while it ran.
        self.check()?;
        result
    }
}

impl Pinned<'_> {
    /// Notes that this many objects are looked up.
    #[inline]
    pub fn count(&self, lookups: usize) {
        self.lookups.set(self.lookups.get() + lookups as u32);
    }

    /// Says which pages will be looked at next, in place of what was said before: those behind
    /// [`MOST_EXPECTED`] are passed over. If the device must be waited for, it is asked for all of
    /// them first, and brings them side by side.
    #[inline]
    pub fn expect(&self, pages: impl Iterator<Item = PageNo>) {
        let (mut expected, mut count) = (self.expected.get(), 0);
        for (place, page) in expected.iter_mut().zip(pages) {
            *place = page;
            count += 1;
        }
        self.expected.set(expected);
        self.expecting.set(count);
    }

    /// Asks the device for what is expected and not in memory, in the order of places, unless the
    /// system has `page`, which is about to be read: then it mostly has the others.
    fn ask_ahead(&self, page: PageNo) {
        let (mut all, count) = (self.expected.get(), self.expecting.replace(0));
        let all = &mut all[..count];
        if all.iter().all(|other| *other == page) || !self.snapshot.images.is_empty() {
            return;
        }
        let (disk, size) = (&self.snapshot.seen.pager.volume.disk, self.page_size() as u64);
        let ask = |page: PageNo| {
            // What is wrong with a place shows when it is read.
            let at = page.0.checked_mul(size);
            at.is_some_and(|at| disk.read_hint(at, size).unwrap_or(false))
        };
        if !ask(page) {
            return;
        }
        all.sort_unstable();
        let pin = self.pin.borrow();
        let mut last = page;
        for other in all.iter().filter(|other| **other != page) {
            if std::mem::replace(&mut last, *other) != *other
                && self.in_memory(*other, pin.as_ref()).is_none()
            {
                ask(*other);
            }
        }
    }

    /// A page that is not in memory. A look around this one, which has bytes under the pin,
    /// keeps it.
    #[cold]
    fn read(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        if !self.waits {
            return Err(Error::Cancelled);
        }
        self.ask_ahead(page);
        let ended = self.pin.try_borrow_mut().map(|mut pin| pin.take()).is_ok();
        let read = self.snapshot.page(page, kind);
        if ended {
            self.pin.replace(Some(Pin::new()));
        }
        read
    }

    /// A page in its place, if it is in memory. Where pages of the state lie elsewhere, the
    /// snapshot looks.
    #[inline]
    fn in_memory<'p>(&self, page: PageNo, pin: Option<&'p Pin>) -> Option<&'p [u8]> {
        if !self.snapshot.images.is_empty() {
            return None;
        }
        self.snapshot.seen.pager.pool.peek(page, self.snapshot.registration.lsn, pin?)
    }

    /// Gives `f` the page if it is in memory and of kind `kind`. For hints, which read nothing
    /// from disk.
    #[inline]
    pub fn hint(&self, page: PageNo, kind: PageKind, f: impl FnOnce(&[u8])) {
        self.with_page_in_memory(page, kind, |bytes| bytes.map(f));
    }

    /// What `f` makes of the page if it is in memory and of kind `kind`; of `None` otherwise.
    #[inline]
    pub fn with_page_in_memory<T>(
        &self,
        page: PageNo,
        kind: PageKind,
        f: impl FnOnce(Option<&[u8]>) -> T,
    ) -> T {
        let pin = self.pin.borrow();
        let bytes = self.in_memory(page, pin.as_ref());
        f(bytes.filter(|bytes| page::of_kind(bytes, page, kind).is_ok()))
    }

    /// Has the index entry of a page prefetched. The first of two hints, each of which needs
    /// some time to work, best filled with the same hint for other pages.
    #[inline]
    pub fn prefetch_entry(&self, page: PageNo) {
        self.snapshot.seen.pager.pool.prefetch_entry(page);
    }

    /// After [`Pinned::prefetch_entry`]: has these bytes of the page prefetched.
    #[inline]
    pub fn prefetch(&self, page: PageNo, bytes: Range<usize>) {
        self.snapshot.seen.pager.pool.prefetch(page, bytes);
    }

    /// What [`Pinned::set_layout_hint`] noted for a page, if that was kept; 0 if it was not.
    /// Good only to say what to prefetch.
    #[inline]
    pub fn layout_hint(&self, page: PageNo, n: u16) -> u16 {
        self.snapshot.seen.pager.pool.hints.get(page, n)
    }

    /// Says where something lies in a page, for later lookups. Pages have some dozens of hints;
    /// larger `n` share them.
    #[inline]
    pub fn set_layout_hint(&self, page: PageNo, n: u16, value: u16) {
        self.snapshot.seen.pager.pool.hints.set(page, n, value);
    }
}

impl PageRead for Pinned<'_> {
    fn page_size(&self) -> usize {
        self.snapshot.page_size()
    }

    fn page(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        if !self.waits {
            return Err(Error::Cancelled);
        }
        self.snapshot.page(page, kind)
    }

    #[inline]
    fn with_page<T>(
        &self,
        page: PageNo,
        kind: PageKind,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let pin = self.pin.borrow();
        if let Some(bytes) = self.in_memory(page, pin.as_ref()) {
            self.looks.set(self.looks.get() + 1);
            return page::of_kind(bytes, page, kind).and_then(|()| f(bytes));
        }
        drop(pin);
        f(&self.read(page, kind)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::txn::{Pager, fixture};
    use holdall_core::Lsn;
    use holdall_io::{Disk, MemoryDisk};
    use parking_lot::Mutex;
    use std::io;
    use std::sync::Arc;

    const SIZE: usize = 4096;

    /// A disk that notes what it is asked to read soon.
    #[derive(Debug)]
    struct Asked {
        disk: MemoryDisk,
        pages: Mutex<Vec<u64>>,
        /// Whether all of it is at hand.
        at_hand: bool,
    }

    impl Disk for Asked {
        fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
            self.disk.read_at(offset, buf)
        }

        fn read_hint(&self, offset: u64, len: u64) -> io::Result<bool> {
            assert_eq!((offset % SIZE as u64, len), (0, SIZE as u64));
            self.pages.lock().push(offset / len);
            Ok(!self.at_hand)
        }

        fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            self.disk.write_at(offset, bytes)
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }

        fn len(&self) -> io::Result<u64> {
            self.disk.len()
        }

        fn grow(&self, len: u64) -> io::Result<()> {
            self.disk.grow(len)
        }

        fn truncate(&self, len: u64) -> io::Result<()> {
            self.disk.truncate(len)
        }

        fn allocated(&self) -> io::Result<u64> {
            self.disk.allocated()
        }
    }

    /// The pages that the disk is asked for by looks at `looks`, of which all of `expected` are
    /// expected before the first.
    fn asked(at_hand: bool, expected: &[u64], looks: &[u64]) -> Vec<u64> {
        let (disk, pages) = (MemoryDisk::from_bytes(heap_pages()), Mutex::default());
        let disk = Arc::new(Asked { disk, pages, at_hand });
        let snapshot = Arc::new(fixture::pager(disk.clone(), SIZE)).snapshot();
        let seen = snapshot.pinned(|pages| {
            pages.expect(expected.iter().map(|no| PageNo(*no)));
            looks.iter().try_for_each(|no| {
                pages.with_page(PageNo(*no), PageKind::Heap, |bytes| {
                    assert_eq!(page::address(bytes), PageNo(*no));
                    Ok(())
                })
            })
        });
        seen.unwrap();
        let pages = disk.pages.lock();
        pages.clone()
    }

    #[test]
    fn the_first_page_that_is_waited_for_has_the_others_asked_for_once() {
        let none = [0_u64; 0];
        assert_eq!(asked(false, &[3, 1, 2, 3, 1], &[3, 1, 2]), [3, 1, 2], "in order of places");
        assert_eq!(asked(false, &[2, 2], &[2, 1]), none, "one page alone is read at once");
        assert_eq!(asked(false, &[], &[1, 2]), none);
        assert_eq!(asked(true, &[1, 2, 3], &[1, 2, 3]), [1], "the system has it");
        assert_eq!(asked(false, &[u64::MAX, 1], &[1]), [1], "no place, no question");
        let many: Vec<u64> = (1..100).map(|no| 1 + no % 7).collect();
        assert_eq!(asked(false, &many, &[2, 1]), [2, 1, 3, 4, 5, 6, 7], "the first sixteen");
    }

    fn heap_pages() -> Vec<u8> {
        let mut bytes = vec![0; 8 * SIZE];
        for no in 1..4 {
            let page = &mut bytes[no * SIZE..][..SIZE];
            page::format(page, PageKind::Heap, PageNo(no as u64), 1);
            page::seal(page, Lsn(0));
        }
        bytes
    }

    /// A pager over heap pages 1 to 3, none of which is in memory.
    fn pager() -> Arc<Pager> {
        let disk = Arc::new(MemoryDisk::from_bytes(heap_pages()));
        Arc::new(fixture::pager(disk, SIZE))
    }

    #[test]
    fn a_look_in_memory_reads_nothing_from_disk() {
        let snapshot = pager().snapshot();
        let look = |pages: &Pinned<'_>| pages.with_page(PageNo(1), PageKind::Heap, |_| Ok(()));
        assert!(matches!(snapshot.pinned_in_memory(look), Err(Error::Cancelled)));
        let whole = |pages: &Pinned<'_>| pages.page(PageNo(1), PageKind::Heap).map(drop);
        assert!(matches!(snapshot.pinned_in_memory(whole), Err(Error::Cancelled)));
        assert_eq!(snapshot.seen.pager.pool_stats().misses, 0);
        snapshot.pinned(look).unwrap();
        snapshot.pinned_in_memory(look).unwrap();
        assert_eq!(snapshot.seen.pager.pool_stats().misses, 1);
    }

    #[test]
    fn a_page_read_inside_another_look_leaves_that_ones_bytes_in_place() {
        let snapshot = pager().snapshot();
        let number = |pages: &Pinned<'_>, no| {
            pages.with_page(PageNo(no), PageKind::Heap, |bytes| Ok(page::address(bytes)))
        };
        let seen = snapshot.pinned(|pages| {
            assert_eq!(number(pages, 1)?, PageNo(1), "read from disk");
            assert!(pages.pin.borrow().is_some(), "the pin begins again");
            pages.with_page(PageNo(1), PageKind::Heap, |bytes| {
                let inner = number(pages, 2)?;
                assert!(pages.pin.borrow().is_some(), "the look around it has its pin");
                Ok([page::address(bytes), inner, number(pages, 3)?])
            })
        });
        assert_eq!(seen.unwrap(), [1, 2, 3].map(PageNo));
        assert_eq!(snapshot.seen.pager.pool_stats().misses, 3);
        let wrong =
            snapshot.pinned(|pages| pages.with_page(PageNo(1), PageKind::Names, |_| Ok(())));
        assert!(wrong.is_err(), "of another kind");
    }
}
