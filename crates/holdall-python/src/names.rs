//! Names of a view, in order or backwards.
//!
//! Owns: [`Names`], which fetches many at a time without the interpreter's lock.

use crate::errors::{Fail, Outcome};
use crate::handle::{Keeps, process};
use crate::keys::{name, to_str};
use crate::source::{Objects, Transaction};
use crate::view::View;
use holdall::{ListOptions, Listed, NameIter};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::ops::Bound as End;
use std::sync::Arc;
use std::vec;

/// Names fetched at a time.
const BATCH: usize = 1000;

/// Where more names come from.
enum More {
    Reader {
        names: Box<NameIter>,
        reverse: bool,
    },
    Transaction(Walk),
    /// The store was closed.
    Closed,
    Nowhere,
}

/// A list of names under way.
pub struct State {
    ready: vec::IntoIter<Vec<u8>>,
    more: More,
    process: u64,
}

/// A walk through a transaction's names, which may change meanwhile.
struct Walk {
    tx: Arc<Transaction>,
    collection: Option<Arc<str>>,
    /// Where it goes on.
    from: Vec<u8>,
    /// Whether `from` itself may come.
    inclusive: bool,
    to: Option<Vec<u8>>,
}

impl Walk {
    /// The next names; none at the end.
    fn page(&mut self) -> Outcome<Vec<Vec<u8>>> {
        let (from, to, inclusive) = (&self.from, self.to.as_ref(), self.inclusive);
        let names = View::in_tx(&self.tx, self.collection.as_deref(), |tx| {
            let mut names = Vec::new();
            if inclusive && !from.is_empty() && tx.lookup(from)?.is_some() {
                names.push(from.clone());
            }
            let start_after = (!from.is_empty()).then_some(from.as_slice());
            let options = ListOptions { start_after, limit: BATCH, ..ListOptions::default() };
            for entry in tx.list(&options)?.entries {
                if let Listed::Object(entry) = entry {
                    names.push(entry.name);
                }
            }
            names.retain(|name| to.is_none_or(|to| name < to));
            Ok(names)
        })?;
        if let Some(last) = names.last() {
            self.from.clone_from(last);
            self.inclusive = false;
        }
        Ok(names)
    }
}

/// Names, in order or backwards.
#[pyclass(frozen, module = "holdall._core")]
pub struct Names(Arc<Mutex<State>>);

const FORKED: &str = "the list of names was begun before a fork; only the process that began it \
     may go on with it";

impl Keeps for Mutex<State> {
    fn let_go(&self) {
        let mut state = self.lock();
        state.more = match std::mem::replace(&mut state.more, More::Nowhere) {
            More::Reader { .. } => More::Closed,
            more => more,
        };
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if self.process != process() {
            std::mem::forget(std::mem::replace(&mut self.more, More::Nowhere));
        }
    }
}

/// The first name above all that begin with `prefix`; None where there is none.
fn above(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != 0xff)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

impl Names {
    /// Of the names of a view that begin with `prefix` and lie in `start..stop`.
    ///
    /// # Errors
    /// TypeError; those of reading.
    pub fn new(
        py: Python<'_>,
        view: &View,
        prefix: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Self> {
        let own = |given: Option<&Bound<'_, PyAny>>| {
            given.map(|given| name(given).map(std::borrow::Cow::into_owned)).transpose()
        };
        let prefix = own(prefix)?.unwrap_or_default();
        let from = own(start)?.unwrap_or_default().max(prefix.clone());
        let end = if prefix.is_empty() { None } else { above(&prefix) };
        let to = match (own(stop)?, end) {
            (Some(stop), Some(end)) => Some(stop.min(end)),
            (stop, end) => stop.or(end),
        };
        let empty = to.as_ref().is_some_and(|to| *to <= from);
        let more = match (&view.objects, empty) {
            (_, true) => More::Nowhere,
            (Objects::Transaction(tx), _) => More::Transaction(Walk {
                tx: tx.clone(),
                collection: view.collection.clone(),
                from,
                inclusive: true,
                to,
            }),
            _ => match view.reader()? {
                None => More::Nowhere,
                Some(reader) => {
                    let bounds = (End::Included(from), to.map_or(End::Unbounded, End::Excluded));
                    More::Reader { names: Box::new(reader.range(bounds)), reverse }
                }
            },
        };
        let mut state = State { ready: Vec::new().into_iter(), more, process: process() };
        if reverse && matches!(state.more, More::Transaction(_)) {
            let all = || -> Outcome<Vec<Vec<u8>>> {
                let mut all = Vec::new();
                while state.fill()? {
                    all.extend(state.ready.by_ref());
                }
                all.reverse();
                Ok(all)
            };
            let all = py.detach(all)?;
            state = State { ready: all.into_iter(), more: More::Nowhere, process: process() };
        }
        let state = Arc::new(Mutex::new(state));
        py.detach(|| view.objects.handle().keep(&state));
        Ok(Self(state))
    }

    /// How many names a view has.
    ///
    /// # Errors
    /// Those of reading.
    pub fn count(py: Python<'_>, view: &View) -> PyResult<usize> {
        let all = Self::new(py, view, None, None, None, false)?;
        let mut count = 0;
        py.detach(|| -> Outcome<()> {
            let state = &mut *all.0.lock();
            while state.fill()? {
                count += state.ready.len();
            }
            Ok(())
        })?;
        Ok(count)
    }
}

impl State {
    /// Fetches more names in place of those that are ready; false where there are none.
    fn fill(&mut self) -> Outcome<bool> {
        if self.process != process() {
            return Err(Fail::Forked(FORKED));
        }
        let mut next = Vec::new();
        match &mut self.more {
            More::Nowhere => {}
            More::Closed => return Err(Fail::Closed("store")),
            More::Reader { names, reverse } => {
                while next.len() < BATCH {
                    let entry = if *reverse { names.next_back() } else { names.next() };
                    let Some(entry) = entry else { break };
                    next.push(entry?.name);
                }
            }
            More::Transaction(walk) => next = walk.page()?,
        }
        let some = !next.is_empty();
        self.ready = next.into_iter();
        Ok(some)
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
            next = py.detach(|| -> Outcome<Option<Vec<u8>>> {
                let mut state = self.0.lock();
                match state.ready.next() {
                    None if state.fill()? => Ok(state.ready.next()),
                    ready => Ok(ready),
                }
            })?;
        }
        next.map(|name| to_str(py, &name)).transpose()
    }
}
