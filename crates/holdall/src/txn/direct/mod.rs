//! New bytes of a transaction: the way they take to the disk before its commit counts.
//!
//! Owns: [`NewData`], which alone decides between the three ways ([`Way`]) and knows which of the
//! new bytes were handed over, written, listed; and what staging keeps for the log
//! ([`most_logged`], [`most_composed`]). Everyone else says what is new and asks.
//!
//! Invariant (rule 13): a byte that a commit names is in the log, or in place and listed by the
//! commit, or in place and synced before it. The way only ever becomes a longer one.

mod copied;
mod list;
mod logged;
mod sending;
mod write_behind;

pub(super) use copied::Copied;
pub(super) use list::{holds, write_again};
pub use logged::{Given, most_composed, most_logged};
pub use write_behind::WriteBehind;

use super::tx_pages::{TxPage, TxPages};
use super::{Limits, Pager};
use holdall_core::log_format::InPlaceKind;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page;
use holdall_core::{Lsn, PageNo, PageRun, Result, RunSet};
use list::List;
use logged::Logged;
use sending::Sending;
use write_behind::{BATCH_BYTES, Batch, NewBytes};

/// The newest heap pages are likely still being filled.
const STILL_FILLED: usize = 2;

/// How new bytes reach the disk before the commit that names them counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// They pass through the log, whose sync is the only one.
    Logged,
    /// They are in place, and the commit lists them with checksums: the volume is synced while the
    /// log is, and recovery looks whether they are there.
    Listed,
    /// They are in place, and the volume is synced before the commit enters the log.
    SyncedFirst,
}

/// The new bytes of one transaction.
#[derive(Debug)]
pub(super) struct NewData {
    /// New pages, or segment bytes, beyond this do not pass through the log.
    most: usize,
    way: Way,
    /// Segment data for the log.
    logged: Logged,
    /// What lies in place, for the commit's list.
    list: List,
    /// New heap pages not handed over yet, in the order they were made.
    heap: Vec<u64>,
    /// New pages written in place already and no longer in memory.
    early: RunSet,
    sending: Sending,
}

