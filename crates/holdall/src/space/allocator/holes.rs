//! Free space given back to the file system, and had again.
//!
//! Owns: which free runs are holes of the file (rules 27 to 30). A hole is free and in no tree:
//! it is given out only after it has blocks again, when nothing else serves.

use super::{Allocator, AllocatorState, MOST_ORDER};
use crate::txn::io_error;
use holdall_core::buddy::BuddyTree;
use holdall_core::mutation::{self, Mutation};
use holdall_core::{Error, PageNo, PageRun, Result};
use parking_lot::MutexGuard;

/// Bytes of the shortest run that is punched out unless everything is to be given back. Shorter
/// ones would cost more calls, and more extents of the file system, than their blocks are worth.
pub const LEAST_HOLE: u64 = 16 << 10;
/// Bytes that a hole gets blocks for at a time, at least.
const FILL_BYTES: u64 = 1 << 20;
/// Holes too short to be punched as a rule that get blocks together.
const MOST_CRUMBS: usize = 64;
/// The free end of the file that is worth a cut: two superblocks.
const LEAST_CUT: u64 = 1 << 20;

/// Which free pages may be given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spare {
    /// Those that are free now.
    Now,
    /// Those that nobody has needed since the last question.
    Unused,
    /// All: nothing is kept for the next writes.
    All,
}

impl Allocator {
    pub(super) fn pages_of(&self, bytes: u64) -> u64 {
        (bytes / self.layout.page_size() as u64).max(1)
    }

    /// Whether [`Allocator::spare_pages`] may find some, now or later. Changes nothing.
    pub fn has_spare(&self) -> bool {
        let s = self.state.lock();
        s.free + s.waiting.pages() > self.kept_pages(&s)
    }

    /// Whether what waits for a checkpoint is more than what keeps its blocks.
    pub fn has_spare_waiting(&self) -> bool {
        let s = self.state.lock();
        s.queue.back().is_some_and(|f| f.lsn > s.checkpointed)
            && s.waiting.pages() > self.kept_pages(&s)
    }

    /// Whether a round of giving back has something to do, if nobody commits any more.
    pub fn is_to_be_looked_at(&self) -> bool {
        self.windows().1 > 0 || self.has_spare_waiting()
    }

    /// As [`Allocator::has_spare_waiting`], also if only a snapshot keeps them.
    pub fn has_much_waiting(&self) -> bool {
        let s = self.state.lock();
        s.waiting.pages() > self.kept_pages(&s)
    }

    /// Free pages that keep their blocks.
    pub(super) fn kept_pages(&self, s: &AllocatorState) -> u64 {
        let share = (s.live_pages() as f64 * self.limits.spare_share) as u64;
        share + self.limits.spare_bytes / self.layout.page_size() as u64
    }

    /// How many free pages have blocks beyond what the store keeps for its next writes; no number
    /// is more than [`Spare::All`].
    pub fn spare_pages(&self, which: Spare) -> u64 {
        let mut s = self.state.lock();
        let free = match which {
            Spare::All => return u64::MAX,
            Spare::Now => s.free,
            Spare::Unused => s.free.min(s.least_free),
        };
        s.least_free = s.free;
        free.saturating_sub(self.kept_pages(&s))
    }

    /// Looks at every space, so that it is known what is free, and what is taken for holes. Cost:
    /// reads the directories that were not looked at since the opening.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`] from reading a directory.
    pub fn look_everywhere(&self) -> Result<()> {
        let n = u64::from(self.layout.space_pages());
        let mut space = 0;
        loop {
            // Others are served in between.
            let mut s = self.state.lock();
            if u64::from(space) * n >= s.volume_pages {
                return Ok(());
            }
            self.tree(&mut s, space)?;
            space += 1;
        }
    }

