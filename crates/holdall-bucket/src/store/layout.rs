//! Where a version's bytes lie.
//!
//! Owns: [`Layout`], [`Part`]; [`Known`], the nodes at hand as core's tree reads them.

use super::current::{Current, Target};
use super::inner::Inner;
use super::tree::{AtHand, fetch_nodes};
use crate::format::{BlobRef, Blobs, EMBEDDED, alias_of, byte_of};
use holdall::{Error, Result};
use holdall_core::segment_tree::{Located, Node, NodeRead, NodeRef, slices};
use std::ops::Range;
use std::sync::Arc;

/// What comes next of an object.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// Bytes of its record.
    Embedded(Range<usize>),
    /// Zeros that are stored nowhere.
    Zeros(u64),
    /// Payload bytes of a blob.
    Of(BlobRef, Range<u64>),
}

/// A version's record, and the nodes of it that are at hand.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(super) store: Arc<Inner>,
    pub(super) target: Target,
    pub(super) current: Current,
    blobs: Blobs,
    at_hand: AtHand,
}

impl Layout {
    pub(super) fn new(store: Arc<Inner>, target: Target, current: Current) -> Self {
        let blobs = current.record.blobs.clone();
        Self { store, target, current, blobs, at_hand: AtHand::new() }
    }

    /// What the bytes `window` are made of, in order. Nodes that lead to them are fetched.
    pub(super) async fn parts(&mut self, window: Range<u64>) -> Result<Vec<Part>> {
        let tree = &self.current.record.tree;
        let ranges = std::slice::from_ref(&window);
        fetch_nodes(&self.store, tree, &mut self.blobs, &mut self.at_hand, ranges).await?;
        let (mut parts, mut at) = (Vec::new(), window.start);
        for located in slices(&Known(&self.at_hand), tree, window.clone()) {
            let Located { slice, start } = located?;
            let (from, end) = (window.start.max(start), (start + slice.len).min(window.end));
            if from > at {
                parts.push(Part::Zeros(from - at));
            }
            at = end;
            if !slice.is_run() {
                parts.push(Part::Zeros(end - from));
                continue;
            }
            let byte = byte_of(slice.reference) + (from - start);
            let range = byte..byte + (end - from);
            let alias = alias_of(slice.reference);
            if alias == EMBEDDED {
                parts.push(Part::Embedded(range.start as usize..range.end as usize));
                continue;
            }
            let blob = self.blobs.get(alias);
            let blob = blob.ok_or_else(|| self.damaged("a slice names no blob"))?;
            if range.end > blob.len {
                return Err(self.damaged("a slice is not in its blob"));
            }
            parts.push(Part::Of(blob, range));
        }
        if at < window.end {
            parts.push(Part::Zeros(window.end - at));
        }
        Ok(parts)
    }

    pub(super) fn embedded(&self, range: Range<usize>) -> Result<&[u8]> {
        let bytes = self.current.record.embedded.get(range);
        bytes.ok_or_else(|| self.damaged("a slice is not in its record"))
    }

    pub(super) fn damaged(&self, detail: &str) -> Error {
        Error::corrupt(self.target.shown(), detail)
    }
}

/// Nodes at hand, as core's tree reads them.
pub(crate) struct Known<'a>(pub(crate) &'a AtHand);

impl NodeRead for Known<'_> {
    fn read_node(&self, node: NodeRef, _level: u8) -> Result<Node> {
        let found = self.0.get(&node).cloned();
        found.ok_or_else(|| Error::corrupt("a tree", format!("node {node} is not at hand")))
    }

    fn leaf_fanout(&self) -> usize {
        crate::format::MAX_FANOUT
    }

    fn inner_fanout(&self) -> usize {
        crate::format::MAX_FANOUT
    }
}
