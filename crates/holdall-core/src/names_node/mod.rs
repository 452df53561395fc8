//! Nodes of a names B+-tree: byte layout, search and edits of one page, without I/O.
//!
//! Owns: the body of a page of kind `Names` (docs/format.md "Names node"). [`Node`] reads,
//! [`NodeMut`] edits in place so that an edit changes few bytes, [`Plan`] picks the prefix
//! a rebuilt node stores once. Names trees themselves are in crate `holdall`, `names`.
//!
//! Invariants: slots are in strict key order; cells do not overlap; `used` counts prefix,
//! cells and the holes among them, `holes` those holes. Keys with the node's prefix store
//! only the rest; other keys store all, so any key may be put into any node.
//!
//! Every offset and length from the page is checked where it is used, so that a lookup
//! costs no pass over the page and a damaged page gives an error, never a panic;
//! [`Node::validate`] is the pass over everything. Pure, no threads.

mod edit;
mod key;
mod read;
mod search;
mod share;
#[cfg(test)]
mod tests;
mod validate;
mod value;

pub use edit::{NodeMut, child_bytes};
pub use key::{Cell, Key, Plan};
pub use read::{Node, slot};
pub use share::Share;
pub use value::Value;

use crate::collection_entry::MAX_NUMBER;
use crate::name::MAX_NAME;
use crate::page::{HEADER, MAX_PAGE_SIZE, MIN_PAGE_SIZE};

/// Longest key in bytes: a name behind its collection's number.
pub const MAX_KEY: usize = MAX_NAME + MAX_NUMBER;
/// Longest value in bytes; the shortest has one byte.
pub const MAX_VALUE: usize = 64;
/// Highest level a node can have; leaves have level 0. Inner nodes have at least two
/// children when they are split, so 48-bit page numbers end before this does.
pub const MAX_LEVEL: u8 = 63;
/// Bytes of a child's page number.
pub const CHILD: usize = 6;

/// Level, 1 byte; one reserved byte follows.
const LEVEL: usize = HEADER;
/// Number of cells, 2 bytes.
const COUNT: usize = HEADER + 2;
/// Bytes at the page's end taken by prefix, cells and holes, 2 bytes.
const USED: usize = HEADER + 4;
/// Bytes of `used` that belong to no cell, 2 bytes.
const HOLES: usize = HEADER + 6;
/// Length of the prefix, which lies at the very end of the page, 2 bytes.
const PREFIX: usize = HEADER + 8;
/// First child of an inner node, 6 bytes; 0 in a leaf.
const LEFTMOST: usize = HEADER + 10;
/// Bytes of a page that each look at it begins with.
pub const HEAD: std::ops::Range<usize> = 0..SLOTS;
/// The slot array: a 2-byte page offset per cell.
const SLOTS: usize = HEADER + 16;
/// Bytes of a slot.
const SLOT: usize = 2;
/// Bit of a cell's key field: the node's prefix comes before the stored bytes.
const SHARED: u16 = 1 << 15;

/// Bytes of a page of `page_size` for slots, cells and prefix.
pub fn capacity(page_size: usize) -> usize {
    page_size.saturating_sub(SLOTS)
}

/// Bytes before the key in a cell: key field, and in a leaf the value's length.
const fn cell_header(level: u8) -> usize {
    if level == 0 { 3 } else { 2 }
}

// A split leaves at most (capacity + prefix) / 2 + one cell in a half; that must fit.
const LARGEST_CELL: usize = 3 + MAX_KEY + MAX_VALUE + SLOT;
const _: () =
    assert!((MIN_PAGE_SIZE - SLOTS + MAX_KEY) / 2 + LARGEST_CELL <= MIN_PAGE_SIZE - SLOTS);
const _: () = assert!(MAX_PAGE_SIZE - SLOTS <= u16::MAX as usize);
const _: () = assert!(LEFTMOST + CHILD == SLOTS && MAX_KEY < SHARED as usize);
