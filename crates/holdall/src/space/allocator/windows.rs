//! Free pages kept for objects that grow: a window behind the last run of each, so that objects
//! that are appended to in turns do not lie in crumbs between each other.
//!
//! Owns: [`Windows`], which memory alone knows. A window's pages are reserved (rule 10) and never
//! written; all figures count them as free, apart from those of a told size. They go back if space
//! is short, in a round of giving back in which they were not used, and at a close.
//!
//! Invariant: windows are disjoint, and all of their pages are in `reserved`. A new one is refused
//! where all together would have more than may be free with blocks (`kept_pages`) and than half of
//! what is free; of those whose size somebody told, than a quarter of the volume and than 64 MiB.

use super::{Allocator, AllocatorState};
use holdall_core::mutation::{self, Mutation};
use holdall_core::{Error, PageNo, PageRun, Result};
use parking_lot::MutexGuard;
use std::collections::BTreeMap;

/// Pages of a window if nobody told the object's size.
const PAGES: u64 = 64;
/// What one window may have of all of them, unless told.
const SHARE: u64 = 16;
/// The part of the volume that all windows may have together if somebody told what is to come, and
/// the bytes that they may have in any: a young store has no share worth the name.
const TOLD_SHARE: u64 = 4;
const TOLD_BYTES: u64 = 64 << 20;
/// A window that was not used while others were so often is given up for a new one.
const IDLE: u64 = 128;

#[derive(Debug, Clone, Copy)]
struct Window {
    len: u64,
    /// Whether somebody told how much is to come.
    told: bool,
    /// The number of its last use.
    used: u64,
}

/// All windows, by first page.
#[derive(Debug, Default)]
pub(super) struct Windows {
    all: BTreeMap<u64, Window>,
    pages: u64,
    told_pages: u64,
    /// Uses of windows since the opening, and at the last look.
    uses: u64,
    seen: u64,
    /// Where the last window of a told size was used up: its object is expected to be whole.
    ended: Option<u64>,
}

impl Windows {
    /// Pages of all windows.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages of those that nobody asked for: free in all figures.
    pub(super) fn free_pages(&self) -> u64 {
        self.pages - self.told_pages
    }

    /// Pages of the window that begins at `page`.
    pub(super) fn at(&self, page: PageNo) -> u64 {
        self.all.get(&page.0).map_or(0, |window| window.len)
    }

    /// Those that nobody asked for.
    pub(super) fn free_runs(&self) -> impl Iterator<Item = PageRun> + '_ {
        let free = self.all.iter().filter(|(_, window)| !window.told);
        free.map(|(at, window)| PageRun::new(PageNo(*at), window.len))
    }

    fn insert(&mut self, run: PageRun, told: bool) {
        if run.len == 0 {
            return;
        }
        self.uses += 1;
        self.pages += run.len;
        self.told_pages += if told { run.len } else { 0 };
        self.all.insert(run.start.0, Window { len: run.len, told, used: self.uses });
    }

    fn take(&mut self, page: PageNo) -> Option<(PageRun, bool)> {
        let Window { len, told, .. } = self.all.remove(&page.0)?;
        self.pages -= len;
        self.told_pages -= if told { len } else { 0 };
        Some((PageRun::new(page, len), told))
    }
}

/// An object that more will be appended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growing {
    /// Where it ends, if that is in a run.
    pub at: Option<PageNo>,
    /// The pages that are to come, if somebody told.
    pub more: Option<u64>,
}

impl Allocator {
    /// Keeps free pages from page `at` on for the object whose last run ends there: as many as
    /// are to come, or up to 64; none beyond a size that was told. A hint: fewer, or none, if
    /// others are in the way.
    pub fn keep_behind(&self, at: PageNo, more: Option<u64>) {
        let mut s = self.state.lock();
        if !s.closed && at.0 < s.volume_pages {
            // What contradicts itself, or cannot be read, shows when it is needed.
            let _ = self.widen(&mut s, at, more);
        }
    }

    fn widen(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        at: PageNo,
        more: Option<u64>,
    ) -> Result<()> {
        let (space, index) = self.layout.split(at)?;
        if more.is_none() && s.windows.ended.take_if(|ended| *ended == at.0).is_some() {
            return Ok(());
        }
        // Before anything changes: a space that cannot be read has no windows.
        self.tree(s, space)?;
        let room = self.room_for_window(s, more)?;
        let (there, told) = s.windows.take(at).map_or((0, false), |(run, told)| (run.len, told));
        let room = if told && more.is_none() { there } else { room };
        let (from, lacks) = (index + there as u32, room.saturating_sub(there));
        let got = s.trees.get_mut(space).map_or(0, |tree| tree.alloc_at(from, lacks as u32));
        if got > 0 {
            let run = self.taken(s, space, from, got);
            // What is written next lies behind the window.
            if s.cursor == run.start {
                s.cursor = PageNo(run.end());
            }
        }
        s.windows.insert(PageRun::new(at, there + u64::from(got)), told || more.is_some());
        Ok(())
    }

