//! Nearly full bounded stores: a put that fits succeeds, one that does not is refused cleanly,
//! deleting always works.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{DefragOptions, Error, Hints, Options, Store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::ops::ControlFlow;
use std::path::Path;

const MIB: usize = 1 << 20;

fn create(path: &Path, mib: u64) -> Store {
    Options::default().background(false).max_bytes(mib << 20).create(path).unwrap()
}

fn name(i: usize) -> String {
    format!("{i:06}")
}

fn bytes(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 5 + at % 251 + i) as u8).collect()
}

/// Whether the put happened; one that fits does.
fn put(store: &Store, i: usize, len: usize) -> bool {
    let fits = store.stat().unwrap().fullness.fits(name(i).len(), len as u64);
    match store.write(|tx| tx.put(name(i), &bytes(i, len))) {
        Err(Error::Full(why)) => {
            assert!(!fits, "{len} bytes fit and were refused: {why}");
            false
        }
        result => {
            result.unwrap();
            true
        }
    }
}

fn check(store: &Store, live: &[(usize, usize)]) {
    let reader = store.read_newest().unwrap();
    for (i, len) in live {
        assert!(reader.get(name(*i)).unwrap().unwrap() == bytes(*i, *len), "{i}");
    }
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
}

/// Fills a store with objects of mixed sizes until even the smallest are refused.
fn fill(store: &Store, rng: &mut SmallRng) -> Vec<(usize, usize)> {
    let (mut live, mut in_vain) = (Vec::new(), 0);
    for i in 0.. {
        let most = if in_vain > 20 { 200 } else { 200_000 };
        let len = (300.0 / rng.random_range(0.0015..1.0_f64)) as usize;
        let len = len.min(most);
        if put(store, i, len) {
            live.push((i, len));
        } else {
            in_vain += 1;
        }
        if in_vain > 40 {
            break;
        }
    }
    live
}

#[test]
fn deleting_works_when_nothing_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = create(&path, 16);
    let mut rng = SmallRng::seed_from_u64(3);
    let mut live = fill(&store, &mut rng);
    assert!(store.stat().unwrap().fullness.share() > 0.99);
    check(&store, &live);
    // A reader that keeps what is deleted is given up if the room is needed.
    let reader = store.read_newest().unwrap();
    for round in 0..6 {
        for _ in 0..live.len() / 4 {
            let (i, _) = live.swap_remove(rng.random_range(0..live.len()));
            assert!(store.write(|tx| tx.remove(name(i))).unwrap());
        }
        for (i, len) in live.iter_mut().filter(|(_, len)| *len > 60_000).take(3) {
            store.write(|tx| tx.delete_range(name(*i), *len as u64 / 2..*len as u64)).unwrap();
            *len /= 2;
        }
        for i in 0..40 {
            let (i, len) = (10_000 * (round + 1) + i, rng.random_range(300..400_000));
            if put(&store, i, len) {
                live.push((i, len));
            }
        }
        if round == 3 {
            store.defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
        }
    }
    drop(reader);
    check(&store, &live);
    store.close().unwrap();
    let store = Options::default().max_bytes(16_u64 << 20).open(&path).unwrap();
    check(&store, &live);
}

#[test]
fn cutting_out_a_range_works_when_full() {
    let dir = tempfile::tempdir().unwrap();
    let store = create(&dir.path().join("s.holdall"), 4);
    let mut rng = SmallRng::seed_from_u64(5);
    // An object of short segments, for each of which a threshold asks that it be joined.
    let mut model = Vec::new();
    let threshold = |pages| Hints { threshold: Some(pages), ..Hints::default() };
    store.write(|tx| tx.put("a", &[])).unwrap();
    store.write(|tx| tx.set_hints("a", threshold(1))).unwrap();
    for round in 0..60 {
        let at = rng.random_range(0..=model.len());
        let new = bytes(round, 9000);
        store.write(|tx| tx.insert("a", at as u64, &new)).unwrap();
        model.splice(at..at, new);
    }
    store.write(|tx| tx.set_hints("a", threshold(32))).unwrap();
    let live = fill(&store, &mut rng);
    while !model.is_empty() {
        let at = rng.random_range(0..model.len());
        let end = model.len().min(at + 10_000);
        store.write(|tx| tx.delete_range("a", at as u64..end as u64)).unwrap();
        model.drain(at..end);
        assert!(store.read_newest().unwrap().get("a").unwrap().unwrap() == model);
    }
    check(&store, &live);
}

#[test]
fn what_lies_free_in_heap_pages_serves_a_large_object() {
    let dir = tempfile::tempdir().unwrap();
    let store = create(&dir.path().join("s.holdall"), 24);
    let mut n = 0;
    while put(&store, n, 900) {
        n += 1;
    }
    assert!(!put(&store, 90_000, MIB), "a MiB fits into a full store");
    for from in (0..n).step_by(500) {
        let gone = (from..n.min(from + 500)).filter(|i| i % 3 > 0);
        let gone: Vec<usize> = gone.collect();
        store.write(|tx| gone.iter().try_for_each(|i| tx.remove(name(*i)).map(drop))).unwrap();
    }
    let full = store.stat().unwrap().fullness;
    assert!(full.heap_room_bytes > 8 << 20, "{full:?}");
    let len = (full.capacity() - full.stored_bytes) as usize - 64 * 1024;
    assert!(put(&store, 90_001, len), "{len} bytes, {full:?}");
    let mut live: Vec<(usize, usize)> = (0..n).step_by(3).map(|i| (i, 900)).collect();
    live.push((90_001, len));
    check(&store, &live);
}

#[test]
fn a_put_waits_for_what_maintenance_holds() {
    let dir = tempfile::tempdir().unwrap();
    let store = create(&dir.path().join("s.holdall"), 32);
    // Objects in pieces: two of three small ones go, larger ones come into the gaps.
    for i in 0..260 {
        assert!(put(&store, i, 100_000));
    }
    for i in (0..260).filter(|i| i % 3 > 0) {
        store.write(|tx| tx.remove(name(i))).unwrap();
    }
    for i in 300..316 {
        assert!(put(&store, i, MIB));
    }
    std::thread::scope(|scope| {
        let mover = scope.spawn(|| {
            for _ in 0..5 {
                store
                    .defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(()))
                    .unwrap();
            }
        });
        let mut i = 0;
        while !mover.is_finished() {
            put(&store, 400 + i % 2, 2 * MIB - i % 5 * 1000);
            i += 1;
        }
    });
    check(&store, &(300..316).map(|i| (i, MIB)).collect::<Vec<_>>());
}
