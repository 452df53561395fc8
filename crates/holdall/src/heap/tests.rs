//! Heap file against a map from location to record, over pages in memory; and how well
//! HY(n,u) packs.

use super::*;
use holdall_core::pages::MemPages;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::{BTreeMap, BTreeSet};

/// A file and what it should hold.
pub(super) struct World {
    pub(super) pages: MemPages,
    pub(super) file: HeapFile,
    pub(super) placement: Placement,
    pub(super) model: BTreeMap<Location, Vec<u8>>,
    pub(super) locs: Vec<Location>,
    pub(super) rng: SmallRng,
}

impl World {
    pub(super) fn new(size: usize, policy: Policy, seed: u64) -> Self {
        Self {
            pages: MemPages::new(size),
            file: HeapFile::new(42),
            placement: Placement::new(policy),
            model: BTreeMap::new(),
            locs: Vec::new(),
            rng: SmallRng::seed_from_u64(seed),
        }
    }

    fn record(&mut self, lens: Range<usize>) -> Vec<u8> {
        let (len, fill) = (self.rng.random_range(lens), self.rng.random::<u8>());
        (0..len).map(|i| fill.wrapping_add(i as u8)).collect()
    }

    pub(super) fn insert(&mut self, lens: Range<usize>, near: Option<PageNo>) -> Location {
        let record = self.record(lens);
        let (pages, placement) = (&mut self.pages, &mut self.placement);
        let loc = self.file.insert(pages, placement, &record, near).unwrap();
        assert!(self.model.insert(loc, record).is_none());
        self.locs.push(loc);
        loc
    }

    pub(super) fn take(&mut self) -> Option<Location> {
        let count = self.locs.len();
        (count > 0).then(|| self.locs.swap_remove(self.rng.random_range(0..count)))
    }

    pub(super) fn delete(&mut self) {
        let Some(loc) = self.take() else { return };
        self.file.delete(&mut self.pages, &mut self.placement, loc).unwrap();
        self.model.remove(&loc);
    }

    fn replace(&mut self, lens: Range<usize>) {
        let Some(loc) = self.take() else { return };
        let record = self.record(lens);
        let (pages, placement) = (&mut self.pages, &mut self.placement);
        let new = if self.file.replace(pages, placement, loc, &record).unwrap() {
            loc
        } else {
            self.file.insert(pages, placement, &record, None).unwrap()
        };
        self.model.remove(&loc);
        assert!(self.model.insert(new, record).is_none());
        self.locs.push(new);
    }

    pub(super) fn verify(&self) {
        let (mut seen, mut found) = (BTreeSet::new(), BTreeMap::new());
        self.file
            .check(
                &self.pages,
                &mut |page| {
                    assert!(seen.insert(page));
                    Ok(())
                },
                &mut |loc, record| {
                    found.insert(loc, record.to_vec());
                    Ok(())
                },
            )
            .unwrap();
        assert!(found == self.model, "records differ");
        assert_eq!(seen, self.pages.live());
        assert_eq!(self.file.records(), self.model.len() as u64);
        assert_eq!(HeapFile::decode(&self.file.encode(), 42).unwrap(), self.file);
    }

    fn utilization(&self) -> f64 {
        let (used, capacity) = self.file.utilization(self.pages.page_size());
        used as f64 / capacity as f64
    }

    /// As at a clean close and opening.
    fn reopen(&mut self) {
        self.file.flush(&mut self.pages, &mut self.placement).unwrap();
        self.placement.reset();
    }
}

fn small() -> Policy {
    Policy { cache_pages: 2, utilization: 70 }
}

