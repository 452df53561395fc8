//! Objects in a bucket, for many processes at once.
//!
//! Owns: [`BucketStore`] and [`Names`] of collections' handles; the calls that programs make. The parts:
//! `inner` reads, `write` is one conditional write, `change` the loop around it, `operation` its intent
//! and blobs, `put`, `edit` and `copy` what changes do, `writer` an object that comes in parts, `hold` that a version stays, `tree` the segment tree over blobs.

mod ahead;
mod cache;
mod change;
mod copy;
mod current;
mod edit;
mod environment;
mod hold;
mod inner;
mod layout;
mod list;
mod missing;
mod open;
mod operation;
mod put;
mod read;
mod together;
mod tree;
mod version;
mod write;
mod writer;

pub use edit::Splice;
pub use environment::{Environment, Machine};
pub use hold::{Held, Hold, LONGEST_HOLD};
pub use list::{Infos, ListNames, Names};
pub use open::Options;
pub use put::{PutMode, PutOptions};
pub use read::{Object, ObjectInfo, Pieces};
pub use version::ObjectVersion;
pub use writer::Writer;

pub(crate) use change::{Edit, all_named};
pub(crate) use current::{Current, Target};
pub(crate) use edit::{Splices, What};
pub(crate) use inner::{Inner, TRIES};
pub(crate) use layout::Known;
pub(crate) use missing::{is_missing, missing_blob};
pub(crate) use operation::{Operation, write_intent};
pub(crate) use together::together;
pub(crate) use tree::{AtHand, fetch_nodes};
pub(crate) use write::Written;

use bytes::Bytes;
use change::Changed;
use holdall::{Attributes, DEFAULT_COLLECTION, Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// Objects in a bucket, which many processes may use at once. A change is of one object; there are no
/// transactions over several and no snapshot of all. Cheap to clone.
///
/// Each call is linearizable by itself: once it returned, every later call anywhere sees it. A call
/// that fails changed nothing, but for [`Error::OutcomeUnknown`], after which one must look.
///
/// ```
/// use holdall_bucket::backend::Memory;
/// use holdall_bucket::{BucketStore, Splice};
/// use std::sync::Arc;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let store = BucketStore::create(Arc::new(Memory::default())).await?;
/// store.put("film", vec![7; 3_000_000]).await?;
/// store.insert("film", 40, "more header").await?;
/// store.copy("film", "film of before").await?;
/// store.edit("film", vec![Splice::SetLen(50)]).await?;
/// assert_eq!(store.get_range("film", 38..53).await?.unwrap(), &b"\x07\x07more header"[..12]);
/// assert_eq!(store.info("film of before").await?.unwrap().size, 3_000_011);
/// # Ok::<(), holdall::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct BucketStore {
    pub(crate) inner: Arc<Inner>,
    collection: String,
}

/// The version that a change left.
fn version_of(target: &Target, changed: Changed) -> Result<ObjectVersion> {
    changed.version.ok_or_else(|| Error::NotFound(target.shown()))
}

impl BucketStore {
    fn of(inner: Arc<Inner>) -> Self {
        Self { inner, collection: DEFAULT_COLLECTION.into() }
    }

    /// The same store, seen from another collection, in which names are apart. It begins to be with
    /// its first object.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty name.
    pub fn collection(&self, name: &str) -> Result<Self> {
        if name.is_empty() {
            return Err(Error::Invalid("a collection has a name of one character at least".into()));
        }
        Ok(Self { inner: self.inner.clone(), collection: name.into() })
    }

    /// The name of the collection that calls go to.
    pub fn collection_name(&self) -> &str {
        &self.collection
    }

    /// How the store was opened: what errors and reports name it.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The store's id.
    pub fn id(&self) -> &str {
        &self.inner.head.store
    }

    /// Knows what another handle knows, as if it were one.
    #[doc(hidden)]
    pub fn take_at_hand_of(&mut self, other: &Self) {
        self.inner.cache.take(&other.inner.cache);
    }

    fn target(&self, name: &str) -> Result<Target> {
        Target::new(&self.collection, name)
    }

