//! Who may have the last free pages of a bounded volume (rule 25).
//!
//! Owns: [`Class`], the size of the reserve. Nothing is set aside: a request is refused if it
//! would leave fewer free pages than its class has to.

use super::{Allocator, AllocatorState};
use crate::cache::thread_number;
use holdall_core::mutation::{self, Mutation};
use holdall_core::{PageRun, Result};
use parking_lot::MutexGuard;
use std::time::Duration;

/// Of whom a request is; the later may use more of the reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Bytes of users' objects: they leave the reserve alone.
    Data,
    /// Pages of a transaction, records and names among them: they leave half of it.
    Pages,
    /// Whatever makes free more than it takes: it may have all.
    Shrink,
}

/// How long a request waits for a move: one of half a GB takes as long.
const MOST_WAIT: Duration = Duration::from_secs(5);
/// The reserve as a share of what the volume may have.
const SHARE: u64 = 128;
/// Its least pages: what one transaction needs beside its data.
const LEAST_PAGES: u64 = 32;
/// Its most bytes, if these are more.
const MOST_BYTES: u64 = 16 << 20;

impl Allocator {
    /// Whether pages run out: at most `more` are left beside the reserve.
    pub fn is_short(&self, more: u64) -> bool {
        let reserve = self.kept_reserve();
        reserve > 0 && self.available(&mut self.state.lock()).is_ok_and(|all| all <= reserve + more)
    }

    /// The longest run that a move may reserve, in pages: a quarter of the reserve, or half of
    /// what is free beyond it.
    pub fn most_to_move(&self) -> u64 {
        let reserve = self.kept_reserve();
        if reserve == 0 {
            return u64::MAX;
        }
        // What cannot be counted is no reason to move much.
        let all = self.available(&mut self.state.lock()).unwrap_or(0);
        (reserve / 4).max(all.saturating_sub(reserve) / 2)
    }

    /// Notes that `run` is reserved for a move of this thread.
    pub(super) fn moves(&self, s: &mut MutexGuard<'_, AllocatorState>, run: PageRun) {
        s.moving.insert(run);
        s.mover = thread_number();
    }

    /// `run` is reserved no more.
    pub(super) fn note_moved(&self, s: &mut MutexGuard<'_, AllocatorState>, run: PageRun) {
        if s.moving.pages() > 0 {
            s.moving.remove(run);
            self.moved.notify_all();
        }
    }

    /// Waits until what is being moved has been, if others do it and need not wait for this
    /// thread. Returns whether it waited.
    pub(super) fn await_moves(&self, s: &mut MutexGuard<'_, AllocatorState>) -> bool {
        let others = s.moving.pages() > 0 && s.mover != thread_number();
        if !others || self.pager.holds_writer() {
            return false;
        }
        self.moved.wait_while_for(s, |s| s.moving.pages() > 0, MOST_WAIT);
        true
    }

    /// Pages that a request of this class may have now, after a checkpoint if need be.
    pub(super) fn allowed(
        &self,
        s: &mut MutexGuard<'_, AllocatorState>,
        class: Class,
    ) -> Result<u64> {
        let kept = match class {
            Class::Data => self.kept_reserve(),
            Class::Pages => self.kept_reserve() / 2,
            Class::Shrink => 0,
        };
        // What is being moved comes back.
        let kept = kept.saturating_sub(s.moving.pages());
        if kept == 0 || mutation::is(Mutation::R25Classes) {
            return Ok(u64::MAX);
        }
        Ok(self.available(s)?.saturating_sub(kept))
    }

    /// Bytes that stay free for pages of transactions, for deleting and for maintenance: a 128th
    /// of `max_bytes`, at least 32 pages, at most 16 MiB; none if the volume has no bound, or one
    /// of less than 256 pages.
    pub fn reserve_bytes(&self) -> u64 {
        let least = LEAST_PAGES * self.layout.page_size() as u64;
        if self.limits.max_bytes == u64::MAX || self.limits.max_bytes < 8 * least {
            return 0;
        }
        (self.limits.max_bytes / SHARE).min(MOST_BYTES).max(least)
    }

    fn kept_reserve(&self) -> u64 {
        self.reserve_bytes() / self.layout.page_size() as u64
    }

    /// Pages that are free, may be grown by, or wait; all of them if they are many. Cost: the
    /// first time that a volume is nearly full, all its directories.
    fn available(&self, s: &mut MutexGuard<'_, AllocatorState>) -> Result<u64> {
        let n = u64::from(self.layout.space_pages());
        // An opening may allow less than the file has.
        let growth = self.max_pages().saturating_sub(s.volume_pages);
        let spaces = s.volume_pages.div_ceil(n);
        if growth > 2 * n {
            return Ok(u64::MAX);
        }
        if s.trees.known() < spaces {
            for space in
                (0..spaces as u32).filter(|space| !s.trees.knows(*space)).collect::<Vec<_>>()
            {
                self.tree(s, space)?;
            }
        }
        Ok(growth + s.free + s.windows.pages() + s.holes.pages() + s.waiting.pages())
    }
}
