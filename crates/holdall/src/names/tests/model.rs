//! Insertions, removals, lookups and walks against the model.

use super::*;
use crate::names::MAX_KEY;
use holdall_core::pages::PageRead;
use holdall_core::{Error, PageKind, page};
use rand::SeedableRng;
use rand::seq::SliceRandom;

#[test]
fn random_work_with_hard_keys() {
    for (seed, size) in [(1, 4096), (2, 4096), (3, 4096), (4, 8192), (5, 65536)] {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut t = Pair::new(size);
        for phase in 0..12 {
            // Growing, mixed and shrinking phases, so that trees rise and fall.
            let removals = [10, 50, 90][phase % 3];
            for _ in 0..700 {
                if rng.random_range(0..100) < removals {
                    let key = hard_key(&mut rng);
                    let near = t.model.range(key.clone()..).next().map(|(k, _)| k.clone());
                    t.remove(&near.unwrap_or(key));
                } else {
                    let value = vec![rng.random(); rng.random_range(1..=64)];
                    t.insert(&hard_key(&mut rng), &value);
                }
                let key = hard_key(&mut rng);
                let found = t.names.get(&t.pages, &key).unwrap();
                assert_eq!(found.as_deref(), t.model.get(&key).map(Vec::as_slice));
            }
            t.check();
        }
        let keys: Vec<_> = t.model.keys().cloned().collect();
        for (n, key) in keys.iter().enumerate() {
            t.remove(key);
            if n % 64 == 0 {
                t.check();
            }
        }
        assert_eq!((t.check().height, t.names), (0, Names::default()), "seed {seed}");
    }
}

#[test]
fn every_order_in_and_out() {
    let n = 6000usize;
    let mut rng = SmallRng::seed_from_u64(9);
    let key = |i: usize| format!("bucket/folder-{:03}/object-{i:08}", i / 100).into_bytes();
    let up: Vec<usize> = (0..n).collect();
    let down: Vec<usize> = (0..n).rev().collect();
    let mut mixed = up.clone();
    mixed.shuffle(&mut rng);
    for order_in in [&up, &down, &mixed] {
        for order_out in [&up, &down, &mixed] {
            let mut t = Pair::new(4096);
            for &i in order_in {
                t.insert(&key(i), &[i as u8; 12]);
            }
            let stats = t.check();
            let fill = stats.bytes_used as f64 / (stats.pages * 4048) as f64;
            assert!(fill > if order_in[0] == 0 { 0.95 } else { 0.48 }, "fill {fill:.2}");
            for (done, &i) in order_out.iter().enumerate() {
                t.remove(&key(i));
                if done % 1500 == 0 || done + 40 > n {
                    let stats = t.check();
                    assert!(stats.height <= 1 || done + 40 <= n, "the root did not shrink");
                }
                if done == n * 9 / 10 {
                    let stats = t.check();
                    let fill = stats.bytes_used as f64 / (stats.pages * 4048) as f64;
                    assert!(fill > 0.4, "fill {fill:.2} after removals");
                }
            }
            assert_eq!(t.names, Names::default());
            assert!(t.pages.live().is_empty());
        }
    }
}

#[test]
fn largest_cells_in_the_smallest_page() {
    let mut rng = SmallRng::seed_from_u64(3);
    let mut t = Pair::new(4096);
    let mut keys: Vec<Vec<u8>> = (0..600u32)
        .map(|i| {
            // Half differ at the front, half only at the very end: separators of 1,024 bytes.
            let mut key = vec![b'k'; MAX_KEY];
            let at = if i % 2 == 0 { 0 } else { MAX_KEY - 4 };
            key[at..at + 4].copy_from_slice(&i.to_be_bytes());
            key
        })
        .collect();
    for round in 0..3 {
        keys.shuffle(&mut rng);
        for (n, key) in keys.iter().enumerate() {
            t.insert(key, &[round; 64]);
            if n % 50 == 0 {
                t.check();
            }
        }
        keys.shuffle(&mut rng);
        for (n, key) in keys.iter().enumerate() {
            t.remove(key);
            if n % 50 == 0 {
                t.check();
            }
        }
        assert!(t.pages.live().is_empty());
    }
}

