//! Forgetting where collections' next objects would go.
//!
//! Owns no state. Pages that placement keeps to itself look full to others; before it is forgotten
//! its collection gets their true classes. Without that nothing is wrong, but they take no
//! records until they change: so no failure here is one of the store.

use super::{Durability, ObjectsMut, WriteTx};
use crate::engine::Inner;
use crate::txn::Waiting;
use holdall_core::{Error, Result};
use std::sync::Arc;

/// Pages that one transaction changes, so that others wait for little.
const MOST_PAGES: usize = 256;

/// Forgets the placement of all collections but the `most` used last, in transactions of a few
/// pages. Cost: two or three pages changed for a collection of up to some thousand pages.
///
/// # Errors
/// [`Error::Poisoned`], and those that no other transaction would be spared, waits that end among
/// them.
pub(crate) fn forget_placements(inner: &Arc<Inner>, most: usize, waiting: &Waiting) -> Result<()> {
    let oldest = inner.cursors.lock().oldest(most);
    let mut rest = oldest.iter();
    while !rest.as_slice().is_empty() {
        let mut tx = WriteTx::new(inner, None)?;
        tx.set_durability(Durability::Deferred);
        tx.start_now(waiting)?;
        match tx.forget_some(&mut rest).and_then(|()| tx.commit()) {
            // One of these collections; the others are not concerned.
            Ok(()) | Err(Error::TooLarge(_) | Error::Corrupt { .. }) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

impl ObjectsMut {
    /// Forgets the next collections, as many as one transaction takes.
    fn forget_some(&mut self, rest: &mut std::slice::Iter<'_, u64>) -> Result<()> {
        let most = MOST_PAGES.min(self.inner.pager.limits().dirty_pages / 4);
        // The collections' own pages change at the commit.
        for (collections, number) in rest.enumerate() {
            let flushed = self.flush_placement(*number);
            // Whatever came of it, it is not tried again before each transaction.
            self.inner.cursors.lock().forget(*number);
            flushed?;
            if self.begin()?.tx.changed_pages() + collections >= most {
                break;
            }
        }
        Ok(())
    }

    /// Gives the pages that placement keeps to itself their true classes, and forgets them.
    fn flush_placement(&mut self, number: u64) -> Result<()> {
        if let Some(slot) = self.slot_of_number(number)? {
            self.current = slot;
            self.with_objects(|o, _| o.heap.flush(o.tx, o.placement))?;
        }
        self.begin()?.cursors.forget(number);
        Ok(())
    }
}
