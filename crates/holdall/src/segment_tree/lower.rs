//! Moving a tree's nodes towards the front of the file.

use super::{TreeWrite, node_at};
use crate::space::Lowering;
use holdall_core::segment_tree::{Node, NodeRef, Nodes, Top, Tree};
use holdall_core::{PageKind, PageNo, Result};

impl TreeWrite<'_> {
    /// Moves the nodes of `tree` that `low` takes, as many as it may; called again, it goes on.
    /// Cost: a look at all nodes but the leaves, and those that move.
    ///
    /// # Errors
    /// As [`Lowering::page`], after which the transaction must be aborted.
    pub fn lower(&mut self, tree: &mut Tree, low: &mut Lowering) -> Result<()> {
        let Top::Root { node, height } = &mut tree.top else { return Ok(()) };
        if let Some(new) = self.lower_node(*node, low)? {
            *node = new;
        }
        self.lower_below(*node, *height, low)
    }

    fn lower_node(&mut self, node: NodeRef, low: &mut Lowering) -> Result<Option<NodeRef>> {
        let new = low.page(self.tx, PageNo(node.0), PageKind::SegmentNode)?;
        Ok(new.map(|no| NodeRef(no.0)))
    }

    fn lower_below(&mut self, no: NodeRef, level: u8, low: &mut Lowering) -> Result<()> {
        if level == 0 || low.is_done() {
            return Ok(());
        }
        let Node::Inner { level, mut children } = node_at(self.tx, no)? else { return Ok(()) };
        let before = low.moved();
        for child in &mut children {
            if let Some(new) = self.lower_node(child.node, low)? {
                child.node = new;
            }
        }
        let below: Vec<_> = children.iter().map(|child| child.node).collect();
        if low.moved() > before {
            self.write_node(Some(no), &Node::Inner { level, children })?;
        }
        below.into_iter().try_for_each(|child| self.lower_below(child, level - 1, low))
    }
}
