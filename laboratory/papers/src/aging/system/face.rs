//! What every store that is aged does (Sears §4), and what it is asked.
//!
//! An adapter translates and does nothing else: no cache and no retry that the store does not
//! have itself.

use std::path::PathBuf;

use anyhow::{Result, bail};

/// How the bytes of an object come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ask {
    /// Bytes of a write request.
    pub request: usize,
    /// Whether the store gets the object's size before the first.
    pub hint: bool,
}

/// A store of whole objects by number.
pub trait System {
    /// A safe write: creates the object or replaces it, all or nothing, durable on return.
    fn put(&mut self, key: u64, bytes: &[u8], ask: Ask) -> Result<()>;

    /// Adds bytes at the end of an object, which may be new; durable on return. `expected` is
    /// the size that it will have in the end, if the store is to know.
    fn append(&mut self, key: u64, bytes: &[u8], expected: Option<u64>) -> Result<()>;

    /// Reads an object.
    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<()>;

    /// Deletes an object; durable on return.
    fn delete(&mut self, key: u64) -> Result<()>;

    /// Brings what a log holds to its place.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    /// Files of the volume that hold copies of what lies elsewhere.
    fn logs(&self) -> Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    /// What the store or its file system itself counts of the objects `keys`, in words, for
    /// explanations; empty if it tells nothing.
    fn account(&mut self, _keys: &[u64]) -> Result<String> {
        Ok(String::new())
    }

    /// Closes the store in good order.
    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

/// Checks that a store gave the object it was asked for.
pub(super) fn found<T>(what: Option<T>, key: u64) -> Result<T> {
    match what {
        Some(it) => Ok(it),
        None => bail!("object {key} is missing"),
    }
}
