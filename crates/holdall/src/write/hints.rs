//! Hints for objects and collections, in a transaction.

use super::ObjectsMut;
use crate::engine::key::Key;
use crate::object::{Hints, StoredHints};
use holdall_core::page::PageKind;
use holdall_core::{PageWrite, Result};

impl ObjectsMut {
    /// Says how an object will be used from here on. What is stored stays where it is; edits
    /// follow the new hints. Nothing that is read changes.
    ///
    /// # Errors
    /// [`Error::NotFound`](holdall_core::Error::NotFound),
    /// [`Error::Dangling`](holdall_core::Error::Dangling),
    /// [`Error::Full`](holdall_core::Error::Full).
    ///
    /// ```
    /// # use holdall::{Hints, Store};
    /// # fn main() -> holdall::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("holdall-hints-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let store = Store::open_or_create(dir.join("s.holdall"))?;
    /// store.write(|tx| {
    ///     tx.put("log", b"")?;
    ///     tx.set_hints("log", Hints { append_mostly: true, ..Hints::default() })?;
    ///     tx.append("log", b"first line\n")
    /// })?;
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_hints<'k>(&mut self, key: impl Into<Key<'k>>, hints: Hints) -> Result<()> {
        let oid = self.resolve(&key.into())?;
        let kept = hints.kept(self.page_size());
        self.with_object(oid, |objects, _| objects.set_hints(oid, kept))
    }

    /// Says how objects of the current collection will be used that are made large from here
    /// on and have no hints of their own.
    ///
    /// # Errors
    /// [`Error::Full`](holdall_core::Error::Full) if the collection is new.
    pub fn set_collection_hints(&mut self, hints: Hints) -> Result<()> {
        self.keep_collection_hints(hints.kept(self.page_size()))
    }

    pub(crate) fn keep_collection_hints(&mut self, kept: StoredHints) -> Result<()> {
        self.with_objects(|objects, c| {
            c.hints = kept;
            // The commit writes the collection, but only if a page is changed.
            let root = objects.tx.root();
            objects.tx.page_mut(root, PageKind::Root).map(drop)
        })
    }
}
