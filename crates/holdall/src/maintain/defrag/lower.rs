//! Moving what lies high in the file down, so that its free end can be cut: holes give back
//! blocks, and only this the length. If the file system cannot punch holes, nothing else gives
//! space back.

use super::Work;
use super::segments::{gone, kept};
use crate::maintain::handles;
use crate::object::{self, ObjectPiece};
use crate::space::Lowering;
use crate::txn::Waiting;
use crate::write::{Durability, HeapFiles, WriteTx, forget_placements};
use holdall_core::segment_tree::{MAY_HOLD_SHARED_RUNS, Top};
use holdall_core::{Error, Oid, PageNo, PageRun, Result};
use std::ops::{ControlFlow, Range};

/// Times that everything is gone through: what one pass frees is room for the next.
const MOST_ROUNDS: u32 = 4;
/// Pages that one transaction moves.
const PAGES_PER_TRANSACTION: u32 = 64;
/// Moves of parts of one object that make way for another: in a file without holes each is as
/// long as what is free below.
const MOST_PARTS: u32 = 1 << 12;

/// Bytes of a part that is worth a seek more, where blocks are given back without it.
const LEAST_PART: u64 = 1 << 20;

/// The pages that a file of `used` pages in use keeps: it needs a few free ones, to move others.
pub(crate) fn line(used: u64) -> u64 {
    used.saturating_add(used / 64).saturating_add(32)
}

