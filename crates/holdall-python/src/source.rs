//! Where a view's objects come from: the newest state, a snapshot, a transaction.
//!
//! Owns: [`Source`], [`Snapshot`], [`Transaction`].

use crate::errors::{Fail, Outcome};
use crate::handle::{Held, Keeps, process};
use crate::options::Given;
use arc_swap::{ArcSwapOption, Guard};
use holdall::{Durability, Oid, Reader, WriteTx};
use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::Arc;

/// Where objects come from.
#[derive(Clone)]
pub enum Objects {
    /// The newest state, durable or not yet; each change is a commit of that durability.
    Newest(Held, Durability),
    /// One state.
    Snapshot(Arc<Snapshot>),
    /// What a transaction sees.
    Transaction(Arc<Transaction>),
}

/// A state of the store that is kept open.
pub struct Snapshot {
    /// Its store.
    pub handle: Held,
    reader: ArcSwapOption<(Reader, u64)>,
}

/// A snapshot's reader, for one call.
pub struct ReaderAtHand(Guard<Option<Arc<(Reader, u64)>>>);

impl ReaderAtHand {
    /// The reader, if nothing must be done before it reads: it is open, and this process's.
    #[inline]
    pub fn get(&self) -> Option<&Reader> {
        self.0.as_ref().filter(|held| held.1 == process()).map(|held| &held.0)
    }
}

impl Snapshot {
    /// Its reader, without waiting for anything.
    #[inline]
    pub fn at_hand(&self) -> ReaderAtHand {
        ReaderAtHand(self.reader.load())
    }

    /// Runs `f` on it.
    ///
    /// # Errors
    /// What `f` returns; that it was closed; that it is another process's.
    pub fn with<T>(&self, f: impl FnOnce(&Reader) -> Outcome<T>) -> Outcome<T> {
        let held = self.reader.load();
        let Some(held) = &*held else { return Err(Fail::Closed("snapshot")) };
        if held.1 == process() {
            return f(&held.0);
        }
        // Nobody has written since: the newest state is the same.
        let reader = self.handle.with(|store| Ok(store.read()?))?;
        std::mem::forget(self.reader.swap(Some(Arc::new((reader.clone(), process())))));
        f(&reader)
    }
}

