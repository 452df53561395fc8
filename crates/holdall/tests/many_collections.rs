//! Stores of more collections than pages that a transaction may change.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{DefragOptions, Durability, Error, Oid, Options, Store};
use holdall_io::MemoryStorage;
use holdall_testkit::{CostModel, CountedStorage};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Options of stores in which all collections are large.
fn options(dirty_pages: usize) -> Options {
    let small =
        Options::default().background(false).page_size(4096).tuning(|t| t.dirty_pages(dirty_pages));
    small.tuning(|t| t.log_bytes(256 << 10).first_log_bytes(64 << 10).small_collections(0, 0))
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
fn a_small_collection_costs_bytes_and_an_opening_reads_none() {
    let mut reads = Vec::new();
    for count in [100, 10_000] {
        let place =
            Arc::new(CountedStorage::new(Arc::new(MemoryStorage::new()), CostModel::default()));
        let store = Options::default().background(false).create_on(place.clone()).unwrap();
        let empty = store.stat().unwrap().used_bytes;
        fill(&store, count, 100);
        if count == 10_000 {
            let each = (store.stat().unwrap().used_bytes - empty) / u64::from(count);
            assert!(each < 400, "{each} bytes for each");
        }
        store.flush().unwrap();
        check(&store, count);
        store.close().unwrap();
        let before = place.stats();
        let store = Options::default().background(false).open_on(place.clone()).unwrap();
        let opened = place.stats();
        store.write(|tx| tx.collection("c7")?.put("b", b"1")).unwrap();
        store.close().unwrap();
        let closed = place.stats();
        reads.push((opened.reads - before.reads, closed.reads - opened.reads));
    }
    // A level more of a tree or two.
    let (few, many) = (reads[0], reads[1]);
    assert_eq!(few.0, many.0, "opening reads as much: {reads:?}");
    assert!(many.1 <= few.1 + 8, "a put and a close read as much: {reads:?}");
}

#[test]
fn a_collection_that_becomes_large_keeps_its_objects_and_becomes_small_again() {
    let place = Arc::new(MemoryStorage::new());
    let options = Options::default().background(false).tuning(|t| t.small_collections(40, 40_000));
    let store = options.create_on(place.clone()).unwrap();
    let name = |i: u32| format!("object {i:03}");
    let put = |i: u32| {
        let bytes = vec![i as u8; if i == 7 { 100_000 } else { 20 }];
        store.write(|tx| tx.collection("c")?.put(name(i), &bytes)).unwrap()
    };
    let is_small = || {
        let stat = store.stat().unwrap();
        stat.collections.iter().find(|c| c.name == "c").unwrap().small
    };
    let mut oids: Vec<_> = (0..40).map(put).collect();
    assert!(is_small());
    let version = store.read().unwrap().metadata(oids[7]).unwrap().version;
    let before = store.read().unwrap();
    oids.extend((40..60).map(put));
    assert!(!is_small());
    assert!(store.verify().unwrap().is_sound());
    let holds = |oids: &[Oid], from: u32| {
        let reader = store.read().unwrap().collection("c").unwrap();
        for (i, oid) in (from..).zip(oids) {
            assert_eq!(reader.lookup(name(i)).unwrap(), Some(*oid));
            assert_eq!(reader.get(*oid).unwrap().unwrap()[0], i as u8);
        }
        assert_eq!(reader.names("").count(), oids.len());
        assert_eq!(reader.names("").rev().count(), oids.len());
        assert_eq!(reader.count_names().unwrap(), oids.len() as u64);
    };
    holds(&oids, 0);
    assert_eq!(store.read().unwrap().metadata(oids[7]).unwrap().version, version);
    // A snapshot from before has them where they were.
    let old = before.collection("c").unwrap();
    assert_eq!((old.names("").count(), old.get(oids[39]).unwrap().unwrap()[0]), (40, 39));
    for i in 8..60 {
        store.write(|tx| tx.collection("c")?.remove(name(i))).unwrap();
    }
    let defrag = || store.defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(()));
    defrag().unwrap();
    assert!(is_small());
    assert!(store.verify().unwrap().is_sound());
    holds(&oids[..8], 0);
    assert_eq!(store.read().unwrap().metadata(oids[7]).unwrap().version, version);
    // An object without a name makes it large, and maintenance leaves it so.
    let lone = store.write(|tx| tx.collection("c")?.create(b"no name")).unwrap();
    defrag().unwrap();
    assert!(!is_small());
    assert_eq!(store.read().unwrap().get(lone).unwrap().unwrap(), b"no name");
    assert!(store.verify().unwrap().is_sound());
}

