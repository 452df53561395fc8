//! Collections of a transaction: which one calls go to, making one, dropping one.
//!
//! Owns: [`CollectionMut`].

use super::opened::{DROPPED, SHARED};
use super::{Begun, ObjectsMut, WriteTx};
use crate::engine::catalog::{Collection, DEFAULT_COLLECTION, large, oid_of};
use crate::object::{ObjectLocation, PreviousBody};
use crate::space::Class;
use holdall_core::collection_entry::{
    Counts, DROPS_OWNER, END, ENTRIES_OWNER, NumberKey, SMALL_OWNER,
};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, Oid, PageRead, PageWrite, Result};
use std::ops::{Bound, Deref, DerefMut};

/// Longest name of a collection in bytes.
const MOST_NAME: usize = 255;

/// A collection in a transaction, from [`WriteTx::collection`]: calls on objects, which are those
/// of [`ObjectsMut`], go to it.
#[derive(Debug)]
#[must_use = "calls go to the collection through this value only"]
pub struct CollectionMut<'a> {
    tx: &'a mut ObjectsMut,
    /// The slot of the collection that calls went to before.
    outer: usize,
}

impl Deref for CollectionMut<'_> {
    type Target = ObjectsMut;

    fn deref(&self) -> &ObjectsMut {
        self.tx
    }
}

impl DerefMut for CollectionMut<'_> {
    fn deref_mut(&mut self) -> &mut ObjectsMut {
        self.tx
    }
}

impl Drop for CollectionMut<'_> {
    fn drop(&mut self) {
        self.tx.current = self.outer;
    }
}

impl CollectionMut<'_> {
    /// Makes the collection, if it is missing; it may stay empty.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`].
    pub fn create_collection(&mut self) -> Result<()> {
        let result = self.tx.current_or_new(false);
        self.tx.fail_with(result)
    }
}

