//! Reading: snapshots and objects.
//!
//! Threads: a [`Reader`] and an [`Object`] may be used and cloned by many; they hold their
//! state until dropped and never wait for a transaction.

use crate::engine::catalog::{Collection, DEFAULT_COLLECTION};
use crate::engine::key::{Key, missing};
use crate::object::{self, Metadata, ObjectBody, Segments};
use crate::read::long_read::{Ahead, read_up_to};
use crate::read::lookup::ObjectLookup;
use crate::read::state::ReadState;
use crate::sharing::Sharing;
use holdall_core::{Error, Lsn, Oid, Result};
use std::io::{self, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

/// One consistent state of the store, seen through one collection.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(crate) state: Arc<ReadState>,
    /// None: the default one.
    collection: Option<Collection>,
}

impl Reader {
    pub(crate) fn new(state: ReadState) -> Self {
        Self { state: Arc::new(state), collection: None }
    }

    pub(crate) fn current(&self) -> Result<Option<&Collection>> {
        self.objects().current()
    }

    /// The commits it sees: all at or below.
    pub fn lsn(&self) -> Lsn {
        self.state.snapshot.lsn()
    }

    /// The same state, seen through collection `name`.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none of this name.
    pub fn collection(&self, name: &str) -> Result<Self> {
        if name == DEFAULT_COLLECTION {
            // It exists as soon as something is put there.
            return Ok(Self { state: self.state.clone(), collection: None });
        }
        match self.state.root().collection(&*self.state, name)? {
            Some(found) => Ok(Self { state: self.state.clone(), collection: Some(found) }),
            None => Err(Error::NotFound(format!("collection {name:?}"))),
        }
    }

    /// Names of all collections, in order.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn collections(&self) -> Result<Vec<String>> {
        let cursor = self.state.root().catalog.iter(&*self.state, std::ops::Bound::Unbounded);
        cursor.map(|e| e.map(|(k, _)| String::from_utf8_lossy(&k).into_owned())).collect()
    }

    /// The object of this name. Cost: one page per level of the names tree.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn lookup(&self, name: impl AsRef<[u8]>) -> Result<Option<Oid>> {
        self.objects().lookup(name.as_ref())
    }

    pub(crate) fn resolve(&self, key: &Key<'_>) -> Result<Oid> {
        self.objects().resolve(key)
    }

    #[inline]
    pub(crate) fn objects(&self) -> ObjectLookup<'_> {
        ObjectLookup { state: &self.state, collection: self.collection.as_ref(), waits: true }
    }

    /// All bytes of an object; `None` if no object has the name.
    ///
    /// ```
    /// # use holdall::{Error, Store};
    /// # let store = Store::in_memory()?;
    /// let oid = store.write(|tx| tx.put("a", b"first"))?;
    /// let reader = store.read()?;
    /// assert_eq!(reader.get("a")?, Some(b"first".into()));
    /// assert_eq!(reader.get("none")?, None);
    ///
    /// // An OID whose object was deleted is an error.
    /// store.write(|tx| tx.remove(oid))?;
    /// assert!(matches!(store.read()?.get(oid), Err(Error::Dangling(_))));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Dangling`] and [`Error::NotFound`] for OIDs (see [`Key`]), [`Error::Corrupt`],
    /// [`Error::Io`], [`Error::SnapshotTooOld`].
    pub fn get<'k>(&self, key: impl Into<Key<'k>>) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        Ok(self.get_into(key, &mut bytes)?.then_some(bytes))
    }

    /// As [`Reader::get`], in place of what `bytes` holds, whose memory is used again; returns
    /// whether there is such an object, and empties `bytes` if there is none. After an error
    /// `bytes` holds nothing of use.
    ///
    /// ```
    /// # use holdall::Store;
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| tx.put("a", b"first"))?;
    /// let (reader, mut bytes) = (store.read()?, Vec::new());
    /// assert!(reader.get_into("a", &mut bytes)?);
    /// assert_eq!(bytes, b"first");
    /// assert!(!reader.get_into("none", &mut bytes)?);
    /// assert!(bytes.is_empty());
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn get_into<'k>(&self, key: impl Into<Key<'k>>, bytes: &mut Vec<u8>) -> Result<bool> {
        self.objects().get_into(&key.into(), bytes)
    }

    pub(super) fn object(&self, oid: Oid, whole: ObjectBody) -> Object {
        Object { state: self.state.clone(), oid, whole, position: 0, ahead: Ahead::default() }
    }

    /// The bytes `range` of an object, of which nothing else is read, as far as there are such;
    /// `None` if no object has the name.
    ///
    /// # Errors
    /// As [`Reader::get`]; [`Error::Range`] if the range ends before it begins.
    pub fn get_range<'k>(
        &self,
        key: impl Into<Key<'k>>,
        range: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        self.objects().get_range(&key.into(), range)
    }

    /// Reads up to `buf.len()` bytes of an object from `offset`, and returns how many; fewer only
    /// at the object's end, none beyond it, `None` if no object has the name. For one read of an
    /// object: faster than to open it for that, and no slower if it is large or the bytes are not
    /// in memory. For several reads of one object, open it.
    ///
    /// ```
    /// # use holdall::Store;
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| tx.put("a", b"first"))?;
    /// let (reader, mut buf) = (store.read()?, [0; 4]);
    /// assert_eq!(reader.read_at("a", 2, &mut buf)?, Some(3));
    /// assert_eq!(buf[..3], *b"rst");
    /// assert_eq!(reader.read_at("none", 2, &mut buf)?, None);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn read_at<'k>(
        &self,
        key: impl Into<Key<'k>>,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>> {
        self.objects().read_at(&key.into(), offset, buf)
    }

    /// Opens an object for reading.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none; as [`Reader::get`].
    pub fn open<'k>(&self, key: impl Into<Key<'k>>) -> Result<Object> {
        let key = key.into();
        let (oid, whole) = self.objects().find(&key)?.ok_or_else(|| missing(&key))?;
        Ok(self.object(oid, whole))
    }

    /// What is known of an object without reading its bytes. Cost: its record.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn metadata<'k>(&self, key: impl Into<Key<'k>>) -> Result<Metadata> {
        self.objects().metadata(&key.into())
    }

    /// Counts the segments of an object and the pages they take. Cost: in proportion to their
    /// number; [`Reader::metadata`] gives what is known without.
    ///
    /// # Errors
    /// As [`Reader::open`].
    pub fn segments<'k>(&self, key: impl Into<Key<'k>>) -> Result<Segments> {
        let oid = self.resolve(&key.into())?;
        let sharing = Sharing::load(&*self.state, self.state.view.inner.root)?;
        object::segments(&*self.state, &self.state.root().handles, &sharing, oid)
    }

    /// Every object of the store, whatever its collection, named or not.
    pub fn oids(&self) -> impl Iterator<Item = Result<Oid>> + '_ {
        let state = &self.state;
        state.root().handles.iter(&**state).filter_map(|found| {
            let alive = found.and_then(|(oid, _)| state.check_alive(oid).map(|()| oid));
            // Its handle is still there, its collection is not.
            Some(alive).filter(|alive| !matches!(alive, Err(Error::Dangling(_))))
        })
    }
}

