//! An object as a file: a position, and reads and edits there, inside a transaction.
//!
//! Owns: [`ObjectMut`]. Small edits next to each other are gathered and made as one splice
//! (`pending`), because each splice costs a record, tree nodes and copies at its borders;
//! reads see what is gathered.
//!
//! Invariants: an argument that cannot be used is refused before anything changes; if
//! gathered bytes cannot be written the transaction fails, so that no commit lacks them.
//!
//! Threads: it borrows its transaction, which one thread has.

use super::ObjectsMut;
use crate::engine::key::Key;
use crate::object::ObjectBody;
use crate::read::reader::seek_from;
use crate::write::edit::check_range;
use crate::write::pending::{LIMIT, ObjectLocation, Pending};
use holdall_core::segment_tree::MAX_OBJECT;
use holdall_core::{Error, Oid, Result};
use std::io::{self, SeekFrom};
use std::ops::Range;

impl ObjectsMut {
    /// Opens an object for reading and editing like a file, at position 0.
    ///
    /// ```
    /// # use holdall::{Error, Store};
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| {
    ///     assert!(matches!(tx.open("missing"), Err(Error::NotFound(_))));
    ///     let oid = tx.create(b"no name")?;
    ///     let mut object = tx.open(oid)?;
    ///     object.push(b"NO")?;
    ///     object.finish()
    /// })?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Dangling`], [`Error::Corrupt`], [`Error::Io`].
    pub fn open<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<ObjectMut<'_>> {
        let oid = self.resolve(&key.into())?;
        ObjectMut::new(self, oid)
    }

    /// As [`ObjectsMut::open`], for the object of this name in the current collection, which is
    /// created empty if it is missing. A new object that is only written from its
    /// beginning to its end is cheaper through [`ObjectsMut::writer`].
    ///
    /// ```
    /// # use holdall::{Error, Store};
    /// # let store = Store::in_memory()?;
    /// for line in ["first\n", "second\n"] {
    ///     store.write(|tx| {
    ///         let mut log = tx.open_or_create("log.txt")?;
    ///         log.set_position(log.size());
    ///         log.push(line.as_bytes())?;
    ///         log.finish()
    ///     })?;
    /// }
    /// assert_eq!(store.read()?.get("log.txt")?, Some(b"first\nsecond\n".into()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ObjectsMut::open`] and [`ObjectsMut::put`].
    pub fn open_or_create(&mut self, name: impl AsRef<[u8]>) -> Result<ObjectMut<'_>> {
        let name = name.as_ref();
        let oid = match self.lookup(name)? {
            Some(oid) => oid,
            None => self.put(name, &[])?,
        };
        ObjectMut::new(self, oid)
    }
}

/// An object open for reading and editing at a position, like a file; from
/// [`ObjectsMut::open`] and [`ObjectsMut::open_or_create`].
///
/// It is [`io::Read`], [`io::Write`] and [`io::Seek`]; its own calls do the same with this
/// crate's [`Error`]. Beyond what a file can, [`ObjectMut::insert`] and
/// [`ObjectMut::delete_range`] move all bytes behind without copying them. What is read
/// includes what was written. All of it becomes part of the transaction and happens with it or
/// not at all; snapshots do not see it before.
///
/// Edits next to each other, up to 1 MiB, become one; a call that returned `Ok` may thus
/// fail later, at the latest in [`ObjectMut::finish`]. Dropped without that, the object
/// still gets all bytes; if they cannot be written, the transaction cannot be committed.
/// Errors in `std::io` calls carry an [`Error`], which [`io::Error::downcast`] returns.
///
/// ```
/// use holdall::{Error, Options, Store};
/// use std::io::{Read, Seek, SeekFrom, Write};
///
/// # let store = Store::in_memory()?;
/// store.write(|tx| {
///     let mut object = tx.open_or_create("report.txt")?;
///     let edited = (|| {
///         writeln!(object, "total: {}", 42)?;
///         object.seek(SeekFrom::Start(7))?;
///         let mut rest = String::new();
///         object.read_to_string(&mut rest)?;
///         assert_eq!(rest, "42\n");
///         object.seek(SeekFrom::End(-1))
///     })();
///     edited.map_err(|e| e.downcast().unwrap_or_else(|e| Error::io("edit the report", e)))?;
///     object.insert(b" items")?;
///     object.finish()
/// })?;
/// assert_eq!(store.read()?.get("report.txt")?, Some(b"total: 42 items\n".into()));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct ObjectMut<'a> {
    tx: &'a mut ObjectsMut,
    oid: Oid,
    /// Where the stored bytes are, once looked up; None again after each edit of them.
    whole: Option<ObjectBody>,
    /// Bytes of the stored object, before what is pending.
    stored: u64,
    pending: Pending,
    position: u64,
}

