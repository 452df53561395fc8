//! Reading objects: of the newest state, a snapshot, a transaction, in one collection.
//!
//! Owns: [`View`], the base of the package's `Store`, `Snapshot`, `Transaction` and
//! `Collection`; [`Info`].

use crate::buffer::LentMut;
use crate::errors::{Fail, Outcome};
use crate::file::RawFile;
use crate::keys::{ObjectId, key, name, to_str};
use crate::names::Names;
use crate::source::{Objects, Source, Transaction};
use holdall::{
    Durability, Error, Key, Layout, ListOptions, Listed, Metadata, Object, Reader, WriteTx,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Objects up to this size are read into memory of the thread first, which then knows their
/// size without a second look-up.
const SCRATCH: usize = 64 << 10;
/// Most memory that a thread keeps between calls of `get_many`.
const KEPT: usize = 8 << 20;

thread_local! {
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Names, common prefixes, and where the next page begins.
type Page<'py> = (Bound<'py, PyList>, Bound<'py, PyList>, Option<Bound<'py, PyAny>>);

/// Objects of a store, a snapshot or a transaction, in one collection.
#[pyclass(subclass, frozen, module = "holdall._core")]
pub struct View {
    pub(crate) objects: Objects,
    pub(crate) collection: Option<Arc<str>>,
}

/// What is known of an object without reading its bytes.
#[pyclass(frozen, get_all, module = "holdall")]
pub struct Info {
    /// Its id.
    oid: ObjectId,
    /// Its name; None where it has none.
    name: Option<Py<PyAny>>,
    /// Its size in bytes.
    size: u64,
    /// Changes with every change of its bytes or attributes; compare it for equality only.
    version: String,
    /// Its attributes: their bytes by their names.
    attributes: Py<PyDict>,
    /// "small" where it lies in a page with others, "large" where it has segments of its own.
    layout: &'static str,
}

#[pymethods]
impl Info {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = match &self.name {
            Some(name) => name.bind(py).repr()?.to_string(),
            None => "None".to_owned(),
        };
        Ok(format!("Info(name={name}, size={}, oid={})", self.size, self.oid.0))
    }
}

/// Those of a reader's objects that are in a view's collection; None where it is not there.
fn of_collection(reader: &Reader, collection: Option<&str>) -> Outcome<Option<Reader>> {
    match collection.map(|name| reader.collection(name)) {
        None => Ok(Some(reader.clone())),
        Some(Ok(reader)) => Ok(Some(reader)),
        Some(Err(Error::NotFound(_))) => Ok(None),
        Some(Err(e)) => Err(e.into()),
    }
}

impl View {
    /// A reader of this view's collection; None where that is not there. Not of a transaction.
    pub(crate) fn reader(&self) -> Outcome<Option<Reader>> {
        let collection = self.collection.as_deref();
        match &self.objects {
            Objects::Newest(handle, durability) => handle.with(|store| {
                let reader = match durability {
                    Durability::Immediate => store.read()?,
                    Durability::Deferred => store.read_newest()?,
                };
                of_collection(&reader, collection)
            }),
            Objects::Snapshot(snapshot) => {
                snapshot.with(|reader| of_collection(reader, collection))
            }
            Objects::Transaction(_) => Ok(None),
        }
    }

    /// Runs `f` in the transaction that the view is of, in its collection.
    pub(crate) fn in_tx<T>(
        tx: &Transaction,
        collection: Option<&str>,
        f: impl FnOnce(&mut WriteTx) -> Outcome<T>,
    ) -> Outcome<T> {
        tx.with(|tx| match collection {
            None => f(tx),
            Some(name) => f(&mut *tx.collection(name)?),
        })
    }

