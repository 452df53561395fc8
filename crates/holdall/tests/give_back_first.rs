//! The first call after an opening gives back what is free, whatever the opening knew of it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

use holdall::{DefragOptions, DefragReport, Options, Store};
use holdall_io::{MemoryStorage, Storage};
use holdall_testkit::{FaultPlan, FaultyStorage};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const MIB: usize = 1 << 20;
/// Blocks that one eighth of [`filled`], its metadata and what the store keeps may take.
const MOST_BLOCKS: u64 = 3 * MIB as u64 + MIB as u64 / 2;

fn options() -> Options {
    Options::default().background(false)
}

fn bytes(i: usize) -> Vec<u8> {
    (0..MIB / 4).map(|at| (at / 997 + i) as u8).collect()
}

/// 64 objects of 256 KiB.
fn fill(store: &Store) {
    for i in 0..64 {
        store.write(|tx| tx.put(format!("{i:02}"), &bytes(i))).unwrap();
    }
}

/// Leaves each eighth.
fn thin(store: &Store) {
    for i in (0..64).filter(|i| i % 8 != 0) {
        store.write(|tx| tx.remove(format!("{i:02}"))).unwrap();
    }
}

fn check(store: &Store) {
    for i in (0..64).step_by(8) {
        assert_eq!(store.read().unwrap().get(format!("{i:02}")).unwrap().unwrap(), bytes(i));
    }
    assert_eq!(store.stat().unwrap().objects, 8);
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
}

