//! Damaged trees: every operation ends, with an answer or an error, and none panics.

use super::*;
use crate::names::ListOptions;
use holdall_core::names_node::{NodeMut, child_bytes};
use holdall_core::pages::PageWrite;
use holdall_core::{Error, PageKind};
use rand::SeedableRng;

fn small_tree(rng: &mut SmallRng) -> Pair {
    let mut t = Pair::new(4096);
    for _ in 0..rng.random_range(1..900) {
        let key =
            if rng.random() { hard_key(rng) } else { rng.random::<u32>().to_be_bytes().to_vec() };
        t.insert(&key, &[1; 12]);
    }
    t
}

/// Everything there is to do with a tree.
fn use_all(t: &mut Pair, rng: &mut SmallRng) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut note = |result: Result<(), Error>| errors.extend(result.err());
    note(t.names.check(&t.pages, &mut |_| ()).map(drop));
    note(t.names.iter(&t.pages, Bound::Unbounded).try_for_each(|item| item.map(drop)));
    let options = ListOptions { delimiter: Some(b"/"), limit: usize::MAX, ..Default::default() };
    note(t.names.list(&t.pages, &options).map(drop));
    for _ in 0..200 {
        let stored = t.model.keys().nth(rng.random_range(0..t.model.len())).cloned();
        let key = stored.filter(|_| rng.random()).unwrap_or_else(|| hard_key(rng));
        note(t.names.get(&t.pages, &key).map(drop));
        if rng.random() {
            note(t.names.insert(&mut t.pages, 1, &key, &[2; 30]).map(drop));
        } else {
            note(t.names.remove(&mut t.pages, &key).map(drop));
        }
    }
    note(t.names.iter(&t.pages, Bound::Unbounded).try_for_each(|item| item.map(drop)));
    note(t.names.clear(&mut t.pages));
    errors
}

#[test]
fn random_bytes_in_nodes() {
    let mut found = 0;
    for seed in 0..500 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut t = small_tree(&mut rng);
        let live: Vec<_> = t.pages.live().into_iter().collect();
        for _ in 0..rng.random_range(1..30) {
            let no = live[rng.random_range(0..live.len())];
            let page = t.pages.page_mut(no, PageKind::Names).unwrap();
            let at =
                if rng.random() { rng.random_range(32..100) } else { rng.random_range(32..4096) };
            page[at] =
                if rng.random() { rng.random() } else { page[at] ^ 1 << rng.random_range(0..8) };
        }
        let errors = use_all(&mut t, &mut rng);
        assert!(errors.iter().all(Error::is_corrupt), "{errors:?}");
        found += usize::from(!errors.is_empty());
    }
    assert!(found > 250, "damage was met only {found} times");
}

#[test]
fn references_in_circles_and_to_strangers() {
    for seed in 0..300 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut t = small_tree(&mut rng);
        let live: Vec<_> = t.pages.live().into_iter().collect();
        if live.len() < 3 {
            continue;
        }
        for _ in 0..4 {
            // Whole bodies over one another: levels stay plausible, pages are met twice.
            let (a, b) = (rng.random_range(0..live.len()), rng.random_range(0..live.len()));
            let body = t.pages.page_mut(live[a], PageKind::Names).unwrap()[32..].to_vec();
            t.pages.page_mut(live[b], PageKind::Names).unwrap()[32..].copy_from_slice(&body);
        }
        let errors = use_all(&mut t, &mut rng);
        assert!(errors.iter().all(Error::is_corrupt), "{errors:?}");
    }
}

#[test]
fn a_tree_of_shared_children_does_not_walk_forever() {
    // 40 levels whose children are all the same page: 2^40 ways down.
    let mut pages = MemPages::new(4096);
    let mut below = None;
    for level in 0..40 {
        let no = pages.new_page(PageKind::Names, 1, None).unwrap();
        let page = pages.page_mut(no, PageKind::Names).unwrap();
        let mut node = NodeMut::new(no, page);
        node.build(level, below.unwrap_or(PageNo::NONE), &[], &[]).unwrap();
        let payload = below.map_or(vec![1; 12], |b| child_bytes(b).to_vec());
        assert!(node.insert(0, b"m"[..].into(), &payload).unwrap());
        below = Some(no);
    }
    let mut names = Names { root: below.unwrap() };
    assert_eq!(names.get(&pages, b"m").unwrap().unwrap().len(), 12);
    assert!(names.check(&pages, &mut |_| ()).unwrap_err().is_corrupt());
    assert!(names.iter(&pages, Bound::Unbounded).any(|item| item.is_err()));
    assert!(names.clear(&mut pages).unwrap_err().is_corrupt());
}

#[test]
fn leaves_in_the_wrong_order_end_the_walk() {
    let mut pages = MemPages::new(4096);
    let mut leaf = |key: &[u8]| {
        let mut names = Names::default();
        names.insert(&mut pages, 1, key, b"v").unwrap();
        names.root
    };
    let (left, right) = (leaf(b"z"), leaf(b"a"));
    let root = pages.new_page(PageKind::Names, 1, None).unwrap();
    let page = pages.page_mut(root, PageKind::Names).unwrap();
    let mut node = NodeMut::new(root, page);
    node.build(1, left, &[], &[]).unwrap();
    assert!(node.insert(0, b"m"[..].into(), &child_bytes(right)).unwrap());
    let names = Names { root };
    assert!(names.check(&pages, &mut |_| ()).unwrap_err().is_corrupt());
    let walk: Vec<_> = names.iter(&pages, Bound::Unbounded).collect();
    assert!(matches!(&walk[..], [Ok(_), Err(Error::Corrupt { .. })]), "{walk:?}");
}
