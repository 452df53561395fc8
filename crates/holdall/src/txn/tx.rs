//! A transaction over pages: private copies, then one commit.
//!
//! Owns: the writer's lock from begin to drop; the copies. Which way new bytes take is
//! [`NewData`]'s. Knows nothing of which pages are free.
//!
//! Everything that can fail comes before the first page is installed; afterwards the only
//! failure is poison (rule 9).

use super::Pager;
use super::direct::{Given, NewData, Way};
use super::housekeeping::Housekeeping;
use super::tx_pages::{TxPage, TxPages};
use super::writer_lock::{Waiting, WriterLock};
use crate::cache::index::Pin;
use crate::cache::pool::read_in_place;
use holdall_core::log_format::push_page;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, Lsn, PageNo, PageRef, PageRun, Result};
use std::sync::Arc;

/// A page transaction; dropping it undoes everything.
#[derive(Debug)]
pub struct PageTx {
    pager: Arc<Pager>,
    /// The state it begins from.
    base: Lsn,
    pages: TxPages,
    /// Of these, pages that were there before.
    existing: usize,
    new: NewData,
    /// Behind the last page it allocated.
    end: u64,
    writer: WriterLock,
}

impl PageTx {
    /// Takes the writer's lock, waiting for the transaction that has it, and for a checkpoint if
    /// one must come first.
    ///
    /// # Errors
    /// [`Error::Poisoned`]; [`Error::Busy`] and [`Error::Cancelled`] as the wait says; those of
    /// [`Housekeeping::before_write`].
    pub fn begin(pager: &Arc<Pager>, waiting: &Waiting) -> Result<Self> {
        let writer = pager.writer.lock(waiting)?;
        pager.check_poison()?;
        if let Some(store) = pager.housekeeping() {
            store.before_write(waiting)?;
        }
        Ok(Self {
            pager: pager.clone(),
            base: pager.horizon.newest(),
            pages: TxPages::default(),
            existing: 0,
            new: NewData::new(&pager.limits),
            end: 0,
            writer,
        })
    }

    /// Says that this thread runs the transaction now.
    #[inline]
    pub fn run_here(&self) {
        self.writer.run_here();
    }

    /// The pager below.
    pub fn pager(&self) -> &Arc<Pager> {
        &self.pager
    }

    /// The page as this transaction sees it.
    ///
    /// # Errors
    /// As [`holdall_core::PageRead::page`].
    pub fn page(&self, no: PageNo, kind: PageKind) -> Result<PageRef> {
        match self.pages.get(&no.0) {
            Some(p) => page::of_kind(&p.now, no, kind).map(|()| p.now.clone()),
            None => outside(&self.pager, &self.new, self.base, no, kind),
        }
    }

    /// Gives `f` the page as this transaction sees it; see [`holdall_core::PageRead::with_page`].
    ///
    /// # Errors
    /// As [`PageTx::page`], and those of `f`.
    pub fn with_page<T>(
        &self,
        no: PageNo,
        kind: PageKind,
        f: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        match self.pages.get(&no.0) {
            Some(p) => page::of_kind(&p.now, no, kind).and_then(|()| f(&p.now)),
            None => {
                let pin = Pin::new();
                let seen = self.pager.pool.peek(no, self.base, &pin);
                if let Some(bytes) = seen.filter(|_| !self.new.is_early(no.0)) {
                    return page::of_kind(bytes, no, kind).and_then(|()| f(bytes));
                }
                drop(pin);
                f(&outside(&self.pager, &self.new, self.base, no, kind)?)
            }
        }
    }

    /// The transaction's copy of the page.
    ///
    /// # Errors
    /// As [`PageTx::page`]; [`Error::TooLarge`] beyond the dirty limit.
    pub fn page_mut(&mut self, no: PageNo, kind: PageKind) -> Result<&mut [u8]> {
        Ok(Arc::make_mut(&mut self.copy(no, kind)?.now))
    }

