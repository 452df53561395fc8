//! What lies high in the file moves down and the file is cut; if the file system cannot punch
//! holes, nothing else gives space back, and what the report promises is what compacting gives.
#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

use holdall::frag::Action;
use holdall::{DefragOptions, DefragReport, Options, Store};
use holdall_io::Storage;
use holdall_testkit::{CrashKind, FaultPlan, FaultyStorage, LossPolicy};
use std::ops::ControlFlow;
use std::sync::Arc;

const PAGE: u64 = 8192;

fn storage() -> Arc<FaultyStorage> {
    let storage = FaultyStorage::new(1);
    storage.set_plan(FaultPlan { no_punch: true, ..FaultPlan::default() });
    Arc::new(storage)
}

fn options() -> Options {
    Options::default().background(false)
}

fn bytes(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 97 + at * i + i * 31) as u8).collect()
}

fn len(storage: &FaultyStorage) -> u64 {
    storage.volume().len().unwrap()
}

fn compact(store: &Store) -> DefragReport {
    let options = DefragOptions { join: false, ..DefragOptions::default() };
    store.defrag(&options, &mut |_| ControlFlow::Continue(())).unwrap()
}

/// What a report of the closed store promises that compacting gives back.
fn promised(storage: &Arc<FaultyStorage>) -> u64 {
    let store = options().open_read_only_on(storage.clone()).unwrap();
    let report = store.frag(&mut |_, _| {}).unwrap();
    let gains = report.remedies.iter().filter(|r| r.action == Action::Compact);
    gains.map(|r| r.gain_bytes).sum()
}

/// Compacts the closed store, and holds the file against the promise and against what it needs.
fn compacts(storage: &Arc<FaultyStorage>, check: impl Fn(&Store)) -> (u64, u64) {
    let (before, promised) = (len(storage), promised(storage));
    let store = options().open_on(storage.clone()).unwrap();
    let report = compact(&store);
    assert!(report.gave_back.cannot_punch && report.gave_back.failure.is_none());
    check(&store);
    store.close().unwrap();
    let after = len(storage);
    let store = options().open_on(storage.clone()).unwrap();
    let used = store.stat().unwrap().used_bytes;
    check(&store);
    assert!(store.verify().unwrap().is_sound());
    drop(store);
    assert!(after <= used + used / 64 + 48 * PAGE, "{after} bytes for {used}, {before} before");
    assert!(before - after >= promised, "{promised} promised, {before} before, {after} after");
    // The next report promises nothing more.
    assert_eq!(self::promised(storage), 0);
    (promised, before - after)
}

#[test]
fn large_objects_move_down() {
    let storage = storage();
    let store = options().create_on(storage.clone()).unwrap();
    for i in 0..5 {
        store.write(|tx| tx.put(format!("{i}"), &bytes(i, 3_000_000))).unwrap();
    }
    for i in 0..4 {
        store.write(|tx| tx.remove(format!("{i}"))).unwrap();
    }
    store.close().unwrap();
    let (promised, gave) = compacts(&storage, |store| {
        assert!(store.read().unwrap().get("4").unwrap().unwrap() == bytes(4, 3_000_000));
    });
    assert!(promised > 10_000_000 && gave < promised + 2_000_000, "{gave}, {promised} promised");
}

#[test]
fn an_object_longer_than_what_is_free_below_it_moves_in_parts() {
    let storage = storage();
    let store = options().create_on(storage.clone()).unwrap();
    for (i, len) in [(0, 900_000), (1, 50_000), (2, 500_000), (3, 9_000_003)] {
        store.write(|tx| tx.put(format!("{i}"), &bytes(i, len))).unwrap();
    }
    for i in [0, 2] {
        store.write(|tx| tx.remove(format!("{i}"))).unwrap();
    }
    store.close().unwrap();
    compacts(&storage, |store| {
        let reader = store.read().unwrap();
        assert!(reader.get("1").unwrap().unwrap() == bytes(1, 50_000));
        assert!(reader.get("3").unwrap().unwrap() == bytes(3, 9_000_003));
    });
}

#[test]
fn records_names_and_handles_move_down() {
    let storage = storage();
    let store = options().create_on(storage.clone()).unwrap();
    for i in 0..3000 {
        store.write(|tx| tx.put(format!("{i:04}"), &bytes(i, 3000))).unwrap();
    }
    for i in (0..3000).filter(|i| i % 3 != 1) {
        store.write(|tx| tx.remove(format!("{i:04}"))).unwrap();
    }
    store.close().unwrap();
    compacts(&storage, |store| {
        let reader = store.read().unwrap();
        for i in (0..3000).filter(|i| i % 3 == 1) {
            assert!(reader.get(format!("{i:04}")).unwrap().unwrap() == bytes(i, 3000), "{i}");
        }
        assert_eq!(store.stat().unwrap().objects, 1000);
    });
}