    /// Runs one of two reads; `absent` where the collection is not there.
    pub(crate) fn read<T>(
        &self,
        absent: T,
        of_reader: impl FnOnce(&Reader) -> Outcome<T>,
        of_tx: impl FnOnce(&mut WriteTx) -> Outcome<T>,
    ) -> Outcome<T> {
        if let Objects::Transaction(tx) = &self.objects {
            return Self::in_tx(tx, self.collection.as_deref(), of_tx);
        }
        match self.reader()? {
            Some(reader) => of_reader(&reader),
            None => Ok(absent),
        }
    }

    /// Up to `buf.len()` bytes of an object from `offset`; None where there is no such name.
    #[inline]
    fn read_at(&self, key: &Key<'_>, offset: u64, buf: &mut [u8]) -> Outcome<Option<usize>> {
        match self.read_inside(key, offset, buf) {
            // Nothing lies beyond the end, as in a file.
            Err(Fail::Store(Error::Range { .. })) => Ok(Some(0)),
            read => read,
        }
    }

    #[inline]
    fn read_inside(&self, key: &Key<'_>, offset: u64, buf: &mut [u8]) -> Outcome<Option<usize>> {
        match (&self.objects, self.collection.as_deref()) {
            (Objects::Newest(handle, Durability::Immediate), None) => {
                handle.with(|store| Ok(store.read_at(key, offset, buf)?))
            }
            (Objects::Snapshot(snapshot), None) => {
                snapshot.with(|reader| Ok(reader.read_at(key, offset, buf)?))
            }
            (Objects::Transaction(tx), collection) => {
                Self::in_tx(tx, collection, |tx| tx_read_at(tx, key, offset, buf))
            }
            _ => match self.reader()? {
                Some(reader) => Ok(reader.read_at(key, offset, buf)?),
                None => Ok(None),
            },
        }
    }

    /// All bytes of an object that is larger than what was read of it, or of any in a
    /// transaction.
    fn read_whole<'py>(
        &self,
        py: Python<'py>,
        key: &Key<'_>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if let Objects::Transaction(tx) = &self.objects {
            let collection = self.collection.as_deref();
            let bytes = py.detach(|| Self::in_tx(tx, collection, |tx| Ok(tx.get(key)?)))?;
            return Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)));
        }
        let open = || -> Outcome<Option<Object>> {
            let Some(reader) = self.reader()? else { return Ok(None) };
            match reader.open(key) {
                Ok(object) => Ok(Some(object)),
                Err(Error::NotFound(_)) if matches!(key, Key::Name(_)) => Ok(None),
                Err(e) => Err(e.into()),
            }
        };
        let Some(object) = py.detach(open)? else { return Ok(None) };
        let size = usize::try_from(object.size())?;
        let fill = |buf: &mut [u8]| {
            py.detach(|| object.read_at(0, buf)).map_err(Fail::Store)?;
            Ok(())
        };
        PyBytes::new_with(py, size, fill).map(Some)
    }

    /// All bytes of an object; None where there is no such name.
    fn bytes_of<'py>(
        &self,
        py: Python<'py>,
        key: &Key<'_>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        BYTES.with(|cell| {
            // Taken, so that nothing that runs meanwhile in this thread finds it in use.
            let mut scratch = cell.take();
            if scratch.len() < SCRATCH {
                scratch.resize(SCRATCH, 0);
            }
            let buf = &mut scratch[..SCRATCH];
            let read = py.detach(|| self.read_at(key, 0, buf));
            let found = match read {
                Ok(None) => Ok(None),
                Ok(Some(n)) if n < SCRATCH => Ok(Some(PyBytes::new(py, &buf[..n]))),
                Ok(Some(_)) => self.read_whole(py, key),
                Err(e) => Err(e.into()),
            };
            cell.replace(scratch);
            found
        })
    }

    fn missing(key: &Bound<'_, PyAny>) -> PyErr {
        let text = key.repr().map_or_else(|_| "object".into(), |r| format!("object {r}"));
        Fail::Store(Error::NotFound(text)).into()
    }
}