/// Rule 51: the put that crosses the border succeeds.
#[test]
fn without_room_a_collection_stays_small_until_there_is_some() {
    let place = Arc::new(MemoryStorage::new());
    let options = Options::default().background(false).page_size(4096).max_bytes(2 << 20);
    let options = options.tuning(|t| t.small_collections(40, 40_000));
    let store = options.create_on(place).unwrap();
    let put = |i: u32| store.write(|tx| tx.collection("c")?.put(format!("{i}"), &[7; 20]));
    let is_small = || {
        let stat = store.stat().unwrap();
        stat.collections.iter().find(|c| c.name == "c").unwrap().small
    };
    (0..40).for_each(|i| assert!(put(i).is_ok()));
    let fill = |i: u32| store.write(|tx| tx.put(format!("{i}"), &[1; 8192]));
    let filled = (0..1000).take_while(|i| fill(*i).is_ok()).count() as u32;
    put(40).unwrap();
    put(41).unwrap();
    assert!(is_small());
    assert!(store.verify().unwrap().is_sound());
    for i in 0..filled {
        store.write(|tx| tx.remove(format!("{i}"))).unwrap();
    }
    store.checkpoint().unwrap();
    put(42).unwrap();
    assert!(!is_small());
    assert_eq!(store.read().unwrap().collection("c").unwrap().names("").count(), 43);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_collection_gets_another_name() {
    let store = Store::in_memory().unwrap();
    let oid = store.write(|tx| tx.collection("a")?.put("x", b"1")).unwrap();
    store.write(|tx| tx.collection("large")?.create(b"2")).unwrap();
    store
        .write(|tx| {
            tx.rename_collection("a", "b")?;
            assert!(!tx.collection("a")?.has_collection()?);
            assert!(matches!(tx.rename_collection("b", "large"), Err(Error::Exists(_))));
            assert!(matches!(tx.rename_collection("b", "default"), Err(Error::Exists(_))));
            assert!(matches!(tx.rename_collection("none", "c"), Err(Error::NotFound(_))));
            assert!(matches!(tx.rename_collection("default", "c"), Err(Error::Invalid(_))));
            tx.rename_collection("large", "a")?;
            tx.collection("b")?.put("y", b"3")
        })
        .unwrap();
    let reader = store.read().unwrap();
    assert_eq!(reader.collections().unwrap(), ["a", "b"]);
    assert_eq!(reader.collection("b").unwrap().lookup("x").unwrap(), Some(oid));
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_dropped_collection_is_gone_at_once_and_emptied_step_by_step() {
    let place = Arc::new(MemoryStorage::new());
    let options = options(64);
    let store = options.create_on(place.clone()).unwrap();
    let mut oids = Vec::new();
    for _ in 0..200 {
        let all = (0..20).map(|i| [i; 300]);
        oids.extend(store.write(|tx| tx.collection("c")?.create_many(all)).unwrap());
    }
    let large = store.write(|tx| tx.collection("c")?.put("large", &[7; 300_000])).unwrap();
    store.write(|tx| tx.put("other", b"stays")).unwrap();
    let before = store.read().unwrap();
    store.write(|tx| tx.drop_collection("c")).unwrap();
    let gone = |store: &Store| {
        let reader = store.read().unwrap();
        for oid in oids.iter().chain([&large]) {
            assert!(matches!(reader.get(*oid), Err(Error::Dangling(_))));
        }
        assert!(matches!(reader.metadata(large), Err(Error::Dangling(_))));
        assert!(matches!(reader.open(large), Err(Error::Dangling(_))));
        assert!(reader.locate_many([large]).is_err());
        assert_eq!(reader.oids().count(), 1);
        let got = reader.get_many([large], |_, bytes| bytes.map(drop));
        assert!(matches!(got, Err(Error::Dangling(_))));
        let removed = store.write(|tx| tx.remove(large));
        assert!(matches!(removed, Err(Error::Dangling(_))));
        let read = store.write(|tx| tx.get(large));
        assert!(matches!(read, Err(Error::Dangling(_))));
        assert_eq!(store.stat().unwrap().objects, 1);
        assert!(store.verify().unwrap().is_sound());
    };
    gone(&store);
    assert_eq!(before.get(large).unwrap().unwrap().len(), 300_000);
    drop(before);
    // Each step is a transaction; a crash between two costs nothing.
    let (mut steps, mut store) = (0, store);
    while store.empty_dropped().unwrap() {
        steps += 1;
        gone(&store);
        if steps % 3 == 0 {
            store.flush().unwrap();
            let (volume, log) = place.snapshot();
            drop(store);
            let crashed = Arc::new(MemoryStorage::from_bytes(volume, log));
            store = options.open_on(crashed).unwrap();
            // Of the storage that goes on only the content counts.
            while store.empty_dropped().unwrap() {
                steps += 1;
                gone(&store);
            }
        }
    }
    assert!(steps > 3, "{steps} steps");
    assert!(!store.has_dropped());
    gone(&store);
    let report = store.frag(&mut |_, _| {}).unwrap();
    assert!(report.contract.holds, "{:?}", report.contract);
    assert!(store.stat().unwrap().used_bytes < 40 * 4096, "{:?}", store.stat().unwrap());
}

#[test]
fn a_thread_empties_what_was_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.holdall")).unwrap();
    store.write(|tx| tx.collection("c")?.create_many((0..5000).map(|_| [7; 200]))).unwrap();
    store.write(|tx| tx.drop_collection("c")).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    while store.has_dropped() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!store.has_dropped());
    assert!(store.verify().unwrap().is_sound());
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
