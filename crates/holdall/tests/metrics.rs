//! `Store::metrics`: what is counted, and of what.

use holdall::{DefragOptions, Durability, Error, Options, Store};
use holdall_io::MemoryStorage;
use holdall_testkit::{FaultPlan, FaultyStorage};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

fn quiet() -> Options {
    Options::default().background(false)
}

#[test]
fn lookups_and_commits_are_counted() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    for n in 0..5 {
        store.write(|tx| tx.put(format!("{n}"), b"x")).unwrap();
    }
    for n in 0..3 {
        store
            .write(|tx| {
                tx.set_durability(Durability::Deferred);
                tx.put(format!("later {n}"), b"x")
            })
            .unwrap();
    }
    store.flush().unwrap();
    for n in 0..7 {
        store.get(format!("{n}")).unwrap();
    }
    store.read().unwrap().get_many(["1", "2", "none"], |_, got| got.map(drop)).unwrap();
    store.checkpoint().unwrap();
    let metrics = store.metrics();
    // The missing one is looked for twice: in its group, and for itself.
    assert!((10..12).contains(&metrics.lookups), "{metrics:?}");
    assert!(metrics.page_hits >= metrics.lookups, "{metrics:?}");
    let groups = &metrics.group_commits;
    assert_eq!((groups.count(), groups.sum(), groups.quantile(1.0)), (6, 8, 3));
    assert_eq!((metrics.log_times.count(), metrics.commit_waits.count()), (6, 6));
    assert_eq!(metrics.log_bytes % 4096, 0);
    assert!(metrics.log_bytes >= 6 * 4096 && metrics.sync_times.count() > 0);
    // Giving space back makes more of them.
    assert!(metrics.checkpoint_times.count() > 0 && metrics.checkpoints.call == 1, "{metrics:?}");
    assert_eq!((metrics.readers_given_up, metrics.background_failures), (0, 0));
}

#[test]
fn a_wait_for_another_transaction_is_timed() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    assert_eq!(store.metrics().writer_waits.count(), 0);
    let until = Instant::now() + Duration::from_secs(60);
    // A thread that the system starts late finds nobody to wait for.
    while store.metrics().writer_waits.count() == 0 {
        assert!(Instant::now() < until, "nobody waited");
        thread::scope(|scope| {
            let mut open = store.begin_write().unwrap();
            open.put("a", b"1").unwrap();
            let other = scope.spawn(|| store.write(|tx| tx.put("b", b"2")).unwrap());
            thread::sleep(Duration::from_millis(30));
            open.commit().unwrap();
            other.join().unwrap();
        });
    }
    let waits = store.metrics().writer_waits;
    assert!(waits.count() == 1 && waits.sum() > 0, "{waits:?}");
}

#[test]
fn given_up_readers_are_counted() {
    let store = quiet().pinned_bytes(1 << 20).create_on(Arc::new(MemoryStorage::new())).unwrap();
    let put = |byte: u8| {
        store.write(|tx| tx.put("a", &vec![byte; 4 << 20])).unwrap();
    };
    put(1);
    let (first, second) = (store.read().unwrap(), store.read().unwrap());
    (2..9).for_each(put);
    for reader in [first, second] {
        assert!(matches!(reader.get("a"), Err(Error::SnapshotTooOld { .. })));
    }
    assert_eq!(store.metrics().readers_given_up, 2);
}

#[test]
fn what_fails_in_the_background_is_counted() {
    let storage = Arc::new(FaultyStorage::new(1));
    let store: Store = Options::default().create_on(storage.clone()).unwrap();
    store
        .write(|tx| (0..500).try_for_each(|n| tx.put(format!("{n}"), &[7; 900]).map(drop)))
        .unwrap();
    store.checkpoint().unwrap();
    let keeper = store.keep_in_order(&DefragOptions::default()).unwrap();
    store
        .write(|tx| {
            tx.set_durability(Durability::Deferred);
            (0..400).try_for_each(|n| tx.remove(format!("{n}")).map(drop))
        })
        .unwrap();
    storage.set_plan(FaultPlan { fail_sync_at: Some(1), ..FaultPlan::default() });
    let until = Instant::now() + Duration::from_secs(60);
    while store.metrics().background_failures == 0 {
        assert!(Instant::now() < until, "{:?}", store.metrics());
        thread::sleep(Duration::from_millis(20));
    }
    let failure = store.metrics().last_failure.unwrap();
    assert!(failure.contains("sync"), "{failure}");
    drop(keeper);
}
