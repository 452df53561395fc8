//! Changing objects: each call a commit of its own, or a part of a transaction.
//!
//! Owns: the methods of [`View`] that change something.

use crate::buffer::Lent;
use crate::errors::{Fail, Outcome};
use crate::handle::Held;
use crate::keys::{ObjectId, key, name};
use crate::source::Objects;
use crate::view::View;
use holdall::{Attributes, Durability, Error, Key, ObjectsMut, PutMode, PutOptions, WriteTx};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// Objects of `put_many` that are taken to the engine at a time.
const OBJECTS_AT_ONCE: usize = 256;

impl View {
    /// Runs `f` in the view's transaction, or in one of its own that is then committed.
    pub(crate) fn write<T>(&self, f: impl FnOnce(&mut ObjectsMut) -> Outcome<T>) -> Outcome<T> {
        self.write_as(self.objects.durability(), f)
    }

    /// As [`View::write`]; how durable a transaction of its own is.
    pub(crate) fn write_as<T>(
        &self,
        durability: Durability,
        f: impl FnOnce(&mut ObjectsMut) -> Outcome<T>,
    ) -> Outcome<T> {
        let collection = self.collection.as_deref();
        match &self.objects {
            Objects::Snapshot(_) => Err(Error::ReadOnly.into()),
            Objects::Transaction(tx) => Self::in_tx(tx, collection, f),
            Objects::Newest(handle, _) => write_to(handle, collection, durability, f),
        }
    }
}

/// Runs `f` in a transaction of its own, in a collection.
pub(crate) fn write_to<T>(
    handle: &Held,
    collection: Option<&str>,
    durability: Durability,
    f: impl FnOnce(&mut ObjectsMut) -> Outcome<T>,
) -> Outcome<T> {
    transact(handle, durability, |tx| in_collection(tx, collection, f))
}

/// Runs `f` in a transaction of its own.
pub(crate) fn transact<T>(
    handle: &Held,
    durability: Durability,
    f: impl FnOnce(&mut WriteTx) -> Outcome<T>,
) -> Outcome<T> {
    let mut tx = handle.begin(durability)?;
    let value = f(&mut tx)?;
    tx.commit()?;
    Ok(value)
}

/// Runs `f` on the objects of a collection, the default one if none is named.
pub(crate) fn in_collection<T>(
    tx: &mut WriteTx,
    collection: Option<&str>,
    f: impl FnOnce(&mut ObjectsMut) -> Outcome<T>,
) -> Outcome<T> {
    match collection {
        None => f(tx),
        Some(name) => f(&mut *tx.collection(name)?),
    }
}

/// What a put does about an object that has the name.
fn mode_of(exclusive: bool, if_version: Option<&str>) -> Outcome<PutMode> {
    Ok(match (exclusive, if_version) {
        (false, None) => PutMode::Overwrite,
        (true, None) => PutMode::Create,
        (false, Some(version)) => PutMode::Update(version.parse()?),
        (true, Some(_)) => {
            let text = "exclusive and if_version exclude each other";
            return Err(Error::Invalid(text.into()).into());
        }
    })
}

/// A commit of many puts, which takes what an iterator yields.
fn put_many(
    view: &View,
    py: Python<'_>,
    items: &Bound<'_, PyAny>,
    options: Option<&PutOptions>,
) -> PyResult<u64> {
    let mut items = items.try_iter()?;
    let mut count = 0;
    loop {
        let mut pairs = Vec::with_capacity(OBJECTS_AT_ONCE);
        for item in items.by_ref().take(OBJECTS_AT_ONCE) {
            let item = item?;
            let pair = match item.cast_into::<PyTuple>() {
                Ok(pair) if pair.len() == 2 => (pair.get_item(0)?, pair.get_item(1)?),
                Ok(other) => {
                    let text =
                        format!("a pair of a name and bytes has 2 items, not {}", other.len());
                    return Err(PyValueError::new_err(text));
                }
                Err(e) => e.into_inner().extract()?,
            };
            pairs.push(pair);
        }
        if pairs.is_empty() {
            return Ok(count);
        }
        count += pairs.len() as u64;
        let mut given = Vec::with_capacity(pairs.len());
        for (object, bytes) in &pairs {
            given.push((name(object)?, Lent::borrow(bytes)?));
        }
        let given: Vec<_> = given.iter().map(|(name, bytes)| (name, bytes.bytes())).collect();
        py.detach(|| {
            view.write(|tx| {
                for (name, bytes) in &given {
                    match options {
                        None => tx.put(name, bytes)?,
                        Some(options) => tx.put_with(name, bytes, options)?,
                    };
                }
                Ok(())
            })
        })?;
    }
}