#[test]
fn walks_begin_anywhere_and_read_each_node_once() {
    let mut rng = SmallRng::seed_from_u64(4);
    let mut t = Pair::new(4096);
    for _ in 0..4000 {
        t.insert(&hard_key(&mut rng), &[1; 12]);
    }
    let stats = t.check();
    let before = t.pages.reads.get();
    assert_eq!(t.names.iter(&t.pages, Bound::Unbounded).count(), t.model.len());
    assert_eq!(t.pages.reads.get() - before, stats.pages);
    let mut seeker = t.names.iter(&t.pages, Bound::Unbounded);
    for _ in 0..2000 {
        let key = hard_key(&mut rng);
        let from = if rng.random() { Bound::Included(&key[..]) } else { Bound::Excluded(&key[..]) };
        let got: Vec<_> = t.names.iter(&t.pages, from).take(5).map(|r| r.unwrap().0).collect();
        let want = t.model.range::<[u8], _>((from, Bound::Unbounded));
        assert_eq!(got, want.take(5).map(|(k, _)| k.clone()).collect::<Vec<_>>());
        seeker.seek(&key);
        let want = t.model.range(key..);
        for (key, _) in want.take(rng.random_range(0..40)) {
            assert_eq!(seeker.advance().unwrap().unwrap().0, key.as_slice());
        }
    }
}

#[test]
fn a_lookup_reads_one_page_a_level() {
    let mut t = Pair::new(4096);
    for i in 0..20_000u32 {
        t.insert(&i.to_be_bytes(), &[1; 12]);
    }
    let height = u64::from(t.check().height);
    let before = t.pages.reads.get();
    t.names.get(&t.pages, &77u32.to_be_bytes()).unwrap().unwrap();
    assert_eq!(t.pages.reads.get() - before, height);
}

#[test]
fn a_full_store_is_an_error() {
    for room in 0..12 {
        let mut pages = MemPages::new(4096);
        pages.room = room;
        let mut names = Names::default();
        let full = (0..10_000u32).find_map(|i| {
            names.insert(&mut pages, 1, &i.reverse_bits().to_be_bytes(), &[1; 64]).err()
        });
        assert!(matches!(full, Some(Error::Full(_))), "{full:?}");
    }
}

#[test]
fn arguments_are_checked() {
    let mut t = Pair::new(4096);
    let mut insert = |key: &[u8], value: &[u8]| t.names.insert(&mut t.pages, 5, key, value);
    assert!(matches!(insert(&[0; MAX_KEY + 1], b"v"), Err(Error::Invalid(_))));
    assert!(matches!(insert(b"k", b""), Err(Error::Invalid(_))));
    assert!(matches!(insert(b"k", &[0; 65]), Err(Error::Invalid(_))));
    assert!(insert(&[0; 1024], &[0; 64]).unwrap().is_none());
    assert!(t.names.get(&t.pages, &[0; 1025]).unwrap().is_none());
    assert!(t.names.remove(&mut t.pages, &[0; 1025]).unwrap().is_none());
    let root = t.pages.page(t.names.root, PageKind::Names).unwrap();
    assert_eq!(page::owner(&root), 5);
}

#[test]
fn clear_frees_all() {
    let mut t = Pair::new(4096);
    for i in 0..30_000u32 {
        t.insert(&i.to_be_bytes(), &[1; 12]);
    }
    let stats = t.check();
    let before = t.pages.reads.get();
    t.names.clear(&mut t.pages).unwrap();
    assert!(t.pages.reads.get() - before <= stats.pages - stats.leaves + 1);
    t.model.clear();
    t.check();
    assert!(t.pages.live().is_empty() && t.names.root.is_none());
}
