//! The compiled part of the Python package `holdall`.
//!
//! Owns: the module `holdall._core`: objects, snapshots and transactions behind one class
//! `view::View`, files behind `file::RawFile`. What can be written in Python as well, is
//! (`python/holdall`).
//!
//! Threads: every call that may wait or copies much gives the interpreter's lock back; small
//! objects in memory are copied with it held. No lock of this crate is waited for while the
//! interpreter's is held: who has the one may want the other.

mod backup;
mod bucket;
mod buffer;
mod errors;
mod file;
mod handle;
mod items;
mod keys;
mod maintain;
mod names;
mod options;
mod source;
mod view;
mod view_edit;
mod view_read;

use pyo3::prelude::*;

/// The compiled part of `holdall`; use the package.
#[pymodule(gil_used = false)]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add("NAME_BYTES", keys::MOST_NAME)?;
    m.add_class::<source::Source>()?;
    m.add_class::<view::View>()?;
    m.add_class::<view_read::Info>()?;
    m.add_class::<keys::ObjectId>()?;
    m.add_class::<names::Names>()?;
    m.add_class::<items::Items>()?;
    m.add_class::<file::RawFile>()?;
    m.add_class::<bucket::BucketSource>()?;
    m.add_class::<bucket::Bucket>()?;
    m.add_class::<bucket::BucketObject>()?;
    m.add_class::<bucket::BucketWriter>()?;
    m.add_function(wrap_pyfunction!(options::open, m)?)?;
    m.add_function(wrap_pyfunction!(backup::restore, m)?)?;
    m.add_function(wrap_pyfunction!(backup::salvage, m)?)?;
    m.add_function(wrap_pyfunction!(handle::after_fork, m)?)?;
    m.add_function(wrap_pyfunction!(source::announced, m)?)?;
    Ok(())
}
