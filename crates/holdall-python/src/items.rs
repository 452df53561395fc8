//! Objects of a view with their bytes, in the order of their names.
//!
//! Owns: [`Items`]: a cursor that fetches the bytes of many objects at a time, of one state.

use crate::buffer::Unfilled;
use crate::errors::{Fail, Outcome};
use crate::handle::Keeps;
use crate::keys::Form;
use crate::names::{Asked, Walk};
use crate::view::View;
use holdall::{Entry, Error, Key, Reader};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::VecDeque;
use std::sync::Arc;

/// Objects fetched at a time.
const OBJECTS_AT_ONCE: usize = 256;
/// Bytes of objects fetched at a time; a larger object is fetched alone.
const BYTES: u64 = 8 << 20;

/// A walk, and what it has fetched.
pub struct ItemsState {
    walk: Walk,
    /// Found, not yet fetched.
    found: VecDeque<Entry>,
    ready: VecDeque<(Vec<u8>, Py<PyBytes>)>,
}

/// A name and its object's bytes.
type Pair = (Vec<u8>, Vec<u8>);

/// Objects' bytes, or names and bytes.
#[pyclass(frozen, module = "holdall._core")]
pub struct Items {
    state: Arc<Mutex<ItemsState>>,
    form: Form,
    with_names: bool,
}

impl Keeps for Mutex<ItemsState> {
    fn let_go(&self) {
        let mut state = self.lock();
        state.walk.let_go();
        state.found.clear();
    }
}

impl Items {
    /// Of the objects of a view that have names.
    ///
    /// # Errors
    /// As [`Walk::new`].
    pub fn new(
        py: Python<'_>,
        view: &View,
        asked: &Asked<'_, '_>,
        with_names: bool,
    ) -> PyResult<Self> {
        let walk = Walk::start(py, view, asked)?;
        let state = ItemsState { walk, found: VecDeque::new(), ready: VecDeque::new() };
        let state = Arc::new(Mutex::new(state));
        py.detach(|| view.objects.handle().keep(&state));
        Ok(Self { state, form: view.form, with_names })
    }
}

/// As many of the found as are fetched together, and their sizes.
fn sizes(reader: &Reader, found: &VecDeque<Entry>) -> Outcome<Vec<u64>> {
    let located = reader.locate_many(found.iter().map(|entry| Key::Oid(entry.oid)))?;
    let mut total = 0_u64;
    let fits = |size: &u64| {
        let first = total == 0;
        total = total.saturating_add((*size).max(1));
        first || total <= BYTES
    };
    // Of one state: what has a name is there.
    let absent = || Error::NotFound("an object that has a name".into());
    let all: Vec<u64> =
        located.sizes().map(|size| size.ok_or_else(absent)).collect::<Result<_, _>>()?;
    Ok(all.into_iter().take_while(fits).collect())
}

impl ItemsState {
    /// Fetches more. Called with the interpreter's lock, which it gives back while it reads.
    fn fetch(&mut self, py: Python<'_>) -> PyResult<()> {
        loop {
            if let Some(read) = py.detach(|| self.read_in_transaction())? {
                let made = read.into_iter();
                let made = made.map(|(name, bytes)| (name, PyBytes::new(py, &bytes).unbind()));
                self.ready.extend(made);
                return Ok(());
            }
            let tried = py.detach(|| self.fetch_batch());
            let Some((reader, sizes)) = tried? else { return Ok(()) };
            let mut new = Unfilled::default();
            for size in &sizes {
                new.push(py, usize::try_from(*size)?)?;
            }
            let mut failed = None;
            let found = &self.found;
            let filled = new.fill(py, |memory| {
                let keys = found.iter().take(sizes.len()).map(|entry| Key::Oid(entry.oid));
                let read = reader.locate_many(keys).and_then(|located| located.read_into(memory));
                failed = read.err();
                Ok(())
            })?;
            if let Some(e) = failed {
                py.detach(|| self.renew(e.into()))?;
                continue;
            }
            let names = self.found.drain(..sizes.len()).map(|entry| entry.name);
            self.ready.extend(names.zip(filled.into_iter().map(Bound::unbind)));
            return Ok(());
        }
    }

    /// Reads the next objects of a transaction, as they are now; None of anything else.
    fn read_in_transaction(&mut self) -> Outcome<Option<Vec<Pair>>> {
        if self.walk.transaction().is_none() {
            return Ok(None);
        }
        let (mut read, mut total) = (Vec::new(), 0);
        while read.len() < OBJECTS_AT_ONCE && total < BYTES {
            if self.found.is_empty() {
                self.found = self.walk.next(OBJECTS_AT_ONCE)?.into();
            }
            let (Some(entry), Some(tx)) = (self.found.pop_front(), self.walk.transaction()) else {
                break;
            };
            // One removed since it was listed is passed over.
            if let Some(bytes) = self.walk.bytes_in(tx, &entry)? {
                total += bytes.len() as u64;
                read.push((entry.name, bytes));
            }
        }
        Ok(Some(read))
    }

    /// Finds what is fetched next, of which state, and how large it is. None at the end.
    fn fetch_batch(&mut self) -> Outcome<Option<(Reader, Vec<u64>)>> {
        loop {
            if self.found.is_empty() {
                self.found = self.walk.next(OBJECTS_AT_ONCE)?.into();
            }
            let Some(reader) = self.walk.reader().filter(|_| !self.found.is_empty()) else {
                return Ok(None);
            };
            match sizes(reader, &self.found) {
                Ok(sizes) => return Ok(Some((reader.clone(), sizes))),
                Err(e) => self.renew(e)?,
            }
        }
    }

    /// Goes on in a newer state, from the first object on that was not fetched.
    fn renew(&mut self, e: Fail) -> Outcome<()> {
        let first = self.found.front().map(|entry| entry.name.clone());
        self.found.clear();
        if let Some(first) = first {
            self.walk.go_back_to(first);
        }
        self.walk.renew(e)
    }
}

#[pymethods]
impl Items {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = py.detach(|| self.state.lock_arc());
        if state.ready.is_empty() {
            state.fetch(py)?;
        }
        let Some((name, bytes)) = state.ready.pop_front() else { return Ok(None) };
        drop(state);
        if !self.with_names {
            return Ok(Some(bytes.into_bound(py).into_any()));
        }
        let pair = [self.form.give(py, &name)?, bytes.into_bound(py).into_any()];
        Ok(Some(PyTuple::new(py, pair)?.into_any()))
    }
}
