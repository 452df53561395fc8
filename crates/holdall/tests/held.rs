//! What open snapshots and transactions may hold: freed space, the writer's lock, pages of their
//! own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Durability, Error, Options, Store};
use holdall_io::{MemoryStorage, Storage};
use holdall_testkit::{CrashKind, FaultyStorage, LossPolicy};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const MIB: usize = 1 << 20;

fn quiet() -> Options {
    Options::default().background(false)
}

/// Replaces objects of 1 MiB with different names, each the same number of times.
fn replace_all(store: &Store, objects: usize, times: usize) {
    for n in 0..times {
        for object in 0..objects {
            let bytes = vec![n as u8; MIB];
            store.write(|tx| tx.put(format!("{object}"), &bytes)).unwrap();
        }
    }
}

/// Replaces an object of 1 MiB so often.
fn churn(store: &Store, times: usize) {
    for n in 0..times {
        store.write(|tx| tx.put("x", &vec![n as u8; MIB])).unwrap();
    }
}

#[test]
fn a_held_reader_expires_before_the_file_grows_without_bound() {
    let storage = Arc::new(MemoryStorage::new());
    let options = quiet().pinned_bytes(8 << 20);
    let store = options.create_on(storage.clone()).unwrap();
    replace_all(&store, 16, 1);
    let held = store.read().unwrap();
    replace_all(&store, 6, 20);
    assert_eq!(held.get("5").unwrap().unwrap(), vec![0; MIB], "within its budget it is kept");
    thread::sleep(Duration::from_millis(50));
    replace_all(&store, 16, 20);
    match held.get("5") {
        Err(Error::SnapshotTooOld { age }) => assert!(age >= Duration::from_millis(50), "{age:?}"),
        other => panic!("{:?}", other.map(|bytes| bytes.map(|b| b.len()))),
    }
    let length = storage.volume().len().unwrap();
    assert!(length < 40 << 20, "{length} bytes");
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn without_an_option_a_reader_is_held_at_any_age() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    churn(&store, 1);
    let held = store.read().unwrap();
    churn(&store, 300);
    assert_eq!(held.get("x").unwrap().unwrap(), vec![0; MIB]);
}

#[test]
fn a_held_reader_does_not_stop_writers_of_a_store_with_a_size_limit() {
    let options = quiet().max_bytes(24 << 20);
    let store = options.create_on(Arc::new(MemoryStorage::new())).unwrap();
    replace_all(&store, 14, 1);
    let held = store.read().unwrap();
    replace_all(&store, 2, 30);
    assert_eq!(held.get("1").unwrap().unwrap(), vec![0; MIB], "what it keeps has room");
    replace_all(&store, 14, 3);
    assert!(matches!(held.get("1"), Err(Error::SnapshotTooOld { .. })));
    assert_eq!(store.read().unwrap().get("13").unwrap().unwrap(), vec![2; MIB]);
}

#[test]
fn of_two_readers_the_one_that_keeps_space_expires() {
    for options in [quiet().pinned_bytes(6 << 20), quiet().max_bytes(24 << 20)] {
        let store = options.create_on(Arc::new(MemoryStorage::new())).unwrap();
        store.write(|tx| tx.put("small", b"first")).unwrap();
        let first = store.read().unwrap();
        replace_all(&store, 14, 1);
        let second = store.read().unwrap();
        replace_all(&store, 14, 3);
        assert!(matches!(second.get("1"), Err(Error::SnapshotTooOld { .. })));
        assert_eq!(first.get("small").unwrap().unwrap(), b"first");
        assert_eq!(first.get("1").unwrap(), None);
        assert!(store.stat().unwrap().pinned_bytes < 1 << 20);
    }
}

#[test]
fn deferred_commits_become_durable_in_time_without_threads() {
    let storage = Arc::new(FaultyStorage::new(1));
    let store = quiet().create_on(storage.clone()).unwrap();
    let survivors = || {
        let cut = storage.crash(CrashKind::PowerCut(LossPolicy::LoseAll), 1).unwrap();
        let after = quiet().open_on(Arc::new(cut)).unwrap();
        after.stat().unwrap().objects
    };
    for n in 0..30 {
        storage.set_now(Duration::from_millis(10 * n));
        store
            .write(|tx| {
                tx.set_durability(Durability::Deferred);
                tx.put(format!("{n}"), b"x")
            })
            .unwrap();
    }
    // Those of the first 200 ms were flushed by the first call after that.
    assert!((20..30).contains(&survivors()), "{}", survivors());
    storage.set_now(Duration::from_millis(490));
    store.read().unwrap();
    assert_eq!(survivors(), 30, "a read flushes too");
    store
        .write(|tx| {
            tx.set_durability(Durability::Deferred);
            tx.put("last", b"x")
        })
        .unwrap();
    assert_eq!(survivors(), 30);
    store.close().unwrap();
    assert_eq!(survivors(), 31, "and so does the close");
}

#[test]
fn a_transaction_within_one_of_the_same_thread_is_an_error() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    let result = store.write(|tx| {
        tx.put("outer", b"1")?;
        let inner = store.write(|tx| tx.put("inner", b"2"));
        assert!(matches!(inner, Err(Error::Busy(_))), "{inner:?}");
        assert!(matches!(store.clone().close(), Err(Error::Busy(_))));
        tx.put("outer 2", b"3")
    });
    result.unwrap();
    assert_eq!(store.stat().unwrap().objects, 2);
    store.write(|tx| tx.put("after", b"4")).unwrap();
}

#[test]
fn new_snapshots_open_whatever_the_budgets_are() {
    let options = Options::default().old_version_bytes(0).pinned_bytes(0);
    let store = options.create_on(Arc::new(MemoryStorage::new())).unwrap();
    churn(&store, 1);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut bytes = Vec::new();
                    for _ in 0..3000 {
                        drop(store.read().unwrap());
                        drop(store.read_newest().unwrap());
                        store.get_into("small", &mut bytes).err();
                        store.read_at("x", 5, &mut [0; 9]).unwrap();
                    }
                })
            })
            .collect();
        for n in 0..400_u32 {
            store
                .write(|tx| {
                    tx.set_durability(Durability::Deferred);
                    tx.put("small", &n.to_le_bytes())
                })
                .unwrap();
            store.write(|tx| tx.put("x", &vec![1; 50_000])).unwrap();
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn many_small_edits_in_one_transaction_use_their_pages_again() {
    let storage = Arc::new(MemoryStorage::new());
    let store = quiet().create_on(storage.clone()).unwrap();
    let mut model = vec![5; 98_000];
    store.write(|tx| tx.put("x", &model)).unwrap();
    let edited = store.write(|tx| {
        for n in 0..2000_usize {
            let (at, byte) = (n * 31 % 97_000, [n as u8]);
            if n % 2 == 0 {
                tx.insert("x", at as u64, &byte)?;
                model.insert(at, byte[0]);
            } else {
                tx.delete_range("x", at as u64..at as u64 + 1)?;
                model.remove(at);
            }
        }
        Ok(())
    });
    edited.unwrap();
    assert_eq!(store.read().unwrap().get("x").unwrap().unwrap(), model);
    let length = storage.volume().len().unwrap();
    assert!(length < 4 << 20, "{length} bytes while open");
    assert!(store.verify().unwrap().is_sound());
    store.close().unwrap();
    let length = storage.volume().len().unwrap();
    assert!(length < 2 << 20, "{length} bytes after the close");
}
