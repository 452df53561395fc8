//! Finding bytes: from the top of a tree to the slice that holds them.
//!
//! Owns: [`Finder`], a cursor that keeps the path it went last, and reading over it. Every
//! node read is checked against what its parent says (T1, T3) before it is used.

use super::{
    Child, Descriptor, Node, NodeRead, NodeRef, Prefetch, SegmentRead, Slice, SliceKind, Top, Tree,
};
use crate::{Error, Result};
use std::ops::Range;

/// A slice and where in the object it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Located {
    /// The slice, whole.
    pub slice: Slice,
    /// The object's byte that is the slice's first.
    pub start: u64,
}

impl Located {
    /// One past the object's byte that is the slice's last.
    pub fn end(&self) -> u64 {
        self.start + self.slice.len
    }
}

/// A node's place: its reference and the bytes below it.
#[derive(Debug, Clone)]
pub(super) struct NodePlace {
    pub node: NodeRef,
    pub span: Range<u64>,
}

struct Descent {
    reference: Option<NodeRef>,
    span: Range<u64>,
    node: Node,
}

/// A cursor over one version of a tree. Keeps one path, so that neighbours are found
/// without reading the nodes above again.
pub(super) struct Finder<'t> {
    tree: &'t Tree,
    path: Vec<Descent>,
}

impl<'t> Finder<'t> {
    pub(super) fn new(tree: &'t Tree) -> Self {
        Self { tree, path: Vec::new() }
    }

    /// Height of the tree; 0 also if the slices are inline.
    pub(super) fn height(&self) -> u8 {
        match self.tree.top {
            Top::Inline(_) => 0,
            Top::Root { height, .. } => height,
        }
    }

    /// Bytes in the tree.
    pub(super) fn size(&self) -> u64 {
        self.tree.size
    }

    /// The slice that holds byte `at`, which is below the tree's size.
    pub(super) fn slice<S: NodeRead + ?Sized>(&mut self, store: &S, at: u64) -> Result<Located> {
        let (node, span) = self.open(store, 0, at)?;
        let Node::Leaf(slices) = node else { return Err(lost(at)) };
        let mut start = span.start;
        for slice in slices {
            if at - start < slice.len {
                return Ok(Located { slice: *slice, start });
            }
            start += slice.len;
        }
        Err(lost(at))
    }

    /// The node of `level` that holds byte `at`. Cost: at most one read per level.
    pub(super) fn open<S: NodeRead + ?Sized>(
        &mut self,
        store: &S,
        level: u8,
        at: u64,
    ) -> Result<(&Node, Range<u64>)> {
        let usable = |s: &Descent| s.node.level() >= level && s.span.contains(&at);
        while self.path.last().is_some_and(|s| !usable(s)) {
            self.path.pop();
        }
        if self.path.is_empty() {
            self.path.push(top_step(store, self.tree, at)?);
        }
        while let Some(step) = self.path.last()
            && step.node.level() > level
        {
            let (child, start) = child_at(step, at)?;
            let below = step.node.level() - 1;
            let node = read_checked(store, child.node, below, child.bytes)?;
            let span = start..start + child.bytes;
            self.path.push(Descent { reference: Some(child.node), span, node });
        }
        let step = self.path.last().filter(|s| s.node.level() == level).ok_or_else(|| lost(at))?;
        Ok((&step.node, step.span.clone()))
    }

    /// Where the node of `level` that holds byte `at` is, without reading it.
    pub(super) fn place<S: NodeRead + ?Sized>(
        &mut self,
        store: &S,
        level: u8,
        at: u64,
    ) -> Result<NodePlace> {
        if level < self.height() {
            self.open(store, level + 1, at)?;
            let step = self.path.last().ok_or_else(|| lost(at))?;
            let (child, start) = child_at(step, at)?;
            return Ok(NodePlace { node: child.node, span: start..start + child.bytes });
        }
        self.open(store, level, at)?;
        let step = self.path.first().ok_or_else(|| lost(at))?;
        let node = step.reference.ok_or_else(|| lost(at))?;
        Ok(NodePlace { node, span: step.span.clone() })
    }

