//! The directory page of a buddy space (Biliris 1992 §3.1): one page holds everything
//! about the pages of its space.
//!
//! Owns: the body of pages of kind `SpaceDir` (docs/format.md "Space directory"): which
//! pages are allocated, where the info page of each stretch is, when each MiB last changed.
//! Invariants, checked by [`SpaceDir::open`] and [`SpaceDir::check`]: fixed pages are
//! allocated; bits past the last page are 0; a stretch has no more live segment pages than
//! allocated pages, and an info page if it has any. Nothing else is stored: buddy blocks
//! are derived ([`SpaceDir::tree`]). Pure views over page bytes; no threads.

mod layout;
#[cfg(test)]
mod tests;

use crate::buddy::{BuddyTree, Run, word};
use crate::bytes::{put_u32, put_u48, put_u64, u32_at, u48_at, u64_at};
use crate::{Error, Lsn, PageNo, Result, page};
use layout::{DIR_FIXED, STRETCH_BYTES};

pub use layout::{GRANULE_BYTES, MIN_SPACE_PAGES, SpaceLayout, UNIT_BYTES};
pub(crate) use layout::{INFO_FIXED, OWNER_BYTES};

const SPACE: usize = page::HEADER;
const SPACE_PAGES: usize = page::HEADER + 4;
const BITMAP: usize = DIR_FIXED;
const LIVE: usize = 6;

/// View of a directory page. Over `&mut [u8]` it also changes it. Pages are counted from
/// the start of the space.
#[derive(Debug, Clone, Copy)]
pub struct SpaceDir<B> {
    layout: SpaceLayout,
    space: u32,
    bytes: B,
}

impl<B: AsRef<[u8]>> SpaceDir<B> {
    /// Looks at the directory of space `space`, whose header has been checked. Constant cost.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is another space's, of another size, or has a fixed page
    /// free.
    pub fn open(layout: SpaceLayout, space: u32, bytes: B) -> Result<Self> {
        let dir = Self { layout, space, bytes };
        let b = dir.bytes.as_ref();
        if b.len() != layout.page_size() {
            return Err(dir.damaged(format!("directory of {} bytes", b.len())));
        }
        if (u32_at(b, SPACE), u32_at(b, SPACE_PAGES)) != (space, layout.space_pages()) {
            let (other, pages) = (u32_at(b, SPACE), u32_at(b, SPACE_PAGES));
            let detail = format!(
                "directory of space {other} of {pages} pages instead of {space} of {}",
                layout.space_pages()
            );
            return Err(dir.damaged(detail));
        }
        if layout.fixed_pages(space).any(|i| !dir.bit(i)) {
            return Err(dir.damaged("a page that is always in use is marked free".into()));
        }
        let last = word::count(layout.space_pages()) - 1;
        if dir.word(last) & !word::mask_below(last, layout.space_pages()) != 0 {
            return Err(dir.damaged("pages past the end of the space are marked in use".into()));
        }
        Ok(dir)
    }

    /// The space.
    pub fn space(&self) -> u32 {
        self.space
    }

    /// The layout.
    pub fn layout(&self) -> SpaceLayout {
        self.layout
    }

    /// Whether page `index` is allocated; pages past the end of the space count as allocated.
    pub fn is_allocated(&self, index: u32) -> bool {
        index >= self.layout.space_pages() || self.bit(index)
    }

    /// Allocated pages of the whole space, fixed ones included. Cost: one step per 64 pages.
    pub fn count_allocated(&self) -> u32 {
        self.count(Run { start: 0, len: self.layout.space_pages() })
    }

    /// Whether pages are allocated beside the fixed ones. Cost: as [`SpaceDir::count_allocated`].
    pub fn holds_pages(&self) -> bool {
        self.count_allocated() as usize > self.layout.fixed_pages(self.space).count()
    }

    /// Allocated pages of `start..start + len`. Cost: one step per 64 pages.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the range leaves the space.
    pub fn count_allocated_in(&self, start: u32, len: u32) -> Result<u32> {
        self.inside(start, len)?;
        Ok(self.count(Run { start, len }))
    }

