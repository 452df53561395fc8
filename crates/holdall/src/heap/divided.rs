//! Records divided in two, for which no page has room as a whole.
//!
//! Owns: when a record is divided, and its two parts as one: here a location is that of a
//! whole record or of a first part, while [`HeapFile::get`], [`HeapFile::insert`] and their like
//! take any part for a record of its own. A record has two parts at most. The first one leads to
//! the other, which a mover of that one must follow ([`HeapFile::relink`]).

use super::{
    At, HeapFile, Location, Placement, RecordRef, check_length, lines_of, range_in, range_of, touch,
};
use crate::txn::Pinned;
use holdall_core::heap_page::{HeapPage, max_record};
use holdall_core::heap_record::divided::{
    LINK, Part, check_pair, continuation, first_part, is_divided, join, part, set_link,
};
use holdall_core::{Error, Oid, PageKind, PageNo, PageRead, PageWrite, Result};

/// The least part of a page that a first part takes, and the least length of a record that is
/// divided: what pages lose otherwise is less than that.
const LEAST: usize = 16;

/// What [`HeapFile::look_page`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WholeRecord<'a> {
    /// A record that is not divided.
    Seen(&'a [u8]),
    /// Another, or one not in memory; where its continuation lies, if that is known.
    Not(Option<Location>),
}

impl HeapFile {
    /// The whole of the record at `loc`. Cost: a page read, and another and a copy if it is
    /// divided.
    ///
    /// # Errors
    /// As [`HeapFile::get`]; [`Error::Corrupt`] if its parts do not belong together.
    pub fn whole<R: PageRead + ?Sized>(pages: &R, loc: Location) -> Result<RecordRef> {
        let first = Self::get(pages, loc)?;
        if !is_divided(&first) {
            return Ok(first);
        }
        Self::joined(pages, loc, &first).map(|record| RecordRef::Joined(record.into()))
    }

    /// The record of which `first`, found at `loc`, is the first part.
    #[cold]
    pub fn joined<R: PageRead + ?Sized>(pages: &R, loc: Location, first: &[u8]) -> Result<Vec<u8>> {
        let link = Self::link(loc, first)?;
        pages
            .with_page(link.page, PageKind::Heap, |page| join(first, &page[range_of(page, link)?]))
            .map_err(|e| unlinked(loc, link, e))
    }

    /// Gives `f` the record at `loc` where it lies: a whole one and nothing, or the first part of
    /// a divided one and its continuation. `alone`: no other lookup goes on beside it, and later
    /// ones learn where the record lies. Cost: one page read, two if it is divided; no copy.
    ///
    /// # Errors
    /// As [`HeapFile::whole`]; those of `f`.
    #[inline]
    pub fn look_parts<T>(
        pages: &Pinned<'_>,
        loc: Location,
        alone: bool,
        f: impl FnOnce(&[u8], &[u8]) -> Result<T>,
    ) -> Result<T> {
        let looked = pages.with_page(loc.page, PageKind::Heap, |page| {
            let record = part_at(pages, page, loc, alone)?;
            if !is_divided(record) {
                return f(record, &[]).map(Ok);
            }
            let link = Self::link(loc, record)?;
            if alone {
                Self::prefetch_alone(pages, link);
            }
            pages.with_page_in_memory(link.page, PageKind::Heap, |page| match page {
                Some(page) => {
                    let rest = part_at(pages, page, link, alone);
                    let rest = rest.map_err(|e| unlinked(loc, link, e))?;
                    check_pair(record, rest).map_err(|e| unlinked(loc, link, e))?;
                    f(record, rest).map(Ok)
                }
                // Not read inside the look, which has the first page pinned.
                None => Ok(Err((f, link))),
            })
        })?;
        match looked {
            Ok(value) => Ok(value),
            Err((f, link)) => {
                let first = Self::get(pages, loc)?;
                let rest = Self::get(pages, link).map_err(|e| unlinked(loc, link, e))?;
                check_pair(&first, &rest).map_err(|e| unlinked(loc, link, e))?;
                f(&first, &rest)
            }
        }
    }

