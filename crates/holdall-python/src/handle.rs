//! An open store of a Python program: its life, and what a fork does to it.
//!
//! Owns: [`Handle`]. After a fork, locks of the store may be held by threads that the child
//! does not have, so a child touches nothing that its parent opened: a store opened for reading
//! it opens again, one opened for writing is an error. What the parent opened is forgotten, not
//! closed.

use crate::errors::{Fail, Outcome};
use arc_swap::ArcSwapOption;
use holdall::{DefragOptions, Defragmenter, Options, Store};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// Forks between the process that imported the package and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Called in a child after a fork, as the package has asked Python for.
#[pyfunction]
pub fn after_fork() {
    FORKS.fetch_add(1, Relaxed);
}

/// The number of this process among its ancestors by fork.
pub fn process() -> u64 {
    FORKS.load(Relaxed)
}

const FORKED: &str = "the store was opened for writing before a fork, and only the process that \
     opened it may use it; close it before the fork and open it again in each process";

/// What keeps a store open: a snapshot, a transaction, a file, a list of names.
pub trait Keeps: Send + Sync {
    /// Lets go of the store. Called in the process that made it, when the store is closed.
    fn let_go(&self);
}

/// A store opened in one process.
struct Opened {
    store: Store,
    process: u64,
    /// Keeps the store in order.
    keeper: Mutex<Option<Defragmenter>>,
    /// What keeps it open.
    kept_by: Mutex<Vec<Weak<dyn Keeps>>>,
}

impl Opened {
    fn new(store: Store) -> Self {
        Self { store, process: process(), keeper: Mutex::default(), kept_by: Mutex::default() }
    }
}

/// A store that Python objects share.
pub struct Handle {
    /// Where it is, absolute; empty for one in memory.
    pub path: PathBuf,
    /// Whether it was opened for reading.
    pub read_only: bool,
    options: Options,
    opened: ArcSwapOption<Opened>,
    /// Held while a child opens the store again.
    reopening: Mutex<()>,
}

impl Handle {
    /// Of a store just opened.
    pub fn new(path: PathBuf, read_only: bool, options: Options, store: Store) -> Self {
        let opened = ArcSwapOption::from_pointee(Opened::new(store));
        Self { path, read_only, options, opened, reopening: Mutex::new(()) }
    }

    /// Runs `f` on the store.
    ///
    /// # Errors
    /// What `f` returns; that it was closed; that it is another process's.
    #[inline]
    pub fn with<T>(&self, f: impl FnOnce(&Store) -> Outcome<T>) -> Outcome<T> {
        let opened = self.opened.load();
        let Some(opened) = &*opened else { return Err(Fail::Closed("store")) };
        if opened.process == process() {
            return f(&opened.store);
        }
        f(&self.reopened()?)
    }

    /// The store, opened again in this process.
    #[cold]
    fn reopened(&self) -> Outcome<Store> {
        if !self.read_only {
            return Err(Fail::Forked(FORKED));
        }
        let _one = self.reopening.lock();
        match &*self.opened.load() {
            None => return Err(Fail::Closed("store")),
            Some(opened) if opened.process == process() => return Ok(opened.store.clone()),
            Some(_) => {}
        }
        let store = self.options.open_read_only(&self.path)?;
        let new = Opened::new(store.clone());
        std::mem::forget(self.opened.swap(Some(Arc::new(new))));
        Ok(store)
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.opened.load().is_none()
    }

    /// Lets `holder` hear when the store is closed; at once where that has happened.
    pub fn keep<K: Keeps + 'static>(&self, holder: &Arc<K>) {
        let weak: Weak<K> = Arc::downgrade(holder);
        match &*self.opened.load() {
            Some(opened) if opened.process == process() => {
                let mut all = opened.kept_by.lock();
                if all.len() == all.capacity() {
                    all.retain(|other| other.strong_count() > 0);
                }
                all.push(weak);
            }
            _ => holder.let_go(),
        }
    }

    /// Closes the store, and gives up what keeps it open; a second time nothing happens.
    ///
    /// # Errors
    /// Those of [`Store::close`].
    pub fn close(&self) -> Outcome<()> {
        let Some(opened) = self.opened.swap(None) else { return Ok(()) };
        if opened.process != process() {
            std::mem::forget(opened);
            return Ok(());
        }
        drop(opened.keeper.lock().take());
        let kept_by = std::mem::take(&mut *opened.kept_by.lock());
        kept_by.iter().filter_map(Weak::upgrade).for_each(|holder| holder.let_go());
        Ok(opened.store.clone().close()?)
    }

    /// Starts to keep the store in order from now on, or ends it.
    ///
    /// # Errors
    /// Those of [`Store::keep_in_order`].
    pub fn keep_in_order(&self, options: Option<&DefragOptions>) -> Outcome<()> {
        let new = match options {
            Some(options) => Some(self.with(|store| Ok(store.keep_in_order(options)?))?),
            None => None,
        };
        if let Some(opened) = &*self.opened.load() {
            drop(std::mem::replace(&mut *opened.keeper.lock(), new));
        }
        Ok(())
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(opened) = self.opened.swap(None)
            && opened.process != process()
        {
            std::mem::forget(opened);
        }
    }
}
