//! Reading objects through a view.
//!
//! Owns: the calls of [`View`] that read bytes and attributes; [`Info`].

use crate::buffer::{LentMut, Unfilled, joined, keep_memory_of};
use crate::errors::{Fail, Outcome};
use crate::keys::{ObjectId, key};
use crate::source::Objects;
use crate::view::View;
use holdall::{Error, Fetched, Key, Layout, Looked, Metadata, Object, ObjectsMut, Reader};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple, PyType};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::SystemTime;

/// Objects that are looked at in memory before other threads may have the interpreter's lock.
const LOOKED_AT_ONCE: usize = 1024;

/// What is known of an object without reading its bytes.
#[pyclass(frozen, get_all, module = "holdall")]
pub struct Info {
    /// Its id.
    oid: ObjectId,
    /// Its name; None if it has none.
    name: Option<Py<PyAny>>,
    /// Its size in bytes.
    size: u64,
    /// Changes with every change of its bytes or attributes; compare it for equality only.
    version: String,
    /// Its attributes: their bytes by their names.
    attributes: Py<PyDict>,
    /// When its bytes last changed; None if nobody knows it.
    modified: Option<SystemTime>,
    /// "small" if it lies in a page with others, "large" if it has segments of its own.
    layout: &'static str,
}

#[pymethods]
impl Info {
    #[new]
    #[pyo3(signature = (oid, name, size, version, attributes, layout, modified=None))]
    fn new(
        oid: ObjectId,
        name: Option<Py<PyAny>>,
        size: u64,
        version: String,
        attributes: Py<PyDict>,
        layout: &str,
        modified: Option<SystemTime>,
    ) -> PyResult<Self> {
        let layout = match layout {
            "small" => "small",
            "large" => "large",
            other => {
                let text = format!("layout {other:?} is neither \"small\" nor \"large\"");
                return Err(PyValueError::new_err(text));
            }
        };
        Ok(Self { oid, name, size, version, attributes, modified, layout })
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
        Ok((slf.get_type(), slf.get().fields(slf.py())?))
    }

    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        self.fields(py)?.eq(other.fields(py)?)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.oid, self.size, &self.version).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = match &self.name {
            Some(name) => name.bind(py).repr()?.to_string(),
            None => "None".to_owned(),
        };
        Ok(format!("Info(name={name}, size={}, oid={})", self.size, self.oid.0))
    }
}

impl Info {
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let name = self.name.as_ref().map(|name| name.bind(py));
        let attributes = self.attributes.bind(py);
        (self.oid, name, self.size, &self.version, attributes, self.layout, self.modified)
            .into_pyobject(py)
    }
}

impl View {
    /// Up to `buf.len()` bytes of an object from `offset`; None if there is no such name.
    #[inline]
    fn read_at(&self, key: &Key<'_>, offset: u64, buf: &mut [u8]) -> Outcome<Option<usize>> {
        match (&self.objects, self.collection.as_deref()) {
            (Objects::Newest(handle, _), None) => {
                handle.with(|store| Ok(store.read_newest()?.read_at(key, offset, buf)?))
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

    /// All bytes of an object; None if there is no such name. A small one in memory is copied with
    /// the interpreter's lock held: to give that up and to wait for it takes longer.
    #[inline]
    pub(crate) fn bytes_of<'py>(
        &self,
        py: Python<'py>,
        key: &Key<'_>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if let Objects::Transaction(tx) = &self.objects {
            let get = || Self::in_tx(tx, self.collection.as_deref(), |tx| Ok(tx.get(key)?));
            return Ok(py.detach(get)?.map(|bytes| PyBytes::new(py, &bytes)));
        }
        let look = |reader: &Reader| match reader
            .look(key, |parts| joined(py, parts))
            .map_err(Fail::Store)?
        {
            Looked::Missing => Ok(None),
            Looked::Small(bytes) => bytes.map(Some),
            Looked::Large(object) => whole(py, &object).map(Some),
            Looked::NotInMemory => fetch(py, reader, key),
        };
        Ok(self.look(py, look)?.flatten())
    }

    pub(crate) fn missing(key: &Bound<'_, PyAny>) -> PyErr {
        let text = key.repr().map_or_else(|_| "object".into(), |r| format!("object {r}"));
        Fail::Store(Error::NotFound(text)).into()
    }
}

/// All bytes of an object, which are read from disk; None if there is no such name.
#[cold]
fn fetch<'py>(
    py: Python<'py>,
    reader: &Reader,
    key: &Key<'_>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let mut bytes = Vec::new();
    match py.detach(|| reader.fetch(key, &mut bytes)).map_err(Fail::Store)? {
        None => Ok(None),
        Some(Fetched::Read) => Ok(Some(PyBytes::new(py, &bytes))),
        Some(Fetched::Opened(object)) => whole(py, &object).map(Some),
    }
}

