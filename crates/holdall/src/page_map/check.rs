//! The full check of a page map, which is also its full scan.

use super::PageMap;
use holdall_core::page_map_node::{self as node, Entry, Node, Tag};
use holdall_core::{Error, PageKind, PageNo, PageRead, Result};

/// What a full check gives its caller: each of the structure's own pages.
pub type VisitPage<'a> = dyn FnMut(PageNo) -> Result<()> + 'a;

struct Check<'a, 'v, R: ?Sized> {
    pages: &'a R,
    len: u64,
    visit: &'a mut VisitPage<'v>,
    entry: &'a mut dyn FnMut(u32, PageNo, u8) -> Result<()>,
}

impl PageMap {
    /// Checks every node; `visit` gets the map's own pages, `entry` index, page and class of
    /// each page mapped, in index order (those pages are not looked at). Cost: one read per
    /// node; on a damaged map too, as a node is good for one place only.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first thing wrong; the visitors' own.
    pub fn check<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        visit: &mut VisitPage<'_>,
        entry: &mut dyn FnMut(u32, PageNo, u8) -> Result<()>,
    ) -> Result<()> {
        let Some(level) = self.height.checked_sub(1) else { return Ok(()) };
        let len = u64::from(self.len);
        let (size, wrong) = (pages.page_size(), |detail: &str| {
            Err(Error::corrupt("page map root", format!("{detail}: {self:?}")))
        });
        if len > node::span(size, self.height) {
            return wrong("longer than the tree is high");
        }
        if level > 0 && len <= node::span(size, level) {
            return wrong("higher than its length needs");
        }
        Check { pages, len, visit, entry }.node(self.root, level, 0)?;
        Ok(())
    }
}

impl<R: PageRead + ?Sized> Check<'_, '_, R> {
    fn node(&mut self, no: PageNo, level: u8, base: u64) -> Result<Tag> {
        (self.visit)(no)?;
        let bytes = self.pages.page(no, PageKind::PageMap)?;
        let here = Node::new(&bytes, no, level, base as u32)?;
        let span = node::span(self.pages.page_size(), level);
        let mut sum = Tag::default();
        for slot in 0..node::fanout(self.pages.page_size()) {
            let (entry, first) = (here.entry(slot)?, base + slot as u64 * span);
            let bad =
                |what: &str| Err(Error::page(no, format!("map entry {slot}, {entry:?}: {what}")));
            if first >= self.len {
                if entry != Entry::default() {
                    return bad("beyond the end of the map");
                }
                continue;
            }
            if level > 0 {
                if entry.page.is_none() {
                    return bad("no child");
                }
                if self.node(entry.page, level - 1, first)? != entry.tag {
                    return bad("not the sum of its subtree");
                }
            } else if entry.page.is_none() != entry.tag.hole {
                return bad("neither a page nor a hole");
            } else if entry.tag.hole && entry.tag.class != 0 {
                return bad("a hole with a class");
            } else if !entry.tag.hole {
                (self.entry)(first as u32, entry.page, entry.tag.class)?;
            }
            sum = sum.join(entry.tag);
        }
        Ok(sum)
    }
}
