//! Defragmentation: sparse heap pages, objects in pieces, full volumes, writers beside it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

use holdall::{DefragOptions, DefragReport, Error, Options, Store};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

fn bytes(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 / 7 + i * 13) as u8).collect()
}

fn put(store: &Store, i: usize, len: usize) {
    store.write(|tx| tx.put(format!("{i:05}"), &bytes(i, len))).unwrap();
}

fn defrag(store: &Store) -> DefragReport {
    store.defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap()
}

fn check(store: &Store, all: impl Iterator<Item = (usize, usize)>) {
    let reader = store.read_newest().unwrap();
    for (i, len) in all {
        assert_eq!(reader.get(format!("{i:05}")).unwrap().unwrap(), bytes(i, len), "object {i}");
    }
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
}

/// 3,000 objects of 900 bytes, of which every third one stays.
fn thin(store: &Store) {
    for i in 0..3000 {
        put(store, i, 900);
    }
    for i in (0..3000).filter(|i| i % 3 != 0) {
        store.write(|tx| tx.remove(format!("{i:05}"))).unwrap();
    }
}

fn blocks(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn nine_tenths_of_the_small_objects_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = Options::default().background(false).create(&path).unwrap();
    let len = |i: usize| 500 + i * 7919 % 6000;
    for from in (0..20_000).step_by(500) {
        store
            .write(|tx| {
                (from..from + 500)
                    .try_for_each(|i| tx.put(format!("{i:05}"), &bytes(i, len(i))).map(drop))
            })
            .unwrap();
    }
    let kept = |i: &usize| i % 10 == 3;
    for from in (0..20_000).step_by(500) {
        store
            .write(|tx| {
                let mut gone = (from..from + 500).filter(|i| !kept(i));
                gone.try_for_each(|i| tx.remove(format!("{i:05}")).map(drop))
            })
            .unwrap();
    }
    let live: usize = (0..20_000).filter(kept).map(len).sum();
    let report = defrag(&store);
    assert!(report.moved.heap_pages > 500, "{report:?}");
    let names_and_more = 2000 * 60;
    let most = live as f64 * 1.1 + f64::from(names_and_more) + (2 << 20) as f64;
    assert!((report.blocks_after as f64) < most, "{live} bytes live, {report:?}");
    check(&store, (0..20_000).filter(kept).map(|i| (i, len(i))));
    assert_eq!(defrag(&store).moved.heap_pages, 0, "a second one finds nothing to do");
    store.close().unwrap();
    assert!((blocks(&path) as f64) < most);
    let store = Store::open(&path).unwrap();
    check(&store, (0..20_000).filter(kept).map(|i| (i, len(i))));
}

/// A store of at most 24 MiB, full of objects of 100 kB, of which every other one goes; then
/// one of 1 MB comes, in pieces.
fn cut_up(path: &Path) -> Store {
    let options = Options::default().background(false).max_bytes(24 << 20);
    let store = options.create(path).unwrap();
    let mut n = 0;
    loop {
        let put = store.write(|tx| tx.put(format!("{n:05}"), &bytes(n, 100_000)));
        if matches!(put, Err(Error::Full(_))) {
            break;
        }
        put.unwrap();
        n += 1;
    }
    for i in (0..n).step_by(2).take(24) {
        store.write(|tx| tx.remove(format!("{i:05}"))).unwrap();
    }
    store.checkpoint().unwrap();
    put(&store, 90_000, 1_000_000);
    let reader = store.read_newest().unwrap();
    let oid = reader.lookup("90000").unwrap().unwrap();
    assert!(reader.segments(oid).unwrap().segments > 4);
    drop(reader);
    store
}

#[test]
fn pieces_are_joined_where_a_run_is_free() {
    let dir = tempfile::tempdir().unwrap();
    let store = cut_up(&dir.path().join("s.holdall"));
    let version = |store: &Store| store.read_newest().unwrap().metadata("90000").unwrap().version;
    let before = version(&store);
    // No run is free for it yet.
    let first = defrag(&store);
    for i in 100..120 {
        store.write(|tx| tx.remove(format!("{i:05}"))).unwrap();
    }
    let second = defrag(&store);
    assert!(first.moved.objects + second.moved.objects > 0, "{first:?} {second:?}");
    let reader = store.read_newest().unwrap();
    let oid = reader.lookup("90000").unwrap().unwrap();
    assert_eq!(reader.segments(oid).unwrap().segments, 1);
    assert_eq!(version(&store), before);
    check(&store, [(90_000, 1_000_000)].into_iter());
}

