//! Streaming an object in, within a transaction or before one.

use crate::engine::Inner;
use crate::object::{self, Attributes, Data, Head, StoredHints};
use crate::space::Stager;
use crate::write::{ObjectsMut, PutOptions};
use holdall_core::checksum::Summing;
use holdall_core::heap_page::max_record;
use holdall_core::name::check_name;
use holdall_core::{Error, Oid, PutMode, Result};
use std::borrow::Cow;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// Which object a call makes. Whatever can be a name becomes one.
///
/// ```
/// # use holdall::Target;
/// assert_eq!(Target::from("a"), Target::Name(b"a".to_vec()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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

/// Bytes of an object on their way in, which belong to no transaction yet: from
/// [`Store::stage`](crate::Store::stage). Taking them needs no lock, so that any number may be
/// under way beside a transaction, in any threads. Dropped before [`StagedObject::finish`] it
/// leaves no trace.
///
/// ```
/// # use holdall::{PutOptions, Store};
/// # let store = Store::in_memory()?;
/// let (mut a, mut b) = (store.stage("a", PutOptions::default())?, store.stage("b", PutOptions::default())?);
/// a.push(b"first")?;
/// b.push(b"second")?;
/// store.write(|tx| a.finish(tx).and_then(|_| b.finish(tx)))?;
/// assert_eq!(store.read()?.get("b")?, Some(b"second".into()));
/// # Ok::<(), holdall::Error>(())
/// ```
#[derive(Debug)]
pub struct StagedObject {
    head: Head<'static>,
    stager: Stager,
    /// The first bytes, until they are too many for a record.
    small: Option<Vec<u8>>,
    near: Option<Oid>,
    hints: Option<StoredHints>,
    mode: PutMode,
    page_size: usize,
    /// With [`Options::debug_sums`](crate::Options::debug_sums), until a push fails.
    sum: Option<Box<Summing>>,
    /// Keeps the store open.
    _store: Option<Arc<dyn Debug + Send + Sync>>,
    inner: Arc<Inner>,
}

/// The head of a new object, or of new bytes for an old one.
pub(super) fn head_for<'h>(
    target: &'h Target,
    attributes: &Attributes,
    time: u64,
    page_size: usize,
) -> Result<Head<'h>> {
    let name = match target {
        Target::Name(name) => Some(name.as_slice()),
        Target::New => None,
    };
    name.map_or(Ok(()), check_name)?;
    let attributes = object::encode_attributes(attributes, page_size)?;
    let name = name.map(Cow::Borrowed);
    Ok(Head { name, attributes: attributes.into(), time, ..Head::default() })
}

impl StagedObject {
    pub(crate) fn new(
        inner: &Arc<Inner>,
        store: Option<Arc<dyn Debug + Send + Sync>>,
        target: &Target,
        options: &PutOptions,
    ) -> Result<Self> {
        inner.check_writable()?;
        inner.start_log_early()?;
        let page_size = inner.layout.page_size();
        // The transaction that it ends in says when; the place of that is kept.
        let time = inner.options.tuning.now();
        let head = head_for(target, &options.attributes, time, page_size)?.into_owned();
        let stager = Stager::new(&inner.alloc, &inner.pager, options.expected_size);
        let hints = options.hints.map(|hints| hints.kept(page_size));
        let (near, mode, small, inner) =
            (options.near, options.mode, Some(Vec::new()), inner.clone());
        let sum = inner.sums.as_ref().map(|_| Box::default());
        Ok(Self { head, stager, small, near, hints, mode, page_size, sum, _store: store, inner })
    }

    /// Takes more bytes.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        let sum = self.sum.take();
        self.take_in(bytes)?;
        self.sum = sum.map(|mut sum| {
            sum.update(bytes);
            sum
        });
        Ok(())
    }

    /// The name of the object whose size is a guess at the new one's, if nobody told it and these
    /// bytes are the first that do not fit a record.
    fn guesses_by(&self, bytes: &[u8]) -> Option<&[u8]> {
        let small = self.small.as_ref().filter(|_| !self.stager.knows_size())?;
        let len = self.head.record_len(small.len() + bytes.len());
        self.head.name.as_deref().filter(|_| len > max_record(self.page_size))
    }

    fn take_in(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(small) = &mut self.small {
            let len = self.head.record_len(small.len() + bytes.len());
            if len <= max_record(self.page_size) {
                small.extend_from_slice(bytes);
                return Ok(());
            }
            let first = self.small.take().unwrap_or_default();
            self.stager.write(&first)?;
        }
        self.stager.write(bytes)
    }

    /// Bytes taken so far.
    pub fn len(&self) -> u64 {
        self.small.as_ref().map_or(self.stager.len(), |s| s.len() as u64)
    }

    /// Whether nothing was taken yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the bytes an object of a transaction of the same store, in its current collection.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a transaction of another store; [`Error::Full`], [`Error::Io`];
    /// [`Error::Exists`] and [`Error::Conflict`] as [`PutMode`] says, which leave the
    /// transaction usable.
    pub fn finish(self, tx: &mut ObjectsMut) -> Result<Oid> {
        if !Arc::ptr_eq(&self.inner, &tx.inner) {
            let text = "the bytes were staged for another store than the transaction's";
            return Err(Error::Invalid(text.into()));
        }
        let size = self.len();
        let Self { head, stager, small, near, hints, mode, page_size, sum, .. } = self;
        tx.check_mode(&head, mode)?;
        let head = Head { time: tx.time, ..head };
        let oid = match small {
            Some(bytes) => tx.install(&head, Data::Small(&bytes), size, near, hints),
            None => {
                let most = object::max_tail(&head, page_size, hints.map_or(0, |h| h.flags), size);
                let staged = stager.finish(most)?;
                tx.install(&head, Data::Staged(staged), size, near, hints)
            }
        }?;
        tx.note_sum(oid, sum.map(|sum| sum.sum()));
        Ok(oid)
    }
}

/// Takes an object's bytes. Dropped before [`ObjectWriter::finish`] it leaves no trace.
#[derive(Debug)]
pub struct ObjectWriter<'a> {
    tx: &'a mut ObjectsMut,
    staged: StagedObject,
}

impl<'a> ObjectWriter<'a> {
    pub(crate) fn new(tx: &'a mut ObjectsMut, staged: StagedObject) -> Self {
        Self { tx, staged }
    }

    /// As [`StagedObject::push`].
    ///
    /// # Errors
    /// As [`StagedObject::push`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(name) = self.staged.guesses_by(bytes) {
            // What cannot be read is met by who needs it.
            let likely = self.tx.likely_size(name).unwrap_or(0);
            self.staged.stager.likely(likely);
        }
        self.staged.push(bytes)
    }

    /// Whether the collection that the object goes to is there. Takes the writer's lock, as
    /// [`ObjectWriter::finish`] does, which makes it if it is missing.
    ///
    /// # Errors
    /// As [`ObjectsMut::has_collection`].
    pub fn has_collection(&mut self) -> Result<bool> {
        self.tx.has_collection()
    }

    /// Bytes taken so far.
    pub fn len(&self) -> u64 {
        self.staged.len()
    }

    /// Whether nothing was taken yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the bytes an object of the transaction.
    ///
    /// # Errors
    /// As [`StagedObject::finish`].
    pub fn finish(self) -> Result<Oid> {
        self.staged.finish(self.tx)
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
