//! Whole objects put, created and streamed in, on conditions or without.
//!
//! Owns: [`PutOptions`].

use super::ObjectsMut;
use crate::object::{Attributes, Head, Hints};
use crate::prefetch;
use crate::write::writer::{ObjectWriter, StagedObject, Target};
use holdall_core::name::{check_name, show_name};
use holdall_core::{Oid, PutMode, Result};

/// How an object is put. What is not set is as a plain [`ObjectsMut::put`] has it.
///
/// ```
/// use holdall::{Error, PutMode, PutOptions};
///
/// # let store = holdall::Store::in_memory()?;
/// store.write(|tx| tx.put("counter", b"1"))?;
/// let seen = store.read()?.metadata("counter")?.version;
/// let update = PutOptions { mode: PutMode::Update(seen), ..PutOptions::default() };
/// store.write(|tx| tx.put_with("counter", b"2", &update))?;
/// let late = store.write(|tx| tx.put_with("counter", b"2 too", &update));
/// assert!(matches!(late, Err(Error::Conflict { .. })));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PutOptions {
    /// What to do about an object that has the name already.
    pub mode: PutMode,
    /// The object's attributes. Those of an object that is replaced are dropped.
    pub attributes: Attributes,
    /// How it will be used; the collection's hints if there are none.
    pub hints: Option<Hints>,
    /// An object that a new one should lie close to.
    pub near: Option<Oid>,
    /// The size in bytes that the object will have, by a writer or by appends in later
    /// transactions; it then lies in one segment if there is room. Room for appends is kept while
    /// they come, in memory only. A hint; without it a writer expects the size of the object that
    /// it replaces.
    pub expected_size: Option<u64>,
}

impl PutOptions {
    /// These attributes, and nothing else set.
    pub fn with_attributes(attributes: Attributes) -> Self {
        Self { attributes, ..Self::default() }
    }
}

impl ObjectsMut {
    /// Creates the object `name` or replaces its bytes; its OID then stays and its attributes
    /// are dropped.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a name over 1 KiB,
    /// [`Error::Full`](crate::Error::Full), [`Error::Io`](crate::Error::Io).
    pub fn put(&mut self, name: impl AsRef<[u8]>, bytes: &[u8]) -> Result<Oid> {
        // While the way to their place is looked for.
        prefetch::range(bytes.as_ptr(), 0..bytes.len());
        let name = name.as_ref();
        check_name(name)?;
        let head = Head { name: Some(name.into()), time: self.time, ..Head::default() };
        self.put_whole(&head, bytes, None, None, None)
    }

    /// As [`ObjectsMut::put`], with attributes, hints or a condition.
    ///
    /// # Errors
    /// As [`ObjectsMut::put`]; [`Error::Invalid`](crate::Error::Invalid) if the attributes are
    /// too long; [`Error::Exists`](crate::Error::Exists) and
    /// [`Error::Conflict`](crate::Error::Conflict) as [`PutMode`] says, which leave the
    /// transaction usable.
    pub fn put_with(
        &mut self,
        name: impl AsRef<[u8]>,
        bytes: &[u8],
        options: &PutOptions,
    ) -> Result<Oid> {
        let target = Target::Name(name.as_ref().to_vec());
        let head = self.head_for(&target, &options.attributes)?;
        self.check_mode(&head, options.mode)?;
        let hints = options.hints.map(|hints| hints.kept(self.page_size()));
        self.put_whole(&head, bytes, options.near, hints, options.expected_size)
    }

    /// Creates an object without a name.
    ///
    /// # Errors
    /// As [`ObjectsMut::put`].
    pub fn create(&mut self, bytes: &[u8]) -> Result<Oid> {
        prefetch::range(bytes.as_ptr(), 0..bytes.len());
        let head = Head { time: self.time, ..Head::default() };
        self.put_whole(&head, bytes, None, None, None)
    }

    /// As [`ObjectsMut::create`], with attributes, hints or a neighbour.
    ///
    /// # Errors
    /// As [`ObjectsMut::put_with`].
    pub fn create_with(&mut self, bytes: &[u8], options: &PutOptions) -> Result<Oid> {
        let head = self.head_for(&Target::New, &options.attributes)?;
        let hints = options.hints.map(|hints| hints.kept(self.page_size()));
        self.put_whole(&head, bytes, options.near, hints, options.expected_size)
    }

    /// Opens a writer for an object of any length. Data goes to its place as it comes; the
    /// object appears with [`ObjectWriter::finish`], which also looks at [`PutOptions::mode`],
    /// or never.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for a name over 1 KiB or attributes too long.
    pub fn writer(
        &mut self,
        target: impl Into<Target>,
        options: PutOptions,
    ) -> Result<ObjectWriter<'_>> {
        let staged = StagedObject::new(&self.inner, self.store.clone(), &target.into(), &options)?;
        Ok(ObjectWriter::new(self, staged))
    }

    /// Refuses what a put of this name and mode must not do, without putting: for a call that
    /// makes an object by other means, such as [`ObjectsMut::concat`].
    ///
    /// # Errors
    /// [`Error::Exists`](crate::Error::Exists) and [`Error::Conflict`](crate::Error::Conflict) as
    /// [`PutMode`] says.
    #[doc(hidden)]
    pub fn check_put(&mut self, name: impl AsRef<[u8]>, mode: PutMode) -> Result<()> {
        let name = Some(name.as_ref().into());
        self.check_mode(&Head { name, ..Head::default() }, mode)
    }

    /// Refuses what a put of this name and mode must not do. Takes the writer's lock unless the
    /// mode allows everything.
    pub(crate) fn check_mode(&mut self, head: &Head<'_>, mode: PutMode) -> Result<()> {
        let Some(name) = head.name.as_deref().filter(|_| mode != PutMode::Overwrite) else {
            return Ok(());
        };
        let there = match self.lookup(name)? {
            Some(oid) => Some(self.metadata(oid)?.version),
            None => None,
        };
        mode.check(there.as_ref(), &|| format!("object {}", show_name(name)))
    }
}
