//! Looking at a whole tree: its invariants, its numbers, and deleting it.
//!
//! Owns: [`walk`], which visits every node and slice once and never reads data, and what is
//! built on it: [`check`], [`stats`], [`delete_all`]. `check` collects all that is wrong
//! and does not stop at the first.

use super::replace::fill;
use super::{Child, Descriptor, Node, NodeRead, NodeRef, Nodes, Segments, Slice, Top, Tree};
use crate::{Error, Result};
use std::collections::HashSet;

/// A stop on a [`walk`].
#[derive(Debug)]
pub enum Visit<'n> {
    /// A node that could be read, before what is below it.
    Node {
        /// Where it is.
        node: NodeRef,
        /// The level its parent gives it.
        level: u8,
        /// The bytes its parent says are below it.
        bytes: u64,
        /// Whether it is the root.
        root: bool,
        /// What it holds.
        content: &'n Node,
    },
    /// A node that could not be read or was met before; what is below it is left out.
    Unreadable {
        /// Where it is.
        node: NodeRef,
        /// The level its parent gives it.
        level: u8,
        /// Why.
        error: Error,
    },
    /// A slice.
    Slice {
        /// The object's byte that is its first.
        start: u64,
        /// The slice.
        slice: Slice,
    },
}

/// Visits every node and slice of `tree` in order, nodes before what is below them. Goes on
/// behind a node that cannot be read. Cost: one read per node; one path and eight bytes per
/// node in memory (a damaged tree may name a node twice, which would never end).
///
/// # Errors
/// Only those of `visit`, which end the walk.
pub fn walk<S: NodeRead + ?Sized>(
    store: &S,
    tree: &Tree,
    visit: &mut dyn FnMut(Visit<'_>) -> Result<()>,
) -> Result<()> {
    let mut walker = Walker { store, visit, seen: HashSet::new() };
    match &tree.top {
        Top::Inline(slices) => walker.slices(slices, 0),
        Top::Root { node, height } => {
            walker.node(Child { bytes: tree.size, node: *node }, *height, true, 0)
        }
    }
}

struct Walker<'a, 'v, S: ?Sized> {
    store: &'a S,
    visit: &'v mut dyn FnMut(Visit<'_>) -> Result<()>,
    seen: HashSet<NodeRef>,
}

impl<S: NodeRead + ?Sized> Walker<'_, '_, S> {
    fn slices(&mut self, slices: &[Slice], mut start: u64) -> Result<()> {
        for slice in slices {
            (self.visit)(Visit::Slice { start, slice: *slice })?;
            start = start.saturating_add(slice.len);
        }
        Ok(())
    }

    fn read(&mut self, node: NodeRef, level: u8) -> Result<Node> {
        let bad = |detail| Err(Error::corrupt(format!("segment node {node}"), detail));
        if !self.seen.insert(node) {
            return bad("used twice in one tree".to_owned());
        }
        let content = self.store.read_node(node, level)?;
        if content.level() != level {
            return bad(format!("level {} in place of {level}", content.level()));
        }
        Ok(content)
    }

    fn node(&mut self, child: Child, level: u8, root: bool, mut start: u64) -> Result<()> {
        let Child { bytes, node } = child;
        let content = match self.read(node, level) {
            Ok(content) => content,
            Err(error) => return (self.visit)(Visit::Unreadable { node, level, error }),
        };
        (self.visit)(Visit::Node { node, level, bytes, root, content: &content })?;
        match &content {
            Node::Leaf(slices) => self.slices(slices, start),
            Node::Inner { children, .. } => {
                for child in children {
                    self.node(*child, level - 1, false, start)?;
                    start = start.saturating_add(child.bytes);
                }
                Ok(())
            }
        }
    }
}

/// What [`check`] holds a tree against.
#[derive(Debug, Clone, Copy)]
pub struct CheckOptions {
    /// Bytes of a page.
    pub page_size: usize,
    /// T of descriptors that name none; 0 or 1 checks no threshold.
    pub threshold: u16,
    /// Pages of the largest segment.
    pub max_segment_pages: u64,
    /// Most slices inline.
    pub max_inline: usize,
    /// Most bytes in the tail.
    pub max_tail: usize,
}

