//! Editing one node in place.
//!
//! Owns: [`NodeMut`]. An insertion writes one cell and moves slots; a removal moves slots;
//! cells move only when holes must be closed. Bytes that hold nothing any more are left as
//! they are: what changes in a page is what the log has to carry.

use super::{CHILD, COUNT, Cell, HOLES, Key, LEFTMOST, LEVEL, MAX_KEY, MAX_LEVEL, MAX_VALUE};
use super::{Node, PREFIX, Plan, SHARED, SLOT, SLOTS, USED, cell_header, slot};
use crate::bytes::{put_u16, put_u48, u16_at};
use crate::{Error, PageNo, Result};
use std::ops::Range;

/// A names node, for editing. Borrows the page. After an error the page's content is
/// undefined; the transaction that owns it must be given up.
#[derive(Debug)]
pub struct NodeMut<'a> {
    no: PageNo,
    page: &'a mut [u8],
}

impl<'a> NodeMut<'a> {
    /// Edits `page`, whose number is `no`.
    pub fn new(no: PageNo, page: &'a mut [u8]) -> Self {
        Self { no, page }
    }

    /// The node as it is now.
    ///
    /// # Errors
    /// As [`Node::open`].
    pub fn view(&self) -> Result<Node<'_>> {
        Node::open(self.no, self.page)
    }

    /// Writes the whole node anew. `leftmost` is [`PageNo::NONE`] in a leaf. Cost: the
    /// page's content.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the cells do not fit: only a damaged node yields such cells.
    pub fn build(
        &mut self,
        level: u8,
        leftmost: PageNo,
        cells: &[Cell<'_>],
        prefix: &[u8],
    ) -> Result<()> {
        let size = prefix.len() + cells.iter().map(|c| c.cost(level, prefix)).sum::<usize>();
        if SLOTS + size > self.page.len() || level > MAX_LEVEL || prefix.len() > MAX_KEY {
            let detail = format!("{size} bytes do not make a names node of level {level}");
            return Err(Error::page(self.no, detail));
        }
        self.page[LEVEL] = level;
        put_u48(self.page, LEFTMOST, leftmost.0 & PageNo::MAX.0);
        put_u16(self.page, HOLES, 0);
        put_u16(self.page, PREFIX, prefix.len() as u16);
        let mut low = self.page.len() - prefix.len();
        self.page[low..].copy_from_slice(prefix);
        for (i, cell) in cells.iter().enumerate() {
            let skip = cell.shared(prefix);
            low = self.write_cell(low, cell, level, skip);
            put_u16(self.page, SLOTS + i * SLOT, low as u16);
        }
        put_u16(self.page, COUNT, cells.len() as u16);
        put_u16(self.page, USED, (self.page.len() - low) as u16);
        Ok(())
    }

    /// Writes a cell that ends at `end`, without the first `skip` bytes of its key; returns
    /// where it begins. The caller has checked that there is room.
    fn write_cell(&mut self, end: usize, cell: &Cell<'_>, level: u8, skip: usize) -> usize {
        let (a, b) = cell.key.after(skip);
        let len = a.len() + b.len();
        let at = end - cell_header(level) - len - cell.payload.len();
        put_u16(self.page, at, len as u16 | if skip > 0 { SHARED } else { 0 });
        if level == 0 {
            self.page[at + 2] = cell.payload.len() as u8;
        }
        let mut to = at + cell_header(level);
        for part in [a, b, cell.payload] {
            self.page[to..to + part.len()].copy_from_slice(part);
            to += part.len();
        }
        at
    }

    /// Puts a cell at position `i`, which the caller found by searching. Closes holes or
    /// packs under a better prefix if that makes room. `false` if it does not fit: then
    /// nothing changed and the node must be split.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the node is damaged.
    pub fn insert(&mut self, i: usize, key: Key<'_>, payload: &[u8]) -> Result<bool> {
        let node = self.view()?;
        let cell = Cell { key, payload };
        if i > node.count() || key.len() > MAX_KEY || payload.len() > MAX_VALUE {
            return Err(Error::page(self.no, format!("no place {i} for a cell to insert")));
        }
        let skip = cell.shared(node.prefix());
        if cell.cost_without(node.level(), skip) > node.gap() {
            return self.insert_packing(i, cell);
        }
        let (low, count, level) = (node.low(), node.count(), node.level());
        let start = self.write_cell(low, &cell, level, skip);
        let slots = SLOTS + i * SLOT;
        self.page.copy_within(slots..SLOTS + count * SLOT, slots + SLOT);
        put_u16(self.page, slots, start as u16);
        put_u16(self.page, COUNT, count as u16 + 1);
        put_u16(self.page, USED, (self.page.len() - start) as u16);
        Ok(true)
    }

    /// Puts cells behind all others of a leaf, as [`NodeMut::insert`] would one by one, while
    /// they fit as the leaf is; returns how many did. The caller knows that their keys ascend
    /// and come after all others.
    ///
    /// # Errors
    /// As [`NodeMut::insert`].
    pub fn append<'c>(&mut self, cells: impl Iterator<Item = Cell<'c>>) -> Result<usize> {
        let node = Node::open_at(self.no, self.page, 0)?;
        let (first, mut low, mut gap) = (node.count(), node.low(), node.gap());
        let (mut count, prefix) = (first, self.page.len() - node.prefix().len());
        for cell in cells {
            if cell.key.len() > MAX_KEY || cell.payload.len() > MAX_VALUE {
                return Err(Error::page(self.no, "no place for a cell of this length"));
            }
            let skip = cell.shared(&self.page[prefix..]);
            let cost = cell.cost_without(0, skip);
            if cost > gap {
                break;
            }
            low = self.write_cell(low, &cell, 0, skip);
            put_u16(self.page, SLOTS + count * SLOT, low as u16);
            (count, gap) = (count + 1, gap - cost);
        }
        put_u16(self.page, COUNT, count as u16);
        put_u16(self.page, USED, (self.page.len() - low) as u16);
        Ok(count - first)
    }

    /// Inserts by rewriting the node: without its holes, and under the best prefix.
    fn insert_packing(&mut self, i: usize, cell: Cell<'_>) -> Result<bool> {
        if is_packed(&self.view()?, self.page, &cell) {
            return Ok(false);
        }
        let copy = self.page.to_vec();
        let node = Node::open(self.no, &copy)?;
        let mut cells = node.cells()?;
        cells.insert(i, cell);
        let plan = Plan::best(node.level(), &cells, &[node.prefix()]);
        // Holes are closed whenever that makes room. A new prefix must free an eighth of the
        // page, or the next insertions would each rewrite the page to gain a few bytes.
        let closing = cell.cost(node.level(), node.prefix()) <= node.free();
        if plan.size > if closing { node.capacity() } else { most_packed(&node) } {
            return Ok(false);
        }
        let leftmost = if node.is_leaf() { PageNo::NONE } else { node.child(0)? };
        self.build(node.level(), leftmost, &cells, &plan.prefix)?;
        Ok(true)
    }

    /// Takes out the cells of `range`. Cost: moves the slots after it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the range or its cells are impossible.
    pub fn remove(&mut self, range: Range<usize>) -> Result<()> {
        let node = self.view()?;
        let (count, low, prefix) = (node.count(), node.low(), node.prefix().len());
        if range.start > range.end || range.end > count {
            return Err(Error::page(self.no, format!("no cells {range:?} among {count}")));
        }
        let (mut bytes, mut first) = (0, usize::MAX);
        for i in range.clone() {
            let (at, len) = node.place(i)?;
            bytes += len;
            first = first.min(at);
        }
        let (mut used, mut holes) = (self.page.len() - low, node.holes());
        let left = count - range.len();
        if left == 0 {
            (used, holes) = (prefix, 0);
        } else if range.len() == 1 && first == low {
            used = used.saturating_sub(bytes);
        } else {
            holes += bytes;
        }
        if prefix + holes > used {
            return Err(Error::page(self.no, "cells of a names node overlap"));
        }
        let end = SLOTS + count * SLOT;
        self.page.copy_within(SLOTS + range.end * SLOT..end, SLOTS + range.start * SLOT);
        put_u16(self.page, COUNT, left as u16);
        put_u16(self.page, USED, used as u16);
        put_u16(self.page, HOLES, holes as u16);
        Ok(())
    }

    /// Overwrites the payload of cell `i` by one of the same length.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the cell is impossible or the length differs.
    pub fn set_payload(&mut self, i: usize, payload: &[u8]) -> Result<()> {
        let node = self.view()?;
        let same = node.cell(i)?.payload.len() == payload.len();
        let (at, len) = node.place(i)?;
        if !same {
            return Err(Error::page(self.no, format!("payload of cell {i} has another length")));
        }
        self.page[at + len - payload.len()..at + len].copy_from_slice(payload);
        Ok(())
    }

    /// Sets the first child of an inner node.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at a leaf.
    pub fn set_leftmost(&mut self, child: PageNo) -> Result<()> {
        self.view()?.child_level()?;
        put_u48(self.page, LEFTMOST, child.0 & PageNo::MAX.0);
        Ok(())
    }

    /// Takes out child `i` of an inner node that has another. The range it covered goes to
    /// its left neighbour, or to the right one if it is the first.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such child.
    pub fn remove_child(&mut self, i: usize) -> Result<()> {
        match i.checked_sub(1) {
            Some(i) => self.remove(i..i + 1),
            None => {
                let next = self.view()?.child(1)?;
                self.set_leftmost(next)?;
                self.remove(0..1)
            }
        }
    }
}