    /// The pages that a window may have; those that nobody has used for long make room for it.
    fn room_for_window(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        more: Option<u64>,
    ) -> Result<u64> {
        let half = (s.free + s.windows.pages) / 2;
        let most = match more {
            Some(_) => (s.volume_pages / TOLD_SHARE).max(self.pages_of(TOLD_BYTES)),
            None => self.kept_pages(s),
        };
        let most = most.max(half);
        let want = more.unwrap_or(PAGES.min(most / SHARE));
        if s.windows.pages + want > most {
            let idle = s.windows.uses.saturating_sub(IDLE);
            self.give_up_windows(s, idle)?;
        }
        Ok(want.min(most.saturating_sub(s.windows.pages)))
    }

    /// A run of `want` pages for an object that grows: where it ends, else one with a window behind
    /// it, by growth if no more is free than may keep its blocks.
    pub(super) fn find_growing(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        want: u64,
        Growing { at, more }: Growing,
    ) -> Result<Option<PageRun>> {
        if let Some(at) = at {
            let window = self.take_window(s, at, (want, want))?;
            let run = if window.is_some() { window } else { self.take_at(s, at, want, want)? };
            if run.is_some() {
                return Ok(run);
            }
        }
        let all = want + self.room_for_window(s, more)?;
        if all > u64::from(self.layout.space_pages()) {
            return Ok(None);
        }
        let mut found = self.find_block(s, all as u32)?;
        while found.is_none() && self.fill_hole(s, all, all)? {
            found = self.find_block(s, all as u32)?;
        }
        if found.is_none() && self.rather_grows(s, all) {
            match self.grow(s, all) {
                Err(Error::Full(_)) => return Ok(None),
                other => other?,
            }
            found = self.find_block(s, all as u32)?;
        }
        Ok(found.map(|run| {
            let window = PageRun::new(PageNo(run.start.0 + want), run.len - want);
            s.windows.insert(window, more.is_some());
            PageRun::new(run.start, want)
        }))
    }

    /// Takes up to `want` pages of the window that begins at `page`, or behind that page, which is
    /// written anew if it is not full; and of what is free behind, if there are `least`.
    pub(super) fn take_window(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        page: PageNo,
        (want, least): (u64, u64),
    ) -> Result<Option<PageRun>> {
        let at = [page, PageNo(page.0 + 1)].into_iter().find(|at| s.windows.at(*at) > 0);
        let Some(at) = at else { return Ok(None) };
        let (space, index) = self.layout.split(at)?;
        if s.windows.at(at) < want {
            // Before anything changes: a space that cannot be read leaves the window as it is.
            self.tree(s, space)?;
        }
        let Some((window, told)) = s.windows.take(at) else { return Ok(None) };
        let mut len = window.len;
        if len < want {
            let from = index + len as u32;
            let lacks = (want - len) as u32;
            let got = s.trees.get_mut(space).map_or(0, |tree| tree.alloc_at(from, lacks));
            if got > 0 {
                self.taken(s, space, from, got);
            }
            len += u64::from(got);
        }
        let run = PageRun::new(window.start, if len < least { 0 } else { len.min(want) });
        s.windows.insert(PageRun::new(PageNo(run.end()), len - run.len), told);
        if told && len == run.len {
            s.windows.ended = Some(run.end());
        }
        Ok((run.len > 0).then_some(run))
    }

    /// Gives up the windows of which the last use was at most the `last`th. Returns whether there
    /// were any.
    ///
    /// # Errors
    /// [`holdall_core::Error::Corrupt`] if the allocator contradicts itself.
    pub(super) fn give_up_windows(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        last: u64,
    ) -> Result<bool> {
        let all = s.windows.all.iter().filter(|(_, window)| window.used <= last);
        let gone: Vec<u64> = all.map(|(at, _)| *at).collect();
        for page in &gone {
            let Some((run, _)) = s.windows.take(PageNo(*page)) else { continue };
            s.reserved.remove(run);
            if s.cursor.0 == run.end() {
                s.cursor = run.start;
            }
            self.give_back(s, run)?;
        }
        Ok(!gone.is_empty())
    }

    /// For a request that finds no other pages: gives up all windows. Returns whether there were any.
    ///
    /// # Errors
    /// As [`Allocator::reserve`].
    pub(super) fn spend_windows(&self, s: &mut MutexGuard<'_, AllocatorState>) -> Result<bool> {
        Ok(!mutation::is(Mutation::R10Windows) && self.give_up_windows(s, u64::MAX)?)
    }

    /// Before a round of giving back: gives up all windows, or those not used since the last look.
    ///
    /// # Errors
    /// As [`Allocator::reserve`].
    pub fn drop_windows(&self, unused: bool) -> Result<()> {
        let mut s = self.state.lock();
        let last = if unused { s.windows.seen } else { u64::MAX };
        s.windows.seen = s.windows.uses;
        self.give_up_windows(&mut s, last).map(drop)
    }

    /// How often windows were made or used since the opening, and the pages that they have now.
    pub fn windows(&self) -> (u64, u64) {
        let s = self.state.lock();
        (s.windows.uses, s.windows.pages)
    }
}
