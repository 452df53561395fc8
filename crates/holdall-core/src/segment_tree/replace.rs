//! Replacing entries of a tree, level by level from the leaves up.
//!
//! Owns: [`replace`], the one edit of the tree's structure, and what it shares with the
//! bulk build: cutting entries into nodes, and making a tree of the top level's entries.
//! A range of slices is replaced in the leaves; the nodes touched are written anew, the
//! ones wholly inside retired; that is again a range to replace one level up. Keeps T1 to
//! T3 (splits, merges with a neighbour, collapse of the root: Biliris §3.4 says that EOS
//! and ESM share these, after Carey 1986).

use super::find::{Finder, NodePlace, read_checked};
use super::node::sum;
use super::store::Cut;
use super::{Child, MAX_HEIGHT, MAX_OBJECT, Node, NodeRead, NodeRef, Nodes, Slice, Top, Tree};
use crate::{Error, Result};
use std::collections::VecDeque;
use std::ops::Range;

/// What nodes hold: slices or children.
pub(super) trait Entry: Copy {
    /// Bytes of the object it stands for.
    fn bytes(&self) -> u64;
    /// The entries of a node of this kind.
    fn of(node: &Node) -> Option<&[Self]>;
    /// A node of these entries.
    fn node(level: u8, entries: Vec<Self>) -> Node;
    /// The subtree it is, if any.
    fn child(&self) -> Option<Child>;
    /// The top of a tree that holds these entries without a node, if there can be one.
    fn inline(entries: &[Self], max: usize) -> Option<Top>;
}

impl Entry for Slice {
    fn bytes(&self) -> u64 {
        self.len
    }

    fn of(node: &Node) -> Option<&[Self]> {
        if let Node::Leaf(slices) = node { Some(slices) } else { None }
    }

    fn node(_level: u8, entries: Vec<Self>) -> Node {
        Node::Leaf(entries)
    }

    fn child(&self) -> Option<Child> {
        None
    }

    fn inline(entries: &[Self], max: usize) -> Option<Top> {
        (entries.len() <= max).then(|| Top::Inline(entries.to_vec()))
    }
}

impl Entry for Child {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn of(node: &Node) -> Option<&[Self]> {
        if let Node::Inner { children, .. } = node { Some(children) } else { None }
    }

    fn node(level: u8, children: Vec<Self>) -> Node {
        Node::Inner { level, children }
    }

    fn child(&self) -> Option<Child> {
        Some(*self)
    }

    fn inline(_entries: &[Self], _max: usize) -> Option<Top> {
        None
    }
}

/// How full nodes of a level may and must be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fill {
    pub max: usize,
    pub min: usize,
    pub left_larger: bool,
}

/// The bounds of `level` (T2).
///
/// # Errors
/// [`Error::Invalid`] for a fan-out below 4.
pub(super) fn fill<S: NodeRead + ?Sized>(store: &S, level: u8) -> Result<Fill> {
    let max = if level == 0 { store.leaf_fanout() } else { store.inner_fanout() };
    if max < 4 {
        return Err(Error::Invalid(format!("fan-out {max} of a segment tree is below 4")));
    }
    let left_larger = store.cut() == Cut::LeftLarger;
    let min = if left_larger { max / 2 } else { max.div_ceil(2) };
    Ok(Fill { max, min, left_larger })
}

/// Told of each entry that leaves the tree: the store, its first byte, the entry.
pub(super) type Removed<'r, S, E> = &'r mut dyn FnMut(&mut S, u64, &E) -> Result<()>;

/// Replaces the slices that make up bytes `range` of `tree` by `new`. `range` starts and
/// ends at borders of slices and is empty only in an empty tree. Cost: O(height) nodes read
/// and written, plus those wholly inside `range`, which are read and retired.
pub(super) fn replace<S: Nodes + ?Sized>(
    store: &mut S,
    tree: &Tree,
    range: Range<u64>,
    new: Vec<Slice>,
    max_inline: usize,
    removed: Removed<'_, S, Slice>,
) -> Result<Tree> {
    let at_end = range.end == tree.size && store.cut() == Cut::FillAtEnd;
    let mut finder = Finder::new(tree);
    if let Top::Inline(_) = tree.top {
        let mut part = Part::new(new);
        if tree.size > 0 {
            let (node, span) = finder.open(store, 0, range.start)?;
            let node = node.clone();
            part.take(&node, span.start, &range, &mut |at, s| removed(store, at, s))?;
        }
        return plant(store, 0, part.join(), Vec::new(), max_inline, at_end);
    }
    let height = finder.height();
    let part = gather(store, &mut finder, 0, range, new, removed)?;
    if height == 0 {
        return plant(store, 0, part.entries, part.nodes, max_inline, at_end);
    }
    let (mut span, mut children) = rewrite(store, &mut finder, 0, part)?;
    for level in 1..height {
        let part = gather(store, &mut finder, level, span, children, &mut |_, _, _| Ok(()))?;
        (span, children) = rewrite(store, &mut finder, level, part)?;
    }
    let part = gather(store, &mut finder, height, span, children, &mut |_, _, _| Ok(()))?;
    plant(store, height, part.entries, part.nodes, max_inline, at_end)
}

