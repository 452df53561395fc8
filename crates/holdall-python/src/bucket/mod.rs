//! Stores in buckets.
//!
//! Owns: [`Bucket`], below the package's class `BucketStore`: what it reads. Each call waits for a server
//! without the interpreter's lock, and Ctrl-C ends the wait.

mod edit;
mod file;
mod handle;
mod maintain;
mod source;

pub use file::{BucketObject, BucketWriter};
pub use source::BucketSource;

use crate::errors::{Fail, Outcome};
use crate::keys::{ObjectId, name};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use handle::Handle;
use holdall::{Attributes, Error, Result};
use holdall_bucket::BucketStore;
use holdall_bucket::format::keys;
use holdall_bucket::store::{ListNames, ObjectInfo};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;
use std::time::SystemTime;

/// Requests for several objects that are under way together.
const TOGETHER: usize = 16;
/// Most bytes that a walk reads at once, if one object is not longer.
const AT_ONCE: u64 = 16 << 20;

/// Objects of a store in a bucket, of one collection.
#[pyclass(frozen, subclass, module = "holdall._core")]
pub struct Bucket {
    handle: Arc<Handle>,
    collection: Option<String>,
}

/// What is known of an object: name, size, version, times, attributes.
type Known<'py> = (String, u64, String, SystemTime, SystemTime, Bound<'py, PyDict>);

const NO_OIDS: &str = "objects in a bucket have no ids; use their names";

/// The name that an argument is.
///
/// # Errors
/// TypeError; InvalidError for one that is not UTF-8; NotInBucketError for an id.
fn text(object: &Bound<'_, PyAny>) -> PyResult<String> {
    if object.cast::<ObjectId>().is_ok() {
        return Err(Fail::NotInBucket(NO_OIDS).into());
    }
    let name = name(object)?;
    std::str::from_utf8(&name).map(str::to_owned).map_err(|_| {
        let shown = String::from_utf8_lossy(&name);
        Fail::Store(Error::Invalid(format!("{shown:?}: names in a bucket are UTF-8"))).into()
    })
}

fn missing(name: &str) -> Fail {
    Error::NotFound(format!("object {name:?}")).into()
}

fn known<'py>(py: Python<'py>, info: &ObjectInfo) -> PyResult<Known<'py>> {
    let attributes = PyDict::new(py);
    for (name, value) in &info.attributes {
        attributes.set_item(name, PyBytes::new(py, value))?;
    }
    let (created, modified) = (info.created, info.last_modified());
    let version = info.version.to_string();
    Ok((info.name.clone(), info.size, version, created, modified, attributes))
}

/// The bytes of objects up to the first that are too many for once; None of those that are not there.
/// How many those are is the length of what is returned.
async fn batch(store: &BucketStore, names: Vec<String>) -> Result<Vec<Option<Bytes>>> {
    let open = |name: String| async move { store.open(&name).await };
    let opened: Vec<_> =
        futures::stream::iter(names).map(open).buffered(TOGETHER).try_collect().await?;
    let mut bytes = 0;
    let within = |size: u64| {
        let first = bytes == 0;
        bytes += size;
        first || bytes <= AT_ONCE
    };
    let sizes = opened.iter().map(|object| object.as_ref().map_or(0, |object| object.size()));
    let count = sizes.map(within).take_while(|within| *within).count();
    let read = |object: Option<holdall_bucket::store::Object>| async move {
        match object {
            None => Ok(None),
            Some(mut object) => match object.read(0..u64::MAX).await {
                // It was changed long ago: what it is now.
                Err(Error::SnapshotTooOld { .. }) => store.get(&object.info().name).await,
                bytes => bytes.map(Some),
            },
        }
    };
    let objects = opened.into_iter().take(count);
    futures::stream::iter(objects).map(read).buffered(TOGETHER).try_collect().await
}

impl Bucket {
    fn collection(&self) -> Option<&str> {
        self.collection.as_deref()
    }

    /// Waits for a call that reads.
    fn read<T: Send>(
        &self,
        py: Python<'_>,
        work: impl AsyncFnOnce(&BucketStore) -> Result<T> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| self.handle.wait(self.collection(), work))?)
    }

    /// Waits for a call that changes.
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        work: impl AsyncFnOnce(&BucketStore) -> Result<T> + Send,
    ) -> PyResult<T> {
        self.handle.check_writes()?;
        self.read(py, work)
    }

    /// Opens an object.
    fn opened(&self, name: &str) -> Outcome<Option<holdall_bucket::store::Object>> {
        self.handle.wait(self.collection(), async |store| store.open(name).await)
    }
}

