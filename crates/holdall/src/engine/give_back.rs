//! Giving free space back to the file system, at a pace.
//!
//! Owns: the rounds, which note in [`GaveBack`] what could not be given back and why. A call that
//! fails costs its own run only, which the next round tries again.

use super::{GaveBack, Inner};
use crate::space::{LEAST_HOLE, Spare};
use crate::txn::Cause;
use holdall_core::{Error, Lsn, PageRun, Result};
use std::sync::atomic::Ordering::SeqCst;

/// What one call may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GiveBack {
    /// Which free pages.
    pub(crate) which: Spare,
    /// Bytes that it may punch out.
    pub(crate) most_bytes: u64,
    /// Bytes of the shortest run that it punches out, if that is less than a hole's usual least.
    least: u64,
    /// Whether it looks for free space if nothing was read since the opening, and punches out
    /// again what is only taken for holes.
    deep: bool,
}

/// A round under way.
#[derive(Debug, Default)]
struct Round {
    told: GaveBack,
    punched: bool,
    /// Runs whose call failed; reserved until the end, so that each is tried once.
    failed: Vec<PageRun>,
}

impl Round {
    fn fail(&mut self, run: PageRun, page_size: u64, e: &Error) {
        self.told.failed_runs += 1;
        self.told.failed_bytes += run.len * page_size;
        self.told.failure = Some(e.to_string());
    }
}

impl GiveBack {
    /// In the background: this much a second disturbs no commit.
    pub(crate) const PACED: Self =
        Self { which: Spare::Unused, most_bytes: 256 << 20, least: LEAST_HOLE, deep: false };
    /// At once, what is known to be free.
    pub(crate) const KNOWN: Self =
        Self { which: Spare::Now, most_bytes: u64::MAX, least: LEAST_HOLE, deep: false };
    /// At once, what a log needs on a full disk.
    pub(crate) const FOR_LOG: Self = Self { most_bytes: 1 << 20, ..Self::ALL };
    /// At once, everything, single pages too.
    pub(crate) const ALL: Self =
        Self { which: Spare::All, most_bytes: u64::MAX, least: 0, deep: true };
    /// At a close that leaves holes: all that is known and worth a call.
    const CLOSE: Self = Self { least: LEAST_HOLE, deep: false, ..Self::ALL };
}

/// Lengths in bytes of the runs that are punched out, the longest first.
const CLASSES: [u64; 4] = [1 << 20, 256 << 10, 64 << 10, LEAST_HOLE];

impl Inner {
    /// Tells the checkpointing thread that free space may be given back. Cost: mostly a look.
    pub(crate) fn ask_to_give_back(&self) {
        if self.spare_told.swap(true, SeqCst) {
            return;
        }
        let (requests, wake) = &*self.requests;
        requests.lock().spare = true;
        wake.notify_all();
    }

    /// What the checkpointing thread does if nobody has asked for a checkpoint for a while.
    /// Returns whether it is to look again.
    pub(crate) fn give_back_paced(&self) -> bool {
        self.spare_told.store(false, SeqCst);
        self.pager.free_scratch();
        if self.alloc.has_spare_waiting()
            && let Err(e) = self.checkpoint(Cause::Maintenance)
        {
            self.note_background_error("checkpoint", &e);
        }
        self.try_to_give_back(GiveBack::PACED);
        self.has_spare()
    }

    /// What the checkpointing thread does each second while the log is large: makes it smaller
    /// if nobody has committed since the last time, when `seen` was the newest commit. Returns
    /// whether it is to look again.
    pub(crate) fn give_log_back(&self, seen: &mut Lsn) -> bool {
        let newest = self.pager.horizon.newest();
        if std::mem::replace(seen, newest) == newest
            && self.has_large_log()
            && let Err(e) = self.shrink_log()
        {
            self.note_background_error("making the log smaller", &e);
        }
        self.has_large_log()
    }

    /// Whether a round of giving back may do something, now or once what waits is free.
    pub(crate) fn has_spare(&self) -> bool {
        if self.alloc.windows().1 > 0 {
            return true;
        }
        match self.cannot_punch.load(SeqCst) {
            // Of the end of the file nothing more is free than the last round cut off.
            true => self.alloc.has_much_waiting(),
            false => !self.gives_in_vain.load(SeqCst) && self.alloc.has_spare(),
        }
    }

    /// Gives back what can be. For a caller whose work is done without it: what went wrong is
    /// reported by `stat`, and a poisoned store by the next commit.
    pub(crate) fn try_to_give_back(&self, how: GiveBack) {
        if let Err(e) = self.give_back(how) {
            self.gave_back.lock().failure = Some(e.to_string());
        }
    }

    /// Punches free space out of the file until no more keeps its blocks than
    /// [`Options::space_factor`](super::Options::space_factor) allows, and cuts the file's free
    /// end. Returns what could not be done. Cost: a system call for each run, a sync, at most four
    /// superblocks.
    ///
    /// # Errors
    /// [`Error::Poisoned`]; [`Error::Corrupt`] and [`Error::Io`] from reading directories. What
    /// was not given back is free.
    pub(crate) fn give_back(&self, how: GiveBack) -> Result<GaveBack> {
        self.check_process()?;
        let _one = self.pager.hold_checkpoints();
        // Closing waits for what holds that lock, and nothing of the file changes after it.
        if self.closed.load(SeqCst) { Ok(self.gave_back()) } else { self.give_back_held(how) }
    }