/// Entries left and right of a range, and those put in its place.
struct Part<E> {
    left: Vec<E>,
    new: Vec<E>,
    right: Vec<E>,
}

impl<E: Entry> Part<E> {
    fn new(new: Vec<E>) -> Self {
        Self { left: Vec::new(), new, right: Vec::new() }
    }

    /// Keeps what `node`, which starts at byte `start`, has outside `range`.
    fn take(
        &mut self,
        node: &Node,
        mut start: u64,
        range: &Range<u64>,
        removed: &mut dyn FnMut(u64, &E) -> Result<()>,
    ) -> Result<()> {
        let entries = E::of(node).ok_or_else(|| lost(range))?;
        for entry in entries {
            let end = start + entry.bytes();
            if end <= range.start {
                self.left.push(*entry);
            } else if start >= range.end {
                self.right.push(*entry);
            } else if start >= range.start && end <= range.end {
                removed(start, entry)?;
            } else {
                return Err(lost(range));
            }
            start = end;
        }
        Ok(())
    }

    fn join(self) -> Vec<E> {
        let mut all = self.left;
        all.extend(self.new);
        all.extend(self.right);
        all
    }
}

fn lost(range: &Range<u64>) -> Error {
    Error::corrupt("segment tree", format!("bytes {range:?} do not start and end at entries"))
}

/// A stretch of one level about to be written anew.
struct Gathered<E> {
    /// The bytes below it in the old tree.
    span: Range<u64>,
    /// The old nodes, in order.
    nodes: Vec<NodeRef>,
    entries: Vec<E>,
}

/// Collects the nodes of `level` that have entries in `range`, with `new` in its place.
fn gather<E: Entry, S: Nodes + ?Sized>(
    store: &mut S,
    finder: &mut Finder<'_>,
    level: u8,
    range: Range<u64>,
    new: Vec<E>,
    removed: Removed<'_, S, E>,
) -> Result<Gathered<E>> {
    let mut part = Part::new(new);
    let mut nodes = Vec::new();
    let mut span: Option<Range<u64>> = None;
    let mut at = range.start;
    while at < range.end {
        let NodePlace { node, span: here } = finder.place(store, level, at)?;
        let inside = here.start >= range.start && here.end <= range.end;
        if level == 0 || !inside {
            let read = finder.open(store, level, at)?.0.clone();
            part.take(&read, here.start, &range, &mut |at, e| removed(store, at, e))?;
        }
        nodes.push(node);
        at = here.end;
        span = Some(span.map_or(here.start, |s| s.start)..here.end);
    }
    Ok(Gathered { span: span.ok_or_else(|| lost(&range))?, nodes, entries: part.join() })
}

/// Writes a stretch of `level`, below the root, so that every node is at least half full.
/// Returns the bytes it took in the old tree and the children it is now.
fn rewrite<E: Entry, S: Nodes + ?Sized>(
    store: &mut S,
    finder: &mut Finder<'_>,
    level: u8,
    mut part: Gathered<E>,
) -> Result<(Range<u64>, Vec<Child>)> {
    let bounds = fill(store, level)?;
    let whole = part.entries.len();
    let at_end = part.span.end == finder.size() && store.cut() == Cut::FillAtEnd;
    if whole > 0 && whole < bounds.min {
        join_neighbour(store, finder, level, &mut part)?;
    } else if at_end && whole > bounds.max && part.span.start > 0 {
        // Appends fill the node on the left before they open another.
        let left = finder.place(store, level, part.span.start - 1)?;
        let node = finder.open(store, level, left.span.start)?.0;
        if node.count() < bounds.max {
            let entries = E::of(node).ok_or_else(|| lost(&left.span))?.to_vec();
            join_left(&mut part, left, entries);
        }
    }
    let children = write_all(store, level, part.entries, part.nodes, at_end)?;
    Ok((part.span, children))
}

/// Adds a neighbour's entries: one below the same parent if there is one.
fn join_neighbour<E: Entry, S: Nodes + ?Sized>(
    store: &S,
    finder: &mut Finder<'_>,
    level: u8,
    part: &mut Gathered<E>,
) -> Result<()> {
    let span = part.span.clone();
    let (has_left, has_right) = (span.start > 0, span.end < finder.size());
    let same_left =
        has_left && finder.parent_span(store, level, span.start)?.contains(&(span.start - 1));
    let same_right =
        has_right && finder.parent_span(store, level, span.end - 1)?.contains(&span.end);
    let left = same_left || (has_left && !same_right);
    if !left && !has_right {
        return Ok(());
    }
    let at = if left { span.start - 1 } else { span.end };
    let place = finder.place(store, level, at)?;
    let node = finder.open(store, level, at)?.0;
    let entries = E::of(node).ok_or_else(|| lost(&place.span))?.to_vec();
    if left {
        join_left(part, place, entries);
    } else {
        part.span.end = place.span.end;
        part.nodes.push(place.node);
        part.entries.extend(entries);
    }
    Ok(())
}

