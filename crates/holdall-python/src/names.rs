//! Names of a view, in order or backwards.
//!
//! Owns: [`Names`] and [`Walk`], which fetches many at a time without the interpreter's lock. A
//! walk through the newest state sees one state, as long as the store keeps that; when it was
//! given up for those who write, the walk goes on behind the last name in a newer one.

use crate::errors::{Fail, Outcome};
use crate::handle::{Keeps, process};
use crate::keys::{Form, name};
use crate::source::{Objects, Transaction};
use crate::view::View;
use holdall::{Entry, Error, ListOptions, Listed, NameIter, Reader};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::ops::Bound as End;
use std::sync::Arc;
use std::vec;

/// Names fetched at a time.
const NAMES_AT_ONCE: usize = 1000;

/// The names that are left of a walk.
type Range = (End<Vec<u8>>, End<Vec<u8>>);

/// Where more names come from.
enum More {
    NamesState(Box<(Reader, NameIter)>),
    Transaction(Arc<Transaction>),
    /// The store was closed.
    Closed,
    Nowhere,
}

/// A walk through the names of a view.
pub struct Walk {
    view: View,
    /// What was not given out yet.
    left: Range,
    reverse: bool,
    more: More,
    process: u64,
}

/// What is asked of a walk.
#[derive(Default)]
pub struct Asked<'a, 'py> {
    /// Names begin with it.
    pub prefix: Option<&'a Bound<'py, PyAny>>,
    /// The least name.
    pub start: Option<&'a Bound<'py, PyAny>>,
    /// Names lie below it.
    pub stop: Option<&'a Bound<'py, PyAny>>,
    /// From the last name to the first.
    pub reverse: bool,
}

const FORKED: &str = "the list of names was begun before a fork; only the process that began it \
     may go on with it";

/// The first name above all that begin with `prefix`; None if there is none.
fn above(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

impl Asked<'_, '_> {
    /// The names that are meant; None if there can be none.
    fn range(&self) -> PyResult<Option<Range>> {
        let own = |given: Option<&Bound<'_, PyAny>>| {
            given.map(|given| name(given).map(std::borrow::Cow::into_owned)).transpose()
        };
        let prefix = own(self.prefix)?.unwrap_or_default();
        let from = own(self.start)?.unwrap_or_default().max(prefix.clone());
        let end = if prefix.is_empty() { None } else { above(&prefix) };
        let to = match (own(self.stop)?, end) {
            (Some(stop), Some(end)) => Some(stop.min(end)),
            (stop, end) => stop.or(end),
        };
        if to.as_ref().is_some_and(|to| *to <= from) {
            return Ok(None);
        }
        Ok(Some((End::Included(from), to.map_or(End::Unbounded, End::Excluded))))
    }
}

impl Walk {
    /// Begins one. Must be called without the interpreter's lock.
    fn new(view: View, left: Option<Range>, reverse: bool) -> Outcome<Self> {
        let empty = left.is_none();
        let left = left.unwrap_or((End::Unbounded, End::Unbounded));
        let mut walk = Self { view, left, reverse, more: More::Nowhere, process: process() };
        if !empty {
            walk.begin()?;
        }
        Ok(walk)
    }

    /// Begins anew with what is left.
    fn begin(&mut self) -> Outcome<()> {
        self.more = match &self.view.objects {
            Objects::Transaction(tx) => More::Transaction(tx.clone()),
            _ => match self.view.reader()? {
                None => More::Nowhere,
                Some(reader) => {
                    let names = reader.range(self.left.clone());
                    More::NamesState(Box::new((reader, names)))
                }
            },
        };
        Ok(())
    }

    /// The next names, about `limit` of them; none at the end.
    pub fn next(&mut self, limit: usize) -> Outcome<Vec<Entry>> {
        if self.process != process() {
            return Err(Fail::Forked(FORKED));
        }
        let next = match &mut self.more {
            More::Nowhere => Ok(Vec::new()),
            More::Closed => Err(Fail::Closed("store")),
            More::NamesState(state) => {
                let names = &mut state.1;
                let mut next = Vec::with_capacity(limit);
                let reverse = self.reverse;
                let one = || if reverse { names.next_back() } else { names.next() };
                let taken = std::iter::from_fn(one).take(limit).try_for_each(|entry| {
                    next.push(entry?);
                    Ok(())
                });
                taken.map(|()| next).map_err(Fail::Store)
            }
            More::Transaction(tx) => {
                let tx = tx.clone();
                self.next_of(&tx, limit)
            }
        };
        match next {
            Err(e) => {
                self.renew(e)?;
                self.next(limit)
            }
            Ok(next) => {
                if let Some(last) = next.last() {
                    self.go_behind(&last.name);
                }
                Ok(next)
            }
        }
    }

    /// Begins again with this name.
    pub fn go_back_to(&mut self, name: Vec<u8>) {
        match &mut self.left {
            // The first name above it in the order of bytes.
            (_, end) if self.reverse => *end = End::Excluded([name, vec![0]].concat()),
            (start, _) => *start = End::Included(name),
        }
    }

