//! Heap files: the records of one collection in slotted pages, placed by HY(n,u).
//!
//! Owns: the pages of kind `Heap`, their map and the counts of the file. A [`HeapFile`] is
//! kept in the collection's own page and stored there after each change; a [`Placement`] is
//! kept in memory beside it. Invariants, all checked by [`HeapFile::check`]:
//!
//! - A page's map class is its true class (`heap_placement::class_of`), or 0 while the page is in
//!   the pid cache or was when the process ended. A class so promises no room that is not
//!   there; a page that wrongly looks full is corrected when its class next changes.
//! - `FRESH` is exact: the page holds no record and is formatted at its next use unread.
//! - `used`, `formatted` and `records` are the sums over all pages that are not fresh.
//! - Each first part of a record leads to a continuation of the same OID, each continuation has
//!   one first part ([`divided`]).
//!
//! Threads: reading needs a snapshot only; changing, the collection's write transaction.
//! After an error other than `Invalid` a transaction must be aborted, and its caller puts
//! back the [`HeapFile`] and the [`Placement`] from before (a placement that is not put back is
//! found out and emptied; its pages then look full until they are next changed).

mod divided;
mod lower;
mod placement;
mod relocation;
mod run;
mod scan;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_damage;
#[cfg(test)]
mod tests_relocation;

use crate::page_map::PageMap;
use crate::prefetch;
use crate::txn::Pinned;
use holdall_core::bytes::{put_u32, put_u64, u32_at, u64_at};
use holdall_core::heap_page::{self, FreeSpace, HeapPage, HeapPageMut, max_record};
use holdall_core::heap_record::divided::is_divided;
use holdall_core::{Error, PageKind, PageNo, PageRead, PageRef, PageWrite, Result};
use std::ops::{Deref, Range};
use std::sync::Arc;

pub use divided::WholeRecord;
pub use holdall_core::handle_page::Location;
pub use holdall_core::heap_placement::Placement;
#[cfg(test)]
use holdall_core::heap_placement::Policy;
pub use placement::growth;
pub use run::Records;

/// Root and counts of a heap file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeapFile {
    owner: u64,
    map: PageMap,
    /// Live records, each part of a divided one counted.
    records: u64,
    /// Bytes that are not free, of the capacity of all formatted pages.
    used: u64,
    /// Pages that are not fresh.
    formatted: u32,
    /// Changes so far, going round: by it a placement knows its own state.
    changes: u32,
}

/// A record in its page, whose version it keeps alive, copying nothing; or the copy of a divided
/// one.
#[derive(Debug, Clone)]
pub enum RecordRef {
    /// In its page.
    InPage(PageRef, Range<usize>),
    /// Put together of its parts.
    Joined(Arc<[u8]>),
}

impl Deref for RecordRef {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::InPage(page, range) => &page[range.clone()],
            Self::Joined(bytes) => bytes,
        }
    }
}

/// The page a change is about to be made in.
#[derive(Debug, Clone, Copy)]
struct At {
    index: u32,
    page: PageNo,
}

impl HeapFile {
    /// Bytes of an encoded heap file.
    pub const BYTES: usize = PageMap::BYTES + 24;

    /// An empty file of collection `owner`, which its pages will name.
    pub fn new(owner: u64) -> Self {
        Self { owner, map: PageMap::default(), records: 0, used: 0, formatted: 0, changes: 0 }
    }

