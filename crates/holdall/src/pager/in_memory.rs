//! A snapshot's pages as far as they can be had at once.
//!
//! Owns: [`InMemory`], under one pin for all its looks: a chain of look-ups that mostly ends
//! in memory pays for it once, and several chains may go on side by side. It never waits for
//! a lock or the disk. What it does not find, the snapshot is asked for.
//!
//! Invariant: what the index has of a page is its newest version; if that is not newer than
//! the snapshot, it is the one the snapshot sees, for as long as the snapshot was not given
//! up. So one look at the registration after the last page is enough: what was seen until
//! then was sound bytes in any case, and of the snapshot's state if it still holds.
//!
//! Threads: none of its own. Short-lived: memory of replaced pages is not freed meanwhile.

use super::Snapshot;
use super::index::Pin;
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, PageNo, PageRead, PageRef, Result};
use std::ops::Range;

/// Pages of a snapshot that are in memory. Any error of a look, and one of
/// [`InMemory::check`] after the last, says to do it all again by the snapshot, which tells.
pub struct InMemory<'a> {
    snapshot: &'a Snapshot,
    pin: Pin,
}

impl Snapshot {
    /// The snapshot's pages that are in memory. For a few look-ups: see [`InMemory`].
    #[inline]
    pub fn in_memory(&self) -> InMemory<'_> {
        InMemory { snapshot: self, pin: Pin::new() }
    }
}

impl InMemory<'_> {
    /// Whether what was seen is the snapshot's state: its pages may have gone meanwhile.
    ///
    /// # Errors
    /// As [`Snapshot::check`].
    #[inline]
    pub fn check(&self) -> Result<()> {
        self.snapshot.check()
    }
}

impl PageRead for InMemory<'_> {
    fn page_size(&self) -> usize {
        self.snapshot.page_size()
    }

    /// Nothing is found here: to count a reference is no short look.
    fn page(&self, _page: PageNo, _kind: PageKind) -> Result<PageRef> {
        Err(absent())
    }

    #[inline]
    fn look<T>(
        &self,
        page: PageNo,
        kind: PageKind,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let seen = &self.snapshot.seen;
        if let Some(bytes) = seen.hot.get(page) {
            return page::of_kind(bytes, page, kind).and_then(|()| f(bytes));
        }
        let lsn = self.snapshot.registration.lsn;
        let Some(bytes) = seen.pager.pool.peek(page, lsn, &self.pin) else {
            return Err(absent());
        };
        page::of_kind(bytes, page, kind)?;
        if seen.hot.wants(page, kind, bytes) {
            // The snapshot's own look keeps it.
            return Err(absent());
        }
        f(bytes)
    }

    #[inline]
    fn approach(&self, page: PageNo) {
        self.snapshot.seen.pager.pool.approach(page);
    }

    #[inline]
    fn fetch(&self, page: PageNo, bytes: Range<usize>) {
        self.snapshot.seen.pager.pool.fetch(page, bytes);
    }

    #[inline]
    fn note(&self, page: PageNo, n: u16) -> u16 {
        self.snapshot.seen.pager.pool.note(page, n)
    }

    #[inline]
    fn set_note(&self, page: PageNo, n: u16, value: u16) {
        self.snapshot.seen.pager.pool.set_note(page, n, value);
    }
}

/// What a look that finds nothing in memory returns; its caller asks the slow path.
#[cold]
fn absent() -> Error {
    Error::SnapshotTooOld { age: std::time::Duration::ZERO }
}
