//! Reading a few bytes of an object that is not kept open.
//!
//! Owns: [`Reader::read_at`], and its fast path: record, run and checksums are looked up under
//! one pin, with the run's bytes asked for in between, and of the object's descriptor only what
//! leads to the run is decoded. What the fast path does not find right, the slow path is
//! asked for, whose answer counts.

use super::Store;
use super::long_read::read_to;
use super::lookup::{ObjectLookup, Seen};
use super::read::{Reader, State};
use super::view::Key;
use crate::heap::HeapFile;
use crate::object::{Body, Record};
use crate::segment_tree::run_start;
use crate::space::{Sums, approach};
use holdall_core::segment_tree::run_with;
use holdall_core::{Error, Oid, PageNo, Result};

/// A place in the segments: a page, and bytes behind its start.
type Place = (PageNo, u64);

/// Reads longer than this spend their time on the bytes, and may be worth several threads.
const SHORT: usize = 64 << 10;

impl Store {
    /// All bytes of an object as the newest durable commit has it, in place of what `bytes`
    /// holds; `false` where no object has the name. As [`Store::read`] and
    /// [`Reader::get_into`], a little faster. For several objects of one state take a
    /// [`Reader`].
    ///
    /// # Errors
    /// As [`Reader::get_into`].
    pub fn get_into<'k>(&self, key: impl Into<Key<'k>>, bytes: &mut Vec<u8>) -> Result<bool> {
        let key = key.into();
        self.once(|state| ObjectLookup { state, collection: None }.get_into(&key, bytes))
    }

    /// Up to `buf.len()` bytes of an object from `offset`, as the newest durable commit has it;
    /// fewer only at the object's end, `None` where no object has the name. As [`Store::read`]
    /// and [`Reader::read_at`], a little faster.
    ///
    /// # Errors
    /// As [`Reader::read_at`].
    pub fn read_at<'k>(
        &self,
        key: impl Into<Key<'k>>,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>> {
        let key = key.into();
        self.once(|state| ObjectLookup { state, collection: None }.read_at(&key, offset, buf))
    }

    /// What `f` finds in the newest durable state; in a newer one where that was given up
    /// meanwhile.
    #[inline]
    fn once<T>(&self, mut f: impl FnMut(&State) -> Result<T>) -> Result<T> {
        loop {
            match f(&self.state(false)?) {
                Err(Error::SnapshotTooOld { .. }) => {}
                result => return result,
            }
        }
    }
}

impl Reader {
    /// Reads up to `buf.len()` bytes of an object from `offset`, and tells how many; fewer only
    /// at the object's end, `None` where no object has the name. For one read of an object:
    /// faster than to open it for that, and no slower where it is large or the bytes are not in
    /// memory. For several reads of one object, open it.
    ///
    /// ```
    /// # use holdall::{Options, Store};
    /// # let storage = std::sync::Arc::new(holdall_io::MemoryStorage::new());
    /// # let store = Store::create_on(storage, &Options::default())?;
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
        self.sight().read_at(&key.into(), offset, buf)
    }
}

impl ObjectLookup<'_> {
    fn read_at(self, key: &Key<'_>, offset: u64, buf: &mut [u8]) -> Result<Option<usize>> {
        match self.read_short(key, offset, buf)? {
            Seen::Found(()) => return Ok(Some(buf.len())),
            Seen::Missing => return Ok(None),
            Seen::Unsure => {}
        }
        let Some((oid, whole)) = self.find(key)? else { return Ok(None) };
        let left = whole.size().saturating_sub(offset);
        let n = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        read_to(self.state, (&whole, oid), offset, &mut buf[..n])?;
        Ok(Some(n))
    }

    /// Fills `buf` if its bytes lie in one run of an object whose record is in memory, and are
    /// right.
    ///
    /// # Errors
    /// As [`ObjectLookup::once`].
    fn read_short(self, key: &Key<'_>, offset: u64, buf: &mut [u8]) -> Result<Seen<()>> {
        let (state, len, mut sums) = (self.state, buf.len(), Sums::NONE);
        if len > SHORT || !state.view.inner.pager.limits().map_reads {
            return Ok(Seen::Unsure);
        }
        let found = self.once(key, |pages, oid, loc| {
            let place = HeapFile::look(pages, loc, |record| place_in(record, oid, offset, len))?;
            let (layout, disk) = (&state.view.inner.layout, state.disk());
            let known = approach(pages, layout, (disk, &state.view.infos), place, (len, &mut sums));
            Ok((place, known))
        })?;
        let (place, known) = match found {
            Seen::Found(found) => found,
            Seen::Missing => return Ok(Seen::Missing),
            Seen::Unsure => return Ok(Seen::Unsure),
        };
        let read = state.data_by(place, buf, (false, known.then_some(&sums)));
        Ok(if read.is_ok() { Seen::Found(()) } else { Seen::Unsure })
    }
}

/// Where `len` bytes from `offset` on of an object lie, by its record.
///
/// # Errors
/// Any, where the slow path is to be asked.
#[inline]
fn place_in(record: &[u8], oid: Oid, offset: u64, len: usize) -> Result<Place> {
    let record = Record::parse(record)?;
    let found = match record.body {
        Body::Large(descriptor) if record.oid == oid => {
            offset.checked_add(len as u64).and_then(|end| run_with(descriptor, offset..end))
        }
        _ => None,
    };
    let found = found.ok_or(Error::Dangling(oid))?;
    Ok((run_start(&found.slice)?, u64::from(found.slice.offset) + (offset - found.start)))
}
