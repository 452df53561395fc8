//! The store: opening, snapshots, transactions.
//!
//! Owns: [`Store`], the handle that users share between threads.

mod current;
mod fullness;
mod held;
mod metrics;
mod open;
mod own_files;
mod read_once;
mod stat;
mod threads;

pub use crate::txn::{Checkpoints, Elsewhere};
pub use fullness::Fullness;
pub use metrics::Metrics;
pub(crate) use open::open_error;
pub use stat::{CollectionStat, ReaderStat, StoreStat};

use crate::engine::give_back::GiveBack;
use crate::engine::{Inner, Options};
use crate::read::Reader;
use crate::read::state::ReadState;
use crate::read::view_cache::ViewCache;
use crate::txn::{Cause, Waiting};
use crate::write::{
    PutOptions, StagedObject, Target, WriteOptions, WriteTx, empty_dropped, forget_placements,
    has_dropped,
};
use current::Current;
use holdall_core::heap_record::most_attributes;
use holdall_core::{Busy, Error, Result};
use std::path::Path;
use std::sync::{Arc, Weak};

/// How often a report is begun that a writer in another process ends.
const MOST_REPORTS: u32 = 20;

/// An open store. Clones share it; it closes when the last clone and reader are gone.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
    views: Arc<ViewCache>,
    close_on_drop: Arc<CloseOnDrop>,
    /// Of a store open for reading: others may write it.
    current: Option<Arc<Current>>,
}

/// A store that this does not keep open.
#[derive(Debug)]
pub(crate) struct WeakStore {
    inner: Weak<Inner>,
    views: Weak<ViewCache>,
    close_on_drop: Weak<CloseOnDrop>,
    current: Option<Arc<Current>>,
}

impl WeakStore {
    /// A handle; None once the last one is gone.
    pub(crate) fn upgrade(&self) -> Option<Store> {
        let close_on_drop = self.close_on_drop.upgrade()?;
        let (inner, views) = (self.inner.upgrade()?, self.views.upgrade()?);
        Some(Store { inner, views, close_on_drop, current: self.current.clone() })
    }
}

/// Closes the store with its last handle, whether or not readers are left.
#[derive(Debug)]
struct CloseOnDrop {
    inner: Arc<Inner>,
    threads: Option<threads::Threads>,
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        if self.inner.check_process().is_err() {
            // In a fork the threads do not exist and locks may be held for ever.
            std::mem::forget(self.threads.take());
            return;
        }
        // A store that cannot be closed cleanly is recovered at the next opening.
        let _ = close(&self.inner);
        if let Some(threads) = &mut self.threads {
            threads.stop();
        }
    }
}

/// Closes the store; whatever comes of it, others see no writer from then on.
fn close(inner: &Arc<Inner>) -> Result<()> {
    let writes = inner.is_open_for_writing();
    let closed = close_files(inner);
    if writes {
        inner.pager.volume.disk.show_durable(None);
    }
    closed
}

fn close_files(inner: &Arc<Inner>) -> Result<()> {
    if inner.needs_close() {
        // What it notes can be done without, and everything else is still to be closed.
        if let Err(e @ Error::Poisoned(_)) = forget_placements(inner, 0, &Waiting::default()) {
            return Err(e);
        }
    }
    inner.close()
}

impl Store {
    pub(crate) fn downgrade(&self) -> WeakStore {
        WeakStore {
            inner: Arc::downgrade(&self.inner),
            views: Arc::downgrade(&self.views),
            close_on_drop: Arc::downgrade(&self.close_on_drop),
            current: self.current.clone(),
        }
    }

