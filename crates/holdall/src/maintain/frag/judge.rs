//! What the counts mean: the score, the remedies.
//!
//! Owns: no state. The formulas are in docs/design.md, "Fragmentation report".

use super::contract::contract;
use super::heap::share;
use super::map::PageUse;
use super::sums::Sums;
use super::walk::Walk;
use super::{Action, FragReport, FreeRuns, Geometry, HeapReport, ObjectPieces, Remedy, Score};
use crate::maintain::defrag::line;

/// A figure that costs the score more than this has a remedy.
const BAD: f64 = 0.01;

impl Walk<'_> {
    /// The report; `pinned`: pages that only a snapshot keeps.
    pub(super) fn finish(mut self, pinned: u64) -> FragReport {
        self.tell();
        let geometry = self.geometry(pinned);
        let cut = self.cut(&geometry);
        let saved = self.shared.iter().fold(0_u64, |sum, s| {
            sum.saturating_add(s.run.len.saturating_mul(s.references.saturating_sub(1)))
        });
        let shared = self.shared.iter().map(|s| s.run.len).fold(0, u64::saturating_add);
        let sums = &self.sums;
        let objects = ObjectPieces {
            large: sums.large,
            small: sums.small,
            bytes: sums.piece_bytes,
            pieces: sums.pieces,
            fewest: sums.fewest,
            excess: sums.excess,
            mean_excess: sums.excess_bytes / (sums.piece_bytes.max(1)) as f64,
            cut_bytes: sums.cut_bytes,
            classes: self.by_pieces.finish(),
            most_cut: self.most_cut,
            shared_bytes: geometry.bytes(shared),
            saved_bytes: geometry.bytes(saved),
        };
        let heap = HeapReport {
            utilization: share(sums.heap_used, sums.heap_capacity),
            slack_bytes: geometry.bytes(sums.slack_pages),
            slack_cost: sums.slack_cost,
            collections: self.heaps,
        };
        let volume = (&self.layout, &self.picture);
        let contract = contract(&geometry, sums, volume, objects.saved_bytes);
        let live = geometry.bytes(geometry.used_pages());
        let spare = (live as f64 * self.picture.spare_share) as u64;
        let spare = spare.saturating_add(self.picture.spare_bytes);
        let score = score(&geometry, sums, spare, heap.slack_bytes);
        let ideal = geometry.used_pages() + geometry.waiting_pages + spare / geometry.page_size;
        let behind = geometry.bytes(self.map.used_behind(ideal));
        let remedies = remedies(&geometry, &objects, &heap, (&score, cut), behind);
        let free_runs = FreeRuns {
            runs: self.free_runs.count(),
            longest_bytes: self.longest_free,
            classes: self.free_runs.finish(),
        };
        let map = self.map.finish();
        FragReport { geometry, free_runs, objects, heap, contract, score, remedies, map }
    }

    /// Bytes that compacting gives back: all that is too much, or, without punching, what can be
    /// cut from the end once all that may has moved to the front.
    fn cut(&self, g: &Geometry) -> u64 {
        if !self.cannot_punch {
            return u64::MAX;
        }
        let shared = self.shared.iter().map(|s| s.run.end()).max().unwrap_or(0);
        // The directory of the last space stays in its place.
        let spaces = u64::from(self.spaces.saturating_sub(1));
        let last = spaces * u64::from(self.layout.space_pages()) + 1;
        let end = line(g.used_pages() + g.pinned_pages).max(shared).max(last);
        g.bytes(g.volume_pages.saturating_sub(end))
    }

    fn geometry(&self, pinned: u64) -> Geometry {
        let holes = self.map.total(PageUse::Hole);
        Geometry {
            page_size: self.page_size(),
            volume_pages: self.picture.volume_pages,
            block_bytes: self.blocks,
            free_pages: self.map.total(PageUse::Free) + holes,
            hole_pages: holes,
            holes_assumed: self.holes_assumed,
            waiting_pages: self.waiting_pages,
            pinned_pages: pinned.min(self.waiting_pages),
            reserved_pages: self.reserved_pages,
            metadata_pages: self.map.total(PageUse::Metadata),
            heap_pages: self.map.total(PageUse::Heap),
            segment_pages: self.map.total(PageUse::Segment),
        }
    }
}

fn score(g: &Geometry, sums: &Sums, spare: u64, slack: u64) -> Score {
    let used = g.bytes(g.used_pages());
    // No more of it has blocks than the file takes beyond all else.
    let busy = g.bytes(g.volume_pages.saturating_sub(g.free_pages));
    let free = g.bytes(g.free_pages - g.hole_pages).min(g.block_bytes.saturating_sub(busy));
    let excess = free.saturating_sub(spare);
    let needed = used.saturating_sub(slack);
    let all = needed.saturating_add(excess).saturating_add(slack);
    let space = share(needed, all);
    let pieces = match sums.piece_bytes {
        0 => 1.0,
        bytes => (sums.whole_bytes / bytes as f64).min(1.0),
    };
    Score {
        value: pieces * space,
        pieces,
        space,
        needed_bytes: needed,
        excess_free_bytes: excess,
        spare_bytes: spare,
    }
}

/// One for each figure that costs more than a hundredth. `behind`: bytes in use that lie where
/// a file without holes would have ended; `cut`: the most that compacting gives back.
fn remedies(
    g: &Geometry,
    objects: &ObjectPieces,
    heap: &HeapReport,
    (score, cut): (&Score, u64),
    behind: u64,
) -> Vec<Remedy> {
    let mut out = Vec::new();
    let mut add = |bad: bool, action, gain_bytes, gain_pieces, cost_bytes| {
        if bad {
            out.push(Remedy { action, gain_bytes, gain_pieces, cost_bytes });
        }
    };
    let all = (score.needed_bytes + score.excess_free_bytes + heap.slack_bytes).max(1) as f64;
    let bad = |bytes: u64| bytes as f64 / all > BAD;
    let pinned = g.bytes(g.pinned_pages);
    add(score.pieces < 1.0 - BAD, Action::JoinPieces, 0, objects.excess, objects.cut_bytes);
    add(bad(heap.slack_bytes), Action::EmptyHeapPages, heap.slack_bytes, 0, heap.slack_cost);
    let excess = score.excess_free_bytes.min(cut);
    add(bad(excess), Action::Compact, excess, 0, behind);
    add(bad(pinned), Action::CloseOldestReader, pinned, 0, 0);
    out
}
