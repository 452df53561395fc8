//! Who refers to whom: handles against records, names against records, first parts of records
//! against continuations.
//!
//! Owns: no state; compares [`Fingerprint`]s, sums that do not depend on the order of reading.
//! Equal counts and sums of both sides mean equal sets, but for a chance of 2^-64; so each
//! side is read in its own order, with constant memory. Only if they differ is each entry
//! looked up, which costs a page read or two for each.

use super::bits::PageBits;
use super::catalog::{Fingerprint, Loaded, Records};
use super::map::readable_pages;
use super::page_source::Pages;
use super::report::ProblemKind;
use super::walk_state::{RootView, Walk, damage, quiet};
use crate::engine::catalog::oid_of;
use crate::handle::HandleTable;
use crate::heap::HeapFile;
use crate::names::Names;
use crate::object::Record;
use crate::page_map::PageMap;
use holdall_core::collection_entry::{Counts, Entry, NumberKey};
use holdall_core::handle_page::{HandlePage, Location};
use holdall_core::heap_page::HeapPage;
use holdall_core::heap_record::divided::{Part, part};
use holdall_core::names_node::Node;
use holdall_core::page_map_node::FRESH;
use holdall_core::{Oid, PageKind, PageNo, PageRead, Result};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

/// Objects in messages: OID, name if known, collection.
pub(super) fn show(oid: Oid, name: Option<&[u8]>, collection: &str) -> String {
    let place = format!("in collection {collection:?}");
    match name {
        Some(name) => format!("object {:?} ({oid}) {place}", String::from_utf8_lossy(name)),
        None => format!("object {oid} {place}"),
    }
}

