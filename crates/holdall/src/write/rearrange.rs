//! What maintenance does inside a transaction: moving records and segments of objects.

use super::{Durability, ObjectsMut, WriteTx, empty_dropped, has_dropped};
use crate::engine::Inner;
use crate::engine::catalog::Known;
use crate::object::ObjectPiece;
use crate::space::{Class, Staged};
use crate::txn::Snapshot;
use holdall_core::collection_entry::{Entry, SMALL_OWNER};
use holdall_core::heap_page::max_record;
use holdall_core::mutation::{self, Mutation};
use holdall_core::{Oid, Result};
use std::ops::Range;
use std::sync::Arc;

/// What [`ObjectsMut::empty_heap_pages`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Emptied {
    /// Pages that hold no record any more.
    pub(crate) pages: u64,
    /// Bytes of records moved.
    pub(crate) moved: u64,
    /// Pages whose records found no room.
    pub(crate) stuck: u64,
    /// Nothing more is to be gained.
    pub(crate) done: bool,
}

/// Pages looked at in one transaction.
const MOST_PAGES: u32 = 128;

/// Bytes of records that one transaction moves: others' commits wait for no more.
pub(crate) const MOVE_BYTES: u64 = 16 << 10;
/// Pages in a row whose records find no room, after which those before them are not tried: what
/// keeps the file thin is that its records round badly.
pub(crate) const MOST_IN_VAIN: u64 = 512;

/// Collections of the catalog looked at while others wait.
const MOST_KNOWN: usize = 1000;

/// The heap files of a store one after another, by their owners: what small collections share, and
/// that of each large one. They are read under the writer's lock, some at a time: a snapshot could
/// be given up meanwhile. Cost: the nodes of the catalog.
pub(crate) struct HeapFiles<'a> {
    inner: &'a Arc<Inner>,
    ready: std::vec::IntoIter<u64>,
    /// The number to go on with; None at the end.
    next: Option<u64>,
}

impl<'a> HeapFiles<'a> {
    pub(crate) fn new(inner: &'a Arc<Inner>) -> Self {
        Self { inner, ready: vec![SMALL_OWNER].into_iter(), next: Some(0) }
    }

    /// The next one.
    ///
    /// # Errors
    /// As [`Store::begin_write`](crate::Store::begin_write), and those of page access.
    pub(crate) fn next(&mut self) -> Result<Option<u64>> {
        loop {
            if let Some(owner) = self.ready.next() {
                return Ok(Some(owner));
            }
            let Some(next) = self.next else { return Ok(None) };
            let mut tx = WriteTx::new(self.inner, None)?;
            let begun = tx.begin()?;
            let known = begun.root.known_from(&begun.tx, next, MOST_KNOWN)?;
            self.next = known.last().filter(|_| known.len() == MOST_KNOWN).map(|k| k.number + 1);
            let is_large = |known: &Known| matches!(known.entry, Entry::Large(_));
            let large: Vec<u64> = known.into_iter().filter(is_large).map(|k| k.number).collect();
            self.ready = large.into_iter();
        }
    }
}

/// Empties sparse heap pages of all collections until there are `pages` of them, for a request
/// that else is refused. Returns whether there was one.
///
/// # Errors
/// Those of the transactions; what they moved before has happened.
pub(crate) fn compact(inner: &Arc<Inner>, pages: u64) -> Result<bool> {
    // What was dropped is free without a move.
    if has_dropped(inner)? {
        empty_dropped(inner)?;
        return Ok(true);
    }
    let mut gained = 0;
    let mut files = HeapFiles::new(inner);
    while gained < pages
        && let Some(owner) = files.next()?
    {
        let (mut from, mut in_vain) = (u32::MAX, 0);
        while gained < pages && in_vain < MOST_IN_VAIN {
            let mut tx = WriteTx::new(inner, None)?;
            tx.set_durability(Durability::Deferred);
            let emptied = tx.empty_heap_pages(owner, &mut from, MOVE_BYTES)?;
            if emptied.moved > 0 {
                tx.commit()?;
            }
            gained += emptied.pages;
            in_vain = if emptied.pages > 0 { 0 } else { in_vain + emptied.stuck };
            if emptied.done {
                break;
            }
        }
    }
    Ok(gained > 0)
}

impl ObjectsMut {
    /// Moves records of the heap file of `owner` from the last heap pages, those before `from`, to
    /// earlier ones, about `most` bytes of them, as long as the file is less full than its policy
    /// asks for. `from` is where to go on.
    ///
    /// # Errors
    /// Those of page access; the transaction can then only be given up.
    pub(crate) fn empty_heap_pages(
        &mut self,
        owner: u64,
        from: &mut u32,
        most: u64,
    ) -> Result<Emptied> {
        let nothing = Emptied { done: true, ..Emptied::default() };
        let Some(slot) = self.slot_of_number(owner)? else { return Ok(nothing) };
        let outer = std::mem::replace(&mut self.current, slot);
        let result = match self.current() {
            Ok(Some(_)) => self.with_objects(|objects, _| {
                objects.tx.set_class(Class::Shrink);
                let mut all = Emptied::default();
                let capacity = max_record(objects.tx.pager().page_size()) as u64;
                *from = (*from).min(objects.heap.map().len());
                for _ in 0..MOST_PAGES {
                    let (used, room) = objects.heap.utilization(objects.tx.pager().page_size());
                    // A page's worth of room, so that one can be gained at all.
                    let sparse = objects.placement.is_sparse(used, room) && room > used + capacity;
                    if *from == 0 || !sparse {
                        all.done = true;
                        break;
                    }
                    if all.moved >= most {
                        break;
                    }
                    *from -= 1;
                    match objects.empty_heap_page(*from)? {
                        Some(moved) => {
                            all.pages += u64::from(moved > 0);
                            all.moved += moved;
                        }
                        None => all.stuck += 1,
                    }
                }
                Ok(all)
            }),
            Ok(None) => Ok(nothing),
            Err(e) => Err(e),
        };
        self.current = outer;
        result
    }

    /// Puts staged data in the place of the same bytes of an object's pieces; see
    /// [`ObjectWrite::exchange`](crate::object::ObjectWrite::exchange). They were read from
    /// `snapshot`, which must still live: once it was given up, other bytes may have been put
    /// in the same places (rule 31).
    ///
    /// # Errors
    /// As there.
    pub(crate) fn exchange(
        &mut self,
        oid: Oid,
        seen: (&[ObjectPiece], Range<u64>),
        (staged, snapshot): (Staged, &Snapshot),
    ) -> Result<bool> {
        if self.place_of(oid, |_| Ok(())).is_err() {
            return Ok(false);
        }
        // The writer's lock is held: what lives now lives until the commit has compared.
        if snapshot.check().is_err() && !mutation::is(Mutation::R31Snapshot) {
            return Ok(false);
        }
        self.with_object(oid, |objects, _| {
            objects.tx.set_class(Class::Shrink);
            objects.exchange(oid, seen, staged)
        })
    }
}
