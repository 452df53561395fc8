//! Reading one node: cells and children.
//!
//! Owns: [`Node`]. Opening checks the few header fields against each other; every access
//! to a cell checks that cell. Nothing is trusted, nothing is passed over twice.

use super::key::{HEAD, cut, last_word, word_at};
use super::{CHILD, COUNT, Cell, HOLES, Key, LEFTMOST, LEVEL, MAX_KEY, MAX_LEVEL, MAX_VALUE};
use super::{PREFIX, SHARED, SLOT, SLOTS, USED, Value, cell_header};
use crate::bytes::{u16_at, u48_at};
use crate::{Error, PageNo, Result};
use std::ops::Range;

/// Where in its page the slot of cell `i` lies.
#[inline]
pub fn slot(i: usize) -> Range<usize> {
    let at = SLOTS + i * SLOT;
    at..at + SLOT
}

/// A names node, for reading. Borrows the page.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    pub(super) no: PageNo,
    pub(super) page: &'a [u8],
    level: u8,
    pub(super) count: usize,
    used: usize,
    holes: usize,
    pub(super) prefix: &'a [u8],
}

impl<'a> Node<'a> {
    /// Looks at `page`, whose number is `no`. Cost: constant.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the node's header contradicts itself.
    #[inline]
    pub fn open(no: PageNo, page: &'a [u8]) -> Result<Self> {
        // One look at the length covers all fields.
        let Some(header) = page.first_chunk::<SLOTS>() else {
            return Err(Error::page(no, "too short for a names node"));
        };
        let field = |at| usize::from(u16_at(header, at));
        let (level, count, used) = (header[LEVEL], field(COUNT), field(USED));
        let (holes, prefix) = (field(HOLES), field(PREFIX));
        if level > MAX_LEVEL || SLOTS + count * SLOT + used > page.len() {
            let detail = format!("names node of level {level}: {count} slots, {used} bytes used");
            return Err(Error::page(no, detail));
        }
        if prefix > MAX_KEY || prefix + holes > used {
            let detail = format!("names node: prefix {prefix} and holes {holes} in {used} used");
            return Err(Error::page(no, detail));
        }
        let prefix = &page[page.len() - prefix..];
        Ok(Self { no, page, level, count, used, holes, prefix })
    }

    /// As [`Node::open`] for a child, which must be one level below its parent, so that a
    /// descent ends even in a tree whose references run in a circle.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    #[inline]
    pub fn open_at(no: PageNo, page: &'a [u8], level: u8) -> Result<Self> {
        let node = Self::open(no, page)?;
        if node.level != level {
            let detail = format!("names node has level {}, expected {level}", node.level);
            return Err(Error::page(no, detail));
        }
        Ok(node)
    }

    /// The page's number.
    pub fn no(&self) -> PageNo {
        self.no
    }

    /// Levels below this node; 0 is a leaf.
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Whether the node is a leaf.
    pub fn is_leaf(&self) -> bool {
        self.level == 0
    }

    /// The level of the children.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at a leaf, if an inner node was expected.
    pub fn child_level(&self) -> Result<u8> {
        let below = self.level.checked_sub(1);
        below.ok_or_else(|| Error::page(self.no, "leaf where an inner names node belongs"))
    }

    /// Number of cells; an inner node has one child more.
    pub fn count(&self) -> usize {
        self.count
    }

