//! Handles of several new objects at once.
//!
//! A bulk load gives out one slot of a handle page after the other. Here they are chosen
//! together, and filled together once their records have their places: one look at the page
//! and one change of it, as single insertions would have left it.

use super::{HandleSlot, HandleTable};
use crate::handle::HandleCursor;
use holdall_core::handle_page::{HandlePage, HandlePageMut, Location};
use holdall_core::page_map_node::FRESH;
use holdall_core::{Oid, PageKind, PageWrite, Result};

impl HandleSlot {
    /// The OID of the object that takes the `n`-th slot from this one on.
    pub fn oid_after(&self, n: usize, unique: u32) -> Oid {
        let oid = self.oid(unique);
        Oid { slot: oid.slot.saturating_add(n as u16), ..oid }
    }
}

impl HandleTable {
    /// As [`HandleTable::next`] without an object to be near to, and how many slots from there
    /// on may be given out in order: at least one. Cost: one more look at the page.
    ///
    /// # Errors
    /// As [`HandleTable::next`].
    pub fn next_run<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        cursor: &mut HandleCursor,
    ) -> Result<(HandleSlot, usize)> {
        let spot = self.next(pages, cursor, None)?;
        let most = pages.with_page(spot.page, PageKind::Handle, |bytes| {
            Ok(HandlePage::new(bytes, spot.page, spot.index)?.next_in_order())
        })?;
        Ok((spot, most))
    }

    /// As [`HandleTable::fill`] for the slots from `spot` on that [`HandleTable::next_run`] counted
    /// of. Cost: one changed page; the map's height if its class changes.
    ///
    /// # Errors
    /// As [`HandleTable::fill`].
    pub fn fill_run<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        spot: HandleSlot,
        handles: impl ExactSizeIterator<Item = (u32, Location)>,
    ) -> Result<()> {
        let HandleSlot { index, page, slot, fresh } = spot;
        let bytes = pages.page_mut(page, PageKind::Handle)?;
        let mut all = HandlePageMut::new(bytes, page, index)?;
        let class = if fresh { FRESH } else { all.view().class() };
        all.insert_run(slot, handles)?;
        let new = all.view().class();
        if new != class {
            self.map.set_class(pages, index, new)?;
        }
        Ok(())
    }
}
