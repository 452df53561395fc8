//! What is done before a range of a large object is read.

use super::{DataRead, node_at, run_start};
use holdall_core::segment_tree::{
    self, Node, NodeRead, NodeRef, Prefetch, Slice, Tree, inner_fanout_of, leaf_fanout_of,
};
use holdall_core::{PageNo, Result};
use std::cell::Cell;
use std::ops::Range;

/// What is done with each run of a range that will be read.
#[derive(Debug)]
struct Ahead<'a, D: ?Sized, F> {
    pages: &'a D,
    /// Given where a run's bytes lie and how many; returns whether more may be of use.
    each: F,
}

impl<D: DataRead + ?Sized, F> NodeRead for Ahead<'_, D, F> {
    fn read_node(&self, node: NodeRef, _level: u8) -> Result<Node> {
        node_at(self.pages, node)
    }

    fn leaf_fanout(&self) -> usize {
        leaf_fanout_of(self.pages.page_size())
    }

    fn inner_fanout(&self) -> usize {
        inner_fanout_of(self.pages.page_size())
    }
}

impl<D: DataRead + ?Sized, F: Fn(PageNo, u64, u64) -> bool> Prefetch for Ahead<'_, D, F> {
    fn will_read(&self, slice: &Slice, at: u64, len: u64) -> bool {
        run_start(slice).is_ok_and(|start| (self.each)(start, u64::from(slice.offset) + at, len))
    }
}

/// Has the bytes `range`, of which up to `at_once` are read in one go, read ahead if they lie
/// in several segments. A hint; what goes wrong shows when they are read.
pub fn prefetch<D: DataRead + ?Sized>(pages: &D, tree: &Tree, (range, at_once): (Range<u64>, u64)) {
    let each = |start, offset, len| pages.will_need(start, offset, len, at_once);
    let _ = segment_tree::prefetch(&Ahead { pages, each }, tree, range, false);
}

/// Has all bytes of a tree read ahead. A hint.
pub fn prefetch_all<D: DataRead + ?Sized>(pages: &D, tree: &Tree) {
    let each = |start, offset, len| pages.will_need(start, offset, len, tree.size);
    let _ = segment_tree::prefetch(&Ahead { pages, each }, tree, 0..tree.size, true);
}

/// Whether some of the bytes `range`, read at once, would come past the page cache; looks
/// at its first segments.
pub fn is_new<D: DataRead + ?Sized>(pages: &D, tree: &Tree, range: Range<u64>) -> bool {
    let new = Cell::new(false);
    let each = |start, offset, len| {
        new.set(new.get() || pages.is_new(start, offset, len));
        // One is enough.
        false
    };
    let _ = segment_tree::prefetch(&Ahead { pages, each }, tree, range, true);
    new.get()
}