fn compact(store: &Store) -> DefragReport {
    let options = DefragOptions { join: false, ..DefragOptions::default() };
    store.defrag(&options, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn blocks(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).unwrap().blocks() * 512
}

/// Whether the file system of `dir` punches holes; says so if it does not.
fn punches(dir: &Path) -> bool {
    let path = dir.join("probe");
    std::fs::write(&path, vec![1; MIB]).unwrap();
    let disk = holdall_io::FileStorage::open(&path, holdall_io::Access::ReadWrite).unwrap();
    let punches = disk.volume().punch(0, MIB as u64).unwrap_or(false) && blocks(&path) < 4096;
    if !punches {
        println!("skipped: a file system that punches holes");
    }
    punches
}

/// Compacts the store once and holds its blocks against what stays.
fn one_call_is_enough(path: &Path, how: &str) {
    let before = blocks(path);
    assert!(before > 10 * MIB as u64, "{how}: {before} bytes of blocks to give back");
    let store = options().open(path).unwrap();
    let report = compact(&store);
    assert_eq!((report.gave_back.failure, report.gave_back.cannot_punch), (None, false));
    assert!(blocks(path) < MOST_BLOCKS, "{how}: {} bytes of blocks, {before} before", blocks(path));
    assert_eq!(report.blocks_after, blocks(path));
    check(&store);
    drop(store);
    check(&Store::open(path).unwrap());
}

#[test]
fn the_first_call_after_an_opening_gives_back_all_that_is_free() {
    let dir = tempfile::tempdir().unwrap();
    if !punches(dir.path()) {
        return;
    }
    let path = dir.path().join("s.holdall");
    let copy = dir.path().join("copy.holdall");
    let store = options().create(&path).unwrap();
    fill(&store);
    store.checkpoint().unwrap();
    thin(&store);
    // As a kill leaves it: nothing was punched yet.
    std::fs::write(&copy, std::fs::read(&path).unwrap()).unwrap();
    let log = std::fs::read(dir.path().join("s.holdall-log")).unwrap();
    std::fs::write(dir.path().join("copy.holdall-log"), log).unwrap();
    one_call_is_enough(&copy, "a kill");
    store.close().unwrap();
    // A copy with blocks everywhere, as cp --sparse=never, scp and rsync make it.
    std::fs::write(&copy, std::fs::read(&path).unwrap()).unwrap();
    one_call_is_enough(&copy, "a copy");
}

#[test]
fn what_a_reader_kept_at_the_close_is_given_back_by_the_first_call() {
    let dir = tempfile::tempdir().unwrap();
    if !punches(dir.path()) {
        return;
    }
    let path = dir.path().join("s.holdall");
    let store = options().create(&path).unwrap();
    fill(&store);
    let reader = store.read().unwrap();
    thin(&store);
    store.close().unwrap();
    assert_eq!(reader.get("01").unwrap().unwrap(), bytes(1));
    drop(reader);
    one_call_is_enough(&path, "a reader");
}

/// Where the last page in use ends, to the byte: the map has a cell for each page.
fn end_in_use(store: &Store) -> u64 {
    let map = store.frag(&mut |_, _| {}).unwrap().map;
    assert_eq!(map.pages_per_cell, 1);
    let used = |c: &holdall::frag::Cell| c.segment + c.heap + c.metadata > 0;
    8192 * (map.cells.iter().rposition(used).unwrap() as u64 + 1)
}

/// Without holes the file is as long as its last page in use says.
#[test]
fn a_file_that_cannot_have_holes_is_cut_as_far_as_its_end_is_free() {
    for known in [true, false] {
        let storage = Arc::new(FaultyStorage::new(7));
        let store = options().create_on(storage.clone()).unwrap();
        for i in 0..64 {
            store.write(|tx| tx.put(format!("{i:02}"), &bytes(i))).unwrap();
        }
        store.checkpoint().unwrap();
        if known {
            storage.set_plan(FaultPlan { no_punch: true, ..FaultPlan::default() });
        }
        // The first half stays; pages of names and records lie between.
        for i in 20..64 {
            store.write(|tx| tx.remove(format!("{i:02}"))).unwrap();
        }
        let store = if known {
            store
        } else {
            store.write(|tx| tx.remove("03")).unwrap();
            store.checkpoint().unwrap();
            let reader = store.read().unwrap();
            store.write(|tx| tx.remove("19")).unwrap();
            store.close().unwrap();
            drop(reader);
            storage.set_plan(FaultPlan { no_punch: true, ..FaultPlan::default() });
            options().open_on(storage.clone()).unwrap()
        };
        let report = compact(&store);
        assert!(report.gave_back.cannot_punch && report.gave_back.failure.is_none());
        assert!(store.stat().unwrap().gave_back.cannot_punch);
        assert_eq!(storage.volume().len().unwrap(), end_in_use(&store), "known: {known}");
        for i in (0..19).filter(|i| known || *i != 3) {
            let got = store.read().unwrap().get(format!("{i:02}")).unwrap();
            assert_eq!(got.unwrap(), bytes(i));
        }
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn a_storage_that_never_punches_is_cut_too() {
    let storage = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage.clone()).unwrap();
    store.write(|tx| tx.put("first", &bytes(0))).unwrap();
    let mut tx = store.begin_write().unwrap();
    tx.put("long", &vec![7; 20 * MIB]).unwrap();
    drop(tx);
    let report = compact(&store);
    assert!(report.gave_back.cannot_punch || report.gave_back.failure.is_none());
    assert_eq!(storage.volume().len().unwrap(), end_in_use(&store));
    assert!(report.blocks_after < MIB as u64, "{} bytes", report.blocks_after);
    assert_eq!(report.blocks_after, storage.volume().len().unwrap());
}

/// One that was thinned out and whose calls fail from now on as `plan` says.
fn thinned(plan: FaultPlan) -> (Arc<FaultyStorage>, Store) {
    let storage = Arc::new(FaultyStorage::new(7));
    let store = options().create_on(storage.clone()).unwrap();
    fill(&store);
    store.checkpoint().unwrap();
    thin(&store);
    storage.set_plan(plan);
    (storage, store)
}

#[test]
fn a_checkpoint_whose_space_is_not_given_back_has_happened() {
    let mut failed = 0;
    for n in 1..=12 {
        let plan = FaultPlan { fail_other_at: Some(n), ..FaultPlan::default() };
        let (storage, store) = thinned(plan);
        store.checkpoint().unwrap();
        assert_eq!(store.stat().unwrap().dirty_pages, 0);
        let told = store.stat().unwrap().gave_back;
        assert_eq!(told.failure.is_some(), !told.is_complete());
        if let Some(why) = &told.failure {
            assert!(why.contains("punching out") || why.contains("cutting"), "{why}");
            assert!(!told.cannot_punch);
            failed += 1;
        }
        // The others were given back beside the failed one, and that in the next round.
        let left = storage.volume().allocated().unwrap();
        assert!(left < MOST_BLOCKS + 3 * MIB as u64, "call {n}: {left} bytes of blocks");
        store.checkpoint().unwrap();
        let left = storage.volume().allocated().unwrap();
        assert!(left < MOST_BLOCKS, "call {n}: {left} bytes of blocks");
        assert_eq!(store.stat().unwrap().gave_back.failure, None);
        check(&store);
        // What was punched in part and kept is used again.
        storage.heal();
        fill(&store);
        let all = store.read().unwrap();
        (0..64).for_each(|i| assert_eq!(all.get(format!("{i:02}")).unwrap().unwrap(), bytes(i)));
    }
    assert!(failed >= 6, "{failed}");
}

#[test]
fn compact_tells_what_it_could_not_give_back() {
    let mut failed = 0;
    // What fails before pages move down is tried again after it; the last calls are those after it.
    for n in 1..=100 {
        let plan = FaultPlan { fail_other_at: Some(n), ..FaultPlan::default() };
        let (storage, store) = thinned(plan);
        let options = DefragOptions { join: false, ..DefragOptions::default() };
        let report = match store.defrag(&options, &mut |_| ControlFlow::Continue(())) {
            Ok(report) => report.gave_back,
            // A hole could not be filled for what moves down.
            Err(holdall::Error::Io { .. }) => {
                check(&store);
                continue;
            }
            Err(e) => panic!("call {n}: {e}"),
        };
        if report.failed_runs > 0 {
            assert!(report.failure.is_some() && report.failed_bytes >= 8192, "{report:?}");
            failed += 1;
        }
        assert_eq!(store.stat().unwrap().gave_back, report);
        // The failure was for the first, which may have made fewer calls.
        storage.heal();
        let again = compact(&store);
        assert_eq!((again.gave_back.failed_runs, again.gave_back.failure), (0, None));
        let left = storage.volume().allocated().unwrap();
        assert!(left < MOST_BLOCKS, "call {n}: {left} bytes of blocks");
        check(&store);
    }
    assert!(failed >= 1, "{failed}");
}
