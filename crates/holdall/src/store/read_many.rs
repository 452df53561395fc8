//! Whole objects that are small and in memory, many in steps.
//!
//! Owns: [`Reader::get_many`]. A get is a chain of look-ups
//! each of which waits for memory: leaf of the names tree (head, slot, cell), handle, slot,
//! record. Here a group of keys takes each step together: all ask for what the next step
//! needs before any takes it, so that they wait once and not each for itself. (Group
//! prefetching: Chen, Ailamaki, Gibbons and Mowry, "Improving hash join performance through
//! prefetching", ICDE 2004. Kocberber, Falsafi and Grot, "Asynchronous memory access
//! chaining", VLDB 2015, let each key go on by itself; ours have chains of much the same length.)
//!
//! Only an object that is found whole in memory, in its record, is delivered from here. For
//! all others, and for all errors, the slow path is asked, whose answer counts.
//!
//! Invariant: no code of the user's runs, and nothing is read from disk, under a pin.

use super::read::{Reader, State};
use super::view::{Key, oid_of};
use crate::handle::HandleTable;
use crate::heap::{HeapFile, Location};
use crate::names::{Leaf, Names};
use crate::object::{Body, Record};
use crate::pager::InMemory;
use holdall_core::{Oid, PageNo, PageRead, Result};
use std::ops::Range;

/// Keys that take their steps together. Each asks for up to eight lines at a time, and
/// processors wait for some dozens together.
const GROUP: usize = 16;

/// How far the look-up of a key has come.
#[derive(Debug, Clone)]
enum Step {
    /// The leaf of its name.
    Leaf(Leaf),
    /// Its handle page.
    Handle(Oid, PageNo),
    /// Where its record lies.
    Record(Oid, Location),
    /// Where its bytes lie among those of its group.
    Found(Range<usize>),
    /// Left to the slow path.
    Ordinary,
}

