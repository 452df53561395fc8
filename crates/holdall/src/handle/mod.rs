//! The handle table: from OID to the place of the record, by direct mapping.
//!
//! Owns: the pages of kind `Handle` and their map. An OID names handle page (a logical
//! index) and slot, so a look-up is the map and one page (Eickler §3.1.4); the number in
//! `unique` distinguishes the slot's former owners from the present one. Records move behind the
//! handle, handle pages behind the map. Handle pages are allocated in extents so that they
//! lie together; the pages of an extent are formatted when first used. Map classes are
//! exact: `FRESH` for a page never formatted, else [`handle_page::class`]. Handle pages are
//! reused but never freed.
//!
//! Threads: looking up needs a snapshot only; changing, the write transaction.

mod lower;
mod run;
#[cfg(test)]
mod tests;

use crate::page_map::PageMap;
#[cfg(test)]
use crate::page_map::VisitPage;
use crate::txn::Pinned;
use holdall_core::handle_page::{self, Handle, HandlePage, HandlePageMut, Location};
use holdall_core::heap_placement::extent;
use holdall_core::page_map_node::FRESH;
use holdall_core::{Error, Oid, PageKind, PageNo, PageRead, PageWrite, Result};
#[cfg(test)]
use std::cell::RefCell;

/// The largest extent of handle pages.
const EXTENT: u32 = 16;
/// The site of every OID of a store of one machine.
const SITE: u16 = 0;

/// Root of the handle table; encoded as its map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandleTable {
    /// The handle pages.
    pub map: PageMap,
}

/// The handle page that took the last new OID. A hint: transient, checked at each use, and
/// harmless after an aborted transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HandleCursor {
    page: Option<u32>,
    /// Where a formatted handle page lies, as far as this transaction knows.
    known: Option<(u32, PageNo)>,
}

impl HandleCursor {
    /// As another transaction may use it: it must not rely on what this one looked up.
    pub fn forget_places(&mut self) {
        self.known = None;
    }
}

/// A free handle that [`HandleTable::next`] chose.
#[derive(Debug, Clone, Copy)]
pub struct HandleSlot {
    index: u32,
    page: PageNo,
    slot: u16,
    /// The map says of the page that it was never formatted.
    fresh: bool,
}

impl HandleSlot {
    /// The OID of the object that takes it.
    pub fn oid(&self, unique: u32) -> Oid {
        Oid { site: SITE, page: self.index, slot: self.slot, unique }
    }
}

impl HandleTable {
    /// Where the record of `oid` lies. Cost: the map's height plus one page read.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an OID that never was; [`Error::Dangling`] if its object was
    /// deleted; [`Error::Corrupt`], [`Error::Io`].
    #[inline]
    pub fn lookup<R: PageRead + ?Sized>(&self, pages: &R, oid: Oid) -> Result<Location> {
        self.live(pages, oid).map(|(_, loc)| loc)
    }

    /// The handle page of a live OID, and its record's place. Cost: as [`HandleTable::lookup`].
    ///
    /// # Errors
    /// As [`HandleTable::lookup`].
    #[inline]
    pub fn live<R: PageRead + ?Sized>(&self, pages: &R, oid: Oid) -> Result<(PageNo, Location)> {
        let page = self.page_of(pages, oid)?;
        Ok((page, Self::lookup_in(pages, page, oid)?))
    }

    /// The handle page that says where the record of `oid` lies: the first half of
    /// [`HandleTable::lookup`], of which [`HandleTable::lookup_in`] is the second. Cost: the
    /// map's height.
    ///
    /// # Errors
    /// As [`HandleTable::lookup`].
    #[inline]
    pub fn page_of<R: PageRead + ?Sized>(&self, pages: &R, oid: Oid) -> Result<PageNo> {
        if oid.site != SITE {
            return Err(never(oid));
        }
        match self.map.get(pages, oid.page)? {
            Some((page, class)) if class != FRESH => Ok(page),
            _ => Err(never(oid)),
        }
    }

