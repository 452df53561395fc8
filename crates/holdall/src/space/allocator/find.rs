//! Where a request is served: at the place asked for, in a window there, in a hole it fills, behind the last run,
//! in the smallest block or run that holds it, in pieces; in this order.

use super::{Allocator, AllocatorState, Growing, Near};
use holdall_core::buddy::{least_order_for, order_for};
use holdall_core::{PageNo, PageRun, Result};
use parking_lot::MutexGuard;

/// Spaces looked into where a run may but need not be: the search stays bounded.
const MOST_VISITS: usize = 8;
/// Holes of this many pages serve pages that need not lie together.
const CRUMB: u32 = 4;

impl Allocator {
    pub(super) fn find(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        want: u64,
        least: u64,
        near: Near,
    ) -> Result<Option<PageRun>> {
        if let Near::At(page) | Near::Growing(Growing { at: Some(page), .. }) = near {
            let window = self.take_window(s, page, (want, least))?;
            let found = if window.is_some() { window } else { self.take_at(s, page, want, least)? };
            if let Some(run) = found {
                // What is written next lies behind it, also if it proves too long and is cut.
                if s.cursor == run.start {
                    s.cursor = PageNo(run.end());
                }
                return Ok(found);
            }
        }
        if s.has_holes()
            && let Some(run) = self.find_hole(s, want as u32)?
        {
            return Ok(Some(run));
        }
        // Right behind the last one: what is written together lies together, and no holes are
        // left between, as blocks of powers of two would (design.md, "Space").
        let cursor = s.cursor;
        let close = match near {
            Near::Page(page) => self.space_of(page) == self.space_of(cursor),
            Near::At(_) | Near::Growing(_) | Near::Anywhere => true,
        };
        // If that is taken, in what growth has added, from its front: a page at its end would
        // keep the file long.
        for at in [cursor, PageNo(s.fresh)].into_iter().filter(|_| close) {
            if let Some(run) = self.take_at(s, at, want, want)? {
                s.cursor = PageNo(run.end());
                return Ok(Some(run));
            }
        }
        if let Near::Page(page) = near
            && let Some(run) = self.take_in(s, self.space_of(page), want as u32)?
        {
            return Ok(Some(run));
        }
        if let Some(run) = self.find_block(s, want as u32)? {
            s.cursor = PageNo(run.end());
            return Ok(Some(run));
        }
        if least == want { Ok(None) } else { self.find_piece(s, want as u32, least as u32) }
    }

    fn space_of(&self, page: PageNo) -> u32 {
        (page.0 / u64::from(self.layout.space_pages())) as u32
    }

    /// The pages from `page` on, up to `want` of them, if at least `least` are free.
    pub(super) fn take_at(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        page: PageNo,
        want: u64,
        least: u64,
    ) -> Result<Option<PageRun>> {
        if page.0 >= s.volume_pages {
            return Ok(None);
        }
        let (space, index) = self.layout.split(page)?;
        let tree = self.tree(s, space)?;
        let got = tree.alloc_at(index, want as u32);
        if got > 0 && u64::from(got) >= least {
            return Ok(Some(self.taken(s, space, index, got)));
        }
        if got > 0 {
            tree.free(index, got)?;
        }
        Ok(None)
    }

    /// A run of exactly `want` pages of one space.
    fn take_in(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        space: u32,
        want: u32,
    ) -> Result<Option<PageRun>> {
        if u64::from(space) * u64::from(self.layout.space_pages()) >= s.volume_pages {
            return Ok(None);
        }
        let run = self.tree(s, space)?.alloc(want);
        Ok(run.map(|run| self.taken(s, space, run.start, run.len)))
    }

    /// `want` pages of a hole not much larger, in one of a few spaces: long runs stay whole,
    /// and what is left over is seldom too short for anything.
    fn find_hole(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        want: u32,
    ) -> Result<Option<PageRun>> {
        let mut from = s.holes_from;
        for _ in 0..MOST_VISITS.min(s.trees.len()) {
            let next = s.directory.next_from(from, least_order_for(want));
            let Some(space) = next.or_else(|| s.directory.next_from(0, least_order_for(want)))
            else {
                return Ok(None);
            };
            if let Some(run) = self.tree(s, space)?.alloc_snug(want, want + want / 2 + 2) {
                s.holes_from = space;
                return Ok(Some(self.taken(s, space, run.start, run.len)));
            }
            from = space + 1;
        }
        s.holes_from = from;
        Ok(None)
    }

    /// The whole of a hole of a few pages, at most `most`, in one of a few spaces.
    pub(super) fn find_crumb(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        most: u32,
    ) -> Result<Option<PageRun>> {
        let mut from = s.crumbs_from;
        for _ in 0..MOST_VISITS.min(s.trees.len()) {
            let next = s.directory.next_from(from, 0);
            let Some(space) = next.or_else(|| s.directory.next_from(0, 0)) else {
                return Ok(None);
            };
            s.crumbs_from = space;
            if let Some(run) = self.tree(s, space)?.alloc_shortest(most.min(CRUMB)) {
                return Ok(Some(self.taken(s, space, run.start, run.len)));
            }
            from = space + 1;
        }
        s.crumbs_from = from;
        Ok(None)
    }

    /// A run of exactly `want` pages: in the lowest space with a block that holds it, else in
    /// one of a few where neighbouring smaller blocks may.
    pub(super) fn find_block(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        want: u32,
    ) -> Result<Option<PageRun>> {
        match self.find_exact(s, want, order_for(want), usize::MAX)? {
            None => self.find_exact(s, want, least_order_for(want), MOST_VISITS),
            found => Ok(found),
        }
    }

    fn find_exact(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        want: u32,
        order: u8,
        visits: usize,
    ) -> Result<Option<PageRun>> {
        let mut from = 0;
        for _ in 0..visits {
            let Some(space) = s.directory.next_from(from, order) else { break };
            let tree = self.tree(s, space)?;
            if let Some(run) = tree.alloc(want) {
                return Ok(Some(self.taken(s, space, run.start, run.len)));
            }
            let largest = tree.largest();
            s.directory.set(space, largest);
            from = space + 1;
        }
        Ok(None)
    }

    /// The longest run there is of at most `want` and at least `least` pages.
    fn find_piece(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        want: u32,
        least: u32,
    ) -> Result<Option<PageRun>> {
        for order in (0..=order_for(want)).rev().take_while(|o| (2u64 << o) > u64::from(least)) {
            let mut from = 0;
            while let Some(space) = s.directory.next_from(from, order) {
                let tree = self.tree(s, space)?;
                match tree.alloc_up_to(want) {
                    Some(run) if run.len >= least => {
                        return Ok(Some(self.taken(s, space, run.start, run.len)));
                    }
                    Some(run) => tree.free(run.start, run.len)?,
                    None => {}
                }
                let largest = tree.largest();
                s.directory.set(space, largest);
                from = space + 1;
            }
        }
        Ok(None)
    }
}
