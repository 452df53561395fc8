//! Write transactions.
//!
//! Owns: [`WriteTx`]. The writer's lock is taken at the first touch of an existing page and
//! held to the commit; streaming large data needs none (rule 10).

mod lookup;
mod many;

use super::inner::{CommitHooks, Cursors, Inner};
use super::opened::Opened;
use super::view::{Collection, DEFAULT_COLLECTION, Key, Root, check_name, oid_of};
use super::writer::{ObjectWriter, Target, WriterOptions};
use crate::names::{AppendCursor, InsertPosition};
use crate::object::{
    self, Attributes, Data, Head, ObjectBody, ObjectLocation, ObjectWrite, PreviousBody, Record,
    StoredHints,
};
use crate::prefetch;
use crate::space::{SpaceTx, Stager};
use holdall_core::heap_page::max_record;
use holdall_core::page::PageKind;
use holdall_core::placement::{Placement, Policy};
use holdall_core::{Error, Lsn, Oid, PageRead, PageWrite, Result, root_page};
use std::borrow::Cow;
use std::sync::Arc;

/// The part of a transaction that exists once it holds the writer's lock.
#[derive(Debug)]
struct Begun {
    tx: SpaceTx,
    root: Root,
    collections: Opened,
    cursors: Cursors,
    /// Where names in ascending order go; only while names are but added.
    tail: AppendCursor,
    /// The collection's number that `tail` is of.
    tail_of: u32,
    /// Where records are put together.
    record: Vec<u8>,
}

/// A write transaction: all of it happens or nothing.
///
/// Reads through it see its own changes. After an error of any call but a lookup's the
/// transaction can only be given up.
#[derive(Debug)]
pub struct WriteTx {
    inner: Arc<Inner>,
    begun: Option<Box<Begun>>,
    pub(super) collection: String,
    failed: bool,
}

impl WriteTx {
    pub(super) fn new(inner: &Arc<Inner>) -> Result<Self> {
        inner.check_writable()?;
        inner.flush_overdue()?;
        Ok(Self {
            inner: inner.clone(),
            begun: None,
            collection: DEFAULT_COLLECTION.into(),
            failed: false,
        })
    }

    #[inline]
    fn begin(&mut self) -> Result<&mut Begun> {
        if self.failed || self.begun.is_none() {
            self.start()?;
        }
        self.begun.as_deref_mut().ok_or_else(|| Error::Invalid("no transaction".into()))
    }

    /// Takes the writer's lock, if the transaction has not got it and can go on.
    #[cold]
    fn start(&mut self) -> Result<()> {
        if self.failed {
            return Err(Error::Invalid("the transaction failed earlier; start a new one".into()));
        }
        if self.begun.is_none() {
            let inner = &self.inner;
            let tx =
                SpaceTx::begin(&inner.pager, &inner.alloc, inner.root, &|| inner.prepare_write())?;
            let root = Root::load(&tx, inner.root)?;
            let mut cursors = inner.cursors.lock().clone();
            cursors.handles.forget_places();
            self.begun = Some(Box::new(Begun {
                tx,
                root,
                collections: Opened::default(),
                cursors,
                tail: AppendCursor::default(),
                tail_of: 0,
                record: Vec::new(),
            }));
        }
        Ok(())
    }

    /// From here on this transaction's calls go to collection `name`, which is made if it is
    /// missing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty name or one over 255 bytes.
    pub fn collection(&mut self, name: &str) -> Result<&mut Self> {
        if name.is_empty() || name.len() > 255 {
            return Err(Error::Invalid("a collection's name has 1 to 255 bytes".into()));
        }
        self.collection = name.into();
        Ok(self)
    }

    /// The current collection as this transaction sees it.
    fn current(&mut self) -> Result<Option<Collection>> {
        self.begin()?;
        let Some(begun) = self.begun.as_deref_mut() else { return Ok(None) };
        if let Some(c) = begun.collections.get(&self.collection) {
            return Ok(Some(*c));
        }
        let Some(page) = begun.root.find(&begun.tx, &self.collection)? else { return Ok(None) };
        let collection = Collection::load(&begun.tx, page)?;
        begun.collections.add(self.collection.clone(), collection);
        Ok(Some(collection))
    }