impl Walk<'_> {
    /// Walks the handle table; returns the set of its live handles.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn handles(&mut self, table: &HandleTable) -> Result<Fingerprint> {
        let mut sum = Fingerprint::default();
        self.map(&table.map, 0, "the handle table", &mut |walk, index, no, class| {
            walk.handle_page((index, no, class), &mut sum)
        })?;
        Ok(sum)
    }

    fn handle_page(
        &mut self,
        (index, no, class): (u32, PageNo, u8),
        sum: &mut Fingerprint,
    ) -> Result<()> {
        let what = || format!("handle page {index}");
        if class == FRESH {
            if self.reach(no, &what) {
                self.blank += 1;
            }
            return Ok(());
        }
        let Some(bytes) = self.own_page(no, PageKind::Handle, 0, &what)? else { return Ok(()) };
        let handles = HandlePage::new(&bytes, no, index).and_then(|h| h.check().map(|()| h));
        let Some(handles) = self.take(ProblemKind::Page, &what, handles)? else { return Ok(()) };
        if handles.class() != class {
            let detail = format!("is of class {}, its map says {class}", handles.class());
            self.bad_page(no, &what(), detail);
        }
        let ceiling = self.unique_ceiling;
        for handle in handles.iter() {
            let (slot, unique, loc) = handle?;
            let oid = Oid { site: 0, page: index, slot, unique };
            sum.add((oid, loc));
            if ceiling <= u64::from(u32::MAX) && u64::from(unique) >= ceiling {
                let detail = format!("has a number not given out yet (below {ceiling})");
                self.found.add(ProblemKind::Reference, format!("handle {oid}"), detail);
            }
        }
        Ok(())
    }

    /// Holds handles against records; if they differ, each handle and each record.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn compare_handles(
        &mut self,
        root: &RootView,
        handles: Fingerprint,
        records: &Records,
    ) -> Result<()> {
        if handles == records.placed {
            return Ok(());
        }
        let mut told: HashSet<Oid> = HashSet::new();
        for c in &records.collections {
            self.lost_by_name(root, c, &mut told)?;
        }
        let pages = self.pages;
        each_handle(pages, &root.handles.map, &mut |oid, loc| {
            if told.contains(&oid) || self.found.is_full(ProblemKind::Object) {
                return Ok(());
            }
            if let Some(wrong) = wrong_record(pages, oid, loc)? {
                self.found.add(ProblemKind::Object, format!("object {oid}"), wrong);
            }
            Ok(())
        })?;
        for c in &records.collections {
            self.stray_records(root, c)?;
        }
        Ok(())
    }

    /// Holds continuations against the records that lead to them; if they differ, each.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn compare_parts(&mut self, root: &RootView, records: &Records) -> Result<()> {
        if records.rests == records.links {
            return Ok(());
        }
        let pages = self.pages;
        for c in &records.collections {
            each_part(pages, &c.heap, &mut |loc, found| {
                let Some((oid, Part::Continuation)) = quiet(part(found))? else { return Ok(()) };
                let first = quiet(root.handles.lookup(pages, oid))?;
                let first = first.map(|loc| quiet(HeapFile::get(pages, loc))).transpose()?;
                let led = first.flatten().map(|first| quiet(part(&first))).transpose()?;
                if led.flatten() != Some((oid, Part::First(loc))) {
                    let place = format!("page {} slot {}", loc.page, loc.slot);
                    let object = show(oid, None, &c.name);
                    let detail = format!("holds a continuation to which {object} does not lead");
                    self.found.add(ProblemKind::Reference, place, detail);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Objects that a name leads to but whose record cannot be read, reported with their names.
    fn lost_by_name(&mut self, root: &RootView, c: &Loaded, told: &mut HashSet<Oid>) -> Result<()> {
        let pages = self.pages;
        each_name(pages, &c.names, &mut |name, oid| {
            if self.found.is_full(ProblemKind::Object) {
                return Ok(());
            }
            let wrong = match root.handles.lookup(pages, oid) {
                Ok(loc) => wrong_record(pages, oid, loc)?,
                Err(e) => Some(damage(e)?.1),
            };
            if let Some(wrong) = wrong {
                self.found.add(ProblemKind::Object, show(oid, Some(name), &c.name), wrong);
                told.insert(oid);
            }
            Ok(())
        })
    }

    /// Records whose handle leads elsewhere.
    fn stray_records(&mut self, root: &RootView, c: &Loaded) -> Result<()> {
        let pages = self.pages;
        each_record(pages, &c.heap, &mut |loc, record, _| {
            let wrong = match root.handles.lookup(pages, record.oid) {
                Ok(found) if found == loc => return Ok(()),
                Ok(found) => {
                    format!("its handle leads to page {} slot {}", found.page, found.slot)
                }
                Err(e) => format!("its handle does not lead to it: {}", damage(e)?.1),
            };
            let place = format!("page {} slot {}", loc.page, loc.slot);
            let object = show(record.oid, record.name, &c.name);
            self.found.add(ProblemKind::Reference, place, format!("holds {object}, but {wrong}"));
            Ok(())
        })
    }

    /// Holds what entries of small collections count against their records, one by one.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn compare_small(&mut self, root: &RootView, heap: HeapFile) -> Result<()> {
        let pages = self.pages;
        let mut counted: BTreeMap<u64, Counts> = BTreeMap::new();
        each_record(pages, &heap, &mut |_, record, len| {
            let c = counted.entry(record.collection).or_default();
            c.objects += 1;
            c.record_bytes = c.record_bytes.saturating_add(len as u64);
            let size = quiet(record.size())?.unwrap_or(0);
            c.logical_bytes = c.logical_bytes.saturating_add(size);
            Ok(())
        })?;
        for entry in root.entries.iter(pages, Bound::Unbounded) {
            let Some((key, value)) = quiet(entry)? else { return Ok(()) };
            let decoded = NumberKey::split(&key).and_then(|k| Ok((k, Entry::decode(&value)?)));
            let Some(((number, name), Entry::Small(noted))) = quiet(decoded)? else { continue };
            let has = counted.remove(&number).unwrap_or_default();
            let found = Counts { threshold: noted.threshold, flags: noted.flags, ..has };
            if found != noted {
                let place = format!("collection {:?}", String::from_utf8_lossy(name));
                let detail = format!("counts {noted:?}, it has {found:?}");
                self.found.add(ProblemKind::Waste, place, detail);
            }
        }
        for (number, has) in counted {
            let detail = format!("{has:?} of number {number}, which no collection has");
            self.found.add(ProblemKind::Reference, "records of small collections", detail);
        }
        Ok(())
    }

    /// Holds the names of a collection against the names in its records, each of them.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn compare_names(&mut self, root: &RootView, c: &Loaded) -> Result<()> {
        let pages = self.pages;
        each_name(pages, &c.names, &mut |name, oid| {
            let loc = quiet(root.handles.lookup(pages, oid))?;
            let record = match loc {
                Some(loc) => quiet(HeapFile::whole(pages, loc))?,
                None => None,
            };
            let Some(record) = record else {
                // Told with the handles.
                return Ok(());
            };
            if let Some(record) = quiet(Record::parse(&record))?
                && record.oid == oid
                && key_of(c, &record).as_deref() != Some(name)
            {
                let own = record.name.map(String::from_utf8_lossy);
                let detail = format!("is listed under this name, its record says {own:?}");
                self.found.add(ProblemKind::Reference, show(oid, Some(name), &c.name), detail);
            }
            Ok(())
        })?;
        each_record(pages, &c.heap, &mut |_, record, _| {
            let Some(key) = key_of(c, record) else { return Ok(()) };
            let wrong = match c.names.get(pages, &key) {
                Ok(Some(value)) if oid_of(&value).ok() == Some(record.oid) => return Ok(()),
                Ok(Some(_)) => "its name leads to another object".to_owned(),
                Ok(None) => "its name is not in the names tree; it can be read by its OID".into(),
                Err(e) => format!("its name cannot be looked up: {}", damage(e)?.1),
            };
            self.found.add(ProblemKind::Reference, show(record.oid, record.name, &c.name), wrong);
            Ok(())
        })
    }
}

/// The key under which a record's object is listed in its collection.
fn key_of<'r>(c: &Loaded, record: &Record<'r>) -> Option<Cow<'r, [u8]>> {
    let name = record.name?;
    if !c.numbered {
        return Some(Cow::Borrowed(name));
    }
    Some(Cow::Owned(NumberKey::new(record.collection).with(name)))
}

