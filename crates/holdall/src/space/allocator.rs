//! Which pages are free, and who may have them.
//!
//! Owns: reservations, pages waiting to be freed, growth of the volume. What is in use is
//! answered in `in_use` alone (rule 10); nobody else reads bitmaps to allocate.
//!
//! Threads: one mutex; callers stage large data without the writer's lock. Lock order:
//! allocator, then pool. Invariant: pages freed by a commit come back only once a checkpoint
//! that began after it is durable and no snapshot sees them (rule 16).

mod around;
mod classes;
mod find;
mod holes;
mod in_use;
mod lower;
mod pinned;
mod report;
mod reserve;
mod trees;
mod windows;

pub use classes::Class;
pub use holes::{LEAST_HOLE, Spare};
pub use report::SpacePicture;
pub use windows::Growing;

use super::freed::FreedRuns;
use crate::metrics::Event;
use crate::txn::{Pager, io_error};
use holdall_core::buddy::{BuddyTree, SuperDirectory};
use holdall_core::mutation::{self, Mutation};
use holdall_core::space_dir::SpaceLayout;
use holdall_core::{Error, Lsn, PageNo, PageRun, Result, RunSet};
use parking_lot::{Condvar, Mutex, MutexGuard};
use pinned::Pinned;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use trees::Trees;
use windows::Windows;

/// Where in the volume a request would like to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Near {
    /// Anywhere; low addresses are preferred.
    Anywhere,
    /// Close to this page.
    Page(PageNo),
    /// From exactly this page on, so that a run goes on; else anywhere.
    At(PageNo),
    /// Where an object ends that grows, else with room behind.
    Growing(Growing),
}

#[derive(Debug)]
struct Freed {
    lsn: Lsn,
    runs: Vec<PageRun>,
}

#[derive(Debug)]
struct AllocatorState {
    volume_pages: u64,
    /// Spaces whose directory page exists in the newest installed state.
    spaces: u32,
    /// Spaces given up since the opening.
    given_up: u64,
    trees: Trees,
    directory: SuperDirectory,
    reserved: RunSet,
    /// Of those reserved the ones kept for objects that grow.
    windows: Windows,
    waiting: RunSet,
    waiting_segments: RunSet,
    /// Of those reserved the ones that a move will give back as many for.
    moving: RunSet,
    /// The thread that reserved one last.
    mover: usize,
    queue: VecDeque<Freed>,
    pinned: Pinned,
    checkpointed: Lsn,
    /// Behind the run given out last.
    cursor: PageNo,
    /// Nothing was given out from this page on since the volume grew by it.
    fresh: u64,
    /// Free pages of the spaces looked at.
    free: u64,
    /// Where the last look for a hole that fits ended.
    holes_from: u32,
    /// The same for one of a few pages.
    crumbs_from: u32,
    /// Free runs without blocks; they are in no tree (rule 29).
    holes: RunSet,
    /// Spaces that had holes when the store was opened, as far as they were not looked at since.
    unknown: BTreeSet<u32>,
    /// The store is being closed: nobody reserves any more.
    closed: bool,
    /// The fewest pages by which growth was refused since something was last committed or given
    /// back.
    refused: u64,
    /// The least of `free` since [`Allocator::spare`] last asked.
    least_free: u64,
}

impl AllocatorState {
    /// Whether a share of the volume worth looking for lies in holes: all that is free but
    /// what growth has just added.
    fn has_holes(&self) -> bool {
        let fresh = self.volume_pages.saturating_sub(self.fresh);
        self.free.saturating_sub(fresh) > self.volume_pages / 1024 + HOLES_LEAST
    }
}

/// The allocator of an open store.
#[derive(Debug)]
pub struct Allocator {
    pager: Arc<Pager>,
    layout: SpaceLayout,
    limits: Limits,
    state: Mutex<AllocatorState>,
    /// As in the state, for who writes superblocks: under their lock none may wait for the state's,
    /// since a cut takes the two the other way round.
    spaces: AtomicU32,
    /// Nothing is being moved any more.
    moved: Condvar,
}

