//! Which parts of the volume changed since the newest backup.
//!
//! Owns: no state. Directories note the last allocation and freeing of each granule. Once the root
//! names a mark of a backup, they note changes of pages in their places too: the first in
//! each granule since the newest mark (rule 60). So an increment need not look at the others.

use super::SpaceTx;
use super::spaces::directory;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::space_dir::{GRANULE_BYTES, SpaceDir, SpaceLayout};
use holdall_core::{Lsn, PageNo, PageRead, PageRun, Result, mark, root_page};
use std::collections::BTreeMap;

/// The granules of each space that a transaction touched, with the runs of pages there.
type Touched = BTreeMap<u32, BTreeMap<u32, Vec<PageRun>>>;

/// Notes what the transaction changed in place; the last that it does to its pages. Cost: nothing
/// without a mark; else a look at the directory for each granule that it touched.
pub(super) fn note(tx: &mut SpaceTx, layout: &SpaceLayout, lsn: Lsn) -> Result<()> {
    let since = tx.with_page(tx.root, PageKind::Root, |root| Ok(mark::newest(root)))?;
    let Some(since) = since.filter(|_| !mutation::is(Mutation::R60Note)) else { return Ok(()) };
    // What it gives up holds nothing, and to note a change there would make it again.
    let spaces = tx.with_page(tx.root, PageKind::Root, |root| Ok(root_page::spaces(root)))?;
    for (space, granules) in touched(tx, layout)?.into_iter().filter(|(at, _)| *at < spaces) {
        for (granule, runs) in granules {
            let noted = is_noted(tx, layout, (space, granule), since)?;
            let changed = |run: &PageRun| tx.pages.is_changed(run.start);
            if let Some(run) = runs.iter().find(|run| !noted && changed(run)) {
                let index = layout.split(run.start)?.1;
                directory(tx, layout, space)?.note_change(index, 1, lsn)?;
            }
        }
    }
    // The directories themselves, those that only this changed among them. One that comes again was
    // changed when it was given up, of which nothing is noted.
    let mut changed = tx.pages.of_kind(PageKind::SpaceDir);
    changed.retain(|no| tx.pages.is_changed(*no));
    if !mutation::is(Mutation::R60Comes) {
        changed.extend(std::mem::take(&mut tx.again).into_iter().map(|s| layout.dir_page(s)));
    }
    for no in changed {
        let (space, index) = layout.split(no)?;
        if space < spaces && !is_noted(tx, layout, (space, layout.granule_of(index)), since)? {
            directory(tx, layout, space)?.note_change(index, 1, lsn)?;
        }
    }
    Ok(())
}

fn is_noted(
    tx: &SpaceTx,
    layout: &SpaceLayout,
    (space, granule): (u32, u32),
    since: Lsn,
) -> Result<bool> {
    tx.with_page(layout.dir_page(space), PageKind::SpaceDir, |bytes| {
        Ok(SpaceDir::open(*layout, space, bytes)?.last_change(granule)? > since)
    })
}

/// Where the transaction may have changed pages that it did not allocate: those it holds, and those
/// that were there unused, filled, and left memory.
fn touched(tx: &SpaceTx, layout: &SpaceLayout) -> Result<Touched> {
    let mut all = Touched::new();
    let per = GRANULE_BYTES / layout.page_size() as u64;
    let held = tx.pages.held_in_place().map(|no| PageRun::new(no, 1));
    for run in held.filter(|run| !tx.mine.contains(run.start)).chain(tx.pages.written_early()) {
        let mut at = run.start.0;
        while at < run.end() {
            let (space, index) = layout.split(PageNo(at))?;
            let len = (per - u64::from(index) % per).min(run.end() - at);
            let granules = all.entry(space).or_default();
            let part = PageRun::new(PageNo(at), len);
            granules.entry(layout.granule_of(index)).or_default().push(part);
            at += len;
        }
    }
    Ok(all)
}
