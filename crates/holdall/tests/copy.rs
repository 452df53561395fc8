//! Copies that share segments: against bytes in memory, with every reference counted by
//! verification, and all space given back in the end.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Key, Options, PutOptions, Store, Target, WriteTx};
use holdall_io::{MemoryStorage, Storage};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE: usize = 4096;

fn options() -> Options {
    Options::default().background(false).page_size(PAGE).cache_bytes(256 << 10)
}

fn data(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.random()).collect()
}

fn sound(store: &Store, seed: u64) {
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "seed {seed}: {:?}", report.problems);
}

type Model = BTreeMap<String, Vec<u8>>;

fn name(rng: &mut SmallRng) -> String {
    format!("object {}", rng.random_range(0..6))
}

/// A byte of `0..=len`, often at the border of a page.
fn place(rng: &mut SmallRng, len: usize) -> usize {
    let at = rng.random_range(0..=len);
    match rng.random_range(0..4) {
        0 => at / PAGE * PAGE,
        1 => (at / PAGE * PAGE + 1).min(len),
        _ => at,
    }
}

fn step(tx: &mut WriteTx, rng: &mut SmallRng, model: &mut Model) -> holdall::Result<()> {
    let (a, b) = (name(rng), name(rng));
    let Some(from) = model.get(&a).cloned() else {
        let len = [10, 5000, 100_000, 700_000][rng.random_range(0..4)];
        let bytes = data(rng, len);
        tx.put(&a, &bytes)?;
        model.insert(a, bytes);
        return Ok(());
    };
    match rng.random_range(0..9) {
        0..3 => {
            tx.copy(&a, Target::Name(b.clone().into_bytes()))?;
            model.insert(b, from);
        }
        3..5 => {
            let Some(mut to) = model.remove(&b) else { return Ok(()) };
            let (x, y) = (place(rng, from.len()), place(rng, from.len()));
            let (x, y) = (x.min(y), x.max(y));
            let at = place(rng, to.len());
            if to.len() + y - x < 3_000_000 {
                to.splice(at..at, from[x..y].iter().copied());
                let size = tx.copy_range(&a, x as u64..y as u64, &b, at as u64)?;
                assert_eq!(size, to.len() as u64);
            }
            model.insert(b, to);
        }
        5 => {
            let parts: Vec<String> = (0..3).map(|_| name(rng)).collect();
            let parts: Vec<_> = parts.into_iter().filter(|p| model.contains_key(p)).collect();
            let all: Vec<u8> = parts.iter().flat_map(|p| model[p].clone()).collect();
            if all.len() < 3_000_000 {
                let keys: Vec<Key<'_>> = parts.iter().map(Key::from).collect();
                tx.concat(&keys, Target::Name(b.clone().into_bytes()))?;
                model.insert(b, all);
            }
        }
        6 => {
            tx.remove(&a)?;
            model.remove(&a);
        }
        _ => {
            let (x, y) = (place(rng, from.len()), place(rng, from.len()));
            let (x, y) = (x.min(y), x.max(y).min(x.min(y) + 30_000));
            let len = rng.random_range(0..20_000);
            let new = data(rng, len);
            tx.splice(&a, x as u64..y as u64, &new)?;
            let mut to = from;
            to.splice(x..y, new);
            model.insert(a, to);
        }
    }
    Ok(())
}

#[test]
fn copies_and_edits_give_what_memory_gives() {
    for seed in 0..15 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let mut store = options().create_on(storage.clone()).unwrap();
        let mut model = Model::new();
        for round in 0..60 {
            let steps = rng.random_range(1..4);
            let abort = rng.random_range(0..10) == 0;
            let before = model.clone();
            let result = store.write(|tx| {
                (0..steps).try_for_each(|_| step(tx, &mut rng, &mut model))?;
                if abort { Err(Error::Invalid("given up".into())) } else { Ok(()) }
            });
            assert_eq!(result.is_err(), abort, "seed {seed}: {result:?}");
            if abort {
                model = before;
            }
            if round % 7 == 0 {
                store.checkpoint().unwrap();
            }
            if round % 20 == 19 {
                sound(&store, seed);
                store.close().unwrap();
                store = options().open_on(storage.clone()).unwrap();
            }
            let reader = store.read().unwrap();
            for (name, bytes) in &model {
                assert!(reader.get(name).unwrap().unwrap() == *bytes, "seed {seed}, {name}");
            }
        }
        sound(&store, seed);
        store.write(|tx| model.keys().try_for_each(|name| tx.remove(name).map(drop))).unwrap();
        sound(&store, seed);
        let sharing = holdall::inspect::sharing(&store).unwrap();
        assert!(sharing.tree.is_none() && sharing.ranges.is_empty(), "{sharing:?}");
    }
}

