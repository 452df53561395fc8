//! Objects of a store, a snapshot or a transaction.
//!
//! Owns: [`View`], the base of the package's `Store`, `Snapshot`, `Transaction` and
//! `Collection`, and what it lists. Reading is in `view_read`, changing in `view_edit`.

use crate::errors::Outcome;
use crate::file::RawFile;
use crate::items::Items;
use crate::keys::{Form, key, name};
use crate::names::{Asked, Names};
use crate::source::{Objects, Source, Transaction};
use crate::view_edit::in_collection;
use holdall::{Error, Key, ListOptions, Listed, ObjectsMut, Reader};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Names, common prefixes, and where the next page begins.
type Page<'py> = (Bound<'py, PyList>, Bound<'py, PyList>, Option<Bound<'py, PyAny>>);

/// Objects of a store, a snapshot or a transaction, in one collection.
#[derive(Clone)]
#[pyclass(subclass, frozen, generic, module = "holdall._core")]
pub struct View {
    pub(crate) objects: Objects,
    pub(crate) collection: Option<Arc<str>>,
    /// What names are given out as.
    pub(crate) form: Form,
}

/// Those of a reader's objects that are in a view's collection; None if it is not there.
fn of_collection(reader: &Reader, collection: Option<&str>) -> Outcome<Option<Reader>> {
    match collection.map(|name| reader.collection(name)) {
        None => Ok(Some(reader.clone())),
        Some(Ok(reader)) => Ok(Some(reader)),
        Some(Err(Error::NotFound(_))) => Ok(None),
        Some(Err(e)) => Err(e.into()),
    }
}

impl View {
    /// A reader of this view's collection; None if that is not there. Not of a transaction.
    pub(crate) fn reader(&self) -> Outcome<Option<Reader>> {
        let collection = self.collection.as_deref();
        match &self.objects {
            // What one handle wrote, every handle of the process sees, durable or not yet.
            Objects::Newest(handle, _) => {
                handle.with(|store| of_collection(&store.read_newest()?, collection))
            }
            Objects::Snapshot(snapshot) => {
                snapshot.with(|reader| of_collection(reader, collection))
            }
            Objects::Transaction(_) => Ok(None),
        }
    }

    /// What `f` finds through a reader of this view's collection without waiting; None if that is
    /// not there. Not of a transaction. `f` runs with the interpreter's lock.
    #[inline]
    pub(crate) fn look<T>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&Reader) -> PyResult<T>,
    ) -> PyResult<Option<T>> {
        if let (Objects::Snapshot(snapshot), None) = (&self.objects, &self.collection) {
            let held = snapshot.at_hand();
            if let Some(reader) = held.get() {
                return f(reader).map(Some);
            }
        }
        // A state may have to be read, or be made durable, before it can be opened.
        py.detach(|| self.reader())?.map(|reader| f(&reader)).transpose()
    }

    /// Runs `f` in the transaction that the view is of, in its collection.
    pub(crate) fn in_tx<T>(
        tx: &Transaction,
        collection: Option<&str>,
        f: impl FnOnce(&mut ObjectsMut) -> Outcome<T>,
    ) -> Outcome<T> {
        tx.with(|tx| in_collection(tx, collection, f))
    }

    /// Runs one of two reads; `absent` if the collection is not there.
    pub(crate) fn read<T>(
        &self,
        absent: T,
        of_reader: impl FnOnce(&Reader) -> Outcome<T>,
        of_tx: impl FnOnce(&mut ObjectsMut) -> Outcome<T>,
    ) -> Outcome<T> {
        if let Objects::Transaction(tx) = &self.objects {
            return Self::in_tx(tx, self.collection.as_deref(), of_tx);
        }
        match self.reader()? {
            Some(reader) => of_reader(&reader),
            None => Ok(absent),
        }
    }
}

#[pymethods]
impl View {
    #[new]
    #[pyo3(signature = (source, collection=None, keys=None))]
    fn new(source: &Source, collection: Option<String>, keys: Option<&str>) -> PyResult<Self> {
        let collection = collection.filter(|name| name != holdall::DEFAULT_COLLECTION);
        let form = match keys {
            Some(keys) => Form::parse(keys)?,
            None => source.0.handle().settings().form,
        };
        Ok(Self { objects: source.0.clone(), collection: collection.map(Into::into), form })
    }

