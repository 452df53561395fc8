//! Objects of a view with their bytes, in the order of their names.
//!
//! Owns: [`Items`]: a cursor that fetches the bytes of many objects at a time, of one state.

use crate::errors::{Fail, Outcome};
use crate::handle::Keeps;
use crate::keys::Form;
use crate::names::{Asked, Walk};
use crate::view::View;
use crate::view_read::many;
use holdall::{Entry, Key};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use std::collections::VecDeque;
use std::sync::Arc;
use std::vec;

/// Objects fetched at a time.
const OBJECTS_AT_ONCE: usize = 256;
/// Bytes of objects fetched at a time; a larger object is fetched alone.
const BYTES: u64 = 8 << 20;

/// A walk, and what it has fetched.
pub struct ItemsState {
    walk: Walk,
    /// Found, not yet fetched.
    found: VecDeque<Entry>,
    /// What is given out next: bytes, or pairs.
    ready: vec::IntoIter<Py<PyAny>>,
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
        let ready = Vec::new().into_iter();
        let state = ItemsState { walk, found: VecDeque::new(), ready };
        let state = Arc::new(Mutex::new(state));
        py.detach(|| view.objects.handle().keep(&state));
        Ok(Self { state, form: view.form, with_names })
    }
}

impl ItemsState {
    /// Fetches more, and gives each to `make` with its name. Called with the interpreter's lock,
    /// which it gives back while it reads from disk.
    fn fetch<'py>(
        &mut self,
        py: Python<'py>,
        make: impl Fn(&[u8], Bound<'py, PyBytes>) -> PyResult<Py<PyAny>>,
    ) -> PyResult<()> {
        loop {
            if let Some(read) = py.detach(|| self.read_in_transaction())? {
                let made = read.iter().map(|(name, bytes)| make(name, PyBytes::new(py, bytes)));
                self.ready = made.collect::<PyResult<Vec<_>>>()?.into_iter();
                return Ok(());
            }
            py.detach(|| self.find())?;
            let Some(reader) = self.walk.reader().filter(|_| !self.found.is_empty()) else {
                return Ok(());
            };
            let keys: Vec<Key<'_>> = self.found.iter().map(|entry| Key::Oid(entry.oid)).collect();
            match many(py, reader, &keys, BYTES) {
                Ok(made) => {
                    let names = self.found.drain(..made.len());
                    // Of one state: what has a name is there.
                    let both = names.zip(made).filter_map(|(entry, made)| Some((entry, made?)));
                    let made = both.map(|(entry, made)| make(&entry.name, made));
                    self.ready = made.collect::<PyResult<Vec<_>>>()?.into_iter();
                    return Ok(());
                }
                Err(e) => py.detach(|| self.renew(e))?,
            }
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

    /// Finds the names of what is fetched next; none at the end.
    fn find(&mut self) -> Outcome<()> {
        if self.found.is_empty() {
            self.found = self.walk.next(OBJECTS_AT_ONCE)?.into();
        }
        Ok(())
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
        // Another thread that has it may be waiting for the interpreter's lock.
        if let Some(mut state) = self.state.try_lock()
            && let Some(ready) = state.ready.next()
        {
            return Ok(Some(ready.into_bound(py)));
        }
        let mut state = py.detach(|| self.state.lock_arc());
        if state.ready.len() == 0 {
            state.fetch(py, |name, bytes| {
                if !self.with_names {
                    return Ok(bytes.into_any().unbind());
                }
                let pair = [self.form.give(py, name)?, bytes.into_any()];
                Ok(PyTuple::new(py, pair)?.into_any().unbind())
            })?;
        }
        Ok(state.ready.next().map(|ready| ready.into_bound(py)))
    }
}
