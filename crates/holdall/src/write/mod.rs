//! Write transactions.
//!
//! Owns: [`ObjectsMut`]. The writer's lock is taken at the first touch of an
//! existing page and held to the commit; streaming large data needs none (rule 10).

mod border;
mod bring;
mod collections;
mod copy;
mod drops;
mod edit;
mod heads;
mod hints;
mod lookup;
mod lower;
mod many;
mod object_mut;
mod opened;
mod pending;
mod placements;
mod put;
mod rearrange;
mod sums;
mod tx;
mod writer;

pub(crate) use bring::{Brought, stager};
pub use collections::CollectionMut;
pub(crate) use drops::{empty_all_dropped, empty_dropped, has_dropped};
pub use object_mut::ObjectMut;
pub(crate) use placements::forget_placements;
pub use put::PutOptions;
pub(crate) use rearrange::{HeapFiles, MOST_IN_VAIN, MOVE_BYTES, compact};
pub use tx::{Durability, WriteOptions, WriteTx};
pub use writer::{ObjectWriter, StagedObject, Target};

use crate::engine::Inner;
use crate::engine::catalog::{Collection, Root, large, oid_of};
use crate::engine::cursors::TxCursors;
use crate::engine::key::Key;
use crate::names::{AppendCursor, InsertPosition};
use crate::object::{
    self, Attributes, Data, Head, ObjectBody, ObjectLocation, ObjectWrite, PreviousBody, Record,
    StoredHints,
};
use crate::space::{Class, SpaceTx, Stager};
use crate::txn::Waiting;
use holdall_core::collection_entry::{ENTRIES_OWNER, NumberKey};
use holdall_core::heap_page::max_record;
use holdall_core::page::PageKind;
use holdall_core::{Error, Lsn, Oid, PageWrite, Result};
use opened::Opened;
use std::fmt::Debug;
use std::sync::Arc;

/// The part of a transaction that exists once it holds the writer's lock.
#[derive(Debug)]
struct Begun {
    tx: SpaceTx,
    root: Root,
    cursors: TxCursors,
    /// Where names in ascending order go; only while names are but added.
    tail: AppendCursor,
    /// The owner of the tree that `tail` is of.
    tail_of: u64,
    /// Where records are put together.
    record: Vec<u8>,
}

/// The objects of one collection in a transaction: what [`WriteTx`] and [`CollectionMut`] lead to.
///
/// A call that fails with [`Error::NotFound`], [`Error::Dangling`], [`Error::Exists`],
/// [`Error::Conflict`], [`Error::Range`] or [`Error::Invalid`] was refused: nothing has changed,
/// and the transaction goes on, unless the call says otherwise. After any other error it can only
/// be given up, and every later call says so.
#[derive(Debug)]
pub struct ObjectsMut {
    inner: Arc<Inner>,
    begun: Option<Box<Begun>>,
    opened: Opened,
    /// The slot in `opened` of the collection that calls go to.
    current: usize,
    durability: Durability,
    /// When it began, in milliseconds since 1970 UTC: the time of all that it changes.
    time: u64,
    failed: bool,
    /// With [`Options::debug_sums`](crate::Options::debug_sums).
    sums: Option<Box<sums::Noted>>,
    /// Behind `begun`: closing the store waits for the writer's lock.
    store: Option<Arc<dyn Debug + Send + Sync>>,
}

impl ObjectsMut {
    /// Begins a transaction that keeps `store` open, if it is given.
    fn new(inner: &Arc<Inner>, store: Option<Arc<dyn Debug + Send + Sync>>) -> Result<Self> {
        inner.check_writable()?;
        inner.flush_overdue()?;
        Ok(Self {
            inner: inner.clone(),
            begun: None,
            opened: Opened::default(),
            current: 0,
            durability: Durability::Immediate,
            time: inner.options.tuning.now(),
            failed: false,
            sums: inner.sums.as_ref().map(|_| Box::default()),
            store,
        })
    }

    #[inline]
    fn begin(&mut self) -> Result<&mut Begun> {
        if self.failed || self.begun.is_none() {
            self.start(&Waiting::default())?;
        }
        if let Some(begun) = &self.begun {
            begun.tx.run_here();
        }
        self.begun.as_deref_mut().ok_or_else(|| Error::Invalid("no transaction".into()))
    }