/// What the store's options say of space.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The least step in bytes by which the volume grows.
    pub growth_bytes: u64,
    /// Bytes that the volume may have.
    pub max_bytes: u64,
    /// Free bytes that keep their blocks, whatever the store holds.
    pub spare_bytes: u64,
    /// The same as a share of what the store holds.
    pub spare_share: f64,
    /// Trees kept in memory; a tree of 32,768 pages takes 6 KiB.
    pub most_trees: usize,
}

/// Bytes of a step of growth that any volume may take.
const FREE_STEP: u64 = 1 << 20;

/// The most bytes of a step, if a request does not need more.
const MOST_STEP: u64 = 64 << 20;

/// Growth by this many pages is always tried, whatever was refused before.
const SMALL_GROWTH: u64 = 16;

/// Free pages that are no reason yet to look for holes.
const HOLES_LEAST: u64 = 64;

/// What a space not yet looked at is believed to have free (Biliris §3.1): a block of any size.
const MOST_ORDER: u8 = 15;

/// Figures for reports.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpaceStats {
    /// Pages of the volume.
    pub volume_pages: u64,
    /// Pages freed but not yet reusable.
    pub waiting_pages: u64,
    /// Pages reserved by transactions and staged data.
    pub reserved_pages: u64,
    /// Spaces with a directory.
    pub spaces: u32,
    /// Pages known to be free: those of spaces looked at since the store was opened.
    pub free_pages: u64,
}

impl SpaceStats {
    /// Pages in use; those of a space not looked at yet count as such.
    pub fn live_pages(&self) -> u64 {
        self.volume_pages.saturating_sub(self.free_pages + self.waiting_pages)
    }
}

impl Allocator {
    /// The allocator of a volume of `volume_pages` pages with `spaces` directories.
    /// `holes`: free runs of it may have no blocks.
    pub fn new(
        pager: Arc<Pager>,
        layout: SpaceLayout,
        (volume_pages, spaces, holes): (u64, u32, bool),
        limits: Limits,
    ) -> Self {
        let known = volume_pages.div_ceil(u64::from(layout.space_pages())).max(1) as u32;
        let state = AllocatorState {
            volume_pages,
            spaces,
            given_up: 0,
            trees: Trees::new(limits.most_trees),
            directory: SuperDirectory::new(known, MOST_ORDER),
            reserved: RunSet::default(),
            windows: Windows::default(),
            waiting: RunSet::default(),
            waiting_segments: RunSet::default(),
            moving: RunSet::default(),
            mover: 0,
            queue: VecDeque::new(),
            pinned: Pinned::default(),
            checkpointed: Lsn(0),
            cursor: PageNo(0),
            fresh: volume_pages,
            free: 0,
            holes_from: 0,
            crumbs_from: 0,
            holes: RunSet::default(),
            unknown: if holes && !mutation::is(Mutation::R29Unknown) {
                (0..known).collect()
            } else {
                BTreeSet::new()
            },
            closed: false,
            refused: u64::MAX,
            least_free: u64::MAX,
        };
        let (state, spaces) = (Mutex::new(state), AtomicU32::new(spaces));
        Self { pager, layout, limits, state, spaces, moved: Condvar::new() }
    }

    /// Lets nobody reserve any more, before the file is cut for a close: an object that is
    /// still being staged may then write to what it has, which stays inside the file, and
    /// takes nothing more.
    pub fn shut(&self) {
        let mut s = self.state.lock();
        s.closed = true;
        // A contradiction only makes the file longer.
        let _ = self.give_up_windows(&mut s, u64::MAX);
    }

