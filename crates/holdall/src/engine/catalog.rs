//! The root and the collections of a state, decoded from their pages.
//!
//! Owns: nothing; decodes the root page, catalog entries and collection pages for reads and
//! transactions. A *large* collection has a page, a tree of names and a heap file of its own. All
//! *small* ones share these; their names stand behind the collection's number there.

use crate::handle::HandleTable;
use crate::heap::HeapFile;
use crate::names::Names;
use crate::object::StoredHints;
use crate::page_map::PageMap;
use holdall_core::collection_entry::{Counts, END, Entry, NumberKey, SMALL_OWNER};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, NameValue, Oid, PageNo, PageRead, Result, collection_page, root_page};
use std::borrow::Cow;
use std::ops::Bound;

/// The collection that calls go to unless they name one.
pub const DEFAULT_COLLECTION: &str = "default";

/// A collection, decoded from its page, or from its entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collection {
    pub(crate) number: u64,
    /// [`PageNo::NONE`] for a small one.
    pub(crate) page: PageNo,
    /// Of a small one what all of them share.
    pub(crate) names: Names,
    pub(crate) heap: HeapFile,
    pub(crate) objects: u64,
    /// How many of them have no name; a small one has none of these.
    pub(crate) unnamed: u64,
    /// Wider than its place in the page: [`Collection::logical_bytes`] is asked after each change.
    pub(crate) logical_bytes: u128,
    /// Of a small one.
    pub(crate) record_bytes: u64,
    pub(crate) hints: StoredHints,
}

impl Collection {
    pub(crate) fn load<R: PageRead + ?Sized>(pages: &R, no: PageNo) -> Result<Self> {
        pages.with_page(no, PageKind::Collection, |bytes| Self::decode(bytes, no))
    }

    fn decode(bytes: &[u8], no: PageNo) -> Result<Self> {
        let number = page::owner(bytes);
        if number == 0 || number >= END && number != SMALL_OWNER {
            return Err(Error::page(no, format!("impossible collection number {number}")));
        }
        Ok(Self {
            number,
            page: no,
            names: Names { root: collection_page::names(bytes) },
            heap: HeapFile::decode(&collection_page::heap(bytes), number)?,
            objects: collection_page::objects(bytes),
            unnamed: collection_page::unnamed(bytes),
            logical_bytes: collection_page::logical_bytes(bytes).into(),
            record_bytes: 0,
            hints: StoredHints {
                threshold: collection_page::threshold(bytes),
                flags: collection_page::flags(bytes),
            },
        })
    }

    /// A small collection, whose names and records lie in these trees.
    pub(crate) fn small(number: u64, counts: Counts, (names, heap): (Names, HeapFile)) -> Self {
        Self {
            number,
            page: PageNo::NONE,
            names,
            heap,
            objects: counts.objects,
            unnamed: 0,
            logical_bytes: counts.logical_bytes.into(),
            record_bytes: counts.record_bytes,
            hints: StoredHints { threshold: counts.threshold, flags: counts.flags },
        }
    }

    /// Whether its names and records lie with those of others.
    #[inline]
    pub(crate) fn is_small(&self) -> bool {
        self.page.is_none()
    }

    /// What stands before its names in their tree.
    pub(crate) fn prefix(&self) -> Option<NumberKey> {
        self.is_small().then(|| NumberKey::new(self.number))
    }