    /// All bytes of an object; `None` if there is none. Cost: one request up to 64 KiB, else as
    /// [`Object::read`].
    ///
    /// # Errors
    /// [`Error::Corrupt`]; those of the backend.
    pub async fn get(&self, name: &str) -> Result<Option<Bytes>> {
        self.get_range(name, 0..u64::MAX).await
    }

    /// The bytes `range` of an object, cut to its size; `None` if there is none. A version whose
    /// bytes are gone meanwhile is given up for a newer one.
    ///
    /// # Errors
    /// As [`BucketStore::get`].
    pub async fn get_range(&self, name: &str, range: Range<u64>) -> Result<Option<Bytes>> {
        let mut attempt = 0;
        loop {
            let Some(mut object) = self.open(name).await? else { return Ok(None) };
            match object.read(range.clone()).await {
                Err(Error::SnapshotTooOld { .. }) if attempt < inner::TRIES => attempt += 1,
                read => return read.map(Some),
            }
        }
    }

    /// Opens the version that an object has now; `None` if there is none. Cost: one request.
    ///
    /// # Errors
    /// As [`BucketStore::get`].
    pub async fn open(&self, name: &str) -> Result<Option<Object>> {
        let target = self.target(name)?;
        let found = self.inner.read(&target).await?.filter(|found| !found.record.gone);
        Ok(found.map(|found| Object::new(self.inner.clone(), target, found)))
    }

    /// What is known of an object; `None` if there is none. Cost: one request.
    ///
    /// # Errors
    /// As [`BucketStore::get`].
    pub async fn info(&self, name: &str) -> Result<Option<ObjectInfo>> {
        Ok(self.open(name).await?.map(|object| object.info()))
    }

    /// Puts an object in place of any other. Cost: up to 64 KiB one request for a new name, or for
    /// one that was seen here within a second, else two, or three for one that was never seen; larger
    /// ones a request for each 8 MiB and four more.
    ///
    /// # Errors
    /// [`Error::Conflict`] if others were first 16 times; [`Error::OutcomeUnknown`]; those of the
    /// backend.
    pub async fn put(&self, name: &str, bytes: impl Into<Bytes>) -> Result<ObjectVersion> {
        self.put_with(name, bytes, PutOptions::default()).await
    }

    /// As [`BucketStore::put`], with attributes or a condition.
    ///
    /// # Errors
    /// As [`BucketStore::put`]; [`Error::Exists`] and [`Error::Conflict`] as [`PutMode`] says;
    /// [`Error::Invalid`] for attributes that are too long.
    pub async fn put_with(
        &self,
        name: &str,
        bytes: impl Into<Bytes>,
        options: PutOptions,
    ) -> Result<ObjectVersion> {
        let target = self.target(name)?;
        let changed = self.inner.put(&target, bytes.into(), options).await?;
        version_of(&target, changed)
    }

    /// Begins an object that comes in parts.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name or attributes that are too long.
    pub fn writer(&self, name: &str, options: PutOptions) -> Result<Writer> {
        Writer::new(self.inner.clone(), self.target(name)?, options)
    }

    /// Replaces the bytes `range` of an object; all behind moves. Returns the new size. Cost: a read
    /// and a write of the record; every so often a blob more.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Range`]; as [`BucketStore::put`].
    pub async fn splice(
        &self,
        name: &str,
        range: Range<u64>,
        bytes: impl Into<Bytes>,
    ) -> Result<u64> {
        self.edit(name, vec![Splice::Replace(range, bytes.into())]).await
    }

    /// Inserts bytes before byte `at`. As [`BucketStore::splice`].
    ///
    /// # Errors
    /// As [`BucketStore::splice`].
    pub async fn insert(&self, name: &str, at: u64, bytes: impl Into<Bytes>) -> Result<u64> {
        self.splice(name, at..at, bytes).await
    }

    /// Takes the bytes `range` out. As [`BucketStore::splice`].
    ///
    /// # Errors
    /// As [`BucketStore::splice`].
    pub async fn delete_range(&self, name: &str, range: Range<u64>) -> Result<u64> {
        self.splice(name, range, Bytes::new()).await
    }

