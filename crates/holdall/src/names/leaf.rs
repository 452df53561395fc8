//! Lookups of several names at once, in steps.
//!
//! Owns: [`Leaf`], a lookup that knows its leaf and has not looked at it. A leaf costs three
//! waits for memory one after the other: its head says where the slot lies, the slot where the
//! cell lies. Between two steps of one lookup come the same steps of others, so that they
//! wait together (group prefetching: Chen, Ailamaki, Gibbons and Mowry, ICDE 2004).
//! The steps but the last are hints: they read nothing from disk, and what is wrong with a
//! page the last one reports.

use super::{Names, Next, open};
use crate::prefetch::{self, LINE};
use crate::txn::Pinned;
use holdall_core::names_node::{HEAD, MAX_KEY, Node, Share, slot};
use holdall_core::{PageKind, PageNo, PageRead, Result};

/// The leaf that holds a key if any does, and where in it a search begins.
#[derive(Debug, Clone, Copy)]
pub struct Leaf {
    no: PageNo,
    near: Option<Share>,
}

impl Names {
    /// The leaf that holds `key` if any does; `None` if none can. Cost: one page per level
    /// above the leaf.
    ///
    /// # Errors
    /// As [`Names::find`].
    pub fn leaf_of<R: PageRead + ?Sized>(&self, pages: &R, key: &[u8]) -> Result<Option<Leaf>> {
        if self.root.is_none() || key.len() > MAX_KEY {
            return Ok(None);
        }
        let (mut no, mut level, mut near) = (self.root, None, None);
        loop {
            let next = pages.with_page(no, PageKind::Names, |page| {
                let node = open(no, page, level)?;
                if node.is_leaf() {
                    return Ok(Next::Found(Leaf { no, near }));
                }
                let (child, near) = node.child_near(key, near)?;
                Ok(Next::Child(child, node.child_level()?, near))
            })?;
            match next {
                Next::Found(leaf) => return Ok(Some(leaf)),
                // Not looked at: that would be the first of its waits.
                Next::Child(no, 0, near) => return Ok(Some(Leaf { no, near })),
                Next::Child(child, below, share) => (no, level, near) = (child, Some(below), share),
            }
        }
    }
}

/// The hint of a leaf that says how many cells it has.
const COUNT: u16 = 0;
/// Hints that say where cells lie that were found, one for each part of the leaf.
const PARTS: usize = 63;

/// The hint of the part of a leaf where a key is sought.
#[inline]
fn part(near: Share) -> u16 {
    1 + near.scale(PARTS) as u16
}

impl Leaf {
    /// The leaf's page.
    pub fn page(&self) -> PageNo {
        self.no
    }

    /// Of a lookup alone: has head, slot and cell prefetched at once, where an earlier lookup
    /// found how many cells the leaf has, and where in it those of this part lie.
    #[inline]
    pub fn prefetch(&self, pages: &Pinned<'_>) {
        self.prefetch_head(pages);
        let (Some(near), count) = (self.near, pages.layout_hint(self.no, COUNT)) else { return };
        if count > 0 {
            pages.prefetch(self.no, slot(near.scale(count.into())));
            let cell = usize::from(pages.layout_hint(self.no, part(near)));
            pages.prefetch(self.no, cell.saturating_sub(LINE)..cell + LINE);
        }
    }

    /// First step: has the leaf's head prefetched.
    #[inline]
    pub fn prefetch_head(&self, pages: &Pinned<'_>) {
        pages.prefetch(self.no, HEAD);
    }

    /// Second step: has the slot of the cell prefetched at which the search begins.
    #[inline]
    pub fn prefetch_slot(&self, pages: &Pinned<'_>) {
        self.prefetch_around(pages, |node| node.slot_offset(node.first_look(self.near)), 0);
    }

    /// Third step: has that cell prefetched, and what lies beside it, since the search
    /// often ends a cell or two further on.
    #[inline]
    pub fn prefetch_cell(&self, pages: &Pinned<'_>) {
        self.prefetch_around(pages, |node| node.cell_offset(node.first_look(self.near)), LINE);
    }

    /// Last step: what `f` makes of the value of `key`, for which the leaf was found.
    ///
    /// # Errors
    /// As [`Names::find`].
    #[inline]
    pub fn find<R: PageRead + ?Sized, T>(
        &self,
        pages: &R,
        key: &[u8],
        f: impl Fn(&[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        self.search(pages, key, |node, i| f(node.cell(i)?.payload))
    }

    /// As [`Leaf::find`], and says for later lookups where the key was.
    ///
    /// # Errors
    /// As [`Names::find`].
    #[inline]
    pub fn find_alone<T>(
        &self,
        pages: &Pinned<'_>,
        key: &[u8],
        f: impl Fn(&[u8]) -> Result<T>,
    ) -> Result<Option<T>> {
        self.search(pages, key, |node, i| {
            if let Some(near) = self.near {
                pages.set_layout_hint(self.no, COUNT, node.count() as u16);
                pages.set_layout_hint(self.no, part(near), node.cell_offset(i).unwrap_or(0) as u16);
            }
            f(node.cell(i)?.payload)
        })
    }

    #[inline]
    fn search<R: PageRead + ?Sized, T>(
        &self,
        pages: &R,
        key: &[u8],
        f: impl FnOnce(&Node<'_>, usize) -> Result<T>,
    ) -> Result<Option<T>> {
        pages.with_page(self.no, PageKind::Names, |page| {
            let node = Node::open_at(self.no, page, 0)?;
            node.search_near(key, self.near)?.ok().map(|i| f(&node, i)).transpose()
        })
    }

    /// Has the bytes around an offset of the page prefetched.
    #[inline]
    fn prefetch_around(
        &self,
        pages: &Pinned<'_>,
        offset: impl Fn(&Node<'_>) -> Option<usize>,
        around: usize,
    ) {
        pages.hint(self.no, PageKind::Names, |page| {
            let node = Node::open_at(self.no, page, 0).ok();
            if let Some(at) = node.and_then(|node| offset(&node)) {
                for at in [at.saturating_sub(around), at, at + around] {
                    prefetch::line(page.as_ptr().wrapping_add(at));
                }
            }
        });
    }
}
