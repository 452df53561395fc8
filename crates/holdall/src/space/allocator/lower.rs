//! Reserving what lies low, for moves that make the end of the file free.

use super::Allocator;
use holdall_core::{PageNo, PageRun, Result, RunSet};

impl Allocator {
    /// Reserves free pages below page `line` for a move: the first run of `want` pages from page
    /// `from` on, else of a hole anywhere, else the longest there is, at most `want` pages. `None`
    /// if nothing is free there. Cost: a pass over the free runs between the two, and if they do
    /// not have it, over the holes; filling one is a call.
    ///
    /// # Errors
    /// [`Error::Io`](holdall_core::Error::Io), [`Error::Corrupt`](holdall_core::Error::Corrupt).
    pub fn reserve_below(&self, from: u64, line: u64, want: u64) -> Result<Option<PageRun>> {
        let n = u64::from(self.layout.space_pages());
        let mut s = self.open_state()?;
        self.release_ready(&mut s)?;
        let line = line.min(s.volume_pages);
        let mut best = PageRun::new(PageNo(0), 0);
        'spaces: for space in (from / n) as u32..line.div_ceil(n) as u32 {
            let base = u64::from(space) * n;
            let index = from.saturating_sub(base) as u32;
            for run in self.tree(&mut s, space)?.free_runs_from(index) {
                let start = base + u64::from(run.start);
                let len = u64::from(run.len).min(line.saturating_sub(start)).min(want);
                if len > best.len {
                    best = PageRun::new(PageNo(start), len);
                }
                if best.len == want || start >= line {
                    break 'spaces;
                }
            }
        }
        if best.len < want
            && let Some(hole) = longest_below(&s.holes, line, want)
            && hole.len > best.len
            && self.fill(&mut s, hole, want)?
        {
            best = PageRun::new(hole.start, hole.len.min(want));
        }
        let taken = match best.len {
            0 => None,
            len => self.take_at(&mut s, best.start, len, 1)?,
        };
        taken.into_iter().for_each(|run| self.moves(&mut s, run));
        Ok(taken)
    }
}

/// The first hole of `want` pages before page `line`, else the longest there.
fn longest_below(holes: &RunSet, line: u64, want: u64) -> Option<PageRun> {
    let mut best: Option<PageRun> = None;
    for hole in holes.overlapping(0, line) {
        if best.is_none_or(|best| hole.len > best.len) {
            best = Some(hole);
        }
        if hole.len >= want {
            break;
        }
    }
    best
}
