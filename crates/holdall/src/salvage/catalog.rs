//! What collections there are, and which were dropped.
//!
//! Owns: [`Catalog`]. Where the trees of the catalog cannot be walked, the leaves that were found are
//! read one by one. Numbers are never used twice (rule 54): one that a drop list names was dropped.

use super::pages::Pages;
use super::scan::Found;
use crate::engine::catalog::{Known, Root, large};
use crate::object::StoredHints;
use holdall_core::collection_entry::{DROPS_OWNER, ENTRIES_OWNER, Entry, NumberKey};
use holdall_core::names_node::Node;
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, Lsn, PageRead, Result};
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

/// Owner of the tree of names of collections.
const CATALOG_OWNER: u64 = 0;

/// The collections of a damaged store.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    names: BTreeMap<u64, Named>,
    dropped: HashSet<u64>,
    /// Every collection is in `names`.
    whole: bool,
}

#[derive(Debug, Default)]
struct Named {
    name: String,
    lsn: Lsn,
    hints: StoredHints,
}

impl Catalog {
    /// Reads the catalog, by the root of a state that is sure, if there is one.
    pub(super) fn find(pages: &Pages<'_>, found: &Found, root: Option<&Root>) -> Self {
        let mut catalog = Self::default();
        catalog.whole = root.is_some_and(|root| catalog.walk(pages, root).is_ok());
        if !catalog.whole {
            for (owner, no) in &found.leaves {
                // What was dropped stays so; all else an earlier state may have left.
                let left = root.is_some() && *owner != DROPS_OWNER;
                if left && pages.is_free(*no) == Some(true) {
                    continue;
                }
                let Ok(bytes) = pages.page(*no, PageKind::Names) else { continue };
                let Ok(node) = Node::open(*no, &bytes) else { continue };
                for cell in (0..node.count()).filter_map(|i| node.cell(i).ok()) {
                    let key = cell.key.to_vec();
                    catalog.add(pages, *owner, page::lsn(&bytes), (&key, cell.payload));
                }
            }
        }
        catalog
    }

    fn walk(&mut self, pages: &Pages<'_>, root: &Root) -> Result<()> {
        pages.take_doubt();
        for entry in root.entries.iter(pages, Bound::Unbounded) {
            let (key, value) = entry?;
            self.add(pages, ENTRIES_OWNER, Lsn(0), (&key, &value));
        }
        match pages.take_doubt() {
            true => Err(Error::corrupt("catalog", "a part of it may be of an earlier state")),
            false => Ok(()),
        }
    }

    fn add(&mut self, pages: &Pages<'_>, owner: u64, lsn: Lsn, (key, value): (&[u8], &[u8])) {
        match owner {
            ENTRIES_OWNER => {
                let Ok(known) = Known::decode(key, value) else { return };
                let hints = hints(pages, &known);
                self.note(known.number, lsn, known.name, Some(hints));
            }
            CATALOG_OWNER => {
                if let Ok((number, [])) = NumberKey::split(value) {
                    self.note(number, lsn, String::from_utf8_lossy(key).into_owned(), None);
                }
            }
            DROPS_OWNER => {
                if let Ok((number, _)) = NumberKey::split(key) {
                    self.dropped.insert(number);
                }
            }
            _ => {}
        }
    }

    fn note(&mut self, number: u64, lsn: Lsn, name: String, hints: Option<StoredHints>) {
        let new = Named { name: String::new(), lsn, hints: StoredHints::default() };
        let known = self.names.entry(number).or_insert(new);
        known.hints = hints.unwrap_or(known.hints);
        if known.name.is_empty() || lsn >= known.lsn {
            (known.name, known.lsn) = (name, lsn);
        }
    }

    /// The name of collection `number`: the number itself if the name is lost. `None` if it was dropped.
    pub(super) fn name(&self, number: u64) -> Option<String> {
        match self.names.get(&number) {
            _ if self.dropped.contains(&number) => None,
            Some(named) => Some(named.name.clone()),
            None if self.whole => None,
            None => Some(self.unused(number)),
        }
    }

    /// The number as a name; with more behind it if a collection is called so.
    fn unused(&self, number: u64) -> String {
        let mut name = number.to_string();
        while self.names.values().any(|named| named.name == name) {
            name.push('\'');
        }
        name
    }

    /// All collections whose names are known, with their hints. Of several with one name, which an earlier
    /// state has left, the newest.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, StoredHints)> {
        let alive = self.names.iter().filter(|(number, _)| !self.dropped.contains(number));
        alive.map(|(_, named)| (named.name.as_str(), named.hints))
    }

    /// Whether names of collections may be lost.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }
}

/// The hints of a collection, as far as they can be read.
fn hints(pages: &Pages<'_>, known: &Known) -> StoredHints {
    match known.entry {
        Entry::Small(counts) => StoredHints { threshold: counts.threshold, flags: counts.flags },
        Entry::Large(page) => {
            // They are no matter of what the catalog says.
            let doubt = pages.take_doubt();
            let found = large(pages, known.number, page).map(|c| c.hints);
            pages.set_doubt(doubt);
            found.unwrap_or_default()
        }
    }
}
