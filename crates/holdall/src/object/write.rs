//! Creating, replacing and deleting objects inside a transaction.

use super::{Body, Head, ObjectLocation, Record, Shares, StoredHints};
use crate::handle::{HandleCursor, HandleTable};
use crate::heap::HeapFile;
use crate::segment_tree::{MAX_INLINE, TreeWrite, slices_of};
use crate::space::{SpaceTx, Staged};
use holdall_core::handle_page::Location;
use holdall_core::heap_page::max_record;
use holdall_core::heap_placement::Placement;
use holdall_core::heap_record::divided::{Part, part};
use holdall_core::mutation::{self, Mutation};
use holdall_core::segment_tree::{self, APPEND_MOSTLY, Descriptor, MAY_HOLD_SHARED_RUNS, Slice};
use holdall_core::{NameValue, Oid, PageNo, PageRead, Result};

/// Bytes on their way into an object.
#[derive(Debug)]
pub enum Data<'a> {
    /// In memory, few enough for a record.
    Small(&'a [u8]),
    /// Staged in runs.
    Staged(Staged),
    /// The whole of another large object, whose runs are shared.
    Shared(Shares),
    /// Parts in order; only the last may have a tail.
    Parts(Vec<StagedPart>),
}

/// A part of an object on its way in.
#[derive(Debug)]
pub enum StagedPart {
    /// Bytes in runs.
    Bytes(Box<Staged>),
    /// This many bytes that were never written.
    Zeros(u64),
}

/// What a transaction needs to change one collection's objects.
#[derive(Debug)]
pub struct ObjectWrite<'a> {
    /// The transaction.
    pub tx: &'a mut SpaceTx,
    /// The store's handles.
    pub handles: &'a mut HandleTable,
    /// Where the last handle went.
    pub cursor: &'a mut HandleCursor,
    /// The collection's heap file.
    pub heap: &'a mut HeapFile,
    /// Its placement state.
    pub placement: &'a mut Placement,
    /// The collection's number if it is small, else 0: records note it.
    pub collection: u64,
    /// Bytes of a small collection's records.
    pub record_bytes: u64,
    /// The collection's hints, for objects without their own.
    pub hints: StoredHints,
    /// The recovery epoch, of which versions are.
    pub epoch: u32,
    /// The transaction's time.
    pub time: u64,
    /// Memory in which records are put together, kept from one to the next.
    pub scratch: &'a mut Vec<u8>,
}

/// Bytes that a descriptor with inline slices, but no tail, may take in a record.
const DESCRIPTOR_MOST: usize = 32 + MAX_INLINE * 24;

/// Most bytes of an inline tail for an object of `size` bytes with this head: as
/// [`tail_limit`] says, and never more than a record has room for.
pub fn max_tail(head: &Head<'_>, page_size: usize, flags: u8, size: u64) -> usize {
    let room = max_record(page_size).saturating_sub(head.longest().record_len(DESCRIPTOR_MOST));
    room.min(tail_limit(page_size, flags, size))
}

/// Most bytes of an inline tail by an object's size and its descriptor's flags: half a page; up
/// to a whole one if the flags say that it mostly grows, or if the rest of that page would
/// be more than an eighth of the object.
pub fn tail_limit(page_size: usize, flags: u8, size: u64) -> usize {
    if flags & APPEND_MOSTLY != 0 {
        return page_size - 1;
    }
    let rest = usize::try_from(size / 8).unwrap_or(usize::MAX).max(1);
    page_size.saturating_sub(rest).max(page_size / 2)
}

/// A record's place as the owner hint of its pages and runs.
pub(super) fn owner_of(oid: Oid) -> u64 {
    u64::from(oid.page) << 16 | u64::from(oid.slot)
}

