//! Handle table against a map from OID to location, over pages in memory.

use super::*;
use holdall_core::pages::MemPages;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::{BTreeMap, BTreeSet};

struct World {
    pages: MemPages,
    table: HandleTable,
    cursor: HandleCursor,
    live: BTreeMap<Oid, Location>,
    dead: Vec<Oid>,
    unique: u32,
    rng: SmallRng,
}

impl World {
    fn new(size: usize, seed: u64) -> Self {
        Self {
            pages: MemPages::new(size),
            table: HandleTable::default(),
            cursor: HandleCursor::default(),
            live: BTreeMap::new(),
            dead: Vec::new(),
            unique: 0,
            rng: SmallRng::seed_from_u64(seed),
        }
    }

    fn insert(&mut self, near: Option<Oid>) -> Oid {
        self.unique += 1;
        let page = PageNo(self.rng.random_range(1..1 << 47));
        let loc = Location { page, slot: self.rng.random() };
        let oid =
            self.table.insert(&mut self.pages, &mut self.cursor, self.unique, loc, near).unwrap();
        assert!(self.live.insert(oid, loc).is_none());
        oid
    }

    fn pick(&mut self) -> Option<Oid> {
        self.live.keys().nth(self.rng.random_range(0..self.live.len().clamp(1, 500))).copied()
    }

    fn remove(&mut self, oid: Oid) {
        let loc = self.table.remove(&mut self.pages, oid).unwrap();
        assert_eq!(self.live.remove(&oid), Some(loc));
        self.dead.push(oid);
    }

    fn verify(&self) {
        let (mut seen, mut found) = (BTreeSet::new(), BTreeMap::new());
        self.table
            .check(
                &self.pages,
                &mut |page| {
                    assert!(seen.insert(page));
                    Ok(())
                },
                &mut |oid, loc| {
                    found.insert(oid, loc);
                    Ok(())
                },
            )
            .unwrap();
        assert_eq!(found, self.live);
        assert_eq!(seen, self.pages.live());
        let all: Vec<_> = self.table.iter(&self.pages).map(|h| h.unwrap()).collect();
        assert!(all.into_iter().eq(self.live.iter().map(|(&o, &l)| (o, l))));
        for &oid in &self.dead {
            let gone = self.table.lookup(&self.pages, oid);
            assert!(matches!(gone, Err(Error::Dangling(o)) if o == oid));
        }
    }
}

#[test]
fn random_use_equals_a_map() {
    for (size, seed) in [(4096, 1), (8192, 2), (65536, 3)] {
        let mut w = World::new(size, seed);
        for step in 0..24_000 {
            let growing = step / 6000 % 2 == 0;
            match (w.rng.random_range(0..10), w.pick()) {
                (0..=5, _) if growing => drop(w.insert(None)),
                (0..=1, Some(oid)) => drop(w.insert(Some(oid))),
                (2..=7, Some(oid)) => w.remove(oid),
                (8, Some(oid)) => {
                    let loc = Location { page: PageNo(step + 1), slot: 3 };
                    w.table.update(&mut w.pages, oid, loc).unwrap();
                    w.live.insert(oid, loc);
                }
                (_, Some(oid)) => {
                    assert_eq!(w.table.lookup(&w.pages, oid).unwrap(), w.live[&oid]);
                }
                _ => drop(w.insert(None)),
            }
        }
        w.verify();
        while let Some(oid) = w.pick() {
            w.remove(oid);
        }
        w.verify();
    }
}