    /// Whether no other handle is left.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.close_on_drop) == 1
    }

    /// Options for creating and opening stores, all at their defaults.
    pub fn builder() -> Options {
        Options::default()
    }

    /// Creates a store with default options, as [`Options::create`].
    ///
    /// # Errors
    /// As [`Options::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().create(path)
    }

    /// Opens a store with default options, as [`Options::open`].
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open(path)
    }

    /// Opens a store, or creates it if it is missing, with default options, as
    /// [`Options::open_or_create`].
    ///
    /// # Errors
    /// As [`Options::open_or_create`].
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open_or_create(path)
    }

    /// Opens a store for reading with default options, as [`Options::open_read_only`].
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Options::default().open_read_only(path)
    }

    /// Creates a store in memory, gone with its last handle: for tests and examples.
    ///
    /// # Errors
    /// As [`Options::create_on`].
    pub fn in_memory() -> Result<Self> {
        Options::default().create_in_memory()
    }

    fn from_inner(
        inner: Arc<Inner>,
        threads: Option<threads::Threads>,
        current: Option<Arc<Current>>,
    ) -> Self {
        let views = Arc::new(ViewCache::new());
        if threads.is_some() && has_dropped(&inner).unwrap_or(false) {
            inner.ask_to_empty();
        }
        // Nobody else sets it.
        let _ = inner.compactor.set(crate::write::compact);
        Self {
            close_on_drop: Arc::new(CloseOnDrop { inner: inner.clone(), threads }),
            views,
            inner,
            current,
        }
    }

    /// What `report` finds with a handle that sees the newest state, in more than its pages. Where
    /// another process writes, again with a newer one if it passed the state meanwhile.
    ///
    /// # Errors
    /// Those of `report`, and of opening the store again.
    pub(crate) fn report<T>(&self, mut report: impl FnMut(&Self) -> Result<T>) -> Result<T> {
        let Some(current) = &self.current else { return report(self) };
        let mut tries = 1..MOST_REPORTS;
        loop {
            let store = Self { inner: current.settled()?, current: None, ..self.clone() };
            let lsn = store.inner.pager.horizon.visible();
            match report(&store).map_err(|e| store.inner.pager.judge(e, lsn)) {
                Err(Error::SnapshotTooOld { .. }) if tries.next().is_some() => {}
                result => return result,
            }
        }
    }

    /// What the store was opened with last: others may have written it since.
    pub(crate) fn opened(&self) -> Arc<Inner> {
        self.current.as_ref().map_or_else(|| self.inner.clone(), |current| current.last())
    }

    /// A snapshot of the newest durable commit. It never waits for a transaction.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`]; [`Error::Forked`], then and at every later read, in a
    /// child forked since the store was opened; of a store open for reading, those of
    /// [`Options::open_read_only`].
    pub fn read(&self) -> Result<Reader> {
        self.state(false).map(Reader::new)
    }

    /// A snapshot of the newest commit of this process, deferred ones included, which a crash
    /// may still lose.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn read_newest(&self) -> Result<Reader> {
        self.state(true).map(Reader::new)
    }

    /// Opens the newest durable state, or with `newest` the newest installed one.
    pub(crate) fn state(&self, newest: bool) -> Result<ReadState> {
        self.inner.pager.horizon.check_fork()?;
        if let Err(e) = self.inner.flush_overdue() {
            // Reading goes on; the next commit meets the cause.
            self.inner.note_background_error("flush", &e);
        }
        loop {
            let newer = self.current.as_ref().map(|current| current.newest()).transpose()?;
            match self.views.open(newer.as_ref().unwrap_or(&self.inner), newest) {
                // Given up before its first page was read; there is a newer state now.
                Err(Error::SnapshotTooOld { .. }) => {}
                result => return result,
            }
        }
    }

    /// Runs a transaction and commits it: all of it is durable when this returns `Ok`, nothing
    /// of it happens if `f` returns an error. Cost: see
    /// [`Durability::Immediate`](crate::Durability::Immediate).
    ///
    /// # Errors
    /// What `f` returns, and as [`WriteTx::commit`]; [`Error::Busy`] within a transaction of
    /// the same thread, which would wait for itself.
    pub fn write<T>(&self, f: impl FnOnce(&mut WriteTx) -> Result<T>) -> Result<T> {
        self.try_write(f)
    }

    /// As [`Store::write`], for a closure with an error type of its own.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// #[derive(Debug)]
    /// enum Refused { Poor, Store(holdall::Error) }
    /// impl From<holdall::Error> for Refused {
    ///     fn from(e: holdall::Error) -> Self { Self::Store(e) }
    /// }
    ///
    /// let refused = store.try_write(|tx| {
    ///     tx.put("balance", b"-1")?;
    ///     Err::<(), _>(Refused::Poor)
    /// });
    /// assert!(matches!(refused, Err(Refused::Poor)));
    /// assert_eq!(store.read()?.get("balance")?, None);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::write`].
    pub fn try_write<T, E: From<Error>>(
        &self,
        f: impl FnOnce(&mut WriteTx) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut tx = self.begin_write()?;
        let value = f(&mut tx)?;
        tx.commit()?;
        Ok(value)
    }

    /// What keeps the store open as this handle does.
    pub(crate) fn keep_open(&self) -> Arc<dyn std::fmt::Debug + Send + Sync> {
        self.close_on_drop.clone()
    }

    /// Begins a transaction, which ends with [`WriteTx::commit`] or leaves no trace. It waits for
    /// others with its first call that touches the store.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// let mut tx = store.begin_write()?;
    /// tx.put("a", b"1")?;
    /// tx.commit()?;
    /// assert!(store.read()?.lookup("a")?.is_some());
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Poisoned`]; the first call that touches the store gives
    /// [`Error::Busy`] if another transaction of this thread is open.
    pub fn begin_write(&self) -> Result<WriteTx> {
        WriteTx::new(&self.inner, Some(self.keep_open()))
    }

    /// As [`Store::begin_write`], but waits for others before it returns, as `options` say. Who
    /// waits is served in order of arrival; for a millisecond a running thread may be faster.
    ///
    /// # Errors
    /// As [`Store::begin_write`]; [`Error::Busy`] if the wait is over, or would be for the own
    /// thread for ever; [`Error::Cancelled`].
    pub fn begin_write_with(&self, options: &WriteOptions) -> Result<WriteTx> {
        WriteTx::begin_now(&self.inner, self.keep_open(), options)
    }

    /// As [`Store::write`], waiting for others as `options` say before it calls `f`.
    ///
    /// ```
    /// # use holdall::{Wait, WriteOptions};
    /// # let store = holdall::Store::in_memory()?;
    /// let at_once = WriteOptions { wait: Wait::Not, ..WriteOptions::default() };
    /// store.write_with(&at_once, |tx| tx.put("a", b"1"))?;
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::begin_write_with`] and [`Store::write`].
    pub fn write_with<T>(
        &self,
        options: &WriteOptions,
        f: impl FnOnce(&mut WriteTx) -> Result<T>,
    ) -> Result<T> {
        let mut tx = self.begin_write_with(options)?;
        let value = f(&mut tx)?;
        tx.commit()?;
        Ok(value)
    }

    /// Who has a transaction open that keeps others out; `None` if nobody has. It may have ended
    /// meanwhile.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// let mut tx = store.begin_write()?;
    /// tx.put("a", b"1")?;
    /// assert!(store.writer().is_some_and(|by| by.is_own));
    /// tx.commit()?;
    /// assert!(store.writer().is_none());
    /// # Ok::<(), holdall::Error>(())
    /// ```
    pub fn writer(&self) -> Option<Busy> {
        self.inner.pager.writer()
    }

    /// Begins to take the bytes of an object of any length, which a transaction then makes one.
    /// Data goes to its place as it comes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name over 1 KiB or attributes too long; [`Error::ReadOnly`],
    /// [`Error::Poisoned`].
    pub fn stage(&self, target: impl Into<Target>, options: PutOptions) -> Result<StagedObject> {
        StagedObject::new(&self.inner, Some(self.keep_open()), &target.into(), &options)
    }

    /// Makes all commits durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`]; [`Error::Moved`] if they are, but in files that the store's name
    /// does not lead to.
    pub fn flush(&self) -> Result<()> {
        self.inner.check_process()?;
        self.inner.pager.flush()?;
        self.inner.check_names()
    }

    /// Makes all commits durable and brings them to their place in the file, and gives back free
    /// space that is known. What of that fails is no error but reported by
    /// [`StoreStat::gave_back`]: the checkpoint has happened.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Io`].
    pub fn checkpoint(&self) -> Result<()> {
        if self.inner.read_only {
            return Err(Error::ReadOnly);
        }
        self.inner.checkpoint(Cause::Call)?;
        self.inner.try_to_give_back(GiveBack::KNOWN);
        Ok(())
    }

    /// As [`Store::checkpoint`], calling `between` before each of its steps, so that a test
    /// can put other work and crashes there. `between` may read and write but must not need a
    /// checkpoint itself.
    ///
    /// # Errors
    /// As [`Store::checkpoint`].
    #[doc(hidden)]
    pub fn checkpoint_with(&self, between: &mut dyn FnMut()) -> Result<()> {
        if self.inner.read_only {
            return Err(Error::ReadOnly);
        }
        self.inner.checkpoint_with(Cause::Call, between)
    }

    /// Bytes of the log; 0 before the first commit. For tests.
    #[doc(hidden)]
    pub fn log_bytes(&self) -> u64 {
        let log = &self.inner.pager.log;
        if log.attached() { log.usage().capacity } else { 0 }
    }

    /// What was written elsewhere since the store was opened; reads nothing. For tests.
    #[doc(hidden)]
    pub fn written_elsewhere(&self) -> Elsewhere {
        self.inner.pager.elsewhere(0)
    }

    /// How often pages were kept behind objects that grow, or used, since the opening, and those
    /// that are kept now. For tests.
    #[doc(hidden)]
    pub fn windows(&self) -> (u64, u64) {
        self.inner.alloc.windows()
    }

    /// Spaces given up since the opening, and those of them whose directories wait; reads nothing.
    /// For tests.
    #[doc(hidden)]
    pub fn spaces_given_up(&self) -> (u64, usize) {
        self.inner.alloc.spaces_given_up()
    }

    /// Makes a log that a load made grow smaller, as the store's threads do once nobody writes.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Io`].
    #[doc(hidden)]
    pub fn shrink_log(&self) -> Result<()> {
        self.inner.shrink_log()
    }

    /// Empties a part of what was dropped, as the store's threads do by themselves; returns whether
    /// there is more.
    ///
    /// # Errors
    /// As [`WriteTx::commit`].
    #[doc(hidden)]
    pub fn empty_dropped(&self) -> Result<bool> {
        empty_dropped(&self.inner)
    }

    /// Whether anything was dropped that is not yet emptied, as far as that can be read.
    #[doc(hidden)]
    pub fn has_dropped(&self) -> bool {
        has_dropped(&self.inner).unwrap_or(false)
    }

    /// Closes the store: everything at its place, the log file gone, the file cut to what is
    /// in use. Other handles can then no longer write.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Io`]; the next opening then recovers. [`Error::Moved`] if
    /// the store is closed, but its name leads elsewhere.
    pub fn close(self) -> Result<()> {
        close(&self.inner)
    }

    /// Most bytes that all attributes of an object take together in this store, keys and their
    /// lengths included.
    pub fn attribute_bytes(&self) -> usize {
        most_attributes(self.inner.layout.page_size())
    }

    /// Figures of the store. Cost: one pass over the space directories. If writers need the
    /// space of the state being read again and again, it waits for the transaction under way and
    /// keeps others out: it never fails with [`Error::SnapshotTooOld`].
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn stat(&self) -> Result<StoreStat> {
        self.report(stat::stat)
    }
}