/// An edit of one object that returns its new size.
fn edit<'k>(
    view: &View,
    py: Python<'_>,
    object: &'k Bound<'_, PyAny>,
    f: impl FnOnce(&mut ObjectsMut, Key<'k>) -> holdall::Result<u64> + Send,
) -> PyResult<u64> {
    let key = key(object)?;
    Ok(py.detach(|| view.write(|tx| Ok(f(tx, key)?)))?)
}

#[pymethods]
impl View {
    fn __setitem__(
        &self,
        py: Python<'_>,
        object: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (name, lent) = (name(object)?, Lent::borrow(data)?);
        let bytes = lent.bytes();
        Ok(py.detach(|| self.write(|tx| Ok(tx.put(&name, bytes).map(drop)?)))?)
    }

    fn __delitem__(&self, py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.remove(py, object)? {
            return Ok(());
        }
        let text = object.repr().map_or_else(|_| "object".into(), |r| format!("object {r}"));
        Err(Fail::Store(Error::NotFound(text)).into())
    }

    /// Puts an object, and gives its id.
    #[pyo3(signature = (name, data, *, attributes=None, exclusive=false, if_version=None))]
    fn put(
        &self,
        py: Python<'_>,
        name: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        attributes: Option<Attributes>,
        exclusive: bool,
        if_version: Option<&str>,
    ) -> PyResult<ObjectId> {
        let (name, lent) = (crate::keys::name(name)?, Lent::borrow(data)?);
        let mode = mode_of(exclusive, if_version)?;
        let attributes = attributes.unwrap_or_default();
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        let bytes = lent.bytes();
        let oid = py.detach(|| self.write(|tx| Ok(tx.put_with(&name, bytes, &options)?)))?;
        Ok(ObjectId(oid))
    }

    /// Puts an object without a name, and gives its id.
    #[pyo3(signature = (data, *, attributes=None))]
    fn create(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        attributes: Option<Attributes>,
    ) -> PyResult<ObjectId> {
        let lent = Lent::borrow(data)?;
        let options = PutOptions::with_attributes(attributes.unwrap_or_default());
        let bytes = lent.bytes();
        let oid = py.detach(|| self.write(|tx| Ok(tx.create_with(bytes, &options)?)))?;
        Ok(ObjectId(oid))
    }

    /// Puts what an iterable of pairs yields, as one transaction; returns how many. All get the
    /// same attributes.
    #[pyo3(signature = (items, *, attributes=None))]
    fn put_many(
        &self,
        py: Python<'_>,
        items: &Bound<'_, PyAny>,
        attributes: Option<Attributes>,
    ) -> PyResult<u64> {
        let options = attributes.map(PutOptions::with_attributes);
        let Objects::Newest(handle, durability) = &self.objects else {
            return put_many(self, py, items, options.as_ref());
        };
        // One transaction around all, which other calls of this thread may not enter.
        let source = crate::source::begin(py, handle, *durability)?;
        let inner = Self { objects: source.0.clone(), ..self.clone() };
        let count = put_many(&inner, py, items, options.as_ref())?;
        source.end(py, true)?;
        Ok(count)
    }

    /// Removes an object; returns whether there was one.
    fn remove(&self, py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = key(object)?;
        Ok(py.detach(|| self.write(|tx| Ok(tx.remove(key)?)))?)
    }