impl NewData {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            most: most_logged(limits),
            way: Way::Logged,
            logged: Logged::default(),
            list: List::default(),
            heap: Vec::new(),
            early: RunSet::default(),
            sending: Sending::default(),
        }
    }

    /// The way that the new bytes take, as far as is known before the commit.
    pub(super) fn way(&self) -> Way {
        self.way
    }

    /// Whether there is none.
    pub(super) fn is_none(&self) -> bool {
        self.way == Way::Logged
            && self.early.pages() == 0
            && self.logged.is_empty()
            && self.sending.holds_nothing()
    }

    /// Some of it is in place and does not pass through the log: nor does any other segment data.
    pub(super) fn leave_the_log(&mut self) {
        if self.way == Way::Logged {
            self.way = Way::Listed;
        }
        self.logged.clear();
    }

    /// Some of it cannot be listed.
    pub(super) fn sync_first(&mut self) {
        self.leave_the_log();
        if !mutation::is(Mutation::R13Entered) {
            self.way = Way::SyncedFirst;
        }
    }

    /// Adds segment data at `start`.
    pub(super) fn add_segment(&mut self, start: PageNo, given: Given<'_>) {
        let fits = self.way == Way::Logged && self.logged.add(start, given, self.most);
        if !fits {
            self.leave_the_log();
        }
    }

    /// Chooses the way, once all new pages and segments are there; lists `segments` if it does
    /// not lead through the log.
    pub(super) fn choose<'a>(
        &mut self,
        pages: &TxPages,
        page_size: usize,
        segments: impl Iterator<Item = (PageRun, &'a [u32])>,
    ) {
        let new = pages.values().filter(|p| p.is_new()).count();
        if new * page_size > self.most {
            self.leave_the_log();
        }
        if self.way == Way::Logged || mutation::is(Mutation::R13DirectList) {
            return;
        }
        for (run, sums) in segments {
            let bytes = run.len * page_size as u64;
            self.list.push(run, bytes, InPlaceKind::Units, sums.iter().copied());
        }
    }

    /// Runs of new pages written in place and no longer in memory.
    pub(super) fn early(&self) -> impl Iterator<Item = PageRun> + '_ {
        self.early.iter()
    }

    /// Whether page `no` was written in place and is no longer in memory.
    pub(super) fn is_early(&self, no: u64) -> bool {
        self.early.pages() > 0 && self.early.contains(PageNo(no))
    }

    /// As [`NewData::is_early`]; it is in memory again, or given back, from here on.
    pub(super) fn take_early(&mut self, no: u64) -> bool {
        let early = self.is_early(no);
        if early {
            self.early.remove(PageRun::new(PageNo(no), 1));
        }
        early
    }

    /// Page `no` is a new heap page. Hands over those that are full by now, once there are enough
    /// of them and they are too much for the log.
    pub(super) fn note_heap_page(&mut self, no: u64, at: &Pager, base: Lsn, pages: &mut TxPages) {
        self.heap.push(no);
        let size = at.page_size();
        let enough = (self.batch_bytes() / size).max(1);
        if self.heap.len() < enough + STILL_FILLED {
            return;
        }
        let new = pages.values().filter(|p| p.is_new()).count();
        if new * size <= self.most {
            return;
        }
        self.leave_the_log();
        let full = self.heap.len() - STILL_FILLED;
        let full: Vec<u64> = self.heap.drain(..full).collect();
        let mut batch = Batch::default();
        gather(pages, &full, base, &mut batch);
        self.sending.hand_over(at, batch);
    }

    /// As many bytes are worth handing over: not more than might pass through the log.
    fn batch_bytes(&self) -> usize {
        self.most.min(BATCH_BYTES)
    }

    /// Takes over segment data that is to be written at `start` before the commit.
    pub(super) fn hold(&mut self, at: &Pager, start: PageNo, bytes: Vec<u8>) {
        let enough = self.batch_bytes();
        self.sending.hold(at, start, bytes, enough);
    }

    /// Writes what was taken over, so that it can be read.
    pub(super) fn write_held(&self, at: &Pager) -> Result<()> {
        self.sending.write_held(at)
    }

    /// Waits until nothing that was handed over is being written any more.
    pub(super) fn abandon(&self, at: &Pager) {
        self.sending.abandon(at);
    }

    /// Writes these pages, new ones in their places and others as images, and lets go of them. They
    /// may be changed or given back before the commit, so cannot be listed. Cost: the writes.
    ///
    /// # Errors
    /// [`Error::Full`](holdall_core::Error::Full), [`Error::Io`](holdall_core::Error::Io); the
    /// commit then fails too.
    pub(super) fn spill(
        &mut self,
        at: &Pager,
        base: Lsn,
        pages: &mut TxPages,
        numbers: &[u64],
    ) -> Result<()> {
        let mut batch = self.sending.take_held();
        gather(pages, numbers, base, &mut batch);
        self.leave_the_log();
        if !mutation::is(Mutation::R13DirectEarly) {
            self.way = Way::SyncedFirst;
        }
        for no in numbers {
            if pages.remove(no).is_some_and(|page| page.is_new()) {
                self.early.insert(PageRun::new(PageNo(*no), 1));
            }
        }
        self.sending.finish(at, batch)
    }

    /// Writes all new pages in place and images where they lie, and what was held.
    fn write_pages(&mut self, at: &Pager, base: Lsn, pages: &mut TxPages) -> Result<()> {
        let mut numbers: Vec<u64> =
            pages.iter().filter(|(_, p)| p.base.is_none()).map(|(no, _)| *no).collect();
        numbers.sort_unstable();
        let mut batch = self.sending.take_held();
        if mutation::is(Mutation::R13DirectHeld) {
            batch = Batch::default();
        }
        gather(pages, &numbers, base, &mut batch);
        self.heap.clear();
        self.sending.finish(at, batch)?;
        self.leave_the_log();
        numbers.retain(|no| pages.get(no).is_some_and(TxPage::is_new));
        for run in numbers.chunk_by(|a, b| a + 1 == *b) {
            let parts: Vec<&[u8]> =
                run.iter().filter_map(|no| pages.get(no)).map(|p| &*p.now).collect();
            self.list.push_pages(PageNo(run[0]), &parts);
        }
        Ok(())
    }

    /// # Errors
    /// [`Error::Io`](holdall_core::Error::Io) once a write of this transaction has failed: what
    /// is read from where it should lie would look like damage.
    pub(super) fn check(&self) -> Result<()> {
        self.sending.check()
    }

    /// Brings the new bytes to where the commit needs them; `end` is behind its last page. Cost:
    /// the writes; one sync if more is in place than the group may list, or may still change.
    pub(super) fn settle(
        &mut self,
        at: &Pager,
        base: Lsn,
        pages: &mut TxPages,
        end: u64,
    ) -> Result<()> {
        if self.way == Way::Logged {
            self.write_held(at)?;
        } else {
            self.write_pages(at, base, pages)?;
        }
        self.sending.check()?;
        if self.way == Way::Listed && !self.list.fits(at.log.listed_bytes()) {
            self.way = Way::SyncedFirst;
        }
        if self.way == Way::SyncedFirst {
            if !mutation::is(Mutation::R33Sync) {
                at.volume.sync()?;
            }
            self.list.clear();
        }
        at.volume.sync_growth(end.saturating_mul(at.page_size() as u64))
    }

    /// Bytes that replay would have to copy.
    pub(super) fn copied_bytes(&self) -> u64 {
        self.logged.copied()
    }

    /// Bytes in place that the commit lists.
    pub(super) fn listed_bytes(&self) -> u64 {
        self.list.bytes()
    }

    /// The records for the log: the list, or the data.
    pub(super) fn take_records(&mut self) -> Vec<u8> {
        match self.way {
            Way::Logged => self.logged.take_records(),
            Way::Listed | Way::SyncedFirst => self.list.take_records(),
        }
    }
}

/// Seals those of the `pages` that are new, or to be an image, and not written as they are.
fn gather(pages: &mut TxPages, numbers: &[u64], base: Lsn, batch: &mut Batch) {
    for no in numbers {
        let Some(p) = pages.get_mut(no) else { continue };
        if p.base.is_none() && !p.sent {
            page::seal(p.now.make_mut(), base);
            p.sent = true;
            let place = p.own_image().unwrap_or(PageNo(*no));
            batch.push(place, NewBytes::Page(p.now.clone()));
        }
    }
}
