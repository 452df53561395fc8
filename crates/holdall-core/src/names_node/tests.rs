//! One node against a `BTreeMap`, and damaged nodes against panics.

use super::*;
use crate::page::{PageKind, format};
use crate::{Error, PageNo};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

const NO: PageNo = PageNo(7);

fn leaf(size: usize) -> Vec<u8> {
    let mut page = vec![0; size];
    format(&mut page, PageKind::Names, NO, 1);
    page
}

fn put(page: &mut [u8], key: &[u8], value: &[u8]) -> crate::Result<bool> {
    let at = Node::open(NO, page)?.search(key)?;
    let mut node = NodeMut::new(NO, page);
    match at {
        Ok(i) => {
            node.remove(i..i + 1)?;
            node.insert(i, key.into(), value)
        }
        Err(i) => node.insert(i, key.into(), value),
    }
}

fn random_key(rng: &mut SmallRng) -> Vec<u8> {
    let stem: &[u8] =
        [&b"archive/2026/photos/"[..], b"archive/2026/", b"", b"z"][rng.random_range(0..4)];
    let len = if rng.random_ratio(1, 40) { 1000 } else { rng.random_range(0..6) };
    stem.iter().copied().chain((0..len).map(|_| rng.random_range(b'a'..b'd'))).collect()
}

#[test]
fn cells_appended_together_lie_as_if_put_one_by_one() {
    let mut rng = SmallRng::seed_from_u64(8);
    for prefix in [&b""[..], b"stem/"] {
        let mut one = leaf(4096);
        NodeMut::new(NO, &mut one).build(0, PageNo::NONE, &[], prefix).unwrap();
        let (mut many, mut next) = (one.clone(), 0_u32);
        loop {
            let keys: Vec<Vec<u8>> = (next..next + rng.random_range(1..30))
                .map(|n| {
                    let stem: &[u8] = if n % 40 == 39 { b"stem0" } else { b"stem/" };
                    [stem, &n.to_be_bytes()].concat()
                })
                .collect();
            let cells = keys.iter().map(|k| Cell { key: k.as_slice().into(), payload: b"value" });
            let count = Node::open(NO, &one).unwrap().count();
            let done = NodeMut::new(NO, &mut many).append(cells.clone()).unwrap();
            for (i, cell) in cells.take(done).enumerate() {
                let mut node = NodeMut::new(NO, &mut one);
                assert!(node.insert(count + i, cell.key, cell.payload).unwrap());
            }
            assert_eq!(one, many);
            next += 30;
            if done < keys.len() {
                break;
            }
        }
        let count = Node::open(NO, &many).unwrap().count();
        assert!(count > 100, "{count} cells in a full leaf");
        let long = vec![1; MAX_KEY + 1];
        let cell = Cell { key: long.as_slice().into(), payload: b"value" };
        assert!(NodeMut::new(NO, &mut many).append([cell].into_iter()).is_err());
    }
    let mut inner = leaf(4096);
    NodeMut::new(NO, &mut inner).build(1, PageNo(3), &[], b"").unwrap();
    assert!(NodeMut::new(NO, &mut inner).append(std::iter::empty()).is_err());
}

#[test]
fn a_leaf_is_a_small_map() {
    for seed in 0..30 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut page = leaf(if seed % 2 == 0 { 4096 } else { 65536 });
        let mut model: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for _ in 0..1500 {
            let key = random_key(&mut rng);
            if rng.random_ratio(2, 5) {
                if let Ok(i) = Node::open(NO, &page).unwrap().search(&key).unwrap() {
                    NodeMut::new(NO, &mut page).remove(i..i + 1).unwrap();
                    assert!(model.remove(&key).is_some());
                }
            } else {
                let value = vec![rng.random(); rng.random_range(1..=64)];
                let was = model.remove(&key).is_some();
                if put(&mut page, &key, &value).unwrap() {
                    model.insert(key, value);
                } else {
                    // What does not fit leaves the page as it was, but for the old cell.
                    assert!(Node::open(NO, &page).unwrap().free() < 1200, "was there: {was}");
                }
            }
            let node = Node::open(NO, &page).unwrap();
            node.validate().unwrap();
            let all: Vec<_> = node.cells().unwrap();
            let all: Vec<_> = all.iter().map(|c| (c.key.to_vec(), c.payload.to_vec())).collect();
            assert_eq!(all, model.clone().into_iter().collect::<Vec<_>>());
        }
        for (key, value) in &model {
            let node = Node::open(NO, &page).unwrap();
            let i = node.search(key).unwrap().unwrap();
            assert_eq!(*node.value(i).unwrap(), **value);
        }
    }
}

