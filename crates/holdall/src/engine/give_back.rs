//! Giving free space back to the file system, at a pace.

use super::Inner;
use crate::space::{LEAST_HOLE, Spare};
use holdall_core::{PageRun, Result};
use std::sync::atomic::Ordering::SeqCst;

/// What one call may do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GiveBack {
    /// Which free pages.
    pub(crate) which: Spare,
    /// Bytes that it may punch out.
    pub(crate) most_bytes: u64,
    /// Whether it looks for free space where nothing was read since the opening.
    pub(crate) deep: bool,
}

impl GiveBack {
    /// In the background: so much a second disturbs no commit.
    pub(crate) const PACED: Self =
        Self { which: Spare::Unused, most_bytes: 256 << 20, deep: false };
    /// At once, what is known to be free.
    pub(crate) const KNOWN: Self = Self { which: Spare::Now, most_bytes: u64::MAX, deep: false };
    /// At once, what a log needs on a full disk.
    pub(crate) const FOR_LOG: Self = Self { which: Spare::All, most_bytes: 1 << 20, deep: true };
    /// At once, everything.
    pub(crate) const ALL: Self = Self { which: Spare::All, most_bytes: u64::MAX, deep: true };
}

/// Lengths in bytes of the runs that are punched out, the longest first.
const CLASSES: [u64; 4] = [1 << 20, 256 << 10, 64 << 10, LEAST_HOLE];

impl Inner {
    /// Tells the checkpointing thread that free space may be given back. Cost: mostly a look.
    pub(crate) fn ask_to_give_back(&self) {
        if self.spare_told.swap(true, SeqCst) {
            return;
        }
        let (wishes, wake) = &*self.wishes;
        wishes.lock().spare = true;
        wake.notify_all();
    }

    /// What the checkpointing thread does where nobody has asked for a checkpoint for a while.
    /// Returns whether it is to look again.
    pub(crate) fn give_back_paced(&self) -> bool {
        self.spare_told.store(false, SeqCst);
        if self.alloc.has_spare_waiting()
            && let Err(e) = self.checkpoint()
        {
            self.note_background_error(&e);
        }
        // What is not given back stays free; a poisoned store is told by the next commit.
        drop(self.give_back(GiveBack::PACED));
        self.has_spare()
    }

    /// Whether more is free than the store keeps for its next writes.
    pub(crate) fn has_spare(&self) -> bool {
        !self.keeps_blocks.load(SeqCst) && self.alloc.has_spare()
    }

    /// Punches free space out of the file until no more keeps its blocks than
    /// [`Options::space_factor`](super::Options::space_factor) allows, and cuts the file's free
    /// end. Cost: a system call for each run, at most four superblocks.
    ///
    /// # Errors
    /// Those of the calls; nothing is lost, what was not given back is free.
    pub(crate) fn give_back(&self, how: GiveBack) -> Result<()> {
        self.check_process()?;
        let _one = self.pager.hold_checkpoints();
        // Closing waits for what holds that lock, and nothing of the file changes after it.
        if self.closed.load(SeqCst) { Ok(()) } else { self.give_back_held(how) }
    }

    /// As [`Inner::give_back`], where the caller keeps checkpoints from beginning.
    fn give_back_held(&self, how: GiveBack) -> Result<()> {
        self.pager.check_poison()?;
        let size = self.layout.page_size() as u64;
        if how.deep {
            self.punch_holes()?;
        }
        let mut spare = self.alloc.spare_pages(how.which).min(how.most_bytes / size);
        for least in CLASSES {
            let mut from = 0;
            while spare > 0 && !self.keeps_blocks.load(SeqCst) {
                let range = (least / size, spare.max(LEAST_HOLE / size));
                let Some(run) = self.alloc.next_to_punch(&mut from, range, how.deep)? else {
                    break;
                };
                if !self.punch(run, false)? {
                    break;
                }
                spare = spare.saturating_sub(run.len);
            }
        }
        self.alloc.cut_file()
    }

    /// Gives back before a close. Where there are holes, what has blocks among the free runs goes
    /// too: the next opening takes long free runs for holes, and would not give them back.
    pub(super) fn give_back_at_close(&self) -> Result<()> {
        let _one = self.pager.hold_checkpoints();
        self.give_back_held(GiveBack::KNOWN)?;
        if self.pager.volume.superblock().holes {
            self.give_back_held(GiveBack { deep: false, ..GiveBack::ALL })?;
        }
        Ok(())
    }

    /// Punches a reserved run out, which is a hole then. Returns whether the file system can.
    /// `hole`: the run was taken for one before.
    fn punch(&self, run: PageRun, hole: bool) -> Result<bool> {
        let volume = &self.pager.volume;
        let announced = volume.announce_holes();
        let asked = announced.is_ok();
        let punched = announced.and_then(|()| volume.punch(run));
        // A call that failed may have punched a part of it: whoever gets it fills it first.
        if hole || asked && !matches!(punched, Ok(false)) {
            self.alloc.punched(run);
        } else {
            self.alloc.unreserve(run)?;
        }
        if matches!(punched, Ok(true)) {
            return Ok(true);
        }
        // A file system that cannot: it is not asked again.
        self.keeps_blocks.store(true, SeqCst);
        punched
    }

    /// Punches out again what is only taken for holes since the opening.
    fn punch_holes(&self) -> Result<()> {
        let mut from = 0;
        while !self.keeps_blocks.load(SeqCst)
            && let Some(run) = self.alloc.next_hole(&mut from)
        {
            self.punch(run, true)?;
        }
        Ok(())
    }
}
