//! Edits of any range, in a transaction.

use super::ObjectsMut;
use crate::engine::key::Key;
use crate::object::Resized;
use crate::space::Class;
use holdall_core::segment_tree::{Content, ReadSource};
use holdall_core::{Error, Oid, Result};
use std::io::Read;
use std::ops::Range;

impl ObjectsMut {
    /// Replaces the bytes `range` of an object by `bytes`; all else moves up or down; of it
    /// about T pages beside the range are copied at most. Returns the new size.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Dangling`]; [`Error::Range`] if the range is not
    /// inside the object; [`Error::Full`], [`Error::Io`].
    pub fn splice<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        range: Range<u64>,
        bytes: &[u8],
    ) -> Result<u64> {
        self.edit(&key.into(), |_| Ok((range, Content::Bytes(bytes))))
    }

    /// As [`ObjectsMut::splice`], with `len` bytes of a stream, which need not fit memory.
    ///
    /// # Errors
    /// As [`ObjectsMut::splice`]; those of the stream, and [`Error::Io`] if it ends early.
    pub fn splice_from<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        range: Range<u64>,
        stream: impl Read,
        len: u64,
    ) -> Result<u64> {
        let mut source = ReadSource(stream);
        self.edit(&key.into(), |_| Ok((range, Content::Stream(&mut source, len))))
    }

    /// Inserts `bytes` before byte `at`; `at` may be the size. Returns the new size.
    ///
    /// # Errors
    /// As [`ObjectsMut::splice`].
    pub fn insert<'k>(&mut self, key: impl Into<Key<'k>>, at: u64, bytes: &[u8]) -> Result<u64> {
        self.splice(key, at..at, bytes)
    }

    /// Deletes the bytes `range`. Returns the new size.
    ///
    /// # Errors
    /// As [`ObjectsMut::splice`].
    pub fn delete_range<'k>(&mut self, key: impl Into<Key<'k>>, range: Range<u64>) -> Result<u64> {
        self.splice(key, range, &[])
    }

    /// Overwrites the bytes from `at` on, all of which exist. Returns the size.
    ///
    /// # Errors
    /// As [`ObjectsMut::splice`].
    pub fn replace<'k>(&mut self, key: impl Into<Key<'k>>, at: u64, bytes: &[u8]) -> Result<u64> {
        self.splice(key, at..at.saturating_add(bytes.len() as u64), bytes)
    }

    /// Appends `bytes`. Returns the new size.
    ///
    /// # Errors
    /// As [`ObjectsMut::splice`].
    pub fn append<'k>(&mut self, key: impl Into<Key<'k>>, bytes: &[u8]) -> Result<u64> {
        self.edit(&key.into(), |size| Ok((size..size, Content::Bytes(bytes))))
    }

    /// Makes the object `len` bytes long: cuts its end, or adds zeros that take no space.
    /// Returns the new size.
    ///
    /// ```
    /// # use holdall::Store;
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| {
    ///     tx.put("a", b"first")?;
    ///     tx.set_len("a", 4)?;
    ///     tx.set_len("a", 6)?;
    ///     assert_eq!(tx.get("a")?, Some(b"firs\0\0".into()));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ObjectsMut::splice`].
    pub fn set_len<'k>(&mut self, key: impl Into<Key<'k>>, len: u64) -> Result<u64> {
        self.edit(&key.into(), |size| {
            Ok(if len <= size {
                (len..size, Content::Bytes(&[]))
            } else {
                (size..size, Content::Zeros(len - size))
            })
        })
    }

    /// Writes `bytes` at `at` as into a file: over what is there, beyond the end what is
    /// missing, a gap before `at` reading as zeros. Returns the new size.
    ///
    /// # Errors
    /// As [`ObjectsMut::splice`].
    pub fn write_at<'k>(&mut self, key: impl Into<Key<'k>>, at: u64, bytes: &[u8]) -> Result<u64> {
        let key = key.into();
        let end = at
            .checked_add(bytes.len() as u64)
            .ok_or_else(|| Error::Invalid("an object cannot be that long".into()))?;
        let size = self.size_of(&key)?;
        if at > size {
            self.set_len(&key, at)?;
        }
        self.edit(&key, |size| Ok((at..end.min(size), Content::Bytes(bytes))))
    }

    fn size_of(&mut self, key: &Key<'_>) -> Result<u64> {
        let oid = self.resolve(key)?;
        self.object_size(oid)
    }

    fn edit<'c>(
        &mut self,
        key: &Key<'_>,
        what: impl FnOnce(u64) -> Result<(Range<u64>, Content<'c>)>,
    ) -> Result<u64> {
        let oid: Oid = self.resolve(key)?;
        let (place, size) = self.place_of(oid, |r| r.size())?;
        let (range, content) = what(size)?;
        // Before the transaction is touched: a bad range must not spoil it.
        check_range(key, &range, size)?;
        self.check_sum(oid)?;
        let gone = range.end - range.start;
        let shrinks = matches!(content, Content::Bytes(b) if (b.len() as u64) < gone);
        let after = self.with_placed(place, |objects, c| {
            objects.tx.set_class(if shrinks { Class::Shrink } else { Class::Pages });
            let Resized { before, after } = objects.splice_at(place, oid, range, content)?;
            objects.tx.set_class(Class::Pages);
            c.resize(before, after);
            Ok(after)
        })?;
        self.note_sum(oid, None);
        Ok(after)
    }
}

/// Refuses a range outside an object of `size` bytes.
pub(crate) fn check_range(key: &Key<'_>, range: &Range<u64>, size: u64) -> Result<()> {
    let (start, end) = (range.start, range.end);
    if start > end || end > size {
        return Err(Error::Range { object: key.show(), start, end, size });
    }
    Ok(())
}