/// What is wrong with the record at the place a handle names.
fn wrong_record<R: PageRead>(pages: &R, oid: Oid, loc: Location) -> Result<Option<String>> {
    let at = format!("its record in page {} slot {}", loc.page, loc.slot);
    let record = match HeapFile::whole(pages, loc) {
        Ok(record) => record,
        Err(e) => return Ok(Some(format!("{at} cannot be read: {}", damage(e)?.1))),
    };
    Ok(match Record::parse(&record) {
        Ok(found) if found.oid == oid => None,
        Ok(found) => Some(format!("{at} is that of {}", found.oid)),
        Err(e) => Some(format!("{at} cannot be read: {}", damage(e)?.1)),
    })
}

/// Visits all handles that can be read.
fn each_handle(
    pages: &Pages<'_>,
    map: &PageMap,
    visit: &mut dyn FnMut(Oid, Location) -> Result<()>,
) -> Result<()> {
    readable_pages(pages, map, &mut |index, no| {
        let Some(bytes) = quiet(pages.page(no, PageKind::Handle))? else { return Ok(()) };
        let Some(handles) = quiet(HandlePage::new(&bytes, no, index))? else { return Ok(()) };
        for handle in handles.iter() {
            if let Some((slot, unique, loc)) = quiet(handle)? {
                visit(Oid { site: 0, page: index, slot, unique }, loc)?;
            }
        }
        Ok(())
    })
}

/// Visits all records of a heap file that can be read.
fn each_record(
    pages: &Pages<'_>,
    heap: &HeapFile,
    visit: &mut dyn FnMut(Location, &Record<'_>, usize) -> Result<()>,
) -> Result<()> {
    each_part(pages, heap, &mut |loc, found| {
        let whole = match quiet(part(found))? {
            Some((_, Part::Whole)) => Cow::Borrowed(found),
            Some((_, Part::First(_))) => match quiet(HeapFile::joined(pages, loc, found))? {
                Some(whole) => Cow::Owned(whole),
                None => return Ok(()),
            },
            Some((_, Part::Continuation)) | None => return Ok(()),
        };
        quiet(Record::parse(&whole))?.map_or(Ok(()), |record| visit(loc, &record, whole.len()))
    })
}

/// Visits all records, and parts of records, of a heap file that can be read.
fn each_part(
    pages: &Pages<'_>,
    heap: &HeapFile,
    visit: &mut dyn FnMut(Location, &[u8]) -> Result<()>,
) -> Result<()> {
    readable_pages(pages, heap.map(), &mut |_, no| {
        let Some(bytes) = quiet(pages.page(no, PageKind::Heap))? else { return Ok(()) };
        let Some(page) = quiet(HeapPage::new(&bytes, no))? else { return Ok(()) };
        for found in page.iter() {
            let Some((slot, range)) = quiet(found)? else { continue };
            if let Some(found) = bytes.get(range) {
                visit(Location { page: no, slot }, found)?;
            }
        }
        Ok(())
    })
}

/// Visits all names that can be read.
fn each_name(
    pages: &Pages<'_>,
    names: &Names,
    visit: &mut dyn FnMut(&[u8], Oid) -> Result<()>,
) -> Result<()> {
    if names.root.is_none() {
        return Ok(());
    }
    // A damaged tree may name a node in many places.
    let mut seen = PageBits::new(pages.volume_pages)?;
    names_below(pages, (names.root, None), &mut seen, visit)
}

fn names_below(
    pages: &Pages<'_>,
    (no, level): (PageNo, Option<u8>),
    seen: &mut PageBits,
    visit: &mut dyn FnMut(&[u8], Oid) -> Result<()>,
) -> Result<()> {
    if !seen.add(no.0) {
        return Ok(());
    }
    let Some(bytes) = quiet(pages.page(no, PageKind::Names))? else { return Ok(()) };
    let node = match level {
        Some(level) => Node::open_at(no, &bytes, level),
        None => Node::open(no, &bytes),
    };
    let Some(node) = quiet(node)? else { return Ok(()) };
    if let Some(below) = node.level().checked_sub(1) {
        for i in 0..=node.count() {
            if let Some(child) = quiet(node.child(i))? {
                names_below(pages, (child, Some(below)), seen, visit)?;
            }
        }
        return Ok(());
    }
    for i in 0..node.count() {
        let entry = node.cell(i).and_then(|c| Ok((c.key.to_vec(), oid_of(&node.value(i)?)?)));
        if let Some((name, oid)) = quiet(entry)? {
            visit(&name, oid)?;
        }
    }
    Ok(())
}