/// Something wrong with a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// A node that cannot be read, with the error's text.
    Unreadable(NodeRef, String),
    /// T1: a node (none: the inline top) does not hold the bytes it should.
    Sum {
        /// The node.
        node: Option<NodeRef>,
        /// Bytes its parent says.
        expected: u64,
        /// Bytes it holds, if they can be added.
        found: Option<u64>,
    },
    /// T2: a node with too few or too many entries.
    Fill {
        /// The node.
        node: NodeRef,
        /// Its level.
        level: u8,
        /// Its entries.
        count: usize,
    },
    /// More slices inline than may be, or a node for so few.
    Inline(usize),
    /// A slice that cannot be, with the reason.
    Slice(u64, String),
    /// T4: two slices have this page; or one does twice.
    PageTwice(u64),
    /// T5: the segments before and behind this byte of the object should be one. Also
    /// found if the space had no neighbouring pages to give, so it is no damage.
    Threshold {
        /// First byte of the second segment.
        at: u64,
        /// Pages of the first and the second.
        pages: [u64; 2],
    },
    /// The tail is longer than it may be.
    Tail(usize),
}

impl Problem {
    /// Whether the object is damaged, not just laid out less well than it could be.
    pub fn is_damage(&self) -> bool {
        !matches!(self, Self::Threshold { .. } | Self::Inline(_) | Self::Tail(_))
    }
}

/// Numbers of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Bytes of the object.
    pub size: u64,
    /// Slices that have pages.
    pub segments: u64,
    /// Bytes in slices of zeros.
    pub zeros: u64,
    /// Pages of segments.
    pub pages: u64,
    /// Nodes.
    pub nodes: u64,
    /// Levels of nodes: 0 if the slices are inline.
    pub levels: u8,
    /// Bytes in the tail.
    pub tail: u64,
}

impl Stats {
    /// Storage utilization (Biliris §4.4.1): bytes in segments over the bytes of all pages,
    /// of segments and nodes. 1 if there are none.
    pub fn utilization(&self, page_size: usize) -> f64 {
        let pages = (self.pages + self.nodes) as f64 * page_size as f64;
        let used = self.size.saturating_sub(self.tail).saturating_sub(self.zeros);
        if pages == 0.0 { 1.0 } else { used as f64 / pages }
    }

    fn of_top(descriptor: &Descriptor) -> Self {
        let levels = match descriptor.tree.top {
            Top::Inline(_) => 0,
            Top::Root { height, .. } => height.saturating_add(1),
        };
        let (size, tail) = (descriptor.size(), descriptor.tail.len() as u64);
        Self { size, tail, levels, ..Self::default() }
    }

    fn count(&mut self, visit: &Visit<'_>, page_size: u64) {
        match visit {
            Visit::Node { .. } | Visit::Unreadable { .. } => self.nodes += 1,
            Visit::Slice { slice, .. } if slice.is_run() => {
                self.segments += 1;
                self.pages = self.pages.saturating_add(slice.pages(page_size));
            }
            Visit::Slice { slice, .. } => self.zeros = self.zeros.saturating_add(slice.len),
        }
    }
}

/// What [`check`] found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// All that is wrong, in the object's order.
    pub problems: Vec<Problem>,
    /// The tree's numbers, as far as it could be read.
    pub stats: Stats,
}

/// Checks all invariants of an object's tree. Reads nodes, never data. Holds 16 bytes per
/// segment in memory, to find pages owned twice.
///
/// # Errors
/// [`Error::Invalid`] for a store with an impossible fan-out; all else is in the report.
pub fn check<S: NodeRead + ?Sized>(
    store: &S,
    descriptor: &Descriptor,
    options: &CheckOptions,
) -> Result<Report> {
    let mut checker = Checker {
        options,
        threshold: match descriptor.threshold {
            0 => options.threshold,
            own => own,
        },
        report: Report::default(),
        runs: Vec::new(),
        last: None,
    };
    checker.top(descriptor);
    let bounds = |level| fill(store, level).map(|f| (f.min, f.max));
    let (leaf, inner) = (bounds(0)?, bounds(1)?);
    walk(store, &descriptor.tree, &mut |visit| {
        checker.visit(
            &visit,
            if matches!(visit, Visit::Node { level: 0, .. }) { leaf } else { inner },
        );
        Ok(())
    })?;
    checker.pages();
    Ok(checker.report)
}

struct Checker<'o> {
    options: &'o CheckOptions,
    threshold: u16,
    report: Report,
    runs: Vec<(u64, u64)>,
    last: Option<Slice>,
}

