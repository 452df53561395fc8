//! The tree against a plain list of pages, and the cost of an allocation.

use super::tree::VISITS;
use super::*;
use proptest::prelude::*;
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// The same allocator over one `bool` per page, without any cleverness.
struct Model {
    free: Vec<bool>,
    space_pages: u32,
}

impl Model {
    fn free_from(&self, start: u32, max: u32) -> u32 {
        let rest = self.free.iter().skip(start as usize).take(max as usize);
        rest.take_while(|f| **f).count() as u32
    }

    fn runs(&self) -> Vec<Run> {
        let starts = (0..self.free.len() as u32)
            .filter(|&i| self.free[i as usize] && (i == 0 || !self.free[i as usize - 1]));
        starts.map(|start| Run { start, len: self.free_from(start, u32::MAX) }).collect()
    }

    /// Maximal free aligned blocks as (order, start), smallest order first.
    fn blocks(&self) -> Vec<(u32, u32)> {
        let whole = |k: u32, at: u32| self.free_from(at, 1 << k) == 1 << k;
        let mut found = Vec::new();
        for k in 0..16 {
            for at in (0..self.free.len() as u32).step_by(1 << k) {
                if whole(k, at) && !whole(k + 1, at & !((2 << k) - 1)) {
                    found.push((k, at));
                }
            }
        }
        found
    }

    fn alloc(&mut self, len: u32, part: bool) -> Option<Run> {
        if len == 0 {
            return None;
        }
        let block = self.blocks().into_iter().find(|b| 1 << b.0 >= len.next_power_of_two());
        let run = match block {
            Some((_, start)) => Some(Run { start, len }),
            None => {
                let runs = self.runs();
                let enough = runs.iter().filter(|r| r.len >= len).min_by_key(|r| (r.len, r.start));
                let longest = runs.iter().min_by_key(|r| (std::cmp::Reverse(r.len), r.start));
                let found = enough.or(longest.filter(|_| part));
                found.map(|r| Run { start: r.start, len: r.len.min(len) })
            }
        }?;
        self.set(run.start, run.len, false);
        Some(run)
    }

    fn set(&mut self, start: u32, len: u32, free: bool) {
        self.free[start as usize..(start + len) as usize].fill(free);
    }

    fn tree(&self) -> BuddyTree {
        let word = |w: usize| {
            let bits = self.free.iter().skip(w * 64).take(64).enumerate();
            bits.fold(0, |all, (i, &f)| all | u64::from(f) << i)
        };
        BuddyTree::from_free_words(self.space_pages, self.free.len() as u32, word).unwrap()
    }
}

#[derive(Debug, Clone)]
enum Op {
    Alloc(u32),
    AllocUpTo(u32),
    AllocSnug(u32, u32),
    AllocShortest(u32),
    AllocAt(u32, u32),
    Lowest,
    Free(u32, u32),
    FreeRun(u32),
    Limit(u32),
}

fn op(pages: u32) -> impl Strategy<Value = Op> {
    let len = prop_oneof![0..9u32, 0..100u32, 0..=pages];
    prop_oneof![
        3 => len.clone().prop_map(Op::Alloc),
        2 => len.clone().prop_map(Op::AllocUpTo),
        2 => (len.clone(), 0..20u32).prop_map(|(l, m)| Op::AllocSnug(l, l + m)),
        1 => (0..20u32).prop_map(Op::AllocShortest),
        1 => (0..pages + 9, len.clone()).prop_map(|(s, l)| Op::AllocAt(s, l)),
        2 => Just(Op::Lowest),
        2 => (0..pages + 9, len).prop_map(|(s, l)| Op::Free(s, l)),
        3 => (0..pages).prop_map(Op::FreeRun),
        1 => (0..=pages + 1).prop_map(Op::Limit),
    ]
}

