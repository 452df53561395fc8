//! Objects with their bytes, in the order of names, and how many there are.
//!
//! Owns: [`Items`], [`Values`]: they fetch the bytes of many small objects at
//! a time.

use crate::engine::catalog::DEFAULT_COLLECTION;
use crate::engine::key::Key;
use crate::read::listing::{Entry, NameIter};
use crate::read::reader::Reader;
use holdall_core::{Error, Result};
use std::collections::VecDeque;

/// Objects fetched at a time.
const OBJECTS_AT_ONCE: usize = 256;
/// Bytes of objects fetched at a time; a larger object is fetched alone.
const BYTES_AT_ONCE: u64 = 1 << 20;

impl Reader {
    /// How many objects the collection has, those without a name too. Cost: none; the number is
    /// kept with the collection.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put_many([("a", "12"), ("b", "3")]))?;
    /// let reader = store.read()?;
    /// assert_eq!((reader.len()?, reader.logical_bytes()?), (2, 3));
    /// assert!(!reader.is_empty()?);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`], the first time that a state is asked.
    pub fn len(&self) -> Result<u64> {
        Ok(self.current()?.map_or(0, |c| c.objects))
    }

    /// Whether the collection has no object. Cost: as of [`Reader::len`].
    ///
    /// # Errors
    /// As [`Reader::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Bytes of all objects of the collection. Cost: as of [`Reader::len`].
    ///
    /// # Errors
    /// As [`Reader::len`].
    pub fn logical_bytes(&self) -> Result<u64> {
        // Names of damaged collections are in other errors.
        self.current()?.map_or(Ok(0), |c| c.logical_bytes(DEFAULT_COLLECTION))
    }

    /// All objects whose names begin with `prefix`, with their bytes, in order; backwards by
    /// [`Iterator::rev`]. For those of a range: [`NameIter::items`]. Writers beside it change
    /// nothing of what it yields. Cost: as of [`Reader::get_many`]; memory for 1 MiB of objects, or
    /// the largest.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put_many([("a/1", "one"), ("a/2", "two"), ("b", "")]))?;
    /// for item in store.read()?.items("a/") {
    ///     let (name, bytes) = item?;
    ///     store.write(|tx| tx.put(&name, &[&bytes[..], b"!"].concat()))?;
    /// }
    /// assert_eq!(store.get("a/2")?, Some(b"two!".into()));
    /// # Ok::<(), holdall::Error>(())
    /// ```
    pub fn items(&self, prefix: impl AsRef<[u8]>) -> Items {
        self.names(prefix).items()
    }

    /// As [`Reader::items`], without the names.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put_many([("a", "one"), ("b", "two")]))?;
    /// let last = store.read()?.values("").next_back().transpose()?;
    /// assert_eq!(last, Some(b"two".into()));
    /// # Ok::<(), holdall::Error>(())
    /// ```
    pub fn values(&self, prefix: impl AsRef<[u8]>) -> Values {
        Values(self.items(prefix))
    }
}

impl NameIter {
    /// The objects that are left, with their bytes; see [`Reader::items`].
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put_many([("a", "1"), ("b", "2"), ("c", "3")]))?;
    /// let names = store.read()?.range("b"..);
    /// let names: Vec<_> = names.items().rev().collect::<Result<_, _>>()?;
    /// assert_eq!(names, [(b"c".to_vec(), b"3".to_vec()), (b"b".to_vec(), b"2".to_vec())]);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    pub fn items(self) -> Items {
        Items { names: self, front: Side::default(), back: Side::default() }
    }
}

/// Objects with their bytes, in the order of names or backwards; see [`Reader::items`].
#[derive(Debug)]
pub struct Items {
    names: NameIter,
    front: Side,
    /// Backwards.
    back: Side,
}

/// What was taken from one end of the names, in the order in which it is yielded from there.
#[derive(Debug, Default)]
struct Side {
    ready: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// Behind these; not read yet.
    found: VecDeque<Entry>,
}

impl Side {
    /// Reads the bytes of the next found objects, as many as are fetched together.
    fn read(&mut self, reader: &Reader) -> Result<()> {
        let keys = self.found.iter().map(|entry| Key::Oid(entry.oid));
        let mut located = reader.locate_many(keys)?;
        let (mut all, mut total) = (Vec::with_capacity(self.found.len()), 0_u64);
        for size in located.sizes() {
            // Of one state: what has a name is there.
            let size = size.ok_or_else(|| Error::NotFound("an object that has a name".into()))?;
            total = total.saturating_add(size);
            if total > BYTES_AT_ONCE && !all.is_empty() {
                break;
            }
            let size = usize::try_from(size).map_err(|_| too_large())?;
            all.push(vec![0; size]);
        }
        // Reading asks the device for all that was located.
        located.truncate(all.len());
        located.read_into(all.iter_mut().map(Vec::as_mut_slice))?;
        let names = self.found.drain(..all.len()).map(|entry| entry.name);
        self.ready.extend(names.zip(all));
        Ok(())
    }
}

fn too_large() -> Error {
    Error::TooLarge("an object is larger than the memory of this system".into())
}

impl Items {
    fn step(&mut self, back: bool) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let (side, other) = if back {
            (&mut self.back, &mut self.front)
        } else {
            (&mut self.front, &mut self.back)
        };
        if side.ready.is_empty() && side.found.is_empty() {
            while side.found.len() < OBJECTS_AT_ONCE {
                let entry = if back { self.names.next_back() } else { self.names.next() };
                let Some(entry) = entry.transpose()? else { break };
                side.found.push_back(entry);
            }
        }
        if side.ready.is_empty() && side.found.is_empty() {
            // The two have met: what is left was taken from the other end.
            side.found.extend(other.found.drain(..).rev());
        }
        if side.ready.is_empty() && !side.found.is_empty() {
            // After an error the walk has ended.
            let read = side.read(self.names.reader());
            if read.is_err() {
                side.found.clear();
                self.names.end();
            }
            read?;
        }
        Ok(side.ready.pop_front().or_else(|| other.ready.pop_back()))
    }
}

impl Iterator for Items {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(false).transpose()
    }
}

impl DoubleEndedIterator for Items {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(true).transpose()
    }
}

/// The bytes of objects, in the order of their names or backwards; see [`Reader::values`].
#[derive(Debug)]
pub struct Values(Items);

impl Iterator for Values {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|item| item.map(|(_, bytes)| bytes))
    }
}

impl DoubleEndedIterator for Values {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|item| item.map(|(_, bytes)| bytes))
    }
}
