//! A transaction over pages: private copies, then one commit.
//!
//! Owns: the writer's lock from begin to drop; the copies; what is written in place before the commit
//! and what goes through the log. Knows nothing of which pages are free.
//!
//! Everything that can fail comes before the first page is installed; afterwards the only
//! failure is poison (rule 9).

mod home;

use super::Pager;
use super::copied::COPIED_MOST;
use super::housekeeping::Housekeeping;
use super::in_place::InPlace;
use super::tx_pages::{TxPage, TxPages};
use super::write_behind::Batch;
use super::writer::WriterLock;
use crate::cache::index::Pin;
use crate::cache::pool::{PageHash, read_home};
use holdall_core::checksum::crc;
use holdall_core::log_format::{HomeKind, Part, push_composed, push_page, push_segment};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, Lsn, PageNo, PageRef, PageRun, Result};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A page transaction; dropping it undoes everything.
#[derive(Debug)]
pub struct PageTx {
    pager: Arc<Pager>,
    pages: TxPages,
    /// New pages written in place already and no longer in memory.
    early: HashSet<u64, PageHash>,
    existing: usize,
    base: Lsn,
    /// New heap pages not handed over yet, in the order they were made.
    heap: Vec<u64>,
    /// New segment data that waits for more, before it is handed over.
    data: Mutex<Batch>,
    /// Something was handed over and may be under way.
    under_way: AtomicBool,
    /// Some of it could not be written.
    broken: AtomicBool,
    /// Data lies in place, unsynced, that the commit relies on.
    in_place: InPlace,
    /// Records of segment data, encoded.
    segments: Vec<u8>,
    segment_bytes: usize,
    /// Bytes that they stand for and do not hold.
    copied_bytes: u64,
    /// Behind the last page it allocated.
    end: u64,
    writer: WriterLock,
}

/// Up to so many bytes in place their sync is a large part of the commit's time, and begins
/// before the commit is in the log.
const EARLY_SYNC_BYTES: u64 = 1 << 20;

impl PageTx {
    /// Takes the writer's lock, waiting for the transaction that has it.
    ///
    /// # Errors
    /// [`Error::Poisoned`]; [`Error::Invalid`] where this thread has it; those of
    /// [`Housekeeping::before_write`].
    pub fn begin(pager: &Arc<Pager>) -> Result<Self> {
        Self::begin_locked(pager, pager.writer.lock()?)
    }

    /// As [`PageTx::begin`], waiting no longer than `limit`; `None` where that was not enough.
    ///
    /// # Errors
    /// As [`PageTx::begin`].
    pub fn begin_within(pager: &Arc<Pager>, limit: Duration) -> Result<Option<Self>> {
        let writer = pager.writer.lock_within(limit)?;
        writer.map(|writer| Self::begin_locked(pager, writer)).transpose()
    }

