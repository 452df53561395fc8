//! Checkpoints: writing durable page versions in place, then moving the replay position.
//!
//! Owns: [`CheckpointRun`], a checkpoint cut into steps so that a simulation can put other
//! work and crashes between any two of them.
//!
//! Threads: one checkpoint at a time; it takes no writer's lock and no log space (rule 14).
//! Order (rule 15): superblock naming the highest LSN about to be in place, the pages, sync,
//! superblock with the new replay position, and only then reuse of log and space.

use super::{Cause, Pager};
use crate::metrics::Event;
use holdall_core::mutation::{self, Mutation};
use holdall_core::superblock::Superblock;
use holdall_core::{Lsn, PageNo, PageRef, PageRun, Result};
use holdall_io::WriteOut;
use parking_lot::MutexGuard;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Announce,
    Write,
    Sync,
    Publish,
    Done,
}

/// A checkpoint in progress. Dropped unfinished it has done no harm.
#[derive(Debug)]
pub struct CheckpointRun<'a> {
    pager: &'a Pager,
    stage: Stage,
    lsn: Lsn,
    pages: Vec<(PageNo, Lsn, PageRef)>,
    next: usize,
    /// Up to here the device was set to work on them.
    sent: usize,
    /// The run that it works on.
    leaving: Option<PageRun>,
    cause: Cause,
    begun: Instant,
    _one: MutexGuard<'a, ()>,
}

/// Neighbouring pages are written in one step up to this many bytes.
const BATCH_BYTES: usize = 1 << 20;
/// The page cache holds at most twice this many dirty bytes of a checkpoint: a commit that syncs
/// the volume meanwhile waits for all of them.
const OUT_BYTES: usize = 256 << 10;

impl Drop for CheckpointRun<'_> {
    fn drop(&mut self) {
        self.pager.horizon.set_checkpoint(None);
    }
}

impl Pager {
    /// Begins a checkpoint at the newest durable commit.
    ///
    /// # Errors
    /// [`holdall_core::Error::Poisoned`].
    pub fn begin_checkpoint(&self, cause: Cause) -> Result<CheckpointRun<'_>> {
        let one = self.checkpointing.lock();
        self.check_poison()?;
        self.checkpoints.lock().count(cause);
        let mut lsn = self.horizon.visible();
        loop {
            self.horizon.set_checkpoint(Some(lsn));
            let again = self.horizon.visible();
            if again == lsn {
                break;
            }
            lsn = again;
        }
        self.copied.lock().begun(lsn);
        Ok(CheckpointRun {
            pager: self,
            stage: Stage::Announce,
            lsn,
            pages: Vec::new(),
            next: 0,
            sent: 0,
            leaving: None,
            cause,
            begun: Instant::now(),
            _one: one,
        })
    }

    /// Keeps checkpoints from beginning, for work on the file that must not run beside one.
    pub fn hold_checkpoints(&self) -> MutexGuard<'_, ()> {
        self.checkpointing.lock()
    }

    /// Waits for the end of the checkpoint under way; returns whether there was one. It may
    /// have failed.
    pub fn await_checkpoint(&self) -> bool {
        if self.checkpointing.try_lock().is_some() {
            return false;
        }
        drop(self.checkpointing.lock());
        true
    }

    /// As [`Pager::await_checkpoint`], for `slice` at most.
    pub fn await_checkpoint_for(&self, slice: Duration) {
        drop(self.checkpointing.try_lock_for(slice));
    }
}

