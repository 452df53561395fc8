//! The segment tree over blobs: what core's tree asks, answered from memory.
//!
//! Core's tree edits by plain calls, a bucket answers slowly. So an edit runs on what is at hand; if it
//! asks for a node that is not, it fails, the node is fetched, and it runs again. What it writes stays
//! in memory until all of it is sent together. A page is one byte: cuts are exact, and no byte is read
//! or copied by an edit.

use super::current::Target;
use super::inner::{Inner, TOGETHER};
use super::operation::Operation;
use super::together::together;
use crate::format::{
    BlobId, BlobKind, BlobRef, Blobs, EMBEDDED, Named, Part, alias_of, decode_node, encode_node,
    reference,
};
use holdall::{Error, Result};
use holdall_core::PageNo;
use holdall_core::segment_tree::{
    Node, NodeRead, NodeRef, Nodes, Options, Pieces, SegmentRead, Segments, Slice, Tree, needed,
};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// The nodes of a tree that are at hand, by alias.
pub(crate) type AtHand = HashMap<NodeRef, Node>;

/// What edits keep to: pages of one byte, no threshold, no tail.
pub(crate) fn options(inline: usize, segment: u64) -> Options {
    Options {
        threshold: 1,
        shuffle_bytes: false,
        max_tail: 0,
        max_inline: inline,
        max_segment_pages: segment,
    }
}

/// Fetches the nodes that lead to the bytes `ranges`, one trip for each level.
///
/// # Errors
/// Those of [`missing_blob`]; [`Error::Corrupt`]; those of the backend.
pub(crate) async fn fetch_nodes(
    store: &Inner,
    tree: &Tree,
    blobs: &mut Blobs,
    at_hand: &mut AtHand,
    ranges: &[Range<u64>],
) -> Result<()> {
    loop {
        let missing = needed(tree, ranges, &|node| at_hand.get(&node))?;
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<NodeRef> = missing.into_iter().map(|missing| missing.node).collect();
        fetch(store, blobs, at_hand, &missing).await?;
    }
}

/// Fetches nodes, several together.
pub(crate) async fn fetch(
    store: &Inner,
    blobs: &mut Blobs,
    at_hand: &mut AtHand,
    missing: &[NodeRef],
) -> Result<()> {
    let mut known = Vec::with_capacity(missing.len());
    for node in missing {
        let blob = blobs.get(node.0).ok_or_else(|| Error::corrupt("a tree", "names no node"))?;
        known.push((*node, blob.id));
    }
    let read = together(known, TOGETHER, |(node, id)| async move {
        Ok((node, id, store.read_node(id).await?))
    });
    let read = read.await?;
    for (node, id, payload) in read {
        at_hand.insert(node, decode_node(&payload, blobs, &format!("blob {id}"))?);
    }
    Ok(())
}