    /// The state, for who is about to reserve.
    fn open_state(&self) -> Result<MutexGuard<'_, AllocatorState>> {
        let s = self.state.lock();
        if s.closed {
            return Err(Error::Invalid("the store is closed; open it again".into()));
        }
        Ok(s)
    }

    fn max_pages(&self) -> u64 {
        (self.limits.max_bytes / self.layout.page_size() as u64).min(PageNo::MAX.0)
    }

    /// The volume's geometry.
    pub fn layout(&self) -> &SpaceLayout {
        &self.layout
    }

    fn taken(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        space: u32,
        index: u32,
        len: u32,
    ) -> PageRun {
        let start = u64::from(space) * u64::from(self.layout.space_pages()) + u64::from(index);
        let run = PageRun::new(PageNo(start), u64::from(len));
        s.reserved.insert(run);
        s.fresh = s.fresh.max(run.end());
        s.free = s.free.saturating_sub(u64::from(len));
        s.least_free = s.least_free.min(s.free);
        if let Some(largest) = s.trees.get(space).map(BuddyTree::largest) {
            s.directory.set(space, largest);
        }
        run
    }

    /// The pages by which the volume grows at least, so that its file lies in few extents and a
    /// large import does not grow page by page: what may be free with blocks and is not, but in any
    /// case the step that the options name. Neither is more than `pages`, those that there are: a
    /// large step makes no large file of a small store.
    fn growth_step(&self, s: &AllocatorState, pages: u64) -> u64 {
        let size = self.layout.page_size() as u64;
        let least = (self.limits.growth_bytes / size).min(pages.max(FREE_STEP / size)).max(1);
        let share = self.kept_pages(s).saturating_sub(s.free + s.windows.pages());
        share.min(pages).min(MOST_STEP / size).max(least)
    }

    /// Grows the volume so that `want` more pages fit in one run.
    fn grow(&self, s: &mut MutexGuard<'_, AllocatorState>, want: u64) -> Result<()> {
        let size = self.layout.page_size() as u64;
        let step = self.growth_step(s, s.volume_pages);
        let (need, _) = self.growth_for(s, want);
        for pages in [need.max(step), need] {
            // The system says no again, and each time it looks through what is free.
            if pages >= s.refused && pages > SMALL_GROWTH {
                continue;
            }
            let to = (s.volume_pages + pages).min(self.max_pages());
            if to < s.volume_pages + need {
                let limit = self.max_pages() * size;
                return Err(Error::Full(format!("the store may have {limit} bytes at most")));
            }
            match self.pager.volume.grow(to * size) {
                Ok(()) => {
                    Event::Growth { bytes: to * size }.tell();
                    return self.set_volume_pages(s, to);
                }
                Err(e) if e.kind() == std::io::ErrorKind::StorageFull => {
                    s.refused = s.refused.min(to - s.volume_pages);
                }
                Err(e) => return Err(io_error("growing the volume", e)),
            }
        }
        Err(Error::Full(format!("the disk has no room for {} more bytes", need * size)))
    }

    /// Whether the volume may grow by a request of `want` pages, as far as is known.
    fn may_grow(&self, s: &AllocatorState, want: u64) -> bool {
        let (need, _) = self.growth_for(s, want);
        need < s.refused && s.volume_pages.saturating_add(need) <= self.max_pages()
    }

    /// Grows the volume by what a request of `want` pages needs, or by a part of it for which
    /// there is room: half of what was refused, and so on. Returns whether it grew. Cost: a few
    /// calls; all requests together that fill a disk, two for each power of two of its pages.
    fn grow_in_part(&self, s: &mut MutexGuard<'_, AllocatorState>, want: u64) -> Result<bool> {
        let size = self.layout.page_size() as u64;
        let (need, _) = self.growth_for(s, want);
        let most = need.min(self.max_pages().saturating_sub(s.volume_pages));
        let mut pages = if most >= s.refused { (s.refused / 2).max(1).min(most) } else { most };
        while pages > 0 {
            let to = s.volume_pages + pages;
            match self.pager.volume.grow(to * size) {
                Ok(()) => return self.set_volume_pages(s, to).map(|()| true),
                Err(e) if e.kind() == std::io::ErrorKind::StorageFull => s.refused = pages,
                Err(e) => return Err(io_error("growing the volume", e)),
            }
            pages /= 2;
        }
        Ok(false)
    }

    /// The pages by which the volume must grow for a run of `want`, and those left in its last
    /// space.
    fn growth_for(&self, s: &AllocatorState, want: u64) -> (u64, u64) {
        let n = u64::from(self.layout.space_pages());
        let left = (n - s.volume_pages % n) % n;
        // A new space's own pages come first; a run never crosses from space to space.
        let own = 1 + u64::from(self.layout.stretches());
        (if left >= want { want } else { left + own + want }, left)
    }

    fn set_volume_pages(&self, s: &mut MutexGuard<'_, AllocatorState>, to: u64) -> Result<()> {
        let n = u64::from(self.layout.space_pages());
        let (first, last) = (s.volume_pages / n, (to - 1) / n);
        s.volume_pages = to;
        s.directory.resize(last as u32 + 1, MOST_ORDER);
        for space in first..=last {
            let space = space as u32;
            // Made again from the bitmap when asked for: if a crash undid growth, pages past
            // the old end may be allocated.
            let gone = s.trees.remove(space);
            s.free = s.free.saturating_sub(gone);
            s.directory.raise(space, MOST_ORDER);
        }
        Ok(())
    }

    /// Gives back pages reserved and not committed.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if they were not reserved.
    pub fn unreserve(&self, run: PageRun) -> Result<()> {
        let mut s = self.state.lock();
        s.reserved.remove(run);
        s.refused = u64::MAX;
        self.note_moved(&mut s, run);
        if s.cursor.0 == run.end() {
            // The end of a run that proved too long: the next one begins here.
            s.cursor = run.start;
        }
        self.give_back(&mut s, run)
    }

    fn give_back(&self, s: &mut MutexGuard<'_, AllocatorState>, run: PageRun) -> Result<()> {
        let n = u64::from(self.layout.space_pages());
        let (space, index) = ((run.start.0 / n) as u32, (run.start.0 % n) as u32);
        if let Some(tree) = s.trees.get_mut(space) {
            tree.free(index, run.len as u32)?;
            let largest = tree.largest();
            s.free += run.len;
            s.directory.set(space, largest);
        } else {
            s.free += if s.trees.freed(space, run.len) { run.len } else { 0 };
            s.directory.raise(space, MOST_ORDER);
        }
        Ok(())
    }

    /// Before a commit is installed: its freed runs are neither in the bitmap nor free. No superblock
    /// may name more than the `spaces` that it leaves. Returns how many there were.
    pub fn hold_freed(&self, runs: &FreedRuns, spaces: u32) -> u32 {
        let mut s = self.state.lock();
        let before = s.spaces;
        s.spaces = before.min(spaces);
        self.spaces.store(s.spaces, SeqCst);
        for (run, segment) in runs.iter() {
            s.waiting.insert(run);
            if segment {
                s.waiting_segments.insert(run);
            }
        }
        before
    }

    /// The commit failed before it was installed: the runs are in the bitmap as before,
    /// and there are `spaces` as before.
    pub fn unhold_freed(&self, runs: &FreedRuns, spaces: u32) {
        let mut s = self.state.lock();
        s.spaces = spaces;
        self.spaces.store(spaces, SeqCst);
        for (run, _) in runs.iter() {
            s.waiting.remove(run);
            s.waiting_segments.remove(run);
        }
    }

    /// After a commit was installed: its reservations are in the bitmap now, its freed runs
    /// wait for a checkpoint.
    pub fn committed(&self, lsn: Lsn, allocated: &[PageRun], freed: &FreedRuns, spaces: u32) {
        let mut s = self.state.lock();
        s.refused = u64::MAX;
        for run in allocated {
            s.reserved.remove(*run);
            self.note_moved(&mut s, *run);
        }
        if !freed.is_empty() {
            let runs = freed.iter().map(|(run, _)| run).collect();
            s.queue.push_back(Freed { lsn, runs });
        }
        s.given_up += freed.spaces();
        s.spaces = spaces;
        self.spaces.store(spaces, SeqCst);
    }

    /// A checkpoint that began at `lsn` is durable.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the allocator contradicts itself.
    pub fn checkpointed(&self, lsn: Lsn) -> Result<()> {
        let mut s = self.state.lock();
        s.checkpointed = s.checkpointed.max(lsn);
        self.release_ready(&mut s)?;
        self.release_unseen(&mut s)
    }

    /// Makes waiting pages free if nobody needs them. Returns whether any became free.
    fn release_ready(&self, s: &mut MutexGuard<'_, AllocatorState>) -> Result<bool> {
        let limit = match (s.checkpointed, self.pager.horizon.oldest()) {
            (_, oldest) if mutation::is(Mutation::R16Checkpoint) => oldest,
            (checkpointed, _) if mutation::is(Mutation::R16Horizon) => checkpointed,
            (checkpointed, oldest) => checkpointed.min(oldest),
        };
        let mut any = self.release_pinned(s)?;
        while s.queue.front().is_some_and(|f| f.lsn <= limit) {
            let Some(freed) = s.queue.pop_front() else { break };
            for run in freed.runs {
                self.release(s, run)?;
                any = true;
            }
        }
        Ok(any)
    }

    /// Makes a run free that nobody needs any more.
    fn release(&self, s: &mut MutexGuard<'_, AllocatorState>, run: PageRun) -> Result<()> {
        // Looked at, so that what is free there counts. If it cannot be read the next look finds.
        let _ = self.tree(s, (run.start.0 / u64::from(self.layout.space_pages())) as u32);
        s.waiting.remove(run);
        s.waiting_segments.remove(run);
        // The directory of a space given up: no other page lies there.
        if self.layout.is_directory(run.start) { Ok(()) } else { self.give_back(s, run) }
    }

    /// Whether a checkpoint now could make waiting pages free that the last one could not.
    pub fn has_new_waiting(&self) -> bool {
        let s = self.state.lock();
        s.queue.back().is_some_and(|f| f.lsn > s.checkpointed)
    }

    /// Whether segment pages freed lately lie in `run`: their checksums are still needed.
    pub fn has_waiting_segments(&self, run: PageRun) -> bool {
        let s = self.state.lock();
        s.waiting_segments.overlapping(run.start.0, run.end()).next().is_some()
    }

    /// Pages of the volume; the superblock names them.
    pub fn volume_pages(&self) -> u64 {
        self.state.lock().volume_pages
    }

    /// Figures for reports.
    pub fn stats(&self) -> SpaceStats {
        let s = self.state.lock();
        SpaceStats {
            volume_pages: s.volume_pages,
            waiting_pages: s.waiting.pages(),
            reserved_pages: s.reserved.pages() - s.windows.free_pages(),
            spaces: s.spaces,
            free_pages: s.free + s.holes.pages() + s.windows.free_pages(),
        }
    }

    /// Spaces of the newest installed state, or fewer while a commit gives some up. Takes no lock.
    pub fn least_spaces(&self) -> u32 {
        self.spaces.load(SeqCst)
    }

    /// Pages that are free but for a snapshot of state `lsn` that may still read them: freed after
    /// it, and a checkpoint ago. Cost: a look at each commit that freed pages since.
    pub fn pinned_since(&self, lsn: Lsn) -> u64 {
        let s = self.state.lock();
        let pinned = s.queue.iter().filter(|f| f.lsn > lsn && f.lsn <= s.checkpointed);
        s.pinned.pages(lsn) + pinned.flat_map(|f| &f.runs).map(|run| run.len).sum::<u64>()
    }

    /// Pages that are free but for snapshots that may still read them.
    pub fn pinned_pages(&self) -> u64 {
        let s = self.state.lock();
        let open = self.open_states();
        let Some(oldest) = open.first() else { return 0 };
        let unsorted = s.queue.iter().filter(|f| f.lsn > *oldest && f.lsn <= s.checkpointed);
        s.pinned.all_pages(&open) + unsorted.flat_map(|f| &f.runs).map(|run| run.len).sum::<u64>()
    }

    /// Gives up the oldest snapshot that keeps pages from being free. Returns whether there was one,
    /// or pages became free without.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the allocator contradicts itself.
    pub fn give_up_reader(&self) -> Result<bool> {
        self.expire(&mut self.state.lock())
    }

    fn expire(&self, s: &mut MutexGuard<'_, AllocatorState>) -> Result<bool> {
        let before = s.waiting.pages();
        self.release_unseen(s)?;
        if self.release_ready(s)? || s.waiting.pages() < before {
            return Ok(true);
        }
        let open = self.open_states();
        let (Some(oldest), first) = (open.first().copied(), s.queue.front()) else {
            return Ok(false);
        };
        // What no look has sorted out yet may be the oldest one's.
        let unsorted = first.is_some_and(|f| f.lsn <= s.checkpointed && f.lsn > oldest);
        let Some(keeps) = s.pinned.oldest().or(unsorted.then_some(oldest)) else {
            return Ok(false);
        };
        self.pager.horizon.give_up(keeps);
        self.release_ready(s).map(|_| true)
    }
}
