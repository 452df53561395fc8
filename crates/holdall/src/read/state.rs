//! One state of the store, open for reading.
//!
//! Owns: [`ReadState`], a snapshot with what is needed to read pages and segment data; and
//! [`StateView`], what all snapshots of a state share: its root and default collection, decoded.
//!
//! Invariant: a state never changes, so what was found for it stays true; it is looked at only
//! with a snapshot of it open.

use crate::engine::Inner;
use crate::engine::catalog::{Collection, DEFAULT_COLLECTION, Root};
use crate::segment_tree::DataRead;
use crate::space::{LEAST_NEW, ReadHow, read_segment};
use crate::txn::{SharedState, Snapshot};
use holdall_core::page::PageKind;
use holdall_core::space_dir::SpaceLayout;
use holdall_core::{Oid, PageNo, PageRead, PageRef, Result};
use holdall_io::Disk;
use std::sync::{Arc, OnceLock};

/// A state, decoded.
#[derive(Debug)]
pub(crate) struct StateView {
    pub(crate) inner: Arc<Inner>,
    pub(crate) root: Root,
    /// The default collection, looked up when first needed: reads by OID do without.
    pub(crate) default: OnceLock<Option<Collection>>,
    pub(crate) seen: Arc<SharedState>,
}

/// A snapshot with what is needed to read data.
#[derive(Debug)]
pub(crate) struct ReadState {
    pub(crate) snapshot: Snapshot,
    pub(crate) view: Arc<StateView>,
}

impl ReadState {
    pub(crate) fn root(&self) -> &Root {
        &self.view.root
    }

    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.view.inner.pager.volume.disk
    }

    fn data(&self, (start, offset): (PageNo, u64), buf: &mut [u8]) -> Result<()> {
        self.snapshot.check()?;
        let limits = self.view.inner.pager.limits();
        let how = ReadHow { mapped: limits.map_reads, direct: limits.direct_reads };
        let result =
            read_segment(self, &self.view.inner.layout, (self.disk(), how), start, offset, buf);
        // Looked at after the read: the pages may have been reused while it ran.
        self.snapshot.check()?;
        self.snapshot.judged(result)
    }

    /// The byte of the volume `offset` bytes behind the start of page `start`.
    fn byte_of(&self, start: PageNo, offset: u64) -> Option<u64> {
        start.0.checked_mul(self.page_size() as u64).and_then(|at| at.checked_add(offset))
    }

    /// Refuses an object of a collection that was dropped and is not yet emptied: its handle still
    /// leads to it. Cost: nothing if there is none.
    ///
    /// # Errors
    /// [`holdall_core::Error::Dangling`], and those of a lookup.
    #[inline]
    pub(crate) fn check_alive(&self, oid: Oid) -> Result<()> {
        if self.root().drops.root.is_none() {
            return Ok(());
        }
        let place = self.root().handles.lookup(self, oid)?;
        self.root().check_alive(self, oid, place.page)
    }

    /// Whether [`ReadState::default_collection`] reads nothing.
    pub(crate) fn knows_default(&self) -> bool {
        self.view.default.get().is_some()
    }

    pub(crate) fn default_collection(&self) -> Result<Option<&Collection>> {
        if let Some(known) = self.view.default.get() {
            return Ok(known.as_ref());
        }
        let found = self.root().collection(self, DEFAULT_COLLECTION)?;
        Ok(self.view.default.get_or_init(|| found).as_ref())
    }
}

impl PageRead for ReadState {
    fn page_size(&self) -> usize {
        self.snapshot.page_size()
    }

    fn page(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        self.snapshot.page(page, kind)
    }

    #[inline]
    fn with_page<T>(
        &self,
        page: PageNo,
        kind: PageKind,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        self.snapshot.with_page(page, kind, f)
    }
}

impl DataRead for ReadState {
    fn layout(&self) -> &SpaceLayout {
        &self.view.inner.layout
    }

    fn read_data(&self, start: PageNo, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.data((start, offset), buf)
    }

    fn will_need(&self, start: PageNo, offset: u64, len: u64, at_once: u64) -> bool {
        // What goes past the page cache would only be in the way there. Asked first: a look
        // into the cache begins to fill it.
        if at_once >= LEAST_NEW as u64 && self.is_new(start, offset, len) {
            return false;
        }
        // What cannot be read ahead is read, and fails if it must, when it is asked for.
        let disk = &self.view.inner.pager.volume.disk;
        let at = self.byte_of(start, offset);
        at.is_some_and(|at| disk.read_hint(at, len).unwrap_or(false))
    }

    fn is_new(&self, start: PageNo, offset: u64, len: u64) -> bool {
        let pager = &self.view.inner.pager;
        let at = self.byte_of(start, offset);
        let at = at.filter(|_| pager.limits().direct_reads && len >= LEAST_NEW as u64);
        at.is_some_and(|at| pager.volume.disk.reads_bulk(at, len))
    }
}