/// Objects of all sizes in several collections, some of many pieces, some divided; behind the
/// first gap there is one of each kind of page.
fn varied(store: &Store) {
    store.write(|tx| tx.put("gap", &bytes(0, 20_000_000))).unwrap();
    for c in 0..20 {
        let collection = format!("c{c}");
        for i in 0..60 {
            store
                .write(|tx| {
                    let mut tx = tx.collection(&collection)?;
                    tx.put(format!("{i}"), &bytes(i + c, 40 << (i % 12)))?;
                    tx.put(format!("d{i}"), &bytes(i + c, 4200))
                })
                .unwrap();
        }
    }
    store.write(|tx| tx.put("pieces", &bytes(7, 4_000_000))).unwrap();
    // A tree of nodes: an edit each 40 kB.
    for at in (0..100).rev() {
        let splice = |tx: &mut holdall::WriteTx| tx.insert("pieces", at * 40_000, &bytes(9, 100));
        store.write(splice).unwrap();
    }
    store.write(|tx| tx.remove("gap")).unwrap();
}

fn pieces() -> Vec<u8> {
    let mut all = bytes(7, 4_000_000);
    for at in (0..100).rev() {
        let at = at * 40_000;
        all.splice(at..at, bytes(9, 100));
    }
    all
}

fn check_varied(store: &Store) {
    let reader = store.read().unwrap();
    assert!(reader.get("pieces").unwrap().unwrap() == pieces());
    for c in 0..20 {
        let reader = reader.collection(&format!("c{c}")).unwrap();
        for i in 0..60 {
            let all = bytes(i + c, 40 << (i % 12));
            assert!(reader.get(format!("{i}")).unwrap().unwrap() == all, "{c} {i}");
            assert!(reader.get(format!("d{i}")).unwrap().unwrap() == bytes(i + c, 4200));
        }
        assert_eq!(reader.names(b"").count(), 120);
    }
}

