//! Moving heap pages towards the front of the file: their records stay in their slots.

use super::HeapFile;
use crate::space::{Lowering, move_blank, move_page};
use holdall_core::page_map_node::FRESH;
use holdall_core::{PageKind, PageNo, PageWrite, Result};

impl HeapFile {
    /// Moves the nodes of the map; see [`PageMap::lower_nodes`](crate::page_map::PageMap::lower_nodes).
    ///
    /// # Errors
    /// As there.
    pub fn lower_map<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        low: &mut Lowering,
    ) -> Result<()> {
        self.map.lower_nodes(pages, low)
    }

    /// Moves heap page `index`, if `low` takes it, and returns where it was; what leads to its
    /// records must lead to the new one. The file's placement must have been forgotten. Cost: the
    /// page and a node of the map.
    ///
    /// # Errors
    /// As [`Lowering::page`], after which the transaction must be aborted.
    pub fn lower_page<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        index: u32,
        low: &mut Lowering,
    ) -> Result<Option<PageNo>> {
        let Some((old, class)) = self.map.get(pages, index)?.filter(|(no, _)| low.takes(*no))
        else {
            return Ok(None);
        };
        let new = match class {
            FRESH => move_blank(pages, old)?,
            _ => move_page(pages, old, PageKind::Heap)?,
        };
        self.map.set(pages, self.owner, index, new, class)?;
        self.changes = self.changes.wrapping_add(1);
        Ok(Some(old))
    }
}