fn apply(tree: &mut BuddyTree, model: &mut Model, op: &Op) {
    let pages = model.free.len() as u32;
    match *op {
        Op::Alloc(len) => assert_eq!(tree.alloc(len), model.alloc(len, false)),
        Op::AllocUpTo(len) => assert_eq!(tree.alloc_up_to(len), model.alloc(len, true)),
        Op::AllocSnug(len, most) => {
            let fits = model.runs().into_iter().filter(|r| r.len >= len && r.len <= most);
            let best = fits.min_by_key(|r| (r.len, r.start)).filter(|_| len > 0);
            let best = best.map(|r| Run { start: r.start, len });
            assert_eq!(tree.alloc_snug(len, most), best);
            best.into_iter().for_each(|r| model.set(r.start, r.len, false));
        }
        Op::AllocShortest(most) => {
            let fits = model.runs().into_iter().filter(|r| r.len <= most);
            let best = fits.min_by_key(|r| (r.len, r.start));
            assert_eq!(tree.alloc_shortest(most), best);
            best.into_iter().for_each(|r| model.set(r.start, r.len, false));
        }
        Op::Lowest => {
            assert_eq!(tree.alloc_lowest(), model.alloc(1, false).map(|r| r.start));
        }
        Op::AllocAt(start, len) => {
            let n = model.free_from(start, len);
            assert_eq!(tree.alloc_at(start, len), n);
            if n > 0 {
                model.set(start, n, false);
            }
        }
        Op::Free(start, len) => {
            let inside = start + len <= pages;
            let ok = inside && (start..start + len).all(|i| !model.free[i as usize]);
            assert_eq!(tree.free(start, len).is_ok(), ok);
            if ok {
                model.set(start, len, true);
            }
        }
        // Part of what was taken, from some taken page on.
        Op::FreeRun(from) => {
            let Some(start) = (from..pages).find(|&i| !model.free[i as usize]) else { return };
            let len = (start..pages).take_while(|&i| !model.free[i as usize]).count() as u32;
            let len = len - len / 3;
            tree.free(start, len).unwrap();
            model.set(start, len, true);
        }
        Op::Limit(limit) => {
            let grows = limit >= pages && limit <= model.space_pages;
            let cut = limit < pages && (limit..pages).all(|i| model.free[i as usize]);
            assert_eq!(tree.set_limit(limit).is_ok(), grows || cut);
            if grows || cut {
                model.free.resize(limit as usize, true);
            }
        }
    }
}

