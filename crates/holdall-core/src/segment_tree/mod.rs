//! The positional tree of a large object: variable-size segments and the bytes before them.
//!
//! A large object is a sequence of segments, runs of neighbouring pages with no holes but
//! in a segment's last page (Biliris 1992 §2.3, EOS). Leaf entries are [`Slice`]s of runs;
//! inner entries are pairs of (bytes below, child), so that any byte is found in O(height)
//! and inserting in the middle moves nothing behind it. The first slices stay inline in the
//! object's [`Descriptor`], as do up to half a page of bytes at its end.
//!
//! Owns: no state. Every edit is a function from (descriptor, operation) to a new
//! descriptor; nodes and segments live behind the traits of [`store`], which learn what
//! was written and what is retired. Nothing is freed, synced or committed here. A node that
//! changes may come back under a new reference, which goes into its parent; nodes point
//! only downwards.
//!
//! Invariants (see [`check()`]):
//! - T1 the bytes of a node equal what its parent, or the [`Tree`], says;
//! - T2 every node but the root is at least half full; an inner root has two children;
//! - T3 all leaves are at level 0, and a child's level is its parent's less one;
//! - T4 a page belongs to one slice; a page is written once, whole, and never completed;
//! - T5 of two neighbouring segments none has less than T pages if both fit in one
//!   (Biliris §2.3), wherever an edit passed and the space had neighbouring pages to give.
//!
//! Threads: none; all state is the caller's.

mod build;
mod check;
mod descriptor;
mod find;
mod limits;
mod needed;
mod node;
mod replace;
mod splice;
pub mod store;
pub mod testing;
#[cfg(test)]
mod tests;
mod window;

pub use build::{Builder, append_slices, build};
pub use check::{CheckOptions, Problem, Report, Stats, Visit, check, delete_all, stats, walk};
pub use descriptor::{APPEND_MOSTLY, Descriptor, MAY_HOLD_SHARED_RUNS};
pub use find::{Located, Slices, prefetch, read_at, slices};
pub use needed::{Needed, needed};
pub use node::{Child, Node, inner_fanout_of, leaf_fanout_of};
pub use splice::{Content, Options, splice, stage};
pub use store::{
    Cut, NodeRead, Nodes, Origin, Pair, Pieces, Prefetch, ReadSource, SegmentRead, Segments,
    Source, Store,
};

use crate::{Error, Result};

/// Largest size of an object in bytes, and largest page number a slice may name.
pub const MAX_OBJECT: u64 = i64::MAX as u64;
/// Greatest height of a tree: more than any object of [`MAX_OBJECT`] bytes can need.
pub const MAX_HEIGHT: u8 = 63;

/// Where a node lives. Only the node store gives it a meaning (a page number, in the engine).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeRef(pub u64);

impl std::fmt::Display for NodeRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What the bytes of a slice are. The number is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SliceKind {
    /// Pages of a run.
    Run = 1,
    /// Bytes never written: read as zeros, own no page.
    Zero = 2,
    /// Kept for a later format; refused when read.
    Reserved = 3,
}

/// A stretch of an object: `len` bytes in neighbouring pages. A leaf entry of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slice {
    /// Run or zeros.
    pub kind: SliceKind,
    /// Carried along by every edit; no bit has a meaning to the tree.
    pub flags: u8,
    /// First byte within the run's first page, less than the page size. 0 wherever the tree
    /// itself cut (kept for slices that share pages).
    pub offset: u32,
    /// First page of the run; page `k` of the run is `reference + k`. 0 for zeros.
    pub reference: u64,
    /// Bytes, at least 1.
    pub len: u64,
}

impl Slice {
    /// Bytes of a slice in a node.
    pub const BYTES: usize = 24;

    /// A run of `len` bytes from the start of page `first`.
    pub fn run(first: u64, len: u64) -> Self {
        Self { kind: SliceKind::Run, flags: 0, offset: 0, reference: first, len }
    }

    /// `len` bytes never written.
    pub fn zeros(len: u64) -> Self {
        Self { kind: SliceKind::Zero, flags: 0, offset: 0, reference: 0, len }
    }

    /// Whether the slice has pages.
    pub fn is_run(&self) -> bool {
        self.kind == SliceKind::Run
    }

    /// Pages the slice touches; 0 for zeros.
    pub fn pages(&self, page_size: u64) -> u64 {
        if self.is_run() {
            u64::from(self.offset).saturating_add(self.len).div_ceil(page_size)
        } else {
            0
        }
    }

    /// The page right behind the slice's last one.
    pub fn end_page(&self, page_size: u64) -> u64 {
        self.reference.saturating_add(self.pages(page_size))
    }

    /// Whether the last page is filled to its end, so that the run can go on behind it.
    pub fn ends_page(&self, page_size: u64) -> bool {
        self.is_run() && (u64::from(self.offset) + self.len).is_multiple_of(page_size)
    }

    /// The `len` bytes from byte `from` of this slice. The caller keeps them inside it.
    #[must_use]
    pub fn part(&self, from: u64, len: u64, page_size: u64) -> Self {
        debug_assert!(from + len <= self.len, "part of a slice");
        if !self.is_run() {
            return Self { len, ..*self };
        }
        let at = u64::from(self.offset) + from;
        let offset = (at % page_size) as u32;
        Self { offset, reference: self.reference + at / page_size, len, ..*self }
    }

    /// Checks what can be checked without a store. `place` names the node or object.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an empty or too long slice, zeros with a page, or a page number
    /// out of range; [`Error::Unsupported`] for a reserved kind.
    pub fn validate(&self, place: &dyn Fn() -> String) -> Result<()> {
        let bad = |detail: &str| Err(Error::corrupt(place(), format!("slice {self:?}: {detail}")));
        match self.kind {
            SliceKind::Reserved => {
                return Err(Error::Unsupported {
                    detail: format!("{} has a slice of a reserved kind", place()),
                });
            }
            SliceKind::Zero if self.reference != 0 || self.offset != 0 => {
                return bad("zeros with a page");
            }
            SliceKind::Zero | SliceKind::Run => {}
        }
        if self.len == 0 || self.len > MAX_OBJECT {
            return bad("length out of range");
        }
        if self.reference > MAX_OBJECT {
            return bad("page number out of range");
        }
        Ok(())
    }
}

/// The segments of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Bytes in segments.
    pub size: u64,
    /// The slices, or where they are.
    pub top: Top,
}

/// The uppermost part of a tree, held in the object's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Top {
    /// The few slices there are, in order.
    Inline(Vec<Slice>),
    /// The root node.
    Root {
        /// Where the root is.
        node: NodeRef,
        /// Its level; 0 if its entries are slices.
        height: u8,
    },
}

impl Tree {
    /// A tree of no bytes.
    pub fn empty() -> Self {
        Self { size: 0, top: Top::Inline(Vec::new()) }
    }
}

impl Default for Tree {
    fn default() -> Self {
        Self::empty()
    }
}
