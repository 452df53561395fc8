//! Snapshots: a consistent state of all pages.
//!
//! Owns: [`Snapshot`], which keeps the versions it needs by its registration in the horizon.

use super::{Pager, Places};
use crate::cache::horizon::{Needed, Registration};
use crate::cache::index::Pin;
use crate::cache::pool::Reading;
use crate::images::Images;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::{Lsn, PageNo, PageRead, PageRef, Result};
use std::sync::Arc;

impl Reading for Snapshot {
    fn needed(&self) -> Needed {
        self.seen.pager.needed()
    }

    fn old_version(&self, page: PageNo, lsn: Lsn) -> Option<Result<PageRef>> {
        self.seen.pager.old_version(page, lsn)
    }

    fn is_live(&self) -> bool {
        self.check().is_ok()
    }
}

/// What snapshots of one state share. Opening another one counts this as used and nothing
/// that all threads write to.
#[derive(Debug)]
pub struct SharedState {
    pub(super) lsn: Lsn,
    pub(super) pager: Arc<Pager>,
}

/// A consistent state of all pages, held as long as this value lives.
#[derive(Debug)]
pub struct Snapshot {
    pub(super) registration: Registration,
    pub(super) seen: Arc<SharedState>,
    /// Which of its pages lie elsewhere.
    pub(super) images: Images,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.seen.pager.horizon.close(&self.registration);
    }
}

impl Snapshot {
    /// The commits it sees: all at or below.
    pub fn lsn(&self) -> Lsn {
        self.registration.lsn
    }

    /// # Errors
    /// [`holdall_core::Error::SnapshotTooOld`] if it was given up.
    #[inline]
    pub fn check(&self) -> Result<()> {
        self.seen.pager.horizon.check(&self.registration)
    }

    /// Whether all pages of this state lie in their places.
    pub fn has_no_images(&self) -> bool {
        self.images.is_empty()
    }

    /// Where a page lies, if not in its place. Cost: none while no page lies elsewhere.
    ///
    /// # Errors
    /// As [`PageRead::page`].
    pub fn image_of(&self, page: PageNo) -> Result<Option<PageNo>> {
        let found = self.images.get(self, page);
        self.check()?;
        self.judged(found)
    }

    /// The page that lies in place `page` of this state, without a look at the tree of images.
    ///
    /// # Errors
    /// As [`PageRead::page`].
    pub fn page_in_place(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        let places = Places { pager: &self.seen.pager, lsn: self.registration.lsn, reading: self };
        let found = places.page(page, kind);
        self.check()?;
        self.judged(found)
    }

    /// What a read of this state gave, if others may have written there meanwhile.
    ///
    /// # Errors
    /// Its own; [`holdall_core::Error::SnapshotTooOld`] if that explains it.
    pub fn judged<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|e| self.seen.pager.judge(e, self.registration.lsn))
    }

    /// What later snapshots of the same state can share.
    pub fn seen(&self) -> &Arc<SharedState> {
        &self.seen
    }
}

impl PageRead for Snapshot {
    fn page_size(&self) -> usize {
        self.seen.pager.page_size()
    }

    fn page(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        self.seen.pager.horizon.check_fork()?;
        let places = Places { pager: &self.seen.pager, lsn: self.registration.lsn, reading: self };
        let result = places.find(self.images, page, kind);
        // Looked at after the read: pages may have gone while it ran.
        self.check()?;
        self.judged(result)
    }

    #[inline]
    fn with_page<T>(
        &self,
        page: PageNo,
        kind: PageKind,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let elsewhere = !self.images.is_empty() && kind.may_lie_elsewhere();
        if elsewhere && !mutation::is(Mutation::R35Looked) {
            return f(&self.page(page, kind)?);
        }
        let pin = Pin::new();
        let Some(bytes) = self.seen.pager.pool.peek(page, self.registration.lsn, &pin) else {
            // A pin held over a read from disk would keep memory from being freed.
            drop(pin);
            return f(&self.page(page, kind)?);
        };
        page::of_kind(bytes, page, kind)?;
        let result = f(bytes);
        // Looked at after the read: pages may have gone while it ran.
        self.check()?;
        result
    }
}
