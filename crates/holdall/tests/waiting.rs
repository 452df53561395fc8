//! Waiting for the transaction under way, for a bounded time.

use holdall::{Error, Options, Store};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_wait_ends_when_its_time_is_over_or_the_other_transaction_is() {
    let store = Store::in_memory().unwrap();
    let mut first = store.begin_write().unwrap();
    first.put("a", b"1").unwrap();
    let (tell, told) = mpsc::channel();
    let other = store.clone();
    let thread = std::thread::spawn(move || {
        let mut tx = other.begin_write().unwrap();
        let begun = Instant::now();
        assert!(!tx.wait(SHORT).unwrap());
        assert!(begun.elapsed() >= SHORT);
        tell.send(()).unwrap();
        // The same transaction goes on waiting.
        assert!(tx.wait(LONG).unwrap());
        assert!(tx.wait(Duration::ZERO).unwrap());
        assert_eq!(tx.get("a").unwrap().as_deref(), Some(&b"1"[..]));
        tx.put("b", b"2").unwrap();
        tx.commit().unwrap();
    });
    told.recv().unwrap();
    first.commit().unwrap();
    thread.join().unwrap();
    assert_eq!(store.read().unwrap().count_names().unwrap(), 2);
}

#[test]
fn a_thread_does_not_wait_for_itself() {
    let store = Store::in_memory().unwrap();
    let mut first = store.begin_write().unwrap();
    assert!(first.wait(Duration::ZERO).unwrap());
    let begun = Instant::now();
    let second = store.begin_write().unwrap().wait(LONG);
    assert!(matches!(second, Err(Error::Invalid(_))), "{second:?}");
    assert!(begun.elapsed() < LONG);
    // A transaction that gave up leaves nothing locked.
    drop(first);
    assert!(store.begin_write().unwrap().wait(Duration::ZERO).unwrap());
}

#[test]
fn a_transaction_that_failed_does_not_begin_again() {
    let store = Options::default().max_bytes(1 << 20).create_in_memory().unwrap();
    let mut tx = store.begin_write().unwrap();
    tx.put("a", &vec![1; 100_000]).unwrap();
    assert!(matches!(tx.append("a", &vec![1; 4 << 20]), Err(Error::Full(_))));
    assert!(matches!(tx.wait(SHORT), Err(Error::Invalid(_))));
}

#[test]
fn names_are_counted_in_trees_of_every_height() {
    let store = Store::in_memory().unwrap();
    assert_eq!(store.read().unwrap().count_names().unwrap(), 0);
    let mut expected = 0;
    for step in [1_u64, 10, 300, 5_000, 40_000] {
        store
            .write(|tx| {
                for i in 0..step {
                    tx.put(format!("{step:06}/{i:08}"), b"")?;
                }
                tx.create(b"without a name")?;
                assert_eq!(tx.count_names()?, expected + step);
                Ok(())
            })
            .unwrap();
        expected += step;
        let reader = store.read().unwrap();
        assert_eq!(reader.count_names().unwrap(), expected);
        assert_eq!(reader.names("").count() as u64, expected);
    }
    store.write(|tx| tx.remove("000001/00000000")).unwrap();
    assert_eq!(store.read().unwrap().count_names().unwrap(), expected - 1);
}
