//! Heap pages that became empty while somebody may still need what lay in them: an open snapshot,
//! or the state that a crash goes back to.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Durability, Options, Result, Store, WriteTx};
use holdall_io::MemoryStorage;
use holdall_testkit::{CrashKind, FaultPlan, FaultyStorage, LossPolicy};
use std::sync::Arc;

/// More collections than those that placement remembers.
const OTHERS: u32 = 300;
/// As much as one heap page holds.
const LEN: usize = 3000;

fn options() -> Options {
    Options::default().background(false).page_size(4096)
}

fn old(n: u32) -> Vec<u8> {
    vec![b'a' + n as u8; LEN]
}

fn deferred(store: &Store, f: impl FnOnce(&mut WriteTx) -> Result<()>) {
    let mut tx = store.begin_write().unwrap();
    tx.set_durability(Durability::Deferred);
    f(&mut tx).unwrap();
    tx.commit().unwrap();
}

/// Puts objects, one in each page, or removes them.
fn put(store: &Store, count: u32) {
    for n in 0..count {
        store.write(|tx| tx.collection("c")?.put(format!("{n}"), &old(n)).map(drop)).unwrap();
    }
}

fn remove(store: &Store, count: u32) {
    deferred(store, |tx| {
        (0..count).try_for_each(|n| tx.collection("c")?.remove(format!("{n}")).map(drop))
    });
}

/// Uses enough other collections that the placement of the first is forgotten.
fn use_others(store: &Store) {
    for n in 0..OTHERS {
        deferred(store, |tx| tx.collection(&format!("other {n}"))?.put("x", b"x").map(drop));
    }
}

/// Puts objects of a few hundred KB together, which lie in place before the commit is in the log.
fn put_much(tx: &mut WriteTx) -> Result<()> {
    (0..200).try_for_each(|n| tx.collection("c")?.put(format!("new {n}"), &[7; LEN]).map(drop))
}

#[test]
fn a_snapshot_reads_what_lay_in_pages_that_became_empty_and_were_filled_again() {
    for count in 1..6 {
        let store = options().create_on(Arc::new(MemoryStorage::new())).unwrap();
        put(&store, count);
        let reader = store.read().unwrap();
        remove(&store, count);
        use_others(&store);
        deferred(&store, put_much);
        store.checkpoint().unwrap();
        for n in 0..count {
            let found = reader.collection("c").unwrap().get(format!("{n}"));
            assert_eq!(found.unwrap().unwrap(), old(n), "{n} of {count}");
        }
        drop(reader);
        assert!(store.verify().unwrap().is_sound());
    }
}

#[test]
fn a_crash_goes_back_to_what_lay_in_pages_that_became_empty_and_were_filled_again() {
    // No checkpoint comes between.
    let options = options().tuning(|t| t.log_data_bytes(64 << 10).first_log_bytes(16 << 20));
    for seed in 0..200 {
        let storage = Arc::new(FaultyStorage::new(seed));
        let store = options.create_on(storage.clone()).unwrap();
        put(&store, 2);
        store.checkpoint().unwrap();
        remove(&store, 2);
        use_others(&store);
        let crash_at_change = Some(seed % 40);
        storage.set_plan(FaultPlan { crash_at_change, ..FaultPlan::default() });
        let _ = store.begin_write().and_then(|mut tx| put_much(&mut tx).and_then(|()| tx.commit()));
        let crashed = storage.crash(CrashKind::PowerCut(LossPolicy::Random), seed).unwrap();
        let store = options.open_on(Arc::new(crashed)).unwrap();
        let reader = store.read().unwrap();
        let is_there = reader.collection("c").unwrap().lookup("0").unwrap().is_some();
        for n in 0..2 {
            let found = reader.collection("c").unwrap().get(format!("{n}")).unwrap();
            assert!(found == is_there.then(|| old(n)), "{n}, seed {seed}");
        }
        drop(reader);
        let report = store.verify().unwrap();
        assert!(report.is_sound(), "seed {seed}: {:?}", report.problems);
    }
}
