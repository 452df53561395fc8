//! Counting by powers of two.
//!
//! Owns: [`Histogram`].

use super::SizeClass;
use std::collections::BTreeMap;

/// Members by size.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    classes: BTreeMap<u32, SizeClass>,
}

impl Histogram {
    /// Adds a member of `size`, at least 1, holding this many bytes.
    pub(super) fn add(&mut self, size: u64, bytes: u64) {
        let order = size.max(1).ilog2();
        let class = self.classes.entry(order).or_default();
        class.least = 1 << order;
        class.count += 1;
        class.bytes = class.bytes.saturating_add(bytes);
    }

    /// Members of all classes.
    pub(super) fn count(&self) -> u64 {
        self.classes.values().map(|c| c.count).sum()
    }

    /// The classes with members, the smallest first.
    pub(super) fn finish(self) -> Vec<SizeClass> {
        self.classes.into_values().collect()
    }
}
