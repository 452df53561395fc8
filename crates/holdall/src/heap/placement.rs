//! Where the next record goes, and the books afterwards: HY(n,u) over real pages.
//!
//! The decisions are `holdall_core::heap_placement`; here they are carried out: cached pages are
//! checked, the map is searched and kept, pages are allocated, formatted and freed.

use super::{At, FreeSpace, HeapFile};
use holdall_core::heap_page::{self, HeapPage, max_record};
use holdall_core::heap_placement::{Cached, Offer, Placement, class_of, extent};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page_map_node::FRESH;
use holdall_core::{Error, PageKind, PageNo, PageRead, PageWrite, Result};

/// The largest extent of heap pages in a file of less than [`PART`] times as many.
const EXTENT: u32 = 8;
/// The largest extent of heap pages.
const LARGE_EXTENT: u32 = 64;
/// A larger file grows by this part at most.
const PART: u32 = 64;
/// Wrong classes corrected in one search before the file grows instead. None is wrong unless
/// the file is damaged.
const WRONG_CLASSES: usize = 4;

/// Pages by which a file of `len` pages grows.
pub fn growth(len: u32) -> u32 {
    extent(len, (len / PART).clamp(EXTENT, LARGE_EXTENT))
}

impl HeapFile {
    /// A formatted page of this file with room for `need` bytes, for which it may grow.
    pub(super) fn room_for<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        need: usize,
        near: Option<PageNo>,
    ) -> Result<At> {
        match self.room_at_hand(pages, placement, need, near)? {
            Some(at) => Ok(at),
            None => self.fresh(pages),
        }
    }

    /// A formatted page of this file with room for `need` bytes, if the search finds one.
    pub(super) fn room_at_hand<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        need: usize,
        near: Option<PageNo>,
    ) -> Result<Option<At>> {
        if let Some(at) = near.map(|page| self.near(pages, page, need)).transpose()?.flatten() {
            return Ok(Some(at));
        }
        while let Some(Cached { index, page, .. }) = placement.choose(need) {
            let at = At { index, page };
            match self.free(pages, at)? {
                Some(free) if free >= need => return Ok(Some(at)),
                Some(free) => placement.correct(index, free),
                None => drop(placement.remove(index)),
            }
        }
        let (used, capacity) = self.utilization(pages.page_size());
        let max = max_record(pages.page_size());
        match placement.search_class(need, max, used, capacity) {
            Some(class) => self.search(pages, placement, need, class),
            None => Ok(None),
        }
    }

    /// The page asked for, if it is one of this file with room.
    pub(super) fn near<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        page: PageNo,
        need: usize,
    ) -> Result<Option<At>> {
        let bytes = pages.page(page, PageKind::Heap)?;
        let heap_page = HeapPage::new(&bytes, page)?;
        if heap_page.live() == 0 {
            // Its last record left it in this transaction: it may be free already.
            return Ok(None);
        }
        let at = At { index: heap_page.index(), page };
        Ok(self.free(pages, at)?.filter(|&free| free >= need).map(|_| at))
    }

    /// Room in a page; `None` if it is not page `at.index` of this file.
    pub(super) fn free<R: PageRead + ?Sized>(&self, pages: &R, at: At) -> Result<Option<usize>> {
        pages.with_page(at.page, PageKind::Heap, |bytes| {
            let page = HeapPage::new(bytes, at.page)?;
            let own = holdall_core::page::owner(bytes) == self.owner && page.index() == at.index;
            Ok(own.then(|| page.free_bytes()))
        })
    }

    /// A page from the map of at least `class`, next-fit. Not a fresh one: those are for
    /// records for which no room can be made elsewhere.
    pub(super) fn search<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        need: usize,
        class: u8,
    ) -> Result<Option<At>> {
        for _ in 0..WRONG_CLASSES {
            let Some(index) = self.map.find_partly(pages, class, placement.cursor)? else {
                return Ok(None);
            };
            placement.cursor = index;
            let Some((page, _)) = self.map.get(pages, index)? else { return Ok(None) };
            let at = At { index, page };
            if placement.is_closed(index) {
                return Ok(None);
            }
            match self.free(pages, at)? {
                Some(free) if free >= need => return Ok(Some(at)),
                Some(_) => self.map.set_class(pages, index, 0)?,
                None => return Err(Error::page(page, format!("is not heap page {index}"))),
            };
        }
        Ok(None)
    }

    /// A fresh page of the file, or the first of a new extent.
    fn fresh<W: PageWrite + ?Sized>(&mut self, pages: &mut W) -> Result<At> {
        // The pages of the last extent are taken in order, and found without a pass over the map.
        let last = self.map.len().saturating_sub(growth(self.map.len()));
        let index = match self.map.find(pages, FRESH, last)? {
            Some(index) => index,
            None => self.extend(pages)?,
        };
        let gone = || Error::corrupt("page map", format!("index {index} has no page"));
        let (page, _) = self.map.get(pages, index)?.ok_or_else(gone)?;
        self.start(pages, At { index, page })
    }

    /// Formats a fresh page. Its class is brought up to date when its first record is in.
    fn start<W: PageWrite + ?Sized>(&mut self, pages: &mut W, at: At) -> Result<At> {
        heap_page::init(pages.format(at.page, PageKind::Heap, self.owner)?, at.index);
        self.formatted =
            self.formatted.checked_add(1).ok_or_else(|| self.wrong("too many formatted pages"))?;
        Ok(at)
    }

    /// Allocates the next extent, into the holes of the map first; returns one of its indexes.
    fn extend<W: PageWrite + ?Sized>(&mut self, pages: &mut W) -> Result<u32> {
        let len = self.map.len();
        let last = len.checked_sub(1).map(|last| self.map.get(pages, last)).transpose()?;
        let near = last.flatten().map(|(page, _)| PageNo(page.0 + 1));
        // A file that has shrunk is as small as its pages, however long its map.
        let run = pages.alloc_run(u64::from(growth(self.formatted)), near)?;
        let (mut first, mut holes) = (None, true);
        for page in run.start.0..run.end() {
            let hole = if holes { self.map.find_hole(pages)? } else { None };
            holes = hole.is_some();
            let index = hole.unwrap_or(self.map.len());
            self.map.set(pages, self.owner, index, PageNo(page), FRESH)?;
            first = first.or(Some(index));
        }
        first.ok_or_else(|| Error::corrupt("page allocation", "gave no pages"))
    }

    /// Keeps the books after a change of a page: counts, cache, map class.
    pub(super) fn update_free_space<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        at: At,
        before: FreeSpace,
        after: FreeSpace,
    ) -> Result<()> {
        let used = self.used.checked_add(before.free as u64);
        let used = used.and_then(|used| used.checked_sub(after.free as u64));
        self.used = used.ok_or_else(|| self.wrong("fewer bytes used than freed"))?;
        self.changes = self.changes.wrapping_add(1);
        placement.follow(self.changes);
        let max = max_record(pages.page_size());
        if after.empty && placement.cached().iter().any(|c| c.free == max && c.index != at.index) {
            // One empty page at hand is enough; others would be lost to a crash.
            placement.remove(at.index);
            return self.record_class(pages, at, FRESH);
        }
        if placement.renew(at.index, after.free) {
            return Ok(());
        }
        match placement.offer(at.index, at.page, after.free) {
            Offer::Kept => self.mark(pages, placement, at),
            Offer::Added(out) => {
                self.mark(pages, placement, at)?;
                out.map_or(Ok(()), |out| self.leave(pages, out))
            }
            Offer::Refused => {
                let class = class_of(after, max);
                if class == class_of(before, max) {
                    return Ok(());
                }
                self.record_class(pages, at, class)
            }
        }
    }

    /// Has the map call a cached page full, so that nobody relies on a class that is not kept.
    fn mark<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        at: At,
    ) -> Result<()> {
        if !placement.is_marked(at.index) {
            self.map.set_class(pages, at.index, 0)?;
            placement.mark(at.index, true);
        }
        Ok(())
    }

    /// Writes the class of a page that left the cache. A full page costs nothing: the map
    /// says so already.
    fn leave<W: PageWrite + ?Sized>(&mut self, pages: &mut W, out: Cached) -> Result<()> {
        let max = max_record(pages.page_size());
        if !out.marked || class_of(FreeSpace { free: out.free, empty: false }, max) == 0 {
            return Ok(());
        }
        // The class must be true, so it is taken from the page and not from the cache.
        let at = self.own(pages, out.page)?;
        let bytes = pages.page(out.page, PageKind::Heap)?;
        let class = class_of(HeapPage::new(&bytes, out.page)?.room(), max);
        drop(bytes);
        self.record_class(pages, at, class)
    }

    /// Writes the true class of a page outside the cache. An empty page is freed. It never
    /// becomes fresh: a fresh page is filled without a look at its former life, and written in
    /// place before the commit, but snapshots and the state that a crash goes back to may still
    /// need what lay here (rule 13).
    fn record_class<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        at: At,
        class: u8,
    ) -> Result<()> {
        if class != FRESH {
            return self.map.set_class(pages, at.index, class).map(drop);
        }
        // From here the page's content is given up: be sure that it is the page meant.
        if self.map.get(pages, at.index)?.map(|(page, _)| page) != Some(at.page) {
            return Err(Error::page(at.page, format!("is not heap page {}", at.index)));
        }
        self.formatted =
            self.formatted.checked_sub(1).ok_or_else(|| self.wrong("no formatted pages"))?;
        if mutation::is(Mutation::R13Emptied) {
            return self.map.set_class(pages, at.index, FRESH).map(drop);
        }
        self.map.clear(pages, at.index)?;
        pages.free_page(at.page)
    }

    /// Writes the true class of every cached page, so that nothing looks full that is not:
    /// before a clean close, and if wanted before a checkpoint. The cache goes on; its
    /// pages are marked again when they next change. Empty ones leave it.
    ///
    /// # Errors
    /// Page access, after which the transaction must be aborted.
    pub fn flush<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
    ) -> Result<()> {
        let max = max_record(pages.page_size());
        placement.sync(self.changes);
        self.changes = self.changes.wrapping_add(1);
        placement.follow(self.changes);
        for cached in placement.cached().to_vec() {
            if cached.free == max {
                placement.remove(cached.index);
            }
            self.leave(pages, cached)?;
            placement.mark(cached.index, false);
        }
        Ok(())
    }
}
