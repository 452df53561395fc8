//! Waiting for the transaction under way, for a bounded time.

use holdall::{Cancel, Durability, Error, Options, Store, Wait, WriteOptions};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

fn within(limit: Duration) -> WriteOptions {
    WriteOptions { wait: Wait::For(limit), ..WriteOptions::default() }
}

fn at_once() -> WriteOptions {
    WriteOptions { wait: Wait::Not, ..WriteOptions::default() }
}

#[test]
fn a_wait_ends_when_its_time_is_over_or_the_other_transaction_is() {
    let store = Store::in_memory().unwrap();
    let mut first = store.begin_write().unwrap();
    first.put("a", b"1").unwrap();
    let (tell, told) = mpsc::channel();
    let other = store.clone();
    let thread = std::thread::spawn(move || {
        let begun = Instant::now();
        let refused = other.begin_write_with(&within(SHORT)).unwrap_err();
        assert!(begun.elapsed() >= SHORT);
        let Error::Busy(by) = refused else { panic!("{refused:?}") };
        assert!(!by.is_own && !by.has_ended && !by.checkpoint, "{by:?}");
        assert!(matches!(other.write_with(&at_once(), |_| Ok(())), Err(Error::Busy(_))));
        tell.send(()).unwrap();
        let mut tx = other.begin_write_with(&within(LONG)).unwrap();
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
    let first = store.begin_write_with(&at_once()).unwrap();
    let begun = Instant::now();
    let mut second = store.begin_write().unwrap();
    for refused in [second.put("a", b"1").map(drop), store.write(|tx| tx.remove("a").map(drop))] {
        assert!(matches!(&refused, Err(Error::Busy(by)) if by.is_own), "{refused:?}");
    }
    assert!(matches!(store.clone().close(), Err(Error::Busy(_))));
    assert!(matches!(store.begin_write_with(&within(SHORT)), Err(Error::Busy(by)) if by.is_own));
    assert!(begun.elapsed() >= SHORT && begun.elapsed() < LONG);
    // What was refused has changed nothing, and goes on.
    drop(first);
    second.put("a", b"1").unwrap();
    second.commit().unwrap();
    assert!(store.writer().is_none());
}

#[test]
fn a_transaction_that_a_thread_left_behind_is_named_and_ended_by_another() {
    let store = Store::in_memory().unwrap();
    let other = store.clone();
    let left = std::thread::Builder::new().name("reader of mail".into()).spawn(move || {
        let mut tx = other.begin_write().unwrap();
        tx.put("a", b"1").unwrap();
        tx
    });
    let left = left.unwrap().join().unwrap();
    std::thread::sleep(SHORT);
    let refused = store.begin_write_with(&at_once()).unwrap_err().to_string();
    assert!(refused.contains("reader of mail") && refused.contains("has ended"), "{refused}");
    left.commit().unwrap();
    assert!(store.get("a").unwrap().is_some());
}

/// All who wait with a token learn it at once, from any thread.
#[test]
fn a_wait_is_cancelled_from_outside() {
    let store = Store::in_memory().unwrap();
    let mut first = store.begin_write().unwrap();
    first.put("a", b"1").unwrap();
    let cancel = Cancel::new();
    let options = WriteOptions { wait: Wait::Forever, cancel: Some(cancel.clone()) };
    std::thread::scope(|scope| {
        let waits = || store.write_with(&options, |tx| tx.put("b", b"2").map(drop));
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(waits)).collect();
        std::thread::sleep(SHORT);
        cancel.cancel();
        for thread in threads {
            assert!(matches!(thread.join().unwrap(), Err(Error::Cancelled)));
        }
    });
    first.commit().unwrap();
    assert!(store.get("b").unwrap().is_none());
}

/// The limit covers a checkpoint that must come first: a disk that syncs slowly.
#[test]
fn a_wait_for_a_checkpoint_ends_too() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().tuning(|t| t.dirty_pages(16).auto_checkpoint(false));
    let store = options.create(dir.path().join("s.holdall")).unwrap();
    let put = |i: u32| store.write_with(&within(LONG), |tx| tx.put(format!("{i}"), &[7; 3000]));
    for i in 0..200 {
        put(i).unwrap();
    }
    // Nothing takes its place while this is held.
    store
        .checkpoint_with(&mut || {
            let mut refused = false;
            for i in 0..40 {
                refused |= match store.write_with(&within(SHORT), |tx| {
                    tx.set_durability(Durability::Deferred);
                    tx.put(format!("more {i}"), &[7; 3000])
                }) {
                    Err(Error::Busy(by)) => by.checkpoint,
                    other => other.map(|_| false).unwrap(),
                };
                if refused {
                    break;
                }
            }
            assert!(refused);
        })
        .unwrap();
    put(1000).unwrap();
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
