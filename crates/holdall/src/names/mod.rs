//! Names: a B+-tree from keys to small values, kept in pages.
//!
//! Owns: [`Names`] and the walk over its pages; the layout of a node is
//! `holdall_core::names_node`. The tree's only state is its root, which the owner (the
//! collection page) stores; the same tree serves names of objects and the catalog.
//!
//! Invariants: every leaf lies at level 0 and none is empty; a child is one level below its
//! parent; keys of child `i` lie between separators `i - 1` (included) and `i` (excluded);
//! no node refers to its parent or neighbours, so that a node may come back under another
//! number. An inner node may have a single child (the right edge while keys ascend).
//!
//! Threads: none of its own. Reads run on any [`PageRead`]; changes need the one
//! [`PageWrite`]. A change that fails leaves the transaction's pages undefined: the caller
//! gives the transaction up.

mod append;
mod back;
#[cfg(test)]
mod check;
mod cursor;
mod insert;
mod leaf;
mod list;
mod lower;
mod remove;
#[cfg(test)]
mod tests;

pub use back::CursorBack;
#[cfg(test)]
pub use check::Stats;
pub use cursor::Cursor;
pub use holdall_core::names_node::{MAX_KEY, Value};
pub use leaf::Leaf;
pub use list::{Line, ListOptions, after_prefix};

use holdall_core::PageWrite;
use holdall_core::names_node::{MAX_LEVEL, Node, NodeMut, Share};
use holdall_core::{Error, PageKind, PageNo, PageRead, PageRef, Result};
use std::ops::Bound;

/// A tree of names, by its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Names {
    /// The root node; [`PageNo::NONE`] while the tree is empty.
    pub root: PageNo,
}

/// What a node says on the way down: what was sought, or the child to go on in, its level, and
/// where in it to begin.
enum Next<T> {
    Found(T),
    Child(PageNo, u8, Option<Share>),
}

/// Where a missing key would be: good until the tree is changed.
#[derive(Debug, Clone, Copy)]
pub struct InsertPosition {
    /// The leaf; [`PageNo::NONE`] while the tree is empty.
    leaf: PageNo,
    /// The place among its cells.
    i: usize,
    /// The leaf is the last one.
    rightmost: bool,
    /// The place is known to be behind all keys.
    end: bool,
}

impl InsertPosition {
    /// The gap of any key in an empty tree.
    pub const NOWHERE: Self = Self { leaf: PageNo::NONE, i: 0, rightmost: false, end: true };
}

/// The last leaf of a tree, if it is known: keys beyond its last belong there, and need no way
/// down. Good until the tree is changed; an insertion finds it anew.
#[derive(Debug, Clone, Default)]
pub struct AppendCursor {
    leaf: Option<PageNo>,
    /// The leaf's cells, if `key` is the last of them.
    count: Option<usize>,
    key: Vec<u8>,
}

impl AppendCursor {
    /// Forgets what is known, but not the memory.
    pub fn forget(&mut self) {
        (self.leaf, self.count) = (None, None);
    }

    /// After `key` went into `gap` of a leaf that had room for it.
    fn follow(&mut self, gap: InsertPosition, key: &[u8]) {
        self.leaf = gap.rightmost.then_some(gap.leaf);
        self.count = gap.end.then_some(gap.i + 1);
        if gap.end {
            self.key.clear();
            self.key.extend_from_slice(key);
        }
    }

    /// The place behind the last key, if `key` belongs there.
    fn gap_for<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        key: &[u8],
    ) -> Result<Option<InsertPosition>> {
        let Some(leaf) = self.leaf else { return Ok(None) };
        let gap = |i| InsertPosition { leaf, i, rightmost: true, end: true };
        if let Some(count) = self.count {
            return Ok((key > &self.key[..]).then(|| gap(count)));
        }
        pages.with_page(leaf, PageKind::Names, |page| {
            let node = Node::open_at(leaf, page, 0)?;
            Ok(node.is_beyond(key)?.then(|| gap(node.count())))
        })
    }
}