#[test]
fn never_used_oids_are_not_found_and_old_ones_dangle() {
    let mut w = World::new(4096, 1);
    let oid = w.insert(None);
    let not_found =
        |w: &World, oid| matches!(w.table.lookup(&w.pages, oid), Err(Error::NotFound(_)));
    assert!(not_found(&w, Oid { site: 1, ..oid }));
    assert!(not_found(&w, Oid { page: 99, ..oid }));
    assert!(not_found(&w, Oid { slot: 1, ..oid }));
    assert!(not_found(&w, Oid { slot: u16::MAX, ..oid }));
    let other = Oid { unique: 7, ..oid };
    assert!(matches!(w.table.lookup(&w.pages, other), Err(Error::Dangling(_))));
    w.remove(oid);
    let new = w.insert(None);
    assert_eq!((new.page, new.slot), (oid.page, oid.slot), "the slot is used again");
    assert!(matches!(w.table.remove(&mut w.pages, oid), Err(Error::Dangling(_))));
    let none = Location { page: PageNo::NONE, slot: 0 };
    assert!(matches!(w.table.update(&mut w.pages, new, none), Err(Error::Invalid(_))));
    // Pages of an extent that were never formatted are never read.
    for _ in 0..2000 {
        w.insert(None);
    }
    let last = w.table.map.len() - 1;
    assert!(not_found(&w, Oid { site: 0, page: last, slot: 0, unique: 1 }));
}

#[test]
fn near_is_honoured_and_pages_come_in_extents() {
    let mut w = World::new(4096, 5);
    let first = w.insert(None);
    while w.insert(None).page == first.page {}
    w.remove(first);
    let near = w.insert(Some(Oid { unique: 0, ..first }));
    assert_eq!(near.page, first.page);
    assert_ne!(w.insert(Some(near)).page, first.page, "it is full again");
    for _ in 0..40_000 {
        w.insert(None);
    }
    let mapped: Vec<_> =
        (0..w.table.map.len()).map(|i| w.table.map.get(&w.pages, i).unwrap().unwrap().0).collect();
    let breaks = mapped.windows(2).filter(|p| p[1].0 != p[0].0 + 1).count();
    assert!(mapped.len() > 100 && breaks <= 3, "{breaks} breaks in {} pages", mapped.len());
    let full = w.live.len() as f64 / (mapped.len() * handle_page::capacity(4096)) as f64;
    assert!(full > 0.85, "{full}");
}

/// After creation and random deletion of half, new handles fill the gaps.
#[test]
fn freed_slots_are_used_again() {
    let mut w = World::new(4096, 6);
    let oids: Vec<_> = (0..30_000).map(|_| w.insert(None)).collect();
    let before = w.table.map.len();
    for oid in oids.iter().step_by(2) {
        w.remove(*oid);
    }
    w.cursor = HandleCursor::default();
    for _ in 0..14_000 {
        w.insert(None);
    }
    assert_eq!(w.table.map.len(), before);
    w.dead.clear();
    w.verify();
}

#[test]
fn a_lookup_costs_the_map_and_one_page() {
    let mut w = World::new(4096, 7);
    let oids: Vec<_> = (0..3000).map(|_| w.insert(None)).collect();
    for oid in oids {
        w.pages.reads.set(0);
        w.table.lookup(&w.pages, oid).unwrap();
        assert_eq!(w.pages.reads.get(), 2);
    }
}

#[test]
fn damaged_pages_give_errors_and_end() {
    let mut rng = SmallRng::seed_from_u64(9);
    let mut w = World::new(4096, 8);
    let oids: Vec<_> = (0..900).map(|_| w.insert(None)).collect();
    for oid in oids.iter().step_by(3) {
        w.remove(*oid);
    }
    let mut caught = 0;
    for _ in 0..1500 {
        let mut bad = w.pages.clone();
        let index = rng.random_range(0..3);
        let page = w.table.map.get(&bad, index).unwrap().unwrap().0;
        let body = bad.page_mut(page, PageKind::Handle).unwrap();
        for _ in 0..rng.random_range(1..4) {
            body[rng.random_range(32..64)] = rng.random();
        }
        let ok = w.table.check(&bad, &mut |_| Ok(()), &mut |_, _| Ok(())).is_ok();
        caught += usize::from(!ok);
        let (mut table, mut cursor) = (w.table, HandleCursor { page: Some(index), known: None });
        for &oid in &oids[..6] {
            let loc = Location { page: PageNo(5), slot: 0 };
            let _ = table.lookup(&bad, oid);
            let _ = table.update(&mut bad, oid, loc);
            let _ = table.remove(&mut bad, oid);
            let _ = table.insert(&mut bad, &mut cursor, 1, loc, Some(oid));
        }
        assert!(table.iter(&bad).count() < 3000);
    }
    assert!(caught > 500, "{caught}");
}