    /// The transaction's copy of the page, about to change.
    fn copy(&mut self, no: PageNo, kind: PageKind) -> Result<&mut TxPage> {
        if self.pages.get(&no.0).is_none() {
            self.bring_in(no, kind)?;
        }
        let gone = || Error::page(no, "is not among the transaction's pages");
        let found = self.pages.get_mut(&no.0).ok_or_else(gone)?;
        page::of_kind(&found.now, no, kind)?;
        found.sent &= mutation::is(Mutation::R13DirectAgain);
        Ok(found)
    }

    /// Makes a page from outside the transaction's own.
    fn bring_in(&mut self, no: PageNo, kind: PageKind) -> Result<()> {
        let old = outside(&self.pager, &self.new, self.base, no, kind)?;
        let page = if self.new.take_early(no.0) {
            TxPage::new(old)
        } else {
            let limit = self.pager.limits.dirty_pages;
            if self.existing >= limit {
                let text = format!("it changes more than {limit} existing pages");
                return Err(Error::TooLarge(text));
            }
            self.existing += 1;
            let now = PageRef::from(&*old);
            TxPage { now, base: Some(old), sent: false }
        };
        self.pages.insert(no.0, page);
        Ok(())
    }

    /// Makes a page that this transaction allocated an empty one, without reading it.
    ///
    /// # Errors
    /// [`Error::Io`] if earlier new pages had to be written out to make room;
    /// [`Error::Corrupt`] if the page is in use, or was until the last checkpoint.
    pub fn format(&mut self, no: PageNo, kind: PageKind, owner: u64) -> Result<&mut [u8]> {
        let new = self.pages.len() - self.existing.min(self.pages.len());
        if new >= (self.pager.limits.dirty_pages / 2).max(1) {
            self.new.write_early(&self.pager, self.base, &mut self.pages)?;
        }
        self.new.take_early(no.0);
        // A former life of this page may still be in the pool; nobody can need it.
        if !self.pager.pool.forget(no) {
            return Err(Error::page(no, "is to be made anew before its last change is in place"));
        }
        let mut now = std::iter::repeat_n(0, self.pager.page_size()).collect::<PageRef>();
        page::head(Arc::make_mut(&mut now), kind, no, owner);
        if kind == PageKind::Heap {
            self.new.note_heap_page(no.0, &self.pager, self.base, &mut self.pages);
        }
        let page = self.pages.insert(no.0, TxPage::new(now));
        Ok(Arc::make_mut(&mut page.now))
    }

    /// Drops what the transaction knows of a page it allocated itself and frees again.
    pub fn forget_new(&mut self, no: PageNo) {
        if self.pages.get(&no.0).is_some_and(|p| p.base.is_none()) {
            self.pages.remove(&no.0);
        }
        self.new.take_early(no.0);
    }

    /// Whether nothing was changed.
    pub fn is_unchanged(&self) -> bool {
        self.pages.is_empty() && self.new.is_none()
    }

    /// Pages that it has copied or made, and holds.
    pub fn changed_pages(&self) -> usize {
        self.pages.len()
    }

    /// Adds segment data at `start`, which goes with the commit.
    pub fn add_segment(&mut self, start: PageNo, given: Given<'_>) {
        self.new.add_segment(start, given);
    }

    /// Segment data does not pass through the log from here on: bytes logged for pages that are
    /// given back could land on their next owner's data.
    pub fn leave_the_log(&mut self) {
        self.new.leave_the_log();
    }

    /// Takes over segment data that is to be written at `start` before the commit.
    pub fn hold(&mut self, start: PageNo, bytes: Vec<u8>) {
        self.new.hold(&self.pager, start, bytes);
    }

    /// Writes what was taken over, so that it can be read.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`]; the commit then fails too.
    pub fn write_held(&self) -> Result<()> {
        self.new.write_held(&self.pager)
    }

    /// Waits until nothing that was handed over is being written any more, so that its pages can
    /// be given back. For transactions that end without a commit.
    pub fn abandon_writes(&self) {
        self.new.abandon(&self.pager);
    }

