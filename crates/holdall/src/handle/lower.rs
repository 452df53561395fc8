//! Moving handle pages towards the front of the file: OIDs name them by their place in the map.

use super::HandleTable;
use crate::space::{Lowering, move_blank, move_page};
use holdall_core::page_map_node::FRESH;
use holdall_core::{PageKind, PageWrite, Result};

impl HandleTable {
    /// Moves handle page `index`, if `low` takes it. Cost: the page and a node of the map.
    ///
    /// # Errors
    /// As [`Lowering::page`], after which the transaction must be aborted.
    pub fn lower_page<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        index: u32,
        low: &mut Lowering,
    ) -> Result<()> {
        let Some((old, class)) = self.map.get(pages, index)?.filter(|(no, _)| low.takes(*no))
        else {
            return Ok(());
        };
        let new = match class {
            FRESH => move_blank(pages, old)?,
            _ => move_page(pages, old, PageKind::Handle)?,
        };
        self.map.set(pages, 0, index, new, class)
    }
}