#[test]
fn a_common_prefix_is_stored_once() {
    let mut page = leaf(4096);
    let mut n = 0;
    while put(&mut page, format!("archive/2026/photos/summer/{n:06}").as_bytes(), &[1; 12]).unwrap()
    {
        n += 1;
    }
    let node = Node::open(NO, &page).unwrap();
    assert!(node.prefix().starts_with(b"archive/2026/photos/summer/"));
    // 3 + 6 + 12 bytes and a slot a cell at most, if the whole key takes 50.
    assert!(n > 4000 / 23, "{n} keys");
}

#[test]
fn strangers_at_the_ends_do_not_spoil_the_prefix() {
    let keys: Vec<_> = (0..20).map(|n| format!("archive/2026/{n:02}")).collect();
    let all = ["aa"].into_iter().chain(keys.iter().map(String::as_str)).chain(["zz"]);
    let cells: Vec<_> =
        all.map(|key| Cell { key: key.as_bytes().into(), payload: &[1; 12] }).collect();
    let plan = Plan::best(0, &cells, &[]);
    assert_eq!(plan.prefix, b"archive/2026/");
    let plain: usize = cells.iter().map(|cell| cell.cost(0, &[])).sum();
    assert_eq!(plan.size, plain - 19 * 13);
    let mut page = leaf(4096);
    NodeMut::new(NO, &mut page).build(0, PageNo::NONE, &cells, &plan.prefix).unwrap();
    let node = Node::open(NO, &page).unwrap();
    node.validate().unwrap();
    assert_eq!(node.live(), plan.size);
}

#[test]
fn an_insertion_changes_few_bytes() {
    let mut page = leaf(4096);
    for n in 0..40 {
        assert!(put(&mut page, format!("key {n:03}").as_bytes(), &[1; 12]).unwrap());
    }
    let before = page.clone();
    assert!(put(&mut page, b"key 0385", &[2; 12]).unwrap());
    let changed = page.iter().zip(&before).filter(|(a, b)| a != b).count();
    assert!(changed <= 23 + 3 * 2 + 6, "{changed} bytes changed");
}

#[test]
fn keys_compare_in_pieces_as_whole() {
    let whole: &[&[u8]] = &[b"", b"a", b"ab", b"abc", b"abd", b"b", b"\xff", b"abcabc"];
    for a in whole {
        for cut in 0..=a.len() {
            let key = Key::new(&a[..cut], &a[cut..]);
            for b in whole {
                assert_eq!(key.cmp_bytes(b), a.cmp(b), "{a:?} at {cut}, {b:?}");
                assert_eq!(key.starts_with(b), a.starts_with(b));
                if a > b {
                    let between = key.separator(&Key::from(*b));
                    assert!(between.as_slice() > *b && between.as_slice() <= *a);
                }
            }
        }
    }
}

#[test]
fn a_damaged_node_gives_errors_only() {
    let mut errors = 0;
    for seed in 0..4000 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut page = leaf(4096);
        for _ in 0..30 {
            let value = vec![1; rng.random_range(1..=64)];
            put(&mut page, &random_key(&mut rng), &value).unwrap();
        }
        for _ in 0..rng.random_range(1..20) {
            let area = if rng.random() { 32..120 } else { 32..4096 };
            let at = rng.random_range(area);
            page[at] = rng.random();
        }
        for _ in 0..60 {
            let key = random_key(&mut rng);
            let result = put(&mut page, &key, &[1; 12]).and_then(|_| {
                let node = Node::open(NO, &page)?;
                let child = node.child(rng.random_range(0..=node.count()));
                let mut node = NodeMut::new(NO, &mut page);
                let end = rng.random_range(0..10);
                node.remove(rng.random_range(0..10)..end)?;
                if child.is_ok() {
                    node.remove_child(rng.random_range(0..3))?;
                }
                node.view()?.validate()
            });
            errors += usize::from(matches!(result, Err(Error::Corrupt { .. })));
        }
    }
    assert!(errors > 1000, "the damage was hardly ever met: {errors}");
}
