//! Whatever a writer's options and transactions are, recovery takes its log: the bounds by
//! which it refuses what nobody can have written are kept by who writes.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Hints, Options, PutOptions, Store, Target};
use holdall_io::MemoryStorage;
use holdall_testkit::{CrashKind, FaultyStorage, LossPolicy};
use std::io::Write;
use std::sync::Arc;

fn options() -> Options {
    Options::default().background(false).tuning(|t| t.auto_checkpoint(false)).page_size(8192)
}

#[test]
fn a_commit_far_behind_the_durable_end_survives_a_power_cut() {
    let storage = Arc::new(FaultyStorage::new(1));
    let store = options().create_on(storage.clone()).unwrap();
    store.write(|tx| tx.put("first", b"1")).unwrap();
    let mut crashed = None;
    let given_up = store.write(|tx| {
        let mut large = tx.writer(Target::New, PutOptions::default())?;
        large.write_all(&vec![3; 100 << 20]).map_err(|e| Error::io("writing", e))?;
        // Its pages lie behind those, which no sync has covered.
        store.write(|tx| tx.put("behind", &[7; 20_000]))?;
        crashed = Some(storage.crash(CrashKind::PowerCut(LossPolicy::LoseAll), 1).unwrap());
        Err::<(), _>(Error::Invalid("given up".into()))
    });
    assert!(matches!(given_up, Err(Error::Invalid(_))), "{given_up:?}");
    let store = options().open_on(Arc::new(crashed.unwrap())).unwrap();
    assert_eq!(store.read().unwrap().get("behind").unwrap().unwrap(), [7; 20_000]);
    assert!(store.verify().unwrap().is_sound());
}

/// Opens what a kill leaves, for reading.
fn killed(storage: &MemoryStorage, check: impl FnOnce(&Store)) {
    let store = options().open_read_only_on(Arc::new(storage.fork())).unwrap();
    check(&store);
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn commits_that_copy_much_more_than_the_log_holds_are_replayed() {
    let storage = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage.clone()).unwrap();
    let bytes: Vec<u8> = (0..4_u32 << 20).map(|i| (i >> 7) as u8).collect();
    let hints = Hints { threshold: Some(120), ..Hints::default() };
    store.write(|tx| tx.put("x", &bytes).and_then(|_| tx.set_hints("x", hints))).unwrap();
    store.checkpoint().unwrap();
    let mut model = bytes;
    let replay = store.stat().unwrap().checkpoint_lsn;
    let mut moved = 0;
    for i in 0..700 {
        let at = i * 7919 % model.len();
        store.write(|tx| tx.insert("x", at as u64, b"inserted")).unwrap();
        model.splice(at..at, *b"inserted");
        moved += u64::from(store.stat().unwrap().checkpoint_lsn != replay);
    }
    // Else the edits copied too little to matter.
    assert!(moved > 0, "no checkpoint came first");
    killed(&storage, |store| assert!(store.read().unwrap().get("x").unwrap().unwrap() == model));
}

#[test]
fn one_transaction_that_copies_much_is_flushed_in_place() {
    let storage = Arc::new(MemoryStorage::new());
    // Else the new pages of checksums are too much for the log before the copies are.
    let options = options().tuning(|t| t.log_data_bytes(16 << 20));
    let store = options.create_on(storage.clone()).unwrap();
    let bytes: Vec<u8> = (0..4_u32 << 20).map(|i| (i >> 7) as u8).collect();
    let hints = Hints { threshold: Some(120), ..Hints::default() };
    let copies = 320;
    store
        .write(|tx| {
            tx.put("0", &bytes)?;
            tx.set_hints("0", hints)?;
            (1..copies)
                .try_for_each(|i| tx.copy("0", Target::Name(format!("{i}").into())).map(drop))
        })
        .unwrap();
    store.checkpoint().unwrap();
    let used = || store.stat().unwrap().used_bytes;
    let before = used();
    store
        .write(|tx| {
            (0..copies).try_for_each(|i| tx.insert(format!("{i}"), 8192 * 90 + 3, b"x").map(drop))
        })
        .unwrap();
    assert!(used() - before > 260 << 20, "{} bytes copied", used() - before);
    killed(&storage, |store| {
        let mut model = bytes.clone();
        model.insert(8192 * 90 + 3, b'x');
        assert!(store.read().unwrap().get("319").unwrap().unwrap() == model);
    });
}

#[test]
fn a_long_insert_through_the_log_is_replayed() {
    let storage = Arc::new(MemoryStorage::new());
    let options = options().tuning(|t| t.log_bytes(1 << 30).log_data_bytes(1 << 30));
    let store = options.create_on(storage.clone()).unwrap();
    store.write(|tx| tx.put("x", &[1; 300_000])).unwrap();
    store.checkpoint().unwrap();
    let long = vec![2; 66 << 20];
    store.write(|tx| tx.insert("x", 150_001, &long)).unwrap();
    killed(&storage, |store| {
        let reader = store.read().unwrap();
        assert_eq!(reader.get_range("x", 150_000..150_003).unwrap().unwrap(), [1, 2, 2]);
        assert_eq!(reader.metadata("x").unwrap().size, 300_000 + (66 << 20));
    });
}