    /// Takes the writer's lock, if the transaction has not got it and can go on.
    #[cold]
    fn start(&mut self, waiting: &Waiting) -> Result<()> {
        if self.failed {
            return Err(Error::Invalid("the transaction failed earlier; start a new one".into()));
        }
        self.forget_some_placements(waiting);
        self.inner.bring_home_if_short()?;
        self.start_now(waiting)
    }

    fn forget_some_placements(&self, waiting: &Waiting) {
        let most = self.inner.options.tuning.most_placements;
        if self.begun.is_none() && self.inner.cursors.lock().len() > most {
            // Only hints; what is wrong with the store shows when it is used.
            drop(forget_placements(&self.inner, most / 2, waiting));
        }
    }

    fn start_now(&mut self, waiting: &Waiting) -> Result<()> {
        if self.begun.is_some() {
            return Ok(());
        }
        let inner = &self.inner;
        let tx = SpaceTx::begin(&inner.pager, &inner.alloc, inner.root, waiting)?;
        let root = Root::load(&tx, inner.root)?;
        let cursors = inner.cursors.lock().begin();
        self.begun = Some(Box::new(Begun {
            tx,
            root,
            cursors,
            tail: AppendCursor::default(),
            tail_of: 0,
            record: Vec::new(),
        }));
        Ok(())
    }

    /// After an error nothing of the transaction can be kept: references were taken.
    pub(crate) fn fail_with<T>(&mut self, result: Result<T>) -> Result<T> {
        self.failed |= result.is_err();
        result
    }

