//! Which files of the operating system are the store's own.
//!
//! Owns no state. Files are recognised by device and inode, since many names may lead to one.

use super::Store;
use crate::read::Reader;
use holdall_core::{Error, Result};
use holdall_io::FileId;
use std::ffi::OsStr;

impl Reader {
    /// What the system says of the store's file; `None` of what is no file.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn file_metadata(&self) -> Result<Option<std::fs::Metadata>> {
        let fail = |e| Error::io("asking for the store's file", e);
        self.state.view.inner.storage.volume().metadata().map_err(fail)
    }
}

impl Store {
    /// Whether `file` is the store's file or its log, whatever name, link or descriptor led to
    /// it. Writing to such a file destroys the store; reading it as the content of an object
    /// does not end, since the store grows meanwhile. No file is a store's in memory.
    /// Cost: at most three system calls.
    ///
    /// ```
    /// use holdall::{FileId, Store};
    /// # let dir = std::env::temp_dir().join(format!("holdall-own-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// let path = dir.join("photos.holdall");
    /// let store = Store::open_or_create(&path)?;
    /// std::fs::hard_link(&path, dir.join("alias")).unwrap();
    /// let found = std::fs::metadata(dir.join("alias")).unwrap();
    /// assert!(store.is_own_file(FileId::from_metadata(&found))?);
    /// # drop(store);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_own_file(&self, file: FileId) -> Result<bool> {
        let fail = |e| Error::io("asking which files the store has", e);
        if self.inner.storage.volume().file_id().map_err(fail)? == Some(file) {
            return Ok(true);
        }
        let log = match self.inner.pager.log.disk() {
            Some(disk) => disk.file_id(),
            None => self.inner.storage.log_id(),
        };
        Ok(log.map_err(fail)? == Some(file))
    }

    /// Whether a file put into the directory `dir` as `name` would lie where the store has its
    /// log, or will have it: another file there keeps the store from being changed.
    /// Cost: a comparison of names, and a system call if they are the same.
    ///
    /// ```
    /// use holdall::{FileId, Store};
    /// # let dir = std::env::temp_dir().join(format!("holdall-place-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// let store = Store::open_or_create(dir.join("photos.holdall"))?;
    /// let here = FileId::from_metadata(&std::fs::metadata(&dir).unwrap());
    /// assert!(store.is_log_place(here, "photos.holdall-log".as_ref())?);
    /// assert!(!store.is_log_place(here, "other-log".as_ref())?);
    /// # drop(store);
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_log_place(&self, dir: FileId, name: &OsStr) -> Result<bool> {
        let fail = |e| Error::io("looking at the store's directory", e);
        self.inner.storage.is_log_place(dir, name).map_err(fail)
    }
}
