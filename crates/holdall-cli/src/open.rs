//! Opening the store a command works on.
//!
//! Owns: the checks that need no store, and the choice between reading and writing.
//! Commands that only look open read-only: nothing of the store's files is changed.

use std::fs;
use std::io;
use std::ops::Deref;
use std::path::Path;

use holdall::{CollectionMut, DEFAULT_COLLECTION, FileId, Options, Reader, Result, Store, WriteTx};
use holdall_control::{Client, Control};

use crate::bucket::is_in_bucket;
use crate::failure::{Failure, NOT_FOUND, Outcome};
use crate::own;
use crate::wait::Waiting;

/// Opens a store for reading.
pub fn read_only(path: &Path) -> Outcome<Store> {
    check(path, true)?;
    Ok(Store::open_read_only(path)?)
}

/// Opens a snapshot for reading that another process holds, if one has the store open and does so.
/// A long scan then ends with the state that it began with.
pub fn held(path: &Path) -> Outcome<Store> {
    check(path, true)?;
    match hold(path) {
        Some(store) => Ok(store),
        None => read_only(path),
    }
}

/// A held snapshot; `None` if nobody holds one: reading goes on without.
pub fn hold(path: &Path) -> Option<Store> {
    Client::connect(path).ok()??.hold(&Options::default()).ok()
}

/// Opens a store that is there, for changes.
pub fn existing<'p>(path: &'p Path, waiting: &Waiting) -> Outcome<Made<'p>> {
    check(path, true)?;
    Ok(Made { store: waiting.options().open(path)?, path, is_new: false, control: None })
}

/// Opens a store for changes, or makes it.
pub fn or_create<'p>(path: &'p Path, waiting: &Waiting) -> Outcome<Made<'p>> {
    check(path, false)?;
    let (store, is_new) = waiting.options().open_or_create_and_tell(path)?;
    Ok(Made { store, path, is_new, control: None })
}

/// Closes a store in which `done` came about and is durable, whatever becomes of the closing.
pub fn close(store: Store, done: &str) -> Outcome {
    store.close().map_err(|e| Failure::from(e).of_closing(done))
}

/// A store that the command may have made. One that nothing came into is not left behind.
pub struct Made<'p> {
    store: Store,
    path: &'p Path,
    is_new: bool,
    control: Option<Control>,
}

impl Made<'_> {
    /// Lets others ask for what only this process knows, while it has the store open. They
    /// wait on a file system without sockets.
    pub fn listen(&mut self) {
        self.control = Control::listen(&self.store, self.path).ok();
    }

    /// Closes the store after `done` came about.
    pub fn close(self, done: &str) -> Outcome {
        drop(self.control);
        close(self.store, done)
    }

    /// Ends a command that failed: a store that it made loses its name, as long as it is locked
    /// and nobody else can have put anything into it.
    pub fn discard(mut self) {
        // Who asked may have put something into it.
        if self.control.take().is_some() && !self.is_empty() {
            return;
        }
        let log = {
            let mut log = self.path.as_os_str().to_owned();
            log.push("-log");
            log
        };
        if !self.is_new {
            return;
        }
        for path in [self.path, Path::new(&log)] {
            let own = fs::symlink_metadata(path).is_ok_and(|data| {
                self.store.is_own_file(FileId::from_metadata(&data)).unwrap_or(false)
            });
            if own {
                // What stays is an empty store: no more can be done about it.
                let _ = fs::remove_file(path);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.store.stat().is_ok_and(|stat| stat.objects == 0)
    }

    /// Closes the store if all went well, after what `done` says came about; else discards it.
    pub fn end<T>(self, outcome: Outcome<T>, done: impl FnOnce(&T) -> String) -> Outcome<T> {
        match outcome {
            Ok(value) => {
                let done = done(&value);
                self.close(&done).map(|()| value)
            }
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
/// may fail, since what is printed could go into the store.
pub fn check(path: &Path, must_exist: bool) -> Outcome {
    if is_in_bucket(path) {
        let what = format!("{} is in a bucket, and this needs a store's file", path.display());
        return Err(Failure::new(what, "see docs/cli.md for what works in a bucket"));
    }
    own::refuse_streams(path)?;
    match path.metadata() {
        Ok(data) if data.is_dir() => Err(Failure::new(
            format!("{} is a directory", path.display()),
            "give the path of a store file",
        )),
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if let Some((what, hint)) = missing(path) {
                return Err(Failure::Told(format!("not found: {what}"), hint, NOT_FOUND));
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

/// What of `path` is missing before its last part, a directory or what a link leads to, and what
/// to do.
fn missing(path: &Path) -> Option<(String, String)> {
    let shown = path.display();
    if path.is_symlink() {
        let target = path.read_link().unwrap_or_default();
        let what = format!("{shown} is a link to {}, which is missing", target.display());
        return Some((what, "check where it leads".into()));
    }
    let above = own::directory(path).ancestors().filter(|dir| *dir != Path::new(""));
    let first = above.take_while(|dir| !dir.exists()).last()?.display();
    let what = format!("{shown}: there is no directory {first}");
    Some((what, "check the path, or make the directory".into()))
}

/// A system error about a path that must be there.
pub fn path_failure(action: &str, path: &Path, error: &io::Error) -> Failure {
    // A link that leads nowhere is in the way of a directory to be made.
    let in_the_way = error.kind() == io::ErrorKind::AlreadyExists && path.is_symlink();
    let is_missing = error.kind() == io::ErrorKind::NotFound || in_the_way;
    let missing = is_missing.then(|| missing(path)).flatten();
    match missing {
        Some((what, hint)) => Failure::new(format!("{action} {what}"), hint),
        None => Failure::file(action, path, error),
    }
}

/// A snapshot of a collection, of the default one if none is named.
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