    /// Gives `f` records of one page where they lie, each with what names it. Of those divided
    /// in two the index entry of the other page is prefetched. `loc` says where each lies.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; those of `f`.
    #[inline]
    pub fn look_page<I: Copy>(
        pages: &Pinned<'_>,
        page: PageNo,
        mut records: impl Iterator<Item = (I, Location)>,
        mut f: impl FnMut((I, Location), WholeRecord<'_>) -> Result<()>,
    ) -> Result<()> {
        pages.with_page_in_memory(page, PageKind::Heap, |bytes| {
            let Some(bytes) = bytes else {
                return records.try_for_each(|record| f(record, WholeRecord::Not(None)));
            };
            let heap = HeapPage::new(bytes, page)?;
            for (id, loc) in records {
                let record = &bytes[range_in(heap, loc)?];
                let looked = if is_divided(record) {
                    let link = Self::link(loc, record)?;
                    pages.prefetch_entry(link.page);
                    WholeRecord::Not(Some(link))
                } else {
                    WholeRecord::Seen(record)
                };
                f((id, loc), looked)?;
            }
            Ok(())
        })
    }

    /// Where a first part, found at `loc`, leads.
    fn link(loc: Location, first: &[u8]) -> Result<Location> {
        match part(first) {
            Ok((_, Part::First(link))) => Ok(link),
            Ok(_) => Err(Error::page(loc.page, format!("slot {} is not divided", loc.slot))),
            Err(e) => Err(Error::page(loc.page, format!("slot {}: {e}", loc.slot))),
        }
    }

    /// The continuation of the record at `loc`, and the length of the record's bytes before it;
    /// `None` if the record is not divided.
    fn rest_of<R: PageRead + ?Sized>(
        pages: &R,
        loc: Location,
    ) -> Result<Option<(Location, usize)>> {
        let first = Self::get(pages, loc)?;
        if !is_divided(&first) {
            return Ok(None);
        }
        // Nothing is changed that is not known to be the record's own.
        Self::joined(pages, loc, &first)?;
        Ok(Some((Self::link(loc, &first)?, first.len() - LINK)))
    }

    /// Inserts a record in two parts, the first into the emptiest page at hand. `None` if
    /// that is not worth it: the file is dense, or the page takes too little. Cost: two changed
    /// pages.
    ///
    /// # Errors
    /// As [`HeapFile::insert`].
    pub fn insert_divided<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        record: &[u8],
    ) -> Result<Option<Location>> {
        check_length(record, pages.page_size())?;
        placement.sync(self.changes);
        let Some((at, free)) = self.page_to_fill(pages, placement, record.len())? else {
            return Ok(None);
        };
        if free >= record.len() {
            return self.put_in(pages, placement, at, record).map(Some);
        }
        let cut = free - LINK;
        placement.close(Some(at.index));
        let rest = self.insert(pages, placement, &continuation(record, cut), None);
        placement.close(None);
        self.put_in(pages, placement, at, &first_part(record, cut, rest?)).map(Some)
    }

