//! Writing a transaction's allocations and frees into the space directories, in one batch.
//!
//! Owns: the contents of SpaceDir and SpaceInfo pages. Runs inside a transaction, just
//! before its commit.
//!
//! Rule 22: the info page of a stretch that holds no segment page, now or waiting, is made
//! anew and never read, so that what an uncommitted transaction left there cannot matter. It
//! changes with its segments only: so, when it is made anew in its place, its last change was
//! written there, and no checkpoint is still about to do so.

use super::spaces::directory;
use super::{Lowering, SpaceTx, changes};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::space_info::SpaceInfo;
use holdall_core::{Error, Lsn, PageNo, PageRead, PageRun, PageWrite, Result, mark, root_page};
use std::collections::BTreeMap;

/// A piece of a new segment inside one stretch.
struct StretchPiece {
    /// First page of the segment.
    segment: u64,
    run: PageRun,
}

/// Enters everything the transaction allocated and freed. Returns the number of spaces with
/// a directory afterwards. Cost: one directory page per space touched, one info page per
/// stretch of new segments.
pub(super) fn write_directories(tx: &mut SpaceTx) -> Result<u32> {
    let layout = *tx.alloc.layout();
    // Upper bound: a backup by last change may copy too much, never too little.
    let lsn = tx.pages.pager().log.next_commit_bound();
    enter_segments(tx)?;
    // From here on nothing leaves memory: what is allocated is about to be entered.
    tx.enter_images()?;
    let allocated: Vec<PageRun> = tx.mine.iter().chain(tx.new_segments.iter()).collect();
    for run in allocated {
        mark(tx, &layout, run, true, lsn)?;
    }
    let freed: Vec<(PageRun, bool)> = tx.freed.in_bitmaps().collect();
    for (run, segment) in freed {
        if !(segment && mutation::is(Mutation::R23Bitmap)) {
            mark(tx, &layout, run, false, lsn)?;
        }
        if segment {
            uncount_segment(tx, run)?;
        }
    }
    changes::note(tx, &layout, lsn)?;
    let root = tx.page(tx.root, PageKind::Root)?;
    Ok(root_page::spaces(&root))
}

fn mark(
    tx: &mut SpaceTx,
    layout: &SpaceLayout,
    run: PageRun,
    allocated: bool,
    lsn: Lsn,
) -> Result<()> {
    let n = u64::from(layout.space_pages());
    let mut at = run.start.0;
    while at < run.end() {
        let space = u32::try_from(at / n).map_err(|_| impossible(run))?;
        let len = (run.end() - at).min(n - at % n);
        let mut dir = directory(tx, layout, space)?;
        dir.set_range((at % n) as u32, len as u32, allocated)?;
        if allocated {
            dir.note_change((at % n) as u32, len as u32, lsn)?;
        }
        at += len;
    }
    Ok(())
}

fn impossible(run: PageRun) -> Error {
    Error::page(run.start, "lies in no space")
}

/// A stretch: its space, its number there, its first page and the page behind its last.
pub(super) struct Stretch {
    pub(super) space: u32,
    pub(super) number: u32,
    pub(super) first: u64,
    pub(super) end: u64,
}

/// The stretch that a page lies in.
pub(super) fn stretch_of(layout: &SpaceLayout, page: PageNo) -> Result<Stretch> {
    let (space, index) = layout.split(page)?;
    let (number, _) = layout.stretch_of(index);
    let run = layout.stretch_run(number).ok_or_else(|| Error::page(page, "lies in no stretch"))?;
    let run = layout.run_at(space, run);
    Ok(Stretch { space, number, first: run.start.0, end: run.end() })
}

/// The run cut at the borders of stretches.
fn pieces(layout: &SpaceLayout, run: PageRun) -> Result<Vec<(Stretch, PageRun)>> {
    let mut out = Vec::new();
    let mut at = run.start.0;
    while at < run.end() {
        let stretch = stretch_of(layout, PageNo(at))?;
        let to = stretch.end.min(run.end()).max(at + 1);
        out.push((stretch, PageRun::new(PageNo(at), to - at)));
        at = to;
    }
    Ok(out)
}

/// Takes the pages of a segment that is freed out of the numbers of their stretches.
pub(super) fn uncount_segment(tx: &mut SpaceTx, run: PageRun) -> Result<()> {
    let layout = *tx.alloc.layout();
    for (stretch, part) in pieces(&layout, run)? {
        count_segment_pages(tx, &layout, &stretch, -(part.len as i64))?;
    }
    Ok(())
}

/// Enters the checksums that are in no info page yet.
pub(super) fn enter_segments(tx: &mut SpaceTx) -> Result<()> {
    let layout = *tx.alloc.layout();
    let layout = &layout;
    let mut stretches: BTreeMap<u64, (Stretch, Vec<StretchPiece>)> = BTreeMap::new();
    for new in tx.segments.values() {
        for (stretch, run) in pieces(layout, new.run)? {
            let entry = stretches.entry(stretch.first).or_insert_with(|| (stretch, Vec::new()));
            entry.1.push(StretchPiece { segment: new.run.start.0, run });
        }
    }
    for (stretch, pieces) in stretches.into_values() {
        let info = info_page(tx, layout, &stretch)?;
        enter_pieces(tx, layout, info, &stretch, &pieces)?;
        let pages: u64 = pieces.iter().map(|p| p.run.len).sum();
        count_segment_pages(tx, layout, &stretch, pages as i64)?;
    }
    Ok(())
}