    /// What the last round could not do.
    pub(crate) fn gave_back(&self) -> GaveBack {
        self.gave_back.lock().clone()
    }

    /// As [`Inner::give_back`], if the caller keeps checkpoints from beginning.
    fn give_back_held(&self, how: GiveBack) -> Result<GaveBack> {
        self.pager.check_poison()?;
        self.alloc.drop_windows(how.which == Spare::Unused)?;
        let mut round = Round::default();
        let punched = self.punch_spare(how, &mut round);
        for run in std::mem::take(&mut round.failed) {
            self.keep(run)?;
        }
        let cut = self.alloc.cut_file(how.which == Spare::All);
        // A journal keeps freed blocks until it is written: they are then the next ones there again.
        let synced = if round.punched { self.pager.volume.sync() } else { Ok(()) };
        for result in [punched, cut, synced] {
            match result {
                Err(e @ (Error::Io { .. } | Error::Full(_))) => {
                    round.told.failure = Some(e.to_string());
                }
                result => result?,
            }
        }
        round.told.cannot_punch = self.cannot_punch.load(SeqCst);
        self.gives_in_vain.store(round.told.failure.is_some() && !round.punched, SeqCst);
        *self.gave_back.lock() = round.told.clone();
        Ok(round.told)
    }

    fn punch_spare(&self, how: GiveBack, round: &mut Round) -> Result<()> {
        let size = self.layout.page_size() as u64;
        if how.deep {
            // Before the first look at a space nobody knows what is free there, or a hole.
            self.alloc.look_everywhere()?;
            self.punch_holes(round)?;
            self.forget_holes()?;
        }
        let mut spare = self.alloc.spare_pages(how.which).min(how.most_bytes / size);
        for least in CLASSES.into_iter().chain((how.least < LEAST_HOLE).then_some(how.least)) {
            let mut from = 0;
            while spare > 0 && !self.cannot_punch.load(SeqCst) {
                let range = ((least / size).max(1), spare.max(how.least / size));
                let Some(run) = self.alloc.next_to_punch(&mut from, range, how.deep)? else {
                    break;
                };
                if self.punch(run, false, round)? {
                    spare = spare.saturating_sub(run.len);
                }
            }
        }
        Ok(())
    }

    /// Gives back before a close. If there are holes, what has blocks among the free runs goes
    /// too: the next opening takes free runs for holes, and would not give them back.
    pub(super) fn give_back_at_close(&self) -> Result<()> {
        let _one = self.pager.hold_checkpoints();
        self.give_back_held(GiveBack::KNOWN)?;
        if self.pager.volume.superblock().holes {
            self.give_back_held(GiveBack::CLOSE)?;
        }
        Ok(())
    }

    /// Punches a reserved run out, which is a hole then. Returns whether it is. `hole`: the run
    /// was taken for one before.
    fn punch(&self, run: PageRun, hole: bool, round: &mut Round) -> Result<bool> {
        let volume = &self.pager.volume;
        let announced = volume.announce_holes();
        let asked = announced.is_ok();
        match announced.and_then(|()| volume.punch(run)) {
            Ok(true) => {
                self.alloc.punched(run);
                round.punched = true;
                return Ok(true);
            }
            Ok(false) => self.cannot_punch.store(true, SeqCst),
            Err(e) if asked => {
                round.fail(run, self.layout.page_size() as u64, &e);
                if !hole {
                    round.failed.push(run);
                    return Ok(false);
                }
            }
            Err(e) => {
                self.put_back(run, hole)?;
                return Err(e);
            }
        }
        self.put_back(run, hole).map(|()| false)
    }

    fn put_back(&self, run: PageRun, hole: bool) -> Result<()> {
        if hole {
            self.alloc.punched(run);
            return Ok(());
        }
        self.alloc.unreserve(run)
    }

    /// Keeps the blocks of a run whose punch failed. The call may have taken a part of them, so it
    /// gets blocks first; without them it is a hole.
    fn keep(&self, run: PageRun) -> Result<()> {
        match self.pager.volume.fill_holes(run) {
            Ok(()) => self.alloc.unreserve(run),
            Err(_) => {
                self.alloc.punched(run);
                Ok(())
            }
        }
    }

    /// If the file system cannot punch, and the file has all of its blocks, what was taken for
    /// holes since the opening is none.
    fn forget_holes(&self) -> Result<()> {
        let disk = &self.pager.volume.disk;
        if !self.cannot_punch.load(SeqCst) {
            return Ok(());
        }
        match (disk.allocated(), disk.len()) {
            (Ok(blocks), Ok(len)) if blocks >= len => self.alloc.forget_holes(),
            _ => Ok(()),
        }
    }

    /// Punches out again what is only taken for holes since the opening.
    fn punch_holes(&self, round: &mut Round) -> Result<()> {
        let mut from = 0;
        while !self.cannot_punch.load(SeqCst)
            && let Some(run) = self.alloc.next_hole(&mut from)
        {
            self.punch(run, true, round)?;
        }
        Ok(())
    }
}