    /// Has the handle of `oid` prefetched; see [`Pinned::prefetch`].
    #[inline]
    pub fn prefetch(pages: &Pinned<'_>, page: PageNo, oid: Oid) {
        pages.prefetch(page, handle_page::HEAD);
        pages.prefetch(page, handle_page::place(oid.slot));
    }

    /// Where the record of `oid` lies, by its handle page. Cost: one page read.
    ///
    /// # Errors
    /// As [`HandleTable::lookup`].
    #[inline]
    pub fn lookup_in<R: PageRead + ?Sized>(pages: &R, page: PageNo, oid: Oid) -> Result<Location> {
        pages.with_page(page, PageKind::Handle, |bytes| {
            Self::lookup_at(HandlePage::new(bytes, page, oid.page)?, oid)
        })
    }

    /// As [`HandleTable::lookup_in`], in a page that several look into.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub fn lookup_at(page: HandlePage<'_>, oid: Oid) -> Result<Location> {
        place_of(oid, page.get(oid.slot)?)
    }

    /// Gives a new object an OID; see [`HandleTable::next`], whose cost and errors are this.
    ///
    /// # Errors
    /// As [`HandleTable::next`]; [`Error::Invalid`] for a location no handle can hold.
    #[cfg(test)]
    pub fn insert<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        cursor: &mut HandleCursor,
        unique: u32,
        loc: Location,
        near: Option<Oid>,
    ) -> Result<Oid> {
        check_location(loc)?;
        let spot = self.next(pages, cursor, near)?;
        self.fill(pages, spot, unique, loc)
    }

    /// Where the next new object's handle goes, for [`HandleTable::fill`] to put it there before
    /// any other handle is added or removed: in the handle page of `near` if that has a
    /// free slot, else in the cursor's page, else in one with an eighth of its slots free, else
    /// in a new one. Cost: a look at one page; the map's height, a search or an allocation once
    /// per page filled.
    ///
    /// # Errors
    /// [`Error::Full`] and the errors of page access, after which the transaction must be
    /// aborted.
    pub fn next<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        cursor: &mut HandleCursor,
        near: Option<Oid>,
    ) -> Result<HandleSlot> {
        let near = near.filter(|oid| oid.site == SITE).map(|oid| oid.page);
        for hint in [near, cursor.page].into_iter().flatten() {
            if let Some(spot) = self.next_in(pages, cursor, hint)? {
                return Ok(spot);
            }
        }
        let from = cursor.page.map_or(0, |page| page.saturating_add(1));
        let found = match self.map.find(pages, 1, from)? {
            Some(index) => index,
            None => self.extend(pages)?,
        };
        let spot = self.next_in(pages, cursor, found)?;
        cursor.page = Some(found);
        spot.ok_or_else(|| Error::corrupt("handle table", format!("page {found} has no room")))
    }

    /// The next free slot of handle page `index`; `None` if there is no such page or it is
    /// full.
    fn next_in<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        cursor: &mut HandleCursor,
        index: u32,
    ) -> Result<Option<HandleSlot>> {
        let known = cursor.known.filter(|(known, _)| *known == index).map(|(_, page)| page);
        let page = match known {
            Some(page) => page,
            None => {
                let Some((page, class)) = self.map.get(pages, index)? else { return Ok(None) };
                if class == FRESH {
                    handle_page::init(pages.format(page, PageKind::Handle, 0)?, index);
                    return Ok(Some(HandleSlot { index, page, slot: 0, fresh: true }));
                }
                page
            }
        };
        let slot = pages.with_page(page, PageKind::Handle, |bytes| {
            HandlePage::new(bytes, page, index)?.next_slot()
        })?;
        cursor.known = Some((index, page));
        Ok(slot.map(|slot| HandleSlot { index, page, slot, fresh: false }))
    }

    /// Makes the handle that [`HandleTable::next`] chose a live one. `unique` must never have
    /// been used before. Cost: one changed page; the map's height if its class changes.
    ///
    /// # Errors
    /// As [`HandleTable::next`].
    pub fn fill<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        spot: HandleSlot,
        unique: u32,
        loc: Location,
    ) -> Result<Oid> {
        let HandleSlot { index, page, slot, fresh } = spot;
        let bytes = pages.page_mut(page, PageKind::Handle)?;
        let mut handles = HandlePageMut::new(bytes, page, index)?;
        let class = if fresh { FRESH } else { handles.view().class() };
        if handles.insert(unique, loc)? != Some(slot) {
            return Err(Error::page(page, format!("handle {slot} is no longer the next")));
        }
        let new = handles.view().class();
        if new != class {
            self.map.set_class(pages, index, new)?;
        }
        Ok(spot.oid(unique))
    }

    /// Gives `oid`, which was of another store, to a new object here; false if its slot is taken.
    /// Cost: as [`HandleTable::fill`]; extents of handle pages up to its own.
    ///
    /// # Errors
    /// As [`HandleTable::next`]; [`Error::Invalid`] for a location no handle can hold.
    pub fn claim<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        oid: Oid,
        loc: Location,
    ) -> Result<bool> {
        check_location(loc)?;
        while self.map.len() <= oid.page {
            self.extend(pages)?;
        }
        let none = || Error::corrupt("handle table", format!("index {} has no page", oid.page));
        let (page, class) = self.map.get(pages, oid.page)?.ok_or_else(none)?;
        if class == FRESH {
            handle_page::init(pages.format(page, PageKind::Handle, 0)?, oid.page);
        }
        let mut handles =
            HandlePageMut::new(pages.page_mut(page, PageKind::Handle)?, page, oid.page)?;
        if !handles.claim(oid.slot, oid.unique, loc)? {
            return Ok(false);
        }
        let new = handles.view().class();
        if new != class {
            self.map.set_class(pages, oid.page, new)?;
        }
        Ok(true)
    }

    /// Allocates the next extent; returns the index of its first page.
    fn extend<W: PageWrite + ?Sized>(&mut self, pages: &mut W) -> Result<u32> {
        let len = self.map.len();
        let last = len.checked_sub(1).map(|last| self.map.get(pages, last)).transpose()?;
        let near = last.flatten().map(|(page, _)| PageNo(page.0 + 1));
        let run = pages.alloc_run(u64::from(extent(len, EXTENT)), near)?;
        self.map.append_run(pages, 0, run, FRESH)
    }

    /// Points a live OID to its record's new place. Cost: as [`HandleTable::lookup`] and one
    /// changed page.
    ///
    /// # Errors
    /// As [`HandleTable::lookup`]; [`Error::Invalid`] for a location no handle can hold.
    pub fn update<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        oid: Oid,
        loc: Location,
    ) -> Result<()> {
        let page = self.page_of(pages, oid)?;
        Self::update_in(pages, page, oid, loc)
    }

    /// As [`HandleTable::update`], if the handle lies in `page`; see [`HandleTable::live`].
    /// Handle pages stay where they are. Cost: one changed page.
    ///
    /// # Errors
    /// As [`HandleTable::update`].
    pub fn update_in<W: PageWrite + ?Sized>(
        pages: &mut W,
        page: PageNo,
        oid: Oid,
        loc: Location,
    ) -> Result<()> {
        check_location(loc)?;
        let bytes = pages.page_mut(page, PageKind::Handle)?;
        let mut handles = HandlePageMut::new(bytes, page, oid.page)?;
        place_of(oid, handles.view().get(oid.slot)?)?;
        handles.update(oid.slot, oid.unique, loc);
        Ok(())
    }

    /// Frees the slot of a live OID, which dangles from then on; returns where the record
    /// lay. Cost: as [`HandleTable::update`].
    ///
    /// # Errors
    /// As [`HandleTable::lookup`].
    pub fn remove<W: PageWrite + ?Sized>(&mut self, pages: &mut W, oid: Oid) -> Result<Location> {
        let (page, loc) = self.live(pages, oid)?;
        let bytes = pages.page_mut(page, PageKind::Handle)?;
        let mut handles = HandlePageMut::new(bytes, page, oid.page)?;
        let old = handles.view().class();
        handles.remove(oid.slot, oid.unique)?;
        let new = handles.view().class();
        if new != old {
            self.map.set_class(pages, oid.page, new)?;
        }
        Ok(loc)
    }

    /// The live handles of handle page `index`, in slot order; none for a page not yet used
    /// and for indexes beyond the end. With `map.len()` a scan that can stop and go on.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn page_handles<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        index: u32,
    ) -> Result<Vec<(Oid, Location)>> {
        let Some((page, class)) = self.map.get(pages, index)? else { return Ok(Vec::new()) };
        if class == FRESH {
            return Ok(Vec::new());
        }
        let bytes = pages.page(page, PageKind::Handle)?;
        let handles = HandlePage::new(&bytes, page, index)?;
        handles.iter().map(|handle| handle.map(|h| entry(index, h))).collect()
    }

    /// Every live OID and its record's place, in OID order. Ends after an error.
    pub fn iter<'a, R: PageRead + ?Sized>(
        &self,
        pages: &'a R,
    ) -> impl Iterator<Item = Result<(Oid, Location)>> + use<'a, R> {
        let (table, mut failed) = (*self, false);
        (0..table.map.len())
            .map_while(move |index| {
                let found = if failed { return None } else { table.page_handles(pages, index) };
                failed = found.is_err();
                Some(found)
            })
            .flat_map(|page| match page {
                Ok(handles) => handles.into_iter().map(Ok).collect::<Vec<_>>(),
                Err(e) => vec![Err(e)],
            })
    }

    /// Checks the whole table: map, handle pages, classes. `visit` gets every page of it,
    /// `handle` every live OID with its record's place.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first thing wrong; the visitors' own.
    #[cfg(test)]
    pub fn check<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        visit: &mut VisitPage<'_>,
        handle: &mut dyn FnMut(Oid, Location) -> Result<()>,
    ) -> Result<()> {
        let visit = RefCell::new(visit);
        self.map.check(pages, &mut |page| (visit.borrow_mut())(page), &mut |index, page, class| {
            (visit.borrow_mut())(page)?;
            if class == FRESH {
                return Ok(());
            }
            let bytes = pages.page(page, PageKind::Handle)?;
            let handles = HandlePage::new(&bytes, page, index)?;
            handles.check()?;
            if handles.class() != class {
                let detail = format!("handle page of class {} mapped as {class}", handles.class());
                return Err(Error::page(page, detail));
            }
            for found in handles.iter() {
                let (oid, loc) = entry(index, found?);
                handle(oid, loc)?;
            }
            Ok(())
        })
    }
}

/// Where the record of `oid` lies, by what its handle is.
#[inline]
fn place_of(oid: Oid, found: Handle) -> Result<Location> {
    match found {
        Handle::Live { unique, loc } if unique == oid.unique => Ok(loc),
        Handle::Live { .. } | Handle::Free => Err(Error::Dangling(oid)),
        Handle::Never => Err(never(oid)),
    }
}

#[cold]
fn never(oid: Oid) -> Error {
    Error::NotFound(format!("{oid} names no object of this store"))
}

fn entry(index: u32, (slot, unique, loc): (u16, u32, Location)) -> (Oid, Location) {
    (Oid { site: SITE, page: index, slot, unique }, loc)
}

fn check_location(loc: Location) -> Result<()> {
    if loc.is_valid() {
        return Ok(());
    }
    Err(Error::Invalid(format!("{loc:?} cannot be a record's place")))
}
