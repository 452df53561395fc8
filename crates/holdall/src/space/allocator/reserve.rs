//! Reserving: what is free, what growth adds, what can be made free, in this order.

use super::{Allocator, AllocatorState, Class, HOLES_LEAST, Near};
use holdall_core::{Error, PageRun, Result};
use parking_lot::MutexGuard;

/// The fewest pages of a request for which a checkpoint is made rather than pieces.
const WHOLE: u64 = 16;

impl Allocator {
    /// Reserves one run of at most `want` pages. A shorter run is taken if it has at
    /// least `least` pages; else the volume grows. If nothing is free that `class` may have, a
    /// checkpoint makes free what waits, the oldest snapshot is given up if it holds pages, and
    /// sparse heap pages are emptied, in this order. Cost: in a steady state the directory
    /// pages are in memory (Biliris §3.1: at most one access).
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`], [`Error::Corrupt`].
    pub fn reserve(&self, want: u64, least: u64, near: Near, class: Class) -> Result<PageRun> {
        let want = want.clamp(1, u64::from(self.layout.space_pages()));
        let mut s = self.open_state()?;
        let full = match self.reserve_free(&mut s, want, least, near, class)? {
            Ok(run) => return Ok(run),
            Err(why) => why,
        };
        let Some(store) = self.pager.housekeeping() else { return Err(Error::Full(full)) };
        let mut waited = false;
        loop {
            if self.allowed(&mut s, class)? > 0 {
                if s.waiting.pages() > 0 {
                    drop(s);
                    store.free_waiting()?;
                    s = self.open_state()?;
                    self.release_ready(&mut s)?;
                }
                let want = want.min(self.allowed(&mut s, class)?);
                loop {
                    if let Some(run) = self.find_any(&mut s, want, near)? {
                        return Ok(run);
                    }
                    // Rather a reader that is old than a writer that cannot go on.
                    let expired = self.expire(&mut s)?;
                    if !expired && !MutexGuard::unlocked(&mut s, || store.give_up_scratch()) {
                        break;
                    }
                }
            }
            // What old versions take may be all that is left.
            if MutexGuard::unlocked(&mut s, || store.give_up_scratch()) {
                continue;
            }
            if !waited && self.await_moves(&mut s) {
                waited = true;
                continue;
            }
            drop(s);
            if !store.clone().compact(want)? {
                return Err(Error::Full(full));
            }
            s = self.open_state()?;
        }
    }

    /// What is free now, or by growth; why there is nothing.
    fn reserve_free(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        want: u64,
        least: u64,
        near: Near,
        class: Class,
    ) -> Result<Result<PageRun, String>> {
        let allowed = self.allowed(s, class)?;
        if allowed == 0 {
            let (most, kept) = (self.limits.max_bytes, self.reserve_bytes());
            let why = format!("of the {most} bytes that the store may have {kept} are kept free");
            return Ok(Err(why));
        }
        let want = want.min(allowed);
        let least = least.clamp(1, want);
        if let Near::Growing(growing) = near
            && let Some(run) = self.find_growing(s, want, growing)?
        {
            return Ok(Ok(run));
        }
        if let Some(run) = self.find_whole(s, want, near, class)? {
            return Ok(Ok(run));
        }
        let least = if self.rather_grows(s, want) { least } else { least.min(want.div_ceil(8)) };
        if let Some(run) = self.find(s, want, least, near)? {
            return Ok(Ok(run));
        }
        if self.release_ready(s)?
            && let Some(run) = self.find(s, want, least, near)?
        {
            return Ok(Ok(run));
        }
        // Rather a hole than a larger file.
        while self.fill_hole(s, want, least)? {
            if let Some(run) = self.find(s, want, least, near)? {
                return Ok(Ok(run));
            }
        }
        let full = match self.grow(s, want) {
            Ok(()) => {
                let found = self.find(s, want, least, near)?;
                let found = if found.is_some() { found } else { self.find(s, want, 1, near)? };
                return Ok(found.ok_or_else(|| "no page left after growing".into()));
            }
            Err(Error::Full(why)) => why,
            Err(e) => return Err(e),
        };
        // Too little room for all of it; what is there in pieces still serves.
        Ok(self.find_any(s, want, near)?.ok_or(full))
    }

    /// Whether the volume rather grows than that `want` pages lie in pieces: as long as few are free,
    /// or no more than may keep their blocks and holes do not make it much longer than it is full.
    pub(super) fn rather_grows(&self, s: &AllocatorState, want: u64) -> bool {
        let few = s.free <= s.volume_pages / 1024 + HOLES_LEAST;
        let long = s.free + s.holes.pages() > s.volume_pages / 4;
        (few || s.free <= self.kept_pages(s) && !long) && self.may_grow(s, want)
    }

    /// A run of exactly `want` pages, for which a checkpoint is made if that frees one: what
    /// is replaced over and over in a nearly full volume so fills the runs that it leaves,
    /// instead of the crumbs between them.
    fn find_whole(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        want: u64,
        near: Near,
        class: Class,
    ) -> Result<Option<PageRun>> {
        let found = self.find(s, want, want, near)?;
        if found.is_some() || self.may_grow(s, want) {
            return Ok(found);
        }
        if self.spend_windows(s)?
            && let Some(run) = self.find(s, want, want, near)?
        {
            return Ok(Some(run));
        }
        if want < WHOLE || !self.frees_with_checkpoint(s, want) {
            return Ok(None);
        }
        let Some(store) = self.pager.housekeeping() else { return Ok(None) };
        MutexGuard::unlocked(s, || store.free_waiting())?;
        self.release_ready(s)?;
        // Others may have been served meanwhile.
        if self.allowed(s, class)? < want { Ok(None) } else { self.find(s, want, want, near) }
    }

    /// Whether a checkpoint now would free a run of `want` pages.
    fn frees_with_checkpoint(&self, s: &AllocatorState, want: u64) -> bool {
        let upto = self.pager.horizon.oldest();
        let mut new = s.queue.iter().filter(|f| f.lsn > s.checkpointed && f.lsn <= upto);
        new.any(|f| f.runs.iter().any(|run| run.len >= want))
    }

    /// A piece of at most `want` pages, in a hole if nowhere else, by growth of a few pages.
    fn find_any(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        want: u64,
        near: Near,
    ) -> Result<Option<PageRun>> {
        loop {
            if let Some(run) = self.find(s, want, 1, near)? {
                return Ok(Some(run));
            }
            let more = self.spend_windows(s)? || self.fill_hole(s, want, 1)?;
            if !more && !self.grow_in_part(s, want)? {
                return Ok(None);
            }
        }
    }

    /// Reserves one run of exactly `want` pages for a move, if one is free, or by growth if it `may`
    /// grow: nobody waits. At most [`Allocator::most_to_move`].
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn reserve_to_move(&self, want: u64, mut may: bool) -> Result<Option<PageRun>> {
        if want == 0 || want > u64::from(self.layout.space_pages()) {
            return Ok(None);
        }
        let mut s = self.open_state()?;
        self.release_ready(&mut s)?;
        loop {
            if let Some(run) = self.find(&mut s, want, want, Near::Anywhere)? {
                self.moves(&mut s, run);
                return Ok(Some(run));
            }
            if self.fill_hole(&mut s, want, want)? {
                continue;
            }
            if !may || self.allowed(&mut s, Class::Data)? < want || !self.may_grow(&s, want) {
                return Ok(None);
            }
            may = false;
            match self.grow(&mut s, want) {
                Err(Error::Full(_)) => return Ok(None),
                other => other?,
            }
        }
    }

    /// Reserves at most `want` neighbouring pages for old versions of others: of what is free and
    /// users' data may have, or by growth. `None` if there is none; no snapshot is given up for it.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`].
    pub fn reserve_scratch(&self, want: u64) -> Result<Option<PageRun>> {
        let mut s = self.state.lock();
        if s.closed {
            return Ok(None);
        }
        Ok(self.reserve_free(&mut s, want.max(1), 1, Near::Anywhere, Class::Data)?.ok())
    }

    /// Reserves at most `want` pages that need not lie together: of a volume with holes, one
    /// of the holes too short for most data.
    ///
    /// # Errors
    /// As [`Allocator::reserve`].
    pub fn reserve_pages(&self, want: u64, near: Near, class: Class) -> Result<PageRun> {
        let mut s = self.open_state()?;
        let want = want.min(self.allowed(&mut s, class)?.max(1));
        if want > 1
            && s.has_holes()
            && let Some(run) = self.find_crumb(&mut s, want as u32)?
        {
            return Ok(run);
        }
        drop(s);
        self.reserve(want, 1, near, class)
    }
}
