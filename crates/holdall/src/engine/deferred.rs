//! Deferred commits: durable within [`Options::defer`](super::Options::defer).
//!
//! Owns: [`Deferred`], since when a commit waits to become durable. The store's flushing thread
//! sees to it; if there is none, the next call of the store after that time does.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

/// Since when deferred commits wait. Times are those of the storage's clock.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    /// Nanoseconds plus one; 0 if none waits.
    since: AtomicU64,
    /// Whether a thread flushes them.
    has_thread: AtomicBool,
}

impl Deferred {
    /// Says whether a thread flushes deferred commits.
    pub(crate) fn set_flushed_by_thread(&self, there_is: bool) {
        self.has_thread.store(there_is, SeqCst);
    }

    /// Whether one does.
    pub(crate) fn is_flushed_by_thread(&self) -> bool {
        self.has_thread.load(SeqCst)
    }

    /// A commit waits from `now` on.
    pub(crate) fn waits(&self, now: Duration) {
        // One that waits longer already decides.
        let _waits = self.since.compare_exchange(0, nanos(now).saturating_add(1), SeqCst, SeqCst);
    }

    /// Whether any waits.
    #[inline]
    pub(crate) fn any_waits(&self) -> bool {
        self.since.load(SeqCst) != 0
    }

    /// Whether one waits for `most` or longer at `now`.
    pub(crate) fn is_overdue(&self, now: Duration, most: Duration) -> bool {
        match self.since.load(SeqCst) {
            0 => false,
            since => nanos(now) >= (since - 1).saturating_add(nanos(most)),
        }
    }

    /// A flush begins: a commit that comes meanwhile waits anew.
    pub(crate) fn flushing(&self) {
        self.since.store(0, SeqCst);
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