    /// The key of a name in the tree of names.
    #[inline]
    pub(crate) fn key<'n>(&self, name: &'n [u8]) -> Cow<'n, [u8]> {
        match self.prefix() {
            None => Cow::Borrowed(name),
            Some(number) => Cow::Owned(number.with(name)),
        }
    }

    /// The owner of the pages that it lies in.
    #[inline]
    pub(crate) fn owner(&self) -> u64 {
        if self.is_small() { SMALL_OWNER } else { self.number }
    }

    /// Its number as its records have it.
    #[inline]
    pub(crate) fn mark(&self) -> u64 {
        if self.is_small() { self.number } else { 0 }
    }

    /// Its catalog entry.
    ///
    /// # Errors
    /// As [`Collection::logical_bytes`].
    pub(crate) fn entry(&self, name: &str) -> Result<Entry> {
        if !self.is_small() {
            return Ok(Entry::Large(self.page));
        }
        Ok(Entry::Small(Counts {
            objects: self.objects,
            logical_bytes: self.logical_bytes(name)?,
            record_bytes: self.record_bytes,
            threshold: self.hints.threshold,
            flags: self.hints.flags,
        }))
    }

    /// How many names it has.
    pub(crate) fn named(&self) -> u64 {
        self.objects.saturating_sub(self.unnamed)
    }

    /// Counts new objects.
    pub(crate) fn add(&mut self, objects: u64, named: bool) {
        self.objects = self.objects.saturating_add(objects);
        self.unnamed = self.unnamed.saturating_add(if named { 0 } else { objects });
    }

    /// Counts an object less.
    pub(crate) fn take(&mut self, named: bool) {
        self.objects = self.objects.saturating_sub(1);
        self.unnamed = self.unnamed.saturating_sub(u64::from(!named));
    }

    /// Notes that an object of `before` bytes has `after` now.
    pub(crate) fn resize(&mut self, before: u64, after: u64) {
        self.logical_bytes = self.logical_bytes.saturating_sub(before.into()) + u128::from(after);
    }

    /// The sum of its objects' sizes. A count cut off at the most its place can hold would
    /// stay wrong for ever.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is over [`u64::MAX`].
    pub(crate) fn logical_bytes(&self, name: &str) -> Result<u64> {
        u64::try_from(self.logical_bytes).map_err(|_| {
            let (sum, most) = (self.logical_bytes, u64::MAX);
            Error::Invalid(format!(
                "the objects of collection {name:?} would have {sum} bytes in all, at most {most} \
                 are possible; put some into another collection"
            ))
        })
    }

    /// Writes the large collection `name` back into its page.
    ///
    /// # Errors
    /// As [`Collection::logical_bytes`].
    pub(crate) fn store(&self, name: &str, bytes: &mut [u8]) -> Result<()> {
        collection_page::set_names(bytes, self.names.root);
        collection_page::set_heap(bytes, self.heap.encode());
        collection_page::set_objects(bytes, self.objects);
        collection_page::set_unnamed(bytes, self.unnamed);
        collection_page::set_logical_bytes(bytes, self.logical_bytes(name)?);
        collection_page::set_threshold(bytes, self.hints.threshold);
        collection_page::set_flags(bytes, self.hints.flags);
        Ok(())
    }
}

/// What the catalog says of a collection.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(crate) entry: Entry,
}

impl Known {
    /// From a key and a value of the entries.
    pub(crate) fn decode(key: &[u8], value: &[u8]) -> Result<Self> {
        let (number, name) = NumberKey::split(key)?;
        let name = String::from_utf8_lossy(name).into_owned();
        Ok(Self { number, name, entry: Entry::decode(value)? })
    }
}

/// The root page, decoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    /// Name to number.
    pub(crate) catalog: Names,
    /// Number and name to entry.
    pub(crate) entries: Names,
    /// The collection page of what small collections share, once there is one.
    pub(crate) small: PageNo,
    /// Number of a dropped collection to its page.
    pub(crate) drops: Names,
    pub(crate) handles: HandleTable,
    pub(crate) next_collection: u64,
}

impl Root {
    pub(crate) fn load<R: PageRead + ?Sized>(pages: &R, no: PageNo) -> Result<Self> {
        pages.with_page(no, PageKind::Root, Self::decode)
    }

