//! What maintenance does inside a transaction: moving records and segments of objects.

use super::WriteTx;
use crate::object::Piece;
use crate::space::Staged;
use holdall_core::heap_page::max_record;
use holdall_core::{Oid, Result};

/// What [`WriteTx::empty_heap_pages`] did.
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

impl WriteTx {
    /// Moves records of collection `name` from the last heap pages, those before `from`, to
    /// earlier ones, about `most` bytes of them, as long as the file is less full than its policy
    /// asks for. `from` is where to go on.
    ///
    /// # Errors
    /// Those of page access; the transaction can then only be given up.
    pub(crate) fn empty_heap_pages(
        &mut self,
        name: &str,
        from: &mut u32,
        most: u64,
    ) -> Result<Emptied> {
        let nothing = Emptied { done: true, ..Emptied::default() };
        let slot = self.opened.slot(name);
        let outer = std::mem::replace(&mut self.current, slot);
        let result = match self.current() {
            Ok(Some(_)) => self.with_objects(|objects, _| {
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

    /// Puts staged data in the place of pieces of an object that hold the same bytes; see
    /// [`ObjectWrite::exchange`](crate::object::ObjectWrite::exchange).
    ///
    /// # Errors
    /// As there.
    pub(crate) fn exchange(&mut self, oid: Oid, seen: &[Piece], staged: Staged) -> Result<bool> {
        if self.place_of(oid, |_| Ok(())).is_err() {
            return Ok(false);
        }
        self.with_object(oid, |objects, _| objects.exchange(oid, seen, staged))
    }
}
