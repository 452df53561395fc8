//! The open store that objects in a bucket are of.
//!
//! Owns: [`BucketSource`].

use super::handle::Handle;
use crate::backup::{Reach, access};
use pyo3::prelude::*;
use std::sync::Arc;

/// An open store in a bucket.
#[pyclass(frozen, module = "holdall._core")]
pub struct BucketSource(pub(super) Arc<Handle>);

#[pymethods]
impl BucketSource {
    /// Opens or makes one.
    #[new]
    fn new(py: Python<'_>, place: String, mode: String, reach: Reach) -> PyResult<Self> {
        let opened = py.detach(|| Handle::open(place, &mode, access(reach)));
        Ok(Self(Arc::new(opened?)))
    }

    /// Its address.
    #[getter]
    fn place(&self) -> &str {
        &self.0.place
    }

    /// Whether it was opened for reading.
    #[getter]
    fn read_only(&self) -> bool {
        self.0.read_only
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Endpoint, region, profile and remote, if they were given.
    #[getter]
    fn reach(&self) -> Reach {
        self.0.reach()
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}
