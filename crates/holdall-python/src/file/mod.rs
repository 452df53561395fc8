//! Objects as files, without a buffer.
//!
//! Owns: [`RawFile`], below the package's classes for `io`. A file that
//!
//! - is read shows the object as it was when it was opened;
//! - is written anew is staged, holds no lock, and becomes an object when it is closed. If
//!   its user seeks back, what was staged becomes a draft, an object in a collection of its
//!   own, which closing moves to its name;
//! - is edited changes the object in place. Each write is a commit, durable with the next
//!   flush. One of a transaction changes the object in it.

mod open;
mod state;
mod target;

use crate::buffer::{Lent, LentMut, Unfilled};
use crate::errors::{Fail, Outcome};
use crate::handle::process;
use crate::keys::ObjectId;
use crate::source::Objects;
use crate::view::View;
use holdall::{Attributes, Error, Key, Store};
use open::{live, object, open_in_tx, stage};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use state::{Body, CLOSED, State};
use std::sync::Arc;
use target::DRAFT;

/// Whether a collection is one of drafts.
pub fn is_draft(collection: &str) -> bool {
    collection.starts_with(DRAFT)
}

/// Drops drafts that a process left behind which was killed. Only of a store just opened for
/// writing: nobody has any then.
///
/// # Errors
/// Those of a commit.
pub fn drop_drafts(store: &Store) -> Outcome<()> {
    let left: Vec<_> = store.read()?.collections()?.into_iter().filter(|c| is_draft(c)).collect();
    for collection in left {
        store.write(|tx| tx.drop_collection(&collection))?;
    }
    Ok(())
}

/// An object open as a file, without a buffer.
#[pyclass(frozen, module = "holdall._core")]
pub struct RawFile(Arc<Mutex<State>>);

impl RawFile {
    /// Opens an object.
    ///
    /// # Errors
    /// NotFoundError, ExistsError, ReadOnlyError; those of reading.
    pub fn open(view: &View, key: &Key<'_>, mode: &str, attributes: Attributes) -> Outcome<Self> {
        let append = mode == "a";
        let (body, position) = match (&view.objects, mode) {
            (Objects::Transaction(tx), _) => (open_in_tx(view, tx, key, mode, attributes)?, 0),
            (Objects::Newest(handle, _), "r") => (object(view, handle, key)?, 0),
            (Objects::Snapshot(snapshot), "r") => (object(view, &snapshot.handle, key)?, 0),
            (Objects::Snapshot(_), _) => return Err(Error::ReadOnly.into()),
            (Objects::Newest(handle, durability), "w" | "x") => {
                (stage(view, (handle, *durability), key, mode, attributes)?, 0)
            }
            (Objects::Newest(handle, _), "r+" | "a") => {
                let oid = live(view, key, append, &attributes)?;
                (Body::Live { handle: handle.clone(), oid, dirty: false, draft: None }, 0)
            }
            _ => return Err(Error::Invalid(format!("mode {mode:?} is not known")).into()),
        };
        let mut state = State { body, position, append, process: process() };
        if append {
            state.position = state.size()?;
        }
        let state = Arc::new(Mutex::new(state));
        view.objects.handle().keep(&state);
        Ok(Self(state))
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut State) -> Outcome<T> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| match &mut *self.0.lock() {
            State { body: Body::Closed, .. } => Err(CLOSED),
            state => f(state),
        })?)
    }
}

#[pymethods]
impl RawFile {
    /// All bytes from the position on.
    fn readall<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let left = |state: &mut State| Ok(state.size()?.saturating_sub(state.position));
        let left = usize::try_from(self.with(py, left)?)?;
        let mut new = Unfilled::default();
        new.push(py, left)?;
        let mut n = 0;
        let filled = new.fill(py, |memory| {
            let state = &mut *self.0.lock();
            for buf in memory {
                n = state.read(buf)?;
            }
            Ok(())
        })?;
        let all = filled.into_iter().next().unwrap_or_else(|| PyBytes::new(py, b""));
        // Another thread may have cut the object meanwhile.
        if n == left { Ok(all) } else { Ok(PyBytes::new(py, &all.as_bytes()[..n])) }
    }

    fn readinto(&self, py: Python<'_>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut lent = LentMut::borrow(buffer)?;
        let buf = lent.bytes();
        self.with(py, |state| state.read(buf))
    }

    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let lent = Lent::borrow(data)?;
        let bytes = lent.bytes();
        self.with(py, |state| state.write(bytes))?;
        Ok(bytes.len())
    }

    fn seek(&self, py: Python<'_>, offset: i64, whence: i64) -> PyResult<u64> {
        self.with(py, |state| {
            let from = match whence {
                0 => 0,
                1 => state.position,
                2 => state.size()?,
                _ => return Err(Fail::Offset(format!("whence {whence} is not 0, 1 or 2"))),
            };
            let before = || {
                Fail::Offset(format!("a seek to {offset} from {from} leads before the first byte"))
            };
            let to = from.checked_add_signed(offset).ok_or_else(before)?;
            if i64::try_from(to).is_err() {
                return Err(Fail::Offset(format!("byte {to} is beyond what a file can have")));
            }
            state.position = to;
            Ok(state.position)
        })
    }

    fn tell(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |state| Ok(state.position))
    }

    /// The object's size in bytes.
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, State::size)
    }

    fn truncate(&self, py: Python<'_>, size: u64) -> PyResult<u64> {
        self.with(py, |state| state.edit(|tx, oid| tx.set_len(oid, size)))
    }

    /// Inserts bytes at the position, which moves behind them.
    fn insert(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<usize> {
        let lent = Lent::borrow(data)?;
        let bytes = lent.bytes();
        self.with(py, |state| {
            let at = state.position;
            state.edit(|tx, oid| tx.insert(oid, at, bytes))?;
            state.position += bytes.len() as u64;
            Ok(())
        })?;
        Ok(bytes.len())
    }

    /// Cuts out as many bytes from the position on, fewer at the end; returns how many.
    fn delete(&self, py: Python<'_>, length: u64) -> PyResult<u64> {
        self.with(py, |state| {
            let at = state.position;
            let end = at.saturating_add(length).min(state.size()?);
            if end > at {
                state.edit(|tx, oid| tx.delete_range(oid, at..end))?;
            }
            Ok(end.saturating_sub(at))
        })
    }

    /// The object's id; None before a file that is written anew is closed.
    #[getter]
    fn oid(&self, py: Python<'_>) -> PyResult<Option<ObjectId>> {
        self.with(py, |state| match &state.body {
            Body::Object { object, .. } => Ok(Some(ObjectId(object.oid()))),
            Body::Live { oid, draft: None, .. } | Body::Transaction { oid, target: None, .. } => {
                Ok(Some(ObjectId(*oid)))
            }
            Body::Live { .. } | Body::Staged { .. } | Body::Transaction { .. } => Ok(None),
            Body::GivenUp(_) => Err(Fail::Closed("store")),
            Body::Closed => Err(CLOSED),
        })
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, State::flush)
    }

    /// Closes the file. What was written anew becomes an object, of a transaction if one is
    /// given, or with `keep` false nothing.
    #[pyo3(signature = (keep, transaction=None))]
    fn close(
        &self,
        py: Python<'_>,
        keep: bool,
        transaction: Option<&crate::source::Source>,
    ) -> PyResult<()> {
        let into = match transaction.map(|source| &source.0) {
            Some(Objects::Transaction(tx)) => Some(&**tx),
            _ => None,
        };
        Ok(py.detach(|| self.0.lock().close(keep, into))?)
    }
}
