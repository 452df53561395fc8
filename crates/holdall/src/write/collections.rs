//! Collections of a transaction: which one calls go to, making one, dropping one.
//!
//! Owns: [`CollectionMut`].

use super::{Begun, ObjectsMut, WriteTx};
use crate::engine::catalog::{Collection, DEFAULT_COLLECTION, page_of};
use crate::heap::HeapFile;
use crate::object::{ObjectLocation, PreviousBody, Record};
use crate::space::Class;
use holdall_core::heap_record::divided::{Part, part};
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, PageRead, PageWrite, Result};
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
        let result = self.tx.current_or_new();
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
        if name.is_empty() || name.len() > MOST_NAME {
            let text = format!("a collection's name has 1 to {MOST_NAME} bytes");
            return Err(Error::Invalid(text));
        }
        let slot = self.opened.slot(name);
        let outer = std::mem::replace(&mut self.current, slot);
        Ok(CollectionMut { tx: self, outer })
    }

    /// Drops a collection with all its objects; returns whether it was there. Their bytes are
    /// not read. Cost: the collection's heap pages, inner nodes of its names and the trees of
    /// its large objects read, a handle page changed for some hundred objects.
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
    /// [`Error::Invalid`] for the default collection, which is always there;
    /// [`Error::TooLarge`], at the commit, if its objects are too many for one transaction:
    /// remove some of them before; [`Error::Corrupt`], [`Error::Io`].
    pub fn drop_collection(&mut self, name: &str) -> Result<bool> {
        if name == DEFAULT_COLLECTION {
            let text = "the default collection cannot be dropped; remove its objects";
            return Err(Error::Invalid(text.into()));
        }
        let slot = self.opened.slot(name);
        let Some(collection) = self.collection_in(slot)? else { return Ok(false) };
        let result = self.drop_pages_of(slot, collection);
        self.fail_with(result)?;
        Ok(true)
    }
}

impl ObjectsMut {
    fn drop_pages_of(&mut self, slot: usize, mut collection: Collection) -> Result<()> {
        self.begin()?.tx.set_class(Class::Shrink);
        let current = std::mem::replace(&mut self.current, slot);
        let result = (0..collection.heap.map().len())
            .try_for_each(|index| self.drop_objects_in(&collection, index));
        self.current = current;
        result?;
        let name = self.opened.name(slot).to_owned();
        self.opened.set(slot, None);
        let Begun { tx, root, cursors, .. } = self.begin()?;
        collection.names.clear(tx)?;
        collection.heap.drop_pages(tx, u32::MAX)?;
        tx.free_page(collection.page)?;
        root.catalog.remove(tx, name.as_bytes())?;
        cursors.forget(collection.number);
        tx.set_class(Class::Pages);
        Ok(())
    }

    /// Gives up the objects whose records lie in one heap page; the page itself stays as it is.
    fn drop_objects_in(&mut self, collection: &Collection, index: u32) -> Result<()> {
        let records = collection.heap.page_records(&self.begin()?.tx, index)?;
        for (loc, found) in records {
            if part(&found)?.1 == Part::Continuation {
                continue;
            }
            let record = HeapFile::whole(&self.begin()?.tx, loc)?;
            let record = Record::parse(&record)?;
            let (oid, old) = (record.oid, PreviousBody::from_record(&record)?);
            self.with_objects_of(|objects, _| objects.give_up(oid, &old))?;
        }
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
        if let Some(c) = self.opened.get(slot) {
            return Ok(Some(*c));
        }
        let Some(Begun { tx, root, .. }) = self.begun.as_deref() else { return Ok(None) };
        let Some(page) = root.find(tx, self.opened.name(slot))? else { return Ok(None) };
        let (collection, next) = (Collection::load(tx, page)?, root.next_collection);
        if collection.number >= next {
            // The next one made would get its number, and its pages.
            let number = collection.number;
            let text = format!("is collection {number}, the root names {next} as the next");
            return Err(Error::page(page, text));
        }
        self.opened.set(slot, Some(collection));
        Ok(Some(collection))
    }

    /// Makes the collection that calls go to, if it is missing.
    pub(crate) fn current_or_new(&mut self) -> Result<()> {
        if self.current()?.is_some() {
            return Ok(());
        }
        let Some(Begun { tx, root, .. }) = self.begun.as_deref_mut() else { return Ok(()) };
        let number = root.next_collection;
        root.next_collection = number
            .checked_add(1)
            .ok_or_else(|| Error::Invalid("no number is left for another collection".into()))?;
        let page = tx.new_page(PageKind::Collection, u64::from(number), None)?;
        let collection = Collection::load(tx, page)?;
        let name = self.opened.name(self.current).as_bytes();
        root.catalog.insert(tx, 0, name, &page.0.to_le_bytes())?;
        self.opened.set(self.current, Some(collection));
        Ok(())
    }

    /// The slot of the collection that an object belongs to, which its OID does not tell.
    pub(crate) fn slot_of(&mut self, place: ObjectLocation) -> Result<usize> {
        if self.opened.get(self.current).is_none() {
            self.current()?;
        }
        let current = self.opened.get(self.current).map(|c| u64::from(c.number));
        let begun = self.begin()?;
        let owner =
            begun.tx.with_page(place.page(), PageKind::Heap, |page| Ok(page::owner(page)))?;
        if current == Some(owner) {
            return Ok(self.current);
        }
        for (name, no) in self.catalog()? {
            let pages = &self.begin()?.tx;
            if pages.with_page(no, PageKind::Collection, |page| Ok(page::owner(page)))? == owner {
                return Ok(self.opened.slot(&name));
            }
        }
        Err(Error::page(place.page(), format!("belongs to no collection ({owner})")))
    }

    /// All collections and their pages.
    pub(super) fn catalog(&mut self) -> Result<Vec<(String, holdall_core::PageNo)>> {
        let begun = self.begin()?;
        let all = begun.root.catalog.iter(&begun.tx, Bound::Unbounded);
        let entry = |entry: Result<(Vec<u8>, _)>| {
            let (name, value) = entry?;
            Ok((String::from_utf8_lossy(&name).into_owned(), page_of(&value)?))
        };
        all.map(entry).collect()
    }
}
