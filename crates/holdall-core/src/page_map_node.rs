//! Node of a page map: the radix tree from logical page index to page number.
//!
//! Owns: the body of pages of kind `PageMap` (docs/format.md "Page map node"). A node knows
//! its level and the first index below it, so a node reached by a wrong reference is found
//! at once and no walk can run in circles. An entry carries, beside the page number, the
//! free-space class of the page (leaf) or the largest class below (inner node): the map is
//! the free-space inventory of its file too (McAuliffe §3.1, FSIP) with hierarchical maxima.
//! Pure; no threads.

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::page::HEADER;
use crate::{Error, PageNo, Result};
use std::ops::Range;

const LEVEL: usize = HEADER;
const BASE: usize = HEADER + 4;
/// Offset of the first entry.
pub const ENTRIES: usize = HEADER + 8;
const ENTRY: usize = 8;
/// The highest tree needed: four levels of the smallest pages reach every `u32` index.
pub const MAX_HEIGHT: u8 = 4;
/// The class of a page that holds nothing: it is formatted at its next use without being
/// read. Unlike the others this class is exact, never a hint.
pub const FRESH: u8 = 15;

/// Entries looked at together in a pass.
const BLOCK: usize = 16;
const CLASS_SHIFT: u32 = 48;
const HOLE_BIT: u64 = 1 << 52;
const KNOWN: u64 = (1 << 53) - 1;

/// Entries of a node in a page of `page_size` bytes.
pub fn fanout(page_size: usize) -> usize {
    (page_size - ENTRIES) / ENTRY
}

/// Indexes below one entry of a node of `level` (a leaf is level 0).
pub fn span(page_size: usize, level: u8) -> u64 {
    (fanout(page_size) as u64).saturating_pow(u32::from(level))
}

/// What an entry says beside the page number; an inner entry sums up its subtree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tag {
    /// Free-space class 0..=15; in an inner entry the largest below.
    pub class: u8,
    /// The index is in use by no page; in an inner entry, so is one below.
    pub hole: bool,
}

impl Tag {
    fn from_raw(raw: u64) -> Self {
        Self { class: class_bits(raw), hole: raw & HOLE_BIT != 0 }
    }

    /// The sum of two subtrees.
    pub fn join(self, other: Self) -> Self {
        Self { class: self.class.max(other.class), hole: self.hole || other.hole }
    }
}

/// One entry of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Entry {
    /// The page, or the child node; none in a hole and beyond the end.
    pub page: PageNo,
    /// Class and hole mark.
    pub tag: Tag,
}

impl Entry {
    fn raw(self) -> u64 {
        let hole = if self.tag.hole { HOLE_BIT } else { 0 };
        self.page.0 | u64::from(self.tag.class) << CLASS_SHIFT | hole
    }
}

/// What a search looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// A page of at least this class.
    Class(u8),
    /// A page of at least this class that is not [`FRESH`]; an inner entry of any class from
    /// this one on may have one below.
    Partly(u8),
    /// An index without a page.
    Hole,
}

impl Want {
    fn met(self, raw: u64) -> bool {
        match self {
            Self::Class(c) => class_bits(raw) >= c && raw & PageNo::MAX.0 != 0,
            Self::Partly(c) => (c..FRESH).contains(&class_bits(raw)) && raw & PageNo::MAX.0 != 0,
            Self::Hole => raw & HOLE_BIT != 0,
        }
    }

    /// What to look for in an inner node: its sums give the largest class below only.
    pub fn in_inner(self) -> Self {
        match self {
            Self::Partly(class) => Self::Class(class),
            other => other,
        }
    }

    /// Whether an inner entry that has what is wanted keeps its promise: the class `FRESH`
    /// hides the others below.
    pub fn is_promised(self, class: u8) -> bool {
        !matches!(self, Self::Partly(_)) || class != FRESH
    }
}

fn class_bits(raw: u64) -> u8 {
    (raw >> CLASS_SHIFT) as u8 & 0xf
}

/// A node whose level and base have been checked.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    bytes: &'a [u8],
    no: PageNo,
}

impl<'a> Node<'a> {
    /// Looks into page `no`, which must be the node of `level` whose first index is `base`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is another node.
    #[inline]
    pub fn new(bytes: &'a [u8], no: PageNo, level: u8, base: u32) -> Result<Self> {
        let found = (bytes[LEVEL], u32_at(bytes, BASE));
        if found != (level, base) {
            let detail = format!("map node is (level, base) {found:?}, not {:?}", (level, base));
            return Err(Error::page(no, detail));
        }
        Ok(Self { bytes, no })
    }

    fn raw(&self, slot: usize) -> u64 {
        u64_at(self.bytes, ENTRIES + slot * ENTRY)
    }

