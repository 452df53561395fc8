//! Large objects: the pieces their bytes lie in.
//!
//! Owns: [`Pieces`]. A piece is a part of an object in neighbouring pages: slices whose pages
//! follow one another count as one, bytes never written lie nowhere.

use super::CutObject;
use super::map::PageUse;
use super::walk::Walk;
use crate::object::Record;
use crate::segment_tree::TreeRead;
use crate::sharing::Shared;
use holdall_core::segment_tree::{self, Descriptor, Slice, Visit};
use holdall_core::{PageNo, PageRun, Result};

/// A run of this many bytes or more is not counted as a cut: a seek costs little beside it.
const LONG_RUN: u64 = 16 << 20;
/// Objects that are listed.
const LISTED: usize = 10;

/// Pieces of one object, so far.
#[derive(Debug, Default)]
struct Pieces {
    count: u64,
    bytes: u64,
    last: Option<Slice>,
}

impl Pieces {
    fn add(&mut self, slice: &Slice, size: u64) {
        self.bytes = self.bytes.saturating_add(slice.len);
        if !self.last.is_some_and(|last| follows(&last, slice, size)) {
            self.count += 1;
        }
        self.last = Some(*slice);
    }
}

/// Whether the pages of `next` follow those of `last`, or begin in its last page.
fn follows(last: &Slice, next: &Slice, size: u64) -> bool {
    let byte = |s: &Slice| s.reference.saturating_mul(size).saturating_add(s.offset.into());
    last.end_page(size) == next.reference || byte(last).saturating_add(last.len) == byte(next)
}

impl Walk<'_> {
    /// Counts the pieces of a large object.
    ///
    /// # Errors
    /// [`holdall_core::Error::Corrupt`], [`holdall_core::Error::Io`].
    pub(super) fn large(
        &mut self,
        collection: &str,
        record: &Record<'_>,
        d: &Descriptor,
    ) -> Result<()> {
        let size = self.page_size();
        let (mut pieces, mut runs, mut nodes) = (Pieces::default(), Vec::new(), 0);
        segment_tree::walk(&TreeRead(self.state), &d.tree, &mut |visit| match visit {
            Visit::Node { .. } => {
                nodes += 1;
                Ok(())
            }
            Visit::Unreadable { error, .. } => Err(error),
            Visit::Slice { slice, .. } => {
                if slice.is_run() {
                    pieces.add(&slice, size);
                    runs.push(PageRun::new(PageNo(slice.reference), slice.pages(size)));
                }
                Ok(())
            }
        })?;
        for run in &runs {
            for own in outside(&self.shared, *run) {
                self.enter_segment(own);
            }
        }
        let fewest = pieces.bytes.div_ceil(self.longest_piece());
        let found = CutObject {
            collection: collection.to_owned(),
            oid: record.oid,
            name: record.name.map(<[u8]>::to_vec),
            bytes: pieces.bytes,
            pieces: pieces.count,
            fewest: fewest.min(pieces.count),
        };
        self.sums.large += 1;
        self.sums.most_metadata_pages += nodes;
        self.sums.object_bytes += pieces.bytes.saturating_add(d.tail.len() as u64);
        self.count(&found);
        if found.excess() > 0 {
            runs.into_iter().for_each(|run| self.map.mark_cut(run));
            self.list(found);
        }
        Ok(())
    }

    /// Enters pages of segments, known to be in use.
    pub(super) fn enter_segment(&mut self, run: PageRun) {
        self.map.change(run, PageUse::Metadata, PageUse::Segment);
    }

    /// Bytes of a piece that is not to be joined with another: no run leaves its space, which
    /// begins with a directory.
    fn longest_piece(&self) -> u64 {
        let own = 1 + self.layout.stretches();
        let space = self.layout.space_pages().saturating_sub(own).max(1);
        LONG_RUN.min(u64::from(space) * self.page_size())
    }

    fn count(&mut self, found: &CutObject) {
        let sums = &mut self.sums;
        let (bytes, excess) = (found.bytes, found.excess());
        if found.pieces == 0 {
            // Nothing but bytes never written, and a tail.
            return;
        }
        self.by_pieces.add(found.pieces, bytes);
        sums.piece_bytes = sums.piece_bytes.saturating_add(bytes);
        sums.pieces += found.pieces;
        sums.fewest += found.fewest;
        sums.excess += excess;
        sums.excess_bytes += bytes as f64 * excess as f64;
        sums.whole_bytes += bytes as f64 * (found.fewest as f64 / found.pieces as f64);
        if excess > 0 {
            sums.cut_bytes = sums.cut_bytes.saturating_add(bytes);
        }
    }

    fn list(&mut self, found: CutObject) {
        let order = |c: &CutObject| std::cmp::Reverse((c.excess(), c.bytes));
        let at = self.most_cut.partition_point(|c| order(c) <= order(&found));
        if at < LISTED {
            self.most_cut.insert(at, found);
            self.most_cut.truncate(LISTED);
        }
    }
}

/// The parts of `run` that lie in none of the ranges, which are in order.
fn outside(shared: &[Shared], run: PageRun) -> Vec<PageRun> {
    // A run may come from a damaged page.
    let end = run.start.0.saturating_add(run.len);
    let (mut parts, mut at) = (Vec::new(), run.start.0);
    let first = shared.partition_point(|s| s.run.end() <= at);
    let inside = shared.iter().skip(first).take_while(|s| s.run.start.0 < end);
    for range in inside.map(|s| s.run) {
        if at < range.start.0 {
            parts.push(PageRun::new(PageNo(at), range.start.0 - at));
        }
        at = range.end().max(at);
    }
    if at < end {
        parts.push(PageRun::new(PageNo(at), end - at));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_piece() {
        let mut pieces = Pieces::default();
        let slices = [
            Slice::run(10, 8192),                        // pages 10, 11
            Slice::run(12, 100),                         // behind it
            Slice::run(13, 4096),                        // behind it, the page before not full
            Slice::run(20, 5000),                        // elsewhere
            Slice { offset: 904, ..Slice::run(21, 50) }, // goes on in its last page
            Slice { offset: 500, ..Slice::run(21, 50) }, // the same page, elsewhere
        ];
        slices.iter().for_each(|s| pieces.add(s, 4096));
        assert_eq!((pieces.count, pieces.bytes), (3, 8192 + 100 + 4096 + 5000 + 100));
    }

    #[test]
    fn shared_pages_are_left_out() {
        let run = |start, len| PageRun::new(PageNo(start), len);
        let shared = [(4, 2), (8, 4)].map(|(s, l)| Shared { run: run(s, l), references: 2 });
        assert_eq!(outside(&shared, run(0, 10)), [run(0, 4), run(6, 2)]);
        assert_eq!(outside(&shared, run(9, 5)), [run(12, 2)]);
        assert_eq!(outside(&shared, run(8, 4)), []);
        assert_eq!(outside(&[], run(1, 3)), [run(1, 3)]);
    }
}