#[test]
fn a_copy_takes_no_space_and_an_edit_of_it_little() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage).unwrap();
    let bytes = data(&mut SmallRng::seed_from_u64(1), 20 << 20);
    store.write(|tx| tx.put("a", &bytes)).unwrap();
    let used = || {
        store.checkpoint().unwrap();
        let stat = store.stat().unwrap();
        stat.used_bytes
    };
    let before = used();
    let copy = store.write(|tx| tx.copy("a", Target::New)).unwrap();
    assert!(used() - before < 64 << 10, "{} more", used() - before);
    store.write(|tx| tx.insert(copy, 10 << 20, b"in the middle of the copy")).unwrap();
    assert!(used() - before < 512 << 10, "{} more", used() - before);
    let reader = store.read().unwrap();
    assert!(reader.get("a").unwrap().unwrap() == bytes);
    let shared_pages = reader.segments(copy).unwrap().shared_pages;
    assert!(shared_pages > 5000, "{shared_pages}");
    drop(reader);
    store.write(|tx| tx.remove("a")).unwrap();
    let mut want = bytes;
    want.splice(10 << 20..10 << 20, *b"in the middle of the copy");
    assert!(store.read().unwrap().get(copy).unwrap().unwrap() == want);
    sound(&store, 0);
}

#[test]
fn copies_across_collections_keep_attributes() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage).unwrap();
    let attributes = BTreeMap::from([("type".to_owned(), b"x/y".to_vec())]);
    let bytes = vec![3; 300_000];
    let from = store
        .write(|tx| tx.put_with("a", &bytes, &PutOptions::with_attributes(attributes.clone())))
        .unwrap();
    store.write(|tx| tx.collection("backup")?.copy(from, "a")).unwrap();
    let reader = store.read().unwrap().collection("backup").unwrap();
    let metadata = reader.metadata("a").unwrap();
    assert_eq!((metadata.size, metadata.attributes), (300_000, attributes));
    assert!(metadata.oid != from && reader.get("a").unwrap().unwrap() == bytes);
    sound(&store, 0);
}

/// Found by simulation, seeds 100413 and 101286.
#[test]
fn copying_nothing_leaves_a_full_record_as_it_is() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage).unwrap();
    let full = vec![5; PAGE - 80];
    store.write(|tx| tx.put("full", &full).and_then(|_| tx.put("empty", b""))).unwrap();
    store.write(|tx| tx.copy_range("empty", 0..0, "full", 7)).unwrap();
    store.write(|tx| tx.copy_range("full", 9..9, "full", 7)).unwrap();
    assert_eq!(store.read().unwrap().get("full").unwrap().unwrap(), full);
    sound(&store, 0);
}

#[test]
fn bad_ranges_are_refused_and_leave_the_transaction_usable() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage).unwrap();
    store
        .write(|tx| {
            tx.put("a", &[1; 100_000])?;
            tx.put("b", b"short")?;
            let far = tx.copy_range("a", 0..100_001, "b", 0).unwrap_err();
            assert!(matches!(far, Error::Range { size: 100_000, .. }), "{far}");
            let far = tx.copy_range("a", 0..10, "b", 6).unwrap_err();
            assert!(matches!(far, Error::Range { size: 5, .. }), "{far}");
            let none = tx.copy("none", Target::New).unwrap_err();
            assert!(matches!(none, Error::NotFound(_)), "{none}");
            let none = tx.concat(&["a".into(), "none".into()], Target::New).unwrap_err();
            assert!(matches!(none, Error::NotFound(_)), "{none}");
            Ok(())
        })
        .unwrap();
    assert_eq!(store.read().unwrap().get("b").unwrap().unwrap(), b"short");
    sound(&store, 0);
}