/// An object open for reading, as it was in its snapshot.
#[derive(Debug, Clone)]
pub struct Object {
    state: Arc<ReadState>,
    oid: Oid,
    whole: ObjectBody,
    position: u64,
    ahead: Ahead,
}

impl Object {
    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.whole.size()
    }

    /// Its id.
    pub fn oid(&self) -> Oid {
        self.oid
    }

    /// The first stretch of bytes in `range` that were never written, if there is one: they
    /// read as zeros and take no space. For copies of an object that keep its holes.
    /// Cost: O(tree height + segments before the stretch) pages.
    ///
    /// # Errors
    /// As [`Object::read_at`].
    pub fn hole(&self, range: Range<u64>) -> Result<Option<Range<u64>>> {
        self.whole.hole(&*self.state, self.oid, range)
    }

    /// Reads up to `buf.len()` bytes from `offset`; fewer only at the object's end, none beyond it.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`], [`Error::SnapshotTooOld`].
    pub fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        read_up_to(&*self.state, (&self.whole, self.oid), offset, buf)
    }
}

impl io::Read for Object {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let (at, size) = (self.position, self.size());
        self.ahead.tell(&*self.state, &self.whole, at..size, buf.len());
        let n = self.read_at(at, buf)?;
        self.position += n as u64;
        Ok(n)
    }
}

/// Where a seek leads in an object of `size` bytes from `position`; beyond the end too.
pub(crate) fn seek_from(to: SeekFrom, size: u64, position: u64) -> io::Result<u64> {
    let target = match to {
        SeekFrom::Start(n) => Some(n),
        SeekFrom::End(n) => size.checked_add_signed(n),
        SeekFrom::Current(n) => position.checked_add_signed(n),
    };
    let bad = || io::Error::new(io::ErrorKind::InvalidInput, "seek before the first byte");
    target.ok_or_else(bad)
}

impl io::Seek for Object {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = seek_from(to, self.size(), self.position)?;
        Ok(self.position)
    }
}
