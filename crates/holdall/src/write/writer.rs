//! Streaming an object in.

use crate::object::{self, Data, Head, StoredHints};
use crate::space::Stager;
use crate::write::{PutMode, PutOptions, WriteTx};
use holdall_core::heap_page::max_record;
use holdall_core::{Oid, Result};
use std::io;

/// Which object a call makes. Whatever can be a name becomes one.
///
/// ```
/// # use holdall::Target;
/// assert_eq!(Target::from("a"), Target::Name(b"a".to_vec()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The object of this name, created or replaced.
    Name(Vec<u8>),
    /// A new object without a name.
    New,
}

impl<N: AsRef<[u8]>> From<N> for Target {
    fn from(name: N) -> Self {
        Self::Name(name.as_ref().to_vec())
    }
}

/// Takes an object's bytes. Dropped before [`ObjectWriter::finish`] it leaves no trace.
#[derive(Debug)]
pub struct ObjectWriter<'a> {
    tx: &'a mut WriteTx,
    head: Head<'static>,
    stager: Stager,
    /// The first bytes, until they are too many for a record.
    small: Option<Vec<u8>>,
    near: Option<Oid>,
    hints: Option<StoredHints>,
    mode: PutMode,
}

impl<'a> ObjectWriter<'a> {
    pub(crate) fn new(
        tx: &'a mut WriteTx,
        head: Head<'static>,
        stager: Stager,
        options: &PutOptions,
    ) -> Self {
        let hints = options.hints.map(|hints| hints.kept(tx.page_size()));
        let (near, mode, small) = (options.near, options.mode, Some(Vec::new()));
        Self { tx, head, stager, small, near, hints, mode }
    }

    /// Takes more bytes.
    ///
    /// # Errors
    /// [`holdall_core::Error::Full`], [`holdall_core::Error::Io`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(small) = &mut self.small {
            let len = self.head.record_len(small.len() + bytes.len());
            if len <= max_record(self.tx.page_size()) {
                small.extend_from_slice(bytes);
                return Ok(());
            }
            let first = self.small.take().unwrap_or_default();
            self.stager.write(&first)?;
        }
        self.stager.write(bytes)
    }

    /// Whether the collection that the object goes to is there. Takes the writer's lock, as
    /// [`ObjectWriter::finish`] does, which makes it where it is missing.
    ///
    /// # Errors
    /// As [`WriteTx::has_collection`].
    pub fn has_collection(&mut self) -> Result<bool> {
        self.tx.has_collection()
    }

    /// Bytes taken so far.
    pub fn len(&self) -> u64 {
        self.small.as_ref().map_or(self.stager.len(), |s| s.len() as u64)
    }

    /// Whether nothing was taken yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the bytes an object of the transaction.
    ///
    /// # Errors
    /// [`holdall_core::Error::Full`], [`holdall_core::Error::Io`]; as [`PutMode`] says.
    pub fn finish(self) -> Result<Oid> {
        let size = self.len();
        let Self { tx, head, stager, small, near, hints, mode } = self;
        tx.check_mode(&head, mode)?;
        match small {
            Some(bytes) => tx.install(&head, Data::Small(&bytes), size, near, hints),
            None => {
                let most =
                    object::max_tail(&head, tx.page_size(), hints.map_or(0, |h| h.flags), size);
                let staged = stager.finish(most)?;
                tx.install(&head, Data::Staged(staged), size, near, hints)
            }
        }
    }
}

impl io::Write for ObjectWriter<'_> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.push(buf)?;
        Ok(buf.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