/// What bytes do to those that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Over,
    Before,
}

impl<'a> ObjectMut<'a> {
    fn new(tx: &'a mut ObjectsMut, oid: Oid) -> Result<Self> {
        let stored = tx.object_size(oid)?;
        let pending = Pending::new(tx.page_size());
        Ok(Self { tx, oid, whole: None, stored, pending, position: 0 })
    }

    /// The object's id.
    pub fn oid(&self) -> Oid {
        self.oid
    }

    /// Its size in bytes, with all that was written.
    pub fn size(&self) -> u64 {
        self.pending.size(self.stored)
    }

    /// The byte that the next read, write or insert begins at. It may be beyond the
    /// end.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Moves the position, as [`io::Seek::seek`] from the start.
    pub fn set_position(&mut self, position: u64) {
        self.position = position;
    }

    /// Reads up to `buf.len()` bytes from `offset`; fewer only at the object's end. The
    /// position stays.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let left = self.size().saturating_sub(offset);
        let n = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let mut done = 0;
        while done < n {
            let (len, place) = self.pending.find(offset + done as u64, n - done);
            let part = &mut buf[done..done + len];
            match place {
                ObjectLocation::Gathered(bytes) => part.copy_from_slice(bytes),
                ObjectLocation::Stored(from) => {
                    let whole = match &mut self.whole {
                        Some(whole) => whole,
                        none => none.insert(self.tx.open_whole(self.oid)?),
                    };
                    self.tx.read_whole(whole, self.oid, from, part)?;
                }
            }
            done += len;
        }
        Ok(n)
    }

    /// Writes all of `bytes` at the position and moves it behind them, as
    /// [`io::Write::write_all`]: over what is there, beyond the end what is missing. A gap
    /// before the position reads as zeros, which take no space if it is long. No bytes
    /// fill no gap.
    ///
    /// ```
    /// # use holdall::{Error, Store};
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| {
    ///     tx.put("x", b"abc")?;
    ///     let mut object = tx.open("x")?;
    ///     object.set_position(2);
    ///     object.push(b"CD")?;
    ///     object.set_position(6);
    ///     object.push(b"G")?;
    ///     object.finish()
    /// })?;
    /// assert_eq!(store.read()?.get("x")?, Some(b"abCD\0\0G".into()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] if the object would become larger than an object can be, with
    /// nothing changed; [`Error::Full`], [`Error::Io`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.take_in(self.position, bytes, Mode::Over)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// As [`ObjectMut::push`], at `offset`; the position stays.
    ///
    /// # Errors
    /// As [`ObjectMut::push`].
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.take_in(offset, bytes, Mode::Over)
    }

    /// Inserts `bytes` at the position and moves it behind them; what was there and all
    /// behind it moves up, but is not copied. Beyond the end it is a [`ObjectMut::push`].
    ///
    /// ```
    /// # use holdall::{Error, Store};
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| {
    ///     tx.put("x", b"one, four")?;
    ///     let mut object = tx.open("x")?;
    ///     object.set_position(5);
    ///     object.insert(b"two, ")?;
    ///     object.insert(b"three, ")?; // behind the first; both are one edit of the object
    ///     object.finish()
    /// })?;
    /// assert_eq!(store.read()?.get("x")?, Some(b"one, two, three, four".into()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ObjectMut::push`].
    pub fn insert(&mut self, bytes: &[u8]) -> Result<()> {
        self.take_in(self.position, bytes, Mode::Before)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Deletes the bytes `range`; all behind them moves down, but is not copied. The position
    /// stays.
    ///
    /// ```
    /// # use holdall::{Error, Store};
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| {
    ///     tx.put("x", b"one, two, three")?;
    ///     let mut object = tx.open("x")?;
    ///     object.delete_range(5..10)?;
    ///     object.set_position(5);
    ///     object.insert(b"2, ")?; // in place of what was deleted, in the same edit
    ///     assert!(matches!(object.delete_range(5..100), Err(Error::Range { .. })));
    ///     object.finish()
    /// })?;
    /// assert_eq!(store.read()?.get("x")?, Some(b"one, 2, three".into()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Range`] if the range is not inside the object, with nothing changed;
    /// [`Error::Full`], [`Error::Io`].
    pub fn delete_range(&mut self, range: Range<u64>) -> Result<()> {
        check_range(&self.oid.into(), &range, self.size())?;
        if range.is_empty() {
            return Ok(());
        }
        if !self.pending.delete(range.clone()) {
            self.settle()?;
            self.pending.delete(range);
        }
        Ok(())
    }

    /// Makes the object `len` bytes long: cuts its end, or adds zeros, which take no space
    /// if they are many. The position stays, even if it is then beyond the end.
    ///
    /// ```
    /// # use holdall::{Error, Store};
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| {
    ///     let mut object = tx.open_or_create("disk.img")?;
    ///     object.set_len(1 << 40)?; // 1 TiB of zeros
    ///     object.write_at(1 << 39, b"in the middle")?;
    ///     object.finish()
    /// })?;
    /// assert!(store.stat()?.file_bytes < 10 << 20);
    /// store.write(|tx| {
    ///     let mut object = tx.open("disk.img")?;
    ///     object.push(b"short")?;
    ///     object.set_len(object.position())?; // nothing of the former bytes is left
    ///     object.finish()
    /// })?;
    /// assert_eq!(store.read()?.get("disk.img")?, Some(b"short".into()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ObjectMut::push`].
    pub fn set_len(&mut self, len: u64) -> Result<()> {
        if len > self.size() {
            check_size(len)?;
            return self.grow_to(len);
        }
        if len < self.size() && !self.pending.cut(len, self.stored) {
            self.settle()?;
            self.pending.cut(len, self.stored);
        }
        Ok(())
    }

    /// Hands all bytes to the transaction and returns the object's size. They are durable
    /// once the transaction is committed.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`] and others of the edits made last; the transaction can
    /// then only be given up.
    pub fn finish(mut self) -> Result<u64> {
        self.settle()?;
        Ok(self.size())
    }

    /// Takes `bytes` in at `at`, by pieces that fit the gathered ones; many go to their place
    /// directly.
    fn take_in(&mut self, mut at: u64, mut bytes: &[u8], mode: Mode) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let base = if mode == Mode::Before { at.max(self.size()) } else { at };
        check_size(base.saturating_add(bytes.len() as u64))?;
        self.grow_to(at)?;
        while !bytes.is_empty() {
            let room = match self.pending.room(at, mode == Mode::Over) {
                Some(n) if n > 0 => n,
                _ => {
                    self.settle()?;
                    self.pending.room(at, true).unwrap_or(LIMIT)
                }
            };
            if self.pending.is_empty() && bytes.len() >= LIMIT {
                let over = if mode == Mode::Over { bytes.len() as u64 } else { 0 };
                let end = at.saturating_add(over).min(self.stored);
                return self.apply(|tx, oid| tx.splice(oid, at..end, bytes));
            }
            let (piece, rest) = bytes.split_at(bytes.len().min(room));
            match mode {
                Mode::Over => self.pending.write(at, piece, self.stored),
                Mode::Before => self.pending.insert(at, piece),
            }
            at += piece.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    /// Adds zeros so that the object has at least `size` bytes. Few are gathered as bytes, one
    /// edit with those around them; many take no space.
    fn grow_to(&mut self, size: u64) -> Result<()> {
        let old = self.size();
        let Some(gap) = size.checked_sub(old).filter(|n| *n > 0) else { return Ok(()) };
        match usize::try_from(gap) {
            Ok(n) if n < self.tx.page_size() => self.take_in(old, &vec![0; n], Mode::Over),
            _ => {
                self.settle()?;
                self.apply(|tx, oid| tx.set_len(oid, size))
            }
        }
    }

    /// Makes the pending splice.
    fn settle(&mut self) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let (range, bytes) = self.pending.take();
        let result = self.apply(|tx, oid| tx.splice(oid, range, &bytes));
        self.pending.reuse(bytes);
        result
    }

    fn apply(&mut self, edit: impl FnOnce(&mut ObjectsMut, Oid) -> Result<u64>) -> Result<()> {
        self.whole = None;
        match edit(self.tx, self.oid) {
            Ok(size) => {
                self.stored = size;
                Ok(())
            }
            Err(e) => {
                // The caller knows that these bytes are part of the transaction.
                self.tx.fail();
                Err(e)
            }
        }
    }
}

fn check_size(size: u64) -> Result<()> {
    if size > MAX_OBJECT {
        let text = format!("an object cannot have {size} bytes; at most {MAX_OBJECT}");
        return Err(Error::Invalid(text));
    }
    Ok(())
}

impl Drop for ObjectMut<'_> {
    fn drop(&mut self) {
        // An error has made the transaction fail; its commit says so.
        let _ = self.settle();
    }
}

impl io::Read for ObjectMut<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.read_at(self.position, buf)?;
        self.position += n as u64;
        Ok(n)
    }
}

impl io::Write for ObjectMut<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.push(buf)?;
        Ok(buf.len())
    }

    /// Hands all bytes to the transaction, which does not make them durable.
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.settle()?)
    }
}

impl io::Seek for ObjectMut<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = seek_from(to, self.size(), self.position)?;
        Ok(self.position)
    }
}