/// A tree being edited in memory.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) blobs: Blobs,
    pub(crate) at_hand: AtHand,
    /// The bytes that will lie in the record.
    pub(crate) embedded: Vec<u8>,
    /// Nodes that the edit made.
    made: BTreeMap<NodeRef, Node>,
    /// What the edit dropped. A blob may still be named elsewhere in the tree.
    pub(crate) dropped: Vec<Named>,
    /// The blobs that a record's own list named when it became a tree of nodes.
    pub(crate) kept: BTreeSet<BlobId>,
    /// What was written for this attempt alone.
    pub(crate) written: Vec<BlobRef>,
    /// What the edit asked for in vain.
    missing: Cell<Option<NodeRef>>,
    fanout: usize,
    operation: &'a mut Operation,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(
        blobs: Blobs,
        embedded: Vec<u8>,
        fanout: usize,
        operation: &'a mut Operation,
    ) -> Self {
        Self {
            blobs,
            at_hand: AtHand::new(),
            embedded,
            made: BTreeMap::new(),
            dropped: Vec::new(),
            kept: BTreeSet::new(),
            written: Vec::new(),
            missing: Cell::new(None),
            fanout,
            operation,
        }
    }

    /// Runs an edit until all that it asks for is at hand. What a run in vain did is undone.
    ///
    /// # Errors
    /// Those of the edit and of fetching nodes.
    pub(crate) async fn run<T>(
        &mut self,
        store: &Inner,
        edit: &mut (dyn FnMut(&mut Self) -> Result<T> + Send),
    ) -> Result<T>
    where
        T: Send,
    {
        loop {
            let before = (self.made.clone(), self.dropped.len());
            self.missing.set(None);
            let result = edit(self);
            let Some(node) = self.missing.take() else { return result };
            self.made = before.0;
            self.dropped.truncate(before.1);
            fetch(store, &mut self.blobs, &mut self.at_hand, &[node]).await?;
        }
    }

    /// Writes the nodes that were made, several together, each after those below it are known.
    ///
    /// # Errors
    /// Those of the backend.
    pub(crate) async fn write_nodes(&mut self, store: &Inner, target: &Target) -> Result<()> {
        if self.made.is_empty() {
            return Ok(());
        }
        self.operation.announce(store, target).await?;
        let mut made: Vec<(NodeRef, Node)> = std::mem::take(&mut self.made).into_iter().collect();
        made.sort_by_key(|(_, node)| node.level());
        let mut payloads = Vec::with_capacity(made.len());
        for (reference, node) in made {
            let payload = encode_node(&node, &self.blobs)?;
            self.blobs.set_len(reference.0, payload.len() as u64);
            let blob = self.blobs.get(reference.0);
            let blob = blob.ok_or_else(|| Error::corrupt("a tree", "made no such node"))?;
            self.written.push(blob);
            self.at_hand.insert(reference, node);
            payloads.push((blob.id, payload));
        }
        let written = together(payloads, TOGETHER, |(id, payload)| async move {
            store.write_blob(id, BlobKind::Node, &payload).await?;
            store.cache.keep_node(id, &payload.into());
            Ok(())
        });
        written.await.map(drop)
    }

    /// Writes bytes as blobs of the operation, and returns the slices that name them.
    pub(crate) async fn write_segments(
        &mut self,
        store: &Inner,
        target: &Target,
        bytes: &[u8],
    ) -> Result<Vec<Slice>> {
        let mut slices = Vec::new();
        if bytes.is_empty() {
            return Ok(slices);
        }
        self.operation.announce(store, target).await?;
        let mut writes = Vec::new();
        for part in bytes.chunks(store.sizes().segment as usize) {
            let id = self.operation.next_blob()?;
            let alias = self.blobs.alias(BlobRef { id, len: part.len() as u64 });
            slices.push(Slice::run(reference(alias, 0), part.len() as u64));
            writes.push((id, part));
        }
        let written = together(writes, TOGETHER, |(id, part)| async move {
            store.write_blob(id, BlobKind::Segment, part).await.map(drop)
        });
        written.await?;
        Ok(slices)
    }

    /// Puts bytes among those that lie in the record.
    pub(crate) fn embed(&mut self, bytes: &[u8]) -> Slice {
        let start = self.embedded.len() as u64;
        self.embedded.extend_from_slice(bytes);
        Slice::run(reference(EMBEDDED, start), bytes.len() as u64)
    }
}

impl NodeRead for Draft<'_> {
    fn read_node(&self, node: NodeRef, _level: u8) -> Result<Node> {
        if let Some(found) = self.made.get(&node).or_else(|| self.at_hand.get(&node)) {
            return Ok(found.clone());
        }
        self.missing.set(Some(node));
        Err(Error::NotFound(format!("node {node}")))
    }

    fn leaf_fanout(&self) -> usize {
        self.fanout
    }

    fn inner_fanout(&self) -> usize {
        self.fanout
    }
}

impl Nodes for Draft<'_> {
    fn write_node(&mut self, old: Option<NodeRef>, node: &Node) -> Result<NodeRef> {
        if let Some(old) = old {
            self.retire_node(old)?;
        }
        // Its length is known once it is encoded.
        let blob = BlobRef { id: self.operation.next_blob()?, len: 1 };
        let reference = NodeRef(self.blobs.alias(blob));
        self.made.insert(reference, node.clone());
        Ok(reference)
    }

    fn retire_node(&mut self, node: NodeRef) -> Result<()> {
        if self.made.remove(&node).is_some() {
            return Ok(());
        }
        let blob =
            self.blobs.get(node.0).ok_or_else(|| Error::corrupt("a tree", "has no such node"))?;
        self.dropped.push(Named { blob, part: Part::Node });
        Ok(())
    }
}

impl SegmentRead for Draft<'_> {
    fn page_size(&self) -> usize {
        1
    }

    fn read_run(&self, slice: &Slice, _at: u64, _buf: &mut [u8]) -> Result<()> {
        Err(Error::Invalid(format!("an edit of pages of one byte copies no bytes: {slice:?}")))
    }
}

impl Segments for Draft<'_> {
    fn write_runs(
        &mut self,
        _pieces: &mut Pieces<'_>,
        len: u64,
        _near: Option<PageNo>,
    ) -> Result<Vec<Slice>> {
        Err(Error::Invalid(format!("an edit of pages of one byte writes no bytes: {len}")))
    }

    fn retire_run(&mut self, slice: &Slice) -> Result<()> {
        if let Some(blob) = self.blobs.get(alias_of(slice.reference)) {
            self.dropped.push(Named { blob, part: Part::Segment });
        }
        Ok(())
    }

    fn can_extend(&self, _at: PageNo, _pages: u64) -> bool {
        false
    }
}