    /// What the node's sharing keys begin with.
    pub fn prefix(&self) -> &'a [u8] {
        self.prefix
    }

    /// Bytes between slots and cells.
    pub fn gap(&self) -> usize {
        self.page.len() - SLOTS - self.count * SLOT - self.used
    }

    /// Bytes free once the holes are closed.
    pub fn free(&self) -> usize {
        self.gap() + self.holes
    }

    /// Bytes that slots, cells and prefix may take.
    pub fn capacity(&self) -> usize {
        self.page.len() - SLOTS
    }

    /// Bytes that slots, cells and prefix take.
    pub fn live(&self) -> usize {
        self.capacity() - self.free()
    }

    /// Offset of the lowest cell.
    pub(super) fn low(&self) -> usize {
        self.page.len() - self.used
    }

    /// Bytes of `used` that belong to no cell.
    pub(super) fn holes(&self) -> usize {
        self.holes
    }

    /// Whether bytes without meaning are zero, as every writer leaves them.
    pub(super) fn reserved_is_zero(&self) -> bool {
        self.page[LEVEL + 1] == 0 && (!self.is_leaf() || u48_at(self.page, LEFTMOST) == 0)
    }

    pub(super) fn bad_cell(&self, i: usize) -> Error {
        Error::page(self.no, format!("cell {i} of {} lies outside or is malformed", self.count))
    }

    /// Offset of cell `i` and where its stored key and payload lie in the page.
    #[inline]
    fn parts(&self, i: usize) -> Option<(usize, bool, &'a [u8], &'a [u8])> {
        if i >= self.count {
            return None;
        }
        let at = usize::from(u16_at(self.page, SLOTS + i * SLOT));
        let cells = &self.page[..self.page.len() - self.prefix.len()];
        if at < self.low() {
            return None;
        }
        let key_at = at + cell_header(self.level);
        let header = cells.get(at..key_at)?;
        let field = u16_at(header, 0);
        let (shared, len) = (field & SHARED != 0, usize::from(field & !SHARED));
        let payload = if self.level == 0 { usize::from(header[2]) } else { CHILD };
        if len + if shared { self.prefix.len() } else { 0 } > MAX_KEY {
            return None;
        }
        let (key, payload) = cells.get(key_at..key_at + len + payload)?.split_at(len);
        Some((at, shared, key, payload))
    }

    /// Whether the prefix belongs to the key of cell `i`, the head of the key's own bytes, and
    /// where these lie. What follows the key in its cell is not looked at.
    #[inline]
    pub(super) fn key_at(&self, i: usize) -> Option<(bool, u64, Range<usize>)> {
        let at = usize::from(u16_at(self.page, SLOTS + i * SLOT));
        let (cell, header) = (self.page.get(at..)?, cell_header(self.level));
        // One look at the length covers field and head; only the last bytes have less.
        let (field, word) = match cell.first_chunk::<{ 3 + HEAD }>() {
            Some(chunk) if self.level == 0 => (u16_at(chunk, 0), word_at(chunk, 3)),
            Some(chunk) => (u16_at(chunk, 0), word_at(chunk, 2)),
            None => (u16_at(cell.first_chunk::<2>()?, 0), last_word(cell, header)),
        };
        let (key_at, len) = (at + header, usize::from(field & !SHARED));
        if at < self.low() || key_at + len > self.page.len() {
            return None;
        }
        Some((field & SHARED != 0, cut(word, len), key_at..key_at + len))
    }

    /// Cell `i`, checked. Cost: constant.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it lies outside the cell area or has impossible lengths.
    pub fn cell(&self, i: usize) -> Result<Cell<'a>> {
        let (_, shared, tail, payload) = self.parts(i).ok_or_else(|| self.bad_cell(i))?;
        if payload.is_empty() || payload.len() > MAX_VALUE {
            return Err(self.bad_cell(i));
        }
        let key = Key::new(if shared { self.prefix } else { &[] }, tail);
        Ok(Cell { key, payload })
    }

    /// First byte and length of cell `i` in the page.
    pub(super) fn place(&self, i: usize) -> Result<(usize, usize)> {
        let (at, _, key, payload) = self.parts(i).ok_or_else(|| self.bad_cell(i))?;
        Ok((at, cell_header(self.level) + key.len() + payload.len()))
    }

    /// All cells in order.
    ///
    /// # Errors
    /// As [`Node::cell`].
    pub fn cells(&self) -> Result<Vec<Cell<'a>>> {
        (0..self.count).map(|i| self.cell(i)).collect()
    }

    /// The value of cell `i` of a leaf.
    ///
    /// # Errors
    /// As [`Node::cell`].
    pub fn value(&self, i: usize) -> Result<Value> {
        Value::new(self.cell(i)?.payload).ok_or_else(|| self.bad_cell(i))
    }

    /// The first child's reference as it lies in the page.
    pub fn leftmost(&self) -> &'a [u8] {
        &self.page[LEFTMOST..LEFTMOST + CHILD]
    }

    /// Child `i` of an inner node, of `count() + 1`: keys from separator `i - 1` up to, and
    /// not including, separator `i`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such child, or at a leaf.
    pub fn child(&self, i: usize) -> Result<PageNo> {
        self.child_level()?;
        let child = match i.checked_sub(1) {
            None => PageNo(u48_at(self.page, LEFTMOST)),
            Some(i) => PageNo(u48_at(self.cell(i)?.payload, 0)),
        };
        if child.is_none() {
            return Err(Error::page(self.no, format!("child {i} is page 0")));
        }
        Ok(child)
    }
}
