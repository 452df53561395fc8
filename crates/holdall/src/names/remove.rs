//! Removal, merging and evening out of neighbours.
//!
//! Owns: [`Names::remove`]. A node under half full by bytes is merged with a neighbour if
//! both fit into one, else takes cells from it. Both are economies, not duties: if that
//! gains little, or a longer separator would not fit into the parent, the node stays small. An
//! empty node goes at once, so removal never needs room anywhere and never fails for lack of it.

use super::insert::{child_of, node_mut};
use super::{Names, load, open};
use holdall_core::names_node::{Cell, Node, Plan, Value};
use holdall_core::{Error, PageNo, PageRead, PageRef, PageWrite, Result};

/// Two neighbours and the separator between them.
struct Pair {
    parent: PageNo,
    left: PageNo,
    right: PageNo,
    left_page: PageRef,
    right_page: PageRef,
    level: u8,
}

impl Names {
    /// Removes `key` and returns its value. Cost: one page per level, one page changed;
    /// two more if neighbours are merged.
    ///
    /// # Errors
    /// [`Error::Corrupt`] and others of [`PageWrite`], after which the transaction must be
    /// given up.
    pub fn remove<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        key: &[u8],
    ) -> Result<Option<Value>> {
        if self.root.is_none() {
            return Ok(None);
        }
        let mut path = self.descend(pages, key)?;
        let Ok(i) = path.at else { return Ok(None) };
        let mut leaf = node_mut(pages, path.leaf)?;
        let old = leaf.view()?.value(i)?;
        leaf.remove(i..i + 1)?;
        let view = leaf.view()?;
        let (mut no, mut empty, mut small) = (path.leaf, view.count() == 0, is_small(&view));
        while let Some(step) = path.steps.pop() {
            if empty {
                pages.free_page(no)?;
                let mut parent = node_mut(pages, step.page)?;
                empty = parent.view()?.count() == 0;
                if !empty {
                    parent.remove_child(step.child)?;
                }
            } else if !small || !relieve(pages, step.page, step.child)? {
                return Ok(Some(old));
            }
            no = step.page;
            small = !empty && is_small(&Node::open(no, &load(pages, no)?)?);
        }
        if empty {
            pages.free_page(self.root)?;
            self.root = PageNo::NONE;
        } else {
            self.shrink(pages)?;
        }
        Ok(Some(old))
    }

    /// While the root has a single child, that child becomes the root.
    fn shrink<W: PageWrite + ?Sized>(&mut self, pages: &mut W) -> Result<()> {
        let mut level = None;
        loop {
            let page = load(pages, self.root)?;
            let node = open(self.root, &page, level)?;
            if node.is_leaf() || node.count() > 0 {
                return Ok(());
            }
            level = Some(node.child_level()?);
            let child = node.child(0)?;
            pages.free_page(self.root)?;
            self.root = child;
        }
    }
}

/// Whether a node is under half full.
fn is_small(node: &Node<'_>) -> bool {
    node.live() < node.capacity() / 2
}

/// Relieves child `child` of `parent`, which is small. Returns whether the parent must be
/// looked at in turn: it lost a child, or has no other to relieve this one with.
fn relieve<W: PageWrite + ?Sized>(pages: &mut W, parent: PageNo, child: usize) -> Result<bool> {
    let page = load(pages, parent)?;
    let up = Node::open(parent, &page)?;
    let right = (child < up.count()).then_some(child);
    let pairs = [child.checked_sub(1), right];
    for at in pairs.into_iter().flatten() {
        if merge(pages, &up, at)? {
            return Ok(true);
        }
    }
    for at in pairs.into_iter().flatten() {
        if even_out(pages, &up, at)? {
            return Ok(false);
        }
    }
    Ok(up.count() == 0)
}

impl Pair {
    /// The neighbours on both sides of separator `at`.
    fn load<R: PageRead + ?Sized>(pages: &R, up: &Node<'_>, at: usize) -> Result<Self> {
        let (left, right) = (up.child(at)?, up.child(at + 1)?);
        if left == right || left == up.no() || right == up.no() {
            return Err(Error::page(up.no(), format!("refers to page {right} more than once")));
        }
        let (left_page, right_page) = (load(pages, left)?, load(pages, right)?);
        let level = up.child_level()?;
        Ok(Self { parent: up.no(), left, right, left_page, right_page, level })
    }

    /// Both nodes.
    fn nodes(&self) -> Result<(Node<'_>, Node<'_>)> {
        let left = Node::open_at(self.left, &self.left_page, self.level)?;
        Ok((left, Node::open_at(self.right, &self.right_page, self.level)?))
    }
}

/// The cells of both nodes in order; between inner nodes the separator, come down, with the
/// right one's first child.
fn joined<'a>(up: &Node<'a>, at: usize, l: &Node<'a>, r: &Node<'a>) -> Result<Vec<Cell<'a>>> {
    let mut cells = l.cells()?;
    if !l.is_leaf() {
        cells.push(Cell { key: up.cell(at)?.key, payload: r.leftmost() });
    }
    cells.extend(r.cells()?);
    Ok(cells)
}

