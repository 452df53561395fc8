//! Names in ascending order, several at once.
//!
//! A bulk load in order of names fills the last leaf, cell after cell. If that leaf and its
//! last key are known, the cells go in with one change of it; if the leaf is full, the slow path
//! splits it. The tree is then what single insertions would have made it.

use super::insert::node_mut;
use super::{AppendCursor, Names};
use holdall_core::name::MAX_NAME;
use holdall_core::names_node::Cell;
use holdall_core::{Error, PageWrite, Result};

impl AppendCursor {
    /// How many of `keys` ascend, each beyond all keys of the tree: these are not in it. None
    /// if the last leaf is not known, or for a key of no or too many bytes.
    pub fn ascending<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> usize {
        if self.leaf.is_none() || self.count.is_none() {
            return 0;
        }
        let mut last = &self.key[..];
        let beyond = |key: &&'k [u8]| {
            let right = *key > last && !key.is_empty() && key.len() <= MAX_NAME;
            last = key;
            right
        };
        keys.take_while(beyond).count()
    }
}

impl Names {
    /// Adds cells whose keys [`AppendCursor::ascending`] found, with values of one length. `tail`
    /// then says what is known of the last leaf. Cost: one changed page, and a split for each leaf
    /// filled.
    ///
    /// # Errors
    /// As [`Names::insert`].
    pub fn append<'c, W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        owner: u64,
        cells: impl Iterator<Item = (&'c [u8], &'c [u8])> + Clone,
        tail: &mut AppendCursor,
    ) -> Result<()> {
        let mut left = cells;
        while left.clone().next().is_some() {
            let mut done = 0;
            if let (Some(leaf), Some(count)) = (tail.leaf, tail.count) {
                let cell = |(key, payload): (&'c [u8], _)| Cell { key: key.into(), payload };
                let mut node = node_mut(pages, leaf)?;
                if node.view()?.count() != count {
                    return Err(Error::page(leaf, "the last leaf has other cells than known"));
                }
                done = node.append(left.clone().map(cell))?;
            }
            if let Some(last) = done.checked_sub(1) {
                let key = left.nth(last).map_or(&[][..], |(key, _)| key);
                tail.count = tail.count.map(|count| count + done);
                tail.key.clear();
                tail.key.extend_from_slice(key);
            }
            let Some((key, value)) = left.next() else { break };
            // The leaf is full, or not known.
            match self.locate(pages, key, tail)? {
                Err(gap) => self.insert_at(pages, owner, gap, key, value, tail)?,
                Ok(_) => return Err(Error::page(self.root, "a key beyond all others is there")),
            }
        }
        Ok(())
    }
}
