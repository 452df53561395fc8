//! How the layers above the pager reach pages: two traits, and a memory double for tests.
//!
//! Owns: [`PageRead`], [`PageWrite`], [`MemPages`]. The engine implements them over a
//! snapshot and a write transaction; layers such as names, heap and handles are generic
//! over them and are so tested alone.

use crate::page::{self, PageKind};
use crate::{Error, PageNo, PageRef, PageRun, Result};
use std::collections::{BTreeMap, BTreeSet};

/// Reads pages of one consistent state.
pub trait PageRead {
    /// Bytes of a page.
    fn page_size(&self) -> usize;

    /// The page `page`, which must be of kind `kind`. Checksum, address and kind have been
    /// checked; the body has not. Cost: at most one page read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the page is damaged or of another kind, [`Error::Io`].
    fn page(&self, page: PageNo, kind: PageKind) -> Result<PageRef>;

    /// Gives `f` the page as [`PageRead::page`] would: for a short look, without counting
    /// another reference if that can be avoided. `f` must not wait for anything: while it
    /// runs, memory of other pages may not be freed.
    ///
    /// # Errors
    /// As [`PageRead::page`], and those of `f`.
    fn with_page<T>(
        &self,
        page: PageNo,
        kind: PageKind,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        f(&self.page(page, kind)?)
    }
}

/// Changes pages within one transaction; reads see the transaction's own changes.
pub trait PageWrite: PageRead {
    /// The transaction's own copy of `page`, to be changed freely (not its header).
    ///
    /// # Errors
    /// As [`PageRead::page`]; [`Error::TooLarge`] beyond the dirty limit.
    fn page_mut(&mut self, page: PageNo, kind: PageKind) -> Result<&mut [u8]>;

    /// Allocates up to `want` neighbouring pages (at least one), close to `near` if that
    /// is free. They hold nothing: each must be formatted before it is read.
    ///
    /// # Errors
    /// [`Error::Full`].
    fn alloc_run(&mut self, want: u64, near: Option<PageNo>) -> Result<PageRun>;

    /// Makes an allocated page an empty one of this kind without reading it.
    ///
    /// # Errors
    /// [`Error::Io`] if an early page had to be written out to make room.
    fn format(&mut self, page: PageNo, kind: PageKind, owner: u64) -> Result<&mut [u8]>;

    /// Frees a page. It is not used again before the next checkpoint.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it was free already.
    fn free_page(&mut self, page: PageNo) -> Result<()>;

    /// Allocates and formats one page.
    ///
    /// # Errors
    /// As [`PageWrite::alloc_run`] and [`PageWrite::format`].
    fn new_page(&mut self, kind: PageKind, owner: u64, near: Option<PageNo>) -> Result<PageNo> {
        let page = self.alloc_run(1, near)?.start;
        self.format(page, kind, owner)?;
        Ok(page)
    }
}

/// Pages in memory, for tests of one layer alone. Counts reads and writes; finds pages used
/// after they were freed.
#[derive(Debug, Clone)]
pub struct MemPages {
    page_size: usize,
    next: u64,
    pages: BTreeMap<PageNo, PageRef>,
    raw: BTreeSet<PageNo>,
    /// Calls of [`PageRead::page`].
    pub reads: std::cell::Cell<u64>,
    /// Calls of [`PageWrite::page_mut`] and [`PageWrite::format`].
    pub writes: u64,
    /// Pages that may still be allocated; lower it to test a full store.
    pub room: u64,
}

impl MemPages {
    /// No pages yet, of `page_size` bytes each.
    pub fn new(page_size: usize) -> Self {
        Self {
            page_size,
            next: 1,
            pages: BTreeMap::new(),
            raw: BTreeSet::new(),
            reads: std::cell::Cell::new(0),
            writes: 0,
            room: u64::MAX,
        }
    }

    /// Pages allocated and not freed, formatted or not.
    pub fn live(&self) -> BTreeSet<PageNo> {
        self.pages.keys().chain(&self.raw).copied().collect()
    }

    fn find(&self, page: PageNo, kind: PageKind) -> Result<&PageRef> {
        let found = self.pages.get(&page).ok_or_else(|| Error::page(page, "not allocated"))?;
        match page::kind(found) {
            Some(k) if k == kind => Ok(found),
            k => Err(Error::page(page, format!("is {k:?}, not {kind:?}"))),
        }
    }
}

impl PageRead for MemPages {
    fn page_size(&self) -> usize {
        self.page_size
    }

    fn page(&self, page: PageNo, kind: PageKind) -> Result<PageRef> {
        self.reads.set(self.reads.get() + 1);
        self.find(page, kind).cloned()
    }
}

impl PageWrite for MemPages {
    fn page_mut(&mut self, page: PageNo, kind: PageKind) -> Result<&mut [u8]> {
        self.find(page, kind)?;
        self.writes += 1;
        let found = self.pages.get_mut(&page).ok_or_else(|| Error::page(page, "vanished"))?;
        Ok(found.make_mut())
    }

    fn alloc_run(&mut self, want: u64, _near: Option<PageNo>) -> Result<PageRun> {
        let len = want.max(1).min(self.room);
        if len == 0 {
            return Err(Error::Full("no room left in the test pages".into()));
        }
        self.room -= len;
        let run = PageRun::new(PageNo(self.next), len);
        self.next += len;
        self.raw.extend((run.start.0..run.end()).map(PageNo));
        Ok(run)
    }

    fn format(&mut self, page: PageNo, kind: PageKind, owner: u64) -> Result<&mut [u8]> {
        if !self.raw.remove(&page) && !self.pages.contains_key(&page) {
            return Err(Error::page(page, "formatted but not allocated"));
        }
        self.writes += 1;
        let mut bytes = vec![0; self.page_size];
        page::format(&mut bytes, kind, page, owner);
        self.pages.insert(page, bytes.into());
        self.page_mut(page, kind)
    }

    fn free_page(&mut self, page: PageNo) -> Result<()> {
        if !self.raw.remove(&page) && self.pages.remove(&page).is_none() {
            return Err(Error::page(page, "freed twice"));
        }
        Ok(())
    }
}