    /// The file as stored: map, records, used, formatted, changes.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut b = [0; Self::BYTES];
        b[..PageMap::BYTES].copy_from_slice(&self.map.encode());
        put_u64(&mut b, 16, self.records);
        put_u64(&mut b, 24, self.used);
        put_u32(&mut b, 32, self.formatted);
        put_u32(&mut b, 36, self.changes);
        b
    }

    /// Reads the stored file of collection `owner`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if its numbers contradict each other.
    pub fn decode(b: &[u8; Self::BYTES], owner: u64) -> Result<Self> {
        let mut map = [0; PageMap::BYTES];
        map.copy_from_slice(&b[..PageMap::BYTES]);
        let file = Self {
            owner,
            map: PageMap::decode(&map)?,
            records: u64_at(b, 16),
            used: u64_at(b, 24),
            formatted: u32_at(b, 32),
            changes: u32_at(b, 36),
        };
        if file.formatted > file.map.len() {
            return Err(file.wrong("cannot be"));
        }
        Ok(file)
    }

    fn wrong(&self, what: &str) -> Error {
        Error::corrupt(
            format!("heap file of collection {}", self.owner),
            format!("{what}: {self:?}"),
        )
    }

    /// Live records, each part of a divided one counted.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The map from logical index to heap page.
    pub fn map(&self) -> &PageMap {
        &self.map
    }

    /// Bytes in use, and the capacity of the pages that are not fresh; slots count as used,
    /// page headers do not count at all.
    pub fn utilization(&self, page_size: usize) -> (u64, u64) {
        (self.used, u64::from(self.formatted) * max_record(page_size) as u64)
    }

    /// The record at `loc`, or the part of one that lies there. Cost: one page read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no record, [`Error::Io`].
    pub fn get<R: PageRead + ?Sized>(pages: &R, loc: Location) -> Result<RecordRef> {
        let page = pages.page(loc.page, PageKind::Heap)?;
        let range = range_of(&page, loc)?;
        Ok(RecordRef::InPage(page, range))
    }

    /// Gives `f` the whole record at `loc`; see [`PageRead::with_page`]. Cost: one page read, two
    /// if the record is divided.
    ///
    /// # Errors
    /// As [`HeapFile::get`], and those of `f`.
    #[inline]
    pub fn with_record<R: PageRead + ?Sized, T>(
        pages: &R,
        loc: Location,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let looked = pages.with_page(loc.page, PageKind::Heap, |page| {
            let record = &page[range_of(page, loc)?];
            touch(record);
            if is_divided(record) {
                return Ok(Err(f));
            }
            f(record).map(Ok)
        })?;
        match looked {
            Ok(value) => Ok(value),
            // Not inside the look: the other page may have to be read.
            Err(f) => f(&Self::whole(pages, loc)?),
        }
    }

    /// Has the slot of a record prefetched; see [`Pinned::prefetch`].
    #[inline]
    pub fn prefetch_slot(pages: &Pinned<'_>, loc: Location) {
        pages.prefetch(loc.page, heap_page::HEAD);
        pages.prefetch(loc.page, heap_page::place(loc.slot));
    }

    /// Of a lookup alone: has slot and record prefetched at once, where an earlier lookup found
    /// where the record lies.
    #[inline]
    pub fn prefetch_alone(pages: &Pinned<'_>, loc: Location) {
        Self::prefetch_slot(pages, loc);
        let known = bytes_of(pages.layout_hint(loc.page, loc.slot));
        if !known.is_empty() {
            pages.prefetch(loc.page, known);
        }
    }

    /// After [`HeapFile::prefetch_slot`]: has records of one page prefetched.
    #[inline]
    pub fn prefetch_records(
        pages: &Pinned<'_>,
        page: PageNo,
        records: impl Iterator<Item = Location>,
    ) {
        pages.hint(page, PageKind::Heap, |bytes| {
            let Ok(heap) = HeapPage::new(bytes, page) else { return };
            for range in records.filter_map(|loc| range_in(heap, loc).ok()) {
                prefetch::range(bytes.as_ptr(), range);
            }
        });
    }

    /// Inserts a record of 1 to [`max_record`] bytes: on page `near` if that is a page of this
    /// file with room, else by HY(n,u): a cached page; while utilization is below u a page
    /// found in the map; a new page. Cost: one changed page; the map is looked at if no
    /// cached page has room, and changed if a page enters the cache or leaves it not full.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an empty or too long record; [`Error::Full`], page access.
    pub fn insert<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        record: &[u8],
        near: Option<PageNo>,
    ) -> Result<Location> {
        check_length(record, pages.page_size())?;
        placement.sync(self.changes);
        let at = self.room_for(pages, placement, record.len(), near)?;
        self.put_in(pages, placement, at, record)
    }

    /// As [`HeapFile::insert`], but `None` if the file would have to grow.
    ///
    /// # Errors
    /// As [`HeapFile::insert`].
    pub fn insert_at_hand<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        record: &[u8],
        near: Option<PageNo>,
    ) -> Result<Option<Location>> {
        check_length(record, pages.page_size())?;
        placement.sync(self.changes);
        match self.room_at_hand(pages, placement, record.len(), near)? {
            Some(at) => self.put_in(pages, placement, at, record).map(Some),
            None => Ok(None),
        }
    }

    fn put_in<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        at: At,
        record: &[u8],
    ) -> Result<Location> {
        let mut page = HeapPageMut::new(pages.page_mut(at.page, PageKind::Heap)?, at.page)?;
        let before = page.view().room();
        let full = || Error::page(at.page, format!("no room for {} bytes", record.len()));
        let slot = page.insert(record)?.ok_or_else(full)?;
        let after = page.view().room();
        self.records = self.records.saturating_add(1);
        self.update_free_space(pages, placement, at, before, after)?;
        Ok(Location { page: at.page, slot })
    }

    /// Replaces the record at `loc` if the new one fits its page; else deletes it, as
    /// [`HeapFile::delete`] does. Returns whether the new one is there. Cost: one changed page;
    /// the map as in [`HeapFile::delete`].
    ///
    /// # Errors
    /// As [`HeapFile::insert`]; [`Error::Corrupt`] if there is no record.
    pub fn replace<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        loc: Location,
        record: &[u8],
    ) -> Result<bool> {
        check_length(record, pages.page_size())?;
        placement.sync(self.changes);
        let fits = self.change(pages, placement, loc, |page| {
            let fits = page.replace(loc.slot, record)?;
            if !fits {
                page.delete(loc.slot)?;
            }
            Ok(fits)
        })?;
        if !fits {
            self.forget_record()?;
        }
        Ok(fits)
    }

    /// Deletes the record at `loc`. A page that becomes empty is kept for reuse or, if
    /// another empty one is at hand, freed. Cost: one changed page; the map is changed if
    /// the page's class changes and the page is not cached.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no record; page access.
    pub fn delete<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        loc: Location,
    ) -> Result<()> {
        placement.sync(self.changes);
        self.change(pages, placement, loc, |page| page.delete(loc.slot).map(drop))?;
        self.forget_record()
    }

    fn forget_record(&mut self) -> Result<()> {
        self.records = self.records.checked_sub(1).ok_or_else(|| self.wrong("no records"))?;
        Ok(())
    }

    /// Changes the page of a record and keeps the books.
    fn change<W: PageWrite + ?Sized, T>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        Location { page: no, .. }: Location,
        f: impl FnOnce(&mut HeapPageMut<'_>) -> Result<T>,
    ) -> Result<T> {
        let bytes = pages.page_mut(no, PageKind::Heap)?;
        let index = index_of(bytes, no, self.owner)?;
        let mut page = HeapPageMut::new(bytes, no)?;
        let before = page.view().room();
        let value = f(&mut page)?;
        let after = page.view().room();
        self.update_free_space(pages, placement, At { index, page: no }, before, after)?;
        Ok(value)
    }

    /// Drops up to `most` pages from the end of the file with all their records, and returns
    /// whether the file is gone. For dropping a collection in bounded transactions: nothing
    /// else may be done with the file in between, and its placement is to be forgotten.
    ///
    /// # Errors
    /// Page access.
    pub fn drop_pages<W: PageWrite + ?Sized>(&mut self, pages: &mut W, most: u32) -> Result<bool> {
        (self.records, self.used, self.formatted) = (0, 0, 0);
        for _ in 0..most {
            match self.map.pop(pages)? {
                Some(page) if page.is_none() => {}
                Some(page) => pages.free_page(page)?,
                None => return Ok(true),
            }
        }
        Ok(self.map.is_empty())
    }

    /// The index of `page`, which must be a heap page of this file.
    fn own<R: PageRead + ?Sized>(&self, pages: &R, page: PageNo) -> Result<At> {
        pages.with_page(page, PageKind::Heap, |bytes| {
            Ok(At { index: index_of(bytes, page, self.owner)?, page })
        })
    }
}