    /// Names up to this one are done with.
    pub fn go_behind(&mut self, name: &[u8]) {
        let end = if self.reverse { &mut self.left.1 } else { &mut self.left.0 };
        *end = End::Excluded(name.to_vec());
    }

    /// Goes on in the newest state if the error says that the walk's own was given up.
    ///
    /// # Errors
    /// All others.
    pub fn renew(&mut self, e: Fail) -> Outcome<()> {
        match (e, &self.view.objects) {
            (Fail::Store(Error::SnapshotTooOld { .. }), Objects::Newest(..)) => self.begin(),
            (e, _) => Err(e),
        }
    }

    /// The transaction whose names they are.
    pub fn transaction(&self) -> Option<&Transaction> {
        match &self.more {
            More::Transaction(tx) => Some(tx),
            _ => None,
        }
    }

    /// The bytes of an object, as the transaction has them now; None if it is gone.
    pub fn bytes_in(&self, tx: &Transaction, entry: &Entry) -> Outcome<Option<Vec<u8>>> {
        View::in_tx(tx, self.view.collection.as_deref(), |tx| match tx.get(&entry.name) {
            Err(Error::NotFound(_)) => Ok(None),
            found => Ok(found?),
        })
    }

    /// The state that the names of now are of; None of a transaction.
    pub fn reader(&self) -> Option<&Reader> {
        match &self.more {
            More::NamesState(state) => Some(&state.0),
            _ => None,
        }
    }

    /// Names of a transaction, which may change meanwhile. Backwards they are all listed.
    fn next_of(&mut self, tx: &Transaction, limit: usize) -> Outcome<Vec<Entry>> {
        let (from, to) = self.left.clone();
        let mut all = Vec::new();
        View::in_tx(tx, self.view.collection.as_deref(), |tx| {
            let mut after = match from {
                End::Included(name) if !name.is_empty() => {
                    if let Some(oid) = tx.lookup(&name)? {
                        all.push(Entry { name: name.clone(), oid });
                    }
                    Some(name)
                }
                End::Excluded(name) => Some(name),
                _ => None,
            };
            loop {
                let start_after = after.as_deref();
                let options = ListOptions { start_after, limit, ..ListOptions::default() };
                let listing = tx.list(&options)?;
                all.extend(listing.entries.into_iter().filter_map(|entry| match entry {
                    Listed::Object(entry) => Some(entry),
                    Listed::Prefix(_) => None,
                }));
                after = listing.next;
                if !self.reverse || after.is_none() {
                    return Ok(());
                }
            }
        })?;
        let inside = |entry: &Entry| match &to {
            End::Excluded(to) => entry.name < *to,
            _ => true,
        };
        all.retain(inside);
        if self.reverse {
            all.reverse();
        }
        Ok(all)
    }
}

/// Those of a walk that are given out next.
pub struct NamesState {
    ready: vec::IntoIter<Entry>,
    walk: Walk,
}

/// Names, in order or backwards.
#[pyclass(frozen, module = "holdall._core")]
pub struct Names(Arc<Mutex<NamesState>>, Form);

impl Keeps for Mutex<NamesState> {
    fn let_go(&self) {
        self.lock().walk.let_go();
    }
}

impl Walk {
    /// The store was closed.
    pub fn let_go(&mut self) {
        self.more = match std::mem::replace(&mut self.more, More::Nowhere) {
            More::NamesState(..) => More::Closed,
            more => more,
        };
    }

    /// Of the names of a view.
    ///
    /// # Errors
    /// TypeError; those of reading.
    pub fn start(py: Python<'_>, view: &View, asked: &Asked<'_, '_>) -> PyResult<Self> {
        let (range, reverse) = (asked.range()?, asked.reverse);
        let view = view.clone();
        Ok(py.detach(|| Self::new(view, range, reverse))?)
    }
}

impl Drop for Walk {
    fn drop(&mut self) {
        if self.process != process() {
            std::mem::forget(std::mem::replace(&mut self.more, More::Nowhere));
        }
    }
}

impl Names {
    /// Of the names of a view.
    ///
    /// # Errors
    /// As [`Walk::new`].
    pub fn start(py: Python<'_>, view: &View, asked: &Asked<'_, '_>) -> PyResult<Self> {
        let state =
            NamesState { ready: Vec::new().into_iter(), walk: Walk::start(py, view, asked)? };
        let state = Arc::new(Mutex::new(state));
        py.detach(|| view.objects.handle().keep(&state));
        Ok(Self(state, view.form))
    }
}

#[pymethods]
impl Names {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut next = self.0.try_lock().and_then(|mut state| state.ready.next());
        if next.is_none() {
            next = py.detach(|| -> Outcome<Option<Entry>> {
                let mut state = self.0.lock();
                let ready = state.ready.next();
                if ready.is_some() {
                    return Ok(ready);
                }
                state.ready = state.walk.next(NAMES_AT_ONCE)?.into_iter();
                Ok(state.ready.next())
            })?;
        }
        next.map(|entry| self.1.give(py, &entry.name)).transpose()
    }
}
