//! What files of objects in a bucket stand on.
//!
//! Owns: [`BucketObject`], one version that is read; [`BucketWriter`], a new object that is sent. Both
//! belong to the process that made them.

use super::handle::Handle;
use crate::buffer::Lent;
use crate::errors::{Fail, Outcome};
use crate::handle::process;
use holdall_bucket::store::{Object, Writer};
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

const FORKED: &str = "the file was opened before a fork, and only the process that opened it may \
     use it; open it again";

/// Something of one process, which others neither use nor drop.
struct Own<T> {
    process: u64,
    held: Mutex<Option<T>>,
}

impl<T> Own<T> {
    fn new(held: T) -> Self {
        Self { process: process(), held: Mutex::new(Some(held)) }
    }

    fn check(&self) -> Outcome<()> {
        if self.process == process() { Ok(()) } else { Err(Fail::Forked(FORKED)) }
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        if self.process != process() {
            std::mem::forget(self.held.get_mut().take());
        }
    }
}

/// One version of an object.
#[pyclass(frozen, module = "holdall._core")]
pub struct BucketObject {
    handle: Arc<Handle>,
    object: Own<Object>,
    size: u64,
    version: String,
}

impl BucketObject {
    /// Of an object that was opened now.
    pub fn new(handle: Arc<Handle>, object: Object) -> Self {
        let info = object.info();
        let (size, version) = (info.size, info.version.to_string());
        Self { handle, object: Own::new(object), size, version }
    }
}

#[pymethods]
impl BucketObject {
    /// Its size in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.size
    }

    /// Its version.
    #[getter]
    fn version(&self) -> &str {
        &self.version
    }

    /// The bytes from `start` to `stop`, cut to its size.
    fn read<'py>(&self, py: Python<'py>, start: u64, stop: u64) -> PyResult<Bound<'py, PyBytes>> {
        self.object.check()?;
        let bytes = py.detach(|| {
            let mut held = self.object.held.lock();
            let object = held.as_mut().ok_or(Fail::Closed("file"))?;
            self.handle.wait(None, async |_| object.read(start..stop).await)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// A new object, sent as it comes.
#[pyclass(frozen, module = "holdall._core")]
pub struct BucketWriter {
    handle: Arc<Handle>,
    writer: Own<Writer>,
}

impl BucketWriter {
    /// Of one that was begun now.
    pub fn new(handle: Arc<Handle>, writer: Writer) -> Self {
        Self { handle, writer: Own::new(writer) }
    }
}

#[pymethods]
impl BucketWriter {
    /// Puts bytes behind those before. After an error, or an interrupt, the object is given up.
    fn push(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        self.writer.check()?;
        let lent = Lent::borrow(data)?;
        let bytes = lent.bytes();
        Ok(data.py().detach(|| {
            let mut held = self.writer.held.lock();
            // It is back only if all went well.
            let mut writer = held.take().ok_or(Fail::Closed("file"))?;
            self.handle.wait(None, async |_| writer.push(bytes).await)?;
            *held = Some(writer);
            Outcome::Ok(())
        })?)
    }

    /// Makes the object appear, and gives its version.
    fn finish(&self, py: Python<'_>) -> PyResult<String> {
        self.writer.check()?;
        let finished = py.detach(|| {
            let writer = self.writer.held.lock().take().ok_or(Fail::Closed("file"))?;
            self.handle.wait(None, async |_| writer.finish().await)
        })?;
        Ok(finished.to_string())
    }

    /// Gives it up: no object appears.
    fn give_up(&self, py: Python<'_>) -> PyResult<()> {
        self.writer.check()?;
        drop(py.detach(|| self.writer.held.lock().take()));
        Ok(())
    }
}