/// Where a descent went: the inner nodes with the child taken in each, then the leaf.
struct Path {
    steps: Vec<InnerStep>,
    leaf: PageNo,
    /// The key's cell in the leaf, or where it would be.
    at: Result<usize, usize>,
    /// Whether the leaf is the last one.
    rightmost: bool,
}

/// One inner node of a descent.
struct InnerStep {
    page: PageNo,
    child: usize,
}

/// Reads a names node's page.
fn load<R: PageRead + ?Sized>(pages: &R, no: PageNo) -> Result<PageRef> {
    pages.page(no, PageKind::Names)
}

impl Names {
    /// The value of `key`. Cost: one page per level; allocates nothing.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn get<R: PageRead + ?Sized>(&self, pages: &R, key: &[u8]) -> Result<Option<Value>> {
        let bad = || Error::corrupt("names tree", "a value of an impossible length");
        self.find(pages, key, |value| Value::new(value).ok_or_else(bad))
    }

    /// What `f` makes of the value of `key` where it lies. Cost: as [`Names::get`].
    ///
    /// # Errors
    /// As [`Names::get`], and those of `f`.
    pub fn find<R: PageRead + ?Sized, T>(
        &self,
        pages: &R,
        key: &[u8],
        f: impl Fn(&[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        match self.leaf_of(pages, key)? {
            Some(leaf) => leaf.find(pages, key, f),
            None => Ok(None),
        }
    }

    /// The value of `key`, or where it would be, for [`Names::insert_at`]. Cost: one page per
    /// level, for keys that arrive in order only the last leaf; allocates nothing.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`]; [`Error::Invalid`] for a key over 1,024 bytes.
    pub fn locate<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        key: &[u8],
        tail: &AppendCursor,
    ) -> Result<std::result::Result<Value, InsertPosition>> {
        check_key(key)?;
        if self.root.is_none() {
            return Ok(Err(InsertPosition::NOWHERE));
        }
        if let Some(gap) = tail.gap_for(pages, key)? {
            return Ok(Err(gap));
        }
        let (leaf, at, rightmost) = self.leaf(pages, key)?;
        match at {
            Err(i) => Ok(Err(InsertPosition { leaf, i, rightmost, end: false })),
            Ok(i) => pages
                .with_page(leaf, PageKind::Names, |page| Node::open(leaf, page)?.value(i))
                .map(Ok),
        }
    }

    /// The leaf where `key` is or belongs, its cell there or where it would be, and whether it
    /// is the last leaf. As [`Names::descend`], without remembering the way.
    fn leaf<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        key: &[u8],
    ) -> Result<(PageNo, Result<usize, usize>, bool)> {
        let (mut no, mut level, mut near, mut rightmost) = (self.root, None, None, true);
        loop {
            let next = pages.with_page(no, PageKind::Names, |page| {
                let node = open(no, page, level)?;
                if node.is_leaf() {
                    return Ok(Next::Found(node.search_near(key, near)?));
                }
                let (child, near) = node.child_near(key, near)?;
                rightmost = rightmost && node.child(node.count())? == child;
                Ok(Next::Child(child, node.child_level()?, near))
            })?;
            match next {
                Next::Found(at) => return Ok((no, at, rightmost)),
                Next::Child(child, below, share) => (no, level, near) = (child, Some(below), share),
            }
        }
    }

    /// All keys from `from` on, in order, with their values. Reads nothing before the first
    /// step. Cost: each node of the range is read once.
    pub fn iter<'a, R: PageRead + ?Sized>(
        &self,
        pages: &'a R,
        from: Bound<&[u8]>,
    ) -> Cursor<'a, R> {
        Cursor::new(pages, self.root, from)
    }

    /// All keys up to `to`, from the last one back, with their values. Cost: as
    /// [`Names::iter`].
    pub fn iter_back<'a, R: PageRead + ?Sized>(
        &self,
        pages: &'a R,
        to: Bound<&[u8]>,
    ) -> CursorBack<'a, R> {
        CursorBack::new(pages, self.root, to)
    }

    /// Frees every page and empties the tree. Cost: reads the inner nodes, not the leaves.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn clear<W: PageWrite + ?Sized>(&mut self, pages: &mut W) -> Result<()> {
        if !self.root.is_none() {
            let page = load(pages, self.root)?;
            let level = Node::open(self.root, &page)?.level();
            drop(page);
            free_below(pages, self.root, level)?;
            self.root = PageNo::NONE;
        }
        Ok(())
    }

    /// Frees about `most` nodes, the last ones first, and returns whether the tree is empty then.
    /// For giving up a tree in as many transactions as it takes. Cost: the way to its last leaves,
    /// which are not read.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn clear_some<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        most: usize,
    ) -> Result<bool> {
        let mut left = most;
        if !self.root.is_none() {
            let page = load(pages, self.root)?;
            let level = Node::open(self.root, &page)?.level();
            drop(page);
            if free_last(pages, self.root, level, &mut left)? {
                self.root = PageNo::NONE;
            }
        }
        Ok(self.root.is_none())
    }

    /// Goes down to the leaf where `key` is or belongs.
    fn descend<R: PageRead + ?Sized>(&self, pages: &R, key: &[u8]) -> Result<Path> {
        let (mut no, mut level) = (self.root, None);
        let mut steps = Vec::with_capacity(8);
        let mut rightmost = true;
        loop {
            let page = load(pages, no)?;
            let node = open(no, &page, level)?;
            if node.is_leaf() {
                return Ok(Path { steps, leaf: no, at: node.search(key)?, rightmost });
            }
            let child = node.child_index(key)?;
            rightmost &= child == node.count();
            steps.push(InnerStep { page: no, child });
            level = Some(node.child_level()?);
            no = node.child(child)?;
        }
    }
}