/// The bytes of many objects of one state, as far as they are there: first of those that lie in
/// memory, then of the others, whose reads go out together. `most`: of those others as many bytes,
/// or one; objects behind them are left out.
pub(crate) fn many<'py>(
    py: Python<'py>,
    reader: &Reader,
    keys: &[Key<'_>],
    most: u64,
) -> Outcome<Vec<Option<Bound<'py, PyBytes>>>> {
    let (mut made, mut failed, mut taken) = (vec![None; keys.len()], None, 0);
    let looked = reader.look_many(keys, |i, parts| match joined(py, parts) {
        Ok(bytes) => {
            made[i] = Some(bytes);
            taken += parts[0].len() + parts[1].len();
        }
        Err(e) => failed = Some(e),
    });
    if let Some(e) = failed {
        return Err(e.into());
    }
    let mut located = looked?;
    if !located.is_complete() {
        py.detach(|| located.find_rest(keys))?;
    }
    let (mut total, mut count, mut new) = (0_u64, 0, Unfilled::default());
    for size in located.sizes() {
        if let Some(size) = size {
            total = total.saturating_add(size);
            if total > most && !new.is_empty() {
                break;
            }
            new.push(py, usize::try_from(size).map_err(PyErr::from)?)?;
        }
        count += 1;
    }
    made.truncate(count);
    located.truncate(count);
    if !new.is_empty() {
        let mut filled = new.fill(py, |memory| Ok(located.read_into(memory)?))?.into_iter();
        let read = made.iter_mut().zip(located.sizes()).filter(|(_, size)| size.is_some());
        read.for_each(|(made, _)| *made = filled.next());
    }
    keep_memory_of(taken.saturating_add(usize::try_from(total).unwrap_or(usize::MAX)));
    Ok(made)
}

/// All bytes of an object that was opened.
fn whole<'py>(py: Python<'py>, object: &Object) -> PyResult<Bound<'py, PyBytes>> {
    let mut new = Unfilled::default();
    new.push(py, usize::try_from(object.size())?)?;
    let filled = new.fill(py, |memory| {
        for buf in memory {
            object.read_at(0, buf)?;
        }
        Ok(())
    })?;
    filled.into_iter().next().ok_or_else(|| PyRuntimeError::new_err("nothing was read"))
}

/// As [`View::read_at`], in a transaction.
fn tx_read_at(
    tx: &mut ObjectsMut,
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
        if let Objects::Transaction(tx) = &self.objects {
            let all = py.detach(|| {
                Self::in_tx(tx, self.collection.as_deref(), |tx| {
                    wanted.iter().map(|key| Ok(tx.get(key)?)).collect::<Outcome<Vec<_>>>()
                })
            })?;
            return PyList::new(py, all.iter().map(|b| b.as_ref().map(|b| PyBytes::new(py, b))));
        }
        let found = self.look(py, |reader| {
            let mut found = Vec::with_capacity(wanted.len());
            for some in wanted.chunks(LOOKED_AT_ONCE) {
                found.extend(many(py, reader, some, u64::MAX)?);
                if found.len() < wanted.len() {
                    // Other threads may want the lock.
                    py.detach(|| ());
                }
            }
            PyList::new(py, found)
        })?;
        found.map_or_else(|| PyList::new(py, wanted.iter().map(|_| py.None())), Ok)
    }

    /// The bytes from `start` to `stop` of an object, as a slice would have them; None if
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
        // As a slice: from the end if it is negative, and never beyond it.
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

    /// Fills a buffer with an object's bytes from `offset`, and returns how many; fewer than fit
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
        let mut lent = LentMut::borrow(buffer)?;
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
        let found = found.ok_or_else(|| Self::missing(key))?;
        let modified = found.last_modified();
        let Metadata { oid, name, size, version, attributes, layout, .. } = found;
        Ok(Info {
            oid: ObjectId(oid),
            name: name.map(|n| self.form.give(py, &n).map(Bound::unbind)).transpose()?,
            size,
            version: version.to_string(),
            attributes: attributes_dict(py, &attributes)?,
            modified,
            layout: if layout == Layout::Small { "small" } else { "large" },
        })
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
