//! Moving nodes towards the front of the file.

use super::{Names, load};
use crate::space::Lowering;
use holdall_core::names_node::{Node, NodeMut, child_bytes};
use holdall_core::{PageKind, PageNo, PageWrite, Result};

impl Names {
    /// Moves the nodes that `low` takes, as many as it may; called again, it goes on. Cost: a
    /// look at the inner nodes, and those that move.
    ///
    /// # Errors
    /// As [`Lowering::page`], after which the transaction must be aborted.
    pub fn lower<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        low: &mut Lowering,
    ) -> Result<()> {
        if self.root.is_none() {
            return Ok(());
        }
        if let Some(new) = low.page(pages, self.root, PageKind::Names)? {
            self.root = new;
        }
        let level = Node::open(self.root, &load(pages, self.root)?)?.level();
        lower_below(pages, self.root, level, low)
    }
}

/// Moves what lies below node `no`, which stays.
fn lower_below<W: PageWrite + ?Sized>(
    pages: &mut W,
    no: PageNo,
    level: u8,
    low: &mut Lowering,
) -> Result<()> {
    if level == 0 || low.is_done() {
        return Ok(());
    }
    let page = load(pages, no)?;
    let node = Node::open_at(no, &page, level)?;
    let children = (0..=node.count()).map(|i| node.child(i)).collect::<Result<Vec<_>>>()?;
    drop(page);
    for (i, mut child) in children.into_iter().enumerate() {
        if let Some(new) = low.page(pages, child, PageKind::Names)? {
            let mut node = NodeMut::new(no, pages.page_mut(no, PageKind::Names)?);
            match i.checked_sub(1) {
                None => node.set_leftmost(new)?,
                Some(i) => node.set_payload(i, &child_bytes(new))?,
            }
            child = new;
        }
        lower_below(pages, child, level - 1, low)?;
    }
    Ok(())
}
