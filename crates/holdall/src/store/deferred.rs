//! Deferred commits: durable within [`Options::defer`](super::Options::defer).
//!
//! Owns: [`Deferred`], since when a commit waits to become durable. The store's flushing thread
//! sees to it; where there is none, the next call of the store after that time does.

use super::inner::Inner;
use holdall_core::Result;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

/// Since when deferred commits wait.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// Nanoseconds of the storage's clock plus one; 0 where none waits.
    since: AtomicU64,
    /// Whether a thread flushes them.
    has_thread: AtomicBool,
}

/// Bytes of commits not yet written that are worth a write of their own.
const MUCH_BYTES: u64 = 1 << 20;

impl Inner {
    /// Says whether a thread flushes deferred commits.
    pub(super) fn set_flushed_by_thread(&self, there_is: bool) {
        self.deferred.has_thread.store(there_is, SeqCst);
    }

    /// After a deferred commit: sees to it that it becomes durable in time.
    pub(super) fn after_deferred(&self) -> Result<()> {
        self.note_time();
        if self.deferred.has_thread.load(SeqCst) {
            self.ask_for_flush();
        } else {
            let now = self.now_in_nanos();
            // One that waits longer already decides.
            let _waits = self.deferred.since.compare_exchange(0, now, SeqCst, SeqCst);
            if self.pager.log.usage().unwritten > MUCH_BYTES {
                self.flush_deferred()?;
            }
        }
        self.after_commit()
    }

    /// Makes deferred commits durable whose time is over, where no thread does. Called at the
    /// begin of every call of the store. Cost: mostly the look at one number.
    ///
    /// # Errors
    /// [`Error::Poisoned`](holdall_core::Error::Poisoned).
    #[inline]
    pub(super) fn flush_overdue(&self) -> Result<()> {
        match self.deferred.since.load(SeqCst) {
            0 => Ok(()),
            since => self.flush_since(since),
        }
    }

    #[cold]
    fn flush_since(&self, since: u64) -> Result<()> {
        let most = u64::try_from(self.options.defer.as_nanos()).unwrap_or(u64::MAX);
        if self.now_in_nanos() - 1 < since.saturating_sub(1).saturating_add(most) {
            return Ok(());
        }
        self.flush_deferred()
    }

    fn flush_deferred(&self) -> Result<()> {
        // Before the flush: a commit that comes meanwhile waits anew.
        self.deferred.since.store(0, SeqCst);
        self.pager.flush()
    }

    fn now_in_nanos(&self) -> u64 {
        u64::try_from(self.storage.now().as_nanos()).unwrap_or(u64::MAX).saturating_add(1)
    }
}