/// Opens a node that must have `level`; the root, which has no parent to say so, any.
#[inline]
fn open(no: PageNo, page: &[u8], level: Option<u8>) -> Result<Node<'_>> {
    match level {
        Some(level) => Node::open_at(no, page, level),
        None => Node::open(no, page),
    }
}

/// Frees the subtree under `no`, leaves first. A page reached twice fails when it is freed
/// the second time, so that a damaged tree cannot keep this going.
fn free_below<W: PageWrite + ?Sized>(pages: &mut W, no: PageNo, level: u8) -> Result<()> {
    if level > 0 {
        let page = load(pages, no)?;
        let node = Node::open_at(no, &page, level)?;
        for i in 0..=node.count() {
            free_below(pages, node.child(i)?, level - 1)?;
        }
    }
    pages.free_page(no)
}

/// Frees the last nodes under `no` while some are `left` to be freed, and `no` itself with its last
/// child. Returns whether it is gone.
fn free_last<W: PageWrite + ?Sized>(
    pages: &mut W,
    no: PageNo,
    level: u8,
    left: &mut usize,
) -> Result<bool> {
    if level > 0 {
        let page = load(pages, no)?;
        let node = Node::open_at(no, &page, level)?;
        let count = node.count();
        let mut kept = count + 1;
        while kept > 0 && *left > 0 && free_last(pages, node.child(kept - 1)?, level - 1, left)? {
            kept -= 1;
        }
        if kept > 0 {
            drop(page);
            if kept <= count {
                NodeMut::new(no, pages.page_mut(no, PageKind::Names)?).remove(kept - 1..count)?;
            }
            return Ok(false);
        }
    }
    pages.free_page(no)?;
    *left = left.saturating_sub(1);
    Ok(true)
}

/// Refuses keys the tree cannot hold.
fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY {
        let text = format!("a key of {} bytes; the longest has {MAX_KEY}", key.len());
        return Err(Error::Invalid(text));
    }
    Ok(())
}

/// The level above `level`.
fn level_above(no: PageNo, level: u8) -> Result<u8> {
    if level >= MAX_LEVEL {
        return Err(Error::page(no, format!("names tree of more than {MAX_LEVEL} levels")));
    }
    Ok(level + 1)
}