impl CheckpointRun<'_> {
    /// The commits it brings in place: all at or below.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Does the next step; `fill` sets the superblock's fields that other layers own.
    /// Returns whether the checkpoint is complete.
    ///
    /// # Errors
    /// [`holdall_core::Error::Io`], [`holdall_core::Error::Poisoned`]; the store goes on
    /// from the previous checkpoint unless poisoned.
    pub fn step(&mut self, fill: &dyn Fn(&mut Superblock)) -> Result<bool> {
        match self.stage {
            Stage::Announce => self.announce()?,
            Stage::Write => self.write_batch()?,
            Stage::Sync => self.sync()?,
            Stage::Publish => self.publish(fill)?,
            Stage::Done => {}
        }
        Ok(self.stage == Stage::Done)
    }

    fn announce(&mut self) -> Result<()> {
        let early = mutation::is(Mutation::R14Durable);
        let upto = if early { self.pager.horizon.newest() } else { self.lsn };
        self.pages = self.pager.pool.dirty_at(upto);
        let lsn = self.lsn;
        let due = self.pages.is_empty() == mutation::is(Mutation::R04Announce);
        if due && self.pager.volume.superblock().in_place < lsn {
            let mut written = self.pager.volume.write_superblock(|sb| sb.in_place = lsn)?;
            if self.pager.log.ends_in_place() {
                // Both copies alike: with the older one alone recovery would look for what that
                // group lists, and find in its place the pages about to be written.
                if !mutation::is(Mutation::R13DirectBoth) {
                    written = self.pager.volume.write_superblock(|_| {})?;
                }
            }
            self.pager.log.note_checkpoint(written.sequence);
        }
        if mutation::is(Mutation::R15Release) {
            self.pager.log.release(lsn, self.pager.volume.superblock().sequence);
        }
        self.stage = Stage::Write;
        Ok(())
    }

    fn write_batch(&mut self) -> Result<()> {
        let size = self.pager.page_size();
        let from = self.next;
        let Some((first, ..)) = self.pages.get(from) else {
            self.stage = Stage::Sync;
            return Ok(());
        };
        let first = *first;
        // Page by page: the page cache keeps what one call wrote in one folio, and a later write
        // of any page in it costs the system a pass over all of it.
        while let Some((no, _, bytes)) = self.pages.get(self.next) {
            let done = self.next - from;
            if no.0 != first.0 + done as u64 || (done + 1) * size > BATCH_BYTES {
                break;
            }
            self.pager.volume.write_pages(*no, bytes)?;
            self.next += 1;
        }
        self.pager.checkpoints.lock().pages += (self.next - from) as u64;
        self.bound_dirty()
    }

    /// Sets the device to work on what was written last, if that is enough, and waits for what
    /// was before it.
    fn bound_dirty(&mut self) -> Result<()> {
        let sent = &self.pages[self.sent..self.next];
        let (Some((first, ..)), Some((last, ..))) = (sent.first(), sent.last()) else {
            return Ok(());
        };
        if sent.len() * self.pager.page_size() < OUT_BYTES {
            return Ok(());
        }
        let run = PageRun::new(*first, last.0 + 1 - first.0);
        let volume = &self.pager.volume;
        volume.write_out(run, WriteOut::Start)?;
        self.sent = self.next;
        let before = self.leaving.replace(run);
        before.map_or(Ok(()), |run| volume.write_out(run, WriteOut::Wait))
    }

    /// Only now may the pages leave the pool: after a failed sync what is in place is not known
    /// (rule 7), and readers go on from memory.
    fn sync(&mut self) -> Result<()> {
        if !mutation::is(Mutation::R15Sync) {
            self.pager.volume.sync()?;
        }
        let needed = self.pager.needed();
        for (no, lsn, _) in &self.pages {
            self.pager.pool.flushed_in_place(*no, *lsn, &needed);
        }
        self.stage = Stage::Publish;
        Ok(())
    }

    fn publish(&mut self, fill: &dyn Fn(&mut Superblock)) -> Result<()> {
        let lsn = self.lsn;
        let written = self.pager.volume.write_superblock(|sb| {
            sb.replay = lsn;
            sb.in_place = sb.in_place.max(lsn);
            fill(sb);
        })?;
        self.pager.log.release(lsn, written.sequence);
        self.pager.copied.lock().released(lsn);
        self.pager.checkpoint_times.record_since(self.begun);
        let (cause, pages, took) =
            (self.cause.name(), self.pages.len() as u64, self.begun.elapsed());
        Event::Checkpoint { cause, pages, took }.tell();
        self.stage = Stage::Done;
        Ok(())
    }
}
