//! How many names a tree has.
//!
//! Owns: [`Names::count`].

use super::{Names, load, open};
use holdall_core::{PageNo, PageRead, Result};

impl Names {
    /// How many keys there are. Cost: every page of the tree once, no key of a leaf.
    ///
    /// # Errors
    /// [`Error::Corrupt`](holdall_core::Error::Corrupt), [`Error::Io`](holdall_core::Error::Io).
    pub fn count<R: PageRead + ?Sized>(&self, pages: &R) -> Result<u64> {
        if self.root.is_none() { Ok(0) } else { below(pages, self.root, None) }
    }
}

/// Keys in the subtree under `no`. Recursion ends with the levels, of which there are at most 64.
fn below<R: PageRead + ?Sized>(pages: &R, no: PageNo, level: Option<u8>) -> Result<u64> {
    let page = load(pages, no)?;
    let node = open(no, &page, level)?;
    if node.is_leaf() {
        return Ok(node.count() as u64);
    }
    let level = Some(node.child_level()?);
    (0..=node.count()).map(|i| below(pages, node.child(i)?, level)).sum()
}
