//! Walking the catalog and each collection: its page, heap file and names.
//!
//! Owns: [`Records`], what the records of all collections say of handles.

use super::report::ProblemKind;
use super::walk_state::{RootView, Walk};
use crate::engine::catalog::{Collection, oid_of, page_of};
use crate::heap::HeapFile;
use crate::names::Names;
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

/// A collection whose page could be read.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) name: String,
    pub(super) names: Names,
    pub(super) heap: HeapFile,
}

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
    pub(super) bytes: u64,
}

impl Walk<'_> {
    /// Walks the catalog and all collections.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn collections(&mut self, root: &RootView) -> Result<Records> {
        let mut list: Vec<(String, PageNo)> = Vec::new();
        self.names(&root.catalog, 0, "the catalog", &mut |walk, name, value| {
            let name = String::from_utf8_lossy(name).into_owned();
            let what = || format!("catalog entry {name:?}");
            if let Some(page) = walk.take(ProblemKind::Page, &what, page_of(value))? {
                list.push((name, page));
            }
            Ok(())
        })?;
        let mut records = Records::default();
        let mut numbers = BTreeSet::new();
        for (name, no) in list {
            self.collection(root, &name, no, &mut numbers, &mut records)?;
        }
        Ok(records)
    }

    fn collection(
        &mut self,
        root: &RootView,
        name: &str,
        no: PageNo,
        numbers: &mut BTreeSet<u32>,
        records: &mut Records,
    ) -> Result<()> {
        let what = || format!("collection {name:?}");
        if !self.reach(no, &what) {
            return Ok(());
        }
        let loaded = Collection::load(self.pages, no);
        let Some(c) = self.take(ProblemKind::Page, &what, loaded)? else { return Ok(()) };
        if c.number >= root.next_collection || !numbers.insert(c.number) {
            let detail = format!("has number {}, which is not its own", c.number);
            self.bad_page(no, &what(), detail);
        }
        let loaded = Loaded { name: name.to_owned(), names: c.names, heap: c.heap };
        let before = self.complete;
        self.complete = true;
        let tally = self.heap(&c, &loaded, records)?;
        let whole_heap = self.complete;
        let listed = self.listed(&c, name)?;
        let whole = self.complete;
        self.complete &= before;
        if whole_heap && (tally.objects, u128::from(tally.bytes)) != (c.objects, c.logical_bytes) {
            let detail = format!(
                "counts {} objects of {} bytes, it has {} of {}",
                c.objects, c.logical_bytes, tally.objects, tally.bytes
            );
            self.found.add(ProblemKind::Waste, what(), detail);
        }
        if !whole || listed != tally.named {
            self.compare_names(root, &loaded)?;
        }
        records.collections.push(loaded);
        Ok(())
    }

    /// Walks the names of a collection; returns the set of its entries.
    fn listed(&mut self, c: &Collection, name: &str) -> Result<Fingerprint> {
        let mut sum = Fingerprint::default();
        let what = format!("names of collection {name:?}");
        self.names(&c.names, u64::from(c.number), &what, &mut |walk, key, value| {
            let place = || format!("{what}, entry {:?}", String::from_utf8_lossy(key));
            if let Some(oid) = walk.take(ProblemKind::Reference, &place, oid_of(value))? {
                sum.add((key, oid));
            }
            Ok(())
        })?;
        Ok(sum)
    }
}