    /// Pages `64 * w..64 * w + 64` as a word, bit set = free; 0 past the end of the space.
    pub fn free_word(&self, w: usize) -> u64 {
        match word::mask_below(w, self.layout.space_pages()) {
            0 => 0,
            mask => !self.word(w) & mask,
        }
    }

    /// The free pages as a buddy tree; pages from `limit` on lie outside the volume. Cost:
    /// one step per 64 pages.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the limit is larger than the space.
    pub fn tree(&self, limit: u32) -> Result<BuddyTree> {
        BuddyTree::from_free_words(self.layout.space_pages(), limit, |w| self.free_word(w))
    }

    /// The info page of a stretch, [`PageNo::NONE`] if it has none. The number is from
    /// disk and may be any.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such stretch.
    pub fn info_page(&self, stretch: u32) -> Result<PageNo> {
        let (at, _) = self.stretch(stretch)?;
        Ok(PageNo(u48_at(self.bytes.as_ref(), at)))
    }

    /// Live segment pages of a stretch; at 0 its info page may be freed.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such stretch or the count is larger than it.
    pub fn segment_pages(&self, stretch: u32) -> Result<u32> {
        let (at, run) = self.stretch(stretch)?;
        let live = u32_at(self.bytes.as_ref(), at + LIVE);
        if live > run.len {
            let detail = format!("{live} segment pages in the {} of stretch {stretch}", run.len);
            return Err(self.damaged(detail));
        }
        Ok(live)
    }

    /// The last change noted for granule `granule`: no page of it changed later. It may be
    /// later than the real change.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such granule.
    pub fn last_change(&self, granule: u32) -> Result<Lsn> {
        if granule >= self.layout.granules() {
            return Err(self.damaged(format!("no granule {granule} in the space")));
        }
        Ok(Lsn(u64_at(self.bytes.as_ref(), self.granule_at(granule))))
    }

    /// Checks all invariants of the page, for verification. Cost: one pass.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the first one that does not hold.
    pub fn check(&self) -> Result<()> {
        for j in 0..self.layout.stretches() {
            let (live, (_, run)) = (self.segment_pages(j)?, self.stretch(j)?);
            let allocated = self.count(run);
            if live > allocated {
                let detail = format!("stretch {j}: {live} segment pages, {allocated} in use");
                return Err(self.damaged(detail));
            }
            if live > 0 && self.info_page(j)?.is_none() {
                let detail = format!("stretch {j}: {live} segment pages without an info page");
                return Err(self.damaged(detail));
            }
        }
        Ok(())
    }

    fn count(&self, run: Run) -> u32 {
        word::pieces(run.start, run.len).map(|(w, mask)| (self.word(w) & mask).count_ones()).sum()
    }

    fn word(&self, w: usize) -> u64 {
        u64_at(self.bytes.as_ref(), BITMAP + 8 * w)
    }

    fn bit(&self, index: u32) -> bool {
        self.word((index / word::PAGES) as usize) >> (index % word::PAGES) & 1 == 1
    }

    /// Offset and pages of a stretch.
    fn stretch(&self, stretch: u32) -> Result<(usize, Run)> {
        let run = self.layout.stretch_run(stretch);
        let run = run.ok_or_else(|| self.damaged(format!("no stretch {stretch} in the space")))?;
        Ok((self.layout.stretches_at() + stretch as usize * STRETCH_BYTES, run))
    }

    fn granule_at(&self, granule: u32) -> usize {
        self.layout.granules_at() + granule as usize * 8
    }

    fn inside(&self, start: u32, len: u32) -> Result<()> {
        let end = u64::from(start) + u64::from(len);
        if end > u64::from(self.layout.space_pages()) {
            let page = self.layout.page_at(self.space, start);
            return Err(Error::page(page, format!("a run of {len} pages leaves the space")));
        }
        Ok(())
    }

    fn damaged(&self, detail: String) -> Error {
        Error::page(self.layout.dir_page(self.space), detail)
    }
}

