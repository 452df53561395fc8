//! From small to large and back: where a collection's objects and names lie follows their number.
//!
//! Owns: the border. Small collections share a tree of names and a heap file, so that each costs
//! bytes; large ones have their own. OIDs, versions and segments stay: records are written anew, in
//! one transaction with the call that crosses the border.

use super::opened::SHARED;
use super::{Begun, ObjectsMut};
use crate::engine::Options;
use crate::engine::catalog::Collection;
use crate::heap::growth;
use crate::names::AppendCursor;
use crate::object::ObjectLocation;
use crate::space::{Allocator, Class, Near};
use holdall_core::collection_entry::{Counts, NumberKey};
use holdall_core::heap_page::max_record;
use holdall_core::mutation::{self, Mutation};
use holdall_core::names_node::capacity;
use holdall_core::page::PageKind;
use holdall_core::{Error, Oid, PageRead, PageWrite, Result};
use std::collections::BTreeSet;
use std::ops::Bound;

/// Bytes that a name's cell takes beside the name, and a handle.
const ENTRY: u64 = 48;

impl Options {
    /// Most objects of a small collection, and bytes of their records: few enough that one
    /// transaction can move them all.
    pub(super) fn most_small(&self) -> (u64, u64) {
        let (t, pages) = (&self.tuning, self.limits().dirty_pages as u64);
        (t.small_objects.min(pages / 4), t.small_bytes.min(t.log_bytes / 16))
    }
}

impl ObjectsMut {
    /// Before an object is made in the current collection, which is then there: has it be large
    /// if the object is to have no name, since only names lead to what small ones hold. Returns
    /// the collection if it is small.
    pub(super) fn make_fit_for(&mut self, nameless: bool) -> Result<Option<Collection>> {
        let result = self.try_to_make_fit(nameless);
        self.fail_with(result)
    }

    fn try_to_make_fit(&mut self, nameless: bool) -> Result<Option<Collection>> {
        self.current_or_new(nameless)?;
        let Some(c) = self.current()?.filter(Collection::is_small) else { return Ok(None) };
        if !nameless {
            return Ok(Some(c));
        }
        let all = self.small_names(&c)?;
        self.make_large(self.current, &c, all).map(|()| None)
    }

    /// The last object by name of a small collection: others are put close to it.
    pub(super) fn last_of(&mut self, c: &Collection) -> Result<Option<Oid>> {
        if c.objects == 0 {
            return Ok(None);
        }
        let begun = self.begin()?;
        let number = NumberKey::new(c.number);
        let end = crate::names::after_prefix(&number).map_or(Bound::Unbounded, Bound::Excluded);
        let end = end.as_ref().map(Vec::as_slice);
        let last = c.names.iter_back(&begun.tx, end).next().transpose()?;
        let own = last.filter(|(key, _)| key.starts_with(&number));
        own.map(|(_, value)| crate::engine::catalog::oid_of(&value)).transpose()
    }

    /// Makes the current collection large if it has become so. Without room it stays as it is
    /// until a later transaction changes it.
    pub(super) fn grow_if_over(&mut self) -> Result<()> {
        let slot = self.current;
        let Some(c) = self.opened.get(slot).filter(|c| c.is_small()) else { return Ok(()) };
        let (objects, bytes) = self.inner.options.most_small();
        if c.objects <= objects && c.record_bytes <= bytes || self.opened.is_put_off(slot) {
            return Ok(());
        }
        let Some(c) = self.opened.view(slot) else { return Ok(()) };
        let all = self.small_names(&c)?;
        if mutation::is(Mutation::R51PutOff) || self.has_room_for(&c, &all)? {
            return self.make_large(slot, &c, all);
        }
        self.opened.put_off(slot);
        Ok(())
    }

    /// Whether a small collection can become large in this transaction, which must not fail for
    /// it: the pages are there, and the limits of changed pages and of the log are far.
    fn has_room_for(&mut self, c: &Collection, all: &[(Vec<u8>, Oid)]) -> Result<bool> {
        let log = self.inner.options.tuning.log_bytes / 4;
        let limit = self.inner.pager.limits().dirty_pages as u64;
        let Begun { tx, root, .. } = self.begin()?;
        let (max, node) = (max_record(tx.page_size()) as u64, capacity(tx.page_size()) as u64);
        let names: u64 = all.iter().map(|(name, _)| name.len() as u64 + ENTRY).sum();
        let mut touched = BTreeSet::new();
        for (_, oid) in all {
            let place = ObjectLocation::find(&*tx, &root.handles, *oid)?;
            touched.insert(place.page());
            touched.insert(root.handles.page_of(&*tx, *oid)?);
        }
        let heap = (2 * c.record_bytes).div_ceil(max);
        let new = heap + u64::from(growth(heap as u32)) + (2 * names).div_ceil(node) + 3;
        let changed = tx.changed_pages() as u64 + touched.len() as u64 + names.div_ceil(node) + 8;
        if changed > limit / 2 || 2 * c.record_bytes + 2 * names > log {
            return Ok(false);
        }
        are_free(tx.alloc(), new)
    }

