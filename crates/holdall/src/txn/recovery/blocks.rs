//! Blocks for what the log allocates and does not write.
//!
//! A heap takes pages before it needs them. They got blocks then (rule 29), and the crash may
//! have undone that; the log says of them only that they are allocated.

use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::{Lsn, PageNo, Result};

/// Has `fill` give blocks to all pages that the replayed page `no`, if it is a directory, holds
/// as allocated if something changed after `since`. Cost: a call for each run of such pages.
///
/// # Errors
/// [`Error::Corrupt`](holdall_core::Error::Corrupt); those of `fill`.
pub(super) fn fill_allocated(
    layout: &SpaceLayout,
    (no, bytes): (PageNo, &[u8]),
    since: Lsn,
    fill: &dyn Fn(PageNo, u64) -> Result<()>,
) -> Result<()> {
    let (space, _) = layout.split(no)?;
    let directory = page::kind(bytes) == Some(PageKind::SpaceDir) && no == layout.dir_page(space);
    if !directory || mutation::is(Mutation::R29Replayed) {
        return Ok(());
    }
    let dir = SpaceDir::open(*layout, space, bytes)?;
    let mut changed = vec![false; layout.granules() as usize];
    for (granule, changed) in changed.iter_mut().enumerate() {
        *changed = dir.last_change(granule as u32)? > since;
    }
    let counts = |index: u32| {
        dir.is_allocated(index)
            && changed.get(layout.granule_of(index) as usize).copied().unwrap_or(false)
    };
    let mut at = 0;
    while at < layout.space_pages() {
        let len = (at..layout.space_pages()).take_while(|i| counts(*i)).count() as u32;
        if len > 0 {
            fill(layout.page_at(space, at), u64::from(len))?;
        }
        at += len.max(1);
    }
    Ok(())
}
