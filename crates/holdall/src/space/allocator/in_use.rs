//! What is in use: the one answer to that question (rule 10).
//!
//! A page is in use if the newest installed bitmap says so, if it is *claimed*, or if it is one of
//! its space's own pages. Claimed is what no bitmap holds: what is reserved by a transaction, a
//! staged object or a mover, and what waits for a checkpoint or for the snapshots that pin it.
//! A space may have claimed pages long before its directory exists. Holes are free, but in no
//! tree (rule 29).
//!
//! Owns: the trees of free pages as they are built, and every look at how far the volume is in
//! use. All that give out, punch, cut or count space ask here.

use super::{Allocator, AllocatorState};
use crate::space::{fresh_directory, holds_pages};
use holdall_core::buddy::BuddyTree;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::space_dir::SpaceDir;
use holdall_core::{Error, PageNo, PageRun, Result};
use parking_lot::MutexGuard;

impl AllocatorState {
    /// The parts of claimed runs that lie in `from..to`.
    fn claimed(&self, from: u64, to: u64) -> impl Iterator<Item = PageRun> + '_ {
        // A mutation looks at nothing.
        let unless = |mutation| if mutation::is(mutation) { from } else { to };
        let reserved = self.reserved.overlapping(from, unless(Mutation::R10Reserved));
        reserved.chain(self.waiting.overlapping(from, unless(Mutation::R10Waiting)))
    }

    /// Pages in use but for those that wait; those of spaces not looked at yet count as such.
    pub(super) fn live_pages(&self) -> u64 {
        let unused =
            self.free + self.waiting.pages() + self.holes.pages() + self.windows.free_pages();
        self.volume_pages.saturating_sub(unused)
    }
}

impl Allocator {
    /// The tree of a space, built if it is not in memory.
    pub(super) fn tree<'a>(
        &self,
        s: &'a mut MutexGuard<'_, AllocatorState>,
        space: u32,
    ) -> Result<&'a mut BuddyTree> {
        if s.trees.get(space).is_none() {
            let mut tree = self.build_tree(s, space)?;
            if s.unknown.contains(&space) {
                self.find_holes(s, space, &mut tree);
                s.unknown.remove(&space);
            }
            s.directory.set(space, tree.largest());
            let free = u64::from(tree.free_pages());
            let counted = s.trees.insert(space, tree);
            s.free = (s.free + free).saturating_sub(counted);
        }
        s.trees.get_mut(space).ok_or_else(|| Error::corrupt("allocator", "a tree vanished"))
    }

    /// A tree of the pages of a space that are not in use and no holes.
    fn build_tree(&self, s: &AllocatorState, space: u32) -> Result<BuddyTree> {
        let n = self.layout.space_pages();
        let base = u64::from(space) * u64::from(n);
        let limit = s.volume_pages.saturating_sub(base).min(u64::from(n)) as u32;
        let address = self.layout.dir_page(space);
        let page = if space < s.spaces {
            self.pager.newest(address, PageKind::SpaceDir)?
        } else {
            fresh_directory(&self.layout, space)?.into()
        };
        let dir = SpaceDir::open(self.layout, space, &*page)?;
        let mut tree = BuddyTree::from_free_words(n, limit, |w| dir.free_word(w))?;
        let end = base + u64::from(n);
        for run in s.claimed(base, end).chain(s.holes.overlapping(base, end)) {
            let mut at = (run.start.0 - base) as u32;
            let to = (run.end() - base) as u32;
            while at < to {
                at += tree.alloc_at(at, to - at).max(1);
            }
        }
        Ok(tree)
    }

    /// Whether `pages` pages from `at` on are free now. A hint: another may take them.
    pub fn is_free_at(&self, at: PageNo, pages: u64) -> bool {
        let mut s = self.state.lock();
        let Ok((space, index)) = self.layout.split(at) else { return false };
        let (Ok(len), true) = (u32::try_from(pages), at.0 < s.volume_pages) else { return false };
        let window = s.windows.at(at).min(pages) as u32;
        let rest = (index + window, len - window);
        self.tree(&mut s, space).is_ok_and(|tree| tree.is_free(rest.0, rest.1))
    }

    /// Pages of the volume up to the last one in use. Cost: a pass over the directories of the
    /// spaces behind it.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`] from reading a directory.
    pub fn pages_in_use(&self) -> Result<u64> {
        self.end_in_use(&mut self.state.lock())
    }

    /// As [`Allocator::pages_in_use`], with the allocator's lock held.
    pub(super) fn end_in_use(&self, s: &mut MutexGuard<'_, AllocatorState>) -> Result<u64> {
        let n = u64::from(self.layout.space_pages());
        let mut end = s.volume_pages;
        while end > 0 {
            let space = ((end - 1) / n) as u32;
            let base = u64::from(space) * n;
            if space >= s.spaces {
                // Nothing is committed there, its own pages neither.
                let claimed = !mutation::is(Mutation::R30Claimed);
                let last = s.claimed(base, end).map(|run| run.end()).max();
                match last.filter(|_| claimed) {
                    Some(last) => return Ok(last),
                    // A crash may leave one that was never committed; a root that names too few
                    // spaces leaves one with all that it holds.
                    None if holds_pages(&self.pager, &self.layout, space)? => return Ok(end),
                    None => end = base,
                }
                continue;
            }
            let tree = self.tree(s, space)?;
            let free = tree.free_runs().find(|r| base + u64::from(r.end()) == end);
            let free = free.map(|r| base + u64::from(r.start));
            let hole = s.holes.overlapping(base, end).last().filter(|h| h.end() == end);
            match free.or(hole.map(|h| h.start.0)) {
                Some(start) => end = start,
                None => break,
            }
        }
        Ok(end)
    }

    /// Whether any page of `run` is reserved, or waits to be free.
    pub fn is_claimed(&self, run: PageRun) -> bool {
        self.state.lock().claimed(run.start.0, run.end()).next().is_some()
    }

    /// Whether page `no` waits to be free.
    pub fn waits(&self, no: PageNo) -> bool {
        self.state.lock().waiting.overlapping(no.0, no.0 + 1).next().is_some()
    }

    /// Spaces given up since the opening, and those of them whose directories wait to be free.
    /// Cost: a look at each of the file.
    pub fn spaces_given_up(&self) -> (u64, usize) {
        let s = self.state.lock();
        let all = s.volume_pages.div_ceil(u64::from(self.layout.space_pages())) as u32;
        let waits = |space: &u32| {
            let at = self.layout.dir_page(*space).0;
            s.waiting.overlapping(at, at + 1).next().is_some()
        };
        (s.given_up, (1..all).filter(waits).count())
    }

    /// Whether the last space may hold its directory alone: a hint, without a look at pages.
    ///
    /// # Errors
    /// As [`Allocator::pages_in_use`].
    pub fn has_empty_space(&self) -> Result<bool> {
        let mut s = self.state.lock();
        let Some(last) = s.spaces.checked_sub(1).filter(|last| *last > 0) else { return Ok(false) };
        let base = self.layout.dir_page(last).0;
        let end = s.volume_pages.min(base + u64::from(self.layout.space_pages()));
        let free = u64::from(self.tree(&mut s, last)?.free_pages());
        let holes: u64 = s.holes.overlapping(base, end).map(|run| run.len).sum();
        Ok(free + holes + 1 >= end - base && s.claimed(base, end).next().is_none())
    }
}
