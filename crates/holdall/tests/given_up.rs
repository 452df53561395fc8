//! Figures and defragmentation beside writers that take every older state away.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{DefragOptions, Options, Store};
use holdall_io::MemoryStorage;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

fn options() -> Options {
    // Old versions and freed pages of older states are kept for nobody.
    Options::default().background(false).page_size(4096).pinned_bytes(0).old_version_bytes(0)
}

fn store() -> Store {
    options().create_on(Arc::new(MemoryStorage::new())).unwrap()
}

/// Ends the writer, also if the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Rounds of a writer beside what is tried.
const ROUNDS: u64 = 10;

/// Replaces objects as fast as it can, with checkpoints, until stopped.
fn disturb(store: &Store, stop: &AtomicBool, done: &AtomicU64) {
    let mut rounds = 0_u64;
    while !stop.load(SeqCst) {
        for i in 0..40 {
            let mut tx = store.begin_write().unwrap();
            let mut c = tx.collection(&format!("c{}", i % 20)).unwrap();
            c.put("x", &vec![rounds as u8; 3000 + i * 500]).unwrap();
            drop(c);
            tx.commit().unwrap();
        }
        store.checkpoint().unwrap();
        rounds += 1;
        done.store(rounds, SeqCst);
    }
}

#[test]
fn figures_are_had_beside_writers_that_take_every_state_away() {
    let store = store();
    for c in 0..200 {
        store.write(|tx| tx.collection(&format!("c{c}"))?.put("x", &[1; 500]).map(drop)).unwrap();
    }
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _end = End(&stop);
        scope.spawn(|| disturb(&store, &stop, &done));
        while done.load(SeqCst) < ROUNDS {
            let stat = store.stat().unwrap();
            assert_eq!((stat.objects, stat.collections.len()), (200, 200));
        }
    });
    // In a transaction of the same thread, too: it would wait for itself.
    let mut tx = store.begin_write().unwrap();
    tx.put("y", b"not committed").unwrap();
    assert_eq!(store.stat().unwrap().objects, 200);
}

#[test]
fn defragmentation_goes_on_where_its_states_are_given_up() {
    // A file: if no holes can be made, pieces are cut again for the file's length.
    let dir = tempfile::tempdir().unwrap();
    let store = options().create(dir.path().join("store")).unwrap();
    let long = vec![5; 300_000];
    for i in 0..20 {
        store.write(|tx| tx.put(format!("long {i}"), &long)).unwrap();
        store.write(|tx| tx.insert(format!("long {i}"), 150_000, &[6; 10])).unwrap();
    }
    for i in 0..400 {
        store.write(|tx| tx.put(format!("short {i:03}"), &[i as u8; 700])).unwrap();
    }
    for i in (0..400).filter(|i| i % 5 != 0) {
        store.write(|tx| tx.remove(format!("short {i:03}"))).unwrap();
    }
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _end = End(&stop);
        scope.spawn(|| disturb(&store, &stop, &done));
        while done.load(SeqCst) < ROUNDS {
            let options = DefragOptions::default();
            store.defrag(&options, &mut |_| ControlFlow::Continue(())).unwrap();
        }
    });
    let reader = store.read().unwrap();
    for i in 0..20 {
        let bytes = reader.get(format!("long {i}")).unwrap().unwrap();
        assert_eq!((bytes.len(), bytes.iter().filter(|b| **b == 6).count()), (300_010, 10));
    }
    drop(reader);
    // What was left for the writers' sake is found again.
    let report =
        store.defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(report.given_up, 0);
    // Only what no free run is long enough for.
    let left = store.frag(&mut |_, _| {}).unwrap().objects.excess;
    let cut = report.gave_back.cannot_punch;
    assert!(left == 0 || report.no_room > 0 || cut, "{left} pieces: {report:?}");
    assert!(store.verify().unwrap().is_sound());
}

/// Writes between the moves, by the callback: each takes away the state that a move began from.
#[test]
fn writes_between_the_moves_do_not_end_a_defragmentation() {
    let store = store();
    store.write(|tx| tx.put("another", b"")).unwrap();
    for i in 0..30 {
        store.write(|tx| tx.put(format!("{i}"), &vec![i as u8; 100_000])).unwrap();
        store.write(|tx| tx.insert(format!("{i}"), 50_000, &[9; 7])).unwrap();
    }
    let mut n = 0;
    let report = store
        .defrag(&DefragOptions::default(), &mut |_| {
            n += 1;
            // What the first frees is kept for the state alone, and the second ends that.
            for _ in 0..2 {
                store.write(|tx| tx.put("another", &vec![n as u8; 100_000])).unwrap();
                store.checkpoint().unwrap();
            }
            assert_eq!(store.stat().unwrap().objects, 31);
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(n > 0 && !report.stopped, "{report:?}");
    // Each was tried again, and what was left is reported.
    assert!(report.given_up > 0 && n > report.given_up, "{report:?}");
    assert!(store.verify().unwrap().is_sound());
}
