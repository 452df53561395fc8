//! Reads for bindings to other languages, which have memory of their own for an object's bytes.
//!
//! Owns: [`Fetched`]; [`Located`], objects that were found and are read in a second step: between
//! the two the caller makes room for them, and no byte is copied twice. And [`Looked`]: what lies
//! in memory is handed to the caller where it lies, by calls that never wait for the disk. A
//! binding makes them with its interpreter's lock held, and gives that up for the others.

use crate::engine::key::Key;
use crate::heap::{HeapFile, Location};
use crate::object::ObjectBody;
use crate::read::long_read::read_to;
use crate::read::lookup::{
    FoundBody, FoundObject, GROUP, Lookup, ObjectLookup, bodies, copy_parts, find, found_parts,
};
use crate::read::reader::{Object, Reader};
use holdall_core::{Error, Oid, Result};

/// What [`Reader::fetch`] did.
#[derive(Debug, Clone)]
pub enum Fetched {
    /// The bytes were read.
    Read,
    /// The object was opened.
    Opened(Object),
}

/// What [`Reader::look`] found without waiting for the disk.
#[derive(Debug, Clone)]
pub enum Looked<T> {
    /// No object has the name.
    Missing,
    /// A small object; this was made of its bytes.
    Small(T),
    /// One that has segments of its own. It was opened.
    Large(Object),
    /// Something that the look needs is not in memory, or is damaged: another call reads it, or
    /// says what is wrong.
    NotInMemory,
}

/// Objects of one state, found but not read, in the order of their keys: from
/// [`Reader::locate_many`] or [`Reader::look_many`]. Keeps the state.
#[derive(Debug, Clone)]
pub struct Located {
    reader: Reader,
    found: Vec<LocatedBody>,
}

#[derive(Debug, Clone)]
enum LocatedBody {
    /// It was not looked for, or something that this needs was not in memory.
    Sought,
    /// No object has the name.
    Missing,
    /// The caller has its bytes.
    Given,
    /// In a record, with its size.
    Record(Oid, Location, u64),
    Segments(Oid, ObjectBody),
}

impl LocatedBody {
    /// How many bytes are to be read; None if there are none, or the caller has them.
    fn size(&self) -> Option<u64> {
        match self {
            Self::Record(_, _, size) => Some(*size),
            Self::Segments(_, body) => Some(body.size()),
            Self::Sought | Self::Missing | Self::Given => None,
        }
    }
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

    /// Looks at an object without waiting for the disk. A small one's bytes, in one part or two,
    /// `small` is given where they lie: it copies them, and calls nothing of the store.
    ///
    /// ```
    /// # use holdall::{Looked, Store};
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| tx.put("a", b"small"))?;
    /// let reader = store.read()?;
    /// let bytes = match reader.look("a", |parts| parts.concat())? {
    ///     Looked::Small(bytes) => Some(bytes),
    ///     Looked::Missing => None,
    ///     Looked::Large(_) | Looked::NotInMemory => reader.get("a")?,
    /// };
    /// assert_eq!(bytes, Some(b"small".into()));
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reader::get`], apart from [`Error::Io`].
    #[inline]
    pub fn look<'k, T>(
        &self,
        key: impl Into<Key<'k>>,
        small: impl FnOnce([&[u8]; 2]) -> T,
    ) -> Result<Looked<T>> {
        match self.looks().with_small(&key.into(), |_, _, parts| Ok(small(parts))) {
            Ok(Some(FoundObject::Small(made))) => Ok(Looked::Small(made)),
            Ok(Some(FoundObject::Large(oid, whole))) => Ok(Looked::Large(self.object(oid, whole))),
            Ok(None) => Ok(Looked::Missing),
            Err(Error::Cancelled) => Ok(Looked::NotInMemory),
            Err(e) => Err(e),
        }
    }

    /// Looks at many objects as [`Reader::look`] at one: `small` is also given the place of the
    /// object among the keys, in any order. After an error nothing that it was given counts.
    /// [`Located::find_rest`] finds those that are not in memory.
    ///
    /// ```
    /// # use holdall::{Key, Store};
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| tx.put("a", b"small").and_then(|_| tx.put("b", &[7; 100_000])))?;
    /// let (keys, mut bytes) = (["a", "b", "none"].map(Key::from), vec![Vec::new(); 3]);
    /// let reader = store.read()?;
    /// let mut found = reader.look_many(&keys, |i, parts| bytes[i] = parts.concat())?;
    /// found.find_rest(&keys)?;
    /// let left = found.sizes().zip(&mut bytes).filter_map(|(size, bytes)| {
    ///     bytes.resize(size? as usize, 0);
    ///     Some(&mut bytes[..])
    /// });
    /// found.read_into(left)?;
    /// assert_eq!(bytes[0], b"small");
    /// assert_eq!(bytes[1], [7; 100_000]);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reader::look`] of one of the keys.
    pub fn look_many(
        &self,
        keys: &[Key<'_>],
        mut small: impl FnMut(usize, [&[u8]; 2]),
    ) -> Result<Located> {
        let mut found = vec![LocatedBody::Sought; keys.len()];
        let groups = keys.chunks(GROUP).zip(found.chunks_mut(GROUP)).enumerate();
        for (n, (keys, found)) in groups {
            let give = |i, _, parts: [&[u8]; 2]| {
                small(n * GROUP + i, parts);
                LocatedBody::Given
            };
            match locate_group(self.looks(), keys, found, give) {
                Ok(()) | Err(Error::Cancelled) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Located { reader: self.clone(), found })
    }

    fn looks(&self) -> ObjectLookup<'_> {
        ObjectLookup { waits: false, ..self.objects() }
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
        let keys: Vec<Key<'k>> = keys.into_iter().map(Into::into).collect();
        let found = vec![LocatedBody::Sought; keys.len()];
        let mut located = Located { reader: self.clone(), found };
        located.find_rest(&keys)?;
        Ok(located)
    }
}