    /// Reserves the first free run from page `from` on that has `least` pages together with holes
    /// beside it; at most `most` pages of it. With `deep`
    /// it looks at spaces not looked at before too. The caller punches it out and calls
    /// [`Allocator::punched`].
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`] from reading a directory.
    pub fn next_to_punch(
        &self,
        from: &mut u64,
        (least, most): (u64, u64),
        deep: bool,
    ) -> Result<Option<PageRun>> {
        let mut s = self.state.lock();
        let n = u64::from(self.layout.space_pages());
        while let Some(space) = s.directory.next_from((*from / n) as u32, 0) {
            let base = u64::from(space) * n;
            *from = base.max(*from);
            if deep || s.trees.knows(space) {
                self.tree(&mut s, space)?;
                let index = (*from - base) as u32;
                let run = s.trees.get(space).and_then(|tree| {
                    let runs = tree.free_runs_from(index);
                    let mut runs = runs
                        .map(|r| PageRun::new(PageNo(base + u64::from(r.start)), u64::from(r.len)));
                    runs.find(|run| run.len + s.holes.beside(*run) >= least)
                });
                if let Some(run) = run {
                    let run = PageRun::new(run.start, run.len.min(most));
                    *from = run.end();
                    if mutation::is(Mutation::R28Reserved) {
                        return Ok(Some(run));
                    }
                    let start = (run.start.0 - base) as u32;
                    let len = match s.trees.get_mut(space) {
                        Some(tree) => tree.alloc_at(start, run.len as u32),
                        None => 0,
                    };
                    return Ok(Some(self.taken(&mut s, space, start, len)));
                }
            }
            *from = base + n;
        }
        Ok(None)
    }

    /// Reserves the first hole from page `from` on, as [`Allocator::next_to_punch`] does a free
    /// run: one that is only taken for a hole since the opening may have blocks.
    pub fn next_hole(&self, from: &mut u64) -> Option<PageRun> {
        let mut s = self.state.lock();
        let hole = s.holes.overlapping(*from, u64::MAX).next()?;
        *from = hole.end();
        s.holes.remove(hole);
        s.reserved.insert(hole);
        Some(hole)
    }

    /// A run of [`Allocator::next_to_punch`] has no blocks any more.
    pub fn punched(&self, run: PageRun) {
        let mut s = self.state.lock();
        if !mutation::is(Mutation::R28Reserved) {
            s.reserved.remove(run);
            s.holes.insert(run);
        }
        s.least_free = s.free;
    }

    /// All holes have blocks after all.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the allocator contradicts itself.
    pub fn forget_holes(&self) -> Result<()> {
        let mut s = self.state.lock();
        let all: Vec<PageRun> = s.holes.iter().collect();
        for run in all {
            s.holes.remove(run);
            self.give_back(&mut s, run)?;
        }
        Ok(())
    }

    /// A tree built for the first time since the opening: any free run of the space may be a
    /// hole, and is taken for one.
    pub(super) fn find_holes(&self, s: &mut AllocatorState, space: u32, tree: &mut BuddyTree) {
        let base = u64::from(space) * u64::from(self.layout.space_pages());
        for run in tree.free_runs().collect::<Vec<_>>() {
            tree.alloc_at(run.start, run.len);
            s.holes.insert(PageRun::new(PageNo(base + u64::from(run.start)), u64::from(run.len)));
        }
    }

    /// Gives blocks to a hole, or a part of one, so that up to `want` pages can be had there, at
    /// least `least`. Returns whether there was one.
    ///
    /// # Errors
    /// [`Error::Io`]; a full disk is none.
    pub(super) fn fill_hole(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        want: u64,
        least: u64,
    ) -> Result<bool> {
        // The shortest that holds all, else the longest.
        let fits = |r: &PageRun| if r.len >= want { (0, r.len) } else { (1, u64::MAX - r.len) };
        let Some(hole) = s.holes.iter().filter(|r| r.len >= least).min_by_key(fits) else {
            return Ok(false);
        };
        if !self.fill(s, hole, want)? {
            return Ok(false);
        }
        let behind = hole.start.0 + self.fills(hole, want);
        self.fill_crumbs(s, behind)?;
        Ok(true)
    }

    /// How many pages of a hole get blocks for a request of `want`: more than that, so that the
    /// next ones find them.
    fn fills(&self, hole: PageRun, want: u64) -> u64 {
        hole.len.min(self.pages_of(FILL_BYTES).max(want))
    }

    /// Gives blocks to the first pages of a hole, up to `want` of them at least; they are free
    /// then. Returns whether the disk had them.
    ///
    /// # Errors
    /// [`Error::Io`]; a full disk is none.
    pub(super) fn fill(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        hole: PageRun,
        want: u64,
    ) -> Result<bool> {
        let part = PageRun::new(hole.start, self.fills(hole, want));
        let result = match mutation::is(Mutation::R29Blocks) {
            true => Ok(()),
            false => self.pager.volume.fill_holes(part),
        };
        match result {
            Ok(()) => {}
            Err(Error::Full(_)) => return Ok(false),
            Err(e) => return Err(e),
        }
        s.holes.remove(part);
        self.give_back(s, part)?;
        Ok(true)
    }

    /// Gives blocks to the holes behind page `from` that are too short for most requests, some at
    /// a time: one by one each request would look through all.
    fn fill_crumbs(&self, s: &mut MutexGuard<'_, AllocatorState>, from: u64) -> Result<()> {
        let short = self.pages_of(LEAST_HOLE);
        let behind = s.holes.overlapping(from, u64::MAX).take(MOST_CRUMBS);
        let crumbs: Vec<PageRun> = behind.take_while(|run| run.len < short).collect();
        for run in crumbs {
            if !self.fill(s, run, run.len)? {
                break;
            }
        }
        Ok(())
    }

    /// Cuts the free end of the file, but for a step of growth, if it is long; with `whole` all
    /// of it. The caller lets no checkpoint begin: it would name the length from before.
    ///
    /// # Errors
    /// As [`Allocator::pages_in_use`]; those of writing superblocks.
    pub fn cut_file(&self, whole: bool) -> Result<()> {
        let mut s = self.state.lock();
        let end = self.end_in_use(&mut s)?;
        let step = self.growth_step(&s, end);
        let (keep, worth) =
            if whole { (end, 1) } else { (end + step, self.pages_of(LEAST_CUT).max(step)) };
        if keep + worth > s.volume_pages {
            return Ok(());
        }
        // Nobody grows the file meanwhile: that needs the lock held here (rule 30).
        if !mutation::is(Mutation::R30Named) {
            for _ in 0..2 {
                let volume = &self.pager.volume;
                volume.write_superblock(|sb| sb.volume_pages = sb.volume_pages.min(keep))?;
            }
        }
        self.cut_to(&mut s, keep)
    }

    /// Gives the free end of the volume back to the file system, as far as the superblock does
    /// not name it.
    ///
    /// # Errors
    /// As [`Allocator::pages_in_use`].
    pub fn cut_tail(&self) -> Result<()> {
        let mut s = self.state.lock();
        let named = self.pager.volume.superblock().volume_pages;
        let keep = self.end_in_use(&mut s)?.max(named);
        if keep >= s.volume_pages { Ok(()) } else { self.cut_to(&mut s, keep) }
    }

    fn cut_to(&self, s: &mut MutexGuard<'_, AllocatorState>, keep: u64) -> Result<()> {
        let (size, n) = (self.layout.page_size() as u64, u64::from(self.layout.space_pages()));
        self.pager.volume.cut(keep * size).map_err(|e| io_error("cutting the volume", e))?;
        if mutation::is(Mutation::R30Grown) {
            return Ok(());
        }
        for space in (keep / n) as u32..s.volume_pages.div_ceil(n) as u32 {
            let gone = s.trees.remove(space);
            s.free = s.free.saturating_sub(gone);
            s.directory.raise(space, MOST_ORDER);
        }
        let behind = PageRun::new(PageNo(keep), s.volume_pages - keep);
        s.holes.remove(behind);
        s.fresh = s.fresh.min(keep);
        s.volume_pages = keep;
        Ok(())
    }
}