    /// Gives an object another name, which none may have.
    fn rename(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (from, to) = (name(source)?, name(target)?);
        Ok(py.detach(|| self.write(|tx| Ok(tx.rename(&from, &to)?)))?)
    }

    /// Copies an object to a name; the copy shares its data.
    fn copy(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
    ) -> PyResult<ObjectId> {
        let (from, to) = (key(source)?, name(target)?);
        Ok(ObjectId(py.detach(|| self.write(|tx| Ok(tx.copy(from, &to)?)))?))
    }

    /// Inserts bytes of an object into another at a place, sharing them; gives the new size.
    fn copy_range(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        start: u64,
        stop: u64,
        target: &Bound<'_, PyAny>,
        at: u64,
    ) -> PyResult<u64> {
        let (from, to) = (key(source)?, key(target)?);
        Ok(py.detach(|| self.write(|tx| Ok(tx.copy_range(from, start..stop, to, at)?)))?)
    }

    /// Makes an object of others, one behind the other, sharing their data.
    fn concat(
        &self,
        py: Python<'_>,
        parts: Vec<Bound<'_, PyAny>>,
        target: &Bound<'_, PyAny>,
    ) -> PyResult<ObjectId> {
        let to = name(target)?;
        let parts: Vec<Key<'_>> = parts.iter().map(key).collect::<PyResult<_>>()?;
        Ok(ObjectId(py.detach(|| self.write(|tx| Ok(tx.concat(&parts, &to)?)))?))
    }

    /// Puts bytes before byte `at`; gives the new size.
    fn insert(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        at: u64,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let lent = Lent::borrow(data)?;
        let bytes = lent.bytes();
        edit(self, py, key, |tx, key| tx.insert(key, at, bytes))
    }

    /// Cuts the bytes from `start` to `stop` out; gives the new size.
    fn delete_range(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        start: u64,
        stop: u64,
    ) -> PyResult<u64> {
        edit(self, py, key, |tx, key| tx.delete_range(key, start..stop))
    }

    /// Puts bytes in place of those from `start` to `stop`; gives the new size.
    fn splice(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        start: u64,
        stop: u64,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let lent = Lent::borrow(data)?;
        let bytes = lent.bytes();
        edit(self, py, key, |tx, key| tx.splice(key, start..stop, bytes))
    }

    /// Writes bytes at a place as into a file; gives the new size.
    fn write_at(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        at: u64,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let lent = Lent::borrow(data)?;
        let bytes = lent.bytes();
        edit(self, py, key, |tx, key| tx.write_at(key, at, bytes))
    }

    /// Adds bytes at the end; gives the new size.
    fn append(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
    ) -> PyResult<u64> {
        let lent = Lent::borrow(data)?;
        let bytes = lent.bytes();
        edit(self, py, key, |tx, key| tx.append(key, bytes))
    }

    /// Cuts an object, or makes it longer by zeros; gives the new size.
    fn truncate(&self, py: Python<'_>, key: &Bound<'_, PyAny>, size: u64) -> PyResult<u64> {
        edit(self, py, key, |tx, key| tx.set_len(key, size))
    }

    /// Replaces an object's attributes.
    fn set_attributes(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        attributes: Attributes,
    ) -> PyResult<()> {
        let key = crate::keys::key(key)?;
        Ok(py.detach(|| self.write(|tx| Ok(tx.set_attributes(key, &attributes)?)))?)
    }

    /// Drops a collection with all its objects; returns whether there was one.
    fn drop_collection(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(py.detach(|| match &self.objects {
            Objects::Snapshot(_) => Err(Error::ReadOnly.into()),
            Objects::Transaction(tx) => tx.with(|tx| Ok(tx.drop_collection(name)?)),
            Objects::Newest(handle, _) => {
                let durability = self.objects.durability();
                transact(handle, durability, |tx| Ok(tx.drop_collection(name)?))
            }
        })?)
    }
}
