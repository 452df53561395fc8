//! Walking the keys in order.
//!
//! Owns: [`Cursor`]. Holds one page per level, so that a step reads no page twice and a
//! seek reads only below the node where its way parts from the present one. Keys must
//! ascend from step to step: what a damaged tree yields out of order ends the walk with an
//! error, so that no damage can make it endless.

use super::{Value, load, open};
use holdall_core::names_node::Node;
use holdall_core::{Error, PageNo, PageRead, PageRef, Result};
use std::cmp::Ordering;
use std::ops::Bound;

/// A place in a tree of names. Also an [`Iterator`] that copies each key.
#[derive(Debug)]
pub struct Cursor<'a, R: ?Sized> {
    pages: &'a R,
    root: PageNo,
    /// From the root down; the last is a leaf unless a seek is pending.
    stack: Vec<Frame>,
    /// The key last yielded, or the one sought.
    key: Vec<u8>,
    /// Whether `key` itself must not come next.
    passed: bool,
    /// Whether the stack must first be brought to `key`.
    seek: bool,
    done: bool,
}

/// A node on the way from the root to a leaf.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) no: PageNo,
    pub(super) page: PageRef,
    /// The child gone into; in a leaf, the cell that comes next.
    pub(super) at: usize,
}

impl Frame {
    pub(super) fn node(&self) -> Result<Node<'_>> {
        Node::open(self.no, &self.page)
    }
}

impl<'a, R: PageRead + ?Sized> Cursor<'a, R> {
    /// Before the first key that `from` admits.
    pub(super) fn new(pages: &'a R, root: PageNo, from: Bound<&[u8]>) -> Self {
        let (key, passed) = match from {
            Bound::Included(key) => (key.to_vec(), false),
            Bound::Excluded(key) => (key.to_vec(), true),
            Bound::Unbounded => (Vec::new(), false),
        };
        Self { pages, root, stack: Vec::new(), key, passed, seek: true, done: root.is_none() }
    }

    /// Goes before the first key not below `key`, forwards or backwards. Reads nothing until
    /// the next step.
    pub fn seek(&mut self, key: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        (self.passed, self.seek, self.done) = (false, true, self.root.is_none());
    }

    /// The next key and its value, borrowed: what the iterator yields, without the copy.
    /// After an error the walk has ended.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn advance(&mut self) -> Result<Option<(&[u8], Value)>> {
        if self.done {
            return Ok(None);
        }
        self.done = true;
        let Some(value) = self.step()? else { return Ok(None) };
        self.done = false;
        Ok(Some((&self.key, value)))
    }

    fn step(&mut self) -> Result<Option<Value>> {
        if self.seek {
            self.find()?;
        }
        loop {
            let Some(top) = self.stack.last_mut() else { return Ok(None) };
            let node = Node::open(top.no, &top.page)?;
            if top.at < node.count() {
                let key = node.cell(top.at)?.key;
                let order = key.cmp_bytes(&self.key);
                if order == Ordering::Less || (order == Ordering::Equal && self.passed) {
                    return Err(Error::page(top.no, format!("key {} is out of order", top.at)));
                }
                let value = node.value(top.at)?;
                key.write_to(&mut self.key);
                (self.passed, top.at) = (true, top.at + 1);
                return Ok(Some(value));
            }
            self.next_leaf()?;
        }
    }

    /// Leaves the present leaf for the one after it; the stack is empty after the last.
    fn next_leaf(&mut self) -> Result<()> {
        self.stack.pop();
        while let Some(top) = self.stack.last_mut() {
            if top.at < top.node()?.count() {
                top.at += 1;
                return self.descend(|_| Ok(0));
            }
            self.stack.pop();
        }
        Ok(())
    }

    /// Brings the stack to `self.key`, keeping the nodes both ways share.
    fn find(&mut self) -> Result<()> {
        let key = std::mem::take(&mut self.key);
        let mut kept = 0;
        while let Some(frame) = self.stack.get_mut(kept) {
            let node = Node::open(frame.no, &frame.page)?;
            kept += 1;
            if node.is_leaf() {
                break;
            }
            let child = node.child_index(&key)?;
            if child != std::mem::replace(&mut frame.at, child) {
                break;
            }
        }
        self.stack.truncate(kept);
        self.descend(|node| node.child_index(&key))?;
        let passed = self.passed;
        if let Some(leaf) = self.stack.last_mut() {
            let found = leaf.node()?.search(&key)?;
            leaf.at = found.map_or_else(|i| i, |i| i + usize::from(passed));
        }
        self.key = key;
        self.seek = false;
        Ok(())
    }

    fn descend(&mut self, choose: impl Fn(&Node<'_>) -> Result<usize>) -> Result<()> {
        descend(self.pages, self.root, &mut self.stack, choose)
    }
}

/// Reads from the last frame's child down to a leaf, taking in each node what `choose` says,
/// and in the leaf the first cell. With no frame yet, begins at the root.
pub(super) fn descend<R: PageRead + ?Sized>(
    pages: &R,
    root: PageNo,
    stack: &mut Vec<Frame>,
    choose: impl Fn(&Node<'_>) -> Result<usize>,
) -> Result<()> {
    loop {
        let (no, level) = match stack.last() {
            None => (root, None),
            Some(frame) => {
                let node = frame.node()?;
                if node.is_leaf() {
                    return Ok(());
                }
                (node.child(frame.at)?, Some(node.child_level()?))
            }
        };
        let page = load(pages, no)?;
        let node = open(no, &page, level)?;
        let at = if node.is_leaf() { 0 } else { choose(&node)? };
        if node.is_leaf() && node.count() == 0 {
            return Err(Error::page(no, "empty leaf in a names tree"));
        }
        stack.push(Frame { no, page, at });
    }
}

impl<R: PageRead + ?Sized> Iterator for Cursor<'_, R> {
    type Item = Result<(Vec<u8>, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.advance().transpose()?;
        Some(item.map(|(key, value)| (key.to_vec(), value)))
    }
}