#[test]
fn everything_that_lies_behind_a_gap_moves_into_it() {
    let storage = storage();
    let store = options().create_on(storage.clone()).unwrap();
    varied(&store);
    store.close().unwrap();
    compacts(&storage, check_varied);
    // The store goes on as before.
    let store = options().open_on(storage.clone()).unwrap();
    store.write(|tx| tx.put("more", &bytes(3, 1_000_000))).unwrap();
    for i in 0..60 {
        store.write(|tx| tx.collection("c3")?.remove(format!("d{i}"))).unwrap();
    }
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_crash_at_any_moment_leaves_all_objects() {
    let first = storage();
    let store = options().create_on(first.clone()).unwrap();
    varied(&store);
    store.close().unwrap();
    let changes = {
        let storage = Arc::new(first.fork());
        let store = options().open_on(storage.clone()).unwrap();
        let begun = storage.changes();
        compact(&store);
        storage.changes() - begun
    };
    for part in 1..8 {
        let storage = Arc::new(first.fork());
        storage.set_plan(FaultPlan {
            no_punch: true,
            crash_at_change: Some(changes * part / 8),
            ..FaultPlan::default()
        });
        if let Ok(store) = options().open_on(storage.clone()) {
            let options = DefragOptions { join: false, ..DefragOptions::default() };
            let _ = store.defrag(&options, &mut |_| ControlFlow::Continue(()));
        }
        let after =
            Arc::new(storage.crash(CrashKind::PowerCut(LossPolicy::LoseAll), part).unwrap());
        let store = options().open_on(after).unwrap();
        check_varied(&store);
        assert!(store.verify().unwrap().is_sound(), "part {part}");
    }
}

#[test]
fn what_copies_share_stays_and_is_not_promised() {
    let storage = storage();
    let store = options().create_on(storage.clone()).unwrap();
    store.write(|tx| tx.put("gap", &bytes(0, 3_000_000))).unwrap();
    store.write(|tx| tx.put("a", &bytes(1, 1_000_000))).unwrap();
    store.write(|tx| tx.copy("a", "b")).unwrap();
    store.write(|tx| tx.put("last", &bytes(2, 2_000_000))).unwrap();
    store.write(|tx| tx.remove("gap")).unwrap();
    store.close().unwrap();
    let (before, promised) = (len(&storage), promised(&storage));
    let store = options().open_on(storage.clone()).unwrap();
    compact(&store);
    store.close().unwrap();
    let gave = before - len(&storage);
    assert!(gave >= promised && gave > 1_000_000, "{gave} of {promised} promised");
    let store = options().open_on(storage.clone()).unwrap();
    let reader = store.read().unwrap();
    for (name, i, len) in [("a", 1, 1_000_000), ("b", 1, 1_000_000), ("last", 2, 2_000_000)] {
        assert!(reader.get(name).unwrap().unwrap() == bytes(i, len), "{name}");
    }
    assert!(store.verify().unwrap().is_sound());
}

/// What is put while pages move down lies where others were removed a moment ago, in checksum
/// groups that are empty.
#[test]
fn emptied_spaces_fill_again_while_pages_move() {
    let storage = storage();
    let small = options().page_size(4096).tuning(|t| t.space_pages(64));
    let store = small.create_on(storage.clone()).unwrap();
    for i in 0..12 {
        store.write(|tx| tx.put(format!("{i}"), &bytes(i, 200_000))).unwrap();
    }
    for i in 2..12 {
        store.write(|tx| tx.remove(format!("{i}"))).unwrap();
    }
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    let (mut calls, has) = (0, |i: usize| {
        assert!(store.read().unwrap().get(format!("{i}")).unwrap().unwrap() == bytes(i, 200_000));
    });
    let mut beside = |_: &holdall::Moved| {
        calls += 1;
        for i in 20..30 {
            store.write(|tx| tx.put(format!("{i}"), &bytes(i, 200_000))).unwrap();
        }
        store.checkpoint().unwrap();
        (20..30).for_each(has);
        for i in 20..30 {
            store.write(|tx| tx.remove(format!("{i}"))).unwrap();
        }
        // Empty once more when the mover goes on.
        store.checkpoint().unwrap();
        store.checkpoint().unwrap();
        ControlFlow::Continue(())
    };
    store.defrag(&DefragOptions::default(), &mut beside).unwrap();
    assert!(calls > 0, "nothing moved");
    [0, 1].into_iter().for_each(has);
    assert!(store.verify().unwrap().is_sound());
}

/// Where holes are punched the blocks are free without a move; the length follows all the same.
#[test]
fn the_file_gets_shorter_where_holes_are_punched_too() {
    for join in [false, true] {
        let storage = Arc::new(FaultyStorage::new(1));
        let store = options().create_on(storage.clone()).unwrap();
        varied(&store);
        store.close().unwrap();
        let before = len(&storage);
        let store = options().open_on(storage.clone()).unwrap();
        let options = DefragOptions { join, ..DefragOptions::default() };
        let report = store.defrag(&options, &mut |_| ControlFlow::Continue(())).unwrap();
        assert!(!report.gave_back.cannot_punch && report.gave_back.failure.is_none());
        check_varied(&store);
        assert!(store.verify().unwrap().is_sound());
        let used = store.stat().unwrap().used_bytes;
        store.close().unwrap();
        let after = len(&storage);
        assert!(after <= used + used / 64 + 48 * PAGE, "{after} bytes for {used}, {before} before");
    }
}

/// A file of many spaces that is emptied keeps none of those behind what is left; a reader from
/// before and a crash at any moment lose nothing, and what is put meanwhile takes them again.
#[test]
fn empty_spaces_at_the_end_are_given_up() {
    let small = || options().page_size(4096).tuning(|t| t.space_pages(64));
    let first = Arc::new(FaultyStorage::new(1));
    let store = small().create_on(first.clone()).unwrap();
    for i in 0..20 {
        store.write(|tx| tx.put(format!("{i}"), &bytes(i, 200_000))).unwrap();
    }
    assert!(store.stat().unwrap().spaces > 12);
    let old = store.read().unwrap();
    for i in 1..20 {
        store.write(|tx| tx.remove(format!("{i}"))).unwrap();
    }
    let shrink = |store: &Store| {
        store.defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
        store.stat().unwrap()
    };
    // What the reader may look at stays, whatever the root names.
    let stat = shrink(&store);
    assert!(stat.file_bytes > 3_000_000, "{stat:?}");
    assert!(old.get("19").unwrap().unwrap() == bytes(19, 200_000));
    store.write(|tx| tx.put("again", &bytes(30, 1_000_000))).unwrap();
    assert!(old.get("18").unwrap().unwrap() == bytes(18, 200_000));
    assert!(store.verify().unwrap().is_sound());
    store.write(|tx| tx.remove("again")).unwrap();
    drop(old);
    let before = Arc::new(first.fork());
    let stat = shrink(&store);
    assert!(stat.spaces <= 2 && stat.file_bytes < 600_000, "{stat:?}");
    assert!(store.verify().unwrap().is_sound());
    // They come again.
    store.write(|tx| tx.put("again", &bytes(30, 1_000_000))).unwrap();
    assert!(store.verify().unwrap().is_sound());
    drop(store);
    // As the process leaves it that is killed, and one whose power is cut.
    for part in 0..30 {
        let storage = Arc::new(before.fork());
        let plan = FaultPlan { crash_at_change: Some(1 + part * part / 6), ..FaultPlan::default() };
        storage.set_plan(plan);
        if let Ok(store) = small().open_on(storage.clone()) {
            let _ = store.defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(()));
            let _ = store.write(|tx| tx.put("more", &bytes(31, 700_000)));
        }
        let kind = match part % 2 {
            0 => CrashKind::ProcessKilled,
            _ => CrashKind::PowerCut(LossPolicy::LoseAll),
        };
        let after = Arc::new(storage.crash(kind, part).unwrap());
        let store = small().open_on(after).unwrap();
        assert!(store.verify().unwrap().is_sound(), "part {part}");
        assert!(store.read().unwrap().get("0").unwrap().unwrap() == bytes(0, 200_000));
        assert!(shrink(&store).spaces <= 5);
    }
}
