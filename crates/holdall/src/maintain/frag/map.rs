//! The volume as cells, filled as the walk meets pages.
//!
//! Owns: [`MapBuilder`]. Invariant: a page counts for one kind: pages in use are entered as
//! metadata first and become another kind where the walk finds them.

use super::{Cell, VolumeMap};
use holdall_core::PageRun;

/// Most cells of a map.
const MOST_CELLS: u64 = 4096;

/// What a page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageUse {
    Segment,
    Heap,
    Metadata,
    Waiting,
    Reserved,
    Free,
    Hole,
}

/// A map being filled.
#[derive(Debug)]
pub(super) struct MapBuilder {
    volume_pages: u64,
    map: VolumeMap,
}

impl MapBuilder {
    /// A map of a volume of `volume_pages` pages, of which nothing is known.
    pub(super) fn new(volume_pages: u64) -> Self {
        let pages_per_cell = volume_pages.div_ceil(MOST_CELLS).max(1);
        // At most MOST_CELLS.
        let cells = vec![Cell::default(); volume_pages.div_ceil(pages_per_cell) as usize];
        Self { volume_pages, map: VolumeMap { pages_per_cell, cells } }
    }

    /// Enters pages nothing was known of.
    pub(super) fn add(&mut self, run: PageRun, kind: PageUse) {
        self.each(run, |cell, pages| *place(cell, kind) += pages);
    }

    /// Pages entered as `from` are of kind `to`. Returns how many were.
    pub(super) fn change(&mut self, run: PageRun, from: PageUse, to: PageUse) -> u64 {
        let mut changed = 0;
        self.each(run, |cell, pages| {
            let before = place(cell, from);
            let pages = pages.min(*before);
            *before -= pages;
            *place(cell, to) += pages;
            changed += pages;
        });
        changed
    }

    /// A piece of a cut object lies here.
    pub(super) fn mark_cut(&mut self, run: PageRun) {
        self.each(run, |cell, _| cell.cut = true);
    }

    fn each(&mut self, run: PageRun, mut f: impl FnMut(&mut Cell, u64)) {
        let per = self.map.pages_per_cell;
        // A run may come from a damaged page.
        let end = run.start.0.saturating_add(run.len).min(self.volume_pages);
        let mut at = run.start.0;
        while at < end {
            let to = (at / per + 1).saturating_mul(per).min(end);
            if let Some(cell) = self.map.cells.get_mut((at / per) as usize) {
                f(cell, to - at);
            }
            at = to;
        }
    }

    /// Pages in use behind page `line`, to the precision of a cell.
    pub(super) fn used_behind(&self, line: u64) -> u64 {
        let per = self.map.pages_per_cell;
        let used = |c: &Cell| c.segment + c.heap + c.metadata;
        let behind = self.map.cells.iter().enumerate().map(|(i, cell)| {
            let start = i as u64 * per;
            // Of the cell the line lies in, the last pages.
            used(cell).min((start + per).saturating_sub(line.max(start)))
        });
        behind.sum()
    }

    /// Sums of all cells.
    pub(super) fn total(&self, kind: PageUse) -> u64 {
        self.map.cells.iter().map(|cell| *place(&mut { *cell }, kind)).sum()
    }

    /// The map.
    pub(super) fn finish(self) -> VolumeMap {
        self.map
    }
}

fn place(cell: &mut Cell, kind: PageUse) -> &mut u64 {
    match kind {
        PageUse::Segment => &mut cell.segment,
        PageUse::Heap => &mut cell.heap,
        PageUse::Metadata => &mut cell.metadata,
        PageUse::Waiting | PageUse::Reserved => &mut cell.waiting,
        PageUse::Free => &mut cell.free,
        PageUse::Hole => &mut cell.hole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdall_core::PageNo;

    #[test]
    fn runs_are_spread_over_cells_and_cut_at_the_end() {
        let mut map = MapBuilder::new(10_000);
        assert_eq!((map.map.pages_per_cell, map.map.cells.len()), (3, 3334));
        map.add(PageRun::new(PageNo(0), 10_000), PageUse::Metadata);
        let run = PageRun::new(PageNo(2), 5);
        assert_eq!(map.change(run, PageUse::Metadata, PageUse::Heap), 5);
        map.mark_cut(PageRun::new(PageNo(9_999), u64::MAX));
        let cells = &map.map.cells;
        assert_eq!([cells[0].heap, cells[1].heap, cells[2].heap], [1, 3, 1]);
        assert_eq!((cells[3333].metadata, cells[3333].cut, cells[3332].cut), (1, true, false));
        assert_eq!((map.used_behind(9_998), map.used_behind(0)), (2, 10_000));
        assert_eq!((map.total(PageUse::Heap), map.total(PageUse::Metadata)), (5, 9_995));
    }
}
