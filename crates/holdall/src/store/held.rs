//! A state that the process which writes a store holds for a reader elsewhere: both ends of it.
//!
//! Owns: no state. The crate `holdall-control` brings the two together over a socket.

use super::{Store, open_error};
use crate::cache::holder::Holder;
use crate::engine::{Options, open_held};
use crate::read::Reader;
use holdall_core::page::PageKind;
use holdall_core::{Error, Lsn, PageNo, Result};
use holdall_io::{Access, FileStorage, Storage};
use std::path::Path;
use std::sync::Arc;

impl Store {
    /// Whether it was opened for writing and is not closed.
    pub fn is_writable(&self) -> bool {
        self.inner.is_open_for_writing()
    }

    /// The number that the store was given when it was created. A copy of the file has the same.
    pub fn id(&self) -> [u8; 16] {
        self.opened().pager.volume.superblock().store_id
    }
}

impl Reader {
    /// Whether the state is still held, not given up.
    #[doc(hidden)]
    pub fn is_live(&self) -> bool {
        self.state.snapshot.check().is_ok()
    }

    /// The page that this state has in its place `page`, of the kind with this number. For a reader
    /// elsewhere, which holds it against its checksum. Cost: a page read at most.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`]; [`Error::Corrupt`] if no such page lies there; [`Error::Io`].
    #[doc(hidden)]
    pub fn page_in_place(&self, page: PageNo, kind: u8) -> Result<Vec<u8>> {
        let unknown = || Error::Invalid(format!("no page is of kind {kind}"));
        let kind = PageKind::from_u8(kind).ok_or_else(unknown)?;
        Ok(self.state.snapshot.page_in_place(page, kind)?.to_vec())
    }
}

impl Options {
    /// Opens the state at `lsn` of store number `id`, which another process holds.
    ///
    /// # Errors
    /// As [`Options::open_read_only`]; [`Error::Invalid`] if the other process has another store
    /// open; [`Error::SnapshotTooOld`] if it holds the state no more.
    #[doc(hidden)]
    pub fn open_held(
        &self,
        path: impl AsRef<Path>,
        state: ([u8; 16], Lsn),
        holder: Arc<dyn Holder>,
    ) -> Result<Store> {
        let path = path.as_ref();
        let storage = FileStorage::open(path, Access::ReadOnly);
        self.open_held_on(Arc::new(storage.map_err(|e| open_error(path, e))?), state, holder)
    }

    /// As [`Options::open_held`], on any storage.
    ///
    /// # Errors
    /// As [`Options::open_held`].
    #[doc(hidden)]
    pub fn open_held_on(
        &self,
        storage: Arc<dyn Storage>,
        state: ([u8; 16], Lsn),
        holder: Arc<dyn Holder>,
    ) -> Result<Store> {
        self.check()?;
        Ok(Store::from_inner(open_held(&storage, self, state, &holder)?, None, None))
    }
}
