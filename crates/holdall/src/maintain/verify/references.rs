//! The ranges of shared pages, and where references to them begin and end.
//!
//! Owns: [`References`]. Memory: 32 bytes per range and per reference to one.

use crate::sharing::Shared;
use holdall_core::{PageNo, PageRun};
use std::collections::BTreeMap;

/// Ranges of shared pages, and the references to them found so far.
#[derive(Debug, Default)]
pub(super) struct References {
    /// In order, apart from each other.
    pub(super) ranges: Vec<Shared>,
    /// Change of the number of references at a page, against the page before.
    pub(super) steps: BTreeMap<u64, i64>,
}

impl References {
    /// The run cut into parts that are shared and parts that are not.
    pub(super) fn split(&self, run: PageRun) -> Vec<(PageRun, bool)> {
        let mut parts = Vec::new();
        let mut push = |from: u64, to: u64, shared| {
            if from < to {
                parts.push((PageRun::new(PageNo(from), to - from), shared));
            }
        };
        // A run may come from a damaged page.
        let end = run.start.0.saturating_add(run.len);
        let mut at = run.start.0;
        let first = self.ranges.partition_point(|r| r.run.end() <= at);
        for range in self.ranges[first..].iter().take_while(|r| r.run.start.0 < end) {
            let from = range.run.start.0.max(at);
            push(at, from, false);
            at = range.run.end().min(end);
            push(from, at, true);
        }
        push(at, end, false);
        parts
    }

    /// Notes a reference to a run.
    pub(super) fn add(&mut self, run: PageRun) {
        *self.steps.entry(run.start.0).or_default() += 1;
        *self.steps.entry(run.end()).or_default() -= 1;
    }
}
