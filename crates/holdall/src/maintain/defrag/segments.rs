//! Joining the pieces of large objects: neighbouring pieces are written into one free run.

use super::Work;
use crate::maintain::handles;
use crate::object::{self, ObjectPiece};
use crate::read::Reader;
use crate::segment_tree::{TreeRead, run_start};
use crate::space::{Staged, Stager};
use crate::write::{Durability, WriteTx};
use holdall_core::segment_tree::{self, Descriptor, MAY_HOLD_SHARED_RUNS};
use holdall_core::{Error, Oid, PageNo, PageRun, Result};
use std::ops::{ControlFlow, Range};

/// Bytes of a piece that is long enough: a read of it costs what a seek more does not show in.
const LONG: u64 = 16 << 20;
/// States from which a move is begun before it is left.
const MOST_TRIES: u32 = 8;
/// Bytes read and written at a time.
const BYTES_PER_COPY: usize = 256 << 10;

impl Work<'_> {
    /// Joins pieces of objects of which that makes fewer, those of `most` handle pages from
    /// `index` on; behind the last one `index` is 0 again.
    pub(super) fn join_segments(&mut self, index: &mut u32, most: u32) -> Result<ControlFlow<()>> {
        for _ in 0..most {
            let Some(all) = handles(self.store, *index)? else {
                *index = 0;
                break;
            };
            for oid in all {
                if self.join(oid)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            *index += 1;
        }
        Ok(ControlFlow::Continue(()))
    }

    fn join(&mut self, oid: Oid) -> Result<ControlFlow<()>> {
        let (mut room, before) = (None, self.report.moved.pieces);
        let flow = self.join_pieces(oid, &mut room);
        self.give_up(room)?;
        self.report.moved.objects += u64::from(self.report.moved.pieces > before);
        flow
    }

    /// As [`Work::join`]; what is left in `room` is reserved.
    fn join_pieces(&mut self, oid: Oid, room: &mut Option<PageRun>) -> Result<ControlFlow<()>> {
        let (mut at, mut tried, mut tries) = (0, None, 0);
        loop {
            // A snapshot of its own for each move: what earlier ones freed can be used.
            let reader = self.store.read_newest()?;
            let found = object::pieces(&*reader.state, &reader.state.root().handles, oid);
            let Some(found) = kept(found) else {
                tries += 1;
                if tries == MOST_TRIES {
                    self.report.given_up += 1;
                    break;
                }
                continue;
            };
            let Some((d, all)) = gone(found)?.flatten() else { break };
            let page = self.store.inner.layout.page_size() as u64;
            let most = self.store.inner.alloc.most_to_move().saturating_mul(page).min(LONG);
            let Some(window) = window(&all, at, page, most) else { break };
            if d.flags & MAY_HOLD_SHARED_RUNS != 0 {
                self.report.shared += 1;
                break;
            }
            let seen = &all[window];
            let wanted = range_of(seen);
            let pages = (wanted.end - wanted.start).div_ceil(page);
            let run = match room.take() {
                Some(run) if run.len == pages => Some(run),
                stale => {
                    self.give_up(stale)?;
                    self.find_room(pages)?
                }
            };
            let Some(run) = run else {
                // Once for each window: a piece in the way of a run goes first. What it frees
                // must not be held by this snapshot.
                let first = tried != Some(wanted.start);
                tried = Some(wanted.start);
                if first {
                    drop(reader);
                    *room = self.make_room(oid, &all, pages)?;
                }
                if room.is_none() {
                    self.report.no_room += 1;
                    at = wanted.end;
                }
                continue;
            };
            match self.move_window(oid, reader, (&d, seen, wanted.clone()), run)? {
                Some(ControlFlow::Break(())) => return Ok(ControlFlow::Break(())),
                Some(ControlFlow::Continue(())) => {}
                None if tries + 1 < MOST_TRIES => {
                    tries += 1;
                    continue;
                }
                None => self.report.given_up += 1,
            }
            (at, tries) = (wanted.end, 0);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Copies the bytes `range` of pieces into `run`, which is reserved for them, and puts them
    /// there. `None` if the state of `reader` was given up meanwhile.
    pub(super) fn move_window(
        &mut self,
        oid: Oid,
        reader: Reader,
        (d, seen, range): (&Descriptor, &[ObjectPiece], Range<u64>),
        run: PageRun,
    ) -> Result<Option<ControlFlow<()>>> {
        let Some(staged) = kept(self.stage(&reader, d, &range, run)) else { return Ok(None) };
        let Some(staged) = gone(staged)? else { return Ok(Some(ControlFlow::Continue(()))) };
        let flow = self.tell();
        let exchanged = self.exchange(oid, (seen, range), (staged, &reader))?;
        let lost = !exchanged && reader.state.snapshot.check().is_err();
        // Not before: the longer a snapshot is held, the sooner it is given up.
        drop(reader);
        if flow.is_continue() {
            self.pace()?;
        }
        Ok(if lost && flow.is_continue() { None } else { Some(flow) })
    }

    /// Gives back what was reserved for an object that others changed meanwhile.
    fn give_up(&self, room: Option<PageRun>) -> Result<()> {
        room.map_or(Ok(()), |run| self.store.inner.alloc.unreserve(run))
    }

    /// Reserves a free run of `pages` pages; `None` if none is as long and the volume may not grow.
    fn find_room(&mut self, pages: u64) -> Result<Option<PageRun>> {
        let alloc = self.store.inner.alloc.clone();
        if let Some(run) = alloc.reserve_to_move(pages, false)? {
            return Ok(Some(run));
        }
        if alloc.has_new_waiting() {
            self.checkpoint()?;
        }
        alloc.reserve_to_move(pages, self.may_grow)
    }

    /// Moves a piece of the object out from between free pages that with its own make a run of
    /// `pages` pages, and reserves that run.
    fn make_room(&mut self, oid: Oid, all: &[ObjectPiece], pages: u64) -> Result<Option<PageRun>> {
        let page = self.store.inner.layout.page_size() as u64;
        for piece in all.iter().filter(|p| p.slice.is_run() && p.slice.pages(page) < pages) {
            let alloc = self.store.inner.alloc.clone();
            let old = PageRun::new(run_start(&piece.slice)?, piece.slice.pages(page));
            let Some(whole) = alloc.reserve_around(old, pages)? else { continue };
            let freed = match self.move_piece(oid, piece) {
                Ok(true) => self.checkpoint().and_then(|()| alloc.reserve_exactly(old)),
                other => other,
            };
            if !matches!(freed, Ok(true)) {
                alloc.unreserve_around(whole, old)?;
                freed?;
                continue;
            }
            let more = PageRun::new(PageNo(whole.start.0 + pages), whole.len - pages);
            if more.len > 0 {
                alloc.unreserve(more)?;
            }
            return Ok(Some(PageRun::new(whole.start, pages)));
        }
        Ok(None)
    }

    /// Moves one piece of an object elsewhere; returns whether it did.
    fn move_piece(&mut self, oid: Oid, piece: &ObjectPiece) -> Result<bool> {
        let reader = self.store.read_newest()?;
        let found = object::pieces(&*reader.state, &reader.state.root().handles, oid);
        let Some(found) = kept(found) else { return Ok(false) };
        let Some((d, all)) = gone(found)?.flatten() else { return Ok(false) };
        if !all.contains(piece) {
            return Ok(false);
        }
        let page = self.store.inner.layout.page_size() as u64;
        let run = self.store.inner.alloc.reserve_to_move(piece.slice.pages(page), false)?;
        let Some(run) = run else { return Ok(false) };
        let (seen, range) = (&[*piece], piece.start..piece.end());
        let Some(staged) = kept(self.stage(&reader, &d, &range, run)) else { return Ok(false) };
        let staged = gone(staged)?;
        staged.map_or(Ok(false), |staged| self.exchange(oid, (seen, range), (staged, &reader)))
    }

    /// Writes the bytes `range` into `run`, which is reserved for them.
    fn stage(
        &self,
        reader: &Reader,
        d: &Descriptor,
        range: &Range<u64>,
        run: PageRun,
    ) -> Result<Staged> {
        let inner = &self.store.inner;
        let len = range.end - range.start;
        let mut stager = Stager::new(&inner.alloc, &inner.pager, Some(len)).within(run);
        let mut chunk = vec![0; BYTES_PER_COPY.min(len as usize)];
        let mut at = range.start;
        while at < range.end {
            let n = chunk.len().min((range.end - at) as usize);
            segment_tree::read_at(&TreeRead(&*reader.state), d, at, &mut chunk[..n])?;
            stager.write(&chunk[..n])?;
            at += n as u64;
        }
        stager.finish(0)
    }

    /// Puts what was staged from the state of a reader in the place of bytes of `seen`; returns
    /// whether it did.
    fn exchange(
        &mut self,
        oid: Oid,
        seen: (&[ObjectPiece], Range<u64>),
        from: (Staged, &Reader),
    ) -> Result<bool> {
        match self.try_exchange(oid, seen, from) {
            // Not even a page for the commit: it stays as it is.
            Err(Error::Full(_)) => {
                self.report.no_room += 1;
                Ok(false)
            }
            result => result,
        }
    }

    fn try_exchange(
        &mut self,
        oid: Oid,
        (seen, range): (&[ObjectPiece], Range<u64>),
        (staged, reader): (Staged, &Reader),
    ) -> Result<bool> {
        let mut tx = WriteTx::for_maintenance(&self.store.inner)?;
        tx.set_durability(Durability::Deferred);
        let from = (staged, &reader.state.snapshot);
        let exchanged = tx.exchange(oid, (seen, range.clone()), from)?;
        if exchanged {
            tx.commit()?;
            self.report.moved.segment_bytes += range.end - range.start;
            self.report.moved.pieces += seen.len() as u64 - 1;
        }
        Ok(exchanged)
    }
}

fn range_of(pieces: &[ObjectPiece]) -> Range<u64> {
    pieces.first().map_or(0, |p| p.start)..pieces.last().map_or(0, ObjectPiece::end)
}

/// An object deleted meanwhile is no failure: it stays as it is.
pub(super) fn gone<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::Dangling(_) | Error::NotFound(_)) => Ok(None),
        Err(e) => Err(e),
    }
}

