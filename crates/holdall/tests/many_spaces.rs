//! A store of more spaces than have their trees of free pages in memory.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

use holdall::{Error, Options, Store};
use holdall_io::MemoryStorage;
use std::sync::Arc;

fn bytes(i: usize) -> Vec<u8> {
    (0..50_000).map(|at| (at / 97 + at * i + i * 31) as u8).collect()
}

/// Puts objects until there is room for no more; returns how many there are.
fn fill(store: &Store) -> usize {
    let refused = |i: &usize| {
        let put = store.write(|tx| tx.put(format!("{i}"), &bytes(*i)));
        assert!(matches!(put, Ok(_) | Err(Error::Full(_))), "{put:?}");
        put.is_err()
    };
    (0..).find(refused).unwrap()
}

#[test]
fn a_full_one_can_still_be_shrunk_and_emptied() {
    let storage = Arc::new(MemoryStorage::new());
    let options = Options::default()
        .page_size(4096)
        .tuning(|t| t.space_pages(64))
        .max_bytes(8 << 20)
        .tuning(|t| t.most_trees(2))
        .background(false);
    let store = options.create_on(storage).unwrap();
    let objects = fill(&store);
    assert!(objects > 120, "{objects}");
    // A cut in the midst writes nodes and records anew before anything is free.
    for i in 0..objects {
        store.write(|tx| tx.delete_range(format!("{i}"), 10_001..40_011)).unwrap();
    }
    let reader = store.read().unwrap();
    for i in 0..objects {
        let mut wanted = bytes(i);
        wanted.drain(10_001..40_011);
        assert!(reader.get(format!("{i}")).unwrap().unwrap() == wanted, "{i}");
    }
    drop(reader);
    let before = store.stat().unwrap().free_bytes;
    for i in 0..objects {
        store.write(|tx| tx.remove(format!("{i}"))).unwrap();
    }
    store.checkpoint().unwrap();
    assert!(store.verify().unwrap().is_sound());
    let stat = store.stat().unwrap();
    assert!(stat.free_bytes > before + 6_000_000, "{} free, {before} before", stat.free_bytes);
}
