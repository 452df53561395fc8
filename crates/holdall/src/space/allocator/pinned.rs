//! Freed pages that open snapshots see, told apart from those that came and went after them.
//!
//! A snapshot needs what its own bitmaps have in use. What was allocated after it and freed again is
//! free for it, however long it stays open (rule 16).

use super::{Allocator, AllocatorState};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::space_dir::SpaceDir;
use holdall_core::{Lsn, PageNo, PageRun, Result, root_page};
use parking_lot::MutexGuard;
use std::collections::BTreeMap;
use std::ops::Range;

/// A run, and the commit that freed it.
type FreedRun = (Lsn, PageRun);

/// What waits for open snapshots alone.
#[derive(Debug, Default)]
pub(super) struct Pinned {
    /// By the oldest open snapshot that sees it.
    by_state: BTreeMap<Lsn, Vec<FreedRun>>,
}

impl Pinned {
    /// Pages that a snapshot at `lsn` sees: it sees what an older one does, unless it was freed
    /// between the two.
    pub(super) fn pages(&self, lsn: Lsn) -> u64 {
        let runs = self.by_state.range(..=lsn).flat_map(|(_, runs)| runs);
        runs.filter(|(freed, _)| *freed > lsn).map(|(_, run)| run.len).sum()
    }

    /// Pages that one of the `open` states sees, these in order.
    pub(super) fn all_pages(&self, open: &[Lsn]) -> u64 {
        let seen = |state: &Lsn, freed: &Lsn| {
            open.get(open.partition_point(|open| open < state)).is_some_and(|open| open < freed)
        };
        let all =
            self.by_state.iter().flat_map(|(state, runs)| runs.iter().map(move |r| (state, r)));
        all.filter(|(state, (freed, _))| seen(state, freed)).map(|(_, (_, run))| run.len).sum()
    }

    /// The oldest state that anything waits for.
    pub(super) fn oldest(&self) -> Option<Lsn> {
        self.by_state.keys().next().copied()
    }
}

impl Allocator {
    /// Sorts out what waits behind the last checkpoint: what no open snapshot sees is free. Cost: for
    /// each snapshot a look at the root and at the directories of what was freed since the last
    /// checkpoint.
    ///
    /// # Errors
    /// [`Error::Corrupt`](holdall_core::Error::Corrupt) if the allocator contradicts itself.
    pub(super) fn release_unseen(&self, s: &mut MutexGuard<'_, AllocatorState>) -> Result<()> {
        // In this order: who opens a snapshot later sees at least this.
        let limit = self.pager.horizon.oldest_new().min(s.checkpointed);
        let open = self.open_states();
        while s.queue.front().is_some_and(|freed| freed.lsn <= limit) {
            let Some(freed) = s.queue.pop_front() else { break };
            for run in freed.runs {
                self.release_or_pin(s, (freed.lsn, run), &open)?;
            }
        }
        Ok(())
    }

    /// Sorts out anew what waits for snapshots that are closed by now. Returns whether any became
    /// free. Cost: mostly the look at one number.
    ///
    /// # Errors
    /// As [`Allocator::release_unseen`].
    pub(super) fn release_pinned(&self, s: &mut MutexGuard<'_, AllocatorState>) -> Result<bool> {
        if s.pinned.by_state.is_empty() {
            return Ok(false);
        }
        let open = self.open_states();
        let gone = |state: &Lsn| open.binary_search(state).is_err();
        let closed: Vec<Lsn> = s.pinned.by_state.keys().copied().filter(gone).collect();
        let before = s.waiting.pages();
        for state in closed {
            for freed in s.pinned.by_state.remove(&state).unwrap_or_default() {
                self.release_or_pin(s, freed, &open)?;
            }
        }
        Ok(s.waiting.pages() < before)
    }

    /// The states that open snapshots see, in order.
    pub(super) fn open_states(&self) -> Vec<Lsn> {
        let open = self.pager.horizon.open_snapshots();
        let mut open: Vec<Lsn> = open.into_iter().map(|open| open.lsn).collect();
        open.sort_unstable();
        open.dedup();
        open
    }

    /// Makes free what none of the `open` states has in use of a run; the rest waits for the oldest
    /// that has.
    fn release_or_pin(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        (lsn, run): FreedRun,
        open: &[Lsn],
    ) -> Result<()> {
        let mut parts = vec![run];
        for state in open.iter().take_while(|state| **state < lsn) {
            for part in std::mem::take(&mut parts) {
                for (part, seen) in self.seen_in(part, *state) {
                    match seen {
                        true => s.pinned.by_state.entry(*state).or_default().push((lsn, part)),
                        false => parts.push(part),
                    }
                }
            }
        }
        parts.into_iter().try_for_each(|part| self.release(s, part))
    }

    /// The run cut where a state's bitmap changes, and whether each part is in use in it. What cannot
    /// be read is.
    fn seen_in(&self, run: PageRun, state: Lsn) -> Vec<(PageRun, bool)> {
        if mutation::is(Mutation::R16Bitmap) {
            return vec![(run, false)];
        }
        let root = self.pager.volume.superblock().root;
        let root = self.pager.page_of_state(root, PageKind::Root, state);
        let spaces = root.map_or(u32::MAX, |root| root_page::spaces(&root));
        let n = u64::from(self.layout.space_pages());
        let (mut parts, mut at): (Vec<(PageRun, bool)>, u64) = (Vec::new(), run.start.0);
        while at < run.end() {
            let (space, end) = ((at / n) as u32, run.end().min((at / n + 1) * n));
            let pages = (at % n) as u32..(at % n + end - at) as u32;
            let bits = match space < spaces {
                true => self.bits(space, pages.clone(), state),
                // It came later.
                false => Ok(vec![false; pages.len()]),
            };
            let bits = bits.unwrap_or_else(|_| vec![true; pages.len()]);
            for (no, seen) in (at..end).zip(bits) {
                match parts.last_mut() {
                    Some((part, was)) if *was == seen => part.len += 1,
                    _ => parts.push((PageRun::new(PageNo(no), 1), seen)),
                }
            }
            at = end;
        }
        parts
    }

    /// Whether each of these pages of a space is in use in a state.
    fn bits(&self, space: u32, pages: Range<u32>, state: Lsn) -> Result<Vec<bool>> {
        let directory = self.layout.dir_page(space);
        let page = self.pager.page_of_state(directory, PageKind::SpaceDir, state)?;
        let dir = SpaceDir::open(self.layout, space, &*page)?;
        Ok(pages.map(|index| dir.is_allocated(index)).collect())
    }
}