impl WriteTx {
    /// Collection `name`, which is made with the first object that is put there.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| {
    ///     tx.collection("thumbnails")?.put("a.jpg", b"small")?;
    ///     tx.put("a.jpg", b"large")
    /// })?;
    /// let reader = store.read()?;
    /// assert_eq!(reader.get("a.jpg")?, Some(b"large".into()));
    /// assert_eq!(reader.collection("thumbnails")?.get("a.jpg")?, Some(b"small".into()));
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty name or one over 255 bytes.
    pub fn collection(&mut self, name: &str) -> Result<CollectionMut<'_>> {
        check_collection_name(name)?;
        let slot = self.opened.slot(name);
        let outer = std::mem::replace(&mut self.current, slot);
        Ok(CollectionMut { tx: self, outer })
    }

    /// Drops a collection with all its objects; returns whether it was there. From the commit on
    /// nobody sees them, by name or by OID, but snapshots of before. Their bytes are not read.
    ///
    /// Cost: of a small collection, which lies in pages with others, its objects. Of a large one
    /// only its entry: its pages become free afterwards, in transactions of a few pages that the
    /// store makes by itself, after a crash too, or before space runs out.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.collection("old")?.put("a", b"1"))?;
    /// assert!(store.write(|tx| tx.drop_collection("old"))?);
    /// assert!(!store.write(|tx| tx.drop_collection("old"))?);
    /// assert!(store.read()?.collection("old").is_err());
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for the default collection, which is always there; [`Error::Corrupt`],
    /// [`Error::Io`].
    pub fn drop_collection(&mut self, name: &str) -> Result<bool> {
        if name == DEFAULT_COLLECTION {
            let text = "the default collection cannot be dropped; remove its objects";
            return Err(Error::Invalid(text.into()));
        }
        let slot = self.opened.slot(name);
        let Some(collection) = self.collection_in(slot)? else { return Ok(false) };
        let result = self.drop_in(slot, collection);
        self.fail_with(result)?;
        Ok(true)
    }

    /// Gives a collection another name; its objects, their OIDs and its options stay. Cost: two
    /// entries.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.collection("draft")?.put("a", b"1"))?;
    /// store.write(|tx| tx.rename_collection("draft", "final"))?;
    /// assert_eq!(store.read()?.collection("final")?.get("a")?, Some(b"1".into()));
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NotFound`] if it is not there, [`Error::Exists`] if `to` is; [`Error::Invalid`]
    /// for the default collection, and as [`WriteTx::collection`].
    pub fn rename_collection(&mut self, from: &str, to: &str) -> Result<()> {
        check_collection_name(to)?;
        if from == DEFAULT_COLLECTION {
            let text = "the default collection cannot have another name";
            return Err(Error::Invalid(text.into()));
        }
        let (old, new) = (self.opened.slot(from), self.opened.slot(to));
        let Some(collection) = self.collection_in(old)? else {
            return Err(Error::NotFound(format!("collection {from:?}")));
        };
        if old == new {
            return Ok(());
        }
        if to == DEFAULT_COLLECTION || self.collection_in(new)?.is_some() {
            return Err(Error::Exists(format!("collection {to:?}")));
        }
        let result = self.forget_name(&collection, from).and_then(|()| {
            self.opened.set(old, None);
            self.enter(new, collection)
        });
        self.fail_with(result)
    }
}

impl ObjectsMut {
    fn drop_in(&mut self, slot: usize, collection: Collection) -> Result<()> {
        self.begin()?.tx.set_class(Class::Shrink);
        let name = self.opened.name(slot).to_owned();
        if collection.is_small() {
            self.remove_all(slot, &collection)?;
        } else {
            let Begun { tx, root, cursors, .. } = self.begin()?;
            collection.store(&name, tx.page_mut(collection.page, PageKind::Collection)?)?;
            let key = NumberKey::new(collection.number);
            if !mutation::is(Mutation::R53List) {
                root.drops.insert(tx, DROPS_OWNER, &key, &collection.page.0.to_le_bytes())?;
            }
            cursors.forget(collection.number);
        }
        self.opened.set(slot, None);
        self.forget_name(&collection, &name)?;
        let root = &mut self.begin()?.root;
        if mutation::is(Mutation::R54Numbers) && root.next_collection == collection.number + 1 {
            root.next_collection -= 1;
        }
        self.begin()?.tx.set_class(Class::Pages);
        Ok(())
    }

    /// Removes all objects of a small collection.
    fn remove_all(&mut self, slot: usize, collection: &Collection) -> Result<()> {
        let outer = std::mem::replace(&mut self.current, slot);
        let result = self.small_names(collection).and_then(|all| {
            all.iter().try_for_each(|(name, oid)| {
                self.with_objects_of(|objects, c| {
                    let place = ObjectLocation::find(&*objects.tx, objects.handles, *oid)?;
                    let old = place.with_record(&*objects.tx, PreviousBody::from_record)?;
                    objects.delete(place, &old)?;
                    c.names.remove(objects.tx, &c.key(name)).map(drop)
                })
            })
        });
        self.current = outer;
        result
    }

    /// Names and objects of a small collection.
    pub(super) fn small_names(&mut self, c: &Collection) -> Result<Vec<(Vec<u8>, Oid)>> {
        let number = NumberKey::new(c.number);
        let begun = self.begin()?;
        let mut all = Vec::new();
        for entry in c.names.iter(&begun.tx, Bound::Included(&number)) {
            let (mut key, value) = entry?;
            if !key.starts_with(&number) {
                break;
            }
            key.drain(..number.len());
            all.push((key, oid_of(&value)?));
        }
        Ok(all)
    }

    /// Takes a collection out of the catalog.
    fn forget_name(&mut self, collection: &Collection, name: &str) -> Result<()> {
        let Begun { tx, root, .. } = self.begin()?;
        let key = NumberKey::new(collection.number).with(name.as_bytes());
        root.catalog.remove(tx, name.as_bytes())?;
        root.entries.remove(tx, &key).map(drop)
    }

    /// Enters a collection into the catalog, by the name of its slot.
    fn enter(&mut self, slot: usize, collection: Collection) -> Result<()> {
        let name = self.opened.name(slot).to_owned();
        let entry = collection.entry(&name)?;
        let Begun { tx, root, .. } = self.begin()?;
        let number = NumberKey::new(collection.number);
        root.catalog.insert(tx, 0, name.as_bytes(), &number)?;
        let key = number.with(name.as_bytes());
        root.entries.insert(tx, ENTRIES_OWNER, &key, &entry.encode())?;
        self.opened.set(slot, Some(collection));
        self.opened.set_entry(slot, entry);
        Ok(())
    }

    /// The collection that calls go to, as this transaction sees it.
    #[inline]
    pub(crate) fn current(&mut self) -> Result<Option<Collection>> {
        self.collection_in(self.current)
    }

    /// The collection in `slot`, as this transaction sees it.
    pub(super) fn collection_in(&mut self, slot: usize) -> Result<Option<Collection>> {
        self.begin()?;
        if let Some(c) = self.opened.view(slot) {
            return Ok(Some(c));
        }
        let Some(Begun { tx, root, .. }) = self.begun.as_deref() else { return Ok(None) };
        if slot == SHARED {
            if !root.small.is_none() {
                self.opened.set(slot, Some(large(tx, SMALL_OWNER, root.small)?));
            }
            return Ok(self.opened.view(slot));
        }
        if slot == DROPPED {
            return Ok(None);
        }
        let name = self.opened.name(slot);
        let Some(found) = root.collection(tx, name)? else { return Ok(None) };
        let entry = found.entry(name)?;
        self.opened.set(slot, Some(found));
        self.opened.set_entry(slot, entry);
        Ok(self.opened.view(slot))
    }

    /// Makes the collection that calls go to, if it is missing: a small one, unless it is the
    /// default one or `nameless` objects are to come.
    pub(crate) fn current_or_new(&mut self, nameless: bool) -> Result<()> {
        if self.current()?.is_some() {
            return Ok(());
        }
        let Some(Begun { tx, root, .. }) = self.begun.as_deref_mut() else { return Ok(()) };
        let number = root.next_collection;
        if number >= END {
            return Err(Error::Invalid("no number is left for another collection".into()));
        }
        root.next_collection = number + 1;
        let collection = if nameless || self.current == 0 {
            let page = tx.new_page(PageKind::Collection, number, None)?;
            Collection::load(tx, page)?
        } else {
            Collection::small(number, Counts::default(), root.shared(tx)?)
        };
        self.enter(self.current, collection)
    }

    /// Makes what small collections share, if it is missing.
    pub(super) fn shared_or_new(&mut self) -> Result<()> {
        if self.collection_in(SHARED)?.is_some() {
            return Ok(());
        }
        let Some(Begun { tx, root, .. }) = self.begun.as_deref_mut() else { return Ok(()) };
        root.small = tx.new_page(PageKind::Collection, SMALL_OWNER, None)?;
        let shared = Collection::load(tx, root.small)?;
        self.opened.set(SHARED, Some(shared));
        Ok(())
    }

    /// The slot of the collection that an object belongs to, which its OID does not tell: the
    /// owner of its record's page does, or of a small collection the record.
    pub(crate) fn slot_of(&mut self, place: ObjectLocation) -> Result<usize> {
        let begun = self.begin()?;
        let page = place.page();
        let mut number = begun.tx.with_page(page, PageKind::Heap, |page| Ok(page::owner(page)))?;
        if number == SMALL_OWNER {
            number = place.with_record(&begun.tx, |record| Ok(record.collection))?;
        }
        if self.current()?.is_some_and(|c| c.number == number) {
            return Ok(self.current);
        }
        if let Some(slot) = self.slot_of_number(number)? {
            return Ok(slot);
        }
        let begun = self.begin()?;
        begun.root.check_alive(&begun.tx, place.oid(), page)?;
        Err(Error::page(page, format!("belongs to no collection ({number})")))
    }

    /// The slot of the collection of this number, or of the owner of a heap file; None if there is
    /// none.
    pub(super) fn slot_of_number(&mut self, number: u64) -> Result<Option<usize>> {
        let begun = self.begin()?;
        if number == SMALL_OWNER {
            return Ok(self.collection_in(SHARED)?.map(|_| SHARED));
        }
        let Some(known) = begun.root.known(&begun.tx, number)? else { return Ok(None) };
        let slot = self.opened.slot(&known.name);
        Ok(self.collection_in(slot)?.filter(|c| c.number == number).map(|_| slot))
    }
}

fn check_collection_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MOST_NAME {
        let text = format!("a collection's name has 1 to {MOST_NAME} bytes");
        return Err(Error::Invalid(text));
    }
    Ok(())
}
