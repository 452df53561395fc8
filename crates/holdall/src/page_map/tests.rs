//! Page map against a vector, over pages in memory.

use super::*;
use holdall_core::page_map_node::FRESH;
use holdall_core::pages::MemPages;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

type Model = Vec<Option<(PageNo, u8)>>;

/// Checks map against model; every page of the map is live and the other way round.
fn verify(pages: &MemPages, map: &PageMap, model: &Model) {
    let (mut own, mut found) = (BTreeSet::new(), Vec::new());
    map.check(
        pages,
        &mut |page| {
            assert!(own.insert(page));
            Ok(())
        },
        &mut |index, page, class| {
            found.push((index as usize, page, class));
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(own, pages.live());
    let want = model.iter().enumerate();
    let want: Vec<_> = want.filter_map(|(i, e)| e.map(|(p, c)| (i, p, c))).collect();
    assert_eq!(found, want);
    assert_eq!(PageMap::decode(&map.encode()).unwrap(), *map);
}

fn model_find(model: &Model, class: u8, from: usize) -> Option<u32> {
    model_find_in(model, class..=FRESH, from)
}

fn model_find_in(model: &Model, classes: RangeInclusive<u8>, from: usize) -> Option<u32> {
    let from = if from < model.len() { from } else { 0 };
    let order = (from..model.len()).chain(0..from);
    order
        .into_iter()
        .find(|&i| model[i].is_some_and(|(_, c)| classes.contains(&c)))
        .map(|i| i as u32)
}

#[test]
fn random_use_equals_a_vector() {
    let mut rng = SmallRng::seed_from_u64(1);
    for size in [4096, 16384] {
        let mut pages = MemPages::new(size);
        let (mut map, mut model) = (PageMap::default(), Model::new());
        let mut next = 1000;
        for phase in 0..4 {
            let top = [1200usize, 40, 1800, 0][phase];
            for _ in 0..20_000 {
                let index = rng.random_range(0..model.len().max(1)) as u32;
                let at = index as usize;
                let class = rng.random_range(0..16);
                match rng.random_range(0..6) {
                    0 if model.len() < top => {
                        let run = PageRun::new(PageNo(next), rng.random_range(1..9));
                        next += run.len;
                        map.append_run(&mut pages, 5, run, class).unwrap();
                        model.extend((run.start.0..run.end()).map(|p| Some((PageNo(p), class))));
                    }
                    0 => {
                        let popped = map.pop(&mut pages).unwrap();
                        let want = model.pop().map(|e| e.map_or(PageNo::NONE, |(p, _)| p));
                        assert_eq!(popped, want);
                    }
                    1 if at < model.len() && model[at].is_some() => {
                        map.clear(&mut pages, index).unwrap();
                        model[at] = None;
                    }
                    2 if at < model.len() => {
                        let change = map.set_class(&mut pages, index, class);
                        match &mut model[at] {
                            Some((_, old)) => {
                                assert_eq!(change.unwrap(), *old != class);
                                *old = class;
                            }
                            None => assert!(change.is_err()),
                        }
                    }
                    3 => {
                        let hole = map.find_hole(&pages).unwrap();
                        let want = model.iter().position(Option::is_none);
                        assert_eq!(hole.map(|h| h as usize), want);
                        if let Some(hole) = hole {
                            next += 1;
                            map.set(&mut pages, 5, hole, PageNo(next), class).unwrap();
                            model[hole as usize] = Some((PageNo(next), class));
                        }
                    }
                    4 => {
                        let from = index as usize + 1;
                        let found = map.find(&pages, class, index + 1).unwrap();
                        assert_eq!(found, model_find(&model, class, from));
                        let partly = map.find_partly(&pages, class, index + 1).unwrap();
                        assert_eq!(partly, model_find_in(&model, class..=FRESH - 1, from));
                    }
                    _ => {
                        assert_eq!(
                            map.get(&pages, index).unwrap(),
                            model.get(at).copied().flatten()
                        );
                    }
                }
                assert_eq!(map.len() as usize, model.len());
            }
            verify(&pages, &map, &model);
        }
        while map.pop(&mut pages).unwrap().is_some() {}
        assert_eq!((map, pages.live().len()), (PageMap::default(), 0));
    }
}

/// 300 000 pages: three levels. A search costs at most three reads per level.
#[test]
fn a_search_costs_the_height_not_the_length() {
    let mut pages = MemPages::new(4096);
    let mut map = PageMap::default();
    let run = PageRun::new(PageNo(1 << 30), 300_000);
    map.append_run(&mut pages, 1, run, 0).unwrap();
    assert_eq!(map.height, 3);
    let mut rng = SmallRng::seed_from_u64(7);
    for _ in 0..300 {
        let (at, from) = (rng.random_range(0..map.len()), rng.random_range(0..map.len()));
        map.set_class(&mut pages, at, 9).unwrap();
        let (near, edge) = (rng.random_range(0..map.len()), at + 1);
        map.set_class(&mut pages, near, 3).unwrap();
        for start in [from, edge] {
            pages.reads.set(0);
            let found = map.find(&pages, 9, start).unwrap();
            assert_eq!(found, Some(at).filter(|_| near != at));
            assert!(pages.reads.get() <= 9, "{} reads", pages.reads.get());
        }
        pages.reads.set(0);
        assert_eq!(map.find(&pages, 10, from).unwrap(), None);
        assert!(pages.reads.get() <= 9, "{} reads", pages.reads.get());
        map.set_class(&mut pages, at, 0).unwrap();
        map.set_class(&mut pages, near, 0).unwrap();
        let before = pages.writes;
        map.set_class(&mut pages, at, 0).unwrap();
        assert_eq!(pages.writes, before, "the same class again changes nothing");
    }
}

#[test]
fn damaged_nodes_give_errors_and_end() {
    let mut rng = SmallRng::seed_from_u64(3);
    let mut pages = MemPages::new(4096);
    let mut map = PageMap::default();
    map.append_run(&mut pages, 1, PageRun::new(PageNo(1 << 30), 2000), 4).unwrap();
    let nodes: Vec<_> = pages.live().into_iter().collect();
    let mut caught = 0;
    for _ in 0..2000 {
        let (mut bad, mut map) = (pages.clone(), map);
        let no = nodes[rng.random_range(0..nodes.len())];
        let body = bad.page_mut(no, PageKind::PageMap).unwrap();
        let at = rng.random_range(32..80);
        body[at] = rng.random();
        let ok = map.check(&bad, &mut |_| Ok(()), &mut |_, _, _| Ok(())).is_ok();
        caught += usize::from(!ok);
        for index in [0, 506, 507, 1999] {
            let _ = map.get(&bad, index);
            let _ = map.find(&bad, rng.random_range(0..16), index);
            let _ = map.set_class(&mut bad, index, 9);
        }
        let _ = map.find_hole(&bad);
        let _ = map.set(&mut bad, 1, map.len(), PageNo(77), 3);
        for _ in 0..500 {
            if map.pop(&mut bad).is_err() {
                break;
            }
        }
    }
    assert!(caught > 500, "{caught}");
}

#[test]
fn impossible_roots_are_refused() {
    let good = PageMap { root: PageNo(4), height: 1, len: 9 };
    assert_eq!(PageMap::decode(&good.encode()).unwrap(), good);
    for bad in [
        PageMap { root: PageNo(4), height: 5, len: 9 },
        PageMap { root: PageNo(4), height: 0, len: 9 },
        PageMap { root: PageNo(0), height: 1, len: 9 },
        PageMap { root: PageNo(4), height: 1, len: 0 },
    ] {
        assert!(PageMap::decode(&bad.encode()).is_err(), "{bad:?}");
    }
}

#[test]
fn sixteen_bytes_are_a_map_that_is_written_back_the_same_or_an_error() {
    let mut rng = SmallRng::seed_from_u64(11);
    let (mut maps, mut errors) = (0, 0);
    for _ in 0..20_000 {
        let mut bytes = PageMap::default().encode();
        for _ in 0..rng.random_range(0..4) {
            bytes[rng.random_range(0..16)] = rng.random_range(0..6);
        }
        match PageMap::decode(&bytes) {
            Ok(map) => {
                maps += 1;
                assert_eq!(map.encode(), bytes);
            }
            Err(_) => errors += 1,
        }
    }
    assert!(maps > 1000 && errors > 1000, "{maps} maps, {errors} errors");
}