/// Bytes that a node may take after it was packed under a new prefix.
fn most_packed(node: &Node<'_>) -> usize {
    node.capacity() - node.capacity() / 8
}

/// Bytes of keys in the cells of `page`; `None` if one lies outside.
fn key_bytes(page: &[u8], count: usize) -> Option<usize> {
    let key = |i| {
        let at = usize::from(u16_at(page, slot(i).start));
        Some(usize::from(u16_at(page.get(at..at + 2)?, 0) & !SHARED))
    };
    (0..count).map(key).sum()
}

/// Whether no packing makes room for the cell: closing holes does not, and without any byte of
/// any key the node would still be too full. Cost: a look at each cell, much less than a plan;
/// so a leaf of short keys that is filled in order is split at once.
fn is_packed(node: &Node<'_>, page: &[u8], cell: &Cell<'_>) -> bool {
    let Some(keys) = key_bytes(page, node.count()) else { return false };
    let without = node.live().saturating_sub(node.prefix().len() + keys);
    let least = without + cell.cost_without(node.level(), cell.key.len());
    cell.cost(node.level(), node.prefix()) > node.free() && least > most_packed(node)
}

/// The stored form of a child's page number.
pub fn child_bytes(child: PageNo) -> [u8; CHILD] {
    let mut bytes = [0; CHILD];
    put_u48(&mut bytes, 0, child.0 & PageNo::MAX.0);
    bytes
}
