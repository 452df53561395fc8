//! Walking the keys backwards.
//!
//! Owns: [`CursorBack`]. Holds one page per level, as [`super::Cursor`] does. Keys must descend
//! from step to step: what a damaged tree yields out of order ends the walk with an error.

use super::Value;
use super::cursor::{Frame, descend};
use holdall_core::names_node::Node;
use holdall_core::{Error, PageNo, PageRead, Result};
use std::cmp::Ordering;
use std::ops::Bound;

/// A place in a tree of names, going back.
#[derive(Debug)]
pub struct CursorBack<'a, R: ?Sized> {
    pages: &'a R,
    root: PageNo,
    /// From the root down; a leaf's `at` counts the cells that are still to come.
    stack: Vec<Frame>,
    /// What the next key must not be above, or must be below.
    limit: Bound<Vec<u8>>,
    begun: bool,
    done: bool,
}

impl<'a, R: PageRead + ?Sized> CursorBack<'a, R> {
    /// Behind the last key that `to` admits.
    pub(super) fn new(pages: &'a R, root: PageNo, to: Bound<&[u8]>) -> Self {
        let (limit, done) = (to.map(<[u8]>::to_vec), root.is_none());
        Self { pages, root, stack: Vec::new(), limit, begun: false, done }
    }

    fn step(&mut self) -> Result<Option<(Vec<u8>, Value)>> {
        if !self.begun {
            self.begun = true;
            self.find()?;
        }
        loop {
            let Some(top) = self.stack.last_mut() else { return Ok(None) };
            let node = Node::open(top.no, &top.page)?;
            let Some(at) = top.at.checked_sub(1) else {
                self.leaf_before()?;
                continue;
            };
            let cell = node.cell(at)?;
            let fine = match &self.limit {
                Bound::Included(limit) => cell.key.cmp_bytes(limit) != Ordering::Greater,
                Bound::Excluded(limit) => cell.key.cmp_bytes(limit) == Ordering::Less,
                Bound::Unbounded => true,
            };
            if !fine {
                return Err(Error::page(top.no, format!("key {at} is out of order")));
            }
            let (mut key, value) = (Vec::new(), node.value(at)?);
            cell.key.write_to(&mut key);
            top.at = at;
            self.limit = Bound::Excluded(key.clone());
            return Ok(Some((key, value)));
        }
    }

    /// Leaves the present leaf for the one before it; the stack is empty after the first.
    fn leaf_before(&mut self) -> Result<()> {
        self.stack.pop();
        while let Some(top) = self.stack.last_mut() {
            if let Some(at) = top.at.checked_sub(1) {
                top.at = at;
                descend(self.pages, self.root, &mut self.stack, |node| Ok(node.count()))?;
                return self.at_end_of_leaf();
            }
            self.stack.pop();
        }
        Ok(())
    }

    /// Goes to the leaf in which the limit is or belongs.
    fn find(&mut self) -> Result<()> {
        let key = match &self.limit {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => {
                descend(self.pages, self.root, &mut self.stack, |node| Ok(node.count()))?;
                return self.at_end_of_leaf();
            }
        };
        descend(self.pages, self.root, &mut self.stack, |node| node.child_index(key))?;
        if let Some(leaf) = self.stack.last_mut() {
            let included = matches!(self.limit, Bound::Included(_));
            let found = leaf.node()?.search(key)?;
            leaf.at = found.map_or_else(|i| i, |i| i + usize::from(included));
        }
        Ok(())
    }

    fn at_end_of_leaf(&mut self) -> Result<()> {
        if let Some(leaf) = self.stack.last_mut() {
            leaf.at = leaf.node()?.count();
        }
        Ok(())
    }
}

impl<R: PageRead + ?Sized> Iterator for CursorBack<'_, R> {
    type Item = Result<(Vec<u8>, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let item = self.step().transpose();
        self.done = !matches!(item, Some(Ok(_)));
        item
    }
}
