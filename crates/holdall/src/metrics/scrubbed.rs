//! What a scrub has read, and found.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of scrubs.
#[derive(Debug, Default)]
pub(crate) struct Scrubbed {
    bytes: AtomicU64,
    passes: AtomicU64,
    damage: AtomicU64,
}

impl Scrubbed {
    /// Counts bytes held against their checksums.
    pub(crate) fn read(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// This many problems are known.
    pub(crate) fn found(&self, problems: u64) {
        self.damage.store(problems, Relaxed);
    }

    /// A pass came to its end, with this many.
    pub(crate) fn passed(&self, problems: u64) {
        self.found(problems);
        self.passes.fetch_add(1, Relaxed);
    }

    /// Bytes, passes, problems.
    pub(crate) fn all(&self) -> (u64, u64, u64) {
        (self.bytes.load(Relaxed), self.passes.load(Relaxed), self.damage.load(Relaxed))
    }
}
