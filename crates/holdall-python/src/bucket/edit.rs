//! Changes of objects in a bucket, each of one object.

use super::{Bucket, TOGETHER, text};
use crate::buffer::Lent;
use crate::errors::Fail;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use holdall::{Attributes, Error};
use holdall_bucket::store::{ObjectVersion, PutMode, PutOptions};
use holdall_bucket::{BucketStore, Splice};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// How an object is put.
///
/// # Errors
/// InvalidError for two conditions, or a text that is no version.
pub fn put_options(
    attributes: Option<Attributes>,
    exclusive: bool,
    if_version: Option<&str>,
) -> PyResult<PutOptions> {
    let mode = match (exclusive, if_version) {
        (true, Some(_)) => {
            let text = "exclusive and if_version exclude each other";
            return Err(Fail::Store(Error::Invalid(text.into())).into());
        }
        (true, None) => PutMode::Create,
        (false, Some(version)) => PutMode::Update(parsed(version)?),
        (false, None) => PutMode::Overwrite,
    };
    Ok(PutOptions { mode, attributes: attributes.unwrap_or_default() })
}

fn parsed(version: &str) -> PyResult<ObjectVersion> {
    Ok(version.parse().map_err(Fail::Store)?)
}

fn copy_mode(exclusive: bool) -> PutMode {
    if exclusive { PutMode::Create } else { PutMode::Overwrite }
}

/// The bytes of an argument, kept: the call goes on while others may change its memory.
fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    Ok(Bytes::copy_from_slice(Lent::borrow(object)?.bytes()))
}

/// One edit: the name of a method, and what that takes behind the object's name.
///
/// # Errors
/// InvalidError for one that is not known; TypeError.
fn splice(edit: &Bound<'_, PyTuple>) -> PyResult<Splice> {
    let number = |at: usize| edit.get_item(at)?.extract::<u64>();
    let bytes = |at: usize| bytes_of(&edit.get_item(at)?);
    let what: String = edit.get_item(0)?.extract()?;
    Ok(match (what.as_str(), edit.len()) {
        ("insert", 3) => Splice::Replace(number(1)?..number(1)?, bytes(2)?),
        ("delete_range", 3) => Splice::Replace(number(1)?..number(2)?, Bytes::new()),
        ("splice", 4) => Splice::Replace(number(1)?..number(2)?, bytes(3)?),
        ("write_at", 3) => Splice::WriteAt(number(1)?, bytes(2)?),
        ("append", 2) => Splice::Append(bytes(1)?),
        ("truncate", 2) => Splice::SetLen(number(1)?),
        (what, count) => {
            let text = format!(
                "no edit is called {what:?} and has {} arguments; there are insert, delete_range, \
                 splice, write_at, append and truncate",
                count - 1
            );
            return Err(Fail::Store(Error::Invalid(text)).into());
        }
    })
}

