//! The shared segment pages, range by range.

use crate::sharing;
use crate::store::Store;
use holdall_core::{PageNo, PageRun, Result};
use std::ops::Bound;

/// The segment pages that more than one slice refers to.
#[derive(Debug)]
#[non_exhaustive]
pub struct Sharing {
    /// The root page of their tree; none if no page is shared.
    pub tree: Option<PageNo>,
    /// The ranges in order of place; an error for each entry that cannot be read.
    pub ranges: Vec<Result<SharedPages>>,
}

/// Neighbouring pages with equally many references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SharedPages {
    /// The pages.
    pub run: PageRun,
    /// Slices that refer to each of them.
    pub references: u64,
}

pub(super) fn read(store: &Store) -> Result<Sharing> {
    let snapshot = store.inner.pager.snapshot();
    let sharing = sharing::Sharing::load(&snapshot, store.inner.root)?;
    if sharing.is_empty() {
        return Ok(Sharing { tree: None, ranges: Vec::new() });
    }
    let entries = sharing.tree.iter(&snapshot, Bound::Unbounded);
    let ranges = entries.map(|entry| {
        let (key, value) = entry?;
        let sharing::Shared { run, references } = sharing::Shared::decode(&key, &value)?;
        Ok(SharedPages { run, references })
    });
    Ok(Sharing { tree: Some(sharing.tree.root), ranges: ranges.collect() })
}