/// Moves the info pages that `low` takes. That of a stretch without segment pages is given back:
/// a copy of it would be a change that no segment accounts for (rule 22). Cost: a look at all
/// directories.
///
/// # Errors
/// As [`Lowering::page`], after which the transaction must be aborted.
pub(super) fn lower_info_pages(tx: &mut SpaceTx, low: &mut Lowering) -> Result<()> {
    let layout = *tx.alloc.layout();
    let spaces = root_page::spaces(&tx.page(tx.root, PageKind::Root)?);
    for space in 0..spaces {
        for number in 0..layout.stretches() {
            let bytes = tx.page(layout.dir_page(space), PageKind::SpaceDir)?;
            let dir = SpaceDir::open(layout, space, &*bytes)?;
            let live = dir.segment_pages(number)? > 0 || mutation::is(Mutation::R22Moved);
            let info = dir.info_page(number)?;
            let new = match live {
                _ if info.is_none() => None,
                true => low.page(tx, info, PageKind::SpaceInfo)?,
                false => give_back_info_page(tx, (space, number), info, low)?,
            };
            if let Some(new) = new {
                directory(tx, &layout, space)?.set_info_page(number, new)?;
            }
        }
    }
    Ok(())
}

/// Frees the info page of a stretch without segment pages, if `low` takes it and no checksum in
/// it is needed any more; returns what stands in its place.
fn give_back_info_page(
    tx: &mut SpaceTx,
    (space, number): (u32, u32),
    info: PageNo,
    low: &mut Lowering,
) -> Result<Option<PageNo>> {
    let layout = *tx.alloc.layout();
    let Some(run) = layout.stretch_run(number) else { return Ok(None) };
    if tx.alloc.has_waiting_segments(layout.run_at(space, run)) || !low.takes(info) {
        return Ok(None);
    }
    tx.free_page(info)?;
    Ok(Some(PageNo::NONE))
}

/// The info page of a stretch, made anew if it holds nothing that matters.
fn info_page(tx: &mut SpaceTx, layout: &SpaceLayout, stretch: &Stretch) -> Result<PageNo> {
    let dir = directory(tx, layout, stretch.space)?;
    let mut info = dir.info_page(stretch.number)?;
    let live = dir.segment_pages(stretch.number)?;
    let range = PageRun::new(PageNo(stretch.first), stretch.end - stretch.first);
    let fresh = {
        let live = live > 0 && !mutation::is(Mutation::R22Live);
        let waiting = tx.alloc.has_waiting_segments(range) && !mutation::is(Mutation::R22Waiting);
        !live && !waiting
    };
    // One that came home without its segments may still be about to be written there.
    let late = fresh && !info.is_none() && tx.pager().is_dirty(info);
    if late {
        tx.free_page(info)?;
    }
    let missing = info.is_none() || late;
    if missing {
        info = tx.alloc_run(1, Some(layout.dir_page(stretch.space)))?.start;
        directory(tx, layout, stretch.space)?.set_info_page(stretch.number, info)?;
    }
    if missing || fresh {
        let bytes = tx.format(info, PageKind::SpaceInfo, stretch.first)?;
        SpaceInfo::init(*layout, stretch.space, stretch.number, bytes)?;
    }
    Ok(info)
}

fn enter_pieces(
    tx: &mut SpaceTx,
    layout: &SpaceLayout,
    info: PageNo,
    stretch: &Stretch,
    pieces: &[StretchPiece],
) -> Result<()> {
    let units = layout.page_size() / super::UNIT;
    let since = tx.with_page(tx.root, PageKind::Root, |root| Ok(mark::newest(root)))?;
    // After every mark that is there, before every later one.
    let now = tx.pages.base();
    tx.page_mut(info, PageKind::SpaceInfo)?;
    // It is there now; the checksums are lent meanwhile.
    let bytes = tx.pages.page_mut(info, PageKind::SpaceInfo)?;
    let mut info = SpaceInfo::open(*layout, stretch.space, stretch.number, bytes)?;
    // The same bytes in a page used before have the same checksums: nothing else would tell.
    if since.is_some_and(|since| info.last_change() <= since) && !mutation::is(Mutation::R60Info) {
        info.note_change(now);
    }
    for piece in pieces {
        let missing = || Error::page(piece.run.start, "checksums are missing");
        let new = tx.segments.get(&piece.segment).ok_or_else(missing)?;
        let skip = (piece.run.start.0 - new.run.start.0) as usize;
        let sums = new.checksums.get(skip * units..(skip + piece.run.len as usize) * units);
        let owner = if skip == 0 { new.owner } else { 0 };
        let index = (piece.run.start.0 - stretch.first) as u32;
        info.set_run(index, piece.run.len as u32, owner, sums.ok_or_else(missing)?)?;
    }
    Ok(())
}

fn count_segment_pages(
    tx: &mut SpaceTx,
    layout: &SpaceLayout,
    stretch: &Stretch,
    delta: i64,
) -> Result<()> {
    let mut dir = directory(tx, layout, stretch.space)?;
    dir.add_segment_pages(stretch.number, delta).map(|_| ())
}