#[test]
fn writers_and_readers_go_on_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.holdall")).unwrap();
    thin(&store);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for i in 5000..5300 {
                put(&store, i, 700 + i % 50_000);
            }
        });
        while !writer.is_finished() {
            defrag(&store);
        }
    });
    check(&store, (0..3000).step_by(3).map(|i| (i, 900)));
    check(&store, (5000..5300).map(|i| (i, 700 + i % 50_000)));
}

#[test]
fn it_stops_when_told_and_keeps_its_pace() {
    let store = Store::in_memory().unwrap();
    for i in 0..2000 {
        put(&store, i, 900);
    }
    for i in (0..2000).filter(|i| i % 4 != 0) {
        store.write(|tx| tx.remove(format!("{i:05}"))).unwrap();
    }
    let options = DefragOptions { rate: Some(1 << 30), ..DefragOptions::default() };
    let report = store.defrag(&options, &mut |_| ControlFlow::Break(())).unwrap();
    assert!(report.stopped);
    assert!(report.moved.record_bytes < 100_000);
    let begun = std::time::Instant::now();
    let options = DefragOptions { rate: Some(400_000), ..options };
    let report = store.defrag(&options, &mut |_| ControlFlow::Continue(())).unwrap();
    assert!(begun.elapsed().as_secs_f64() * 400_000.0 > report.moved.bytes() as f64 * 0.7);
    check(&store, (0..2000).step_by(4).map(|i| (i, 900)));
}

#[test]
fn a_thread_keeps_it_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("s.holdall")).unwrap();
    thin(&store);
    let keeper = store.keep_in_order(&DefragOptions::default()).unwrap();
    let begun = std::time::Instant::now();
    while keeper.moved().heap_pages < 50 {
        assert!(begun.elapsed().as_secs() < 60, "{:?}", keeper.moved());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    drop(keeper);
    check(&store, (0..3000).step_by(3).map(|i| (i, 900)));
}

#[test]
fn what_is_replaced_in_a_full_volume_stays_in_few_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().background(false).max_bytes(24 << 20);
    let store = options.create(dir.path().join("s.holdall")).unwrap();
    let count = 118;
    for i in 0..count {
        put(&store, i, 200_000);
    }
    for turn in 0..4 * count {
        put(&store, turn * 7919 % count, 200_000);
    }
    let reader = store.read_newest().unwrap();
    let mut pieces = 0;
    for i in 0..count {
        let oid = reader.lookup(format!("{i:05}")).unwrap().unwrap();
        pieces += reader.segments(oid).unwrap().segments;
    }
    assert!(pieces < count as u64 * 6 / 5, "{pieces} pieces of {count} objects");
}

/// Pages whose records find no room elsewhere do not keep those before them from being emptied.
#[test]
fn a_long_row_of_pages_that_cannot_be_emptied_does_not_end_it() {
    let storage = std::sync::Arc::new(holdall_testkit::FaultyStorage::new(1));
    let options = Options::default().background(false).page_size(4096);
    let store = options.create_on(storage).unwrap();
    let put = |name: String, len: usize| {
        store.write(|tx| tx.put(&name, &vec![3; len])).unwrap();
    };
    (0..3000).for_each(|i| put(format!("thin {i:04}"), 1200));
    (0..700).for_each(|i| put(format!("wide {i:03}"), 3900));
    for i in (0..3000).filter(|i| i % 6 != 0) {
        store.write(|tx| tx.remove(format!("thin {i:04}"))).unwrap();
    }
    let before = store.frag(&mut |_, _| {}).unwrap().heap.collections[0].pages;
    let report = defrag(&store);
    let after = store.frag(&mut |_, _| {}).unwrap().heap.collections[0].pages;
    assert!(before > 1200 && after < 900, "{before} pages before, {after} now: {report:?}");
    assert!(store.verify().unwrap().is_sound());
    let reader = store.read().unwrap();
    assert_eq!(reader.get("thin 0006").unwrap().unwrap(), vec![3; 1200]);
    assert_eq!(reader.get("wide 699").unwrap().unwrap(), vec![3; 3900]);
}
