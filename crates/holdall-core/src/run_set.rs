//! Sets of page runs: what is neither free nor in the bitmap, what a transaction has.

use crate::{PageNo, PageRun};
use std::collections::BTreeMap;

/// Disjoint runs by first page.
#[derive(Debug, Clone, Default)]
pub struct RunSet {
    runs: BTreeMap<u64, u64>,
    pages: u64,
}

impl RunSet {
    /// Adds a run; no page of it may be in the set. O(log n).
    pub fn insert(&mut self, run: PageRun) {
        debug_assert!(self.overlapping(run.start.0, run.end()).next().is_none(), "{run:?}");
        self.pages += run.len;
        let (mut start, mut len) = (run.start.0, run.len);
        if let Some((&s, &l)) = self.runs.range(..start).next_back()
            && s + l == start
        {
            self.runs.remove(&s);
            (start, len) = (s, l + len);
        }
        if let Some(l) = self.runs.remove(&(start + len)) {
            len += l;
        }
        self.runs.insert(start, len);
    }

    /// Takes out whatever of the run is in the set. O(log n + pieces).
    pub fn remove(&mut self, run: PageRun) {
        let pieces: Vec<PageRun> = self.overlapping(run.start.0, run.end()).collect();
        for piece in pieces {
            let Some((&s, &l)) = self.runs.range(..=piece.start.0).next_back() else { continue };
            self.runs.remove(&s);
            self.pages -= piece.len;
            if s < piece.start.0 {
                self.runs.insert(s, piece.start.0 - s);
            }
            if piece.end() < s + l {
                self.runs.insert(piece.end(), s + l - piece.end());
            }
        }
    }

    /// The parts of the set's runs that lie in `from..to`, in order.
    pub fn overlapping(&self, from: u64, to: u64) -> impl Iterator<Item = PageRun> + '_ {
        let before = self.runs.range(..from).next_back();
        before.into_iter().chain(self.runs.range(from..to.max(from))).filter_map(move |(&s, &l)| {
            let (a, b) = (s.max(from), (s + l).min(to));
            (a < b).then(|| PageRun::new(PageNo(a), b - a))
        })
    }

    /// Pages of the set's runs that end where `run` begins, or begin where it ends. O(log n).
    pub fn beside(&self, run: PageRun) -> u64 {
        let before = self.runs.range(..run.start.0).next_back();
        let before = before.filter(|(start, len)| *start + *len == run.start.0);
        before.map_or(0, |(_, len)| *len) + self.runs.get(&run.end()).copied().unwrap_or(0)
    }

    /// Whether the page is in the set.
    pub fn contains(&self, page: PageNo) -> bool {
        self.overlapping(page.0, page.0 + 1).next().is_some()
    }

    /// All runs in order.
    pub fn iter(&self) -> impl Iterator<Item = PageRun> + '_ {
        self.runs.iter().map(|(&s, &l)| PageRun::new(PageNo(s), l))
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_as_a_set_of_pages(
            ops in proptest::collection::vec((any::<bool>(), 0u64..60, 1u64..12), 1..80),
        ) {
            let (mut set, mut model) = (RunSet::default(), BTreeSet::new());
            for (add, start, len) in ops {
                let pages = start..start + len;
                if add {
                    if pages.clone().any(|p| model.contains(&p)) {
                        continue;
                    }
                    model.extend(pages);
                    set.insert(PageRun::new(PageNo(start), len));
                } else {
                    model.retain(|p| !pages.contains(p));
                    set.remove(PageRun::new(PageNo(start), len));
                }
                let flat: Vec<u64> = set.iter().flat_map(|r| r.start.0..r.end()).collect();
                prop_assert_eq!(flat, model.iter().copied().collect::<Vec<_>>());
                prop_assert_eq!(set.pages(), model.len() as u64);
                let run = PageRun::new(PageNo(start), len);
                let before = (0..start).rev().take_while(|p| model.contains(p)).count();
                let behind = (run.end()..).take_while(|p| model.contains(p)).count();
                if set.overlapping(start, run.end()).next().is_none() {
                    prop_assert_eq!(set.beside(run), (before + behind) as u64);
                }
            }
        }
    }
}