fn join_left<E>(part: &mut Gathered<E>, place: NodePlace, mut entries: Vec<E>) {
    part.span.start = place.span.start;
    part.nodes.insert(0, place.node);
    entries.append(&mut part.entries);
    part.entries = entries;
}

/// Numbers of entries for the nodes that `n` entries make: evenly spread, or, at the end of
/// the object, full ones and two at least half full (Biliris §4.2 on ESM's appends).
pub(super) fn cut(n: usize, bounds: Fill, at_end: bool) -> Vec<usize> {
    let mut sizes = Vec::new();
    let mut rest = n;
    while at_end && rest >= bounds.max + bounds.min {
        sizes.push(bounds.max);
        rest -= bounds.max;
    }
    let nodes = rest.div_ceil(bounds.max);
    sizes.extend((0..nodes).map(|i| rest / nodes + usize::from(i < rest % nodes)));
    if let [first, .., last] = sizes.as_mut_slice()
        && bounds.left_larger
        && *last > bounds.min
        && *first < bounds.max
    {
        (*first, *last) = (*first + 1, *last - 1);
    }
    sizes
}

/// Writes entries as nodes of `level` in place of `old`, which are used again or retired.
pub(super) fn write_all<E: Entry, S: Nodes + ?Sized>(
    store: &mut S,
    level: u8,
    entries: Vec<E>,
    old: Vec<NodeRef>,
    at_end: bool,
) -> Result<Vec<Child>> {
    let mut old = VecDeque::from(old);
    let mut children = Vec::new();
    let mut rest = entries.as_slice();
    for size in cut(entries.len(), fill(store, level)?, at_end) {
        let (now, later) = rest.split_at(size);
        children.push(write_one(store, level, now.to_vec(), old.pop_front())?);
        rest = later;
    }
    retire_all(store, old)?;
    Ok(children)
}

/// Writes one node.
pub(super) fn write_one<E: Entry, S: Nodes + ?Sized>(
    store: &mut S,
    level: u8,
    entries: Vec<E>,
    old: Option<NodeRef>,
) -> Result<Child> {
    let bytes = total(&entries)?;
    let node = store.write_node(old, &E::node(level, entries))?;
    Ok(Child { bytes, node })
}

fn retire_all<S: Nodes + ?Sized>(
    store: &mut S,
    nodes: impl IntoIterator<Item = NodeRef>,
) -> Result<()> {
    nodes.into_iter().try_for_each(|node| store.retire_node(node))
}

fn total<E: Entry>(entries: &[E]) -> Result<u64> {
    sum(entries.iter().map(E::bytes))
        .ok_or_else(|| Error::Invalid(format!("an object can have {MAX_OBJECT} bytes at most")))
}

/// Makes a tree whose topmost level has these entries, in place of the nodes `old`: inline,
/// a root, or more levels; or fewer, if an inner root would have one child.
pub(super) fn plant<E: Entry, S: Nodes + ?Sized>(
    store: &mut S,
    level: u8,
    entries: Vec<E>,
    old: Vec<NodeRef>,
    max_inline: usize,
    at_end: bool,
) -> Result<Tree> {
    let size = total(&entries)?;
    if entries.is_empty() {
        retire_all(store, old)?;
        return Ok(Tree::empty());
    }
    if let Some(top) = E::inline(&entries, max_inline) {
        retire_all(store, old)?;
        return Ok(Tree { size, top });
    }
    if let [only] = entries.as_slice()
        && let Some(child) = only.child()
    {
        retire_all(store, old)?;
        return settle(store, child, level - 1, max_inline);
    }
    let mut height = level;
    let mut children = write_all(store, level, entries, old, at_end)?;
    loop {
        if let [Child { node, .. }] = *children.as_slice() {
            return Ok(Tree { size, top: Top::Root { node, height } });
        }
        height += 1;
        if height > MAX_HEIGHT {
            let detail = format!("a segment tree can have {MAX_HEIGHT} levels at most");
            return Err(Error::Invalid(detail));
        }
        children = write_all(store, height, children, Vec::new(), at_end)?;
    }
}

/// Makes a root of a subtree, without inner nodes of one child and without a leaf whose
/// slices fit inline.
fn settle<S: Nodes + ?Sized>(
    store: &mut S,
    root: Child,
    height: u8,
    max_inline: usize,
) -> Result<Tree> {
    match read_checked(store, root.node, height, root.bytes)? {
        Node::Leaf(slices) if slices.len() <= max_inline => {
            store.retire_node(root.node)?;
            Ok(Tree { size: root.bytes, top: Top::Inline(slices) })
        }
        Node::Inner { children, level } if children.len() == 1 => {
            store.retire_node(root.node)?;
            settle(store, children[0], level - 1, max_inline)
        }
        _ => Ok(Tree { size: root.bytes, top: Top::Root { node: root.node, height } }),
    }
}
