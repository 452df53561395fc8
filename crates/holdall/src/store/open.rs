//! Creating and opening stores, in files and on other storage.

use super::{Store, threads};
use crate::engine::Inner;
use crate::engine::{Options, format};
use crate::txn::no_inodes;
use holdall_core::{Error, Result};
use holdall_io::{Access, FileStorage, MemoryStorage, OverlayStorage, Storage, is_out_of_inodes};
use std::path::Path;
use std::sync::Arc;

impl Options {
    /// Creates a store in a new file, or in one that is empty or that a crash left of a
    /// creation. Nothing that is a log may lie beside it.
    ///
    /// # Errors
    /// [`Error::Exists`] if the file is there, [`Error::WrongLog`] if something else lies
    /// in the log's place, [`Error::Invalid`] for impossible options, [`Error::Full`],
    /// [`Error::NoRoom`], [`Error::Io`].
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Store> {
        format::check_creation(self)?;
        let path = path.as_ref();
        let storage = match FileStorage::create(path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                let Ok(storage) = FileStorage::open(path, Access::ReadWrite) else {
                    return Err(open_error(path, e));
                };
                return self.create_on(Arc::new(storage));
            }
            other => other.map_err(|e| open_error(path, e))?,
        };
        let storage = Arc::new(storage);
        self.create_on(storage.clone()).inspect_err(|_| {
            // What was made of it is no store; the name must not stay taken. As long as it is
            // locked nobody else can make one of it.
            let _ = storage.remove_volume();
        })
    }

    /// Opens a store. Only one handle in one process can have it open for writing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for impossible options, [`Error::NotFound`], [`Error::NotAStore`],
    /// [`Error::Unfinished`], [`Error::Locked`], [`Error::NoLog`], [`Error::WrongLog`],
    /// [`Error::NoRoom`], [`Error::Unsupported`], [`Error::Corrupt`], [`Error::Io`].
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Store> {
        self.check()?;
        let path = path.as_ref();
        let storage =
            FileStorage::open(path, Access::ReadWrite).map_err(|e| open_error(path, e))?;
        self.open_on(Arc::new(storage))
    }

    /// Opens a store, or creates it if the file is missing. A file that holds nothing stays as
    /// it is, since a store may have been there: only [`Options::create`] makes one of it.
    ///
    /// # Errors
    /// As [`Options::open`] and [`Options::create`].
    pub fn open_or_create(&self, path: impl AsRef<Path>) -> Result<Store> {
        let path = path.as_ref();
        match self.open(path) {
            Err(Error::NotFound(_)) => self.create(path),
            other => other,
        }
    }

    /// Opens a store for reading, beside other readers. After a crash the log is replayed in
    /// memory; nothing is written.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_read_only(&self, path: impl AsRef<Path>) -> Result<Store> {
        self.check()?;
        let path = path.as_ref();
        let storage = FileStorage::open(path, Access::ReadOnly).map_err(|e| open_error(path, e))?;
        self.open_read_only_on(Arc::new(storage))
    }

    /// Creates a store in memory, which is gone with its last handle.
    ///
    /// ```
    /// let store = holdall::Options::default().max_bytes(4 << 20).create_in_memory()?;
    /// store.write(|tx| tx.put("a", b"1"))?;
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for impossible options.
    pub fn create_in_memory(&self) -> Result<Store> {
        self.create_on(Arc::new(MemoryStorage::new()))
    }

    /// Creates a store on any storage that holds none.
    ///
    /// # Errors
    /// As [`Options::create`].
    pub fn create_on(&self, storage: Arc<dyn Storage>) -> Result<Store> {
        format::make(&*storage, self)?;
        self.open_on(storage)
    }

    /// Opens a store on any storage.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_on(&self, storage: Arc<dyn Storage>) -> Result<Store> {
        self.check()?;
        let inner = Inner::open(storage, self, false)?;
        let threads = self.background.then(|| threads::Threads::start(&inner));
        Ok(Store::from_inner(inner, threads))
    }

    /// Opens a store on any storage for reading only.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_read_only_on(&self, storage: Arc<dyn Storage>) -> Result<Store> {
        self.check()?;
        let overlay = OverlayStorage::new(storage)
            .map_err(|e| Error::io("opening the store for reading", e))?;
        Ok(Store::from_inner(Inner::open(Arc::new(overlay), self, true)?, None))
    }
}

/// Says what a user can do about a file that cannot be opened.
pub(crate) fn open_error(path: &Path, e: std::io::Error) -> Error {
    use std::io::ErrorKind;
    let shown = path.display().to_string();
    match e.kind() {
        _ if is_out_of_inodes(&e) => no_inodes(&format!("creating {shown}"), &e),
        ErrorKind::NotFound => Error::NotFound(format!("store {shown}")),
        ErrorKind::AlreadyExists => Error::Exists(format!("file {shown}")),
        ErrorKind::WouldBlock => Error::Locked { path: shown },
        ErrorKind::IsADirectory => {
            Error::NotAStore { path: shown, detail: "it is a directory".into() }
        }
        ErrorKind::InvalidInput => {
            Error::NotAStore { path: shown, detail: "it is not a regular file".into() }
        }
        ErrorKind::StorageFull => Error::Full(format!("creating {shown}")),
        // It names the path itself.
        _ => Error::io("opening the store", e),
    }
}
