//! Walking the catalog and each collection: its entry or its page, heap file and names.
//!
//! Owns: [`Records`], what the records of all collections say of handles.

use super::report::ProblemKind;
use super::walk_state::{RootView, Walk};
use crate::engine::catalog::{Collection, oid_of, page_of};
use crate::heap::HeapFile;
use crate::names::Names;
use holdall_core::collection_entry::{
    Counts, DROPS_OWNER, ENTRIES_OWNER, Entry, NumberKey, SMALL_OWNER,
};
use holdall_core::{PageNo, Result};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// A sum over a set of entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fingerprint {
    /// Entries.
    pub(super) count: u64,
    sum: u64,
}

impl Fingerprint {
    /// Adds an entry.
    pub(super) fn add(&mut self, entry: impl Hash) {
        let mut hasher = DefaultHasher::new();
        entry.hash(&mut hasher);
        self.count += 1;
        self.sum = self.sum.wrapping_add(hasher.finish());
    }
}

/// Objects, bytes of records and bytes of objects of small collections, summed so that equal sums
/// mean equal counts of each, but for a chance of 2^-64: each collection's have a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct SmallSums(u64, u64, u64);

impl SmallSums {
    /// Adds counts of a collection.
    pub(super) fn add(&mut self, number: u64, (objects, records, bytes): (u64, u64, u64)) {
        let mut hasher = DefaultHasher::new();
        number.hash(&mut hasher);
        let factor = hasher.finish() | 1;
        for (sum, n) in [(&mut self.0, objects), (&mut self.1, records), (&mut self.2, bytes)] {
            *sum = sum.wrapping_add(factor.wrapping_mul(n));
        }
    }
}

/// A collection whose page could be read.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) names: Names,
    pub(super) heap: HeapFile,
    /// It is what small collections share: names stand behind a number.
    pub(super) numbered: bool,
}

/// What stands for a name with what small collections share.
const SMALL: &str = "(small collections)";

/// What the records of the store say.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// OID and place of every record; of a divided one, of its first part.
    pub(super) placed: Fingerprint,
    /// OID and place of every continuation.
    pub(super) rests: Fingerprint,
    /// OID and place of the continuation that each divided record leads to.
    pub(super) links: Fingerprint,
    /// The collections, for a second look at each.
    pub(super) collections: Vec<Loaded>,
}

/// What the records of one collection add up to.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) named: Fingerprint,
    pub(super) objects: u64,
    /// Those without a name.
    pub(super) unnamed: u64,
    pub(super) bytes: u64,
    pub(super) small: SmallSums,
    /// Its records are to have their collection's number.
    pub(super) numbered: bool,
}

/// What the catalog says.
#[derive(Debug, Default)]
struct Catalog {
    /// Numbers and names, by name.
    by_name: Fingerprint,
    /// The same from the entries.
    by_number: Fingerprint,
    last: u64,
    small: SmallSums,
    large: Vec<(String, u64, PageNo)>,
}

