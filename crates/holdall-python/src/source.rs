//! Where a view's objects come from: the newest state, a snapshot, a transaction.
//!
//! Owns: [`Source`]; opening stores.

use crate::errors::{Fail, Outcome};
use crate::handle::{Handle, Keeps, process};
use arc_swap::ArcSwapOption;
use holdall::{Durability, Error, Options, Reader, Store, WriteTx};
use parking_lot::Mutex;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where objects come from.
#[derive(Clone)]
pub enum Objects {
    /// The newest state, durable or not yet; each change is a commit of that durability.
    Newest(Arc<Handle>, Durability),
    /// One state.
    Snapshot(Arc<Snapshot>),
    /// What a transaction sees.
    Transaction(Arc<Transaction>),
}

/// A state of the store that is kept open.
pub struct Snapshot {
    /// Its store.
    pub handle: Arc<Handle>,
    reader: ArcSwapOption<(Reader, u64)>,
}

impl Snapshot {
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
    pub handle: Arc<Handle>,
    process: u64,
    tx: Mutex<Option<WriteTx>>,
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
        match self.tx.lock().take() {
            Some(tx) if commit => Ok(tx.commit()?),
            Some(_) => Ok(()),
            None if commit => Err(Fail::Closed("transaction")),
            None => Ok(()),
        }
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
    pub fn handle(&self) -> &Arc<Handle> {
        match self {
            Objects::Newest(handle, _) => handle,
            Objects::Snapshot(snapshot) => &snapshot.handle,
            Objects::Transaction(tx) => &tx.handle,
        }
    }
}

#[pymethods]
impl Source {
    /// The store's file, absolute; empty for one in memory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.0.handle().path.clone()
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

    /// A transaction. It waits for others with its first call.
    fn transaction(&self, py: Python<'_>) -> PyResult<Self> {
        let durability = match &self.0 {
            Objects::Newest(_, durability) => *durability,
            _ => Durability::Immediate,
        };
        begin(py, self.0.handle(), durability)
    }

    /// The same store, with changes that this process sees at once, and that survive a crash
    /// once the store's `defer` is over or it is flushed.
    fn deferred(&self) -> Self {
        Self(Objects::Newest(self.0.handle().clone(), Durability::Deferred))
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

/// Begins a transaction.
///
/// # Errors
/// Those of [`Store::begin_write`].
pub fn begin(py: Python<'_>, handle: &Arc<Handle>, durability: Durability) -> PyResult<Source> {
    let handle = handle.clone();
    let mut tx = py.detach(|| handle.with(|store| Ok(store.begin_write()?)))?;
    tx.set_durability(durability);
    let tx = Arc::new(Transaction { handle, process: process(), tx: Mutex::new(Some(tx)) });
    py.detach(|| tx.handle.keep(&tx));
    Ok(Source(Objects::Transaction(tx)))
}

/// Opens a store; with an empty path one in memory.
///
/// mode: "r" to read, "r+" to write what is there, "a" to write and make it where it is
/// missing, "w" to make it anew, "x" to make it where there is none.
#[pyfunction]
#[pyo3(signature = (path, mode, **options))]
pub fn open(
    py: Python<'_>,
    path: PathBuf,
    mode: &str,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Source> {
    let set = match options {
        Some(given) => options_of(given)?,
        None => Options::default(),
    };
    let mode = mode.to_owned();
    let made = py.detach(|| -> Outcome<Handle> {
        if path.as_os_str().is_empty() {
            return Ok(Handle::new(path, false, set, Store::in_memory()?));
        }
        let path = std::path::absolute(&path)
            .map_err(|e| Error::io(format!("finding {}", path.display()), e))?;
        let store = match mode.as_str() {
            "r" => set.open_read_only(&path)?,
            "r+" => set.open(&path)?,
            "a" => set.open_or_create(&path)?,
            "x" => set.create(&path)?,
            "w" => anew(&path, &set)?,
            other => {
                let text = format!("mode {other:?} is none of \"r\", \"r+\", \"a\", \"w\", \"x\"");
                return Err(Error::Invalid(text).into());
            }
        };
        if mode != "r" {
            crate::file::drop_drafts(&store)?;
        }
        Ok(Handle::new(path, mode == "r", set, store))
    })?;
    Ok(Source(Objects::Newest(Arc::new(made), Durability::Immediate)))
}

/// Makes a store in place of one that is there. Any other file stays.
fn anew(path: &Path, options: &Options) -> Outcome<Store> {
    match options.open(path) {
        Ok(old) => {
            old.close()?;
            // Closed, it has no log.
            std::fs::remove_file(path)
                .map_err(|e| Error::io(format!("removing {}", path.display()), e))?;
        }
        Err(Error::NotFound(_) | Error::Unfinished { .. }) => {}
        Err(e) => return Err(e.into()),
    }
    Ok(options.create(path)?)
}

/// Options by their names in Python, which are those of [`Options`].
fn options_of(given: &Bound<'_, PyDict>) -> PyResult<Options> {
    let mut options = Options::default();
    for (name, value) in given {
        let name: String = name.extract()?;
        options = match name.as_str() {
            "cache_bytes" => options.cache_bytes(value.extract()?),
            "max_bytes" => options.max_bytes(value.extract::<Option<u64>>()?),
            "space_factor" => options.space_factor(value.extract()?),
            "page_size" => options.page_size(value.extract()?),
            "pinned_bytes" => options.pinned_bytes(value.extract::<Option<u64>>()?),
            "old_version_bytes" => options.old_version_bytes(value.extract()?),
            "map_reads" => options.map_reads(value.extract()?),
            "direct_reads" => options.direct_reads(value.extract()?),
            "background" => options.background(value.extract()?),
            "defer" => {
                let time = Duration::try_from_secs_f64(value.extract()?);
                options.defer(time.map_err(|e| PyValueError::new_err(format!("defer: {e}")))?)
            }
            other => {
                let text = format!("open() has no option {other:?}");
                return Err(pyo3::exceptions::PyTypeError::new_err(text));
            }
        };
    }
    Ok(options)
}
