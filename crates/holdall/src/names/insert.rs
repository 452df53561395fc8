//! Insertion and node splits.
//!
//! Owns: [`Names::insert`]. A full node is split by bytes in the middle; at the right edge
//! of the tree, if ascending keys arrive, the full node stays as it is and the new cell
//! begins a new one, so that a sorted load fills its leaves.

use super::{AppendCursor, InsertPosition, Names, Path, check_key, level_above, load};
use holdall_core::names_node::{Cell, Key, MAX_VALUE, Node, NodeMut, Plan, Value, child_bytes};
use holdall_core::{Error, PageKind, PageNo, PageWrite, Result};

/// A node after its split: the key that separates it from the new right neighbour.
struct Split {
    separator: Vec<u8>,
    right: PageNo,
    level: u8,
}

/// A cell on its way into a node at `i`.
struct New<'a> {
    i: usize,
    cell: Cell<'a>,
    /// Whether the node is the last of its level.
    rightmost: bool,
}

impl Names {
    /// Sets the value of `key` and returns the former one. `owner` goes into the header of
    /// new pages. Cost: one page per level, one page changed; a split changes two more.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a key over 1,024 bytes or a value not of 1 to 64 (nothing
    /// changed); [`Error::Full`], [`Error::Corrupt`] and others of [`PageWrite`], after
    /// which the transaction must be given up.
    pub fn insert<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        owner: u64,
        key: &[u8],
        value: &[u8],
    ) -> Result<Option<Value>> {
        check_key(key)?;
        check_value(value)?;
        if self.root.is_none() {
            let gap = InsertPosition::NOWHERE;
            return self
                .insert_at(pages, owner, gap, key, value, &mut AppendCursor::default())
                .map(|()| None);
        }
        let (leaf, at, _) = self.leaf(pages, key)?;
        let (i, old) = match at {
            Err(i) => (i, None),
            Ok(i) => {
                let mut leaf = node_mut(pages, leaf)?;
                let old = leaf.view()?.value(i)?;
                if old.len() == value.len() {
                    leaf.set_payload(i, value)?;
                    return Ok(Some(old));
                }
                leaf.remove(i..i + 1)?;
                (i, Some(old))
            }
        };
        let gap = InsertPosition { leaf, i, rightmost: false, end: false };
        self.insert_at(pages, owner, gap, key, value, &mut AppendCursor::default())?;
        Ok(old)
    }

    /// Adds `key`, which [`Names::locate`] did not find; `gap` is what it gave, and the tree
    /// is as it was then. `tail` then says what is known of the last leaf. Cost: as
    /// [`Names::insert`] without the way down.
    ///
    /// # Errors
    /// As [`Names::insert`].
    pub fn insert_at<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        owner: u64,
        gap: InsertPosition,
        key: &[u8],
        value: &[u8],
        tail: &mut AppendCursor,
    ) -> Result<()> {
        check_key(key)?;
        check_value(value)?;
        let cell = Cell { key: key.into(), payload: value };
        if self.root.is_none() {
            let root = pages.new_page(PageKind::Names, owner, None)?;
            node_mut(pages, root)?.build(0, PageNo::NONE, &[cell], &[])?;
            self.root = root;
            tail.follow(InsertPosition { leaf: root, i: 0, rightmost: true, end: true }, key);
            return Ok(());
        }
        if node_mut(pages, gap.leaf)?.insert(gap.i, cell.key, cell.payload)? {
            tail.follow(gap, key);
            return Ok(());
        }
        tail.forget();
        // The way is needed only now: few insertions split.
        let path = self.descend(pages, key)?;
        self.place(pages, owner, path, gap.i, cell)
    }

    /// Splits the path's leaf for the cell, and puts what splits yield into the nodes above.
    fn place<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        owner: u64,
        mut path: Path,
        i: usize,
        cell: Cell<'_>,
    ) -> Result<()> {
        let rightmost = path.rightmost;
        let mut done = split(pages, owner, path.leaf, New { i, cell, rightmost })?;
        while let Some(step) = path.steps.pop() {
            let child = child_bytes(done.right);
            let key = Key::from(done.separator.as_slice());
            if node_mut(pages, step.page)?.insert(step.child, key, &child)? {
                return Ok(());
            }
            let new = New { i: step.child, cell: Cell { key, payload: &child }, rightmost };
            done = split(pages, owner, step.page, new)?;
        }
        let level = level_above(self.root, done.level)?;
        let root = pages.new_page(PageKind::Names, owner, Some(self.root))?;
        let child = child_bytes(done.right);
        let cell = Cell { key: done.separator.as_slice().into(), payload: &child };
        node_mut(pages, root)?.build(level, self.root, &[cell], &[])?;
        self.root = root;
        Ok(())
    }
}