/// The index of a heap page, which must be one of collection `owner`.
fn index_of(bytes: &[u8], page: PageNo, owner: u64) -> Result<u32> {
    let found = holdall_core::page::owner(bytes);
    if found != owner {
        let detail = format!("belongs to collection {found}, not {owner}");
        return Err(Error::page(page, detail));
    }
    Ok(HeapPage::new(bytes, page)?.index())
}

/// Bits of a layout hint that count lines; the others say in which the record begins.
const LENGTH: u32 = 4;

/// Where a record lies, in lines of the processor's caches: its layout hint.
#[inline]
fn lines_of(range: &Range<usize>) -> u16 {
    let (first, last) = (range.start / prefetch::LINE, range.end / prefetch::LINE);
    ((first << LENGTH) | (last - first + 1).min(TOUCHED)) as u16
}

/// Bytes that a layout hint names; none if there was none.
#[inline]
fn bytes_of(hint: u16) -> Range<usize> {
    let from = usize::from(hint >> LENGTH) * prefetch::LINE;
    from..from + usize::from(hint & ((1 << LENGTH) - 1)) * prefetch::LINE
}

/// Lines of a record fetched together; those behind come by themselves as it is copied.
const TOUCHED: usize = 8;

/// Begins to fetch all lines of a short record at once. Its first bytes say where its others
/// begin, so that otherwise these would be waited for after those.
#[inline]
fn touch(record: &[u8]) {
    for byte in record.iter().step_by(prefetch::LINE).take(TOUCHED) {
        std::hint::black_box(*byte);
    }
    std::hint::black_box(record.last());
}

/// Where the record at `loc` lies in its page.
#[inline]
fn range_of(page: &[u8], loc: Location) -> Result<Range<usize>> {
    range_in(HeapPage::new(page, loc.page)?, loc)
}

/// As [`range_of`], in a page that several look into.
#[inline]
fn range_in(page: HeapPage<'_>, loc: Location) -> Result<Range<usize>> {
    let none = || Error::page(loc.page, format!("slot {} holds no record", loc.slot));
    page.range(loc.slot)?.ok_or_else(none)
}

fn check_length(record: &[u8], page_size: usize) -> Result<()> {
    let max = max_record(page_size);
    if record.is_empty() || record.len() > max {
        let detail = format!("a heap record of {} bytes; it must have 1 to {max}", record.len());
        return Err(Error::Invalid(detail));
    }
    Ok(())
}
