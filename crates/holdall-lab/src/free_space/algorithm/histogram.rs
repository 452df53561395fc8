//! The histogram of buckets (McAuliffe §3.2): how many pages of the file are in each.
//!
//! Owns 15 counts. A hint: it agrees with the inventory after every change told. No threads.

use super::Change;
use crate::free_space::buckets::{Buckets, UNALLOCATED};

/// Pages per bucket.
#[derive(Debug, Clone, Default)]
pub(super) struct Histogram([u32; 15]);

impl Histogram {
    pub(super) fn new(counts: [u32; 16]) -> Self {
        let mut this = Self::default();
        this.0.copy_from_slice(&counts[..15]);
        this
    }

    pub(super) fn follow(&mut self, change: &Change) {
        if change.old < UNALLOCATED {
            self.0[usize::from(change.old)] -= 1;
        }
        if change.new < UNALLOCATED {
            self.0[usize::from(change.new)] += 1;
        }
    }

    /// Whether a page is in `least` or a bucket above.
    pub(super) fn any_from(&self, least: u8) -> bool {
        self.0.iter().skip(usize::from(least)).any(|&n| n > 0)
    }

    pub(super) fn has(&self, bucket: u8) -> bool {
        self.0[usize::from(bucket)] > 0
    }

    /// The file's utilization as far as buckets tell it: the middle of each; 1 for no pages.
    pub(super) fn utilization(&self, buckets: &Buckets) -> f64 {
        let pages: u64 = self.0.iter().map(|&n| u64::from(n)).sum();
        let free = |(b, &n): (usize, &u32)| u64::from(n) * buckets.middle(b as u8) as u64;
        let free: u64 = self.0.iter().enumerate().map(free).sum();
        1.0 - free as f64 / (pages * buckets.usable() as u64).max(1) as f64
    }
}