/// `None` if the state being read was given up for writers' sake: there is a newer one.
pub(super) fn kept<T>(result: Result<T>) -> Option<Result<T>> {
    match result {
        Err(Error::SnapshotTooOld { .. }) => None,
        other => Some(other),
    }
}

/// The first neighbouring pieces from byte `from` on that joining brings together: two at least,
/// none of them long, together no more than `most` bytes, and not lying one behind the other.
fn window(all: &[ObjectPiece], from: u64, page: u64, most: u64) -> Option<Range<usize>> {
    let short = |p: &ObjectPiece| p.slice.is_run() && p.slice.len < most;
    let mut first = all.iter().position(|p| p.start >= from)?;
    while first < all.len() {
        let (mut end, mut len, mut cut) = (first, 0, false);
        while let Some(piece) = all.get(end).filter(|p| short(p) && len + p.slice.len <= most) {
            let follows = |last: &ObjectPiece| {
                last.slice.reference + last.slice.pages(page) == piece.slice.reference
            };
            cut |= end > first && !all.get(end - 1).is_some_and(follows);
            len += piece.slice.len;
            end += 1;
        }
        if cut {
            return Some(first..end);
        }
        first = end.max(first + 1);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_core::segment_tree::Slice;

    fn pieces(lens: &[u64]) -> Vec<ObjectPiece> {
        let mut start = 0;
        let piece = |len: &u64| {
            let piece = ObjectPiece { start, slice: Slice::run(100 + start, *len) };
            start += len;
            piece
        };
        lens.iter().map(piece).collect()
    }

    #[test]
    fn windows_hold_short_neighbours_that_lie_apart() {
        let (mib, page) = (1 << 20, 8192);
        let of = |lens: &[u64], from| window(&pieces(lens), from, page, LONG);
        assert_eq!(of(&[mib], 0), None);
        assert_eq!(of(&[mib, mib], 0), Some(0..2));
        assert_eq!(of(&[mib, 20 * mib, mib], 0), None);
        assert_eq!(of(&[9 * mib, 9 * mib, 3 * mib], 0), Some(1..3));
        assert_eq!(of(&[mib, mib, 16 * mib, mib, mib], 2 * mib), Some(3..5));
        assert_eq!(of(&[], 0), None);
        let mut neighbours = pieces(&[page, page, page]);
        for (i, piece) in neighbours.iter_mut().enumerate() {
            piece.slice.reference = 500 + i as u64;
        }
        assert_eq!(window(&neighbours, 0, page, LONG), None);
    }
}