fn splices(edits: &[Bound<'_, PyTuple>]) -> PyResult<Vec<Splice>> {
    edits.iter().map(splice).collect()
}

#[pymethods]
impl Bucket {
    fn __setitem__(&self, object: &Bound<'_, PyAny>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put(object, data, None, false, None).map(drop)
    }

    fn __delitem__(&self, object: &Bound<'_, PyAny>) -> PyResult<()> {
        match self.remove(object, None)? {
            true => Ok(()),
            false => Err(super::missing(&text(object)?).into()),
        }
    }

    /// Puts an object in place of any other, and gives its version. With `exclusive` only if there is
    /// none, with `if_version` only over that version.
    #[pyo3(signature = (name, data, *, attributes=None, exclusive=false, if_version=None))]
    fn put(
        &self,
        name: &Bound<'_, PyAny>,
        data: &Bound<'_, PyAny>,
        attributes: Option<Attributes>,
        exclusive: bool,
        if_version: Option<&str>,
    ) -> PyResult<String> {
        let options = put_options(attributes, exclusive, if_version)?;
        let (py, name, bytes) = (name.py(), text(name)?, bytes_of(data)?);
        let put = async |store: &BucketStore| store.put_with(&name, bytes, options).await;
        Ok(self.change(py, put)?.to_string())
    }

    /// Removes an object; returns whether there was one. With `if_version` only that version.
    #[pyo3(signature = (object, *, if_version=None))]
    fn remove(&self, object: &Bound<'_, PyAny>, if_version: Option<&str>) -> PyResult<bool> {
        let (name, only) = (text(object)?, if_version.map(parsed).transpose()?);
        let remove = async |store: &BucketStore| match only {
            None => store.remove(&name).await,
            Some(only) => store.remove_if(&name, only).await,
        };
        self.change(object.py(), remove)
    }

    /// Removes objects one by one, many at the same time; returns how many were there.
    fn remove_many(&self, py: Python<'_>, names: Vec<Bound<'_, PyAny>>) -> PyResult<usize> {
        let names: PyResult<Vec<String>> = names.iter().map(text).collect();
        let names = names?;
        let remove = async |store: &BucketStore| {
            let one = |name: String| async move { store.remove(&name).await };
            let removed = futures::stream::iter(names).map(one).buffered(TOGETHER);
            removed.try_fold(0, async |sum, was_there| Ok(sum + usize::from(was_there))).await
        };
        self.change(py, remove)
    }

    /// Puts objects one by one, many at the same time; returns how many.
    fn put_batch(
        &self,
        py: Python<'_>,
        items: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        attributes: Option<Attributes>,
    ) -> PyResult<usize> {
        let options = put_options(attributes, false, None)?;
        let pair = |(name, data): &(Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok((text(name)?, bytes_of(data)?))
        };
        let items: PyResult<Vec<(String, Bytes)>> = items.iter().map(pair).collect();
        let (items, options) = (items?, &options);
        let put = async |store: &BucketStore| {
            let one = |(name, bytes): (String, Bytes)| async move {
                store.put_with(&name, bytes, options.clone()).await
            };
            let put = futures::stream::iter(items).map(one).buffered(TOGETHER);
            put.try_fold(0, async |sum, _| Ok(sum + 1)).await
        };
        self.change(py, put)
    }

    /// Gives an object another name, which none may have, or with `replace` in place of any other. It
    /// is a copy and a removal: who looks between sees both.
    #[pyo3(signature = (source, target, *, replace=false))]
    fn rename(
        &self,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        replace: bool,
    ) -> PyResult<()> {
        let (from, to, mode) = (text(source)?, text(target)?, copy_mode(!replace));
        let rename = async |store: &BucketStore| store.rename_with(&from, &to, mode).await;
        self.change(source.py(), rename).map(drop)
    }

    /// Copies an object with its attributes, whatever its size, and gives the copy's version.
    #[pyo3(signature = (source, target, *, exclusive=false))]
    fn copy(
        &self,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
        exclusive: bool,
    ) -> PyResult<String> {
        let (from, to, mode) = (text(source)?, text(target)?, copy_mode(exclusive));
        let copy = async |store: &BucketStore| store.copy_with(&from, &to, mode).await;
        Ok(self.change(source.py(), copy)?.to_string())
    }

    /// Inserts a range of an object into another at byte `at`, and gives that one's size.
    fn copy_range(
        &self,
        source: &Bound<'_, PyAny>,
        start: u64,
        stop: u64,
        target: &Bound<'_, PyAny>,
        at: u64,
    ) -> PyResult<u64> {
        let (py, from, to) = (source.py(), text(source)?, text(target)?);
        let copy = async |store: &BucketStore| store.copy_range(&from, start..stop, &to, at).await;
        self.change(py, copy)
    }

    /// Makes `target` the parts one behind the other, without attributes; gives its version.
    fn concat(&self, parts: Vec<Bound<'_, PyAny>>, target: &Bound<'_, PyAny>) -> PyResult<String> {
        let (py, to) = (target.py(), text(target)?);
        let parts: PyResult<Vec<String>> = parts.iter().map(text).collect();
        let parts = parts?;
        let concat = async |store: &BucketStore| {
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            store.concat(&parts, &to).await
        };
        Ok(self.change(py, concat)?.to_string())
    }

    /// Makes several edits of an object one change, and gives its new size. An edit is the name of a
    /// method with what that takes behind the object's name: `("insert", 40, b"more")`.
    fn edit(&self, key: &Bound<'_, PyAny>, edits: Vec<Bound<'_, PyTuple>>) -> PyResult<u64> {
        let (name, splices) = (text(key)?, splices(&edits)?);
        self.change(key.py(), async |store| store.edit(&name, splices).await)
    }

    /// As `edit`, if the object is of that version; gives the new one.
    fn edit_if(
        &self,
        key: &Bound<'_, PyAny>,
        edits: Vec<Bound<'_, PyTuple>>,
        version: &str,
    ) -> PyResult<String> {
        let (name, splices, only) = (text(key)?, splices(&edits)?, parsed(version)?);
        let edit = async |store: &BucketStore| store.edit_if(&name, splices, only).await;
        Ok(self.change(key.py(), edit)?.to_string())
    }

    /// Replaces an object's attributes.
    fn set_attributes(&self, key: &Bound<'_, PyAny>, attributes: Attributes) -> PyResult<()> {
        let name = text(key)?;
        let set = async |store: &BucketStore| store.set_attributes(&name, attributes).await;
        self.change(key.py(), set).map(drop)
    }
}
