//! A crash at any point of a creation leaves a store, or a file that is made anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Options, Store};
use holdall_io::MemoryStorage;
use holdall_testkit::{CrashKind, FaultPlan, FaultyStorage, LossPolicy};
use std::fs;
use std::sync::Arc;

fn options(page_size: usize) -> Options {
    Options::default().background(false).page_size(page_size).tuning(|t| t.log_bytes(64 << 10))
}

/// What power cuts leave of creations: at each change, with all, none and some of it kept.
fn cut_short(options: &Options) -> Vec<Vec<u8>> {
    let mut left = Vec::new();
    for change in 1.. {
        let place = Arc::new(FaultyStorage::new(change));
        place.set_plan(FaultPlan { crash_at_change: Some(change), ..FaultPlan::default() });
        let created = options.create_on(place.clone());
        if !place.crashed() {
            created.unwrap();
            assert!(change > 8, "only {change} changes");
            return left;
        }
        let losses = [LossPolicy::LoseAll, LossPolicy::KeepAll].into_iter();
        for (seed, loss) in losses.chain([LossPolicy::Random; 20]).enumerate() {
            let found = place.crash(CrashKind::PowerCut(loss), seed as u64).unwrap();
            left.push(found.snapshot().0);
        }
    }
    left
}

fn use_it(store: &Store) {
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
    store.write(|tx| tx.put("a", b"1")).unwrap();
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn a_creation_cut_short_leaves_a_sound_store_or_nothing() {
    for page_size in [4096, 8192, 65536] {
        let (mut stores, mut unfinished) = (0, 0);
        for volume in cut_short(&options(page_size)) {
            let place = || Arc::new(MemoryStorage::from_bytes(volume.clone(), None));
            let read = options(page_size).open_read_only_on(place());
            match options(page_size).open_on(place()) {
                Ok(store) => {
                    stores += 1;
                    let report = read.unwrap().verify().unwrap();
                    assert!(report.is_sound(), "{:?}", report.problems);
                    use_it(&store);
                }
                Err(e @ Error::Unfinished { .. }) => {
                    unfinished += 1;
                    assert!(matches!(read, Err(Error::Unfinished { .. })));
                    assert!(
                        e.to_string().contains("holds no store; if a store was there, restore it")
                    );
                    // With another page size, too.
                    for size in [page_size, 8192] {
                        use_it(&options(size).create_on(place()).unwrap());
                    }
                }
                Err(e) => panic!("{e}"),
            }
        }
        assert!(stores > 20 && unfinished > 60, "{stores} stores, {unfinished} unfinished");
    }
}

#[test]
fn a_crash_while_an_unfinished_file_is_made_anew_leaves_no_worse() {
    let options = options(8192);
    let left = cut_short(&self::options(4096));
    let unfinished = |volume: &[u8]| {
        let place = MemoryStorage::from_bytes(volume.to_vec(), None);
        matches!(options.open_on(Arc::new(place)), Err(Error::Unfinished { .. }))
    };
    let first = left.into_iter().rfind(|v| unfinished(v) && v.iter().any(|b| *b != 0)).unwrap();
    for change in 1..=10 {
        let place = Arc::new(FaultyStorage::from_bytes(&first, None, change).unwrap());
        place.set_plan(FaultPlan { crash_at_change: Some(change), ..FaultPlan::default() });
        options.create_on(place.clone()).unwrap_err();
        for seed in 0..20 {
            let found = place.crash(CrashKind::PowerCut(LossPolicy::Random), seed).unwrap();
            let found = Arc::new(found);
            let store = match options.open_on(found.clone()) {
                Err(Error::Unfinished { .. }) => options.create_on(found),
                other => other,
            };
            use_it(&store.unwrap_or_else(|e| panic!("change {change}, seed {seed}: {e}")));
        }
    }
}

#[test]
fn an_unfinished_file_is_made_anew_by_create_alone_and_any_other_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let (options, log) = (options(8192), dir.path().join("s-log"));
    for volume in cut_short(&options) {
        for create in [false, true] {
            fs::write(&path, &volume).unwrap();
            let made = if create { options.create(&path) } else { options.open_or_create(&path) };
            match made {
                Ok(store) => use_it(&store),
                Err(Error::Unfinished { .. }) if !create => {
                    assert!(fs::read(&path).unwrap() == volume, "it was changed");
                }
                // The superblock was there already.
                Err(Error::Exists(_)) => use_it(&options.open(&path).unwrap()),
                Err(e) => panic!("{e}"),
            }
            assert!(!log.exists());
        }
    }
    let fresh = cut_short(&options).into_iter().max_by_key(Vec::len).unwrap().len();
    let mut notes = vec![0; fresh];
    notes[700] = b'x';
    let longer = vec![0; 1 << 20];
    for file in [b"text".to_vec(), notes, longer] {
        fs::write(&path, &file).unwrap();
        let opened = options.open_or_create(&path);
        assert!(matches!(opened, Err(Error::NotAStore { .. })), "{opened:?}");
        assert!(matches!(options.create(&path), Err(Error::Exists(_))));
        assert!(fs::read(&path).unwrap() == file);
    }
    let closed = MemoryStorage::new();
    let closed = Arc::new(closed);
    options.create_on(closed.clone()).unwrap().close().unwrap();
    let again = options.create_on(closed);
    assert!(matches!(again, Err(Error::Exists(_))), "{again:?}");
}