    /// Moves all objects of the small collection in `slot` into pages of its own.
    fn make_large(&mut self, slot: usize, c: &Collection, all: Vec<(Vec<u8>, Oid)>) -> Result<()> {
        let begun = self.begin()?;
        begun.tail.forget();
        let page = begun.tx.new_page(PageKind::Collection, c.number, None)?;
        let empty = Collection::load(&begun.tx, page)?;
        let Collection { objects, logical_bytes, hints, .. } = *c;
        let large = Collection { objects, logical_bytes, hints, ..empty };
        self.move_all(slot, all, large).map(drop)
    }

    /// Moves objects and names of the collection in `slot` to where `into`, the same one, is.
    /// Returns what is left behind.
    fn move_all(
        &mut self,
        slot: usize,
        all: Vec<(Vec<u8>, Oid)>,
        into: Collection,
    ) -> Result<Option<Collection>> {
        let outer = std::mem::replace(&mut self.current, slot);
        let result = self.try_to_move_all(slot, all, into);
        self.current = outer;
        result
    }

    fn try_to_move_all(
        &mut self,
        slot: usize,
        all: Vec<(Vec<u8>, Oid)>,
        into: Collection,
    ) -> Result<Option<Collection>> {
        let handed = self.with_objects_of(|objects, c| {
            let mut handed = Vec::with_capacity(all.len());
            for (name, oid) in &all {
                handed.push(objects.hand_over(*oid)?);
                if !mutation::is(Mutation::R51Names) {
                    c.names.remove(objects.tx, &c.key(name))?;
                }
            }
            Ok(handed)
        })?;
        let left = self.opened.view(slot);
        self.opened.set(slot, Some(into));
        self.with_objects_of(|objects, c| {
            for record in handed {
                objects.take_over(record)?;
            }
            if c.is_small() {
                for (name, oid) in &all {
                    let value = objects.name_value(*oid)?.encode();
                    c.names.insert(objects.tx, c.owner(), &c.key(name), &value)?;
                }
                return Ok(());
            }
            let values = all.iter().map(|(_, oid)| Ok(objects.name_value(*oid)?.encode()));
            let values: Vec<_> = values.collect::<Result<_>>()?;
            let cells = all.iter().zip(&values).map(|((name, _), value)| (&**name, &value[..]));
            c.names.append(objects.tx, c.number, cells, &mut AppendCursor::default())
        })?;
        Ok(left)
    }

    /// Makes collection `number` small if it is large and far below the border, and all of its
    /// objects have names. Returns whether it did.
    ///
    /// # Errors
    /// Those of page access; the transaction can then only be given up.
    pub(crate) fn make_small(&mut self, number: u64) -> Result<bool> {
        let (objects, bytes) = self.inner.options.most_small();
        let Some(slot) = self.slot_of_number(number)?.filter(|s| *s != 0 && *s != SHARED) else {
            return Ok(false);
        };
        let Some(c) = self.opened.view(slot).filter(|c| !c.is_small()) else { return Ok(false) };
        let begun = self.begin()?;
        let (used, _) = c.heap.utilization(begun.tx.page_size());
        if c.unnamed > 0 || c.objects > objects / 4 || used > bytes / 4 {
            return Ok(false);
        }
        let mut all = Vec::new();
        for entry in c.names.iter(&begun.tx, Bound::Unbounded) {
            let (name, value) = entry?;
            all.push((name, crate::engine::catalog::oid_of(&value)?));
        }
        if all.len() as u64 != c.objects {
            return Ok(false);
        }
        let result = self.try_to_make_small(slot, c, all);
        self.fail_with(result).map(|()| true)
    }

    fn try_to_make_small(
        &mut self,
        slot: usize,
        c: Collection,
        all: Vec<(Vec<u8>, Oid)>,
    ) -> Result<()> {
        self.begin()?.tx.set_class(Class::Shrink);
        self.shared_or_new()?;
        let begun = self.begin()?;
        begun.tail.forget();
        let counts = Counts {
            objects: c.objects,
            logical_bytes: c.logical_bytes(self.opened.name(slot))?,
            record_bytes: 0,
            threshold: c.hints.threshold,
            flags: c.hints.flags,
        };
        let small = Collection::small(c.number, counts, (c.names, c.heap));
        let left = self.move_all(slot, all, small)?;
        let Begun { tx, cursors, .. } = self.begin()?;
        cursors.forget(c.number);
        if let Some(mut left) = left {
            left.names.clear(tx)?;
            left.heap.drop_pages(tx, u32::MAX)?;
        }
        tx.free_page(c.page)
    }
}

/// Whether this many pages can be had without what is kept for deleting.
fn are_free(alloc: &Allocator, pages: u64) -> Result<bool> {
    if alloc.is_short(pages) {
        return Ok(false);
    }
    let (mut runs, mut left, mut free) = (Vec::new(), pages, true);
    while free && left > 0 {
        match alloc.reserve_pages(left, Near::Anywhere, Class::Data) {
            Ok(run) => {
                left = left.saturating_sub(run.len);
                runs.push(run);
            }
            Err(Error::Full(_)) => free = false,
            Err(e) => return Err(e),
        }
    }
    runs.into_iter().try_for_each(|run| alloc.unreserve(run))?;
    Ok(free)
}