impl<'a> SpaceDir<&'a mut [u8]> {
    /// Writes the directory of a new space into a page formatted as `SpaceDir`: all free but
    /// the fixed pages.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the page is not of the layout's size.
    pub fn init(layout: SpaceLayout, space: u32, bytes: &'a mut [u8]) -> Result<Self> {
        if bytes.len() != layout.page_size() {
            let text = format!("{} bytes for a page of {}", bytes.len(), layout.page_size());
            return Err(Error::Invalid(text));
        }
        bytes[page::HEADER..].fill(0);
        put_u32(bytes, SPACE, space);
        put_u32(bytes, SPACE_PAGES, layout.space_pages());
        let mut dir = Self { layout, space, bytes };
        for index in layout.fixed_pages(space) {
            dir.put(index, 1, true);
        }
        Ok(dir)
    }

    /// Marks `start..start + len` as allocated or free. Cost: one step per 64 pages.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the first page that is so already (allocated or freed
    /// twice), and where the range leaves the space or would free a fixed page; nothing is
    /// changed.
    pub fn set_range(&mut self, start: u32, len: u32, allocated: bool) -> Result<()> {
        self.inside(start, len)?;
        for (w, mask) in word::pieces(start, len) {
            let old = if allocated { self.word(w) } else { !self.word(w) } & mask;
            if old != 0 {
                let index = w as u32 * word::PAGES + old.trailing_zeros();
                let detail = if allocated { "allocated twice" } else { "freed twice" };
                return Err(Error::page(self.layout.page_at(self.space, index), detail));
            }
        }
        let range = start..start + len;
        if let Some(index) = self.layout.fixed_pages(self.space).find(|i| range.contains(i)) {
            let page = self.layout.page_at(self.space, index);
            return Err(Error::page(page, "always in use, cannot be freed"));
        }
        self.put(start, len, allocated);
        Ok(())
    }

    /// Sets the info page of a stretch; [`PageNo::NONE`] takes it away.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such stretch or it is to lose its info page
    /// while segment pages live in it; [`Error::Invalid`] for a number beyond 48 bits.
    pub fn set_info_page(&mut self, stretch: u32, info: PageNo) -> Result<()> {
        let (at, _) = self.stretch(stretch)?;
        if info > PageNo::MAX {
            return Err(Error::Invalid(format!("{info} is not a page number")));
        }
        if info.is_none() && self.segment_pages(stretch)? > 0 {
            let detail = format!("stretch {stretch} still has segment pages");
            return Err(self.damaged(detail));
        }
        put_u48(self.bytes, at, info.0);
        Ok(())
    }

    /// Changes the count of live segment pages of a stretch and returns the new one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such stretch or the count would leave
    /// `0..=pages of the stretch`; nothing is changed.
    pub fn add_segment_pages(&mut self, stretch: u32, delta: i64) -> Result<u32> {
        let (at, run) = self.stretch(stretch)?;
        let live = self.segment_pages(stretch)?;
        let new = i64::from(live).checked_add(delta).and_then(|n| u32::try_from(n).ok());
        let Some(new) = new.filter(|&n| n <= run.len) else {
            let detail = format!("{live} segment pages of stretch {stretch} changed by {delta}");
            return Err(self.damaged(detail));
        };
        put_u32(self.bytes, at + LIVE, new);
        Ok(new)
    }

    /// Notes a change of `start..start + len` at `lsn`, which may be an upper bound of the
    /// commit's LSN but not a lower one; it never moves a granule back. Cost: one step per
    /// MiB.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the range leaves the space.
    pub fn note_change(&mut self, start: u32, len: u32, lsn: Lsn) -> Result<()> {
        self.inside(start, len)?;
        let Some(last) = len.checked_sub(1) else { return Ok(()) };
        for granule in self.layout.granule_of(start)..=self.layout.granule_of(start + last) {
            let at = self.granule_at(granule);
            let newest = u64_at(self.bytes, at).max(lsn.0);
            put_u64(self.bytes, at, newest);
        }
        Ok(())
    }

    fn put(&mut self, start: u32, len: u32, allocated: bool) {
        for (w, mask) in word::pieces(start, len) {
            let old = self.word(w);
            let new = if allocated { old | mask } else { old & !mask };
            put_u64(self.bytes, BITMAP + 8 * w, new);
        }
    }
}
