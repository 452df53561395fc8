//! Moving a map's nodes towards the front of the file. The pages that it leads to are their
//! users' to move ([`PageMap::set`]).

use super::{PageMap, node};
use crate::space::Lowering;
use holdall_core::page_map_node::{Entry, Node};
use holdall_core::{PageKind, PageNo, PageWrite, Result};

impl PageMap {
    /// Moves the nodes that `low` takes, as many as it may; called again, it goes on. Cost: a
    /// look at all nodes but the leaves, and those that move.
    ///
    /// # Errors
    /// As [`Lowering::page`], after which the transaction must be aborted.
    pub fn lower_nodes<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        low: &mut Lowering,
    ) -> Result<()> {
        let Some(level) = self.height.checked_sub(1) else { return Ok(()) };
        if let Some(new) = low.page(pages, self.root, PageKind::PageMap)? {
            self.root = new;
        }
        self.lower_below(pages, self.root, (level, 0), low)
    }

    fn lower_below<W: PageWrite + ?Sized>(
        &self,
        pages: &mut W,
        no: PageNo,
        (level, base): (u8, u32),
        low: &mut Lowering,
    ) -> Result<()> {
        let Some(below) = level.checked_sub(1) else { return Ok(()) };
        let span = node::span(pages.page_size(), level);
        for slot in 0..node::fanout(pages.page_size()) {
            let first = u64::from(base) + slot as u64 * span;
            if first >= u64::from(self.len) || low.is_done() {
                break;
            }
            let look = |bytes: &[u8]| Node::new(bytes, no, level, base)?.entry(slot);
            let entry = pages.with_page(no, PageKind::PageMap, look)?;
            let mut child = super::child_of(no, entry, first as u32)?;
            if let Some(new) = low.page(pages, child, PageKind::PageMap)? {
                let bytes = pages.page_mut(no, PageKind::PageMap)?;
                node::put(bytes, slot, Entry { page: new, ..entry });
                child = new;
            }
            self.lower_below(pages, child, (below, first as u32), low)?;
        }
        Ok(())
    }
}
