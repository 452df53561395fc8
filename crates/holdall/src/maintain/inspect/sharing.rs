//! The shared segment pages, range by range.

use super::text::Text;
use crate::sharing::{Shared, Sharing};
use crate::store::Store;
use holdall_core::Result;
use std::ops::Bound;

pub(super) fn dump(store: &Store) -> Result<String> {
    let snapshot = store.inner.pager.snapshot();
    let sharing = Sharing::load(&snapshot, store.inner.root)?;
    let mut text = Text::default();
    if sharing.is_empty() {
        text.line(0, format_args!("no shared pages"));
        return Ok(text.finish());
    }
    text.line(0, format_args!("shared pages, tree in page {}", sharing.tree.root));
    for entry in sharing.tree.iter(&snapshot, Bound::Unbounded) {
        let entry = entry.and_then(|(key, value)| Shared::decode(&key, &value));
        match entry {
            Ok(Shared { run, references }) => {
                let (len, start) = (run.len, run.start);
                text.line(1, format_args!("{len} pages from {start}: {references} references"));
            }
            Err(e) => text.line(1, format_args!("{e}")),
        }
    }
    Ok(text.finish())
}