/// As [`View::read_at`], in a transaction.
fn tx_read_at(
    tx: &mut WriteTx,
    key: &Key<'_>,
    offset: u64,
    buf: &mut [u8],
) -> Outcome<Option<usize>> {
    let oid = match key {
        Key::Oid(oid) => *oid,
        Key::Name(name) => match tx.lookup(name)? {
            Some(oid) => oid,
            None => return Ok(None),
        },
    };
    let size = tx.metadata(oid)?.size;
    let start = offset.min(size);
    let end = start.saturating_add(buf.len() as u64).min(size);
    let Some(bytes) = tx.get_range(oid, start..end)? else { return Ok(None) };
    buf[..bytes.len()].copy_from_slice(&bytes);
    Ok(Some(bytes.len()))
}

#[pymethods]
impl View {
    #[new]
    #[pyo3(signature = (source, collection=None))]
    fn new(source: &Source, collection: Option<String>) -> Self {
        let collection = collection.filter(|name| name != holdall::DEFAULT_COLLECTION);
        Self { objects: source.0.clone(), collection: collection.map(Into::into) }
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
        Names::count(py, self)
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<Names> {
        Names::new(py, self, None, None, None, false)
    }

    fn __reversed__(&self, py: Python<'_>) -> PyResult<Names> {
        Names::new(py, self, None, None, None, true)
    }

    /// All bytes of an object, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.bytes_of(py, &crate::keys::key(key)?)?;
        Ok(found.map(Bound::into_any).or(default))
    }