impl Walk<'_> {
    /// Walks the catalog and all collections.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn collections(&mut self, root: &RootView) -> Result<Records> {
        let catalog = self.catalog(root)?;
        let (mut records, mut numbers) = (Records::default(), BTreeSet::new());
        for (name, number, page) in &catalog.large {
            self.collection(root, name, (*number, *page), &mut numbers, &mut records)?;
        }
        if !root.small.is_none() {
            self.small(root, catalog.small, &mut records)?;
        } else if catalog.small != SmallSums::default() {
            let detail = "have objects, but no page in common";
            self.found.add(ProblemKind::Reference, SMALL, detail);
        }
        self.dropped(root, &mut numbers, &mut records)?;
        Ok(records)
    }

    fn catalog(&mut self, root: &RootView) -> Result<Catalog> {
        let mut all = Catalog::default();
        let before = std::mem::replace(&mut self.complete, true);
        self.names(&root.catalog, 0, "the catalog", &mut |walk, name, value| {
            let what = || format!("catalog entry {:?}", String::from_utf8_lossy(name));
            if let Some((number, _)) =
                walk.take(ProblemKind::Page, &what, NumberKey::split(value))?
            {
                all.by_name.add((number, name));
            }
            Ok(())
        })?;
        let next = root.next_collection;
        self.names(&root.entries, ENTRIES_OWNER, "the entries", &mut |walk, key, value| {
            let what = || format!("entry {:?}", String::from_utf8_lossy(key));
            let decoded = NumberKey::split(key).and_then(|k| Ok((k, Entry::decode(value)?)));
            let Some(((number, name), entry)) = walk.take(ProblemKind::Page, &what, decoded)?
            else {
                return Ok(());
            };
            if number == 0 || number >= next || number == all.last {
                let detail = format!("has number {number}, which is not its own");
                walk.found.add(ProblemKind::Reference, what(), detail);
            }
            all.last = number;
            all.by_number.add((number, name));
            match entry {
                Entry::Large(page) => {
                    all.large.push((String::from_utf8_lossy(name).into_owned(), number, page));
                }
                Entry::Small(Counts { objects, record_bytes, logical_bytes, .. }) => {
                    all.small.add(number, (objects, record_bytes, logical_bytes));
                }
            }
            Ok(())
        })?;
        if self.complete && all.by_name != all.by_number {
            let (names, entries) = (all.by_name.count, all.by_number.count);
            let detail = format!("its {names} names do not lead to its {entries} entries");
            self.found.add(ProblemKind::Reference, "the catalog", detail);
        }
        self.complete &= before;
        Ok(all)
    }

    /// Reads the page of a collection of this number.
    fn page_of_collection(
        &mut self,
        what: &dyn Fn() -> String,
        (number, no): (u64, PageNo),
    ) -> Result<Option<Collection>> {
        if !self.reach(no, what) {
            return Ok(None);
        }
        let loaded = Collection::load(self.pages, no);
        let Some(c) = self.take(ProblemKind::Page, what, loaded)? else { return Ok(None) };
        if c.number != number {
            let detail = format!("has number {}, which is not its own", c.number);
            self.bad_page(no, &what(), detail);
        }
        Ok(Some(c))
    }

    fn collection(
        &mut self,
        root: &RootView,
        name: &str,
        at: (u64, PageNo),
        numbers: &mut BTreeSet<u64>,
        records: &mut Records,
    ) -> Result<()> {
        let what = || format!("collection {name:?}");
        let Some(c) = self.page_of_collection(&what, at)? else { return Ok(()) };
        numbers.insert(c.number);
        let (tally, _, whole_heap) = self.contents(root, &c, name, records)?;
        let has = (tally.objects, tally.unnamed, u128::from(tally.bytes));
        if whole_heap && has != (c.objects, c.unnamed, c.logical_bytes) {
            let detail = format!(
                "counts {} objects of {} bytes, {} without a name, it has {} of {}, {}",
                c.objects, c.logical_bytes, c.unnamed, tally.objects, tally.bytes, tally.unnamed
            );
            self.found.add(ProblemKind::Waste, what(), detail);
        }
        Ok(())
    }

    /// What small collections share; `noted` is what their entries count.
    fn small(&mut self, root: &RootView, noted: SmallSums, records: &mut Records) -> Result<()> {
        let what = || SMALL.to_owned();
        let at = (SMALL_OWNER, root.small);
        let Some(c) = self.page_of_collection(&what, at)? else { return Ok(()) };
        let (tally, whole, _) = self.contents(root, &c, SMALL, records)?;
        if whole && tally.small != noted {
            self.compare_small(root, c.heap)?;
        }
        Ok(())
    }

    /// Walks heap file and names, and compares the two. Returns what the records add up to,
    /// whether all could be read, and whether all records could.
    fn contents(
        &mut self,
        root: &RootView,
        c: &Collection,
        name: &str,
        records: &mut Records,
    ) -> Result<(Tally, bool, bool)> {
        let numbered = c.number == SMALL_OWNER;
        let loaded = Loaded { name: name.to_owned(), names: c.names, heap: c.heap, numbered };
        let before = std::mem::replace(&mut self.complete, true);
        let tally = self.heap(c, &loaded, records)?;
        let whole_heap = self.complete;
        let listed = self.listed(c, &loaded)?;
        let whole = self.complete;
        self.complete &= before;
        if !whole || listed != tally.named {
            self.compare_names(root, &loaded)?;
        }
        records.collections.push(loaded);
        Ok((tally, whole, whole_heap))
    }

    /// Collections that were dropped and are not yet emptied: their pages are in use, and so are
    /// the handles of objects that were not given up. Nothing else of them counts.
    fn dropped(
        &mut self,
        root: &RootView,
        numbers: &mut BTreeSet<u64>,
        records: &mut Records,
    ) -> Result<()> {
        let mut list = Vec::new();
        self.names(&root.drops, DROPS_OWNER, "the drop list", &mut |walk, key, value| {
            let what = || "an entry of the drop list".to_owned();
            let decoded = NumberKey::split(key).and_then(|(n, _)| Ok((n, page_of(value)?)));
            list.extend(walk.take(ProblemKind::Page, &what, decoded)?);
            Ok(())
        })?;
        for at in list {
            let what = || format!("dropped collection {}", at.0);
            if at.0 >= root.next_collection || !numbers.insert(at.0) {
                self.found.add(ProblemKind::Reference, what(), "has a number not its own");
            }
            let Some(c) = self.page_of_collection(&what, at)? else { continue };
            let (name, names, heap) = (what(), c.names, c.heap);
            let loaded = Loaded { name, names, heap, numbered: false };
            self.dropped = Some(root.handles);
            self.heap(&c, &loaded, records)?;
            self.dropped = None;
            self.names(&c.names, c.number, &what(), &mut |_, _, _| Ok(()))?;
        }
        Ok(())
    }

    /// Walks the names of a collection; returns the set of its entries.
    fn listed(&mut self, c: &Collection, loaded: &Loaded) -> Result<Fingerprint> {
        let mut sum = Fingerprint::default();
        let what = format!("names of collection {:?}", loaded.name);
        self.names(&c.names, c.number, &what, &mut |walk, key, value| {
            let place = || format!("{what}, entry {:?}", String::from_utf8_lossy(key));
            let split = if loaded.numbered { NumberKey::split(key) } else { Ok((0, key)) };
            let decoded = split.and_then(|(number, name)| Ok((number, name, oid_of(value)?)));
            if let Some(entry) = walk.take(ProblemKind::Reference, &place, decoded)? {
                sum.add(entry);
            }
            Ok(())
        })?;
        Ok(sum)
    }
}