    /// Chooses the way of the new bytes: all pages are there, and `segments` are all runs of new
    /// segment data with the checksums of their units.
    pub fn choose_way<'a>(&mut self, segments: impl Iterator<Item = (PageRun, &'a [u32])>) {
        self.new.choose(&self.pages, self.pager.page_size(), segments);
    }

    /// Notes that the transaction allocated no page from `end` on; before the commit.
    pub fn ends_at(&mut self, end: PageNo) {
        self.end = end.0;
    }

    /// Installs all changes under one LSN and hands them to the log; durable only once the
    /// log says so. Cost: no sync, or one of the volume if more new data is in place than the
    /// group may list; one pass and one checksum per changed page.
    ///
    /// # Errors
    /// Before anything is installed: [`Error::TooLarge`], [`Error::Io`],
    /// [`Error::Poisoned`].
    pub fn commit(&mut self) -> Result<Lsn> {
        // A page asked for and left as it was is no change: neither logged nor dirty.
        self.pages.retain(|_, p| !p.is_as_before());
        if self.is_unchanged() {
            return Ok(self.base);
        }
        self.new.settle(&self.pager, self.base, &mut self.pages, self.end)?;
        let copied = self.new.copied_bytes();
        // What replay may have to copy is room in the log too.
        while !self.pager.copied.lock().has_room(copied, self.pager.log.usage().capacity) {
            self.store()?.make_log_room()?;
        }
        let (mut records, order) = self.records();
        let appending = loop {
            match self.pager.log.begin(records.len()) {
                Ok(Some(a)) => break a,
                Ok(None) => self.store()?.make_log_room()?,
                Err(e @ Error::TooLarge(_)) => {
                    if !self.store()?.enlarge_log()? {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        };
        let lsn = appending.lsn();
        let needed = self.pager.horizon.needed(|| appending.visible_points());
        for (no, checksum_at) in order {
            let Some(p) = self.pages.get_mut(&no) else { continue };
            let in_place = checksum_at.is_none();
            if let Some(at) = checksum_at {
                let sum = page::seal(Arc::make_mut(&mut p.now), lsn);
                holdall_core::bytes::put_u32(&mut records, at, sum);
            }
            let version = (lsn, p.now.clone());
            let base = p.base.as_ref().filter(|_| !mutation::is(Mutation::R19Base));
            self.pager.pool.install(PageNo(no), version, base, in_place, &needed);
        }
        self.pager.horizon.set_newest(lsn);
        appending.finish(records, self.new.listed_bytes());
        self.pager.copied.lock().push(lsn, copied);
        self.pages.clear();
        self.pager.bound_old_versions();
        Ok(lsn)
    }

    /// Who makes room in the log.
    fn store(&self) -> Result<Arc<dyn Housekeeping>> {
        self.pager.housekeeping().ok_or_else(|| Error::Full("the log has no room left".into()))
    }

    /// The commit's records, and for each page its number and where its checksum goes in
    /// the records (None: it is in place).
    fn records(&mut self) -> (Vec<u8>, Vec<(u64, Option<usize>)>) {
        let new_in_place = self.new.way() != Way::Logged;
        let mut records = self.new.take_records();
        let mut order: Vec<u64> = self.pages.keys().copied().collect();
        order.sort_unstable();
        let place = |no: u64| {
            let p = self.pages.get(&no)?;
            if p.base.is_none() && new_in_place {
                return Some((no, None));
            }
            // Record header 8, page number 8, then the checksum.
            let at = records.len() + 16;
            push_page(&mut records, PageNo(no), p.base.as_deref(), &p.now);
            Some((no, Some(at)))
        };
        let order = order.into_iter().filter_map(place).collect();
        (records, order)
    }
}

/// A page that a transaction at `base` holds no copy of.
fn outside(pager: &Pager, new: &NewData, base: Lsn, no: PageNo, kind: PageKind) -> Result<PageRef> {
    if new.is_early(no.0) {
        let found = read_in_place(&*pager.volume.disk, pager.page_size(), no)?;
        page::of_kind(&found, no, kind)?;
        return Ok(found);
    }
    pager.get(no, kind, base)
}

impl Drop for PageTx {
    fn drop(&mut self) {
        self.abandon_writes();
    }
}