    /// Reads a root page.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        Ok(Self {
            catalog: Names { root: root_page::catalog(bytes) },
            entries: Names { root: root_page::entries(bytes) },
            small: root_page::small(bytes),
            drops: Names { root: root_page::drops(bytes) },
            handles: HandleTable { map: PageMap::decode(&root_page::handles(bytes))? },
            next_collection: root_page::next_collection(bytes),
        })
    }

    /// Writes all of it but the handles' page itself into the root page.
    pub(crate) fn store(&self, bytes: &mut [u8]) {
        root_page::set_catalog(bytes, self.catalog.root);
        root_page::set_entries(bytes, self.entries.root);
        root_page::set_small(bytes, self.small);
        root_page::set_drops(bytes, self.drops.root);
        root_page::set_handles(bytes, self.handles.map.encode());
        root_page::set_next_collection(bytes, self.next_collection);
    }

    /// Number and entry of the collection of this name.
    pub(crate) fn find<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        name: &str,
    ) -> Result<Option<(u64, Entry)>> {
        let Some(value) = self.catalog.get(pages, name.as_bytes())? else { return Ok(None) };
        let (number, rest) = NumberKey::split(&value)?;
        let key = NumberKey::new(number).with(name.as_bytes());
        let wrong = |what| Error::corrupt("catalog", format!("collection {name:?} {what}"));
        if !rest.is_empty() {
            return Err(wrong("has more than a number"));
        }
        if number == 0 || number >= self.next_collection {
            // The next one made would get its number, and its pages.
            let next = self.next_collection;
            return Err(wrong(&format!("has number {number}, the root names {next} as the next")));
        }
        let entry = self.entries.get(pages, &key)?.ok_or_else(|| wrong("has no entry"))?;
        Ok(Some((number, Entry::decode(&entry)?)))
    }

    /// The collection of this name.
    pub(crate) fn collection<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        name: &str,
    ) -> Result<Option<Collection>> {
        match self.find(pages, name)? {
            None => Ok(None),
            Some((number, Entry::Large(page))) => large(pages, number, page).map(Some),
            Some((number, Entry::Small(counts))) => {
                let shared = self.shared(pages)?;
                Ok(Some(Collection::small(number, counts, shared)))
            }
        }
    }

    /// The names and records of small collections.
    pub(crate) fn shared<R: PageRead + ?Sized>(&self, pages: &R) -> Result<(Names, HeapFile)> {
        if self.small.is_none() {
            return Ok((Names::default(), HeapFile::new(SMALL_OWNER)));
        }
        let shared = large(pages, SMALL_OWNER, self.small)?;
        Ok((shared.names, shared.heap))
    }

    /// Refuses an object whose record lies in `page`, if its collection was dropped and is not yet
    /// emptied. Cost: nothing if none is; else a look at that page and at the drop list.
    ///
    /// # Errors
    /// [`Error::Dangling`]; [`Error::Corrupt`], [`Error::Io`].
    pub(crate) fn check_alive<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        oid: Oid,
        page: PageNo,
    ) -> Result<()> {
        if self.drops.root.is_none() || mutation::is(Mutation::R52Oid) {
            return Ok(());
        }
        let owner = pages.with_page(page, PageKind::Heap, |bytes| Ok(page::owner(bytes)))?;
        match self.drops.get(pages, &NumberKey::new(owner))? {
            Some(_) => Err(Error::Dangling(oid)),
            None => Ok(()),
        }
    }

    /// What the catalog says of the first collections from `number` on, at most `most`.
    pub(crate) fn known_from<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        number: u64,
        most: usize,
    ) -> Result<Vec<Known>> {
        let from = NumberKey::new(number);
        let all = self.entries.iter(pages, Bound::Included(&from)).take(most);
        all.map(|entry| entry.and_then(|(key, value)| Known::decode(&key, &value))).collect()
    }

    /// What the catalog says of the collection of this number.
    pub(crate) fn known<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        number: u64,
    ) -> Result<Option<Known>> {
        let first = self.known_from(pages, number, 1)?;
        Ok(first.into_iter().find(|known| known.number == number))
    }
}

/// The large collection of this number, from its page.
pub(crate) fn large<R: PageRead + ?Sized>(
    pages: &R,
    number: u64,
    page: PageNo,
) -> Result<Collection> {
    let found = Collection::load(pages, page)?;
    if found.number != number {
        let text = format!("is collection {}, not {number}", found.number);
        return Err(Error::page(page, text));
    }
    Ok(found)
}

/// The page that an entry of the drop list names.
pub(crate) fn page_of(value: &[u8]) -> Result<PageNo> {
    let bytes: [u8; 8] =
        value.try_into().map_err(|_| Error::corrupt("drop list", "an entry is no page number"))?;
    Ok(PageNo(u64::from_le_bytes(bytes)))
}

/// The object a names entry names.
pub(crate) fn oid_of(value: &[u8]) -> Result<Oid> {
    NameValue::decode(value).map(|value| value.oid)
}