    /// A page with room for a first part of a record of `need` bytes, or even for all of it, and
    /// how much it has: of a sparse file, or if each cached page would take half of it, so that
    /// records of like lengths leave as much in all pages. A page that takes half is looked for,
    /// else the emptiest cached one has to do.
    fn page_to_fill<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        need: usize,
    ) -> Result<Option<(At, usize)>> {
        let max = max_record(pages.page_size());
        let (least, half) = (max / LEAST, need / 2);
        let (used, capacity) = self.utilization(pages.page_size());
        let wanted = placement.is_sparse(used, capacity) || placement.would_lose(half);
        if need < least || !wanted {
            return Ok(None);
        }
        let Some(emptiest) = placement.cached().last().copied() else { return Ok(None) };
        let mut at = At { index: emptiest.index, page: emptiest.page };
        if emptiest.free < half
            && let Some(class) = placement.search_class(half, max, used, capacity)
            && let Some(found) = self.search(pages, placement, half, class)?
        {
            at = found;
        }
        let free = self.free(pages, at)?.filter(|free| *free >= least);
        Ok(free.map(|free| (at, free)))
    }

    /// As [`HeapFile::replace`] for a record that may be divided, and then may no longer be. The
    /// parts keep their pages if the new one fits there.
    ///
    /// # Errors
    /// As [`HeapFile::replace`].
    pub fn replace_whole<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        loc: Location,
        record: &[u8],
    ) -> Result<bool> {
        let Some((rest, cut)) = Self::rest_of(pages, loc)? else {
            return self.replace(pages, placement, loc, record);
        };
        check_length(record, pages.page_size())?;
        placement.sync(self.changes);
        if self.replace_part(pages, placement, loc, record)? {
            self.delete(pages, placement, rest)?;
            return Ok(true);
        }
        if cut < record.len()
            && self.replace_part(pages, placement, rest, &continuation(record, cut))?
            && self.replace_part(pages, placement, loc, &first_part(record, cut, rest))?
        {
            return Ok(true);
        }
        self.delete(pages, placement, rest)?;
        self.delete(pages, placement, loc)?;
        Ok(false)
    }

    /// Puts a part in the place of the one at `loc`; `false`, and nothing changed, if its
    /// page has no room.
    fn replace_part<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        loc: Location,
        new: &[u8],
    ) -> Result<bool> {
        self.change(pages, placement, loc, |page| page.replace(loc.slot, new))
    }

    /// Deletes the record at `loc`, in all its parts; see [`HeapFile::delete`].
    ///
    /// # Errors
    /// As [`HeapFile::delete`]; [`Error::Corrupt`] if its parts do not belong together.
    pub fn delete_whole<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        loc: Location,
    ) -> Result<()> {
        if let Some((rest, _)) = Self::rest_of(pages, loc)? {
            self.delete(pages, placement, rest)?;
        }
        self.delete(pages, placement, loc)
    }

    /// After the continuation of the record at `loc` has moved: has the first part lead to
    /// `new`. Cost: one changed page.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it does not lead to `old`.
    pub fn relink<W: PageWrite + ?Sized>(
        pages: &mut W,
        loc: Location,
        oid: Oid,
        (old, new): (Location, Location),
    ) -> Result<()> {
        let bytes = pages.page_mut(loc.page, PageKind::Heap)?;
        let range = range_of(bytes, loc)?;
        if part(&bytes[range.clone()])? != (oid, Part::First(old)) {
            let detail = format!("slot {} does not lead to {old:?}, which is {oid}'s", loc.slot);
            return Err(Error::page(loc.page, detail));
        }
        set_link(&mut bytes[range], new);
        Ok(())
    }
}

/// The record or part at `loc` of its page, whose bytes are on their way. A lookup that is
/// `alone` says for later ones where it lies.
#[inline]
fn part_at<'p>(pages: &Pinned<'_>, page: &'p [u8], loc: Location, alone: bool) -> Result<&'p [u8]> {
    let range = range_of(page, loc)?;
    if alone {
        pages.set_layout_hint(loc.page, loc.slot, lines_of(&range));
    }
    let record = &page[range];
    if alone {
        touch(record);
    }
    Ok(record)
}

/// Says from where a link leads to what is wrong.
fn unlinked(loc: Location, link: Location, e: Error) -> Error {
    match e {
        Error::Corrupt { place, detail } => {
            let to = format!("leads to page {} slot {}", link.page, link.slot);
            Error::page(loc.page, format!("slot {} {to}: {place}: {detail}", loc.slot))
        }
        other => other,
    }
}
