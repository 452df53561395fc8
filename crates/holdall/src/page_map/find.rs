//! Searching a page map: a page with room, or a hole.
//!
//! Owns: the descent. It enters a subtree only if the sum says that there is what is
//! wanted; only the one subtree that the search starts within can disappoint, so a search
//! costs at most three reads per level, whatever the number of pages.

use super::PageMap;
use holdall_core::page_map_node::{self as node, Node, Want};
use holdall_core::{Error, PageKind, PageNo, PageRead, Result};

/// A search under way.
struct Search<'a, R: ?Sized> {
    pages: &'a R,
    want: Want,
    from: u64,
    len: u32,
}

impl PageMap {
    /// The first index from `from` on, going round once, whose page is of at least `class`
    /// (next-fit; McAuliffe §3.2). `None` if there is none. Cost: at most three page reads
    /// per level.
    ///
    /// # Errors
    /// [`Error::Corrupt`] also if a sum promises what is not there; [`Error::Io`].
    pub fn find<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        class: u8,
        from: u32,
    ) -> Result<Option<u32>> {
        self.search(pages, Want::Class(class), from)
    }

    /// As [`PageMap::find`], but passes over fresh pages. Cost: besides, a read for each node
    /// below which only fresh pages have the class; these lie together, if the map grew.
    ///
    /// # Errors
    /// As [`PageMap::find`].
    pub fn find_partly<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        class: u8,
        from: u32,
    ) -> Result<Option<u32>> {
        self.search(pages, Want::Partly(class), from)
    }

    /// An index without a page, to be given one. Cost: as [`PageMap::find`].
    ///
    /// # Errors
    /// As [`PageMap::find`].
    pub fn find_hole<R: PageRead + ?Sized>(&self, pages: &R) -> Result<Option<u32>> {
        self.search(pages, Want::Hole, 0)
    }

    fn search<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        want: Want,
        from: u32,
    ) -> Result<Option<u32>> {
        let Some(level) = self.height.checked_sub(1) else { return Ok(None) };
        let from = if from < self.len { from } else { 0 };
        let mut search = Search { pages, want, from: u64::from(from), len: self.len };
        let found = search.below(self.root, level, 0)?;
        if found.is_some() || from == 0 {
            return Ok(found);
        }
        search.from = 0;
        search.below(self.root, level, 0)
    }
}

impl<R: PageRead + ?Sized> Search<'_, R> {
    fn below(&self, no: PageNo, level: u8, base: u64) -> Result<Option<u32>> {
        let size = self.pages.page_size();
        let bytes = self.pages.page(no, PageKind::PageMap)?;
        let here = Node::new(&bytes, no, level, base as u32)?;
        let span = node::span(size, level);
        let mut slot = (self.from.saturating_sub(base) / span) as usize;
        // Nothing is behind the end, and a new map's nodes are mostly empty.
        let used = (u64::from(self.len).saturating_sub(base)).div_ceil(span);
        let end = usize::try_from(used).unwrap_or(usize::MAX).min(node::fanout(size));
        let want = if level == 0 { self.want } else { self.want.in_inner() };
        while let Some(found) = here.next(want, slot..end) {
            let first = base + found as u64 * span;
            let index = u32::try_from(first).ok().filter(|&index| index < self.len);
            let beyond = || Error::page(no, format!("map entry {found} is beyond the end"));
            let index = index.ok_or_else(beyond)?;
            let node::Entry { page: child, tag } = here.entry(found)?;
            if level == 0 {
                return Ok(Some(index));
            }
            if child.is_none() {
                return Err(Error::page(no, format!("map entry {found} has a sum but no child")));
            }
            if let Some(index) = self.below(child, level - 1, first)? {
                return Ok(Some(index));
            }
            if first >= self.from && self.want.is_promised(tag.class) {
                let detail = format!("the sum in map entry {found} promises {:?}", self.want);
                return Err(Error::page(no, detail));
            }
            slot = found + 1;
        }
        Ok(None)
    }
}
