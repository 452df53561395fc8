//! Walking a collection's heap file and every record in it.
//!
//! Owns: no state. As `HeapFile::check`, but it reports and does not stop.

use super::catalog::{Loaded, Records, Tally};
use super::cross::show;
use super::report::ProblemKind;
use super::walk_state::{Walk, quiet};
use crate::engine::catalog::Collection;
use crate::heap::HeapFile;
use crate::object::{Body, Record};
use holdall_core::collection_entry::SMALL_OWNER;
use holdall_core::handle_page::Location;
use holdall_core::heap_page::{HeapPage, max_record};
use holdall_core::heap_placement::class_of;
use holdall_core::heap_record::divided::{Part, part};
use holdall_core::page_map_node::FRESH;
use holdall_core::segment_tree::Descriptor;
use holdall_core::{PageKind, PageNo, PageRef, Result};

/// Sums over the pages of a heap file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    records: u64,
    used: u64,
    capacity: u64,
}

impl Walk<'_> {
    /// Walks a heap file: its map, its pages, its records and their objects. Adds to `records`
    /// where each of them lies.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn heap(
        &mut self,
        c: &Collection,
        loaded: &Loaded,
        records: &mut Records,
    ) -> Result<Tally> {
        let numbered = c.number == SMALL_OWNER;
        let (mut tally, mut sums) = (Tally { numbered, ..Tally::default() }, Sums::default());
        let owner = c.number;
        let what = format!("heap file of collection {:?}", loaded.name);
        let before = std::mem::replace(&mut self.complete, true);
        self.map(c.heap.map(), owner, &what, &mut |walk, index, no, class| {
            let what = || format!("heap page {index} of collection {:?}", loaded.name);
            if class == FRESH {
                if walk.reach(no, &what) {
                    walk.blank += 1;
                }
                return Ok(());
            }
            let Some(bytes) = walk.own_page(no, PageKind::Heap, owner, &what)? else {
                return Ok(());
            };
            let page = walk.heap_page(&bytes, (index, no, class), &what)?;
            let Some(page) = page else { return Ok(()) };
            let max = max_record(bytes.len());
            sums.records += page.live() as u64;
            sums.used += (max - page.free_bytes()) as u64;
            sums.capacity += max as u64;
            for found in page.iter() {
                let (slot, range) = found?;
                let loc = Location { page: no, slot };
                if let Some(found) = bytes.get(range) {
                    walk.part(&loaded.name, loc, found, records, &mut tally)?;
                }
            }
            Ok(())
        })?;
        let (used, capacity) = c.heap.utilization(self.layout.page_size());
        let noted = Sums { records: c.heap.records(), used, capacity };
        if self.complete && sums != noted && self.dropped.is_none() {
            let detail = format!("notes {noted:?}, it has {sums:?}");
            self.found.add(ProblemKind::Waste, what, detail);
        }
        self.complete &= before;
        Ok(tally)
    }

    fn heap_page<'p>(
        &mut self,
        bytes: &'p PageRef,
        (index, no, class): (u32, PageNo, u8),
        what: &dyn Fn() -> String,
    ) -> Result<Option<HeapPage<'p>>> {
        let page = HeapPage::new(bytes, no).and_then(|page| page.check().map(|()| page));
        let Some(page) = self.take(ProblemKind::Page, what, page)? else { return Ok(None) };
        if page.index() != index {
            self.bad_page(no, &what(), format!("is heap page {} of its file", page.index()));
        }
        let own = class_of(page.room(), max_record(bytes.len()));
        if class != 0 && class != own {
            self.bad_page(no, &what(), format!("is of class {own}, its map says {class}"));
        }
        Ok(Some(page))
    }

    /// What a slot holds: a record, or a part of one.
    fn part(
        &mut self,
        collection: &str,
        loc: Location,
        found: &[u8],
        records: &mut Records,
        tally: &mut Tally,
    ) -> Result<()> {
        let place = || format!("record in page {} slot {}", loc.page, loc.slot);
        let Some((oid, part)) = self.take(ProblemKind::Object, &place, part(found))? else {
            return Ok(());
        };
        if let Some(handles) = self.dropped {
            // What was given up may be used again, and both parts of a record go at once.
            let alive =
                part != Part::Continuation && quiet(handles.lookup(self.pages, oid))? == Some(loc);
            let whole = if alive { quiet(HeapFile::whole(self.pages, loc))? } else { None };
            return whole
                .map_or(Ok(()), |whole| self.record(collection, loc, &whole, records, tally));
        }
        match part {
            Part::Whole => self.record(collection, loc, found, records, tally),
            Part::First(link) => {
                let Some(whole) = quiet(HeapFile::joined(self.pages, loc, found))? else {
                    // Told with the handles, since no record of the object is noted.
                    self.complete = false;
                    return Ok(());
                };
                records.links.add((oid, link));
                self.divided += 1;
                self.record(collection, loc, &whole, records, tally)
            }
            Part::Continuation => {
                records.rests.add((oid, loc));
                Ok(())
            }
        }
    }

    fn record(
        &mut self,
        collection: &str,
        loc: Location,
        bytes: &[u8],
        records: &mut Records,
        tally: &mut Tally,
    ) -> Result<()> {
        let place = || format!("record in page {} slot {}", loc.page, loc.slot);
        let parsed = Record::parse(bytes);
        let Some(record) = self.take(ProblemKind::Object, &place, parsed)? else { return Ok(()) };
        records.placed.add((record.oid, loc));
        if let Some(name) = record.name {
            tally.named.add((record.collection, name, record.oid));
        }
        let what = || show(record.oid, record.name, collection);
        if (record.collection == 0) == tally.numbered {
            let detail = format!("its record has collection number {}", record.collection);
            self.found.add(ProblemKind::Reference, what(), detail);
        }
        self.take(ProblemKind::Object, &what, record.attributes().map(drop))?;
        let size = match record.body {
            Body::Small(bytes) => Some(bytes.len() as u64),
            Body::Large(bytes) => {
                let decoded = Descriptor::decode(bytes);
                match self.take(ProblemKind::Object, &what, decoded)? {
                    Some(d) => {
                        self.large(record.oid, &d, &what)?;
                        Some(d.size())
                    }
                    None => None,
                }
            }
        };
        self.compare(&record, &what)?;
        tally.objects += 1;
        tally.unnamed += u64::from(record.name.is_none());
        tally.bytes = tally.bytes.saturating_add(size.unwrap_or(0));
        let len = bytes.len() as u64;
        tally.small.add(record.collection, (1, len, size.unwrap_or(0)));
        self.objects += u64::from(self.dropped.is_none());
        Ok(())
    }
}