#[test]
fn random_use_equals_a_map() {
    let d = Policy::default();
    for (size, policy, lens, seed) in [
        (4096, d, 1..400, 1),
        (4096, small(), 1..4049, 2),
        (8192, Policy { cache_pages: 1, utilization: 100 }, 20..3000, 3),
        (16384, Policy { cache_pages: 4, utilization: 0 }, 1..16337, 4),
        (65536, d, 1..65489, 5),
    ] {
        let mut w = World::new(size, policy, seed);
        for step in 0..8000 {
            let growing = step / 2000 % 2 == 0;
            match w.rng.random_range(0..20) {
                0..=9 if growing => drop(w.insert(lens.clone(), None)),
                0..=9 => w.delete(),
                10..=12 => {
                    let near = w.locs.last().map(|loc| loc.page);
                    w.insert(lens.clone(), near);
                }
                13..=14 => w.delete(),
                15..=18 => w.replace(lens.clone()),
                _ => {
                    if let Some(loc) = w.locs.last() {
                        assert_eq!(*HeapFile::get(&w.pages, *loc).unwrap(), w.model[loc][..]);
                    }
                }
            }
            match step % 1500 {
                700 => w.placement.reset(), // as after a crash
                1100 => w.file.flush(&mut w.pages, &mut w.placement).unwrap(),
                1300 => w.reopen(),
                _ => {}
            }
            if step % 500 == 0 {
                w.verify();
            }
        }
        w.verify();
        let all: BTreeMap<_, _> =
            w.file.iter(&w.pages).map(|r| r.map(|(l, r)| (l, r.to_vec())).unwrap()).collect();
        assert!(all == w.model);
        while !w.locs.is_empty() {
            w.delete();
        }
        w.reopen();
        w.verify();
        assert!(w.pages.live().len() < 40, "an emptied file gives its pages back");
    }
}

/// The state of an aborted transaction is put back: nothing looks full for ever.
#[test]
fn an_aborted_transaction_leaves_no_trace() {
    let mut w = World::new(4096, Policy::default(), 1);
    for _ in 0..300 {
        w.insert(100..300, None);
        let kept = (w.pages.clone(), w.file, w.placement.clone(), w.model.clone(), w.locs.clone());
        for _ in 0..10 {
            w.insert(100..300, None);
            w.delete();
        }
        (w.pages, w.file, w.placement, w.model, w.locs) = kept;
        w.verify();
    }
    assert!(w.utilization() > 0.9, "{}", w.utilization());
}

/// A placement that was not put back, or belongs to another moment, does no harm.
#[test]
fn a_placement_of_another_state_is_found_out() {
    let mut w = World::new(4096, Policy { cache_pages: 4, utilization: 87 }, 9);
    let mut old = w.placement.clone();
    for round in 0..400 {
        for _ in 0..w.rng.random_range(1..20) {
            match w.rng.random_range(0..5) {
                0..=2 => drop(w.insert(300..900, None)),
                _ => w.delete(),
            }
        }
        if round % 3 == 0 {
            std::mem::swap(&mut w.placement, &mut old);
        } else if round % 7 == 0 {
            let kept = (w.pages.clone(), w.file, w.model.clone(), w.locs.clone());
            w.insert(300..900, None);
            w.delete();
            (w.pages, w.file, w.model, w.locs) = kept;
        }
        w.verify();
    }
}

/// What the cache says of a page is checked against the page.
#[test]
fn a_wrong_hint_is_corrected() {
    let mut w = World::new(4096, Policy::default(), 10);
    for _ in 0..200 {
        w.insert(100..300, None);
    }
    let cached = w.placement.cached().to_vec();
    for hint in &cached {
        w.placement.correct(hint.index, 4048);
    }
    w.insert(3000..3001, None);
    let largest = cached.iter().max_by_key(|c| c.free).unwrap().free;
    w.placement.correct(cached[0].index, largest + 1);
    w.insert(largest + 1..largest + 2, None);
    w.verify();
}

#[test]
fn uniform_creation_fills_pages() {
    for size in [4096, 8192, 16384] {
        let mut w = World::new(size, Policy::default(), 1);
        for _ in 0..20_000 {
            w.insert(100..301, None);
        }
        w.verify();
        assert!(w.utilization() >= 0.97, "{size}: {}", w.utilization());
        let ratio = w.pages.writes as f64 / 20_000.0;
        assert!(ratio < 1.5, "{size}: {ratio} pages touched per record");
    }
}