    /// What names are given out as: "str" or "bytes".
    #[getter]
    fn keys_as(&self) -> &'static str {
        self.form.keys()
    }

    /// Where the objects come from.
    #[getter]
    fn source(&self) -> Source {
        Source(self.objects.clone())
    }

    /// The collection's name.
    #[getter]
    fn name(&self) -> &str {
        self.collection.as_deref().unwrap_or(holdall::DEFAULT_COLLECTION)
    }

    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        object: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.bytes_of(py, &key(object)?)?.ok_or_else(|| Self::missing(object))
    }

    fn __contains__(&self, py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = key(object)?;
        let there = |oid: Result<Option<_>, Error>| match oid {
            Ok(oid) => Ok(oid.is_some()),
            Err(Error::NotFound(_) | Error::Dangling(_)) => Ok(false),
            Err(e) => Err(e.into()),
        };
        Ok(py.detach(|| {
            self.read(
                false,
                |reader| match &key {
                    Key::Name(name) => there(reader.lookup(name)),
                    Key::Oid(oid) => there(reader.metadata(*oid).map(|m| Some(m.oid))),
                },
                |tx| match &key {
                    Key::Name(name) => there(tx.lookup(name)),
                    Key::Oid(oid) => there(tx.metadata(*oid).map(|m| Some(m.oid))),
                },
            )
        })?)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let count = || self.read(0, |reader| Ok(reader.count_names()?), |tx| Ok(tx.count_names()?));
        Ok(usize::try_from(py.detach(count)?)?)
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        let some = |reader: &Reader| Ok(reader.names("").next().transpose()?.is_some());
        Ok(py.detach(|| self.read(false, some, |tx| Ok(tx.has_names()?)))?)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Names> {
        Names::start(py, self, &Asked::default())
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Names> {
        Names::start(py, self, &Asked { reverse: true, ..Asked::default() })
    }

    /// The objects' bytes, or pairs of names and bytes, in the order of names or backwards.
    #[pyo3(signature = (with_names, reverse=false))]
    fn walk(&self, py: Python<'_>, with_names: bool, reverse: bool) -> PyResult<Items> {
        Items::new(py, self, &Asked { reverse, ..Asked::default() }, with_names)
    }

    /// The names that begin with `prefix`, from `start` on and below `stop`, in order.
    #[pyo3(signature = (prefix=None, *, start=None, stop=None, reverse=false))]
    fn names(
        &self,
        py: Python<'_>,
        prefix: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
        stop: Option<&Bound<'_, PyAny>>,
        reverse: bool,
    ) -> PyResult<Names> {
        Names::start(py, self, &Asked { prefix, start, stop, reverse })
    }

    /// Names and common prefixes up to a delimiter, and where the next page begins.
    #[pyo3(signature = (prefix, delimiter, start_after, limit))]
    fn list_page<'py>(
        &self,
        py: Python<'py>,
        prefix: &Bound<'py, PyAny>,
        delimiter: Option<&Bound<'py, PyAny>>,
        start_after: Option<&Bound<'py, PyAny>>,
        limit: usize,
    ) -> PyResult<Page<'py>> {
        let prefix = name(prefix)?;
        let (delimiter, after) =
            (delimiter.map(name).transpose()?, start_after.map(name).transpose()?);
        let options = ListOptions {
            prefix: &prefix,
            start_after: after.as_deref(),
            delimiter: delimiter.as_deref(),
            limit,
        };
        let listing = py.detach(|| {
            let none = holdall::Listing::default();
            self.read(none, |reader| Ok(reader.list(&options)?), |tx| Ok(tx.list(&options)?))
        })?;
        let (names, prefixes) = (PyList::empty(py), PyList::empty(py));
        for entry in &listing.entries {
            match entry {
                Listed::Object(entry) => names.append(self.form.give(py, &entry.name)?)?,
                Listed::Prefix(prefix) => prefixes.append(self.form.give(py, prefix)?)?,
            }
        }
        Ok((names, prefixes, listing.next.map(|next| self.form.give(py, &next)).transpose()?))
    }

    /// The names of all collections. A transaction shows those of the newest state.
    fn collections(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let all = py.detach(|| match &self.objects {
            Objects::Newest(handle, _) => {
                handle.with(|store| Ok(store.read_newest()?.collections()?))
            }
            Objects::Snapshot(snapshot) => snapshot.with(|reader| Ok(reader.collections()?)),
            Objects::Transaction(tx) => {
                tx.handle.with(|store| Ok(store.read_newest()?.collections()?))
            }
        })?;
        Ok(all.into_iter().filter(|name| !crate::file::is_draft(name)).collect())
    }

    /// Opens an object as a file without a buffer: "r", "r+", "w", "x" or "a".
    #[pyo3(signature = (key, mode, attributes=None))]
    fn open_raw(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        mode: &str,
        attributes: Option<BTreeMap<String, Vec<u8>>>,
    ) -> PyResult<RawFile> {
        let key = crate::keys::key(key)?;
        let mode = mode.to_owned();
        Ok(py.detach(|| RawFile::open(self, &key, &mode, attributes.unwrap_or_default()))?)
    }
}
