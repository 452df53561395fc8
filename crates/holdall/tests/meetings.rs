//! Maintenance that meets what is not committed yet, or no longer protected: contents are compared,
//! not structure.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

use holdall::{DefragOptions, Error, Moved, Options, PutOptions, Store};
use holdall_io::MemoryStorage;
use holdall_testkit::{FaultPlan, FaultyStorage};
use std::ops::ControlFlow;
use std::sync::Arc;

const PAGE: usize = 4096;

fn options() -> Options {
    Options::default()
        .page_size(PAGE)
        .tuning(|t| t.space_pages(64))
        .background(false)
        .tuning(|t| t.growth_bytes(1))
}

fn in_memory(options: &Options) -> Store {
    options.create_on(Arc::new(MemoryStorage::new())).unwrap()
}

fn bytes(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 61 + seed * 7 + at % 13) as u8).collect()
}

fn put(store: &Store, name: &str, seed: usize, len: usize) {
    store.write(|tx| tx.put(name, &bytes(seed, len))).unwrap();
}

fn check(store: &Store, name: &str, seed: usize, len: usize) {
    assert!(store.read().unwrap().get(name).unwrap() == Some(bytes(seed, len)), "{name}");
}

/// Ten objects of 400 KB, of which most are deleted again: the end of the file is free.
fn ebb(store: &Store) {
    (0..10).for_each(|i| put(store, &format!("old {i}"), i, 400_000));
    store.checkpoint().unwrap();
    (2..10).for_each(|i| assert!(store.write(|tx| tx.remove(format!("old {i}"))).unwrap()));
}

fn check_ebb(store: &Store) {
    (0..2).for_each(|i| check(store, &format!("old {i}"), i, 400_000));
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_cut_leaves_what_is_staged_in_spaces_that_no_commit_knows() {
    for before in [1_000_000, 1_900_000, 2_900_000] {
        let store = in_memory(&options());
        put(&store, "first", 1, 100);
        let mut staged = store.stage("large", PutOptions::default()).unwrap();
        let whole = bytes(3, 3_000_000);
        staged.push(&whole[..before / 2]).unwrap();
        ebb(&store);
        staged.push(&whole[before / 2..before]).unwrap();
        for _ in 0..3 {
            store.checkpoint().unwrap();
        }
        store.defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
        staged.push(&whole[before..]).unwrap();
        store.write(|tx| staged.finish(tx)).unwrap();
        check(&store, "large", 3, whole.len());
        check_ebb(&store);
    }
}

#[test]
fn a_cut_leaves_what_a_running_transaction_has_placed() {
    let store = in_memory(&options());
    ebb(&store);
    let mut tx = store.begin_write().unwrap();
    tx.put("large", &bytes(4, 2_500_000)).unwrap();
    // Another thread's, as the store's own: this one has the writer's lock.
    std::thread::scope(|scope| {
        scope.spawn(|| (0..3).for_each(|_| store.checkpoint().unwrap()));
    });
    tx.put("large too", &bytes(5, 500_000)).unwrap();
    tx.commit().unwrap();
    check(&store, "large", 4, 2_500_000);
    check(&store, "large too", 5, 500_000);
    check_ebb(&store);
}

#[test]
fn a_log_made_of_the_files_end_leaves_what_is_staged_there() {
    let storage = Arc::new(FaultyStorage::new(1));
    drop(options().create_on(storage.clone()).unwrap());
    let store = options().open_on(storage.clone()).unwrap();
    let whole = bytes(6, 2_000_000);
    let mut staged = store.stage("large", PutOptions::default()).unwrap();
    staged.push(&whole).unwrap();
    // Room for no log, as far as the file keeps its length.
    let plan = FaultPlan { full_at_bytes: Some(storage.taken()), ..FaultPlan::default() };
    storage.set_plan(plan);
    let refused = store.write(|tx| tx.put("small", b"x"));
    assert!(matches!(refused, Err(Error::Full(_)) | Ok(_)), "{refused:?}");
    storage.set_plan(FaultPlan::default());
    store.write(|tx| staged.finish(tx)).unwrap();
    check(&store, "large", 6, whole.len());
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn what_is_staged_when_the_store_closes_takes_nothing_more() {
    let storage = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage.clone()).unwrap();
    ebb(&store);
    let mut staged = store.stage("large", PutOptions::default()).unwrap();
    staged.push(&bytes(7, 1_500_000)).unwrap();
    let mut late = store.begin_write().unwrap();
    store.clone().close().unwrap();
    let length = holdall_io::Storage::volume(&*storage).len().unwrap();
    let refused = (0..100).find_map(|_| staged.push(&bytes(8, 1_500_000)).err());
    assert!(matches!(refused, Some(Error::Invalid(_))), "{refused:?}");
    assert!(late.put("late", b"x").is_err());
    assert_eq!(holdall_io::Storage::volume(&*storage).len().unwrap(), length);
    drop((staged, late, store));
    let store = options().open_on(storage).unwrap();
    check_ebb(&store);
    put(&store, "next", 9, 3_000_000);
    check(&store, "next", 9, 3_000_000);
}

/// A full store: one object of four single pages, as many pages free singly, and a free run of
/// five. What is replaced goes to the single pages.
fn crumbled() -> Store {
    let store = in_memory(&options().max_bytes(120 * PAGE as u64).pinned_bytes(0));
    put(&store, "filler", 0, 5 * PAGE);
    let mut crumbs = 0;
    while store.write(|tx| tx.put(format!("crumb {crumbs}"), &bytes(1, PAGE))).is_ok() {
        crumbs += 1;
    }
    assert!(crumbs > 40, "{crumbs}");
    let gone = (2..20).step_by(2).map(|i| format!("crumb {i}"));
    store.write(|tx| gone.map(|name| tx.remove(&name)).try_for_each(|r| r.map(drop))).unwrap();
    store.checkpoint().unwrap();
    put(&store, "x", 10, 4 * PAGE);
    assert!(store.write(|tx| tx.remove("filler")).unwrap());
    store.checkpoint().unwrap();
    store
}

/// Replaces `x` twice, so that its first places are free in between and taken again.
fn replace_twice(store: &Store) {
    for seed in [11, 12] {
        put(store, "x", seed, 4 * PAGE);
        store.checkpoint().unwrap();
        // Gives up the snapshots that hold what the checkpoint freed.
        put(store, "tiny", seed, 100);
    }
}

#[test]
fn a_mover_whose_snapshot_was_given_up_moves_nothing() {
    let mut exchanged = 0;
    for at in 0..12 {
        let store = crumbled();
        let mut calls = 0;
        let beside = store.clone();
        let mut progress = |_: &Moved| {
            calls += 1;
            if calls == at + 1 {
                replace_twice(&beside);
            }
            ControlFlow::Continue(())
        };
        let report = store.defrag(&DefragOptions::default(), &mut progress).unwrap();
        exchanged += report.moved.objects;
        check(&store, "x", if calls > at { 12 } else { 10 }, 4 * PAGE);
        assert!(store.verify().unwrap().is_sound());
    }
    assert!(exchanged > 0, "no object was moved: the test says nothing");
}