#[pymethods]
impl Bucket {
    #[new]
    #[pyo3(signature = (source, collection=None))]
    fn new(source: &BucketSource, collection: Option<String>) -> PyResult<Self> {
        if collection.as_deref() == Some("") {
            let text = "a collection has a name of one character at least";
            return Err(Fail::Store(Error::Invalid(text.into())).into());
        }
        Ok(Self { handle: source.0.clone(), collection })
    }

    /// The open store that this is of.
    #[getter]
    fn source(&self) -> BucketSource {
        BucketSource(self.handle.clone())
    }

    /// The name of the collection.
    #[getter]
    fn name(&self) -> &str {
        self.collection().unwrap_or(holdall::DEFAULT_COLLECTION)
    }

    fn __getitem__<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let name = text(object)?;
        let found = self.read(object.py(), async |store| store.get(&name).await)?;
        found.map(|bytes| PyBytes::new(object.py(), &bytes)).ok_or_else(|| missing(&name).into())
    }

    fn __contains__(&self, object: &Bound<'_, PyAny>) -> PyResult<bool> {
        let name = text(object)?;
        Ok(self.read(object.py(), async |store| store.info(&name).await)?.is_some())
    }

    /// The bytes of an object, or `default` if there is none.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, name) = (key.py(), text(key)?);
        let found = self.read(py, async |store| store.get(&name).await)?;
        let bytes = found.map(|bytes| PyBytes::new(py, &bytes).into_any());
        Ok(bytes.or(default).unwrap_or_else(|| py.None().into_bound(py)))
    }

    /// The bytes from `start` to `stop`, cut to the object's size; None if there is none.
    #[pyo3(signature = (key, start=0, stop=None))]
    fn get_range<'py>(
        &self,
        key: &Bound<'py, PyAny>,
        start: u64,
        stop: Option<u64>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let (name, range) = (text(key)?, start..stop.unwrap_or(u64::MAX));
        let read = async |store: &BucketStore| store.get_range(&name, range).await;
        let found = self.read(key.py(), read)?;
        Ok(found.map(|bytes| PyBytes::new(key.py(), &bytes)))
    }

    /// The bytes of as many of these objects as are read at once, in order; None of one that is not
    /// there.
    fn read_batch<'py>(
        &self,
        py: Python<'py>,
        names: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let names: PyResult<Vec<String>> = names.iter().map(text).collect();
        let names = names?;
        let found = self.read(py, async |store| batch(store, names).await)?;
        let give = |bytes: Option<Bytes>| bytes.map(|bytes| PyBytes::new(py, &bytes));
        Ok(found.into_iter().map(give).collect())
    }

    /// What is known of objects: name, size, version, times, attributes of each that is there.
    fn infos<'py>(
        &self,
        py: Python<'py>,
        names: Vec<Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Known<'py>>> {
        let names: PyResult<Vec<String>> = names.iter().map(text).collect();
        let names = names?;
        let found = self.read(py, async |store| store.infos(&names).await)?;
        found.iter().map(|info| known(py, info)).collect()
    }

    /// A page: names, folders, and where to go on.
    fn list_page(
        &self,
        py: Python<'_>,
        prefix: &Bound<'_, PyAny>,
        folders: bool,
        after: Option<String>,
        limit: Option<usize>,
    ) -> PyResult<(Vec<String>, Vec<String>, Option<String>)> {
        if let Some(after) = &after
            && !after.starts_with(&keys::prefix(self.name(), ""))
        {
            let text = format!("start_after is what `next` of a page said, not {after:?}");
            return Err(Fail::Store(Error::Invalid(text)).into());
        }
        let prefix = text(prefix)?;
        let what = ListNames { prefix, folders, after, limit, ..ListNames::default() };
        self.read(py, async |store| {
            let page = store.list(&what).await?;
            Ok((page.names, page.folders, page.next))
        })
    }

    /// The names of the collections that hold anything, or did.
    fn collections(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, async |store| store.collections().await)
    }

    /// Opens the version that an object has now.
    fn open_object(&self, key: &Bound<'_, PyAny>) -> PyResult<BucketObject> {
        let name = text(key)?;
        let found = key.py().detach(|| self.opened(&name))?;
        let object = found.ok_or_else(|| missing(&name))?;
        Ok(BucketObject::new(self.handle.clone(), object))
    }

    /// Begins an object that comes in parts.
    #[pyo3(signature = (name, attributes=None, exclusive=false))]
    fn writer(
        &self,
        name: &Bound<'_, PyAny>,
        attributes: Option<Attributes>,
        exclusive: bool,
    ) -> PyResult<BucketWriter> {
        let options = edit::put_options(attributes, exclusive, None)?;
        let (py, name) = (name.py(), text(name)?);
        let begun = self.change(py, async |store| store.writer(&name, options));
        Ok(BucketWriter::new(self.handle.clone(), begun?))
    }
}
