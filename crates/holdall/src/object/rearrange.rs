//! Moving what an object consists of, for maintenance: its bytes, attributes, name and version
//! stay as they are.

use super::{Body, ObjectLocation, ObjectWrite, Record, read_record};
use crate::handle::HandleTable;
use crate::heap::{HeapFile, Location};
use crate::segment_tree::{DataRead, TreeRead, slices_of};
use crate::space::Staged;
use holdall_core::mutation::{self, Mutation};
use holdall_core::segment_tree::{self, Content, Descriptor, MAY_HOLD_SHARED_RUNS, Slice};
use holdall_core::{Error, Oid, PageRead, Result};
use std::ops::Range;

/// A part of a large object: the byte it begins with, and the slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectPiece {
    /// The first of the object's bytes in it.
    pub start: u64,
    /// Where they lie.
    pub slice: Slice,
}

impl ObjectPiece {
    /// The byte behind its last.
    pub fn end(&self) -> u64 {
        self.start + self.slice.len
    }
}

/// The pieces of a large object in order, and whether it may share some with copies; none of a
/// small one. Cost: all nodes of its tree.
///
/// # Errors
/// As [`read_record`].
pub fn pieces<D: DataRead + ?Sized>(
    pages: &D,
    handles: &HandleTable,
    oid: Oid,
) -> Result<Option<(Descriptor, Vec<ObjectPiece>)>> {
    let record = read_record(pages, handles, oid)?;
    let Body::Large(bytes) = Record::parse(&record)?.body else { return Ok(None) };
    let d = Descriptor::decode(bytes)?;
    let all = pieces_of(&TreeRead(pages), &d, 0..d.tree.size)?;
    Ok(Some((d, all)))
}

fn pieces_of<S: segment_tree::NodeRead + ?Sized>(
    store: &S,
    d: &Descriptor,
    range: Range<u64>,
) -> Result<Vec<ObjectPiece>> {
    let located = segment_tree::slices(store, &d.tree, range);
    located.map(|l| l.map(|l| ObjectPiece { start: l.start, slice: l.slice })).collect()
}

impl ObjectWrite<'_> {
    /// Moves the records of heap page `index`, and parts of records, into pages before it, and
    /// returns how many bytes. `None` if one of them found no room; those before it have moved.
    /// Cost: the page, those that take its records, a handle page for each record, or a page that
    /// leads to it.
    ///
    /// # Errors
    /// Page access, after which the transaction must be aborted.
    pub fn empty_heap_page(&mut self, index: u32) -> Result<Option<u64>> {
        let records = self.heap.page_records(&*self.tx, index)?;
        let locations: Vec<Location> = records.into_iter().map(|(loc, _)| loc).collect();
        let (mut moved, mut near) = (0, None);
        for loc in locations {
            // As it is now: a move of its continuation may have changed it.
            let record = HeapFile::get(&*self.tx, loc)?;
            let into = (index, &mut near);
            let new = self.heap.insert_before(self.tx, self.placement, &record, into)?;
            let Some(new) = new else { return Ok(None) };
            moved += record.len() as u64;
            self.moved(&record, loc, new)?;
        }
        Ok(Some(moved))
    }

    /// Puts staged data in the place of the same bytes of `seen`, neighbouring pieces of an
    /// object: all of them, or a part that begins with a page. Returns whether it did: not if
    /// the object has changed there, or may share them with a copy. Cost: the record and the
    /// nodes above them.
    ///
    /// # Errors
    /// As [`ObjectWrite::splice`].
    pub fn exchange(
        &mut self,
        oid: Oid,
        (seen, range): (&[ObjectPiece], Range<u64>),
        staged: Staged,
    ) -> Result<bool> {
        let place = match ObjectLocation::find(&*self.tx, self.handles, oid) {
            Err(Error::Dangling(_) | Error::NotFound(_)) => return Ok(false),
            other => other?,
        };
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else { return Ok(false) };
        let whole = first.start..last.end();
        let bytes = place.record(&*self.tx)?;
        let record = Record::parse(&bytes)?;
        let Body::Large(d) = record.body else { return Ok(false) };
        let d = Descriptor::decode(d)?;
        if d.flags & MAY_HOLD_SHARED_RUNS != 0
            || whole.end > d.tree.size
            || pieces_of(&TreeRead(&*self.tx), &d, whole)? != seen
                && !mutation::is(Mutation::R31Compare)
        {
            return Ok(false);
        }
        let head = record.head();
        drop(bytes);
        let (owner, len) = (super::write::owner_of(oid), staged.len);
        let runs = self.tx.adopt(staged, owner)?;
        let slices = slices_of(&runs, len, self.tx.page_size() as u64);
        let content = Content::Staged { head: &[], slices, tail: &[] };
        let record = self.edit(oid, &head, &d, range, content)?;
        self.put_record(place, &record)?;
        Ok(true)
    }
}