    fn current_or_new(&mut self) -> Result<Collection> {
        if let Some(c) = self.current()? {
            return Ok(c);
        }
        let name = self.collection.clone();
        let begun = self.begin()?;
        let number = begun.root.next_collection;
        begun.root.next_collection = number
            .checked_add(1)
            .ok_or_else(|| Error::Invalid("no number is left for another collection".into()))?;
        let page = begun.tx.new_page(PageKind::Collection, u64::from(number), None)?;
        let collection = Collection::load(&begun.tx, page)?;
        begun.root.catalog.insert(&mut begun.tx, 0, name.as_bytes(), &page.0.to_le_bytes())?;
        begun.collections.add(name, collection);
        Ok(collection)
    }

    /// After an error nothing of the transaction can be kept: references were taken.
    pub(super) fn fail_with<T>(&mut self, result: Result<T>) -> Result<T> {
        self.failed |= result.is_err();
        result
    }

    /// Runs `f` with what it needs to change objects of the current collection, then keeps
    /// the collection's new state.
    pub(super) fn with_objects<T>(
        &mut self,
        f: impl FnOnce(&mut ObjectWrite<'_>, &mut Collection) -> Result<T>,
    ) -> Result<T> {
        let result = self.with_objects_of(f);
        // Pages may be half changed: nothing of this transaction may be committed then.
        self.fail_with(result)
    }

    fn with_objects_of<T>(
        &mut self,
        f: impl FnOnce(&mut ObjectWrite<'_>, &mut Collection) -> Result<T>,
    ) -> Result<T> {
        self.begin()?;
        let found = self.begun.as_deref_mut().and_then(|b| b.collections.find(&self.collection));
        if found.is_none() {
            self.current_or_new()?;
        }
        let missing = || Error::Invalid("the collection is not there".into());
        let Some(begun) = self.begun.as_deref_mut() else { return Err(missing()) };
        let Begun { tx, root, collections, cursors, tail, record, .. } = begun;
        tail.forget();
        let at = found.or_else(|| collections.find(&self.collection)).ok_or_else(missing)?;
        let collection = collections.at(at).ok_or_else(missing)?;
        let placement = cursors
            .placements
            .entry(collection.number)
            .or_insert_with(|| Placement::new(Policy::default()));
        let (mut new, hints) = (collection.heap, collection.hints);
        let (handles, cursor, heap) = (&mut root.handles, &mut cursors.handles, &mut new);
        let mut objects =
            ObjectWrite { tx, handles, cursor, heap, placement, hints, scratch: record };
        let value = f(&mut objects, collection)?;
        collection.heap = new;
        collection.logical_bytes(&self.collection)?;
        Ok(value)
    }

    /// As [`WriteTx::lookup`]; where there is none, the place for its name.
    fn find(&mut self, name: &[u8]) -> Result<std::result::Result<Oid, InsertPosition>> {
        self.begin()?;
        let known = self.begun.as_deref_mut().and_then(|b| b.collections.get(&self.collection));
        let (number, names) = match known {
            Some(c) => (c.number, c.names),
            None => match self.current()? {
                Some(c) => (c.number, c.names),
                None => return Ok(Err(InsertPosition::NOWHERE)),
            },
        };
        let begun = self.begin()?;
        if begun.tail_of != number {
            begun.tail.forget();
            begun.tail_of = number;
        }
        match names.locate(&begun.tx, name, &begun.tail)? {
            Ok(value) => oid_of(&value).map(Ok),
            Err(gap) => Ok(Err(gap)),
        }
    }

    /// An object's size in bytes.
    pub(super) fn object_size(&mut self, oid: Oid) -> Result<u64> {
        let begun = self.begin()?;
        ObjectLocation::of(&begun.tx, &begun.root.handles, oid)?.look(&begun.tx, |r| r.size())
    }

    /// Finds an object, and gives `f` its record.
    pub(super) fn place_of<T>(
        &mut self,
        oid: Oid,
        f: impl FnOnce(&Record<'_>) -> Result<T>,
    ) -> Result<(ObjectLocation, T)> {
        let begun = self.begin()?;
        let place = ObjectLocation::of(&begun.tx, &begun.root.handles, oid)?;
        Ok((place, place.look(&begun.tx, f)?))
    }

    /// Finds an object's bytes as this transaction sees them until its next change.
    pub(super) fn open_whole(&mut self, oid: Oid) -> Result<ObjectBody> {
        let begun = self.begin()?;
        object::open(&begun.tx, &begun.root.handles, oid)
    }

    /// Reads bytes of an object that [`WriteTx::open_whole`] found.
    pub(super) fn read_whole(
        &mut self,
        whole: &ObjectBody,
        oid: Oid,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<()> {
        whole.read_at(&self.begin()?.tx, oid, offset, buf)
    }

    /// From here on the transaction can only be given up.
    pub(super) fn fail(&mut self) {
        self.failed = true;
    }

    /// Creates the object `name` or replaces its bytes; its OID then stays and its attributes
    /// are dropped.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name over 1 KiB, [`Error::Full`], [`Error::Io`].
    pub fn put(&mut self, name: impl AsRef<[u8]>, bytes: &[u8]) -> Result<Oid> {
        self.put_headed(name.as_ref(), bytes, Cow::default())
    }

    /// As [`WriteTx::put`], with attributes.
    ///
    /// # Errors
    /// As [`WriteTx::put`]; [`Error::Invalid`] where the attributes are too long.
    pub fn put_with(
        &mut self,
        name: impl AsRef<[u8]>,
        bytes: &[u8],
        attributes: &Attributes,
    ) -> Result<Oid> {
        let attributes = self.encoded(attributes)?;
        self.put_headed(name.as_ref(), bytes, attributes)
    }

    fn put_headed(&mut self, name: &[u8], bytes: &[u8], attributes: Cow<'_, [u8]>) -> Result<Oid> {
        // While the way to their place is looked for.
        prefetch::range(bytes.as_ptr(), 0..bytes.len());
        check_name(name)?;
        let head = Head { name: Some(name.into()), attributes };
        self.put_whole(&head, bytes, None)
    }

    /// Creates an object without a name.
    ///
    /// # Errors
    /// As [`WriteTx::put`].
    pub fn create(&mut self, bytes: &[u8]) -> Result<Oid> {
        self.create_headed(bytes, &Head::default(), None)
    }

    /// Creates an object without a name close to another one.
    ///
    /// # Errors
    /// As [`WriteTx::put`].
    pub fn create_near(&mut self, bytes: &[u8], near: Oid) -> Result<Oid> {
        self.create_headed(bytes, &Head::default(), Some(near))
    }

    /// Creates an object without a name, with attributes, close to another one if wished.
    ///
    /// # Errors
    /// As [`WriteTx::put_with`].
    pub fn create_with(
        &mut self,
        bytes: &[u8],
        attributes: &Attributes,
        near: Option<Oid>,
    ) -> Result<Oid> {
        let head = self.head(None, attributes)?;
        self.create_headed(bytes, &head, near)
    }

    fn create_headed(&mut self, bytes: &[u8], head: &Head<'_>, near: Option<Oid>) -> Result<Oid> {
        prefetch::range(bytes.as_ptr(), 0..bytes.len());
        self.put_whole(head, bytes, near)
    }

    /// Puts bytes that are all in memory: in a record if they fit one, else in segments.
    fn put_whole(&mut self, head: &Head<'_>, bytes: &[u8], near: Option<Oid>) -> Result<Oid> {
        let data = self.stage(head, bytes)?;
        self.install(head, data, bytes.len() as u64, near, None)
    }

    fn stage<'b>(&self, head: &Head, bytes: &'b [u8]) -> Result<Data<'b>> {
        if head.record_len(bytes.len()) <= max_record(self.page_size()) {
            return Ok(Data::Small(bytes));
        }
        let mut stager = self.stager(Some(bytes.len() as u64));
        stager.write(bytes)?;
        stager.finish(object::max_tail(head, self.page_size(), 0)).map(Data::Staged)
    }

    /// Replaces all of an object's bytes; OID, name, attributes and hints stay. Cost: the new
    /// bytes and the object's record and nodes; its old bytes are not read.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Dangling`], [`Error::Full`], [`Error::Io`].
    pub fn set_bytes<'k>(&mut self, key: impl Into<Key<'k>>, bytes: &[u8]) -> Result<()> {
        let oid = self.resolve(&key.into())?;
        let (place, (old, head)) = self.place_of(oid, |r| Ok((PreviousBody::of(r)?, r.head())))?;
        let data = self.stage(&head, bytes)?;
        self.with_placed(place, |objects, c| {
            let before = objects.replace_at(place, &old, &head, data, None)?;
            c.resize(before, bytes.len() as u64);
            Ok(())
        })
    }

    /// Opens a writer for an object of any length. Data goes to its place as it comes; the
    /// object appears with [`ObjectWriter::finish`], or never.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name over 1 KiB or attributes too long.
    pub fn writer(&mut self, target: Target, options: WriterOptions) -> Result<ObjectWriter<'_>> {
        let head = self.head_for(&target, &options.attributes)?.into_owned();
        let stager = self.stager(options.expected_size);
        let hints = options.hints.map(|hints| hints.kept(self.page_size()));
        Ok(ObjectWriter::new(self, head, stager, options.near, hints))
    }

