//! Races and limits that a review of crash safety found: each test failed before its fix.

use holdall::Options;
use holdall_io::MemoryStorage;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn quiet() -> Options {
    Options::default().background(false).page_size(4096)
}

#[test]
fn a_snapshot_keeps_pages_that_were_evicted_before_they_changed() {
    let options = quiet().cache_bytes(4096);
    let storage = Arc::new(MemoryStorage::new());
    let store = options.create_on(storage.clone()).unwrap();
    for i in 0..200 {
        store.write(|tx| tx.put(format!("{i:03}"), &[1; 300])).unwrap();
    }
    store.close().unwrap();
    let store = options.open_on(storage).unwrap();
    let before = store.read().unwrap();
    store
        .write(|tx| (0..200).try_for_each(|i| tx.put(format!("{i:03}"), &[2; 300]).map(drop)))
        .unwrap();
    for i in 0..200 {
        assert_eq!(before.get(format!("{i:03}")).unwrap().unwrap(), [1; 300]);
    }
}

#[test]
fn a_transaction_larger_than_the_first_log_makes_it_grow() {
    let storage = Arc::new(MemoryStorage::new());
    let store = quiet().create_on(storage.clone()).unwrap();
    let put = |byte: u8| {
        store.write(|tx| {
            (0..3500).try_for_each(|i| tx.put(format!("{i:04}"), &[byte; 2500]).map(drop))
        })
    };
    put(1).unwrap();
    // All of its pages exist now: the second time they all pass through the log.
    put(2).unwrap();
    let killed = quiet().open_on(Arc::new(storage.fork())).unwrap();
    assert_eq!(killed.read().unwrap().get("3499").unwrap().unwrap(), [2; 2500]);
}

#[test]
fn closing_beside_writers_and_a_checkpoint_loses_nothing_and_leaves_a_whole_store() {
    for round in 0..60 {
        let storage = Arc::new(MemoryStorage::new());
        let options = Options::default().page_size(4096).tuning(|t| t.log_bytes(16 * 4096));
        let store = options.create_on(storage.clone()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..2)
            .map(|t| {
                let (store, stop) = (store.clone(), stop.clone());
                std::thread::spawn(move || {
                    let mut done = 0;
                    while !stop.load(SeqCst) {
                        let name = format!("{t} {done}");
                        if store.write(|tx| tx.put(&name, &[t; 3000])).is_err() {
                            break;
                        }
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(round % 7));
        store.close().unwrap();
        stop.store(true, SeqCst);
        let done: Vec<u32> = writers.into_iter().map(|w| w.join().unwrap()).collect();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let store = options.open_on(storage).unwrap();
        let reader = store.read().unwrap();
        for (t, n) in done.iter().enumerate() {
            for i in 0..*n {
                assert!(
                    reader.lookup(format!("{t} {i}")).unwrap().is_some(),
                    "acknowledged {t} {i}"
                );
            }
        }
    }
}