fn compare(tree: &BuddyTree, model: &Model) {
    assert_eq!(*tree, model.tree());
    let runs = model.runs();
    assert_eq!(tree.free_runs().collect::<Vec<_>>(), runs);
    assert_eq!(tree.free_pages(), runs.iter().map(|r| r.len).sum::<u32>());
    let longest = runs.iter().map(|r| r.len).max().unwrap_or(0);
    assert_eq!(tree.longest_run(), longest);
    let largest = model.blocks().last().map(|b| b.0 as u8);
    assert_eq!(tree.largest(), largest);
    if longest > 0 {
        assert!(least_order_for(longest) <= largest.unwrap());
    }
    for run in runs {
        assert!(tree.is_free(run.start, run.len));
        assert!(!tree.is_free(run.start, run.len + 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn the_tree_does_what_a_list_of_pages_does(
        (space_pages, limit, ops) in (1u32..=300).prop_flat_map(|n| {
            (Just(n), 0..=n, prop::collection::vec(op(n), 1..60))
        }),
    ) {
        let mut model = Model { free: vec![true; limit as usize], space_pages };
        let mut tree = model.tree();
        for op in &ops {
            apply(&mut tree, &mut model, op);
            compare(&tree, &model);
        }
    }

    #[test]
    fn a_broken_bitmap_gives_its_runs(words in prop::collection::vec(any::<u64>(), 5), end in 0u32..=320) {
        let tree = BuddyTree::from_free_words(320, end, |w| words[w]).unwrap();
        let bit = |i: u32| words[i as usize / 64] >> (i % 64) & 1 == 1;
        let model = Model { free: (0..end).map(bit).collect(), space_pages: 320 };
        compare(&tree, &model);
    }
}

#[test]
fn a_large_space_under_random_load_equals_its_bitmap() {
    let pages = 5000;
    let mut rng = SmallRng::seed_from_u64(7);
    let mut model = Model { free: vec![true; pages as usize], space_pages: pages };
    let mut tree = model.tree();
    let mut held: Vec<Run> = Vec::new();
    for step in 0..3000 {
        if rng.random_bool(0.55) {
            let len = 1 << rng.random_range(0..12);
            let len = rng.random_range(1..=len);
            if let Some(run) = tree.alloc_up_to(len) {
                assert_eq!(model.free_from(run.start, run.len), run.len);
                model.set(run.start, run.len, false);
                held.push(run);
            }
        } else if !held.is_empty() {
            let i = rng.random_range(0..held.len());
            let run = held.swap_remove(i);
            let keep = rng.random_range(0..run.len);
            tree.free(run.start + keep, run.len - keep).unwrap();
            model.set(run.start + keep, run.len - keep, true);
            if keep > 0 {
                held.push(Run { start: run.start, len: keep });
            }
        }
        if step % 10 == 0 {
            assert_eq!(tree, model.tree());
        }
    }
    for run in held {
        tree.free(run.start, run.len).unwrap();
    }
    assert_eq!(tree.free_runs().collect::<Vec<_>>(), [Run { start: 0, len: pages }]);
}

#[test]
fn requests_are_served_to_the_page_and_small_ones_keep_large_blocks_whole() {
    let mut tree = BuddyTree::from_free_words(1024, 1024, |_| u64::MAX).unwrap();
    assert_eq!(tree.alloc(11), Some(Run { start: 0, len: 11 }));
    assert_eq!(tree.alloc_lowest(), Some(11));
    assert_eq!(tree.alloc(4), Some(Run { start: 12, len: 4 }));
    assert_eq!(tree.largest(), Some(9));
    // Longer than any block, but there are neighbouring ones: 16..1024 is one run.
    assert_eq!(tree.alloc(1000), Some(Run { start: 16, len: 1000 }));
    assert_eq!(tree.alloc(9), None);
    assert_eq!(tree.alloc_up_to(9), Some(Run { start: 1016, len: 8 }));
    assert_eq!((tree.largest(), tree.alloc_up_to(1), tree.free_pages()), (None, None, 0));
    assert!(tree.free(1020, 5).is_err());
    assert!(tree.free(u32::MAX, 1).is_err());
    tree.free(0, 1024).unwrap();
    assert!(tree.free(512, 1).is_err());
    assert_eq!(tree.largest(), Some(10));
    assert!(BuddyTree::from_free_words(40000, 1, |_| 0).is_err());
    assert!(BuddyTree::from_free_words(64, 65, |_| 0).is_err());
}

#[test]
fn of_equal_runs_the_lowest_is_taken_and_of_sufficient_ones_the_shortest() {
    // Free: 3..6, 11..14, 19..24: blocks of at most 4 pages.
    let free = 0b111 << 3 | 0b111 << 11 | 0b1_1111 << 19;
    let mut tree = BuddyTree::from_free_words(64, 64, |_| free).unwrap();
    assert_eq!(tree.alloc(5), Some(Run { start: 19, len: 5 }));
    assert_eq!(tree.alloc(3), Some(Run { start: 3, len: 3 }));
    assert_eq!(tree.alloc_up_to(4), Some(Run { start: 11, len: 3 }));
    assert_eq!(tree.free_pages(), 0);
}

/// Words and nodes that `work` looks at.
fn visits<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = VISITS.get();
    let result = work();
    (result, VISITS.get() - before)
}

#[test]
fn an_allocation_in_a_large_space_visits_few_nodes() {
    let pages = MAX_SPACE_PAGES;
    let mut tree = BuddyTree::from_free_words(pages, pages, |_| u64::MAX).unwrap();
    // 512 words are 10 levels of nodes: a descent looks at two per level, the ascent makes
    // one per level.
    for _ in 0..20_000 {
        let (page, n) = visits(|| tree.alloc_lowest());
        assert!(page.is_some() && n <= 30, "{n} visits for a page");
    }
    for start in (0..20_000).step_by(3) {
        let (freed, n) = visits(|| tree.free(start, 1));
        assert!(freed.is_ok() && n <= 10, "{n} visits to free a page");
    }
    tree = BuddyTree::from_free_words(pages, pages, |_| u64::MAX).unwrap();
    let (run, n) = visits(|| tree.alloc(16_384));
    assert_eq!(run, Some(Run { start: 0, len: 16_384 }));
    assert!(n <= 20 + 256 + 256 + 10, "{n} visits for 16,384 pages");
    let (more, n) = visits(|| tree.alloc_at(16_384, 9000));
    assert_eq!(more, 9000);
    assert!(n <= 3 * 142 + 20, "{n} visits for 9000 pages in place");
    // What cannot be served is known at the root.
    assert_eq!(visits(|| tree.alloc(30_000)), (None, 0));
}

#[test]
fn orders_bound_what_a_space_can_serve() {
    for len in 1..2000u32 {
        let (sure, least) = (order_for(len), least_order_for(len));
        assert!(1 << sure >= len && (sure == 0 || 1 << (sure - 1) < len));
        assert!((4u32 << least) - 2 >= len && (least == 0 || (2u32 << least) - 2 < len));
    }
    assert_eq!((order_for(u32::MAX), least_order_for(u32::MAX)), (32, 31));
}

#[test]
fn the_super_directory_names_the_spaces_that_may_serve() {
    let mut rng = SmallRng::seed_from_u64(3);
    for spaces in [0u32, 1, 127, 128, 129, 1000] {
        let mut all = SuperDirectory::new(spaces, 8);
        let mut model = vec![Some(8u8); spaces as usize];
        for _ in 0..200 {
            let space = rng.random_range(0..spaces + 2);
            let order = rng.random_bool(0.2).then(|| rng.random_range(0..16));
            all.set(space, order);
            if let Some(entry) = model.get_mut(space as usize) {
                *entry = order;
            }
            let (least, from) = (rng.random_range(0..16), rng.random_range(0..spaces + 2));
            let serves: Vec<u32> =
                (0..spaces).filter(|&s| model[s as usize].is_some_and(|k| k >= least)).collect();
            let collect =
                |mut c: Candidates| -> Vec<u32> { std::iter::from_fn(|| c.next(&all)).collect() };
            let start = if from < spaces { from } else { 0 };
            let mut round = serves.clone();
            round.sort_by_key(|&s| (s < start, s));
            assert_eq!(collect(all.candidates(from, least)), round);
            let mut near = serves;
            near.sort_by_key(|&s| (s.abs_diff(from), s < from));
            assert_eq!(collect(all.nearest(from, least)), near);
        }
        let smaller = spaces / 2;
        all.resize(smaller, 0);
        model.truncate(smaller as usize);
        all.resize(spaces + 200, 3);
        model.resize(spaces as usize + 200, Some(3));
        let mut fresh = SuperDirectory::new(spaces + 200, 15);
        for (space, &order) in (0..).zip(&model) {
            fresh.set(space, order);
            assert_eq!(all.get(space), order);
        }
        assert_eq!(all, fresh);
    }
}

#[test]
fn a_visit_corrects_a_belief_and_a_free_raises_it() {
    let mut all = SuperDirectory::new(16_384, 14);
    let mut visited = 0;
    let mut next = all.candidates(9000, 14);
    while let Some(space) = next.next(&all) {
        all.set(space, None);
        visited += 1;
    }
    assert_eq!(visited, 16_384);
    assert_eq!(all.candidates(9000, 0).next(&all), None);
    all.raise(77, 3);
    all.raise(77, 1);
    assert_eq!((all.get(77), all.get(78), all.get(16_384)), (Some(3), None, None));
    assert_eq!(all.nearest(9000, 2).next(&all), Some(77));
}
