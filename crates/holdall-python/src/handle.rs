//! An open store of a Python program: its life, and what a fork does to it.
//!
//! Owns: [`Handle`], [`Held`]. After a fork, locks of the store may be held by threads that the
//! child does not have, so a child touches nothing that its parent opened: a store opened for
//! reading it opens again, one opened for writing is an error. What the parent opened is forgotten,
//! not closed.

use crate::errors::{Fail, Outcome};
use crate::keys::Form;
use crate::options::Given;
use arc_swap::ArcSwapOption;
use holdall::{
    Busy, Cancel, DefragOptions, Defragmenter, Durability, Error, Options, Store, Wait,
    WriteOptions, WriteTx,
};
use holdall_control::Control;
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

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

/// So long a transaction is waited for whose thread has ended: another may go on with it.
const ENDED: Duration = Duration::from_secs(1);

/// Stores that others in this process may use. Without a lock, which a fork could leave locked.
static ANNOUNCED: ArcSwapOption<Vec<Weak<Handle>>> = ArcSwapOption::const_empty();

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
    /// Answers other processes.
    control: Mutex<Option<Control>>,
    /// What keeps it open.
    kept_by: Mutex<Vec<Weak<dyn Keeps>>>,
}

impl Opened {
    fn new(store: Store) -> Self {
        Self {
            store,
            process: process(),
            keeper: Mutex::default(),
            control: Mutex::default(),
            kept_by: Mutex::default(),
        }
    }
}

/// A store that Python objects share.
pub struct Handle {
    /// Where it is, absolute; empty for one in memory.
    pub path: PathBuf,
    /// Whether it was opened for reading.
    pub read_only: bool,
    settings: Settings,
    opened: ArcSwapOption<Opened>,
    /// Held while a child opens the store again.
    reopening: Mutex<()>,
}

/// A store, and how long one who changes it waits for transactions of others.
#[derive(Clone)]
pub struct Held {
    handle: Arc<Handle>,
    limit: Option<Duration>,
}

impl Deref for Held {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Held {
    /// With the limit that the store was opened with.
    pub fn new(handle: Handle) -> Self {
        Self { limit: handle.settings.limit, handle: Arc::new(handle) }
    }

    /// Lets [`Held::announced`] find the store as long as it is in use.
    pub fn announce(&self) {
        ANNOUNCED.rcu(|all| {
            let others = all.iter().flat_map(|all| all.iter());
            let used = others.filter(|other| other.strong_count() > 0).cloned();
            Some(Arc::new(used.chain([Arc::downgrade(&self.handle)]).collect()))
        });
    }

    /// The announced stores of this process that are in use.
    pub fn announced() -> Vec<Self> {
        let all = ANNOUNCED.load();
        let used = all.iter().flat_map(|all| all.iter()).filter_map(Weak::upgrade);
        let held = |handle: Arc<Handle>| Self { limit: handle.settings.limit, handle };
        used.filter(|handle| !handle.is_closed()).map(held).collect()
    }

    /// The same store for one who waits that long.
    pub fn with_limit(&self, limit: Option<Duration>) -> Self {
        Self { handle: self.handle.clone(), limit }
    }

    /// Begins a transaction, waiting for one under way. The user can interrupt that. Must be
    /// called without the interpreter's lock.
    ///
    /// # Errors
    /// Those of [`Store::begin_write`]; that the wait was longer than the limit, or for a
    /// transaction whose thread has ended; what a signal raised.
    #[inline]
    pub fn begin(&self, durability: Durability) -> Outcome<WriteTx> {
        self.handle.begin(durability, self.limit)
    }

    /// Waits until no transaction is under way, so that what the engine then waits for is short.
    ///
    /// # Errors
    /// As [`Held::begin`].
    pub fn await_others(&self) -> Outcome<()> {
        self.begin(Durability::Deferred).map(drop)
    }
}

/// How a store was opened.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The engine's.
    pub options: Options,
    /// What its views give names out as.
    pub form: Form,
    /// How long a change waits for a transaction under way; None for as long as it takes.
    pub limit: Option<Duration>,
    /// Whether other processes are answered, if it is open for writing.
    pub control: bool,
    /// What Python gave, to open the store again in another process.
    pub given: BTreeMap<String, Given>,
}

impl Handle {
    /// Of a store just opened.
    pub fn new(path: PathBuf, read_only: bool, settings: Settings, store: Store) -> Self {
        let opened = ArcSwapOption::from_pointee(Opened::new(store));
        Self { path, read_only, settings, opened, reopening: Mutex::new(()) }
    }

    /// How it was opened.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// As [`Held::begin`].
    #[inline]
    fn begin(&self, durability: Durability, limit: Option<Duration>) -> Outcome<WriteTx> {
        let at_once = WriteOptions { wait: Wait::Not, ..WriteOptions::default() };
        let mut tx = self.with(|store| match store.begin_write_with(&at_once) {
            // The own thread would have to end it: no time helps.
            Err(Error::Busy(by)) if !by.is_own => self.wait(store, limit),
            begun => Ok(begun?),
        })?;
        tx.set_durability(durability);
        Ok(tx)
    }

    #[cold]
    fn wait(&self, store: &Store, limit: Option<Duration>) -> Outcome<WriteTx> {
        let begun = Instant::now();
        let raised = Arc::new(Mutex::new(None));
        let (raises, other) = (raised.clone(), store.clone());
        let cancel = Cancel::when(move || {
            if let Err(e) = Python::attach(|py| py.check_signals()) {
                *raises.lock() = Some(e);
                return true;
            }
            begun.elapsed() >= ENDED && other.writer().is_some_and(|by| by.has_ended)
        });
        let wait = limit.map_or(Wait::Forever, Wait::from);
        let options = WriteOptions { wait, cancel: Some(cancel) };
        store.begin_write_with(&options).map_err(|e| match (e, raised.lock().take()) {
            (Error::Cancelled, Some(raised)) => raised.into(),
            (Error::Cancelled, None) => self.busy(begun, store.writer()),
            (Error::Busy(by), _) => self.busy(begun, Some(*by)),
            (other, _) => other.into(),
        })
    }

    fn busy(&self, begun: Instant, by: Option<Busy>) -> Fail {
        let (path, waited) = (self.path.display(), begun.elapsed().as_secs_f64());
        let by = by.map_or("a transaction that has ended meanwhile".into(), |by| by.to_string());
        Fail::Busy(format!("waited {waited:.1} s for store {path}: {by}; timeout= allows more"))
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
        let store = self.settings.options.open_read_only(&self.path)?;
        let new = Opened::new(store.clone());
        std::mem::forget(self.opened.swap(Some(Arc::new(new))));
        Ok(store)
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.opened.load().is_none()
    }

    /// Lets `holder` hear when the store is closed; at once if that has happened.
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
        drop(opened.control.lock().take());
        let kept_by = std::mem::take(&mut *opened.kept_by.lock());
        kept_by.iter().filter_map(Weak::upgrade).for_each(|holder| holder.let_go());
        Ok(opened.store.clone().close()?)
    }

    /// Answers other processes from now on. They wait on a file system without sockets.
    pub fn listen(&self) {
        if let Some(opened) = &*self.opened.load() {
            *opened.control.lock() = Control::listen(&opened.store, &self.path).ok();
        }
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
