//! When checkpoints run, when deferred commits become durable, when snapshots are given up.
//!
//! Without threads of the store's own the calls of the store do all of it.

use super::Inner;
use crate::engine::give_back::GiveBack;
use crate::space::SpaceStats;
use crate::txn::{Cause, Housekeeping, Waiting};
use holdall_core::mutation::{self, Mutation};
use holdall_core::superblock::Superblock;
use holdall_core::{Busy, Error, PageRun, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

/// Between two looks whether a wait for a checkpoint is over.
const LOOK: Duration = Duration::from_millis(10);
/// Bytes of deferred commits not yet written that are worth a write of their own.
const MUCH_BYTES: u64 = 1 << 20;

impl Inner {
    /// Asks the flushing thread to make deferred commits durable.
    pub(crate) fn ask_for_flush(&self) {
        let (requests, wake) = &*self.requests;
        requests.lock().flush = true;
        wake.notify_all();
    }

    fn ask_for_checkpoint(&self) {
        let (requests, wake) = &*self.requests;
        requests.lock().checkpoint = true;
        wake.notify_all();
    }

    /// Notes when the newest commit was made, for the age of snapshots.
    pub(crate) fn note_time(&self) {
        let horizon = &self.pager.horizon;
        horizon.note_time(horizon.newest(), self.storage.now());
    }

    /// After a deferred commit: sees to it that it becomes durable in time.
    pub(crate) fn after_deferred(&self) -> Result<()> {
        self.note_deferred();
        if !self.deferred.is_flushed_by_thread() && self.pager.log.usage().unwritten > MUCH_BYTES {
            self.flush_deferred()?;
        }
        self.after_commit()
    }

    /// Notes that a deferred commit was made.
    pub(crate) fn note_deferred(&self) {
        self.note_time();
        if self.deferred.is_flushed_by_thread() {
            self.ask_for_flush();
        } else {
            self.deferred.waits(self.storage.now());
        }
    }

    /// Makes deferred commits durable whose time is over, if no thread does. Called at the
    /// begin of every call of the store. Cost: mostly the look at one number.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    #[inline]
    pub(crate) fn flush_overdue(&self) -> Result<()> {
        if self.deferred.any_waits()
            && self.deferred.is_overdue(self.storage.now(), self.options.defer)
        {
            self.flush_deferred()?;
        }
        Ok(())
    }

    fn flush_deferred(&self) -> Result<()> {
        // Before the flush: a commit that comes meanwhile waits anew.
        self.deferred.flushing();
        self.flush_unawaited()
    }

    /// Makes deferred commits durable. If they cannot be found the next transaction fails.
    pub(crate) fn flush_unawaited(&self) -> Result<()> {
        self.pager.flush()?;
        drop(self.check_names());
        Ok(())
    }

    fn fill_superblock(&self, space: &SpaceStats, sb: &mut Superblock) {
        // A checkpoint that overlaps the close must not name a length that the close cuts.
        if !self.closed.load(SeqCst) {
            sb.volume_pages = space.volume_pages;
            // Fewer if some were given up since: a cut leaves none that it names.
            sb.spaces = space.spaces.min(self.alloc.least_spaces());
        }
    }

    /// Makes all commits durable and writes them in place.
    pub(crate) fn checkpoint(&self, cause: Cause) -> Result<()> {
        self.checkpoint_with(cause, &mut || {})
    }

    pub(crate) fn checkpoint_with(&self, cause: Cause, between: &mut dyn FnMut()) -> Result<()> {
        if !self.pager.log.attached() {
            return Ok(());
        }
        self.check_process()?;
        // Before the flush: a commit that is not durable yet may add a space, and a crash lose it.
        let spaces = self.alloc.stats().spaces;
        self.pager.flush()?;
        let mut run = self.pager.begin_checkpoint(cause)?;
        // Before the sync of the pages: a length named later might not be durable yet.
        let space = SpaceStats { spaces, ..self.alloc.stats() };
        loop {
            between();
            if run.step(&|sb| self.fill_superblock(&space, sb))? {
                break;
            }
        }
        let lsn = run.lsn();
        drop(run);
        self.alloc.checkpointed(lsn)
    }

    /// After a commit: asks for a checkpoint, or runs it, if one is due.
    pub(crate) fn after_commit(&self) -> Result<()> {
        if let Err(e) = self.bound_pinned() {
            // As below: the commit has happened.
            self.note_background_error("giving up readers", &e);
        }
        if self.options.background && self.alloc.is_to_be_looked_at() {
            self.ask_to_give_back();
        }
        if self.has_images() {
            if self.options.background {
                self.ask_to_give_back();
            } else if let Err(e) = self.bring_home_a_few() {
                self.note_background_error("bringing pages home", &e);
            }
        }
        let wanted = self.wants_checkpoint().filter(|_| self.options.tuning.auto_checkpoint);
        let Some(cause) = wanted else { return Ok(()) };
        if cause == Cause::Log {
            self.log_short.store(true, SeqCst);
        }
        if self.options.background {
            self.ask_for_checkpoint();
        } else if let Err(e) = self.checkpoint(cause) {
            // The commit has happened: the next one meets the cause, as with a thread.
            self.note_background_error("checkpoint", &e);
            if mutation::is(Mutation::R09AfterCommit) {
                return Err(e);
            }
        }
        Ok(())
    }

    /// Keeps what snapshots hold of freed space within [`Options::pinned_bytes`], by giving up
    /// the oldest ones that hold any.
    fn bound_pinned(&self) -> Result<()> {
        let size = self.layout.page_size() as u64;
        let Some(most) = self.options.pinned_bytes.map(|bytes| bytes / size) else { return Ok(()) };
        // More waits than is pinned: mostly this is all.
        if self.alloc.stats().waiting_pages <= most {
            return Ok(());
        }
        while self.alloc.pinned_pages() > most {
            if !self.alloc.give_up_reader()? {
                break;
            }
        }
        Ok(())
    }

    /// Why a checkpoint is due, if one is: for the log's or the pool's sake, or for space.
    pub(crate) fn wants_checkpoint(&self) -> Option<Cause> {
        let space = self.alloc.stats();
        // Space waiting to be freed is kept a small share of the store.
        let most = (space.volume_pages as f64 * self.options.waiting_share()) as u64;
        let waiting = space.waiting_pages > most
            && space.waiting_pages * self.layout.page_size() as u64 > (4 << 20);
        let waiting = || waiting && self.alloc.has_new_waiting();
        self.pager.wants_checkpoint().or_else(|| waiting().then_some(Cause::Waiting))
    }
}

impl Inner {
    /// Whether a transaction must wait for a checkpoint.
    fn is_dirty(&self) -> bool {
        self.pager.dirty_pages() >= self.pager.limits().dirty_pages
    }

    /// Waits for the checkpoints of the store's thread until a transaction may change pages, or
    /// the wait is over.
    fn await_room(&self, waiting: &Waiting) -> Result<()> {
        while self.is_dirty() {
            self.pager.check_poison()?;
            self.ask_for_checkpoint();
            waiting.check()?;
            if waiting.is_over() {
                let mut busy = Busy::default();
                busy.checkpoint = true;
                return Err(Error::Busy(Box::new(busy)));
            }
            let slice = waiting.slice(LOOK);
            // The thread may not have begun yet.
            std::thread::sleep(slice.min(LOOK / 10));
            self.pager.await_checkpoint_for(slice);
        }
        Ok(())
    }
}

impl Housekeeping for Inner {
    /// Gives the log a file, lets it grow, waits for a checkpoint if too much is dirty.
    fn before_write(&self, waiting: &Waiting) -> Result<()> {
        self.check_writable()?;
        if !self.pager.log.attached() {
            self.start_log()?;
        }
        self.check_names_again()?;
        if self.log_short.swap(false, SeqCst) {
            let volume = self.alloc.volume_pages() * self.layout.page_size() as u64;
            let most = self.options.log_bytes_for_load(volume).min(self.log_bytes_for_disk());
            match self.grow_log(most) {
                // The smaller log goes on serving.
                Err(Error::Full(_)) => {}
                result => result?,
            }
        }
        if self.options.background && !waiting.is_endless() {
            return self.await_room(waiting);
        }
        let full = || self.is_dirty();
        // Mostly the checkpoint under way is enough, and half the wait of one behind it.
        if full() {
            self.pager.await_checkpoint();
        }
        if full() {
            self.checkpoint(Cause::DirtyPages)?;
        }
        Ok(())
    }

    fn make_log_room(&self) -> Result<()> {
        self.log_short.store(true, SeqCst);
        // As before a write; if it is not enough the commit asks again.
        if self.pager.await_checkpoint() { Ok(()) } else { self.checkpoint(Cause::Log) }
    }

    fn enlarge_log(&self) -> Result<bool> {
        let before = self.pager.log.usage().capacity;
        match self.grow_log(u64::MAX) {
            // A commit that deletes may need it too.
            Err(Error::Full(_)) => {
                self.give_back(GiveBack::FOR_LOG)?;
                self.grow_log(u64::MAX)?;
            }
            result => result?,
        }
        Ok(self.pager.log.usage().capacity > before)
    }

    fn free_waiting(&self) -> Result<()> {
        self.checkpoint(Cause::Space)
    }

    fn reserve_scratch(&self, pages: u64) -> Result<Option<PageRun>> {
        self.alloc.reserve_scratch(pages)
    }

    fn give_up_scratch(&self) -> bool {
        let (before, horizon) = (self.pager.scratch_bytes(), &self.pager.horizon);
        // Who reads the newest durable state keeps none of it.
        let old = horizon.oldest_snapshot().is_some_and(|oldest| oldest < horizon.visible());
        if before > 0 && old {
            horizon.give_up_oldest();
        }
        self.pager.free_scratch();
        // What only a commit under way keeps is no reason to ask again.
        before > 0 && (old || self.pager.scratch_bytes() < before)
    }

    fn give_scratch_back(&self, run: PageRun) {
        // A contradiction only keeps pages reserved until the close.
        let _ = self.alloc.unreserve(run);
    }

    fn compact(self: Arc<Self>, pages: u64) -> Result<bool> {
        if self.pager.holds_writer() {
            return Ok(false);
        }
        // Where images lie is free once the pages are home.
        if self.bring_all_home()? {
            return Ok(true);
        }
        self.compactor.get().map_or(Ok(false), |compact| compact(&self, pages))
    }
}
