//! Memory of Python objects: what bytes, bytearrays, arrays and memory maps lend, and new
//! `bytes` before anybody else has them.
//!
//! Owns: [`Lent`], [`LentMut`], [`joined`] and [`Unfilled`], the only unsafe code of the crate.
//!
//! Why it is sound: a held `Py_buffer` keeps its memory where it is and as long as it is until
//! it is released, which happens when these values are dropped, with the interpreter's lock
//! held. What it cannot keep away is another thread of the program that writes into the same
//! memory meanwhile. Such a program races with itself, as it does around `file.readinto` and
//! `socket.send`; the bytes here are plain `u8`, are not looked at twice for a decision, and no
//! value of them is invalid.
#![expect(unsafe_code, reason = "see above")]

use crate::errors::Outcome;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Least memory of a batch that the C library would give back, and the most that it is asked to
/// keep.
const BATCHES: std::ops::Range<usize> = 64 << 10..16 << 20;

/// Has the C library keep as much memory as a batch of objects took, for the next batch.
///
/// glibc gives the end of its heap back each time that a batch is dropped, and each 4 KiB of the
/// next one is then a page fault, which costs as much as reading them. It no longer does so once a
/// block of that size came and went. To other C libraries such a block says nothing.
pub fn keep_memory_of(bytes: usize) {
    static KEPT: AtomicUsize = AtomicUsize::new(BATCHES.start);
    if bytes > KEPT.load(Relaxed) {
        let block = bytes.next_power_of_two().min(BATCHES.end);
        // All the more are not kept: the number says that this was done.
        KEPT.store(if block < BATCHES.end { block } else { usize::MAX }, Relaxed);
        drop(black_box(Vec::<u8>::with_capacity(block)));
    }
}

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
    pub fn borrow(object: &'a Bound<'_, PyAny>) -> PyResult<Self> {
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
    /// TypeError.
    pub fn borrow(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = PyUntypedBuffer::get(object)?;
        if buffer.readonly() || !buffer.is_c_contiguous() {
            // As of the files of `io`.
            let text = "the buffer is read-only or not contiguous; give one to write to";
            return Err(PyTypeError::new_err(text));
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

/// A new `bytes` object whose bytes are those of two parts: for small ones, and with the
/// interpreter's lock held.
///
/// # Errors
/// MemoryError.
pub fn joined<'py>(py: Python<'py>, [a, b]: [&[u8]; 2]) -> PyResult<Bound<'py, PyBytes>> {
    let len = a.len() + b.len();
    if len <= 1 {
        // CPython shares those.
        return Ok(PyBytes::new(py, if a.is_empty() { b } else { a }));
    }
    let object = unfilled(py, len)?;
    // SAFETY: a `bytes` object of this length, longer than those that CPython shares: memory of
    // its own, which nobody else has yet and which is apart from the parts.
    unsafe {
        let to = ffi::PyBytes_AsString(object.as_ptr()).cast::<u8>();
        ptr::copy_nonoverlapping(a.as_ptr(), to, a.len());
        ptr::copy_nonoverlapping(b.as_ptr(), to.add(a.len()), b.len());
    }
    Ok(object)
}

/// A `bytes` object of its own of `len` bytes, more than one, that were not written yet.
fn unfilled(py: Python<'_>, len: usize) -> PyResult<Bound<'_, PyBytes>> {
    let size = ffi::Py_ssize_t::try_from(len)?;
    // SAFETY: the interpreter's lock is held (`py`). Without bytes to copy the call makes an
    // object of its own; null is an error that was set.
    unsafe {
        let made = ffi::PyBytes_FromStringAndSize(ptr::null(), size);
        Ok(Bound::from_owned_ptr_or_err(py, made)?.cast_into_unchecked::<PyBytes>())
    }
}

/// New `bytes` objects, whose bytes are whatever CPython's memory held.
///
/// Why it is sound: CPython lets those who made a `bytes` object fill it as long as nobody else
/// has it, and [`Unfilled::fill`], which takes them all, is the only way to them. The objects
/// are held meanwhile, so their memory stays; no two share any, since those of at most one
/// byte, which CPython shares, are made when they are filled. Their bytes come from a foreign
/// allocator: plain `u8` of which no value is invalid. If filling fails nobody sees them.
#[derive(Default)]
pub struct Unfilled<'py>(Vec<New<'py>>);

enum New<'py> {
    Bytes(Bound<'py, PyBytes>, usize),
    /// Of at most one byte.
    Short(Vec<u8>),
}

/// Places to write to, for a thread that does not hold the interpreter's lock.
struct Memory(Vec<(*mut u8, usize)>);

// SAFETY: who has it is the only one to use the memory it names, on whichever thread.
unsafe impl Send for Memory {}

impl<'py> Unfilled<'py> {
    /// One more, of `len` bytes.
    ///
    /// # Errors
    /// MemoryError.
    pub fn push(&mut self, py: Python<'py>, len: usize) -> PyResult<()> {
        if len <= 1 {
            self.0.push(New::Short(vec![0; len]));
            return Ok(());
        }
        self.0.push(New::Bytes(unfilled(py, len)?, len));
        Ok(())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Has `f` fill all of them, in the order they were made, without the interpreter's lock.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn fill(
        mut self,
        py: Python<'py>,
        f: impl FnOnce(&mut dyn Iterator<Item = &mut [u8]>) -> Outcome<()> + Send,
    ) -> Outcome<Vec<Bound<'py, PyBytes>>> {
        let place = |new: &mut New<'py>| match new {
            // SAFETY: it is a `bytes` object, of this length.
            New::Bytes(object, len) => {
                (unsafe { ffi::PyBytes_AsString(object.as_ptr()) }.cast(), *len)
            }
            New::Short(bytes) => (bytes.as_mut_ptr(), bytes.len()),
        };
        let memory = Memory(self.0.iter_mut().map(place).collect());
        py.detach(move || {
            let Memory(places) = { memory };
            // SAFETY: each is the memory of one object, given out once; see the argument above.
            let lent = |(start, len)| unsafe { std::slice::from_raw_parts_mut(start, len) };
            f(&mut places.into_iter().map(lent))
        })?;
        let made = self.0.into_iter().map(|new| match new {
            New::Bytes(object, _) => object,
            New::Short(bytes) => PyBytes::new(py, &bytes),
        });
        Ok(made.collect())
    }
}

fn contiguous(object: &Bound<'_, PyAny>) -> PyResult<PyUntypedBuffer> {
    let buffer = PyUntypedBuffer::get(object)?;
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("the buffer's memory is not contiguous; copy it"));
    }
    Ok(buffer)
}