impl Work<'_> {
    /// Moves what lies behind the pages that the file needs, until its end is free as far as that
    /// can be. What copies share stays, and so do pieces that would be cut into parts below
    /// `least_part` pages.
    pub(super) fn lower(&mut self, cannot_punch: bool) -> Result<ControlFlow<()>> {
        let page = self.store.inner.layout.page_size() as u64;
        self.least_part = if cannot_punch { 1 } else { LEAST_PART.div_ceil(page) };
        let alloc = self.store.inner.alloc.clone();
        for _ in 0..MOST_ROUNDS {
            self.checkpoint()?;
            alloc.look_everywhere()?;
            self.give_up_spaces()?;
            let (end, line) = (alloc.pages_in_use()?, line(alloc.stats().live_pages()));
            if end <= line {
                break;
            }
            if self.lower_all(PageNo(line))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.checkpoint()?;
            self.give_up_spaces()?;
            if alloc.pages_in_use()? >= end {
                break;
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Gives up the last spaces that are empty.
    fn give_up_spaces(&mut self) -> Result<()> {
        while self.store.inner.alloc.has_empty_space()? {
            let mut tx = WriteTx::for_maintenance(&self.store.inner)?;
            tx.set_durability(Durability::Deferred);
            if !tx.give_up_spaces()? {
                return Ok(());
            }
            tx.commit()?;
            self.checkpoint()?;
        }
        Ok(())
    }

    fn lower_all(&mut self, line: PageNo) -> Result<ControlFlow<()>> {
        let mut index = 0;
        while let Some(all) = handles(self.store, index)? {
            for oid in all {
                if self.lower_object(oid, line)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            index += 1;
        }
        // The pages that it knows are about to move.
        forget_placements(&self.store.inner, 0, &Waiting::maintenance())?;
        let inner = self.store.inner.clone();
        let mut files = HeapFiles::new(&inner);
        while let Some(owner) = files.next()? {
            let mut from = 0;
            let heap = |tx: &mut WriteTx, low: &mut Lowering| tx.lower_heap(owner, &mut from, low);
            if self.lower_pages(line, heap)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let mut from = 0;
        if self.lower_pages(line, |tx, low| tx.lower_handles(&mut from, low))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        // Checksums of what has moved are needed until then; their pages are in the way.
        self.checkpoint()?;
        // What moved as many as it may has perhaps more.
        self.lower_pages(line, |tx, low| tx.lower_trees(low).map(|()| low.is_done()))
    }

    /// Runs transactions that move pages, until `step` says that there are no more.
    fn lower_pages(
        &mut self,
        line: PageNo,
        mut step: impl FnMut(&mut WriteTx, &mut Lowering) -> Result<bool>,
    ) -> Result<ControlFlow<()>> {
        loop {
            let mut low = Lowering::new(line, PAGES_PER_TRANSACTION);
            let mut tx = WriteTx::for_maintenance(&self.store.inner)?;
            tx.set_durability(Durability::Deferred);
            let more = match step(&mut tx, &mut low) {
                // It stays where it is: no error, and no room for others either.
                Err(Error::Full(_)) => return Ok(ControlFlow::Continue(())),
                more => more?,
            };
            if low.moved() > 0 {
                tx.commit()?;
            } else {
                drop(tx);
            }
            let page = self.store.inner.layout.page_size() as u64;
            self.report.moved.page_bytes += u64::from(low.moved()) * page;
            if self.moved()?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if !more {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    /// Moves the pieces and nodes of an object that lie from page `line` on.
    fn lower_object(&mut self, oid: Oid, line: PageNo) -> Result<ControlFlow<()>> {
        let (mut has_nodes, mut least, mut before) = (false, u64::MAX, u64::MAX);
        for _ in 0..MOST_PARTS {
            let reader = self.store.read_newest()?;
            let found = object::pieces(&*reader.state, &reader.state.root().handles, oid);
            let Some(found) = kept(found) else { continue };
            let Some((d, all)) = gone(found)?.flatten() else {
                return Ok(ControlFlow::Continue(()));
            };
            has_nodes = matches!(d.tree.top, Top::Root { .. });
            let page = self.store.inner.layout.page_size() as u64;
            let high = |p: &&ObjectPiece| p.slice.is_run() && end_of(p, page) > line.0;
            let above = all.iter().filter(high).map(|p| pages_above(p, line, page)).sum();
            let piece = all.iter().rfind(|p| p.start < before && high(p));
            let Some(piece) = piece.filter(|_| above < least) else { break };
            least = above;
            if d.flags & MAY_HOLD_SHARED_RUNS != 0 {
                self.report.shared += 1;
                break;
            }
            let Some((run, range)) = self.lower_room(piece, line, page)? else {
                (before, least) = (piece.start, u64::MAX);
                continue;
            };
            let seen = std::slice::from_ref(piece);
            match self.move_window(oid, reader, (&d, seen, range), run)? {
                Some(ControlFlow::Break(())) => return Ok(ControlFlow::Break(())),
                Some(ControlFlow::Continue(())) => {}
                None => self.report.given_up += 1,
            }
        }
        if !has_nodes {
            return Ok(ControlFlow::Continue(()));
        }
        self.lower_pages(line, |tx, low| match tx.lower_nodes(oid, low) {
            Err(Error::Dangling(_) | Error::NotFound(_)) => Ok(false),
            other => other.map(|()| low.is_done()),
        })
    }

    /// Reserves room below for a piece, or for as much of its end as there is room for.
    fn lower_room(
        &self,
        piece: &ObjectPiece,
        line: PageNo,
        page: u64,
    ) -> Result<Option<(PageRun, Range<u64>)>> {
        let alloc = &self.store.inner.alloc;
        let pages = piece.slice.pages(page);
        let Some(run) = alloc.reserve_below(0, line.0, pages)? else { return Ok(None) };
        if run.len == pages {
            return Ok(Some((run, piece.start..piece.end())));
        }
        // Only what is in the way: the rest would leave room for as much as it takes.
        let part = run.len.min(pages_above(piece, line, page));
        if part < self.least_part {
            alloc.unreserve(run)?;
            return Ok(None);
        }
        if part < run.len {
            alloc.unreserve(PageRun::new(PageNo(run.start.0 + part), run.len - part))?;
        }
        let first = (pages - part) * page - u64::from(piece.slice.offset);
        let run = PageRun::new(run.start, part);
        Ok(Some((run, piece.start + first..piece.end())))
    }
}

/// The page behind the last one of a piece.
fn end_of(piece: &ObjectPiece, page: u64) -> u64 {
    piece.slice.reference.saturating_add(piece.slice.pages(page))
}

/// How many pages of a piece that ends behind page `line` lie from there on.
fn pages_above(piece: &ObjectPiece, line: PageNo, page: u64) -> u64 {
    end_of(piece, page) - piece.slice.reference.max(line.0)
}