impl Checker<'_> {
    fn top(&mut self, descriptor: &Descriptor) {
        let Descriptor { tree, tail, .. } = descriptor;
        self.report.stats = Stats::of_top(descriptor);
        if tail.len() > self.options.max_tail {
            self.report.problems.push(Problem::Tail(tail.len()));
        }
        if let Top::Inline(slices) = &tree.top {
            let found = super::node::sum(slices.iter().map(|s| s.len));
            if found != Some(tree.size) {
                let problem = Problem::Sum { node: None, expected: tree.size, found };
                self.report.problems.push(problem);
            }
            if slices.len() > self.options.max_inline {
                self.report.problems.push(Problem::Inline(slices.len()));
            }
        }
    }

    fn visit(&mut self, visit: &Visit<'_>, (min, max): (usize, usize)) {
        self.report.stats.count(visit, self.options.page_size as u64);
        let problems = &mut self.report.problems;
        match visit {
            Visit::Unreadable { node, error, .. } => {
                problems.push(Problem::Unreadable(*node, error.to_string()));
                self.last = None;
            }
            Visit::Node { node, level, bytes, root, content } => {
                let (count, found) = (content.count(), content.bytes());
                if found != Some(*bytes) {
                    problems.push(Problem::Sum { node: Some(*node), expected: *bytes, found });
                }
                let least = match (root, level) {
                    (true, 0) => 1,
                    (true, _) => 2,
                    (false, _) => min,
                };
                if count < least || count > max {
                    problems.push(Problem::Fill { node: *node, level: *level, count });
                }
                if *root && *level == 0 && count <= self.options.max_inline {
                    problems.push(Problem::Inline(count));
                }
            }
            Visit::Slice { start, slice } => self.slice(*start, *slice),
        }
    }

    fn slice(&mut self, start: u64, slice: Slice) {
        let page = self.options.page_size as u64;
        let problems = &mut self.report.problems;
        if let Err(error) = slice.validate(&|| format!("byte {start}")) {
            problems.push(Problem::Slice(start, error.to_string()));
        }
        if u64::from(slice.offset) >= page {
            problems.push(Problem::Slice(start, format!("offset {}", slice.offset)));
        }
        if slice.is_run() {
            self.runs.push((slice.reference, slice.end_page(page)));
        }
        if let Some(last) = self.last.replace(slice).filter(|l| l.is_run() && slice.is_run()) {
            let pages = [last.pages(page), slice.pages(page)];
            let fit = last.len.saturating_add(slice.len).div_ceil(page);
            // As in edits: no segment can have more pages than the largest.
            let least = u64::from(self.threshold).min(self.options.max_segment_pages);
            if pages.iter().any(|p| *p < least) && fit <= self.options.max_segment_pages {
                problems.push(Problem::Threshold { at: start, pages });
            }
        }
    }

    fn pages(&mut self) {
        self.runs.sort_unstable();
        let mut end = 0;
        for (first, behind) in &self.runs {
            if *first < end {
                self.report.problems.push(Problem::PageTwice(*first));
            }
            end = end.max(*behind);
        }
    }
}

/// Counts what a tree has. Cost: one read per node.
///
/// # Errors
/// Those of reading nodes.
pub fn stats<S: NodeRead + ?Sized>(
    store: &S,
    descriptor: &Descriptor,
    page_size: usize,
) -> Result<Stats> {
    let mut stats = Stats::of_top(descriptor);
    walk(store, &descriptor.tree, &mut |visit| match visit {
        Visit::Unreadable { error, .. } => Err(error),
        other => {
            stats.count(&other, page_size as u64);
            Ok(())
        }
    })?;
    Ok(stats)
}

/// Retires all nodes and runs of `tree`. Cost: one read per node; no data is read.
///
/// # Errors
/// Those of reading and retiring; what was retired before stays so (the caller's
/// transaction fails).
pub fn delete_all<S: Nodes + Segments + ?Sized>(store: &mut S, tree: &Tree) -> Result<()> {
    match &tree.top {
        Top::Inline(slices) => retire_runs(store, slices),
        Top::Root { node, height } => {
            let root = Child { bytes: tree.size, node: *node };
            delete_below(store, root, *height)
        }
    }
}

fn retire_runs<S: Segments + ?Sized>(store: &mut S, slices: &[Slice]) -> Result<()> {
    slices.iter().filter(|s| s.is_run()).try_for_each(|s| store.retire_run(s))
}

fn delete_below<S: Nodes + Segments + ?Sized>(
    store: &mut S,
    child: Child,
    level: u8,
) -> Result<()> {
    let node = super::find::read_checked(store, child.node, level, child.bytes)?;
    // Before what is below: a damaged tree that names a node twice is found at once.
    store.retire_node(child.node)?;
    match node {
        Node::Leaf(slices) => retire_runs(store, &slices),
        Node::Inner { level, children } => {
            children.into_iter().try_for_each(|c| delete_below(store, c, level - 1))
        }
    }
}
