//! Every number among the options, at its ends and beyond: refused by name before a file is made,
//! or a store that works.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use holdall::{Error, Options, Store};
use holdall_io::{MemoryStorage, Storage};
use std::sync::Arc;
use std::time::Duration;

type Set = fn(Options, u64) -> Options;

/// Each option that takes a number, and whether it takes any.
const NUMBERS: [(&str, Set, bool); 13] = [
    ("cache_bytes", |o, n| o.cache_bytes(n as usize), false),
    ("max_bytes", |o, n| o.max_bytes(n), false),
    ("page_size", |o, n| o.page_size(n as usize), false),
    ("defer", |o, n| o.defer(Duration::from_secs(n)), false),
    ("pinned_bytes", |o, n| o.pinned_bytes(n), true),
    ("old_version_bytes", |o, n| o.old_version_bytes(n as usize), true),
    (
        "space_pages",
        |o, n| o.tuning(|t| t.space_pages(u32::try_from(n).unwrap_or(u32::MAX))),
        false,
    ),
    ("dirty_pages", |o, n| o.tuning(|t| t.dirty_pages(n as usize)), false),
    ("log_bytes", |o, n| o.tuning(|t| t.log_bytes(n)), false),
    ("log_data_bytes", |o, n| o.tuning(|t| t.log_data_bytes(n as usize)), false),
    ("growth_bytes", |o, n| o.tuning(|t| t.growth_bytes(n)), false),
    ("spare_bytes", |o, n| o.tuning(|t| t.spare_bytes(n)), true),
    ("first_log_bytes", |o, n| o.tuning(|t| t.first_log_bytes(n)), false),
];

fn values() -> Vec<u64> {
    let mut all = vec![0, 1, 3, 15, 16, 17, 63, 64, 100, 4095, 4096, 8191, 12_345, 131_073];
    for bits in [16, 17, 20, 30, 31, 32, 33, 40, 41, 47, 48, 62, 63] {
        all.extend([(1 << bits) - 1, 1 << bits, (1 << bits) + 1]);
    }
    all.extend([u64::MAX - 4096, u64::MAX - 4095, u64::MAX - 1, u64::MAX]);
    all
}

/// Puts, takes away and reads again, in two openings.
fn works(options: &Options, what: &str) {
    let bytes = |i: u32| vec![i as u8; 40 + i as usize * 700];
    let storage = Arc::new(MemoryStorage::new());
    let store = options.create_on(storage.clone()).unwrap_or_else(|e| panic!("{what}: {e}"));
    for i in 0..8 {
        let put = store.write(|tx| tx.put(format!("{i}"), &bytes(i)).map(drop));
        put.unwrap_or_else(|e| panic!("{what}: {e}"));
    }
    store.write(|tx| tx.remove("3").map(drop)).unwrap();
    store.checkpoint().unwrap();
    let length = storage.volume().len().unwrap();
    assert!(length < 4 << 20, "{what}: a file of {length} bytes for a few KB");
    store.stat().unwrap();
    store.close().unwrap();
    let store = options.open_on(storage).unwrap_or_else(|e| panic!("{what}, again: {e}"));
    for i in (0..8).filter(|i| *i != 3) {
        assert_eq!(store.read().unwrap().get(format!("{i}")).unwrap().unwrap(), bytes(i), "{what}");
    }
    assert!(store.verify().unwrap().is_sound(), "{what}");
}

fn refused(result: Result<Store, Error>, name: &str, value: u64) {
    match result {
        Err(Error::Invalid(text)) => {
            assert!(text.contains(name), "{name} = {value}: {text}");
            // In other units, or the nearest that its type has.
            let same =
                ["defer", "space_pages"].contains(&name) || text.contains(&value.to_string());
            assert!(same && text.chars().filter(char::is_ascii_digit).count() > 1, "{text}");
        }
        other => panic!("{name} = {value}: {other:?}"),
    }
}

#[test]
fn every_number_is_refused_by_name_or_works() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("made.holdall");
    drop(Options::default().create(&made).unwrap());
    let (mut good, mut bad) = (0, 0);
    for (name, set, any) in NUMBERS {
        for value in values() {
            let options = set(Options::default().background(false), value);
            let path = dir.path().join("s.holdall");
            let what = format!("{name} = {value}");
            if matches!(options.open_read_only(&made), Err(Error::Invalid(_))) {
                assert!(!any, "{what}");
                refused(options.create(&path), name, value);
                refused(options.open_or_create(&path), name, value);
                refused(options.open(&made), name, value);
                refused(options.open_read_only(&made), name, value);
                assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "{what}");
                bad += 1;
                continue;
            }
            // One that has no room for an empty store, or for what is put.
            if name == "max_bytes" && value < 2 << 20 {
                let _ = options.create(&path).and_then(Store::close);
            } else {
                works(&options, &what);
            }
            let _ = std::fs::remove_file(&path);
            good += 1;
        }
    }
    assert!(good > 150 && bad > 150, "{good} {bad}");
}

#[test]
fn threads_of_the_store_bear_the_longest_time() {
    let dir = tempfile::tempdir().unwrap();
    let day = Duration::from_secs(86_400);
    let options = Options::default().defer(day);
    works(&options, "a day");
    for time in [day + Duration::from_millis(1), Duration::MAX] {
        let path = dir.path().join("t.holdall");
        let refused = Options::default().defer(time).create(&path).unwrap_err();
        assert!(refused.to_string().contains("defer in ms"), "{refused}");
        assert!(!path.exists());
    }
}

#[test]
fn a_store_too_small_for_its_bound_is_not_made_and_a_longer_one_opens_with_less() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let bound = Options::default().background(false).max_bytes(130_000_u64).page_size(65_536);
    assert!(matches!(bound.create(&path), Err(Error::Invalid(text)) if text.contains("max_bytes")));
    let bound = bound.max_bytes(200_000_u64);
    let refused = bound.create(&path).unwrap_err().to_string();
    assert!(refused.contains("max_bytes is 200000: an empty store needs at least"), "{refused}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let store = Options::default().create(&path).unwrap();
    store.write(|tx| tx.put("long", &vec![1; 6 << 20])).unwrap();
    store.close().unwrap();
    // What is there stays and can be removed; nothing grows.
    let store = Options::default().max_bytes(3_u64 << 20).open(&path).unwrap();
    assert!(matches!(store.write(|tx| tx.put("more", &vec![2; 1 << 20])), Err(Error::Full(_))));
    assert_eq!(store.read().unwrap().get("long").unwrap().unwrap().len(), 6 << 20);
    store.write(|tx| tx.remove("long").map(drop)).unwrap();
    store.checkpoint().unwrap();
    store.stat().unwrap();
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_large_step_of_growth_is_bounded_by_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let options = Options::default().background(false).tuning(|t| t.growth_bytes(8 << 30));
    let store = options.create(&path).unwrap();
    store.write(|tx| tx.put("a", b"a few bytes")).unwrap();
    let length = || std::fs::metadata(&path).unwrap().len();
    assert!(length() < 3 << 20, "{} bytes", length());
    store.write(|tx| tx.put("b", &vec![1; 10 << 20])).unwrap();
    assert!(length() < 32 << 20, "{} bytes", length());
    store.write(|tx| tx.remove("b").map(drop)).unwrap();
    let all = |_: &holdall::Moved| std::ops::ControlFlow::Continue(());
    store.defrag(&holdall::DefragOptions::default(), &mut { all }).unwrap();
    assert!(length() < 14 << 20, "{} bytes", length());
}
