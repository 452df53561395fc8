//! `StoreStat::readers`: which thread holds what since when.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

use holdall::{Options, Store};
use holdall_testkit::FaultyStorage;
use std::sync::Arc;

fn replace(store: &Store) {
    store.write(|tx| tx.put("large", &vec![7; 1 << 20])).unwrap();
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
}

#[test]
fn open_readers_are_listed_with_their_threads() {
    let storage = Arc::new(FaultyStorage::new(1));
    let store = Options::default().create_on(storage).unwrap();
    replace(&store);
    assert!(store.stat().unwrap().readers.is_empty());
    let theirs = store.clone();
    let open = move || theirs.read().unwrap();
    let old = std::thread::Builder::new().name("report".into()).spawn(open).unwrap().join();
    let old = old.unwrap();
    assert!(store.stat().unwrap().readers.is_empty(), "it sees the newest state");
    replace(&store);
    let own = store.read().unwrap();
    replace(&store);
    let stat = store.stat().unwrap();
    let [first, second] = stat.readers.as_slice() else { panic!("{stat:?}") };
    assert!(first.thread.ends_with("has ended"), "{first:?}");
    assert!(second.thread.contains("open_readers_are_listed"), "{second:?}");
    assert!(first.age >= second.age);
    // Each keeps the object as it sees it, and nothing of what came later.
    assert!(first.pinned_bytes >= 1 << 20 && second.pinned_bytes >= 1 << 20, "{stat:?}");
    assert_eq!(stat.pinned_bytes, first.pinned_bytes + second.pinned_bytes, "{stat:?}");
    drop((old, own));
    assert!(store.stat().unwrap().readers.is_empty());
}