    fn stager(&self, expected: Option<u64>) -> Stager {
        Stager::new(&self.inner.alloc, &self.inner.pager, expected)
    }

    pub(super) fn page_size(&self) -> usize {
        self.inner.layout.page_size()
    }

    /// The head of a new object, or of new bytes for an old one.
    pub(super) fn head_for<'h>(
        &self,
        target: &'h Target,
        attributes: &Attributes,
    ) -> Result<Head<'h>> {
        let name = match target {
            Target::Name(name) => Some(name.as_slice()),
            Target::New => None,
        };
        name.map_or(Ok(()), check_name)?;
        self.head(name, attributes)
    }

    fn head<'h>(&self, name: Option<&'h [u8]>, attributes: &Attributes) -> Result<Head<'h>> {
        Ok(Head { name: name.map(Cow::Borrowed), attributes: self.encoded(attributes)? })
    }

    fn encoded(&self, attributes: &Attributes) -> Result<Cow<'static, [u8]>> {
        object::encode_attributes(attributes, self.page_size()).map(Cow::Owned)
    }

    /// Makes data an object: a new one, or the new bytes of the one that has the name.
    pub(super) fn install(
        &mut self,
        head: &Head<'_>,
        data: Data<'_>,
        size: u64,
        near: Option<Oid>,
        hints: Option<StoredHints>,
    ) -> Result<Oid> {
        let found = match &head.name {
            Some(name) => Some(self.find(name)?),
            None => None,
        };
        if let Some(Ok(oid)) = found {
            return self.with_objects(|objects, c| {
                let before = objects.replace(oid, head, data, hints)?;
                c.resize(before, size);
                Ok(oid)
            });
        }
        // Changes of objects have it forgotten, since they may be of names too. This one is not.
        let begun = self.begin()?;
        let (mut tail, mut tail_of) = (std::mem::take(&mut begun.tail), begun.tail_of);
        let unique = self.inner.take_unique()?;
        let oid = self.with_objects(|objects, c| {
            let oid = objects.create(unique, head, data, near, hints)?;
            if let (Some(name), Some(Err(gap))) = (&head.name, found) {
                // Creating the object has not touched the names.
                let (owner, value) = (u64::from(c.number), oid.to_bytes());
                c.names.insert_at(objects.tx, owner, gap, name, &value, &mut tail)?;
                tail_of = c.number;
            }
            c.objects = c.objects.saturating_add(1);
            c.resize(0, size);
            Ok(oid)
        })?;
        let begun = self.begin()?;
        (begun.tail, begun.tail_of) = (tail, tail_of);
        Ok(oid)
    }

    /// Removes an object and its name; returns whether there was one: `false` where no object
    /// has the name, which leaves the transaction as it was. Its data is not read.
    ///
    /// ```
    /// # use holdall::{Options, Store};
    /// # let storage = std::sync::Arc::new(holdall_io::MemoryStorage::new());
    /// # let store = Store::create_on(storage, &Options::default())?;
    /// store.write(|tx| {
    ///     tx.put("a", b"first")?;
    ///     assert!(tx.remove("a")?);
    ///     assert!(!tx.remove("a")?);
    ///     tx.put("b", b"second")
    /// })?;
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Dangling`] and [`Error::NotFound`] for OIDs (see [`Key`]), which leave the
    /// transaction usable; [`Error::Corrupt`], [`Error::Io`].
    pub fn remove<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<bool> {
        let Some(oid) = self.object_of(&key.into())? else { return Ok(false) };
        let (place, (old, name)) =
            self.place_of(oid, |r| Ok((PreviousBody::of(r)?, r.name.map(<[u8]>::to_vec))))?;
        self.with_placed(place, |objects, c| {
            let size = objects.delete(place, &old)?;
            if let Some(name) = name {
                c.names.remove(objects.tx, &name)?;
            }
            c.objects = c.objects.saturating_sub(1);
            c.resize(size, 0);
            Ok(true)
        })
    }

    /// The name of the collection that an object belongs to, which an OID does not tell;
    /// `None` where it is the current one.
    fn collection_of(&mut self, place: ObjectLocation) -> Result<Option<String>> {
        let current = self.current()?.map(|c| c.number);
        let begun = self.begin()?;
        let owner = begun
            .tx
            .look(place.page(), PageKind::Heap, |page| Ok(holdall_core::page::owner(page)))?;
        if current.map(u64::from) == Some(owner) {
            return Ok(None);
        }
        let catalog = begun.root.catalog;
        for entry in catalog.iter(&begun.tx, std::ops::Bound::Unbounded) {
            let (name, value) = entry?;
            let page = super::view::page_of(&value)?;
            let bytes = begun.tx.page(page, PageKind::Collection)?;
            if holdall_core::page::owner(&bytes) == owner {
                return Ok(Some(String::from_utf8_lossy(&name).into_owned()));
            }
        }
        Err(Error::page(place.page(), format!("belongs to no collection ({owner})")))
    }

    /// As [`WriteTx::with_objects`], for the collection that `oid` belongs to; the current
    /// one stays.
    pub(super) fn with_object<T>(
        &mut self,
        oid: Oid,
        f: impl FnOnce(&mut ObjectWrite<'_>, &mut Collection) -> Result<T>,
    ) -> Result<T> {
        let begun = self.begin()?;
        let place = ObjectLocation::of(&begun.tx, &begun.root.handles, oid)?;
        self.with_placed(place, f)
    }

    /// As [`WriteTx::with_object`], for an object found before.
    pub(super) fn with_placed<T>(
        &mut self,
        place: ObjectLocation,
        f: impl FnOnce(&mut ObjectWrite<'_>, &mut Collection) -> Result<T>,
    ) -> Result<T> {
        let Some(of) = self.collection_of(place)? else { return self.with_objects(f) };
        let current = std::mem::replace(&mut self.collection, of);
        let result = self.with_objects(f);
        self.collection = current;
        result
    }

    /// Writes true free-space classes for pages that placement keeps to itself.
    pub(super) fn flush_placements(&mut self) -> Result<()> {
        let names: Vec<String> = {
            let begun = self.begin()?;
            let catalog = begun.root.catalog;
            let all = catalog.iter(&begun.tx, std::ops::Bound::Unbounded);
            let name = |e: Result<(Vec<u8>, _)>| e.map(|(k, _)| String::from_utf8_lossy(&k).into());
            all.map(name).collect::<Result<_>>()?
        };
        for name in names {
            self.collection(&name)?;
            let Some(c) = self.current()? else { continue };
            let known = self.begin()?.cursors.placements.contains_key(&c.number);
            if known {
                self.with_objects(|o, _| o.heap.flush(o.tx, o.placement))?;
            }
        }
        Ok(())
    }

    /// Commits; `None` where the transaction never touched a page. `awaited`: the caller will
    /// wait until it is durable.
    pub(super) fn commit(mut self, awaited: bool) -> Result<Option<Lsn>> {
        if self.failed {
            return Err(Error::Invalid("the transaction failed; nothing was changed".into()));
        }
        let Some(begun) = self.begun.take() else { return Ok(None) };
        let Begun { mut tx, root, collections, cursors, .. } = *begun;
        if tx.is_unchanged() {
            return Ok(None);
        }
        for (name, c) in collections.iter() {
            c.store(name, tx.page_mut(c.page, PageKind::Collection)?)?;
        }
        let bytes = tx.page_mut(self.inner.root, PageKind::Root)?;
        root_page::set_catalog(bytes, root.catalog.root);
        root_page::set_handles(bytes, root.handles.map.encode());
        root_page::set_next_collection(bytes, root.next_collection);
        let inner = self.inner.clone();
        let work = &mut CommitHooks { inner: &inner, awaited };
        let lsn = tx.commit_then(work, || *inner.cursors.lock() = cursors)?;
        Ok(Some(lsn))
    }
}
