//! Stores of more collections than pages that a transaction may change.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Durability, Options, Store};
use holdall_io::MemoryStorage;
use std::sync::Arc;

fn options(dirty_pages: usize) -> Options {
    let small =
        Options::default().background(false).page_size(4096).tuning(|t| t.dirty_pages(dirty_pages));
    small.tuning(|t| t.log_bytes(256 << 10).first_log_bytes(64 << 10))
}

/// An object in each of `count` collections, whose pages have room left, by transactions of `each`.
fn fill(store: &Store, count: u32, each: u32) {
    for first in (0..count).step_by(each as usize) {
        let mut tx = store.begin_write().unwrap();
        tx.set_durability(Durability::Deferred);
        for n in first..count.min(first + each) {
            tx.collection(&format!("c{n}")).unwrap().put("a", &n.to_le_bytes()).unwrap();
        }
        tx.commit().unwrap();
    }
}

fn check(store: &Store, count: u32) {
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    let reader = store.read().unwrap();
    assert_eq!(reader.collections().unwrap().len(), count as usize);
    for n in 0..count {
        let found = reader.collection(&format!("c{n}")).unwrap().get("a").unwrap();
        assert_eq!(found.unwrap(), n.to_le_bytes());
    }
}

#[test]
fn a_store_of_many_collections_closes_with_the_least_limits() {
    let place = Arc::new(MemoryStorage::new());
    let store = options(16).create_on(place.clone()).unwrap();
    fill(&store, 700, 2);
    store.close().unwrap();
    assert!(place.snapshot().1.is_none(), "the log is gone");
    let store = options(16).open_on(place.clone()).unwrap();
    assert_eq!(store.stat().unwrap().replayed_commits, 0);
    // Of those that are there only some change, and those that are looked at count for nothing.
    store
        .write(|tx| {
            for n in 0..700 {
                assert!(tx.collection(&format!("c{n}"))?.lookup("a")?.is_some());
            }
            tx.collection("c5")?.put("a", &5_u32.to_le_bytes())
        })
        .unwrap();
    store.close().unwrap();
    let store = options(16).open_on(place).unwrap();
    check(&store, 700);
}

#[test]
fn nine_thousand_collections_close() {
    let place = Arc::new(MemoryStorage::new());
    let store = options(8192).create_on(place.clone()).unwrap();
    fill(&store, 9000, 100);
    store.close().unwrap();
    assert!(place.snapshot().1.is_none(), "the log is gone");
    let store = options(8192).open_on(place).unwrap();
    store.write(|tx| tx.collection("c8999")?.put("b", b"1")).unwrap();
    store.close().unwrap();
}

#[test]
fn what_a_forgotten_collection_has_room_for_is_found_again() {
    let place = Arc::new(MemoryStorage::new());
    let store = options(8192).create_on(place.clone()).unwrap();
    let put = |round: u32| {
        for n in 0..600 {
            let name = format!("c{n}");
            store.write(|tx| tx.collection(&name)?.put(format!("o{round}"), &[7; 300])).unwrap();
        }
    };
    put(0);
    let before = store.stat().unwrap().used_bytes;
    (1..8).for_each(put);
    // Each collection's objects lie in the page of its first.
    let grown = store.stat().unwrap().used_bytes - before;
    assert!(grown < 100 * 4096, "{grown} bytes more");
    assert!(store.verify().unwrap().is_sound());
}
