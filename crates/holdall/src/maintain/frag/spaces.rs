//! Space directories: what is free, in which runs, and which of them have no blocks.
//!
//! Owns: no state. A page that the snapshot's bitmap calls free may wait, be reserved, or be a
//! hole: that is the allocator's knowledge.

use super::map::PageUse;
use super::walk::Walk;
use crate::space;
use holdall_core::RunSet;
use holdall_core::page::PageKind;
use holdall_core::space_dir::SpaceDir;
use holdall_core::{PageNo, PageRead, PageRun, Result};
use std::cmp::Reverse;

/// Bytes of the shortest free run that may be a hole.
const LEAST_HOLE: u64 = 64 << 10;

impl Walk<'_> {
    /// Enters every page of the volume as in use or free.
    ///
    /// # Errors
    /// [`holdall_core::Error::Corrupt`], [`holdall_core::Error::Io`].
    pub(super) fn spaces(&mut self) -> Result<()> {
        let mut unknown = Vec::new();
        for space in 0..self.layout.spaces(self.picture.volume_pages)? {
            let kinds = self.kinds(space)?;
            self.enter(self.layout.page_at(space, 0), &kinds, &mut |run| {
                unknown.push((run, space));
            });
            self.tick();
        }
        unknown.retain(|(_, space)| self.picture.unknown.contains(space));
        self.assume_holes(unknown.into_iter().map(|(run, _)| run).collect());
        Ok(())
    }

    /// The pages of a space as far as it lies in the volume.
    fn kinds(&self, space: u32) -> Result<Vec<PageUse>> {
        let inside = self.layout.pages_inside(space, self.picture.volume_pages);
        let mut kinds = vec![PageUse::Free; inside as usize];
        if space < self.spaces {
            let bytes = self.state.page(self.layout.dir_page(space), PageKind::SpaceDir)?;
            let dir = SpaceDir::open(self.layout, space, &*bytes)?;
            for (index, kind) in (0..).zip(&mut kinds) {
                if dir.is_allocated(index) {
                    *kind = PageUse::Metadata;
                }
            }
        }
        let base = self.layout.page_at(space, 0).0;
        let mut mark = |set: &RunSet, to: PageUse| {
            for run in set.overlapping(base, base + u64::from(inside)) {
                let at = (run.start.0 - base) as usize;
                let pages = kinds.iter_mut().skip(at).take(run.len as usize);
                // What the snapshot sees in use counts as such.
                pages.filter(|k| **k == PageUse::Free).for_each(|k| *k = to);
            }
        };
        mark(&self.picture.waiting, PageUse::Waiting);
        mark(&self.picture.reserved, PageUse::Reserved);
        mark(&self.picture.holes, PageUse::Hole);
        Ok(kinds)
    }

    /// Counts the pages from `base` on; `long` gets the free runs with blocks that could be holes.
    fn enter(&mut self, base: PageNo, kinds: &[PageUse], long: &mut dyn FnMut(PageRun)) {
        let size = self.page_size();
        let (mut at, mut free) = (base.0, 0);
        for same in kinds.chunk_by(|a, b| a == b) {
            let run = PageRun::new(PageNo(at), same.len() as u64);
            at = run.end();
            let kind = same.first().copied().unwrap_or(PageUse::Free);
            self.map.add(run, kind);
            match kind {
                PageUse::Free | PageUse::Hole => {
                    free += run.len;
                    if kind == PageUse::Free && run.len * size >= LEAST_HOLE {
                        long(run);
                    }
                    // Without punching even what was taken for a hole has blocks.
                    let short = kind == PageUse::Free && run.len * size < space::LEAST_HOLE;
                    self.sums.kept_pages += if short || self.cannot_punch { run.len } else { 0 };
                    continue;
                }
                PageUse::Waiting => self.waiting_pages += run.len,
                PageUse::Reserved => self.reserved_pages += run.len,
                _ => {}
            }
            self.free_run(std::mem::take(&mut free));
        }
        self.free_run(free);
    }

    fn free_run(&mut self, pages: u64) {
        if pages > 0 {
            let bytes = pages * self.page_size();
            self.free_runs.add(bytes, bytes);
            self.longest_free = self.longest_free.max(bytes);
        }
    }

    /// Where the store does not know its holes, the file's blocks say how many there are. The
    /// longest runs were punched first.
    fn assume_holes(&mut self, mut runs: Vec<PageRun>) {
        let size = self.page_size();
        let missing = self.picture.volume_pages.saturating_sub(self.blocks.div_ceil(size));
        let mut missing = missing.saturating_sub(self.map.total(PageUse::Hole));
        runs.sort_unstable_by_key(|run| (Reverse(run.len), run.start));
        for run in runs {
            let part = PageRun::new(run.start, run.len.min(missing));
            if part.len * size < LEAST_HOLE {
                break;
            }
            missing -= self.map.change(part, PageUse::Free, PageUse::Hole);
            self.holes_assumed = true;
        }
    }
}
