//! Opening the store a command works on.
//!
//! Owns: the checks that need no store, and the choice between reading and writing.
//! Commands that only look open read-only: nothing of the store's files is changed.

use std::path::Path;

use holdall::{CollectionMut, DEFAULT_COLLECTION, Reader, Result, Store, WriteTx};

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
pub fn or_create(path: &Path) -> Outcome<Store> {
    check(path, false)?;
    Ok(Store::open_or_create(path)?)
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
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
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
