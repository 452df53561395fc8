//! Memory that Python objects lend: bytes, bytearrays, arrays, memory maps.
//!
//! Owns: [`Lent`] and [`LentMut`], the only unsafe code of the crate.
//!
//! Why it is sound: a held `Py_buffer` keeps its memory where it is and as long as it is until
//! it is released, which happens when these values are dropped, with the interpreter's lock
//! held. What it cannot keep away is another thread of the program that writes into the same
//! memory meanwhile. Such a program races with itself, as it does around `file.readinto` and
//! `socket.send`; the bytes here are plain `u8`, are not looked at twice for a decision, and no
//! value of them is invalid.
#![expect(unsafe_code, reason = "see above")]

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Bytes to read from.
pub enum Lent<'a> {
    /// Of a `bytes` object, which nobody changes.
    Bytes(&'a [u8]),
    /// Of anything else.
    Buffer(PyUntypedBuffer),
}

impl<'a> Lent<'a> {
    /// Of any object with contiguous memory.
    ///
    /// # Errors
    /// TypeError, BufferError.
    pub fn of(object: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bytes) = object.cast::<PyBytes>() {
            return Ok(Self::Bytes(bytes.as_bytes()));
        }
        Ok(Self::Buffer(contiguous(object)?))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Buffer(buffer) if buffer.len_bytes() == 0 => &[],
            // SAFETY: contiguous memory of that length, held by the buffer for the borrow.
            Self::Buffer(buffer) => unsafe {
                std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes())
            },
        }
    }
}

/// Bytes to write to.
pub struct LentMut(PyUntypedBuffer);

impl LentMut {
    /// Of any object with contiguous memory that may be changed.
    ///
    /// # Errors
    /// TypeError, BufferError.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = contiguous(object)?;
        if buffer.readonly() {
            return Err(PyTypeError::new_err("the buffer is read-only; give one to write to"));
        }
        Ok(Self(buffer))
    }

    /// The bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        if self.0.len_bytes() == 0 {
            return &mut [];
        }
        // SAFETY: contiguous, writable memory of that length, held by the buffer for the borrow.
        unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), self.0.len_bytes()) }
    }
}

fn contiguous(object: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(object)?;
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("the buffer's memory is not contiguous; copy it"));
    }
    Ok(buffer)
}
