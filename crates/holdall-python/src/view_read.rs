//! Reading objects through a view.
//!
//! Owns: the calls of [`View`] that read bytes and attributes; [`Info`].

use crate::buffer::LentMut;
use crate::errors::{Fail, Outcome};
use crate::keys::{ObjectId, key, to_str};
use crate::source::Objects;
use crate::view::View;
use holdall::{Durability, Error, Key, Layout, Metadata, Object, Reader, WriteTx};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use std::cell::RefCell;

/// Objects up to this size are read into memory of the thread first, which then knows their
/// size without a second look-up.
const SCRATCH: usize = 64 << 10;
/// Most memory that a thread keeps between calls of `get_many`.
const KEPT: usize = 8 << 20;

thread_local! {
    static BYTES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
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

impl View {
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
    pub(crate) fn bytes_of<'py>(
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

    pub(crate) fn missing(key: &Bound<'_, PyAny>) -> PyErr {
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
