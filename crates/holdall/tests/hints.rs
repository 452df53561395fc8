//! Hints change how objects lie, never what is read.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Hints, Layout, Options, PutOptions, Store, Target};
use holdall_io::{MemoryStorage, Storage};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Arc;

fn options() -> Options {
    Options::default().background(false).page_size(4096)
}

fn store() -> (Arc<dyn Storage>, Store) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage.clone()).unwrap();
    (storage, store)
}

fn data(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = SmallRng::seed_from_u64(seed);
    (0..len).map(|_| rng.random()).collect()
}

fn threshold(store: &Store, name: &str) -> Option<u16> {
    match store.read().unwrap().metadata(name).unwrap().layout {
        Layout::Small => None,
        Layout::Large { threshold, .. } => Some(threshold),
    }
}

#[test]
fn an_operation_s_size_chooses_the_threshold() {
    let (storage, store) = store();
    let hints = |size| Some(Hints { operation_size: Some(size), ..Hints::default() });
    let bytes = data(1, 500_000);
    store
        .write(|tx| {
            for (name, size) in [("small", 100), ("large", 300_000)] {
                let options = PutOptions { hints: hints(size), ..PutOptions::default() };
                let mut writer = tx.writer(Target::Name(name.into()), options)?;
                writer.push(&bytes)?;
                writer.finish()?;
            }
            tx.put("none", &bytes)?;
            Ok(())
        })
        .unwrap();
    let default = threshold(&store, "none");
    assert_eq!(threshold(&store, "small"), default, "never below the default");
    assert_eq!(threshold(&store, "large"), Some(74));
    // A replaced object keeps them, an object's own come before the collection's.
    store.write(|tx| tx.put("large", &bytes[..100_000])).unwrap();
    assert_eq!(threshold(&store, "large"), Some(74));
    let own = Hints { threshold: Some(9), ..Hints::default() };
    store.write(|tx| tx.collection("c")?.set_collection_hints(own)).unwrap();
    store.close().unwrap();
    let store = options().open_on(storage).unwrap();
    store
        .write(|tx| {
            let mut tx = tx.collection("c")?;
            tx.put("x", &bytes)?;
            tx.put("y", &bytes)?;
            tx.set_hints("y", Hints { threshold: Some(5), ..Hints::default() })
        })
        .unwrap();
    let reader = store.read().unwrap().collection("c").unwrap();
    let of = |name: &str| match reader.metadata(name).unwrap().layout {
        Layout::Large { threshold, .. } => threshold,
        Layout::Small => panic!("large"),
    };
    assert_eq!((of("x"), of("y")), (9, 5));
    assert!(store.verify().unwrap().is_sound());
}

/// Bytes of pages that nothing fills after 2,000 appends of 100 bytes, which end a few
/// hundred bytes short of a whole page.
fn unfilled(append_mostly: bool) -> u64 {
    let (_, store) = store();
    let hints = Hints { append_mostly, ..Hints::default() };
    store.write(|tx| tx.put("log", b"").and_then(|_| tx.set_hints("log", hints))).unwrap();
    let mut model = Vec::new();
    for i in 0..2000 {
        let line = data(i, 100);
        store.write(|tx| tx.append("log", &line)).unwrap();
        model.extend_from_slice(&line);
    }
    assert!(store.read().unwrap().get("log").unwrap().unwrap() == model);
    assert!(store.verify().unwrap().is_sound());
    let reader = store.read().unwrap();
    let layout = reader.metadata("log").unwrap().layout;
    let Layout::Large { append_mostly: kept, .. } = layout else { return 0 };
    assert_eq!(kept, append_mostly);
    reader.segments("log").unwrap().space - model.len() as u64
}

#[test]
fn append_mostly_writes_pages_when_they_are_full() {
    let (plain, hinted) = (unfilled(false), unfilled(true));
    assert!(hinted * 2 < plain, "{hinted} bytes unfilled with the hint, {plain} without");
}

#[test]
fn small_objects_keep_their_hints_through_edits() {
    let (_, store) = store();
    let hints = Hints { append_mostly: true, threshold: Some(7), ..Hints::default() };
    let mut model = b"short".to_vec();
    store.write(|tx| tx.put("x", &model).and_then(|_| tx.set_hints("x", hints))).unwrap();
    for (i, len) in [3000, 90_000, 10, 700].into_iter().enumerate() {
        let bytes = data(i as u64, len);
        store.write(|tx| tx.append("x", &bytes)).unwrap();
        model.extend_from_slice(&bytes);
    }
    store.write(|tx| tx.set_len("x", 20)).unwrap();
    model.truncate(20);
    assert!(store.read().unwrap().get("x").unwrap().unwrap() == model);
    assert_eq!(threshold(&store, "x"), Some(7), "still there when it is small again");
    store.write(|tx| tx.set_hints("x", Hints::default())).unwrap();
    store.write(|tx| tx.append("x", b"!")).unwrap();
    assert_eq!(threshold(&store, "x"), None);
    let report = store.verify().unwrap();
    assert!(report.is_sound() && report.notes.is_empty(), "{report:?}");
}