    /// All bytes of many objects, in the order of `keys`; None for those that are missing.
    fn get_many<'py>(
        &self,
        py: Python<'py>,
        keys: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let objects: Vec<Bound<'py, PyAny>> = keys.try_iter()?.collect::<PyResult<_>>()?;
        let wanted: Vec<Key<'_>> = objects.iter().map(key).collect::<PyResult<_>>()?;
        let mut ends: Vec<Option<usize>> = Vec::with_capacity(wanted.len());
        let mut all = BYTES.with(RefCell::take);
        all.clear();
        let read = py.detach(|| self.many(&wanted, &mut all, &mut ends));
        let list = PyList::empty(py);
        let mut start = 0;
        let made = read.map_err(PyErr::from).and_then(|()| {
            ends.iter().try_for_each(|end| match end {
                None => list.append(py.None()),
                Some(end) => {
                    let bytes = PyBytes::new(py, &all[start..*end]);
                    start = *end;
                    list.append(bytes)
                }
            })
        });
        if all.capacity() <= KEPT {
            BYTES.with(|cell| cell.replace(all));
        }
        made.map(|()| list)
    }

    /// The bytes from `start` to `stop` of an object, as a slice would have them; None where
    /// there is no such name.
    #[pyo3(signature = (key, start=0, stop=None))]
    fn get_range<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        start: i64,
        stop: Option<i64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = crate::keys::key(key)?;
        let find = || -> Outcome<Option<(u64, Option<Object>)>> {
            let of_reader = |reader: &Reader| match reader.open(&key) {
                Ok(object) => Ok(Some((object.size(), Some(object)))),
                Err(Error::NotFound(_)) if matches!(key, Key::Name(_)) => Ok(None),
                Err(e) => Err(e.into()),
            };
            self.read(None, of_reader, |tx| match tx.metadata(&key) {
                Ok(data) => Ok(Some((data.size, None))),
                Err(Error::NotFound(_)) if matches!(key, Key::Name(_)) => Ok(None),
                Err(e) => Err(e.into()),
            })
        };
        let Some((size, object)) = py.detach(find)? else { return Ok(None) };
        // As a slice: from the end where it is negative, and never beyond it.
        let place = |at: i64| match u64::try_from(at) {
            Ok(at) => at.min(size),
            Err(_) => size.saturating_sub(at.unsigned_abs()),
        };
        let (start, stop) = (place(start), stop.map_or(size, place));
        let len = usize::try_from(stop.saturating_sub(start))?;
        PyBytes::new_with(py, len, |buf| {
            let fill = || -> Outcome<()> {
                match &object {
                    Some(object) => {
                        object.read_at(start, buf)?;
                    }
                    None => {
                        self.read_at(&key, start, buf)?;
                    }
                }
                Ok(())
            };
            Ok(py.detach(fill)?)
        })
        .map(Some)
    }

    /// Fills a buffer with an object's bytes from `offset`, and tells how many; fewer than fit
    /// only at the object's end.
    #[pyo3(signature = (key, buffer, offset=0))]
    fn read_into(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        buffer: &Bound<'_, PyAny>,
        offset: u64,
    ) -> PyResult<usize> {
        let wanted = crate::keys::key(key)?;
        let mut lent = LentMut::of(buffer)?;
        let buf = lent.bytes();
        let read = py.detach(|| self.read_at(&wanted, offset, buf))?;
        read.ok_or_else(|| Self::missing(key))
    }

    /// What is known of an object without reading its bytes.
    fn info(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Info> {
        let wanted = crate::keys::key(key)?;
        let found = py.detach(|| {
            self.read(
                None,
                |reader| Ok(Some(reader.metadata(&wanted)?)),
                |tx| Ok(Some(tx.metadata(&wanted)?)),
            )
        })?;
        let Metadata { oid, name, size, version, attributes, layout } =
            found.ok_or_else(|| Self::missing(key))?;
        Ok(Info {
            oid: ObjectId(oid),
            name: name.map(|n| to_str(py, &n).map(Bound::unbind)).transpose()?,
            size,
            version: version.to_string(),
            attributes: attributes_dict(py, &attributes)?,
            layout: if layout == Layout::Small { "small" } else { "large" },
        })
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
        Names::new(py, self, prefix, start, stop, reverse)
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
                Listed::Object(entry) => names.append(to_str(py, &entry.name)?)?,
                Listed::Prefix(prefix) => prefixes.append(to_str(py, prefix)?)?,
            }
        }
        Ok((names, prefixes, listing.next.map(|next| to_str(py, &next)).transpose()?))
    }

    /// The names of all collections. A transaction shows those of the newest state.
    fn collections(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let all = py.detach(|| match &self.objects {
            Objects::Newest(handle, _) => {
                handle.with(|store| Ok(store.read_newest()?.collections()?))
            }
            Objects::Snapshot(snapshot) => snapshot.with(|reader| Ok(reader.collections()?)),
            Objects::Transaction(tx) => tx.handle.with(|store| Ok(store.read()?.collections()?)),
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

impl View {
    /// Reads many objects one behind the other into `all`; tells where each ends.
    fn many(
        &self,
        keys: &[Key<'_>],
        all: &mut Vec<u8>,
        ends: &mut Vec<Option<usize>>,
    ) -> Outcome<()> {
        if let Objects::Transaction(tx) = &self.objects {
            return Self::in_tx(tx, self.collection.as_deref(), |tx| {
                for key in keys {
                    ends.push(tx.get(key)?.map(|bytes| {
                        all.extend_from_slice(&bytes);
                        all.len()
                    }));
                }
                Ok(())
            });
        }
        let Some(reader) = self.reader()? else {
            ends.resize(keys.len(), None);
            return Ok(());
        };
        Ok(reader.get_many(keys, |_, bytes| {
            ends.push(bytes?.map(|bytes| {
                all.extend_from_slice(bytes);
                all.len()
            }));
            Ok(())
        })?)
    }
}

/// Attributes for Python.
pub(crate) fn attributes_dict(
    py: Python<'_>,
    attributes: &holdall::Attributes,
) -> PyResult<Py<PyDict>> {
    let dict = PyDict::new(py);
    for (key, value) in attributes {
        dict.set_item(key, PyBytes::new(py, value))?;
    }
    Ok(dict.unbind())
}
