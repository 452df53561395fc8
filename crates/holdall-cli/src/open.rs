//! Opening the store a command works on.
//!
//! Owns: the checks that need no store, and the choice between reading and writing.
//! Commands that only look open read-only: nothing of the store's files is changed.

use std::fs;
use std::io;
use std::ops::Deref;
use std::path::Path;

use holdall::{CollectionMut, DEFAULT_COLLECTION, FileId, Reader, Result, Store, WriteTx};

use crate::failure::{Failure, NOT_FOUND, Outcome};
use crate::own;

/// Opens a store for reading.
pub fn read_only(path: &Path) -> Outcome<Store> {
    check(path, true)?;
    Ok(Store::open_read_only(path)?)
}

/// Opens a store that is there, for changes.
pub fn existing(path: &Path) -> Outcome<Store> {
    check(path, true)?;
    Ok(Store::open(path)?)
}

/// Opens a store for changes, or makes it.
pub fn or_create(path: &Path) -> Outcome<Made<'_>> {
    check(path, false)?;
    let is_new = path.symlink_metadata().is_err();
    Ok(Made { store: Store::open_or_create(path)?, path, is_new })
}

/// A store that the command may have made. One that nothing came into is not left behind.
pub struct Made<'p> {
    store: Store,
    path: &'p Path,
    is_new: bool,
}

impl Made<'_> {
    /// Closes the store.
    pub fn close(self) -> Outcome {
        Ok(self.store.close()?)
    }

    /// Ends a command that failed: a store that it made loses its name, as long as it is locked
    /// and nobody else can have put anything into it.
    pub fn discard(self) {
        let log = {
            let mut log = self.path.as_os_str().to_owned();
            log.push("-log");
            log
        };
        if !self.is_new {
            return;
        }
        for path in [self.path, Path::new(&log)] {
            let own = fs::symlink_metadata(path)
                .is_ok_and(|data| self.store.is_own_file(FileId::of(&data)).unwrap_or(false));
            if own {
                // What stays is an empty store: no more can be done about it.
                let _ = fs::remove_file(path);
            }
        }
    }

    /// Closes the store if all went well, else discards it.
    pub fn end<T>(self, outcome: Outcome<T>) -> Outcome<T> {
        match outcome {
            Ok(value) => self.close().map(|()| value),
            Err(failure) => {
                self.discard();
                Err(failure)
            }
        }
    }
}

impl Deref for Made<'_> {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// Says what is wrong with a path before the engine sees it. Comes before anything else that
/// may fail, since what is said could go into the store.
pub fn check(path: &Path, must_exist: bool) -> Outcome {
    own::refuse_streams(path)?;
    match path.metadata() {
        Ok(data) if data.is_dir() => Err(Failure::told(
            format!("{} is a directory", path.display()),
            "give the path of a store file",
        )),
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if let Some(failure) = missing(path) {
                return Err(failure);
            }
            if must_exist {
                let what = format!("not found: there is no store {}", path.display());
                let hint = "check the path, or make one with `holdall create`";
                return Err(Failure::Told(what, hint.into(), NOT_FOUND));
            }
            Ok(())
        }
        Err(e) => Err(Failure::file("open", path, &e)),
    }
}

/// What of `path` is missing before its last part: a directory, or what a link leads to.
fn missing(path: &Path) -> Option<Failure> {
    if path.is_symlink() {
        let target = path.read_link().unwrap_or_default();
        let what = format!(
            "not found: {} is a link to {}, which is missing",
            path.display(),
            target.display()
        );
        return Some(Failure::Told(what, "check where it leads".into(), NOT_FOUND));
    }
    let dir = own::directory(path);
    if dir.is_dir() {
        return None;
    }
    let first = dir.ancestors().filter(|dir| *dir != Path::new("")).take_while(|dir| !dir.exists());
    let first = first.last().unwrap_or(dir);
    if let Some(Failure::Told(what, hint, code)) =
        first.is_symlink().then(|| missing(first)).flatten()
    {
        return Some(Failure::Told(what, hint, code));
    }
    let what = format!("not found: there is no directory {}", first.display());
    Some(Failure::Told(what, "check the path, or make the directory".into(), NOT_FOUND))
}

/// A system error about a path that must be there.
pub fn path_failure(action: &str, path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => missing(path),
        _ => None,
    }
    .unwrap_or_else(|| Failure::file(action, path, error))
}

/// A snapshot of a collection, of the default one where none is named.
pub fn reader(store: &Store, collection: Option<&str>) -> Result<Reader> {
    let reader = store.read()?;
    match collection {
        Some(name) => reader.collection(name),
        None => Ok(reader),
    }
}

/// Directs a transaction to a collection, which is made if missing.
pub fn target<'t>(tx: &'t mut WriteTx, collection: Option<&str>) -> Result<CollectionMut<'t>> {
    tx.collection(collection.unwrap_or(DEFAULT_COLLECTION))
}
