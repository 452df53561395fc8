//! Reserving what lies free around a run that is in use, to make one longer run of it.

use super::Allocator;
use holdall_core::{PageNo, PageRun, Result};

impl Allocator {
    /// Reserves the free pages directly before and behind `run`, which is in use, if the three
    /// have `pages` pages together, and returns the whole. Cost: a pass over the space's bitmap.
    ///
    /// # Errors
    /// [`Error::Io`](holdall_core::Error::Io), [`Error::Corrupt`](holdall_core::Error::Corrupt).
    pub fn reserve_around(&self, run: PageRun, pages: u64) -> Result<Option<PageRun>> {
        let (space, index) = self.layout.split(run.start)?;
        let mut s = self.open_state()?;
        let tree = self.tree(&mut s, space)?;
        let end = index + run.len as u32;
        let before = tree.free_runs().find(|r| r.end() == index).map_or(0, |r| r.len);
        let behind = tree.free_runs_from(end).next().filter(|r| r.start == end);
        let behind = behind.map_or(0, |r| r.len);
        if u64::from(before) + run.len + u64::from(behind) < pages {
            return Ok(None);
        }
        for (at, len) in [(index - before, before), (end, behind)] {
            if let Some(tree) = s.trees.get_mut(space).filter(|_| len > 0) {
                let taken = tree.alloc_at(at, len);
                let run = self.taken(&mut s, space, at, taken);
                self.moves(&mut s, run);
            }
        }
        let start = PageNo(run.start.0 - u64::from(before));
        Ok(Some(PageRun::new(start, u64::from(before) + run.len + u64::from(behind))))
    }

    /// Reserves exactly `run`, if all of it is free. Returns whether it is reserved.
    ///
    /// # Errors
    /// As [`Allocator::reserve_around`].
    pub fn reserve_exactly(&self, run: PageRun) -> Result<bool> {
        let mut s = self.open_state()?;
        self.release_ready(&mut s)?;
        let taken = self.take_at(&mut s, run.start, run.len, run.len)?;
        taken.into_iter().for_each(|run| self.moves(&mut s, run));
        Ok(taken.is_some())
    }

    /// Gives back what [`Allocator::reserve_around`] reserved.
    ///
    /// # Errors
    /// As [`Allocator::unreserve`].
    pub fn unreserve_around(&self, whole: PageRun, run: PageRun) -> Result<()> {
        for (from, to) in [(whole.start.0, run.start.0), (run.end(), whole.end())] {
            if from < to {
                self.unreserve(PageRun::new(PageNo(from), to - from))?;
            }
        }
        Ok(())
    }
}
