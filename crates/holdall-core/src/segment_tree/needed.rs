//! Which nodes lack: for stores where a node is a request, so that a level costs one trip.
//!
//! Owns: [`needed`], which reads nothing. Every node at hand is checked against what its parent
//! says (T1, T3) before it is followed, as a read does.

use super::find::{check_node, lost};
use super::{Child, Node, NodeRef, Top, Tree};
use crate::{Error, Result};
use std::collections::HashSet;
use std::ops::{Deref, Range};

/// A node that is not at hand, and what its parent says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Needed {
    /// Its reference.
    pub node: NodeRef,
    /// Its level, 0 for a leaf.
    pub level: u8,
    /// Bytes below it.
    pub bytes: u64,
}

/// The nodes to fetch next, so that [`super::slices`] finds the bytes `ranges` of `tree`:
/// those that lead to a byte of a range, are not at hand, and hang below nodes that are. None
/// is named twice; higher levels come first, each level in the object's order. If there are
/// none, `slices` of any of the ranges reads nodes at hand only. Ranges may overlap, and are
/// cut to the tree's size.
///
/// A caller that fetches all that is named and asks again makes one trip per level at most.
///
/// Cost: a look at every entry of the nodes at hand that lead to a range; `at_hand` is asked
/// once for each node.
///
/// # Errors
/// [`Error::Corrupt`] if a node at hand is not what its parent says, if a node is used twice,
/// or if inline slices do not add up to the tree's size.
pub fn needed<N: Deref<Target = Node>>(
    tree: &Tree,
    ranges: &[Range<u64>],
    mut at_hand: impl FnMut(NodeRef) -> Option<N>,
) -> Result<Vec<Needed>> {
    let ranges = joined(ranges, tree.size);
    let Some(first) = ranges.first() else { return Ok(Vec::new()) };
    let (root, height) = match &tree.top {
        Top::Root { node, height } => (Child { bytes: tree.size, node: *node }, *height),
        Top::Inline(slices)
            if super::node::sum(slices.iter().map(|s| s.len)) == Some(tree.size) =>
        {
            return Ok(Vec::new());
        }
        Top::Inline(_) => return Err(lost(first.start)),
    };
    let (mut lacking, mut seen) = (Vec::new(), HashSet::new());
    let mut level = height;
    // The nodes of one level that lead to a range, with their first bytes.
    let mut these = vec![(root, 0)];
    while !these.is_empty() {
        let mut below = Vec::new();
        for (Child { node, bytes }, start) in these {
            // A damaged tree may name a node again and again, which would take for ever.
            if !seen.insert(node) {
                let place = format!("segment node {node}");
                return Err(Error::corrupt(place, "used twice in one tree"));
            }
            match at_hand(node) {
                None => lacking.push(Needed { node, level, bytes }),
                Some(content) => {
                    check_node(&content, node, level, bytes)?;
                    push_children(&content, start, &ranges, &mut below);
                }
            }
        }
        these = below;
        level = level.saturating_sub(1);
    }
    Ok(lacking)
}

/// Adds the children of `node`, which starts at byte `start`, that lead to one of `ranges`.
fn push_children(node: &Node, mut start: u64, ranges: &[Range<u64>], out: &mut Vec<(Child, u64)>) {
    // Below level 0 there is nothing, whatever a node made by hand says.
    let Node::Inner { level: 1.., children } = node else { return };
    for child in children {
        // The node was checked: the sum is no more than the tree's size.
        let end = start + child.bytes;
        let next = ranges.partition_point(|r| r.end <= start);
        if ranges.get(next).is_some_and(|r| r.start < end) {
            out.push((*child, start));
        }
        start = end;
    }
}

/// The bytes below `size` that are in some range, as ranges in order with others between.
fn joined(ranges: &[Range<u64>], size: u64) -> Vec<Range<u64>> {
    let cut = ranges.iter().map(|r| r.start..r.end.min(size));
    let mut sorted: Vec<_> = cut.filter(|r| !r.is_empty()).collect();
    sorted.sort_unstable_by_key(|r| r.start);
    let mut out: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}
