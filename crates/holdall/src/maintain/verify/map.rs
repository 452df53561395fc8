//! Walking a page map, going on behind a damaged node.
//!
//! Owns: no state. As `PageMap::check`, but it reports and does not stop.

use super::page_source::Pages;
use super::report::ProblemKind;
use super::walk_state::{Walk, quiet};
use crate::page_map::PageMap;
use holdall_core::page_map_node::FRESH;
use holdall_core::page_map_node::{self as node, Entry, Node, Tag};
use holdall_core::{PageKind, PageNo, PageRead, Result};

/// What is done with a page that a map names: its index, the page, its class.
pub(super) type VisitEntry<'v, 'a> = dyn FnMut(&mut Walk<'a>, u32, PageNo, u8) -> Result<()> + 'v;

struct Map<'m> {
    len: u64,
    page_size: usize,
    owner: u64,
    what: &'m str,
}

impl<'a> Walk<'a> {
    /// Visits every page that `map` names, in index order. Returns whether all of it could
    /// be read.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn map(
        &mut self,
        map: &PageMap,
        owner: u64,
        what: &str,
        entry: &mut VisitEntry<'_, 'a>,
    ) -> Result<bool> {
        let Some(level) = map.height().checked_sub(1) else { return Ok(true) };
        let (len, page_size) = (u64::from(map.len()), self.layout.page_size());
        let needless = level > 0 && len <= node::span(page_size, level);
        if len > node::span(page_size, map.height()) || needless {
            let detail = format!("{} levels for {len} pages", map.height());
            self.found.add(ProblemKind::Page, format!("map of {what}"), detail);
        }
        let map_of = Map { len, page_size, owner, what };
        Ok(self.map_node(&map_of, (map.root(), level, 0), entry)?.is_some())
    }

    /// Returns the sum over the subtree, `None` if part of it is lost.
    fn map_node(
        &mut self,
        map: &Map<'_>,
        (no, level, base): (PageNo, u8, u64),
        entry: &mut VisitEntry<'_, 'a>,
    ) -> Result<Option<Tag>> {
        let what = || format!("map of {} from page {base} on", map.what);
        let Some(bytes) = self.own_page(no, PageKind::PageMap, map.owner, &what)? else {
            return Ok(None);
        };
        let here = Node::new(&bytes, no, level, base as u32);
        let Some(here) = self.take(ProblemKind::Page, &what, here)? else { return Ok(None) };
        let span = node::span(map.page_size, level);
        let (mut sum, mut whole) = (Tag::default(), true);
        for slot in 0..node::fanout(map.page_size) {
            let first = base + slot as u64 * span;
            let Some(found) = self.take(ProblemKind::Page, &what, here.entry(slot))? else {
                whole = false;
                continue;
            };
            if let Some(wrong) = wrong_entry(&found, level, first >= map.len) {
                self.bad_page(no, &what(), format!("entry {slot}, {found:?}: {wrong}"));
                (whole, self.complete) = (false, false);
                continue;
            }
            sum = sum.join(found.tag);
            if found.page.is_none() {
                continue;
            }
            if level == 0 {
                entry(self, first as u32, found.page, found.tag.class)?;
                continue;
            }
            match self.map_node(map, (found.page, level - 1, first), entry)? {
                Some(below) if below != found.tag => {
                    let detail = format!("entry {slot} says {:?}, below is {below:?}", found.tag);
                    self.bad_page(no, &what(), detail);
                }
                Some(_) => {}
                None => whole = false,
            }
        }
        Ok(whole.then_some(sum))
    }
}

fn wrong_entry(entry: &Entry, level: u8, beyond: bool) -> Option<&'static str> {
    if beyond {
        return (*entry != Entry::default()).then_some("beyond the end of the map");
    }
    match (level, entry.page.is_none(), entry.tag.hole) {
        (0, true, true) => (entry.tag.class != 0).then_some("a hole with a class"),
        (0, none, hole) => (none != hole).then_some("neither a page nor a hole"),
        (_, true, _) => Some("no child"),
        _ => None,
    }
}

/// Visits index and page of all that `map` names and that is not fresh, as far as it can be
/// read; for a second pass, which reports no problem again.
///
/// # Errors
/// Anything but damage.
pub(super) fn readable_pages(
    pages: &Pages<'_>,
    map: &PageMap,
    visit: &mut dyn FnMut(u32, PageNo) -> Result<()>,
) -> Result<()> {
    let Some(level) = map.height().checked_sub(1) else { return Ok(()) };
    readable_below(pages, u64::from(map.len()), (map.root(), level, 0), visit)
}

/// Ends on a damaged map too, as a node is good for one place only.
fn readable_below(
    pages: &Pages<'_>,
    len: u64,
    (no, level, base): (PageNo, u8, u64),
    visit: &mut dyn FnMut(u32, PageNo) -> Result<()>,
) -> Result<()> {
    let Some(bytes) = quiet(pages.page(no, PageKind::PageMap))? else { return Ok(()) };
    let Some(here) = quiet(Node::new(&bytes, no, level, base as u32))? else { return Ok(()) };
    let size = pages.page_size();
    for slot in 0..node::fanout(size) {
        let first = base + slot as u64 * node::span(size, level);
        let entry = quiet(here.entry(slot))?.filter(|e| first < len && !e.page.is_none());
        let Some(entry) = entry else { continue };
        if level > 0 {
            readable_below(pages, len, (entry.page, level - 1, first), visit)?;
        } else if entry.tag.class != FRESH {
            visit(first as u32, entry.page)?;
        }
    }
    Ok(())
}
