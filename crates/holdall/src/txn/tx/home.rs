//! New data of a transaction on its way to its place.
//!
//! Owns: which new pages and segment data have been handed over to be written
//! ([`WriteBehind`](crate::txn::WriteBehind)), and their list for the commit. Full heap pages
//! and gathered data go while the transaction is still at work; the rest goes at the commit.

use super::PageTx;
use crate::txn::write_behind::{BATCH_BYTES, Batch, Piece};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page;
use holdall_core::{Error, PageNo, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// The newest heap pages are likely still being filled.
const STILL_FILLED: usize = 2;

impl PageTx {
    /// Takes over segment data that is to be written at `start` before the commit.
    pub fn hold(&mut self, start: PageNo, bytes: Vec<u8>) {
        let enough = self.batch_bytes();
        let data = self.data.get_mut();
        data.push(start, Piece::Data(bytes));
        if data.bytes() >= enough {
            let batch = std::mem::take(data);
            self.hand_over(batch);
        }
    }

    /// Writes what was taken over, so that it can be read.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`]; the commit then fails too.
    pub fn write_held(&self) -> Result<()> {
        // What failed before is not in its place: a read from there would look like damage.
        self.check_written()?;
        let batch = std::mem::take(&mut *self.data.lock());
        self.finish_writes(batch)
    }

    /// # Errors
    /// [`Error::Io`] once a write of this transaction has failed.
    fn check_written(&self) -> Result<()> {
        if !self.broken.load(Relaxed) {
            return Ok(());
        }
        let why = std::io::Error::other("an earlier write of this transaction failed");
        Err(Error::io("writing new data", why))
    }

    /// Waits until nothing that was handed over is being written any more, so that its pages
    /// can be given back. For transactions that end without a commit.
    pub fn abandon_writes(&self) {
        if self.under_way.swap(false, Relaxed) {
            self.pager.behind.abandon();
        }
    }

    /// So many bytes are worth handing over: not more than might pass through the log.
    fn batch_bytes(&self) -> usize {
        self.pager.limits.log_data_bytes.min(BATCH_BYTES)
    }

    /// Bytes of new pages.
    fn new_page_bytes(&self) -> usize {
        let new = self.pages.values().filter(|p| p.base.is_none()).count();
        new * self.pager.page_size()
    }

    /// Where the new pages are too much for the log, segment data need not pass through it
    /// either: the volume is synced in any case. To be asked once all pages are there.
    pub fn send_home_what_is_much(&mut self) {
        if !self.in_place.relied_on() && self.new_page_bytes() > self.pager.limits.log_data_bytes {
            self.rely_on_unsynced();
        }
    }

    /// Hands over the heap pages that are full by now, once there are enough of them and their
    /// transaction is too large for the log.
    pub(super) fn send_full_pages(&mut self) {
        let size = self.pager.page_size();
        let enough = (self.batch_bytes() / size).max(1);
        let new = self.pages.len().saturating_sub(self.existing);
        if self.heap.len() < enough + STILL_FILLED || new * size <= self.pager.limits.log_data_bytes
        {
            return;
        }
        self.rely_on_unsynced();
        let full = self.heap.len() - STILL_FILLED;
        let full: Vec<u64> = self.heap.drain(..full).collect();
        let mut batch = Batch::default();
        self.gather(&full, &mut batch);
        self.hand_over(batch);
    }

    /// Seals those of the new pages that are not home as they are.
    fn gather(&mut self, pages: &[u64], batch: &mut Batch) {
        for no in pages {
            let Some(p) = self.pages.get_mut(no) else { continue };
            if p.base.is_none() && !p.sent {
                page::seal(Arc::make_mut(&mut p.now), self.base);
                p.sent = true;
                batch.push(PageNo(*no), Piece::Page(p.now.clone()));
            }
        }
    }

    fn hand_over(&self, batch: Batch) {
        self.under_way.store(true, Relaxed);
        self.pager.behind.send(&self.pager.volume, batch);
    }

    /// Writes `last` and waits for all that was handed over.
    fn finish_writes(&self, last: Batch) -> Result<()> {
        if last.is_empty() && !self.under_way.load(Relaxed) {
            return Ok(());
        }
        let result = self.pager.behind.finish(&self.pager.volume, last);
        self.under_way.store(false, Relaxed);
        if result.is_err() {
            self.broken.store(true, Relaxed);
        }
        result
    }

    /// Writes new pages home. With `keep` they stay in memory for the pool.
    pub(super) fn write_new_pages(&mut self, keep: bool) -> Result<()> {
        let mut new: Vec<u64> =
            self.pages.iter().filter(|(_, p)| p.base.is_none()).map(|(no, _)| *no).collect();
        new.sort_unstable();
        let mut batch = std::mem::take(self.data.get_mut());
        if mutation::is(Mutation::R13HomeHeld) {
            batch = Batch::default();
        }
        self.gather(&new, &mut batch);
        self.heap.clear();
        self.finish_writes(batch)?;
        for run in new.chunk_by(|a, b| a + 1 == *b) {
            let pages = run.iter().filter_map(|no| self.pages.get(no));
            let parts: Vec<&[u8]> = pages.map(|p| &*p.now).collect();
            self.in_place.push_pages(PageNo(run[0]), &parts);
        }
        if !keep {
            // They may be changed or given back before the commit.
            if !mutation::is(Mutation::R13HomeEarly) {
                self.in_place.give_up();
            }
            for no in new {
                self.pages.remove(&no);
                self.early.insert(no);
            }
        }
        Ok(())
    }

    /// Writes home what does not go through the log. It is synced with the commit's group; what
    /// is too much to be read again after a crash is synced here. Returns whether the new
    /// pages was written in place.
    pub(super) fn settle_new_data(&mut self) -> Result<bool> {
        let most = self.pager.limits.log_data_bytes;
        let direct = self.in_place.relied_on() || self.new_page_bytes() > most;
        if direct {
            self.write_new_pages(true)?;
        } else {
            self.write_held()?;
        }
        self.check_written()?;
        if !self.in_place.fits(self.pager.log.home_bytes()) {
            self.pager.volume.sync()?;
            self.in_place.synced();
        }
        self.pager.volume.sync_growth(self.end.saturating_mul(self.pager.page_size() as u64))?;
        Ok(direct)
    }
}

impl Drop for PageTx {
    fn drop(&mut self) {
        self.abandon_writes();
    }
}
