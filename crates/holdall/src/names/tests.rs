//! Names trees against `BTreeMap` over pages in memory: adversarial keys, damage, full
//! stores. After every batch the tree is checked and every live page must be its own.

mod balance;
mod damage;
mod listing;
mod model;

use super::{AppendCursor, Names};
use holdall_core::PageNo;
use holdall_core::pages::MemPages;
use rand::Rng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A tree with its model.
struct Pair {
    pages: MemPages,
    names: Names,
    tail: AppendCursor,
    model: Model,
}

impl Pair {
    fn new(page_size: usize) -> Self {
        let pages = MemPages::new(page_size);
        Self { pages, names: Names::default(), tail: AppendCursor::default(), model: Model::new() }
    }

    fn insert(&mut self, key: &[u8], value: &[u8]) {
        // Every other new key by the two steps: where would it be, and there with it.
        let found = self.names.locate(&self.pages, key, &self.tail).unwrap();
        let old = match found {
            Err(gap) if self.model.len().is_multiple_of(2) => {
                let tail = &mut self.tail;
                self.names.insert_at(&mut self.pages, 5, gap, key, value, tail).unwrap();
                None
            }
            _ => {
                self.tail.forget();
                self.names.insert(&mut self.pages, 5, key, value).unwrap()
            }
        };
        assert_eq!(found.ok().as_deref(), self.model.get(key).map(Vec::as_slice));
        let was = self.model.insert(key.to_vec(), value.to_vec());
        assert_eq!(old.as_deref(), was.as_deref());
    }

    fn remove(&mut self, key: &[u8]) {
        self.tail.forget();
        let old = self.names.remove(&mut self.pages, key).unwrap();
        assert_eq!(old.as_deref(), self.model.remove(key).as_deref());
    }

    /// Structure, pages, and the whole content.
    fn check(&self) -> super::Stats {
        let mut visited = BTreeSet::new();
        let stats = self.names.check(&self.pages, &mut |no: PageNo| {
            assert!(visited.insert(no));
        });
        let stats = stats.unwrap();
        assert_eq!(visited, self.pages.live(), "pages lost or foreign");
        assert_eq!(stats.entries, self.model.len() as u64);
        let mut cursor = self.names.iter(&self.pages, Bound::Unbounded);
        for (key, value) in &self.model {
            let (k, v) = cursor.advance().unwrap().unwrap();
            assert_eq!((k, &*v), (key.as_slice(), value.as_slice()));
        }
        assert!(cursor.next().is_none() && cursor.next().is_none());
        stats
    }
}

/// Keys made to hurt: empty, prefixes of one another, long, long common stems, all 0xff.
fn hard_key(rng: &mut SmallRng) -> Vec<u8> {
    let few = |rng: &mut SmallRng, n: usize| -> Vec<u8> {
        (0..n).map(|_| [0, b'/', b'a', 0xff][rng.random_range(0..4)]).collect()
    };
    match rng.random_range(0..8) {
        0 => few(rng, 0),
        1 => vec![[0, b'a', 0xff][rng.random_range(0..3)]; rng.random_range(0..=1024)],
        2 => {
            let n = rng.random_range(1000..=1024);
            few(rng, n)
        }
        3 => {
            let mut key = vec![b'a'; rng.random_range(1010..=1018)];
            key.extend(few(rng, 6));
            key
        }
        4 => {
            let mut key = vec![b's'; [10, 400, 900][rng.random_range(0..3)]];
            key.extend(rng.random_range(0..2000u32).to_be_bytes());
            key
        }
        5 => format!(
            "photos/2026/{:02}/img_{:05}.jpg",
            rng.random_range(0..13),
            rng.random_range(0..300)
        )
        .into_bytes(),
        _ => {
            let n = rng.random_range(0..6);
            few(rng, n)
        }
    }
}