impl Reader {
    /// All bytes of many objects, in the order of `keys`: `each` is called once for each key
    /// with its place among them and what [`Reader::get`] would return. What it returns is
    /// returned at once where it is an error, and the keys that follow are not looked up.
    ///
    /// For small objects in memory this is two to three times as fast as single gets: keys
    /// are looked up 16 at a time, and wait for the processor's memory together. Any number of keys,
    /// in any order, by name and by OID, is good; the same one may come twice. Cost beside
    /// that of the gets: a buffer for the objects of 16 keys that lie in records, and one for
    /// the largest that does not.
    ///
    /// ```
    /// # use holdall::{Error, Options, Store};
    /// # fn main() -> holdall::Result<()> {
    /// # let dir = std::env::temp_dir().join(format!("holdall-many-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir).unwrap();
    /// # let store = Store::create(dir.join("many.holdall"), &Options::default())?;
    /// store.write(|tx| tx.put("a", b"first").and_then(|_| tx.put("b", b"second")))?;
    /// let reader = store.read()?;
    ///
    /// // All must be there.
    /// let mut length = 0;
    /// reader.get_many(["a", "b"], |i, bytes| {
    ///     length += bytes?.ok_or_else(|| Error::NotFound(format!("key {i}")))?.len();
    ///     Ok(())
    /// })?;
    /// assert_eq!(length, 11);
    ///
    /// // Some may be missing; memory of an earlier call is used again.
    /// let keys = ["b", "none", "a"];
    /// let mut found = vec![Vec::new(); keys.len()];
    /// let mut missing = Vec::new();
    /// reader.get_many(keys, |i, bytes| {
    ///     found[i].clear();
    ///     match bytes? {
    ///         Some(bytes) => found[i].extend_from_slice(bytes),
    ///         None => missing.push(i),
    ///     }
    ///     Ok(())
    /// })?;
    /// assert_eq!((&found[0][..], &found[2][..], &missing[..]), (&b"second"[..], &b"first"[..], &[1][..]));
    /// # store.close()?;
    /// # std::fs::remove_dir_all(&dir).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What `each` returns; nothing else. What is wrong with a key, `each` is given.
    pub fn get_many<'k, K: Into<Key<'k>>>(
        &self,
        keys: impl IntoIterator<Item = K>,
        mut each: impl FnMut(usize, Result<Option<&[u8]>>) -> Result<()>,
    ) -> Result<()> {
        let mut keys = keys.into_iter();
        let mut group: Vec<(Key<'k>, Step)> = Vec::with_capacity(GROUP);
        let (mut found, mut own, mut i) = (Vec::new(), Vec::new(), 0);
        loop {
            group.clear();
            group.extend(keys.by_ref().take(GROUP).map(|key| (key.into(), Step::Ordinary)));
            if group.is_empty() {
                return Ok(());
            }
            found.clear();
            if group.len() > 1 {
                self.find_group(&mut group, &mut found);
            }
            for (key, step) in &group {
                match step {
                    Step::Found(range) => each(i, Ok(Some(&found[range.clone()])))?,
                    _ => {
                        let got = self.sight().get_into(key, &mut own);
                        each(i, got.map(|there| there.then_some(&own[..])))?;
                    }
                }
                i += 1;
            }
        }
    }

    /// Finds those objects of a group that lie in memory and in records, and appends their
    /// bytes to `out`.
    fn find_group(&self, group: &mut [(Key<'_>, Step)], out: &mut Vec<u8>) {
        // Before the pin: it may be read from disk.
        let names = match group.iter().any(|(key, _)| matches!(key, Key::Name(_))) {
            true => self.current().ok().flatten().map(|c| c.names),
            false => None,
        };
        let pages = self.state.snapshot.in_memory();
        if let Some(names) = names {
            to_leaves(&pages, names, group);
        }
        to_records(&self.state, &pages, group);
        for (_, step) in &*group {
            if let Step::Record(_, loc) = step {
                // What is wrong shows when it is looked at.
                let _hint = HeapFile::fetch_record(&pages, *loc);
            }
        }
        for (_, step) in &mut *group {
            if let Step::Record(oid, loc) = *step {
                let from = out.len();
                *step = match small(&pages, oid, loc, out) {
                    Ok(true) => Step::Found(from..out.len()),
                    _ => Step::Ordinary,
                };
            }
        }
        if pages.check().is_err() {
            group.iter_mut().for_each(|(_, step)| *step = Step::Ordinary);
        }
    }
}

/// Takes the names of a group to the cells of their leaves.
fn to_leaves(pages: &InMemory<'_>, names: Names, group: &mut [(Key<'_>, Step)]) {
    for (key, step) in &mut *group {
        if let Key::Name(name) = key
            && let Ok(Some(leaf)) = names.leaf_of(pages, name)
        {
            pages.approach(leaf.page());
            *step = Step::Leaf(leaf);
        }
    }
    let hints: [fn(&Leaf, &InMemory<'_>); 3] = [
        |leaf, pages| leaf.fetch(pages),
        |leaf, pages| drop(leaf.fetch_slot(pages)),
        |leaf, pages| drop(leaf.fetch_cell(pages)),
    ];
    for hint in hints {
        for (_, step) in &*group {
            if let Step::Leaf(leaf) = step {
                hint(leaf, pages);
            }
        }
    }
}

/// Takes a group from OIDs, and from leaves that hold names, to the slots of records.
fn to_records(state: &State, pages: &InMemory<'_>, group: &mut [(Key<'_>, Step)]) {
    let handles = &state.root().handles;
    for (key, step) in &mut *group {
        let oid = match (&key, &step) {
            (Key::Oid(oid), _) => Ok(Some(*oid)),
            (Key::Name(name), Step::Leaf(leaf)) => leaf.find(pages, name, oid_of),
            _ => Ok(None),
        };
        *step = match oid.and_then(|o| o.map(|o| Ok((o, handles.page_of(pages, o)?))).transpose()) {
            Ok(Some((oid, page))) => {
                pages.approach(page);
                Step::Handle(oid, page)
            }
            _ => Step::Ordinary,
        };
    }
    for (_, step) in &*group {
        if let Step::Handle(oid, page) = step {
            HandleTable::fetch(pages, *page, *oid);
        }
    }
    for (_, step) in &mut *group {
        if let Step::Handle(oid, page) = *step {
            *step = match HandleTable::lookup_in(pages, page, oid) {
                Ok(loc) => {
                    pages.approach(loc.page);
                    Step::Record(oid, loc)
                }
                Err(_) => Step::Ordinary,
            };
        }
    }
    for (_, step) in &*group {
        if let Step::Record(_, loc) = step {
            HeapFile::fetch(pages, *loc);
        }
    }
}

/// Appends the bytes of an object that lies in its record; returns whether it does.
#[inline]
fn small<R: PageRead>(pages: &R, oid: Oid, loc: Location, out: &mut Vec<u8>) -> Result<bool> {
    HeapFile::look(pages, loc, |record| {
        let record = Record::parse(record)?;
        match record.body {
            Body::Small(bytes) if record.oid == oid => {
                out.extend_from_slice(bytes);
                Ok(true)
            }
            // Large, or not its own record: the general way tells.
            _ => Ok(false),
        }
    })
}
