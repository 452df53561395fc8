//! Lookups of objects, and the pages that they looked at.
//!
//! Owns: [`Looks`]. Threads count on different lines of the processors' caches, until there are more
//! threads than lines; so a lookup costs two additions that no other processor waits for.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Lines: threads beyond as many share them.
const LINES: usize = 32;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    lookups: AtomicU64,
    pages: AtomicU64,
}

/// Counts lookups.
#[derive(Debug)]
pub(crate) struct Looks {
    lines: Box<[Line]>,
}

impl Default for Looks {
    fn default() -> Self {
        Self { lines: (0..LINES).map(|_| Line::default()).collect() }
    }
}

impl Looks {
    /// Counts lookups of thread number `thread`, and the pages in memory that they looked at.
    #[inline]
    pub(crate) fn add(&self, thread: usize, lookups: u32, pages: u32) {
        let Some(line) = self.lines.get(thread % LINES) else { return };
        line.lookups.fetch_add(u64::from(lookups), Relaxed);
        line.pages.fetch_add(u64::from(pages), Relaxed);
    }

    /// Lookups, and pages in memory that they looked at.
    pub(crate) fn sum(&self) -> (u64, u64) {
        let add = |(lookups, pages), line: &Line| {
            (lookups + line.lookups.load(Relaxed), pages + line.pages.load(Relaxed))
        };
        self.lines.iter().fold((0, 0), add)
    }
}
