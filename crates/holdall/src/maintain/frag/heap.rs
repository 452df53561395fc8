//! Heap files: how full their pages are, and every record.
//!
//! Owns: [`Fill`], how full pages are, in constant memory.

use super::CollectionHeap;
use super::contract::{Keys, heap_pages, map_pages, record_bytes};
use super::map::PageUse;
use super::walk::Walk;
use crate::engine::catalog::Collection;
use crate::heap::{HeapFile, Location};
use crate::object::{Body, Record};
use crate::read::state::ReadState;
use holdall_core::collection_entry::NumberKey;
use holdall_core::heap_page::{HeapPage, max_record};
use holdall_core::heap_record::divided::{Part, part};
use holdall_core::page::{self, PageKind};
use holdall_core::page_map_node::FRESH;
use holdall_core::segment_tree::Descriptor;
use holdall_core::{Error, Oid, PageNo, PageRead, PageRun, Result};

/// The share to which pages are filled, as the placement of records does.
const FULL: f64 = 0.94;
const CLASSES: usize = 64;

/// Pages by how full they are.
#[derive(Debug)]
struct Fill {
    /// Pages and used bytes of each class, the emptiest first.
    classes: [(u64, u64); CLASSES],
    max: usize,
    /// Second parts of records.
    continuations: u64,
}

impl Fill {
    fn add(&mut self, used: usize) {
        let class = (used * CLASSES / self.max.max(1)).min(CLASSES - 1);
        if let Some((pages, bytes)) = self.classes.get_mut(class) {
            *pages += 1;
            *bytes += used as u64;
        }
    }

    fn sums(&self) -> (u64, u64) {
        self.classes.iter().fold((0, 0), |(p, b), (pages, bytes)| (p + pages, b + bytes))
    }

    /// Pages that need not be there if all were full, and the bytes of records in the emptiest.
    fn slack(&self) -> (u64, u64) {
        let (pages, used) = self.sums();
        let needed = (used as f64 / (self.max as f64 * FULL)).ceil() as u64;
        let slack = pages.saturating_sub(needed);
        let (mut left, mut cost) = (slack, 0);
        for (pages, bytes) in self.classes {
            let taken = pages.min(left);
            left -= taken;
            cost += bytes.checked_div(pages).unwrap_or(0) * taken;
        }
        (slack, cost)
    }
}

/// What a collection holds, as far as its pages follow from that.
#[derive(Debug, Default)]
struct Content {
    names: Keys,
    /// By [`record_bytes`].
    record_bytes: u64,
}

impl Walk<'_> {
    /// Walks the heap file of a collection and its objects.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`], [`Error::SnapshotTooOld`].
    pub(super) fn heap(&mut self, name: &str, c: &Collection) -> Result<()> {
        let max = max_record(self.layout.page_size());
        let mut fill = Fill { classes: [(0, 0); CLASSES], max, continuations: 0 };
        let (mut fresh, mut content) = (0, Content::default());
        for index in 0..c.heap.map().len() {
            self.tick();
            let Some((no, class)) = c.heap.map().get(self.state, index)? else { continue };
            self.map.change(PageRun::new(no, 1), PageUse::Metadata, PageUse::Heap);
            if class == FRESH {
                fresh += 1;
            } else {
                self.heap_page(name, c.number, (index, no), (&mut fill, &mut content))?;
            }
        }
        self.add_most(c, &content);
        let (pages, used) = fill.sums();
        let (slack, cost) = fill.slack();
        let capacity = pages * max as u64;
        self.sums.heap_used += used;
        self.sums.heap_capacity += capacity;
        self.sums.slack_pages += slack;
        self.sums.slack_cost += cost;
        self.heaps.push(CollectionHeap {
            name: name.to_owned(),
            records: c.heap.records().saturating_sub(fill.continuations),
            pages,
            fresh_pages: fresh,
            utilization: share(used, capacity),
            slack_bytes: slack * self.page_size(),
        });
        Ok(())
    }

    /// Adds the most pages that a collection of this content may take.
    fn add_most(&mut self, c: &Collection, content: &Content) {
        let (len, size) = (c.heap.map().len(), self.layout.page_size());
        self.sums.most_heap_pages += heap_pages(content.record_bytes, len, size);
        let names = content.names.pages(size);
        // Its own page too.
        self.sums.most_metadata_pages += 1 + names + map_pages(len, size);
    }

    fn heap_page(
        &mut self,
        collection: &str,
        number: u64,
        (index, no): (u32, PageNo),
        (fill, content): (&mut Fill, &mut Content),
    ) -> Result<()> {
        let bytes = self.state.page(no, PageKind::Heap)?;
        let heap = HeapPage::new(&bytes, no)?;
        if page::owner(&bytes) != number || heap.index() != index {
            return Err(Error::page(no, format!("is not heap page {index} of its collection")));
        }
        fill.add(fill.max.saturating_sub(heap.free_bytes()));
        for found in heap.iter() {
            let (slot, range) = found?;
            let short = || Error::page(no, "a record leaves its page");
            let found = bytes.get(range).ok_or_else(short)?;
            if part(found)?.1 == Part::Continuation {
                fill.continuations += 1;
                continue;
            }
            let loc = Location { page: no, slot };
            if !is_alive(self.state, part(found)?.0, loc)? {
                continue;
            }
            let record = HeapFile::whole(self.state, loc)?;
            let most = record_bytes(record.len() as u64, self.layout.page_size());
            content.record_bytes = content.record_bytes.saturating_add(most);
            let record = Record::parse(&record)?;
            let number =
                if record.collection == 0 { 0 } else { NumberKey::new(record.collection).len() };
            record.name.iter().for_each(|name| content.names.add(number + name.len()));
            let name = record.name.map_or(0, <[u8]>::len);
            self.sums.name_bytes += (name + record.raw_attributes().len()) as u64;
            match record.body {
                Body::Small(bytes) => {
                    self.sums.small += 1;
                    self.sums.object_bytes += bytes.len() as u64;
                }
                Body::Large(bytes) => {
                    self.large(collection, &record, &Descriptor::decode(bytes)?)?;
                }
            }
        }
        Ok(())
    }
}

/// Whether the object at a record's place is still there: one of a dropped collection may have been
/// given up before its page.
fn is_alive(state: &ReadState, oid: Oid, loc: Location) -> Result<bool> {
    if state.root().drops.root.is_none() {
        return Ok(true);
    }
    match state.root().handles.lookup(state, oid) {
        Ok(found) => Ok(found == loc),
        Err(Error::Dangling(_) | Error::NotFound(_)) => Ok(false),
        Err(e) => Err(e),
    }
}

/// The share; of nothing all.
pub(super) fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 1.0 } else { part as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emptiest_pages_are_slack() {
        let mut fill = Fill { classes: [(0, 0); CLASSES], max: 1000, continuations: 0 };
        (0..94).for_each(|_| fill.add(900));
        (0..20).for_each(|_| fill.add(100));
        // 86,600 bytes fit into 93 pages; 20 of the 21 pages to empty hold 100 bytes.
        assert_eq!(fill.slack(), (21, 20 * 100 + 900));
        let full = Fill { classes: [(0, 0); CLASSES], max: 1000, continuations: 0 };
        assert_eq!(full.slack(), (0, 0));
    }
}
