//! Names and ids of objects, from Python and to it.
//!
//! Owns: [`ObjectId`]. A name is `str` or `bytes`; `str` is UTF-8, with bytes that are not
//! escaped as `os.fsdecode` escapes them, so that each name has one form as `str`.

use holdall::{Key, Oid};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::borrow::Cow;

/// Most bytes of a name.
pub const MOST_NAME: usize = 1024;

/// The id of an object: it stays while the object is renamed and changed, and is never given
/// out again.
#[pyclass(frozen, eq, hash, from_py_object, name = "ObjectId", module = "holdall")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId(pub Oid);

#[pymethods]
impl ObjectId {
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        let oid = text.parse().map_err(crate::errors::Fail::Store)?;
        Ok(Self(oid))
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("ObjectId('{}')", self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, pyo3::types::PyType>, (String,)) {
        (slf.get_type(), (slf.get().__str__(),))
    }
}

/// The key that an argument is.
///
/// # Errors
/// TypeError.
#[inline]
pub fn key<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Key<'a>> {
    // Most keys are text, which a look at the type's flags tells.
    if !object.is_instance_of::<PyString>()
        && let Ok(id) = object.cast::<ObjectId>()
    {
        return Ok(Key::Oid(id.get().0));
    }
    name(object).map(Key::Name)
}

/// The name that an argument is.
///
/// # Errors
/// TypeError.
#[inline]
pub fn name<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
    if let Ok(text) = object.cast::<PyString>() {
        return match text.to_str() {
            Ok(utf8) => Ok(Cow::Borrowed(utf8.as_bytes())),
            Err(_) => {
                let bytes = text.call_method1("encode", ("utf-8", "surrogateescape"))?;
                Ok(Cow::Owned(bytes.cast::<PyBytes>()?.as_bytes().to_vec()))
            }
        };
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    let class = object.get_type().name()?;
    Err(PyTypeError::new_err(format!("a name is str or bytes, not {class}")))
}

/// What names a view gives out as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// `str`.
    #[default]
    Text,
    /// `bytes`.
    Bytes,
}

impl Form {
    /// Of the option `keys`.
    ///
    /// # Errors
    /// ValueError.
    pub fn parse(keys: &str) -> PyResult<Self> {
        match keys {
            "str" => Ok(Self::Text),
            "bytes" => Ok(Self::Bytes),
            _ => {
                let text = format!("keys={keys:?} is neither \"str\" nor \"bytes\"");
                Err(PyValueError::new_err(text))
            }
        }
    }

    /// Its name as an option.
    pub fn keys(self) -> &'static str {
        match self {
            Self::Text => "str",
            Self::Bytes => "bytes",
        }
    }

    /// A name for Python.
    ///
    /// # Errors
    /// MemoryError.
    pub fn give<'py>(self, py: Python<'py>, name: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Bytes => Ok(PyBytes::new(py, name).into_any()),
            Self::Text => PyString::from_bytes(py, name).map(Bound::into_any).or_else(|_| {
                PyBytes::new(py, name).call_method1("decode", ("utf-8", "surrogateescape"))
            }),
        }
    }
}