/// Refuses values the tree cannot hold.
fn check_value(value: &[u8]) -> Result<()> {
    if value.is_empty() || value.len() > MAX_VALUE {
        let text = format!("a value of {} bytes; 1 to {MAX_VALUE} are possible", value.len());
        return Err(Error::Invalid(text));
    }
    Ok(())
}

/// The node in `no`, for editing.
pub(super) fn node_mut<W: PageWrite + ?Sized>(pages: &mut W, no: PageNo) -> Result<NodeMut<'_>> {
    Ok(NodeMut::new(no, pages.page_mut(no, PageKind::Names)?))
}

/// Splits the full node `no` while inserting `new`. The left part stays in its page, where
/// nothing moves unless the new cell goes there.
fn split<W: PageWrite + ?Sized>(
    pages: &mut W,
    owner: u64,
    no: PageNo,
    new: New<'_>,
) -> Result<Split> {
    let page = load(pages, no)?;
    let node = Node::open(no, &page)?;
    let (level, count) = (node.level(), node.count());
    if new.i > count || count < 2 {
        return Err(Error::page(no, format!("names node is full with {count} cells")));
    }
    if new.rightmost && new.i == count {
        return split_at_end(pages, owner, &node, new.cell);
    }
    let mut cells = node.cells()?;
    cells.insert(new.i, new.cell);
    let cut = middle(&node, &cells);
    let right = pages.new_page(PageKind::Names, owner, Some(no))?;
    let separator;
    if node.is_leaf() {
        separator = cells[cut].key.separator(&cells[cut - 1].key);
        build_right(pages, right, &node, PageNo::NONE, &cells[cut..])?;
    } else {
        separator = cells[cut].key.to_vec();
        let leftmost = child_of(&cells[cut]);
        build_right(pages, right, &node, leftmost, &cells[cut + 1..])?;
    }
    // The last reference to the former version, which would have to be copied.
    drop(page);
    let mut left = node_mut(pages, no)?;
    if new.i < cut {
        left.remove(cut - 1..count)?;
        if !left.insert(new.i, new.cell.key, new.cell.payload)? {
            return Err(Error::page(no, "half a names node has no room for one cell"));
        }
    } else if cut < count {
        left.remove(cut..count)?;
    }
    Ok(Split { separator, right, level })
}

/// Splits the full last node of a level for a cell behind all of its own, which stay.
fn split_at_end<W: PageWrite + ?Sized>(
    pages: &mut W,
    owner: u64,
    node: &Node<'_>,
    cell: Cell<'_>,
) -> Result<Split> {
    let right = pages.new_page(PageKind::Names, owner, Some(node.no()))?;
    let separator = if node.is_leaf() {
        let last = node.cell(node.count() - 1)?;
        build_right(pages, right, node, PageNo::NONE, &[cell])?;
        cell.key.separator(&last.key)
    } else {
        build_right(pages, right, node, child_of(&cell), &[])?;
        cell.key.to_vec()
    };
    Ok(Split { separator, right, level: node.level() })
}

/// Writes the new right node. It takes over the left one's prefix if that suits its first
/// key, for more keys like it to come; else the best for what it has.
fn build_right<W: PageWrite + ?Sized>(
    pages: &mut W,
    right: PageNo,
    left: &Node<'_>,
    leftmost: PageNo,
    cells: &[Cell<'_>],
) -> Result<()> {
    let plan = Plan::best(left.level(), cells, &[left.prefix()]);
    let one = matches!(cells, [only] if only.key.starts_with(left.prefix()));
    let prefix = if one { left.prefix() } else { &plan.prefix };
    node_mut(pages, right)?.build(left.level(), leftmost, cells, prefix)
}

/// The child an inner cell refers to.
pub(super) fn child_of(cell: &Cell<'_>) -> PageNo {
    let bytes = cell.payload.iter().rev();
    PageNo(bytes.fold(0, |n, &byte| n << 8 | u64::from(byte)) & PageNo::MAX.0)
}

/// Where to cut so that both sides take about the same bytes. At least one cell stays on
/// each side; in an inner node the cell at the cut itself goes up.
fn middle(node: &Node<'_>, cells: &[Cell<'_>]) -> usize {
    let cost = |cell: &Cell<'_>| cell.cost(node.level(), node.prefix());
    let total: usize = cells.iter().map(cost).sum();
    let last = cells.len() - if node.is_leaf() { 1 } else { 2 };
    let (mut left, mut best) = (0, (usize::MAX, 1));
    for (cut, cell) in cells.iter().enumerate().take(last + 1) {
        if cut > 0 {
            best = best.min((total.abs_diff(2 * left), cut));
        }
        left += cost(cell);
    }
    best.1
}