    /// Puts bytes behind the last one, wherever that is then. As [`BucketStore::splice`].
    ///
    /// # Errors
    /// As [`BucketStore::splice`].
    pub async fn append(&self, name: &str, bytes: impl Into<Bytes>) -> Result<u64> {
        self.edit(name, vec![Splice::Append(bytes.into())]).await
    }

    /// Several edits of one object as one change. Returns the new size.
    ///
    /// # Errors
    /// As [`BucketStore::splice`].
    pub async fn edit(&self, name: &str, splices: Vec<Splice>) -> Result<u64> {
        Ok(self.change(name, splices, None).await?.size)
    }

    /// As [`BucketStore::edit`], if the object is of a version. Returns the new one.
    ///
    /// # Errors
    /// As [`BucketStore::edit`]; [`Error::Conflict`] if it is of another version.
    pub async fn edit_if(
        &self,
        name: &str,
        splices: Vec<Splice>,
        only: ObjectVersion,
    ) -> Result<ObjectVersion> {
        let changed = self.change(name, splices, Some(only)).await?;
        version_of(&self.target(name)?, changed)
    }

    async fn change(
        &self,
        name: &str,
        splices: Vec<Splice>,
        only: Option<ObjectVersion>,
    ) -> Result<Changed> {
        let target = self.target(name)?;
        let mut operation = Operation::new(&self.inner)?;
        let base = self.inner.read(&target).await?;
        let mut edit = Splices::new(&target, What::Splices(splices), only, false);
        self.inner.change(&target, &mut operation, base, &mut edit).await
    }

    /// Replaces an object's attributes.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Invalid`] if they are too long; as [`BucketStore::put`].
    pub async fn set_attributes(
        &self,
        name: &str,
        attributes: Attributes,
    ) -> Result<ObjectVersion> {
        check_attributes(&attributes)?;
        let target = self.target(name)?;
        let mut operation = Operation::new(&self.inner)?;
        let base = self.inner.read(&target).await?;
        let mut edit = SetAttributes { target: target.clone(), attributes };
        let changed = self.inner.change(&target, &mut operation, base, &mut edit).await?;
        version_of(&target, changed)
    }

    /// Copies an object, attributes and all, in place of any other. The two share their blobs, and an
    /// edit of one never shows in the other. Cost: five requests, whatever its size.
    ///
    /// # Errors
    /// [`Error::NotFound`]; as [`BucketStore::put`].
    pub async fn copy(&self, from: &str, to: &str) -> Result<ObjectVersion> {
        self.copy_with(from, to, PutMode::Overwrite).await
    }

    /// As [`BucketStore::copy`], on a condition on what has the name `to`.
    ///
    /// # Errors
    /// As [`BucketStore::copy`] and [`PutMode`].
    pub async fn copy_with(&self, from: &str, to: &str, mode: PutMode) -> Result<ObjectVersion> {
        let to = self.target(to)?;
        let (changed, _) = self.inner.copy(&self.target(from)?, &to, mode).await?;
        version_of(&to, changed)
    }

    /// Inserts the bytes `range` of an object into the object `to` before byte `at`; the two may be
    /// one. Blobs are shared as by [`BucketStore::copy`]. Returns the new size of `to`.
    ///
    /// # Errors
    /// As [`BucketStore::copy`]; [`Error::Range`].
    pub async fn copy_range(
        &self,
        from: &str,
        range: Range<u64>,
        to: &str,
        at: u64,
    ) -> Result<u64> {
        let (from, to) = (self.target(from)?, self.target(to)?);
        Ok(self.inner.copy_range(&from, range, &to, at).await?.size)
    }

    /// Makes `to` the objects `parts` one behind the other, without attributes; `to` may be one of
    /// them. Blobs are shared as by [`BucketStore::copy`].
    ///
    /// # Errors
    /// As [`BucketStore::copy`].
    pub async fn concat(&self, parts: &[&str], to: &str) -> Result<ObjectVersion> {
        let parts: Result<Vec<Target>> = parts.iter().map(|part| self.target(part)).collect();
        let to = self.target(to)?;
        let changed = self.inner.concat(&parts?, &to, PutMode::Overwrite).await?;
        version_of(&to, changed)
    }