impl Keeps for Snapshot {
    fn let_go(&self) {
        match self.reader.swap(None) {
            Some(held) if held.1 != process() => std::mem::forget(held),
            held => drop(held),
        }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// A transaction under way.
pub struct Transaction {
    /// Its store.
    pub handle: Held,
    process: u64,
    tx: Mutex<Option<WriteTx>>,
    /// New objects of files that are still open: without a name until they are closed.
    drafts: Mutex<BTreeSet<Oid>>,
}

const FORKED_TX: &str = "the transaction was begun before a fork; only the process that began it \
     may go on with it";

impl Transaction {
    /// Runs `f` in it. Must be called without the interpreter's lock.
    ///
    /// # Errors
    /// What `f` returns; that it has ended; that it is another process's.
    pub fn with<T>(&self, f: impl FnOnce(&mut WriteTx) -> Outcome<T>) -> Outcome<T> {
        if self.process != process() {
            return Err(Fail::Forked(FORKED_TX));
        }
        match &mut *self.tx.lock() {
            Some(tx) => f(tx),
            None => Err(Fail::Closed("transaction")),
        }
    }

    fn end(&self, commit: bool) -> Outcome<()> {
        if self.process != process() {
            return Err(Fail::Forked(FORKED_TX));
        }
        let Some(tx) = self.tx.lock().take() else {
            return if commit { Err(Fail::Closed("transaction")) } else { Ok(()) };
        };
        if commit { self.commit(tx) } else { Ok(()) }
    }

    fn commit(&self, mut tx: WriteTx) -> Outcome<()> {
        for draft in std::mem::take(&mut *self.drafts.lock()) {
            tx.remove(draft)?;
        }
        Ok(tx.commit()?)
    }

    /// An object has no name yet; the commit removes it if that stays so.
    pub fn add_draft(&self, oid: Oid) {
        self.drafts.lock().insert(oid);
    }

    /// An object got its name, or was removed; whether it was a draft.
    pub fn end_draft(&self, oid: Oid) -> bool {
        self.drafts.lock().remove(&oid)
    }
}

impl Keeps for Transaction {
    fn let_go(&self) {
        drop(self.tx.lock().take());
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if self.process != process() {
            std::mem::forget(self.tx.get_mut().take());
        }
    }
}

/// Where a view's objects come from. Made by `open`, `snapshot` and `transaction`.
#[pyclass(frozen, module = "holdall._core")]
pub struct Source(pub Objects);

impl Objects {
    /// The store.
    pub fn handle(&self) -> &Held {
        match self {
            Objects::Newest(handle, _) => handle,
            Objects::Snapshot(snapshot) => &snapshot.handle,
            Objects::Transaction(tx) => &tx.handle,
        }
    }

    /// How durable a change is that is a commit of its own.
    pub fn durability(&self) -> Durability {
        match self {
            Objects::Newest(_, durability) => *durability,
            _ => Durability::Immediate,
        }
    }
}

#[pymethods]
impl Source {
    /// The store's file, absolute; empty for one in memory.
    #[getter]
    fn path(&self) -> OsString {
        self.0.handle().path.clone().into_os_string()
    }

    /// Which of them it is: "newest", "snapshot" or "transaction".
    #[getter]
    fn kind(&self) -> &'static str {
        match &self.0 {
            Objects::Newest(..) => "newest",
            Objects::Snapshot(_) => "snapshot",
            Objects::Transaction(_) => "transaction",
        }
    }

    /// The store itself, whatever this is of it.
    fn store(&self) -> Self {
        Self(Objects::Newest(self.0.handle().clone(), Durability::Immediate))
    }

    /// What the store was opened with, beside path and mode.
    #[getter]
    fn options(&self) -> BTreeMap<String, Given> {
        self.0.handle().settings().given.clone()
    }

    /// The number of the state that a snapshot is of; of anything else the newest.
    #[getter]
    fn state(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(py.detach(|| match &self.0 {
            Objects::Snapshot(snapshot) => snapshot.with(|reader| Ok(reader.lsn().0)),
            other => other.handle().with(|store| Ok(store.read_newest()?.lsn().0)),
        })?)
    }

    /// Whether the store was opened for reading.
    #[getter]
    fn read_only(&self) -> bool {
        self.0.handle().read_only
    }

    /// Whether this was closed: the store, the snapshot, the transaction.
    #[getter]
    fn closed(&self, py: Python<'_>) -> bool {
        match &self.0 {
            Objects::Newest(handle, _) => handle.is_closed(),
            Objects::Snapshot(snapshot) => snapshot.reader.load().is_none(),
            Objects::Transaction(tx) => py.detach(|| tx.tx.lock().is_none()),
        }
    }

    /// The newest state, kept: with changes that are not durable yet.
    fn snapshot(&self, py: Python<'_>) -> PyResult<Self> {
        let handle = self.0.handle().clone();
        let reader = py.detach(|| handle.with(|store| Ok(store.read_newest()?)))?;
        let reader = ArcSwapOption::from_pointee((reader, process()));
        let snapshot = Arc::new(Snapshot { handle, reader });
        py.detach(|| snapshot.handle.keep(&snapshot));
        Ok(Self(Objects::Snapshot(snapshot)))
    }

    /// A transaction. It waits for others at most `timeout` seconds, or those that the store
    /// was opened with.
    #[pyo3(signature = (timeout=None))]
    fn transaction(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Self> {
        let own = timeout.map(|limit| crate::options::seconds("timeout", limit)).transpose()?;
        let durability = self.0.durability();
        let handle = self.0.handle();
        match own {
            Some(limit) => begin(py, &handle.with_limit(Some(limit)), durability),
            None => begin(py, handle, durability),
        }
    }

    /// The same store, with changes that this process sees at once, and that survive a crash
    /// once the store's `defer` is over or it is flushed.
    fn deferred(&self) -> Self {
        Self(Objects::Newest(self.0.handle().clone(), Durability::Deferred))
    }

    /// Lets others in this process find the store by its file, as long as anything uses it.
    fn announce(&self) {
        self.0.handle().announce();
    }

    /// The newest state for one whose changes wait that many seconds for transactions of others.
    fn with_timeout(&self, timeout: f64) -> PyResult<Self> {
        let limit = crate::options::seconds("timeout", timeout)?;
        let handle = self.0.handle().with_limit(Some(limit));
        let durability = self.0.durability();
        Ok(Self(Objects::Newest(handle, durability)))
    }

    /// Ends the transaction: all of it is durable, or none of it happened.
    pub fn end(&self, py: Python<'_>, commit: bool) -> PyResult<()> {
        match &self.0 {
            Objects::Transaction(tx) => Ok(py.detach(|| tx.end(commit))?),
            _ => Err(PyValueError::new_err("only a transaction is ended")),
        }
    }

    /// Closes the store or the snapshot.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match &self.0 {
            Objects::Newest(handle, _) => Ok(py.detach(|| handle.close())?),
            Objects::Snapshot(snapshot) => {
                py.detach(|| snapshot.let_go());
                Ok(())
            }
            Objects::Transaction(tx) => Ok(py.detach(|| tx.end(false))?),
        }
    }
}

/// The stores of this process that were announced and are in use.
#[pyfunction]
pub fn announced() -> Vec<Source> {
    let newest = |held| Source(Objects::Newest(held, Durability::Immediate));
    Held::announced().into_iter().map(newest).collect()
}

/// Begins a transaction.
///
/// # Errors
/// Those of [`Held::begin`].
pub fn begin(py: Python<'_>, handle: &Held, durability: Durability) -> PyResult<Source> {
    let handle = handle.clone();
    let tx = py.detach(|| handle.begin(durability))?;
    let tx = Arc::new(Transaction {
        handle,
        process: process(),
        tx: Mutex::new(Some(tx)),
        drafts: Mutex::default(),
    });
    py.detach(|| tx.handle.keep(&tx));
    Ok(Source(Objects::Transaction(tx)))
}