impl ObjectWrite<'_> {
    /// The time that a changed object's record notes (rule 26).
    pub(super) fn time_of_change(&self, before: &Head<'_>) -> u64 {
        if mutation::is(Mutation::R26Time) { before.time } else { self.time }
    }

    /// Creates an object; returns what its names entry says. `near`: an object it should lie close
    /// to.
    ///
    /// # Errors
    /// [`holdall_core::Error::Full`] and those of the pages below.
    pub fn create(
        &mut self,
        unique: u32,
        head: &Head<'_>,
        data: Data<'_>,
        near: Option<Oid>,
        hints: Option<StoredHints>,
    ) -> Result<NameValue> {
        // The record names its OID and the handle the record's place: the handle is chosen
        // first and filled last. Between the two no handle comes or goes.
        let head = &head.of(if mutation::is(Mutation::R50Number) { 0 } else { self.collection });
        let near_loc = near.and_then(|n| self.handles.lookup(&*self.tx, n).ok());
        let spot = self.handles.next(self.tx, self.cursor, near)?;
        let record = self.build(spot.oid(unique), head, data, hints)?;
        let loc = self.place(&record, near_loc.map(|l| l.page))?;
        self.record_bytes = self.record_bytes.saturating_add(record.len() as u64);
        *self.scratch = record;
        let oid = self.handles.fill(self.tx, spot, unique, loc)?;
        Ok(NameValue { oid, place: Some(loc) })
    }

    /// What a names entry of an object says. Cost: as [`HandleTable::lookup`].
    ///
    /// # Errors
    /// As there.
    pub fn name_value(&self, oid: Oid) -> Result<NameValue> {
        Ok(NameValue { oid, place: Some(self.handles.lookup(&*self.tx, oid)?) })
    }

    /// As [`ObjectWrite::create`], of an object that had `oid` in another store; false, with the
    /// transaction to be given up, if another has its slot.
    ///
    /// # Errors
    /// As [`ObjectWrite::create`].
    pub fn create_as(
        &mut self,
        oid: Oid,
        head: &Head<'_>,
        data: Data<'_>,
        hints: Option<StoredHints>,
    ) -> Result<bool> {
        let record = self.build(oid, &head.of(self.collection), data, hints)?;
        let loc = self.place(&record, None)?;
        self.record_bytes = self.record_bytes.saturating_add(record.len() as u64);
        *self.scratch = record;
        self.handles.claim(self.tx, oid, loc)
    }

    /// The record of an object; `hints` are its own, if it has any.
    pub(super) fn build(
        &mut self,
        oid: Oid,
        head: &Head<'_>,
        data: Data<'_>,
        hints: Option<StoredHints>,
    ) -> Result<Vec<u8>> {
        let own = hints.filter(|h| *h != self.hints);
        let StoredHints { threshold, flags } = own.unwrap_or(self.hints);
        match data {
            Data::Small(bytes) if own.is_none() && self.fits_record(head, bytes.len()) => {
                Ok(head.small_in(std::mem::take(self.scratch), oid, bytes))
            }
            // Hints of its own need a descriptor to lie in; and bytes that just fit a record may
            // not fit one that notes a change too.
            Data::Small(bytes) if bytes.len() <= self.max_tail(head, flags, bytes.len() as u64) => {
                let (tree, tail) = (segment_tree::Tree::empty(), bytes.to_vec());
                Ok(head.large(oid, &Descriptor { flags, threshold, tree, tail }))
            }
            Data::Small(bytes) => self.promote(oid, head, bytes, hints),
            Data::Staged(mut staged) => {
                let tail = std::mem::take(&mut staged.tail);
                let len = staged.len;
                let runs = self.tx.adopt(staged, owner_of(oid))?;
                let slices = slices_of(&runs, len, self.tx.page_size() as u64);
                let tree = self.plant(oid, slices)?;
                Ok(head.large(oid, &Descriptor { flags, threshold, tree, tail }))
            }
            Data::Parts(parts) => {
                let (mut slices, mut tail) = (Vec::new(), Vec::new());
                for part in parts {
                    match part {
                        StagedPart::Zeros(len) => slices.push(Slice::zeros(len)),
                        StagedPart::Bytes(mut staged) => {
                            tail = std::mem::take(&mut staged.tail);
                            let len = staged.len;
                            let runs = self.tx.adopt(*staged, owner_of(oid))?;
                            slices.extend(slices_of(&runs, len, self.tx.page_size() as u64));
                        }
                    }
                }
                let tree = self.plant(oid, slices)?;
                Ok(head.large(oid, &Descriptor { flags, threshold, tree, tail }))
            }
            Data::Shared(Shares { slices, tail, flags, hints, .. }) => {
                let tree = self.plant(oid, slices)?;
                let mut d = Descriptor { flags, threshold: 0, tree, tail };
                hints.apply(&mut d);
                let d = self.fit_tail(oid, head, d)?;
                Ok(head.large(oid, &d))
            }
        }
    }

    /// The store of an object's tree; `flags` are those of its descriptor.
    pub(super) fn tree(&mut self, oid: Oid, flags: u8) -> TreeWrite<'_> {
        let shared = flags & MAY_HOLD_SHARED_RUNS != 0;
        TreeWrite { tx: self.tx, owner: owner_of(oid), shared, grows: false }
    }

    fn plant(&mut self, oid: Oid, slices: Vec<Slice>) -> Result<segment_tree::Tree> {
        let mut store = self.tree(oid, 0);
        segment_tree::build(&mut store, slices, MAX_INLINE)
    }

    /// Changes an object's name or attributes.
    ///
    /// # Errors
    /// As [`ObjectWrite::replace`].
    pub fn set_head(
        &mut self,
        oid: Oid,
        change: impl FnOnce(Head<'static>) -> Head<'static>,
    ) -> Result<()> {
        let place = ObjectLocation::find(&*self.tx, self.handles, oid)?;
        let bytes = place.record(&*self.tx)?;
        let record = Record::parse(&bytes)?;
        let mut head = change(record.head());
        if head.attributes != record.raw_attributes() {
            (head.change, head.time) = (head.change.next(self.epoch), self.time_of_change(&head));
        }
        let record = match record.body {
            Body::Small(b) if self.fits_record(&head, b.len()) => head.small(oid, b),
            // A longer name or attribute leaves no room for the bytes: they move out.
            Body::Small(b) => self.promote(oid, &head, b, None)?,
            Body::Large(b) => {
                let d = self.fit_tail(oid, &head, Descriptor::decode(b)?)?;
                head.large(oid, &d)
            }
        };
        self.put_record(place, &record)
    }

    /// Changes an object's hints. Its segments stay as they are; edits follow the new ones.
    ///
    /// # Errors
    /// As [`ObjectWrite::replace`].
    pub fn set_hints(&mut self, oid: Oid, hints: StoredHints) -> Result<()> {
        let place = ObjectLocation::find(&*self.tx, self.handles, oid)?;
        let bytes = place.record(&*self.tx)?;
        let record = Record::parse(&bytes)?;
        let head = record.head();
        let record = match record.body {
            Body::Small(b) => self.build(oid, &head, Data::Small(b), Some(hints))?,
            Body::Large(b) => {
                let mut d = Descriptor::decode(b)?;
                hints.apply(&mut d);
                let d = self.fit_tail(oid, &head, d)?;
                head.large(oid, &d)
            }
        };
        self.put_record(place, &record)
    }

    /// Whether a record with this head has room for `len` bytes.
    pub(super) fn fits_record(&self, head: &Head<'_>, len: usize) -> bool {
        head.record_len(len) <= max_record(self.tx.page_size())
    }

    pub(super) fn max_tail(&self, head: &Head<'_>, flags: u8, size: u64) -> usize {
        max_tail(head, self.tx.page_size(), flags, size)
    }

    fn promote(
        &mut self,
        oid: Oid,
        head: &Head<'_>,
        bytes: &[u8],
        hints: Option<StoredHints>,
    ) -> Result<Vec<u8>> {
        let alloc = self.tx.alloc().clone();
        let len = Some(bytes.len() as u64);
        let mut stager = crate::space::Stager::new(&alloc, self.tx.pager(), len);
        stager.write(bytes)?;
        let flags = hints.unwrap_or(self.hints).flags;
        let staged = stager.finish(self.max_tail(head, flags, bytes.len() as u64))?;
        self.build(oid, head, Data::Staged(staged), hints)
    }

    /// Moves the inline tail into a segment if the new head leaves it no room.
    pub(super) fn fit_tail(
        &mut self,
        oid: Oid,
        head: &Head<'_>,
        mut d: Descriptor,
    ) -> Result<Descriptor> {
        if d.tail.len() <= self.max_tail(head, d.flags, d.size()) {
            return Ok(d);
        }
        let tail = std::mem::take(&mut d.tail);
        let size = d.size();
        let options = crate::segment_tree::tree_options(self.tx.alloc().layout(), 0, d.threshold);
        let mut store = self.tree(oid, d.flags);
        let content = segment_tree::Content::Bytes(&tail);
        segment_tree::splice(&mut store, &d, size..size, content, &options)
    }

    /// Puts a record into the heap, if need be by moving shorter ones away, or in two parts.
    pub(super) fn place(&mut self, record: &[u8], near: Option<PageNo>) -> Result<Location> {
        self.placement.tighten(self.tx.alloc().is_short(0));
        let at_hand = self.heap.insert_at_hand(self.tx, self.placement, record, near)?;
        if let Some(loc) = at_hand {
            self.placement.tighten(false);
            return Ok(loc);
        }
        let plan = self.heap.relocate(&*self.tx, self.placement, record.len())?;
        if let Some(plan) = &plan {
            self.placement.close(Some(plan.index));
            for loc in &plan.records {
                self.relocate(*loc)?;
            }
            self.placement.close(None);
        }
        self.placement.tighten(false);
        let near = plan.map(|c| c.page);
        if near.is_none()
            && let Some(loc) = self.heap.insert_divided(self.tx, self.placement, record)?
        {
            return Ok(loc);
        }
        self.heap.insert(self.tx, self.placement, record, near)
    }

    /// Moves a record, or a part of one, to another page; its object keeps its OID.
    fn relocate(&mut self, loc: Location) -> Result<()> {
        let record = HeapFile::get(&*self.tx, loc)?;
        let new = self.heap.insert(self.tx, self.placement, &record, None)?;
        self.moved(&record, loc, new)
    }

    /// After a record, or a part of one, was put at `new` too: deletes it at `old`, and has what
    /// leads there lead to the new place.
    pub(super) fn moved(&mut self, record: &[u8], old: Location, new: Location) -> Result<()> {
        let (oid, part) = part(record)?;
        self.heap.delete(self.tx, self.placement, old)?;
        match part {
            Part::Continuation => {
                let first = self.handles.lookup(&*self.tx, oid)?;
                HeapFile::relink(self.tx, first, oid, (old, new))
            }
            Part::Whole | Part::First(_) => self.handles.update(self.tx, oid, new),
        }
    }
}
