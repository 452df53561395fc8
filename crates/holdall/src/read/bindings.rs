//! Reads for bindings to other languages, which have memory of their own for an object's bytes.
//!
//! Owns: [`Fetched`]; [`Located`], objects that were found and are read in a second step: between
//! the two the caller makes room for them, and no byte is copied twice.

use crate::engine::key::Key;
use crate::heap::{HeapFile, Location};
use crate::object::ObjectBody;
use crate::read::long_read::read_to;
use crate::read::lookup::{
    FoundBody, FoundObject, GROUP, Lookup, bodies, copy_parts, find, found_parts,
};
use crate::read::reader::{Object, Reader};
use crate::read::state::ReadState;
use holdall_core::{Error, Oid, Result};
use std::sync::Arc;

/// What [`Reader::fetch`] did.
#[derive(Debug, Clone)]
pub enum Fetched {
    /// The bytes were read.
    Read,
    /// The object was opened.
    Opened(Object),
}

/// Objects of one state, found but not read, in the order of their keys: from
/// [`Reader::locate_many`]. Keeps the state.
#[derive(Debug, Clone)]
pub struct Located {
    state: Arc<ReadState>,
    found: Vec<Option<LocatedBody>>,
}

#[derive(Debug, Clone)]
enum LocatedBody {
    /// In a record, with its size.
    Record(Oid, Location, u64),
    Segments(Oid, ObjectBody),
}

/// For bindings to other languages, which must have memory of the right size before they read.
/// Rust programs use [`Reader::get_into`] and [`Reader::get_many`].
impl Reader {
    /// As [`Reader::get_into`] for an object that lies in a page with others; one that has segments
    /// of its own is opened, for memory of the right size can then be had for it. One look-up
    /// does both.
    ///
    /// ```
    /// # use holdall::{Fetched, Store};
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| tx.put("a", b"small").and_then(|_| tx.put("b", &[7; 100_000])))?;
    /// let (reader, mut bytes) = (store.read()?, Vec::new());
    /// assert!(matches!(reader.fetch("a", &mut bytes)?, Some(Fetched::Read)));
    /// assert_eq!(bytes, b"small");
    /// let Some(Fetched::Opened(b)) = reader.fetch("b", &mut bytes)? else { panic!() };
    /// assert_eq!(b.size(), 100_000);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn fetch<'k>(
        &self,
        key: impl Into<Key<'k>>,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<Fetched>> {
        let found = self.objects().fetch(&key.into(), bytes);
        if !matches!(found, Ok(Some(FoundObject::Small(())))) {
            bytes.clear();
        }
        Ok(found?.map(|found| match found {
            FoundObject::Small(()) => Fetched::Read,
            FoundObject::Large(oid, whole) => Fetched::Opened(self.object(oid, whole)),
        }))
    }

    /// Finds many objects, whose bytes [`Located::read_into`] then reads. As fast as
    /// [`Reader::get_many`] for small objects in memory, without its copy. Cost: as of the gets,
    /// without the bytes of those that lie in segments.
    ///
    /// ```
    /// # use holdall::Store;
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| tx.put("a", b"first").and_then(|_| tx.put("b", b"second")))?;
    /// let found = store.read()?.locate_many(["b", "none", "a"])?;
    /// let sizes: Vec<Option<u64>> = found.sizes().collect();
    /// assert_eq!(sizes, [Some(6), None, Some(5)]);
    ///
    /// let mut memory = [0; 11];
    /// let (b, a) = memory.split_at_mut(6);
    /// found.read_into([b, a])?;
    /// assert_eq!(memory, *b"secondfirst");
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reader::get`] of one of the keys with which something is wrong.
    pub fn locate_many<'k, K: Into<Key<'k>>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Located> {
        let mut keys = keys.into_iter();
        let mut group: Vec<Key<'k>> = Vec::with_capacity(GROUP);
        let mut found = Vec::with_capacity(keys.size_hint().0);
        loop {
            group.clear();
            group.extend(keys.by_ref().take(GROUP).map(Into::into));
            if group.is_empty() {
                return Ok(Located { state: self.state.clone(), found });
            }
            self.locate_group(&group, &mut found)?;
        }
    }

    fn locate_group(&self, group: &[Key<'_>], found: &mut Vec<Option<LocatedBody>>) -> Result<()> {
        let state = &self.state;
        // Before the pin: it may be read from disk.
        let names = self.objects().names(group.iter())?;
        let own = self.objects().own_keys(group)?;
        let group = own.as_deref().unwrap_or(group);
        state.snapshot.pinned(|pages| {
            let mut all: Vec<Lookup<'_>> = group.iter().map(Lookup::new).collect();
            find(pages, (&state.root().handles, names), &mut all);
            let first = found.len();
            found.resize(first + all.len(), None);
            bodies(pages, all, |i, (oid, loc), body| {
                found[first + i] = Some(match body {
                    FoundBody::Small(parts) => {
                        let size = parts.iter().map(|part| part.len() as u64).sum();
                        LocatedBody::Record(oid, loc, size)
                    }
                    FoundBody::Large(descriptor) => {
                        LocatedBody::Segments(oid, ObjectBody::large(descriptor)?)
                    }
                });
                Ok(())
            })
        })
    }
}

impl Located {
    /// The sizes of the objects in bytes, in the order of their keys; `None` if no object has
    /// the name.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = Option<u64>> + '_ {
        self.found.iter().map(|place| match place.as_ref()? {
            LocatedBody::Record(_, _, size) => Some(*size),
            LocatedBody::Segments(_, body) => Some(body.size()),
        })
    }

    /// Fills one buffer for each object that is there, in their order, with its first bytes: all
    /// if the buffer is as long as the object. Cost: a page for each that lies in a record,
    /// as of [`Object::read_at`](crate::Object::read_at) for the others.
    ///
    /// # Errors
    /// As [`Reader::get`]; [`Error::Range`] if a buffer is longer than its object.
    pub fn read_into<'b>(&self, buffers: impl IntoIterator<Item = &'b mut [u8]>) -> Result<()> {
        // The device works on what comes later while what comes first is read and checked.
        for place in self.found.iter().flatten() {
            if let LocatedBody::Segments(_, body) = place {
                body.prefetch_all(&*self.state);
            }
        }
        for (place, buf) in self.found.iter().flatten().zip(buffers) {
            match place {
                LocatedBody::Record(oid, loc, size) => {
                    self.read_record((*oid, *loc), *size, buf)?
                }
                LocatedBody::Segments(oid, body) => read_to(&*self.state, (body, *oid), 0, buf)?,
            }
        }
        Ok(())
    }

    fn read_record(&self, (oid, loc): (Oid, Location), size: u64, buf: &mut [u8]) -> Result<()> {
        let end = buf.len() as u64;
        if end > size {
            return Err(Error::Range { object: oid.to_string(), start: 0, end, size });
        }
        self.state.snapshot.pinned(|pages| {
            HeapFile::look_parts(pages, loc, false, |first, rest| {
                found_parts(first, rest, (oid, loc), |body| match body {
                    FoundBody::Small(parts @ [a, b]) if (a.len() + b.len()) as u64 == size => {
                        copy_parts(parts, 0, buf);
                        Ok(())
                    }
                    // Of one state it is what it was, or damaged.
                    _ => Err(Error::corrupt(oid.to_string(), "is not as it was found")),
                })
            })
        })
    }
}