    /// The entry `slot`, which must be below the fanout.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if bits are set that no version writes.
    #[inline]
    pub fn entry(&self, slot: usize) -> Result<Entry> {
        let raw = self.raw(slot);
        if raw & !KNOWN != 0 {
            return Err(Error::page(self.no, format!("map entry {slot} is {raw:#x}")));
        }
        Ok(Entry { page: PageNo(raw & PageNo::MAX.0), tag: Tag::from_raw(raw) })
    }

    fn entries(&self) -> &'a [[u8; ENTRY]] {
        let entries = self.bytes[ENTRIES..].as_chunks().0;
        &entries[..fanout(self.bytes.len())]
    }

    /// The first of `slots` that meets `want`. Cost: one pass over them.
    pub fn next(&self, want: Want, slots: Range<usize>) -> Option<usize> {
        let met = |entry: &[u8; ENTRY]| want.met(u64::from_le_bytes(*entry));
        let mut at = slots.start;
        for block in self.entries().get(slots)?.chunks(BLOCK) {
            // Without a branch for each entry: most blocks hold nothing that is wanted.
            if block.iter().fold(false, |any, entry| any | met(entry)) {
                return block.iter().position(met).map(|i| at + i);
            }
            at += block.len();
        }
        None
    }

    /// What the parent's entry must say of this node. Cost: one pass over the node.
    pub fn summary(&self) -> Tag {
        self.summary_within(0, Tag { class: FRESH, hole: true })
    }

    /// As [`Node::summary`], if it is known to be at most `most`; the look begins at
    /// `slot`, going round, and ends once it has met that much. Cost: one pass over the node
    /// at most; little if neighbours are alike.
    pub fn summary_within(&self, slot: usize, most: Tag) -> Tag {
        let (before, after) = self.entries().split_at(slot.min(fanout(self.bytes.len())));
        let mut sum = Tag::default();
        for block in after.chunks(BLOCK).chain(before.chunks(BLOCK)) {
            let tags = block.iter().map(|entry| Tag::from_raw(u64::from_le_bytes(*entry)));
            sum = tags.fold(sum, Tag::join);
            if sum == most {
                break;
            }
        }
        sum
    }
}

/// Makes an empty page a node.
pub fn init(bytes: &mut [u8], level: u8, base: u32) {
    bytes[LEVEL] = level;
    put_u32(bytes, BASE, base);
}

/// Writes entry `slot`, which must be below the fanout.
pub fn put(bytes: &mut [u8], slot: usize, entry: Entry) {
    debug_assert!(entry.page <= PageNo::MAX && entry.tag.class <= FRESH, "{entry:?}");
    put_u64(bytes, ENTRIES + slot * ENTRY, entry.raw());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(page: u64, class: u8, hole: bool) -> Entry {
        Entry { page: PageNo(page), tag: Tag { class, hole } }
    }

    #[test]
    fn entries_searches_and_sums() {
        let mut page = vec![0; 4096];
        init(&mut page, 1, 507);
        let full = entry(PageNo::MAX.0, 15, true);
        put(&mut page, 3, entry(7, 4, false));
        put(&mut page, 9, entry(0, 0, true));
        put(&mut page, 506, entry(8, 6, false));
        assert!(Node::new(&page, PageNo(1), 1, 0).is_err());
        assert!(Node::new(&page, PageNo(1), 0, 507).is_err());
        let node = Node::new(&page, PageNo(1), 1, 507).unwrap();
        assert_eq!(node.entry(3).unwrap(), entry(7, 4, false));
        let sum = Tag { class: 6, hole: true };
        assert_eq!(node.summary(), sum);
        for slot in [0, 3, 4, 9, 10, 506, 507] {
            assert_eq!(node.summary_within(slot, sum), sum, "from {slot}");
            assert_eq!(node.summary_within(slot, Tag { class: 7, hole: true }), sum);
        }
        assert_eq!(node.next(Want::Class(0), 0..507), Some(3));
        assert_eq!(node.next(Want::Class(4), 4..507), Some(506));
        assert_eq!(node.next(Want::Class(7), 0..507), None);
        assert_eq!(node.next(Want::Partly(5), 0..507), Some(506));
        assert_eq!(node.next(Want::Partly(7), 0..507), None);
        assert_eq!(node.next(Want::Hole, 0..507), Some(9));
        assert_eq!(node.next(Want::Hole, 10..507), None);
        assert_eq!(node.next(Want::Class(4), 4..506), None);
        assert_eq!(node.next(Want::Class(4), 500..508), None, "no such slots");
        put(&mut page, 0, full);
        put_u64(&mut page, ENTRIES + 8, 1 << 53);
        let node = Node::new(&page, PageNo(1), 1, 507).unwrap();
        assert_eq!(node.entry(0).unwrap(), full);
        assert!(node.entry(1).is_err());
    }

    #[test]
    fn four_levels_reach_every_index() {
        for size in [4096, 8192, 65536] {
            assert!(span(size, MAX_HEIGHT) > u64::from(u32::MAX));
        }
    }
}
