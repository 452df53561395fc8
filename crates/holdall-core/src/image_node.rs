//! Node of the tree of images: which pages of a state lie elsewhere, and where.
//!
//! Owns: the body of pages of kind `Images` (docs/format.md "Image node"): sorted pairs of
//! numbers. In a leaf, a page and the page that holds its image; in an inner node, the least
//! page below a child and the child. A node knows its level, so that no walk can run in circles.
//! Pure; no threads.
//!
//! An entry taken out of a leaf stays there without a value: the entries behind it need not move,
//! and the log gets 8 bytes of the node instead of half of it.

use crate::bytes::{put_u16, put_u64, u16_at, u64_at};
use crate::page::HEADER;
use crate::{Error, PageNo, Result};

const LEVEL: usize = HEADER;
const COUNT: usize = HEADER + 2;
/// Offset of the first entry.
pub const ENTRIES: usize = HEADER + 8;
const ENTRY: usize = 16;
/// The highest level: nodes of the smallest pages, half full, reach every page of a volume.
pub const MAX_LEVEL: u8 = 7;

/// Entries of a node in a page of `page_size` bytes.
pub fn capacity(page_size: usize) -> usize {
    (page_size - ENTRIES) / ENTRY
}

/// A node, to be read.
#[derive(Debug, Clone, Copy)]
pub struct ImageNode<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> ImageNode<'a> {
    /// The node in `bytes`, page `no`. Cost: none; the order of its entries is not looked at.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it has more entries than a page, or a level that no tree has.
    pub fn new(bytes: &'a [u8], no: PageNo) -> Result<Self> {
        let (count, level) = (usize::from(u16_at(bytes, COUNT)), bytes[LEVEL]);
        if count > capacity(bytes.len()) || level > MAX_LEVEL || (level > 0 && count == 0) {
            return Err(Error::page(
                no,
                format!("an image node of level {level}, {count} entries"),
            ));
        }
        Ok(Self { bytes, count })
    }

    /// Levels below it; a leaf has 0.
    pub fn level(&self) -> u8 {
        self.bytes[LEVEL]
    }

    /// Entries, those without a value included.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Entry `i`: a page, and where its image or the node below is; `NONE` for a page that has
    /// none any more.
    pub fn entry(&self, i: usize) -> (PageNo, PageNo) {
        let at = ENTRIES + i * ENTRY;
        (PageNo(u64_at(self.bytes, at)), PageNo(u64_at(self.bytes, at + 8)))
    }

    /// All entries in order.
    pub fn entries(&self) -> impl Iterator<Item = (PageNo, PageNo)> + use<'a> {
        let node = *self;
        (0..self.count).map(move |i| node.entry(i))
    }

    /// The place of `page` among the entries, or where it would be. O(log n).
    pub fn search(&self, page: PageNo) -> std::result::Result<usize, usize> {
        let (mut from, mut to) = (0, self.count);
        while from < to {
            let middle = usize::midpoint(from, to);
            match self.entry(middle).0.cmp(&page) {
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        Err(from)
    }

    /// Where the image of `page` lies, if this leaf says so.
    pub fn image(&self, page: PageNo) -> Option<PageNo> {
        let at = self.search(page).ok()?;
        Some(self.entry(at).1).filter(|image| !image.is_none())
    }

    /// Below which entry of an inner node `page` is: the first serves all before it.
    pub fn child(&self, page: PageNo) -> usize {
        self.search(page).unwrap_or_else(|at| at.saturating_sub(1))
    }

    /// Whether every page that this leaf names has no image any more.
    pub fn is_void(&self) -> bool {
        self.entries().all(|(_, image)| image.is_none())
    }

    /// Checks that the entries are in order.
    ///
    /// # Errors
    /// [`Error::Corrupt`], naming page `no`.
    pub fn check_order(&self, no: PageNo) -> Result<()> {
        let keys = || self.entries().map(|(page, _)| page);
        if keys().zip(keys().skip(1)).all(|(a, b)| a < b) {
            return Ok(());
        }
        Err(Error::page(no, "its entries are not in order"))
    }
}

/// Makes an empty, formatted page a node of this level.
pub fn init(bytes: &mut [u8], level: u8) {
    bytes[LEVEL] = level;
}

/// Whether a node has no room for another entry.
pub fn is_full(bytes: &[u8]) -> bool {
    usize::from(u16_at(bytes, COUNT)) >= capacity(bytes.len())
}

/// Puts an entry at place `at`, before those from there on. The node is not full.
pub fn insert_at(bytes: &mut [u8], at: usize, page: PageNo, target: PageNo) {
    let count = usize::from(u16_at(bytes, COUNT));
    let from = ENTRIES + at * ENTRY;
    bytes.copy_within(from..ENTRIES + count * ENTRY, from + ENTRY);
    put_u64(bytes, from, page.0);
    put_u64(bytes, from + 8, target.0);
    put_u16(bytes, COUNT, count as u16 + 1);
}

/// Has entry `at` lead to `target`.
pub fn set_target(bytes: &mut [u8], at: usize, target: PageNo) {
    put_u64(bytes, ENTRIES + at * ENTRY + 8, target.0);
}

/// Has entry `at` of an inner node serve the pages from `page` on.
pub fn set_page(bytes: &mut [u8], at: usize, page: PageNo) {
    put_u64(bytes, ENTRIES + at * ENTRY, page.0);
}

/// Takes entry `at` out; those behind it move.
pub fn remove_at(bytes: &mut [u8], at: usize) {
    let count = usize::from(u16_at(bytes, COUNT));
    let from = ENTRIES + at * ENTRY;
    bytes.copy_within(from + ENTRY..ENTRIES + count * ENTRY, from);
    bytes[ENTRIES + (count - 1) * ENTRY..ENTRIES + count * ENTRY].fill(0);
    put_u16(bytes, COUNT, count as u16 - 1);
}

/// Moves the entries from place `at` on into `other`, an empty node.
pub fn move_behind(bytes: &mut [u8], at: usize, other: &mut [u8]) {
    let count = usize::from(u16_at(bytes, COUNT));
    let (from, to) = (ENTRIES + at * ENTRY, ENTRIES + count * ENTRY);
    other[ENTRIES..ENTRIES + to - from].copy_from_slice(&bytes[from..to]);
    bytes[from..to].fill(0);
    put_u16(bytes, COUNT, at as u16);
    put_u16(other, COUNT, (count - at) as u16);
}