    /// The bytes below the parent of the node of `level` that holds byte `at`.
    pub(super) fn parent_span<S: NodeRead + ?Sized>(
        &mut self,
        store: &S,
        level: u8,
        at: u64,
    ) -> Result<Range<u64>> {
        Ok(self.open(store, level + 1, at)?.1)
    }
}

/// No such slice comes out of a decoder, but a caller may make one.
pub(super) fn reserved() -> Error {
    Error::Unsupported { detail: "the object has a slice of a reserved kind".into() }
}

pub(super) fn lost(at: u64) -> Error {
    Error::corrupt("segment tree", format!("byte {at} is in no slice"))
}

fn top_step<S: NodeRead + ?Sized>(store: &S, tree: &Tree, at: u64) -> Result<Descent> {
    if at >= tree.size {
        return Err(lost(at));
    }
    let span = 0..tree.size;
    Ok(match &tree.top {
        Top::Inline(slices) => {
            let node = Node::Leaf(slices.clone());
            if node.bytes() != Some(tree.size) {
                return Err(lost(at));
            }
            Descent { reference: None, span, node }
        }
        Top::Root { node, height } => {
            let read = read_checked(store, *node, *height, tree.size)?;
            Descent { reference: Some(*node), span, node: read }
        }
    })
}

fn child_at(step: &Descent, at: u64) -> Result<(Child, u64)> {
    let Node::Inner { children, .. } = &step.node else { return Err(lost(at)) };
    let mut start = step.span.start;
    for child in children {
        if at - start < child.bytes {
            return Ok((*child, start));
        }
        start += child.bytes;
    }
    Err(lost(at))
}

/// Reads a node and checks it against its parent.
pub(super) fn read_checked<S: NodeRead + ?Sized>(
    store: &S,
    node: NodeRef,
    level: u8,
    bytes: u64,
) -> Result<Node> {
    let read = store.read_node(node, level)?;
    check_node(&read, node, level, bytes)?;
    Ok(read)
}

/// Checks the node `place`, as read, against what its parent says.
pub(super) fn check_node(node: &Node, place: NodeRef, level: u8, bytes: u64) -> Result<()> {
    if node.level() != level || node.bytes() != Some(bytes) {
        let detail = format!(
            "level {} with {:?} bytes, its parent says level {level} with {bytes}",
            node.level(),
            node.bytes()
        );
        return Err(Error::corrupt(format!("segment node {place}"), detail));
    }
    Ok(())
}

/// The slices that hold some bytes of a tree, in order; see [`slices`].
pub struct Slices<'a, S: ?Sized> {
    store: &'a S,
    finder: Finder<'a>,
    at: u64,
    end: u64,
}

impl<S: NodeRead + ?Sized> Iterator for Slices<'_, S> {
    type Item = Result<Located>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.end {
            return None;
        }
        let found = self.finder.slice(self.store, self.at);
        self.at = found.as_ref().map_or(self.end, Located::end);
        Some(found)
    }
}

/// The slices that hold the bytes `range` of `tree` (cut to its size), whole and in order.
/// Nodes are read as the iterator comes to them: O(height + slices) in all. After an error
/// the iterator ends.
pub fn slices<'a, S: NodeRead + ?Sized>(
    store: &'a S,
    tree: &'a Tree,
    range: Range<u64>,
) -> Slices<'a, S> {
    let end = range.end.min(tree.size);
    Slices { store, finder: Finder::new(tree), at: range.start, end }
}

