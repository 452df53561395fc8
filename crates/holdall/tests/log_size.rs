//! The log follows the load, and what makes checkpoints run.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Fetched, Options, Store};
use std::time::{Duration, Instant};

/// Commits of 64 KiB each, which pass through the log.
fn load(store: &Store, commits: u32) {
    for i in 0..commits {
        let bytes = vec![i as u8; 64 << 10];
        store.write(|tx| tx.put(format!("object {}", i % 20), &bytes)).unwrap();
    }
}

#[test]
fn the_log_grows_under_a_load_and_is_small_once_nobody_commits() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = Options::default().cache_bytes(32 << 20).create(&path).unwrap();
    load(&store, 1);
    assert!(store.stat().unwrap().log_capacity <= 512 << 10, "one commit makes no large log");
    load(&store, 600);
    let stat = store.stat().unwrap();
    assert_eq!(stat.log_capacity, 16 << 20, "half of the cache");
    assert!(stat.checkpoints.log > 0 && stat.checkpoints.pages > 0, "{:?}", stat.checkpoints);
    assert_eq!((stat.checkpoints.space, stat.checkpoints.call), (0, 0), "{:?}", stat.checkpoints);
    let begun = Instant::now();
    while store.stat().unwrap().log_capacity > 1 << 20 {
        assert!(begun.elapsed() < Duration::from_secs(30), "the log stays large");
        std::thread::sleep(Duration::from_millis(50));
    }
    let log = std::fs::metadata(dir.path().join("store-log")).unwrap().len();
    assert!(log <= 1 << 20, "a file of {log} bytes");
    load(&store, 200);
    store.close().unwrap();
    let store = Store::open(&path).unwrap();
    for name in 0..20 {
        let last = (0..200_u32).rfind(|i| i % 20 == name).unwrap();
        let bytes = store.get(format!("object {name}")).unwrap().unwrap();
        assert!(bytes == vec![last as u8; 64 << 10], "object {name}");
    }
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_larger_space_factor_gives_a_larger_log_and_lets_more_wait() {
    let run = |factor| {
        let options = Options::default().cache_bytes(256 << 20).background(false);
        let store = options.space_factor(factor).create_in_memory().unwrap();
        let bytes = vec![7; 1 << 20];
        for i in 0..64 {
            store.write(|tx| tx.put(format!("large {i}"), &bytes)).unwrap();
        }
        load(&store, 1500);
        for i in 0..64 {
            store.write(|tx| tx.put(format!("large {i}"), &bytes)).unwrap();
        }
        let stat = store.stat().unwrap();
        (stat.log_capacity, stat.checkpoints.waiting)
    };
    let ((small, often), (large, seldom)) = (run(1.1), run(2.0));
    assert_eq!(small, 32 << 20);
    assert!(large > small, "{large} bytes of log");
    assert!(often > seldom, "{often} and {seldom} checkpoints for what waits");
}

#[test]
fn only_a_volume_that_cannot_grow_makes_checkpoints_for_whole_runs() {
    let run = |options: Options| {
        let store = options.background(false).create_in_memory().unwrap();
        let bytes = vec![7; 256 << 10];
        for i in 0..120 {
            store.write(|tx| tx.put(format!("{}", i % 8), &bytes)).unwrap();
        }
        store.stat().unwrap().checkpoints.space
    };
    assert_eq!(run(Options::default()), 0);
    assert!(run(Options::default().max_bytes(3 << 20)) > 0);
}

#[test]
fn used_memory_is_written_over_and_emptied_if_nothing_is_read() {
    let store = Store::in_memory().unwrap();
    store.write(|tx| tx.put("large", &[5; 100_000]).and_then(|_| tx.put("small", b"few"))).unwrap();
    let mut bytes = vec![9; 300_000];
    for (name, len) in [("large", 100_000), ("small", 3), ("large", 100_000)] {
        assert!(store.get_into(name, &mut bytes).unwrap());
        assert_eq!(bytes.len(), len, "{name}");
        assert!(bytes.capacity() >= 300_000, "the memory is used again");
        assert_eq!(bytes, store.get(name).unwrap().unwrap());
    }
    assert!(!store.get_into("none", &mut bytes).unwrap());
    assert!(bytes.is_empty());
    let reader = store.read().unwrap();
    for name in ["none", "large"] {
        bytes = vec![9; 10];
        assert!(!matches!(reader.fetch(name, &mut bytes).unwrap(), Some(Fetched::Read)));
        assert!(bytes.is_empty(), "{name}");
    }
}
