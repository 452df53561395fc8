//! The full check of a tree.
//!
//! Owns: [`Names::check`] and [`Stats`]. Visits every page once; a page reached a second
//! time is an error, so the check ends whatever the pages hold.

use super::{Names, load, open};
use holdall_core::{Error, PageNo, PageRead, Result};
use std::cmp::Ordering;
use std::collections::HashSet;

/// What a tree of names holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Keys.
    pub entries: u64,
    /// Nodes, each one page.
    pub pages: u64,
    /// Leaves among them.
    pub leaves: u64,
    /// Levels; 0 for an empty tree.
    pub height: u32,
    /// Bytes of slots, cells and prefixes in all nodes.
    pub bytes_used: u64,
}

struct Check<'a, R: ?Sized> {
    pages: &'a R,
    visit: &'a mut dyn FnMut(PageNo),
    seen: HashSet<PageNo>,
    stats: Stats,
}

impl Names {
    /// Checks every node and that levels, separators and keys fit together; calls `visit`
    /// for every page. Cost: reads the whole tree; memory for a set of its pages.
    ///
    /// # Errors
    /// [`Error::Corrupt`] with the first thing found wrong, [`Error::Io`].
    pub fn check<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        visit: &mut dyn FnMut(PageNo),
    ) -> Result<Stats> {
        let mut check = Check { pages, visit, seen: HashSet::new(), stats: Stats::default() };
        if !self.root.is_none() {
            check.node(self.root, None, None, None)?;
        }
        Ok(check.stats)
    }
}

impl<R: PageRead + ?Sized> Check<'_, R> {
    /// Checks the subtree under `no`, whose keys lie in `low..high`. Recursion ends with the
    /// levels, of which there are at most 64.
    fn node(
        &mut self,
        no: PageNo,
        level: Option<u8>,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<()> {
        if !self.seen.insert(no) {
            return Err(Error::page(no, "names tree reaches this page twice"));
        }
        (self.visit)(no);
        let page = load(self.pages, no)?;
        let node = open(no, &page, level)?;
        node.validate()?;
        if level.is_none() {
            self.stats.height = u32::from(node.level()) + 1;
            if !node.is_leaf() && node.count() == 0 {
                return Err(Error::page(no, "root of a names tree with a single child"));
            }
        }
        self.stats.pages += 1;
        self.stats.bytes_used += node.live() as u64;
        let mut keys = Vec::with_capacity(node.count());
        for cell in node.cells()? {
            let below = low.is_some_and(|low| cell.key.cmp_bytes(low) == Ordering::Less);
            let above = high.is_some_and(|high| cell.key.cmp_bytes(high) != Ordering::Less);
            if below || above {
                return Err(Error::page(no, "a key lies outside the node's separators"));
            }
            keys.push(cell.key);
        }
        if node.is_leaf() {
            if keys.is_empty() {
                return Err(Error::page(no, "empty leaf in a names tree"));
            }
            self.stats.leaves += 1;
            self.stats.entries += keys.len() as u64;
            return Ok(());
        }
        let below = Some(node.child_level()?);
        let mut from = low.map(<[u8]>::to_vec);
        for i in 0..=keys.len() {
            let to = keys.get(i).map(|key| key.to_vec());
            self.node(node.child(i)?, below, from.as_deref(), to.as_deref().or(high))?;
            from = to;
        }
        Ok(())
    }
}