    /// Runs `f` with what it needs to change objects of the current collection, then keeps
    /// the collection's new state.
    pub(crate) fn with_objects<T>(
        &mut self,
        f: impl FnOnce(&mut ObjectWrite<'_>, &mut Collection) -> Result<T>,
    ) -> Result<T> {
        let result = self.with_objects_of(f);
        let result = result.and_then(|value| self.grow_if_over().map(|()| value));
        // Pages may be half changed: nothing of this transaction may be committed then.
        self.fail_with(result)
    }

    fn with_objects_of<T>(
        &mut self,
        f: impl FnOnce(&mut ObjectWrite<'_>, &mut Collection) -> Result<T>,
    ) -> Result<T> {
        self.begin()?;
        if self.opened.get(self.current).is_none() {
            self.current_or_new(false)?;
        }
        let is_small = self.opened.get(self.current).is_some_and(|c| c.is_small());
        if is_small {
            self.shared_or_new()?;
            self.opened.lend(self.current);
        }
        let (epoch, time, current) = (self.inner.epoch, self.time, self.current);
        let missing = || Error::Invalid("the collection is not there".into());
        let Some(begun) = self.begun.as_deref_mut() else { return Err(missing()) };
        let Begun { tx, root, cursors, tail, record, .. } = begun;
        tail.forget();
        let collection = self.opened.get(current).ok_or_else(missing)?;
        let (cursor, placement) = cursors.of_file(collection.owner(), &self.inner.cursors);
        let (mut new, hints) = (collection.heap, collection.hints);
        let (handles, heap) = (&mut root.handles, &mut new);
        let mut objects = ObjectWrite {
            tx,
            handles,
            cursor,
            heap,
            placement,
            collection: collection.mark(),
            record_bytes: collection.record_bytes,
            hints,
            epoch,
            time,
            scratch: record,
        };
        let value = f(&mut objects, collection)?;
        collection.record_bytes = objects.record_bytes;
        collection.heap = new;
        if is_small {
            self.opened.take_back(current);
        }
        let collection = self.opened.get(current).ok_or_else(missing)?;
        if collection.logical_bytes > u64::MAX.into() {
            let too_many = *collection;
            too_many.logical_bytes(self.opened.name(current))?;
        }
        Ok(value)
    }

    /// As [`ObjectsMut::lookup`]; if there is none, the place for its name.
    fn find(&mut self, name: &[u8]) -> Result<std::result::Result<Oid, InsertPosition>> {
        self.begin()?;
        let Some(c) = self.current()? else { return Ok(Err(InsertPosition::NOWHERE)) };
        let begun = self.begin()?;
        if begun.tail_of != c.owner() {
            begun.tail.forget();
            begun.tail_of = c.owner();
        }
        match c.names.locate(&begun.tx, &c.key(name), &begun.tail)? {
            Ok(value) => oid_of(&value).map(Ok),
            Err(gap) => Ok(Err(gap)),
        }
    }

    /// An object's size in bytes.
    pub(crate) fn object_size(&mut self, oid: Oid) -> Result<u64> {
        let begun = self.begin()?;
        ObjectLocation::find(&begun.tx, &begun.root.handles, oid)?
            .with_record(&begun.tx, |r| r.size())
    }

    /// Finds an object, and gives `f` its record.
    pub(crate) fn place_of<T>(
        &mut self,
        oid: Oid,
        f: impl FnOnce(&Record<'_>) -> Result<T>,
    ) -> Result<(ObjectLocation, T)> {
        let begun = self.begin()?;
        let place = ObjectLocation::find(&begun.tx, &begun.root.handles, oid)?;
        begun.root.check_alive(&begun.tx, oid, place.page())?;
        Ok((place, place.with_record(&begun.tx, f)?))
    }

    /// Finds an object's bytes as this transaction sees them until its next change.
    pub(crate) fn open_whole(&mut self, oid: Oid) -> Result<ObjectBody> {
        let begun = self.begin()?;
        object::open(&begun.tx, &begun.root.handles, oid)
    }

    /// Reads bytes of an object that [`ObjectsMut::open_whole`] found.
    pub(crate) fn read_whole(
        &mut self,
        whole: &ObjectBody,
        oid: Oid,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<()> {
        whole.read_at(&self.begin()?.tx, oid, offset, buf)
    }

    /// From here on the transaction can only be given up.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// Puts bytes that are all in memory: in a record if they fit one, else in segments.
    fn put_whole(
        &mut self,
        head: &Head<'_>,
        bytes: &[u8],
        near: Option<Oid>,
        hints: Option<StoredHints>,
        expected: Option<u64>,
    ) -> Result<Oid> {
        let data = self.stage(head, bytes, expected)?;
        let oid = self.install(head, data, bytes.len() as u64, near, hints)?;
        self.note_bytes(oid, bytes);
        Ok(oid)
    }

    /// `expected`: bytes that the object will have once it was appended to.
    fn stage<'b>(&self, head: &Head, bytes: &'b [u8], expected: Option<u64>) -> Result<Data<'b>> {
        if head.record_len(bytes.len()) <= max_record(self.page_size()) {
            return Ok(Data::Small(bytes));
        }
        self.inner.start_log_early()?;
        let len = bytes.len() as u64;
        let mut stager = self.stager(Some(expected.map_or(len, |all| all.max(len))));
        stager.write(bytes)?;
        let most = object::max_tail(head, self.page_size(), 0, bytes.len() as u64);
        stager.finish(most).map(Data::Staged)
    }

    /// Replaces all of an object's bytes; OID, name, attributes (but those that begin with `#`)
    /// and hints stay. Cost: the new
    /// bytes and the object's record and nodes; its old bytes are not read.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Dangling`], [`Error::Full`], [`Error::Io`].
    pub fn set_bytes<'k>(&mut self, key: impl Into<Key<'k>>, bytes: &[u8]) -> Result<()> {
        let oid = self.resolve(&key.into())?;
        let (place, (old, head)) =
            self.place_of(oid, |r| Ok((PreviousBody::from_record(r)?, r.head_of_new_bytes()?)))?;
        let head = Head { time: self.time, ..head };
        let data = self.stage(&head, bytes, None)?;
        self.with_placed(place, |objects, c| {
            let before = objects.replace_at(place, &old, &head, data, None)?;
            c.resize(before, bytes.len() as u64);
            Ok(())
        })?;
        self.note_bytes(oid, bytes);
        Ok(())
    }

    fn stager(&self, expected: Option<u64>) -> Stager {
        Stager::new(&self.inner.alloc, &self.inner.pager, expected)
    }

    pub(crate) fn page_size(&self) -> usize {
        self.inner.layout.page_size()
    }

    /// The head of a new object, or of new bytes for an old one.
    pub(crate) fn head_for<'h>(
        &self,
        target: &'h Target,
        attributes: &Attributes,
    ) -> Result<Head<'h>> {
        writer::head_for(target, attributes, self.time, self.page_size())
    }

    /// Makes data an object: a new one, or the new bytes of the one that has the name.
    pub(crate) fn install(
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
        let near = match self.make_fit_for(head.name.is_none())? {
            Some(small) if near.is_none() => self.last_of(&small)?,
            _ => near,
        };
        // Changes of objects have it forgotten, since they may be of names too. This one is not.
        let begun = self.begin()?;
        let (mut tail, mut tail_of) = (std::mem::take(&mut begun.tail), begun.tail_of);
        let unique = self.inner.take_unique()?;
        let oid = self.with_objects(|objects, c| {
            let made = objects.create(unique, head, data, near, hints)?;
            match (&head.name, found) {
                (Some(name), Some(Err(gap))) if !c.is_small() => {
                    // Creating the object has not touched the names.
                    let value = made.encode();
                    c.names.insert_at(objects.tx, c.number, gap, name, &value, &mut tail)?;
                }
                (Some(name), _) => {
                    tail.forget();
                    c.names.insert(objects.tx, c.owner(), &c.key(name), &made.encode())?;
                }
                _ => {}
            }
            if head.name.is_some() {
                tail_of = c.owner();
            }
            c.add(1, head.name.is_some());
            c.resize(0, size);
            Ok(made.oid)
        })?;
        let begun = self.begin()?;
        (begun.tail, begun.tail_of) = (tail, tail_of);
        Ok(oid)
    }

    /// Removes an object and its name; returns whether there was one: `false` if no object
    /// has the name, which leaves the transaction as it was. Its data is not read.
    ///
    /// ```
    /// # use holdall::Store;
    /// # let store = Store::in_memory()?;
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
        let (place, (old, name)) = self
            .place_of(oid, |r| Ok((PreviousBody::from_record(r)?, r.name.map(<[u8]>::to_vec))))?;
        self.with_placed(place, |objects, c| {
            objects.tx.set_class(Class::Shrink);
            let size = objects.delete(place, &old)?;
            if let Some(name) = &name {
                c.names.remove(objects.tx, &c.key(name))?;
            }
            c.take(name.is_some());
            c.resize(size, 0);
            objects.tx.set_class(Class::Pages);
            Ok(true)
        })
    }

    /// As [`ObjectsMut::with_objects`], for the collection that `oid` belongs to; the current
    /// one stays.
    pub(crate) fn with_object<T>(
        &mut self,
        oid: Oid,
        f: impl FnOnce(&mut ObjectWrite<'_>, &mut Collection) -> Result<T>,
    ) -> Result<T> {
        let begun = self.begin()?;
        let place = ObjectLocation::find(&begun.tx, &begun.root.handles, oid)?;
        self.with_placed(place, f)
    }

    /// As [`ObjectsMut::with_object`], for an object found before.
    pub(crate) fn with_placed<T>(
        &mut self,
        place: ObjectLocation,
        f: impl FnOnce(&mut ObjectWrite<'_>, &mut Collection) -> Result<T>,
    ) -> Result<T> {
        let own = self.slot_of(place)?;
        let current = std::mem::replace(&mut self.current, own);
        let result = self.with_objects(f);
        self.current = current;
        result
    }

    /// Installs all changes; `None` if the transaction never touched a page. `immediate`: the
    /// caller will wait until it is durable.
    fn install_all(mut self, immediate: bool) -> Result<Option<Lsn>> {
        if self.failed {
            return Err(Error::Invalid("the transaction failed; nothing was changed".into()));
        }
        let sums = if self.sums.is_some() { self.take_sums() } else { Vec::new() };
        let Some(begun) = self.begun.take() else { return Ok(None) };
        begun.tx.run_here();
        let Begun { mut tx, mut root, cursors, .. } = *begun;
        if tx.is_unchanged() {
            return Ok(None);
        }
        if immediate {
            // Later there is no way back.
            self.inner.check_names()?;
        }
        tx.wind_up();
        for (name, c, entry) in self.opened.iter() {
            // One that was only looked at takes no part of the limit of changed pages.
            if !c.is_small() && large(&tx, c.number, c.page)? != *c {
                c.store(name, tx.page_mut(c.page, PageKind::Collection)?)?;
            }
            let new = c.entry(name)?;
            if entry.is_some_and(|entry| entry != new) {
                let key = NumberKey::new(c.number).with(name.as_bytes());
                root.entries.insert(&mut tx, ENTRIES_OWNER, &key, &new.encode())?;
            }
        }
        root.store(tx.page_mut(self.inner.root, PageKind::Root)?);
        let (lsn, installed) = tx.commit()?;
        if let Some(known) = self.inner.sums.as_ref().filter(|_| !sums.is_empty()) {
            // While nobody else commits: entries come in the order of commits.
            known.add(lsn, &sums);
        }
        self.inner.cursors.lock().keep(cursors);
        drop(installed);
        if !root.drops.root.is_none() {
            self.inner.ask_to_empty();
        }
        Ok(Some(lsn))
    }
}
