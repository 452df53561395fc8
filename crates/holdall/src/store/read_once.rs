//! Reads of one object, of a state that is not kept open.
//!
//! Owns: [`Store::get`], [`Store::get_into`], [`Store::get_range`], [`Store::read_at`],
//! [`Store::metadata`]; how many there are.

use super::Store;
use crate::engine::key::Key;
use crate::object::Metadata;
use crate::read::lookup::ObjectLookup;
use crate::read::state::ReadState;
use holdall_core::{Error, Result};
use std::ops::Range;

/// A process that writes may replace a large object faster than another can read it.
const MOST_TRIES: u32 = 100;

/// Reads of one object of the default collection, as the newest durable commit has it. Each is
/// [`Store::read`] and the call of [`Reader`](crate::Reader) that has its name, a little faster.
/// Two such calls may see two states: for several reads of one state take a
/// [`Reader`](crate::Reader).
impl Store {
    /// All bytes of an object; `None` if no object has the name.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put("greeting", b"hello"))?;
    /// assert_eq!(store.get("greeting")?.as_deref(), Some(&b"hello"[..]));
    /// assert_eq!(store.get_range("greeting", 1..3)?.as_deref(), Some(&b"el"[..]));
    /// assert_eq!(store.metadata("greeting")?.size, 5);
    /// assert_eq!(store.get("none")?, None);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reader::get`](crate::Reader::get).
    pub fn get<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        Ok(self.get_into(key, &mut bytes)?.then_some(bytes))
    }

    /// The bytes `range` of an object, as far as there are such; `None` if no object has the
    /// name.
    ///
    /// # Errors
    /// As [`Reader::get_range`](crate::Reader::get_range).
    pub fn get_range<'k>(
        &self,
        key: impl Into<Key<'k>>,
        range: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        let key = key.into();
        self.once(|state| {
            ObjectLookup { state, collection: None, waits: true }.get_range(&key, range.clone())
        })
    }

    /// How many objects the default collection has; see [`Reader::len`](crate::Reader::len).
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// assert!(store.is_empty()?);
    /// store.write(|tx| tx.put("greeting", b"hello"))?;
    /// assert_eq!((store.len()?, store.logical_bytes()?), (1, 5));
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Store::read`], and of [`Reader::len`](crate::Reader::len).
    pub fn len(&self) -> Result<u64> {
        self.read()?.len()
    }

    /// Whether the default collection has no object.
    ///
    /// # Errors
    /// As [`Store::len`].
    pub fn is_empty(&self) -> Result<bool> {
        self.read()?.is_empty()
    }

    /// Bytes of all objects of the default collection.
    ///
    /// # Errors
    /// As [`Store::len`].
    pub fn logical_bytes(&self) -> Result<u64> {
        self.read()?.logical_bytes()
    }

    /// What is known of an object without reading its bytes.
    ///
    /// # Errors
    /// As [`Reader::metadata`](crate::Reader::metadata).
    pub fn metadata<'k>(&self, key: impl Into<Key<'k>>) -> Result<Metadata> {
        let key = key.into();
        self.once(|state| ObjectLookup { state, collection: None, waits: true }.metadata(&key))
    }

    /// All bytes of an object, in place of what `bytes` holds, whose memory is used again; `false`
    /// if no object has the name.
    ///
    /// # Errors
    /// As [`Reader::get_into`](crate::Reader::get_into).
    pub fn get_into<'k>(&self, key: impl Into<Key<'k>>, bytes: &mut Vec<u8>) -> Result<bool> {
        let key = key.into();
        self.once(|state| {
            ObjectLookup { state, collection: None, waits: true }.get_into(&key, bytes)
        })
    }

    /// Reads up to `buf.len()` bytes of an object from `offset`, and returns how many: fewer only
    /// at the object's end. `None` if no object has the name.
    ///
    /// # Errors
    /// As [`Reader::read_at`](crate::Reader::read_at).
    pub fn read_at<'k>(
        &self,
        key: impl Into<Key<'k>>,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>> {
        let key = key.into();
        self.once(|state| {
            ObjectLookup { state, collection: None, waits: true }.read_at(&key, offset, buf)
        })
    }

    /// What `f` finds in the newest durable state; in a newer one if that was given up
    /// meanwhile, until it has been a hundred times.
    #[inline]
    fn once<T>(&self, mut f: impl FnMut(&ReadState) -> Result<T>) -> Result<T> {
        let mut tries = 1..MOST_TRIES;
        loop {
            match f(&self.state(false)?) {
                Err(Error::SnapshotTooOld { .. }) if tries.next().is_some() => {}
                result => return result,
            }
        }
    }
}