#[test]
fn steady_creation_and_deletion_keep_utilization() {
    for (utilization, lens) in [(87, 100..301), (87, 20..60), (70, 100..301), (95, 100..301)] {
        let mut w = World::new(4096, Policy { cache_pages: 8, utilization }, 2);
        for _ in 0..10_000 {
            w.insert(lens.clone(), None);
        }
        let mut least = 1.0f64;
        for round in 0..80 {
            // One by one the deleted record's page is still cached; in batches it is not.
            let batch = if round % 2 == 0 { 1 } else { 500 };
            for _ in 0..1000 / batch {
                (0..batch).for_each(|_| w.delete());
                (0..batch).for_each(|_| {
                    w.insert(lens.clone(), None);
                });
            }
            least = least.min(w.utilization());
        }
        w.verify();
        let floor = f64::from(utilization) / 100.0 - 0.02;
        assert!(least >= floor, "u {utilization}, {lens:?}: fell to {least}");
        let fresh = w.file.map().len() - w.file.formatted;
        assert!(fresh < 200, "{fresh} fresh pages and holes");
    }
}

/// Deleting half and creating as much again does not let the file grow.
#[test]
fn holes_are_filled_again() {
    let mut w = World::new(4096, Policy::default(), 3);
    for _ in 0..10_000 {
        w.insert(100..301, None);
    }
    let before = w.pages.live().len();
    for _ in 0..5000 {
        w.delete();
    }
    w.reopen();
    for _ in 0..4900 {
        w.insert(100..301, None);
    }
    w.verify();
    let after = w.pages.live().len();
    assert!(after <= before + before / 8, "{before} pages before, {after} after");
}

#[test]
fn opening_again_and_again_does_not_waste_pages() {
    let mut w = World::new(4096, Policy::default(), 4);
    for _ in 0..500 {
        w.insert(100..301, None);
        w.reopen();
        // What a crash leaves: the pages in the cache look full.
        if w.locs.len().is_multiple_of(50) {
            w.placement.reset();
        }
    }
    w.verify();
    assert!(w.utilization() > 0.80, "{}", w.utilization());
}

#[test]
fn near_places_on_the_same_page() {
    let mut w = World::new(4096, Policy::default(), 5);
    let first = w.insert(500..501, None);
    for _ in 0..6 {
        w.insert(500..501, None);
    }
    for _ in 0..100 {
        w.insert(400..500, None);
    }
    w.delete_at(first);
    let near = w.insert(400..401, Some(first.page));
    assert_eq!(near.page, first.page);
    assert_ne!(w.insert(4000..4001, Some(first.page)).page, first.page);
    w.verify();
}

impl World {
    fn delete_at(&mut self, loc: Location) {
        self.file.delete(&mut self.pages, &mut self.placement, loc).unwrap();
        self.model.remove(&loc);
        self.locs.retain(|l| *l != loc);
    }
}

#[test]
fn an_insert_is_cheap_whatever_the_size_of_the_file() {
    let mut w = World::new(4096, Policy::default(), 6);
    for _ in 0..30_000 {
        w.insert(300..600, None);
    }
    for _ in 0..10_000 {
        w.delete();
    }
    let mut most = 0;
    for _ in 0..5000 {
        w.pages.reads.set(0);
        w.insert(300..600, None);
        most = most.max(w.pages.reads.get());
    }
    assert!(most <= 30, "{most} reads for one insert");
}

#[test]
fn records_of_wrong_length_and_a_full_store_are_refused() {
    let mut w = World::new(4096, Policy::default(), 7);
    for bad in [vec![], vec![0; 4049]] {
        let got = w.file.insert(&mut w.pages, &mut w.placement, &bad, None);
        assert!(matches!(got, Err(Error::Invalid(_))));
    }
    let loc = w.insert(4048..4049, None);
    w.pages.room = 0;
    let kept = (w.file, w.placement.clone());
    let mut out = Ok(loc);
    for _ in 0..9 {
        out = w.file.insert(&mut w.pages, &mut w.placement, &[1; 4000], None);
    }
    assert!(matches!(out, Err(Error::Full(_))));
    (w.file, w.placement) = kept;
    w.verify();
}

#[test]
fn a_file_is_dropped_in_portions() {
    let mut w = World::new(4096, Policy::default(), 8);
    for _ in 0..5000 {
        w.insert(500..900, None);
    }
    for _ in 0..4000 {
        w.delete();
    }
    let mut rounds = 0;
    while !w.file.drop_pages(&mut w.pages, 100).unwrap() {
        rounds += 1;
    }
    assert!(rounds > 5 && w.pages.live().is_empty(), "{rounds}");
    assert_eq!(HeapFile { changes: 0, ..w.file }, HeapFile::new(42));
}