    /// Gives an object another name, in place of any other object. It is a copy, then the source is
    /// removed: a process that dies between leaves both names, never none, and readers may see both.
    ///
    /// # Errors
    /// As [`BucketStore::copy`]; [`Error::Conflict`] if the source was changed meanwhile: both are
    /// there then.
    pub async fn rename(&self, from: &str, to: &str) -> Result<ObjectVersion> {
        self.rename_with(from, to, PutMode::Overwrite).await
    }

    /// As [`BucketStore::rename`], on a condition on what has the name `to`.
    ///
    /// # Errors
    /// As [`BucketStore::rename`] and [`PutMode`].
    pub async fn rename_with(&self, from: &str, to: &str, mode: PutMode) -> Result<ObjectVersion> {
        let to = self.target(to)?;
        version_of(&to, self.inner.rename(&self.target(from)?, &to, mode).await?)
    }

    /// Removes an object; returns whether there was one. Cost: a read and a write.
    ///
    /// # Errors
    /// As [`BucketStore::put`].
    pub async fn remove(&self, name: &str) -> Result<bool> {
        self.inner.remove(&self.target(name)?, None).await
    }

    /// As [`BucketStore::remove`], if the object is of a version.
    ///
    /// # Errors
    /// As [`BucketStore::remove`]; [`Error::Conflict`] if it is of another version.
    pub async fn remove_if(&self, name: &str, only: ObjectVersion) -> Result<bool> {
        self.inner.remove(&self.target(name)?, Some(only)).await
    }

    /// A page of the collection's names. Cost: a request for a thousand keys, those that removed objects
    /// left too, and with folders one for each, 64 under way together.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if something else lies among the records; those of the backend.
    pub async fn list(&self, what: &ListNames) -> Result<Names> {
        self.inner.list(&self.collection, what).await
    }

    /// A page of the collection's objects that are `wanted`, by name, with what is known of them. Cost: as
    /// [`BucketStore::list`], and a request of a kilobyte for each object, 64 under way together, but none
    /// for those that were read or listed before and have not changed since.
    ///
    /// # Errors
    /// As [`BucketStore::list`] and [`BucketStore::get`].
    pub async fn list_infos(
        &self,
        what: &ListNames,
        wanted: impl Fn(&str) -> bool + Send,
    ) -> Result<Infos> {
        self.inner.list_infos(&self.collection, what, wanted).await
    }

    /// What is known of objects, in the order of `names`; nothing of those that are not there. Cost: a
    /// request of a kilobyte for each, 64 under way together; one more for each whose attributes and name
    /// are longer than that.
    ///
    /// # Errors
    /// As [`BucketStore::get`].
    pub async fn infos(&self, names: &[String]) -> Result<Vec<ObjectInfo>> {
        self.inner.infos(&self.collection, names).await
    }

    /// The collections that hold anything, or did.
    ///
    /// # Errors
    /// As [`BucketStore::list`].
    pub async fn collections(&self) -> Result<Vec<String>> {
        self.inner.collections().await
    }
}

/// # Errors
/// [`Error::Invalid`] if attributes are too long.
pub(crate) fn check_attributes(attributes: &Attributes) -> Result<()> {
    holdall_core::attributes::check(attributes, holdall_core::attributes::MAX_ATTRIBUTES)
}

/// The edit that replaces an object's attributes.
struct SetAttributes {
    target: Target,
    attributes: Attributes,
}

#[async_trait::async_trait]
impl Edit for SetAttributes {
    async fn apply(
        &mut self,
        store: &Inner,
        operation: &mut Operation,
        base: Option<&Current>,
    ) -> Result<Option<crate::format::Record>> {
        let old = base.and_then(Current::object);
        let old = old.ok_or_else(|| Error::NotFound(self.target.shown()))?;
        let mut record = crate::format::Record::clone(old);
        record.attributes.clone_from(&self.attributes);
        record.modified = store.nanos();
        record.changed_by(operation.id);
        Ok(Some(record))
    }
}