/// Finds the objects of a group that are sought; what becomes of one that lies in a record, `small`
/// says. What is not in memory stays sought if `objects` does not wait.
fn locate_group(
    objects: ObjectLookup<'_>,
    group: &[Key<'_>],
    found: &mut [LocatedBody],
    mut small: impl FnMut(usize, (Oid, Location), [&[u8]; 2]) -> LocatedBody,
) -> Result<()> {
    // Before the pin: it may be read from disk.
    let names = objects.names(group.iter())?;
    let own = objects.own_keys(group)?;
    let group = own.as_deref().unwrap_or(group);
    objects.pinned(|pages| {
        let mut all: Vec<Lookup<'_>> = group.iter().map(Lookup::new).collect();
        find(pages, (&objects.state.root().handles, names), &mut all);
        for (found, lookup) in found.iter_mut().zip(&all) {
            if lookup.is_missing() {
                *found = LocatedBody::Missing;
            }
        }
        bodies(pages, all, |i, (oid, loc), body| {
            found[i] = match body {
                FoundBody::Small(parts) => small(i, (oid, loc), parts),
                FoundBody::Large(descriptor) => {
                    LocatedBody::Segments(oid, ObjectBody::large(descriptor)?)
                }
            };
            Ok(())
        })
    })
}

impl Located {
    /// Finds the objects that [`Reader::look_many`] did not find in memory. `keys` are
    /// those of the look.
    ///
    /// # Errors
    /// As [`Reader::get`] of one of the keys with which something is wrong.
    pub fn find_rest(&mut self, keys: &[Key<'_>]) -> Result<()> {
        let objects = self.reader.objects();
        let mut at = 0;
        while at < keys.len() {
            let sought = |body: &LocatedBody| matches!(body, LocatedBody::Sought);
            let Some(next) = self.found[at..].iter().position(sought) else { break };
            let first = at + next;
            let run = self.found[first..].iter().take(GROUP).take_while(|body| sought(body));
            at = first + run.count();
            let place = |_, (oid, loc), parts: [&[u8]; 2]| {
                let size = parts.iter().map(|part| part.len() as u64).sum();
                LocatedBody::Record(oid, loc, size)
            };
            locate_group(objects, &keys[first..at], &mut self.found[first..at], place)?;
        }
        Ok(())
    }

    /// Whether all objects were found, or are not there.
    pub fn is_complete(&self) -> bool {
        !self.found.iter().any(|body| matches!(body, LocatedBody::Sought))
    }

    /// Forgets all but the first `len` objects.
    pub fn truncate(&mut self, len: usize) {
        self.found.truncate(len);
    }

    /// The sizes of the objects in bytes, in the order of their keys; `None` if no object has
    /// the name, or [`Reader::look_many`] gave its bytes out.
    pub fn sizes(&self) -> impl ExactSizeIterator<Item = Option<u64>> + '_ {
        self.found.iter().map(LocatedBody::size)
    }

    /// Fills one buffer for each object that is there, in their order, with its first bytes: all
    /// if the buffer is as long as the object. Cost: a page for each that lies in a record,
    /// as of [`Object::read_at`](crate::Object::read_at) for the others.
    ///
    /// # Errors
    /// As [`Reader::get`]; [`Error::Range`] if a buffer is longer than its object.
    pub fn read_into<'b>(&self, buffers: impl IntoIterator<Item = &'b mut [u8]>) -> Result<()> {
        let state = &*self.reader.state;
        // The device works on what comes later while what comes first is read and checked.
        for place in &self.found {
            if let LocatedBody::Segments(_, body) = place {
                body.prefetch_all(state);
            }
        }
        let all = self.found.iter().filter(|place| place.size().is_some());
        for (place, buf) in all.zip(buffers) {
            match place {
                LocatedBody::Record(oid, loc, size) => {
                    self.read_record((*oid, *loc), *size, buf)?
                }
                LocatedBody::Segments(oid, body) => read_to(state, (body, *oid), 0, buf)?,
                LocatedBody::Sought | LocatedBody::Missing | LocatedBody::Given => {}
            }
        }
        Ok(())
    }

    fn read_record(&self, (oid, loc): (Oid, Location), size: u64, buf: &mut [u8]) -> Result<()> {
        let end = buf.len() as u64;
        if end > size {
            return Err(Error::Range { object: oid.to_string(), start: 0, end, size });
        }
        self.reader.state.snapshot.pinned(|pages| {
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
