//! Errors of the engine as exceptions.
//!
//! Owns: [`Fail`]; which class of `holdall.errors` each error becomes.

use holdall::Error;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Why a call failed, before there is an exception for it: made without the interpreter's lock.
#[derive(Debug)]
pub enum Fail {
    /// The engine says so.
    Store(Error),
    /// The store, snapshot, transaction or file was closed.
    Closed(&'static str),
    /// A transaction of others was waited for too long.
    Busy(String),
    /// A place that a file cannot have.
    Offset(String),
    /// A process forked from the one that opened it uses it.
    Forked(&'static str),
    /// What stores in buckets do not have; the text says what to use.
    NotInBucket(&'static str),
    /// Python code that was called raised.
    Python(PyErr),
}

/// What calls give before there is an exception.
pub type Outcome<T> = Result<T, Fail>;

impl From<Error> for Fail {
    fn from(e: Error) -> Self {
        Self::Store(e)
    }
}

impl From<PyErr> for Fail {
    fn from(e: PyErr) -> Self {
        Self::Python(e)
    }
}

impl From<Fail> for PyErr {
    fn from(fail: Fail) -> Self {
        match fail {
            Fail::Python(e) => e,
            Fail::Closed(what) => PyValueError::new_err(format!("the {what} is closed")),
            Fail::Forked(text) => Python::attach(|py| of_class(py, "ForkedError", text)),
            Fail::NotInBucket(text) => Python::attach(|py| of_class(py, "NotInBucketError", text)),
            Fail::Offset(text) => Python::attach(|py| of_class(py, "OffsetError", &text)),
            Fail::Busy(text) => Python::attach(|py| of_class(py, "BusyError", &text)),
            Fail::Store(e) => Python::attach(|py| of_store(py, &e)),
        }
    }
}

/// The exception of an error of the engine, with its message.
fn of_store(py: Python<'_>, e: &Error) -> PyErr {
    if let Error::Io { source, .. } = e {
        // OSError itself chooses the subclass by the number.
        return PyOSError::new_err((number_of(source), e.to_string()));
    }
    let class = match e {
        Error::NotFound(_) | Error::Dangling(_) => "NotFoundError",
        Error::Exists(_) => "ExistsError",
        Error::Corrupt { .. } => "CorruptError",
        Error::NotAStore { .. } | Error::Unfinished { .. } => "NotAStoreError",
        Error::WrongLog { .. } | Error::NoLog { .. } => "WrongLogError",
        Error::Forked => "ForkedError",
        Error::Moved { .. } => "MovedError",
        Error::Unsupported { .. } => "UnsupportedError",
        Error::Conflict { .. } => "ConflictError",
        Error::OutcomeUnknown { .. } => "OutcomeUnknownError",
        Error::Range { .. } | Error::Invalid(_) | Error::TooLarge(_) => "InvalidError",
        Error::Full(_) | Error::NoRoom { .. } => "FullError",
        Error::Locked { .. } => "LockedError",
        Error::Busy(_) => "BusyError",
        Error::Poisoned(_) => "PoisonedError",
        Error::ReadOnly => "ReadOnlyError",
        Error::SnapshotTooOld { .. } => "SnapshotTooOldError",
        _ => "Error",
    };
    of_class(py, class, &e.to_string())
}

/// The system's number of an error, or the one that says the same.
fn number_of(e: &std::io::Error) -> i32 {
    use std::io::ErrorKind as Kind;
    e.raw_os_error().unwrap_or(match e.kind() {
        Kind::NotFound => 2,
        Kind::PermissionDenied => 13,
        Kind::AlreadyExists => 17,
        Kind::NotADirectory => 20,
        Kind::IsADirectory => 21,
        Kind::InvalidInput => 22,
        Kind::FileTooLarge => 27,
        Kind::StorageFull => 28,
        Kind::ReadOnlyFilesystem => 30,
        Kind::InvalidFilename => 36,
        Kind::QuotaExceeded => 122,
        // A failed read or write.
        _ => 5,
    })
}

fn of_class(py: Python<'_>, class: &str, text: &str) -> PyErr {
    let made = || py.import("holdall.errors")?.getattr(class)?.call1((text,));
    match made() {
        Ok(exception) => PyErr::from_value(exception),
        // The package is half unloaded, at the interpreter's end.
        Err(_) => PyRuntimeError::new_err(text.to_owned()),
    }
}
