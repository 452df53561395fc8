//! Times of objects: what changes them, what keeps them, what a caller says of them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Attributes, DefragOptions, Hints, MTIME, Options, PutOptions, Store};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::{Duration, SystemTime};

thread_local! {
    /// Each test's own clock: a store asks for the time on the thread that changes an object.
    static NOW: Cell<u64> = const { Cell::new(1_700_000_000_000) };
}

fn options() -> Options {
    Options::default().background(false).tuning(|t| t.clock(|| NOW.get()))
}

fn at(millis: u64) -> Option<SystemTime> {
    Some(SystemTime::UNIX_EPOCH + Duration::from_millis(millis))
}

/// Lets time pass; returns the new time.
fn later() -> Option<SystemTime> {
    NOW.set(NOW.get() + 1234);
    at(NOW.get())
}

fn time(store: &Store, name: &str) -> Option<SystemTime> {
    store.read().unwrap().metadata(name).unwrap().modified
}

#[test]
fn a_change_of_bytes_or_attributes_has_a_time_and_nothing_else_has() {
    let store = options().create_in_memory().unwrap();
    for (name, size) in [("small", 40), ("large", 300_000), ("just small", 1_900)] {
        let bytes = vec![7; size];
        let put = later();
        store.write(|tx| tx.put(name, &bytes)).unwrap();
        assert_eq!(time(&store, name), put, "{name}");
        type Change = fn(&mut holdall::ObjectsMut, &str) -> holdall::Result<()>;
        let changes: [(&str, Change); 8] = [
            ("append", |tx, name| tx.append(name, b"more").map(drop)),
            ("insert", |tx, name| tx.insert(name, 5, b"in").map(drop)),
            ("replace", |tx, name| tx.replace(name, 1, b"x").map(drop)),
            ("delete_range", |tx, name| tx.delete_range(name, 2..4).map(drop)),
            ("set_bytes", |tx, name| tx.set_bytes(name, &[1; 50_000])),
            ("set_len", |tx, name| tx.set_len(name, 10).map(drop)),
            ("put", |tx, name| tx.put(name, b"again").map(drop)),
            ("set_attributes", |tx, name| {
                tx.set_attributes(name, &Attributes::from([("k".into(), b"v".to_vec())]))
            }),
        ];
        for (what, change) in changes {
            let now = later();
            store.write(|tx| change(tx, name)).unwrap();
            assert_eq!(time(&store, name), now, "{what} of {name}");
        }
        let before = time(&store, name);
        later();
        let hints = Hints { append_mostly: true, ..Hints::default() };
        store.write(|tx| tx.set_hints(name, hints)).unwrap();
        store.write(|tx| tx.rename(name, "other").and_then(|()| tx.rename("other", name))).unwrap();
        store.defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
        store.checkpoint().unwrap();
        assert_eq!(time(&store, name), before, "{name} is what it was");
    }
}

#[test]
fn all_ways_to_make_an_object_note_it() {
    let store = options().create_in_memory().unwrap();
    let now = later();
    store
        .write(|tx| {
            tx.put_many([("a", "one"), ("b", "two"), ("c", "three")])?;
            let oids = tx.create_many(["four", "five"])?;
            assert_eq!(tx.metadata(oids[1])?.modified, now);
            let mut writer = tx.writer("w", PutOptions::default())?;
            writer.push(&[3; 200_000])?;
            writer.finish()?;
            tx.open_or_create("o")?.finish().map(drop)
        })
        .unwrap();
    for name in ["a", "b", "c", "w", "o"] {
        assert_eq!(time(&store, name), now, "{name}");
    }
    // Bytes that were staged before count from their transaction on.
    let mut staged = store.stage("s", PutOptions::default()).unwrap();
    staged.push(&[1; 10]).unwrap();
    let now = later();
    store.write(|tx| staged.finish(tx)).unwrap();
    assert_eq!(time(&store, "s"), now);
    let now = later();
    store.write(|tx| tx.copy("w", "copy")).unwrap();
    assert_eq!(time(&store, "copy"), now);
}

#[test]
fn a_time_that_a_caller_names_counts_until_the_bytes_change() {
    let store = options().create_in_memory().unwrap();
    let of = |name: &str| store.read().unwrap().metadata(name).unwrap().last_modified();
    for (text, said) in [
        ("951782400123456789", Some(Duration::from_nanos(951_782_400_123_456_789))),
        ("0", Some(Duration::ZERO)),
        ("yesterday", None),
        ("99999999999999999999999999999999999999999", None),
    ] {
        let attributes = Attributes::from([(MTIME.into(), text.as_bytes().to_vec())]);
        let now = later();
        let options = PutOptions::with_attributes(attributes);
        store.write(|tx| tx.put_with("f", b"bytes", &options)).unwrap();
        assert_eq!(of("f"), said.map(|d| SystemTime::UNIX_EPOCH + d).or(now), "{text}");
        let now = later();
        store.write(|tx| tx.append("f", b".")).unwrap();
        assert_eq!(of("f"), now, "after {text}");
        assert!(store.read().unwrap().metadata("f").unwrap().attributes.is_empty());
    }
    let before = Attributes::from([(MTIME.into(), b"-1500000001".to_vec())]);
    store.write(|tx| tx.set_attributes("f", &before)).unwrap();
    assert_eq!(of("f"), SystemTime::UNIX_EPOCH.checked_sub(Duration::from_nanos(1_500_000_001)));
}