    fn begin_locked(pager: &Arc<Pager>, writer: WriterLock) -> Result<Self> {
        pager.check_poison()?;
        if let Some(store) = pager.housekeeping() {
            store.before_write()?;
        }
        Ok(Self {
            pager: pager.clone(),
            pages: TxPages::default(),
            early: HashSet::default(),
            existing: 0,
            base: pager.horizon.newest(),
            heap: Vec::new(),
            data: Mutex::default(),
            under_way: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            in_place: InPlace::default(),
            segments: Vec::new(),
            segment_bytes: 0,
            copied_bytes: 0,
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
            None => outside(&self.pager, &self.early, self.base, no, kind),
        }
    }

    /// Gives `f` the page as this transaction sees it; see [`holdall_core::PageRead::look`].
    ///
    /// # Errors
    /// As [`PageTx::page`], and those of `f`.
    pub fn look<T>(
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
                if let Some(bytes) = seen.filter(|_| !self.early.contains(&no.0)) {
                    return page::of_kind(bytes, no, kind).and_then(|()| f(bytes));
                }
                drop(pin);
                f(&outside(&self.pager, &self.early, self.base, no, kind)?)
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
        found.sent &= mutation::is(Mutation::R13HomeAgain);
        Ok(found)
    }

    /// Makes a page from outside the transaction's own.
    fn bring_in(&mut self, no: PageNo, kind: PageKind) -> Result<()> {
        let old = outside(&self.pager, &self.early, self.base, no, kind)?;
        let page = if self.early.remove(&no.0) {
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
    /// [`Error::Io`] where earlier new pages had to be written out to make room;
    /// [`Error::Corrupt`] where the page is in use, or was until the last checkpoint.
    pub fn format(&mut self, no: PageNo, kind: PageKind, owner: u64) -> Result<&mut [u8]> {
        let new = self.pages.len() - self.existing.min(self.pages.len());
        if new >= (self.pager.limits.dirty_pages / 2).max(1) {
            self.write_new_pages(false)?;
        }
        self.early.remove(&no.0);
        // A former life of this page may still be in the pool; nobody can need it.
        if !self.pager.pool.forget(no) {
            return Err(Error::page(no, "is to be made anew before its last change is in place"));
        }
        let mut now = std::iter::repeat_n(0, self.pager.page_size()).collect::<PageRef>();
        page::head(Arc::make_mut(&mut now), kind, no, owner);
        if kind == PageKind::Heap {
            self.heap.push(no.0);
            self.send_full_pages();
        }
        let page = self.pages.insert(no.0, TxPage::new(now));
        Ok(Arc::make_mut(&mut page.now))
    }

    /// Drops what the transaction knows of a page it allocated itself and frees again.
    pub fn forget_new(&mut self, no: PageNo) {
        if self.pages.get(&no.0).is_some_and(|p| p.base.is_none()) {
            self.pages.remove(&no.0);
        }
        self.early.remove(&no.0);
    }

    /// Whether nothing was changed.
    pub fn is_unchanged(&self) -> bool {
        self.pages.is_empty()
            && self.early.is_empty()
            && self.segments.is_empty()
            && self.data.lock().is_empty()
            && !self.in_place.relied_on()
    }

    /// Pages that it has copied or made, and holds.
    pub fn changed_pages(&self) -> usize {
        self.pages.len()
    }

    /// Notes that data lies in place, written but not synced, that the commit relies on.
    /// [`PageTx::note_in_place`] says which, before the commit.
    pub fn rely_on_unsynced(&mut self) {
        self.in_place.rely();
        self.segments.clear();
    }

    /// Whether [`PageTx::rely_on_unsynced`] was called.
    pub fn relies_on_unsynced(&self) -> bool {
        self.in_place.relied_on()
    }

    /// Notes a run of segment pages that lies in place and is relied on, with the checksums of its
    /// units.
    pub fn note_in_place(&mut self, run: PageRun, checksums: &[u32]) {
        let bytes = run.len * self.pager.page_size() as u64;
        self.in_place.push(run, bytes, HomeKind::Units, checksums.iter().copied());
    }

    /// Notes that the transaction allocated no page from `end` on; before the commit.
    pub fn ends_at(&mut self, end: PageNo) {
        self.end = end.0;
    }

    /// Notes segment pages written in place, with their bytes: up to the limit they pass through
    /// the log too, so that the commit needs one sync only.
    pub fn log_segment(&mut self, start: PageNo, bytes: &[u8]) {
        self.segment_bytes += bytes.len();
        if self.in_place.relied_on() || self.segment_bytes > self.pager.limits.log_data_bytes {
            self.rely_on_unsynced();
        } else {
            push_segment(&mut self.segments, start, bytes);
        }
    }

    /// As [`PageTx::log_segment`], for data put together of `parts`: only the new bytes pass
    /// through the log. What is copied lies in pages that stay as they are until a checkpoint
    /// makes them reusable (rule 16), so that replay can read them again.
    pub fn log_composed(&mut self, start: PageNo, bytes: &[u8], parts: &[Part<'_>]) {
        let new = |p: &Part<'_>| matches!(p, Part::Bytes(_)).then_some(p.len() as usize);
        let copied: u64 = parts.iter().map(Part::unlogged).sum();
        self.segment_bytes += parts.iter().filter_map(new).sum::<usize>();
        let much = self.segment_bytes > self.pager.limits.log_data_bytes
            || self.copied_bytes + copied > COPIED_MOST;
        if self.in_place.relied_on() || much {
            self.rely_on_unsynced();
        } else {
            self.copied_bytes += copied;
            push_composed(&mut self.segments, start, crc(bytes), parts);
        }
    }

    /// Installs all changes under one LSN and hands them to the log; durable only once the
    /// log says so. `awaited`: somebody will wait for that, so a sync of what was written in
    /// place may begin before. Cost: no sync, or one of the volume where more new data was written in place than
    /// the group may name; one pass and one checksum per changed page.
    ///
    /// # Errors
    /// Before anything is installed: [`Error::TooLarge`], [`Error::Io`],
    /// [`Error::Poisoned`].
    pub fn commit(&mut self, awaited: bool) -> Result<Lsn> {
        // A page asked for and left as it was is no change: neither logged nor dirty.
        self.pages.retain(|_, p| !p.is_as_before());
        if self.is_unchanged() {
            return Ok(self.base);
        }
        let flushed = self.settle_new_data()?;
        // All of it is written: its sync need not wait for the records.
        let early = (1..=EARLY_SYNC_BYTES).contains(&self.in_place.bytes()) && awaited;
        let sync = early.then(|| self.pager.volume.ask_for_sync());
        let copied = if self.segments.is_empty() { 0 } else { self.copied_bytes };
        // What replay may have to copy is room in the log too.
        while !self.pager.copied.lock().has_room(copied, self.pager.log.usage().capacity) {
            self.store()?.make_log_room()?;
        }
        let (mut records, order) = self.records(flushed);
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
            let home = checksum_at.is_none();
            if let Some(at) = checksum_at {
                let sum = page::seal(Arc::make_mut(&mut p.now), lsn);
                holdall_core::bytes::put_u32(&mut records, at, sum);
            }
            let version = (lsn, p.now.clone());
            let base = p.base.as_ref().filter(|_| !mutation::is(Mutation::R19Base));
            self.pager.pool.install(PageNo(no), version, base, home, &needed);
        }
        self.pager.horizon.set_newest(lsn);
        appending.finish(records, (self.in_place.bytes(), sync));
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
    fn records(&mut self, new_are_home: bool) -> (Vec<u8>, Vec<(u64, Option<usize>)>) {
        let mut records = std::mem::take(&mut self.segments);
        if !self.in_place.records().is_empty() {
            // They come first; mostly there are no others then.
            records.splice(0..0, self.in_place.records().iter().copied());
        }
        let mut order: Vec<u64> = self.pages.keys().copied().collect();
        order.sort_unstable();
        let place = |no: u64| {
            let p = self.pages.get(&no)?;
            if p.base.is_none() && new_are_home {
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

/// A page that a transaction at `base` holds no copy of; `early` are those it wrote home.
fn outside(
    pager: &Pager,
    early: &HashSet<u64, PageHash>,
    base: Lsn,
    no: PageNo,
    kind: PageKind,
) -> Result<PageRef> {
    if early.contains(&no.0) {
        let found = read_home(&*pager.volume.disk, pager.page_size(), no)?;
        page::of_kind(&found, no, kind)?;
        return Ok(found);
    }
    pager.get(no, kind, base)
}