/// Tells the store that the bytes `range` (cut to what is in segments) will be read soon, if
/// they lie in several segments or `even_one`: what lies in one, the system reads ahead by
/// itself once some of it was read. Ends where the store has them at hand. Cost:
/// O(height + slices) nodes.
///
/// # Errors
/// Those of reading nodes.
pub fn prefetch<S: NodeRead + Prefetch + ?Sized>(
    store: &S,
    tree: &Tree,
    range: Range<u64>,
    even_one: bool,
) -> Result<()> {
    let end = range.end.min(tree.size);
    // One may have been read by chance, two in a row tell that the others are there too.
    let mut at_hand = 0;
    for (i, l) in slices(store, tree, range.start..end).enumerate() {
        let l = l?;
        if i == 0 && l.end() >= end && !even_one {
            break;
        }
        let from = range.start.max(l.start);
        if l.slice.is_run() {
            let new = store.will_read(&l.slice, from - l.start, l.end().min(end) - from);
            at_hand = if new { 0 } else { at_hand + 1 };
            if at_hand > 1 {
                break;
            }
        }
    }
    Ok(())
}

/// Fills `buf` with the object's bytes from `offset`. Cost: O(height) nodes and one
/// [`SegmentRead::read_run`] per slice.
///
/// # Errors
/// [`Error::Range`] (with no object name) if the bytes are not all there, and those of
/// the store.
pub fn read_at<S: NodeRead + SegmentRead + ?Sized>(
    store: &S,
    descriptor: &Descriptor,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    let size = descriptor.size();
    let end = offset.checked_add(buf.len() as u64).filter(|end| *end <= size);
    let Some(end) = end else {
        let end = offset.saturating_add(buf.len() as u64);
        return Err(Error::Range { object: String::new(), start: offset, end, size });
    };
    let in_tree = end.min(descriptor.tree.size);
    let (now, rest) = buf.split_at_mut(in_tree.saturating_sub(offset) as usize);
    if let Top::Inline(slices) = &descriptor.tree.top {
        read_inline(store, slices, offset, now)?;
    } else {
        read_slices(store, &descriptor.tree, offset, now)?;
    }
    let from = offset.max(in_tree).saturating_sub(descriptor.tree.size) as usize;
    let tail = descriptor.tail.get(from..from + rest.len());
    rest.copy_from_slice(tail.ok_or_else(|| lost(offset))?);
    Ok(())
}

/// Fills `buf` from byte `offset` of the few slices that a descriptor lists itself: without a
/// cursor, which would copy them.
fn read_inline<S: SegmentRead + ?Sized>(
    store: &S,
    slices: &[Slice],
    offset: u64,
    mut buf: &mut [u8],
) -> Result<()> {
    let (mut at, mut start) = (offset, 0_u64);
    for slice in slices {
        if buf.is_empty() {
            return Ok(());
        }
        let end = start.checked_add(slice.len).ok_or_else(|| lost(at))?;
        if at < end {
            let n = (buf.len() as u64).min(end - at) as usize;
            let (now, later) = buf.split_at_mut(n);
            read_slice(store, slice, at - start, now)?;
            (buf, at) = (later, at + n as u64);
        }
        start = end;
    }
    if buf.is_empty() { Ok(()) } else { Err(lost(at)) }
}

/// Fills `buf` from byte `offset` of a tree.
fn read_slices<S: NodeRead + SegmentRead + ?Sized>(
    store: &S,
    tree: &Tree,
    offset: u64,
    buf: &mut [u8],
) -> Result<()> {
    let (mut rest, mut at) = (&mut *buf, offset);
    for located in slices(store, tree, offset..offset + rest.len() as u64) {
        let located = located?;
        let n = (rest.len() as u64).min(located.end() - at) as usize;
        let (now, later) = rest.split_at_mut(n);
        read_slice(store, &located.slice, at - located.start, now)?;
        (rest, at) = (later, at + n as u64);
    }
    if rest.is_empty() { Ok(()) } else { Err(lost(at)) }
}

/// Fills `buf` from byte `at` of a slice.
fn read_slice<S: SegmentRead + ?Sized>(
    store: &S,
    slice: &Slice,
    at: u64,
    buf: &mut [u8],
) -> Result<()> {
    match slice.kind {
        SliceKind::Run => store.read_run(slice, at, buf),
        SliceKind::Zero => {
            buf.fill(0);
            Ok(())
        }
        SliceKind::Reserved => Err(reserved()),
    }
}