/// Moves everything right of separator `at` to its left, if one page can hold it.
fn merge<W: PageWrite + ?Sized>(pages: &mut W, up: &Node<'_>, at: usize) -> Result<bool> {
    let pair = Pair::load(pages, up, at)?;
    let (left, right) = pair.nodes()?;
    // Merging saves one of two equal prefixes; only if that may do, cells are counted.
    let saved = left.prefix().len().min(right.prefix().len());
    if left.live() + right.live() > left.capacity() + saved {
        return Ok(false);
    }
    let cells = joined(up, at, &left, &right)?;
    let plan = Plan::best(pair.level, &cells, &[left.prefix(), right.prefix()]);
    if plan.size > left.capacity() {
        return Ok(false);
    }
    let moved = &cells[left.count()..];
    let cost: usize = moved.iter().map(|c| c.cost(pair.level, left.prefix())).sum();
    if cost <= left.gap() {
        append(pages, pair.left, left.count(), moved)?;
    } else {
        let leftmost = if left.is_leaf() { PageNo::NONE } else { left.child(0)? };
        node_mut(pages, pair.left)?.build(pair.level, leftmost, &cells, &plan.prefix)?;
    }
    pages.free_page(pair.right)?;
    node_mut(pages, pair.parent)?.remove(at..at + 1)?;
    Ok(true)
}

/// Puts cells into a node from position `i` on; the caller has counted that they fit.
fn append<W: PageWrite + ?Sized>(
    pages: &mut W,
    no: PageNo,
    i: usize,
    cells: &[Cell<'_>],
) -> Result<()> {
    let mut node = node_mut(pages, no)?;
    for (n, cell) in cells.iter().enumerate() {
        if !node.insert(i + n, cell.key, cell.payload)? {
            return Err(Error::page(no, "names node holds less than its counts promise"));
        }
    }
    Ok(())
}

/// Moves cells across separator `at` so that both sides take about the same bytes, if that
/// helps and the new separator fits into the parent.
fn even_out<W: PageWrite + ?Sized>(pages: &mut W, up: &Node<'_>, at: usize) -> Result<bool> {
    let pair = Pair::load(pages, up, at)?;
    let (left, right) = pair.nodes()?;
    if left.live().abs_diff(right.live()) < left.capacity() / 8 {
        return Ok(false);
    }
    let cells = joined(up, at, &left, &right)?;
    let (old, leaf) = (left.count(), left.is_leaf());
    let Some(cut) = balance(&left, &right, &cells) else { return Ok(false) };
    let key =
        if leaf { cells[cut].key.separator(&cells[cut - 1].key) } else { cells[cut].key.to_vec() };
    let child = up.cell(at)?.payload;
    let separator = Cell { key: key.as_slice().into(), payload: child };
    let (level, prefix) = (up.level(), up.prefix());
    if separator.cost(level, prefix) > up.free() + up.cell(at)?.cost(level, prefix) {
        return Ok(false);
    }
    if cut > old {
        append(pages, pair.left, old, &cells[old..cut])?;
        node_mut(pages, pair.right)?.remove(0..cut - old)?;
    } else {
        let first = usize::from(!leaf);
        node_mut(pages, pair.left)?.remove(cut..old)?;
        append(pages, pair.right, 0, &cells[cut + first..old + first])?;
    }
    if !leaf {
        node_mut(pages, pair.right)?.set_leftmost(child_of(&cells[cut]))?;
    }
    let mut parent = node_mut(pages, pair.parent)?;
    parent.remove(at..at + 1)?;
    if !parent.insert(at, separator.key, separator.payload)? {
        return Err(Error::page(pair.parent, "names node holds less than its counts promise"));
    }
    Ok(true)
}

/// The cut of the joined cells that leaves both nodes most alike in bytes, each under its
/// own prefix; `None` if that gains less than an eighth of a page, which would only put
/// off the merge at the price of writing both. In inner nodes the cell at the cut goes up.
fn balance(left: &Node<'_>, right: &Node<'_>, cells: &[Cell<'_>]) -> Option<usize> {
    let (level, old, up) = (left.level(), left.count(), usize::from(!left.is_leaf()));
    let in_left = |i: usize| cells[i].cost(level, left.prefix());
    let in_right = |i: usize| cells[i].cost(level, right.prefix());
    let present = left.live().abs_diff(right.live());
    let mut best = (present, old);
    let (mut l, mut r) = (left.live(), right.live());
    for cut in old + 1..cells.len() - up {
        l += in_left(cut - 1);
        r = r.checked_sub(in_right(cut - 1 + up))?;
        if l > left.capacity() {
            break;
        }
        best = best.min((l.abs_diff(r), cut));
    }
    (l, r) = (left.live(), right.live());
    for cut in (1..old).rev() {
        l = l.checked_sub(in_left(cut))?;
        r += in_right(cut + up);
        if r > right.capacity() {
            break;
        }
        best = best.min((l.abs_diff(r), cut));
    }
    (best.1 != old && best.0 + left.capacity() / 8 <= present).then_some(best.1)
}
