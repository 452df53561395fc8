//! Many objects in one call leave the file that single calls leave, byte for byte; what fails
//! leaves nothing, and says of which object it failed.

#![expect(
    clippy::unwrap_used,
    clippy::assertions_on_constants,
    reason = "a test fails by panicking"
)]

use holdall::{Error, ObjectsMut, Oid, Options, Result, Store};
use holdall_io::MemoryStorage;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Arc;

fn options(page_size: usize, dirty_pages: usize) -> Options {
    Options::default()
        .background(false)
        .page_size(page_size)
        .tuning(|t| t.dirty_pages(dirty_pages).clock(|| 1))
}

/// An object to be put: its name, if it has one, and its bytes.
type Given = (Option<Vec<u8>>, Vec<u8>);

fn bytes(rng: &mut SmallRng) -> Vec<u8> {
    let most = [0, 30, 300, 300, 300, 3_000, 20_000][rng.random_range(0..7)];
    let (len, fill) = (rng.random_range(0..=most), rng.random::<u8>());
    (0..len).map(|i| fill.wrapping_add(i as u8)).collect()
}

/// Objects of a call, all with names or none; ordered names mostly come behind all others.
fn call(rng: &mut SmallRng, next: &mut u64) -> Vec<Given> {
    let (kind, small) = (rng.random_range(0..4), rng.random_bool(0.7));
    let name = |rng: &mut SmallRng, next: &mut u64| match kind {
        0 => None,
        1 => Some(rng.random_range(0..500_u64).to_be_bytes().to_vec()),
        _ if rng.random_ratio(1, 50) => Some(rng.random_range(0..*next + 1).to_be_bytes().to_vec()),
        _ => {
            *next += 1;
            let long = if rng.random_ratio(1, 40) { 400 } else { 0 };
            Some([&next.to_be_bytes()[..], &vec![7; long]].concat())
        }
    };
    let object = |_| {
        let name = name(rng, next);
        let len = rng.random_range(0..200);
        (name, if small { vec![len as u8; len] } else { bytes(rng) })
    };
    (0..[3, 40, 700][kind % 3]).map(object).collect()
}

fn one_by_one(tx: &mut ObjectsMut, all: &[Given]) -> Result<Vec<Oid>> {
    let one = |(name, bytes): &Given| match name {
        Some(name) => tx.put(name, bytes),
        None => tx.create(bytes),
    };
    all.iter().map(one).collect()
}

fn at_once(tx: &mut ObjectsMut, all: &[Given]) -> Result<Vec<Oid>> {
    if all.first().is_some_and(|(name, _)| name.is_none()) {
        return tx.create_many(all.iter().map(|(_, bytes)| bytes));
    }
    tx.put_many(all.iter().map(|(name, bytes)| (name.as_deref().unwrap(), bytes)))
}

/// The same calls to two stores that were one, by single calls and at once.
fn compare(seed: u64, page_size: usize, dirty_pages: usize) {
    let (options, first) = (options(page_size, dirty_pages), Arc::new(MemoryStorage::new()));
    options.create_on(first.clone()).unwrap().close().unwrap();
    let second = Arc::new(first.fork());
    let single = options.open_on(first.clone()).unwrap();
    let many = options.open_on(second.clone()).unwrap();
    let (mut rng, mut next) = (SmallRng::seed_from_u64(seed), 0);
    let mut live: Vec<Oid> = Vec::new();
    for round in 0..25 {
        let calls: Vec<_> =
            (0..rng.random_range(1..4)).map(|_| call(&mut rng, &mut next)).collect();
        // Each may be in another page, and there is a limit for these.
        let gone: Vec<Oid> = (0..(live.len() / 8).min(dirty_pages / 8))
            .map(|_| live.swap_remove(rng.random_range(0..live.len())))
            .collect();
        let (named, dropped) = (rng.random_bool(0.3), rng.random_ratio(1, 8));
        let run = |store: &Store, put: fn(&mut ObjectsMut, &[Given]) -> Result<Vec<Oid>>| {
            store.write(|tx| {
                gone.iter().try_for_each(|oid| tx.remove(*oid).map(drop))?;
                let mut tx = tx.collection(if named { "other" } else { "default" })?;
                let mut oids = Vec::new();
                for all in &calls {
                    oids.extend(put(&mut tx, all)?);
                }
                if dropped { Err(Error::Invalid("dropped".into())) } else { Ok(oids) }
            })
        };
        match (run(&single, one_by_one), run(&many, at_once)) {
            (Ok(a), Ok(b)) => {
                assert_eq!(a, b, "round {round} of seed {seed}");
                live.extend(a);
                live.sort_unstable();
                live.dedup();
            }
            (Err(a), Err(b)) => {
                assert!(dropped, "{a}");
                assert_eq!(a.to_string(), b.to_string());
                live.extend(gone);
            }
            (a, b) => assert!(false, "{:?} by single calls, {:?} at once", a.err(), b.err()),
        }
        if rng.random_ratio(1, 4) {
            [&single, &many].iter().for_each(|store| store.checkpoint().unwrap());
        }
    }
    assert!(live.len() > 500, "seed {seed} had too little to do: {}", live.len());
    let report = many.verify().unwrap();
    assert!(report.is_sound(), "{:#?}", report.problems);
    single.close().unwrap();
    many.close().unwrap();
    assert!(first.snapshot() == second.snapshot(), "seed {seed}: the files differ");
}

#[test]
fn the_file_is_that_of_single_calls() {
    for seed in 0..12 {
        compare(seed, 4096 << (seed % 2), 4000);
    }
}

#[test]
fn so_it_is_where_new_pages_leave_memory_before_the_commit() {
    (0..4).for_each(|seed| compare(100 + seed, 4096, 160));
}

#[test]
fn what_fails_is_named_and_nothing_is_kept() {
    let store = options(4096, 4000).create_on(Arc::new(MemoryStorage::new())).unwrap();
    let long = vec![b'x'; 1025];
    let names: Vec<&[u8]> = vec![b"a", b"b", &long, b"c"];
    let mut after = String::new();
    let failed = store.write(|tx| {
        let failed = tx.put_many(names.iter().map(|name| (name, "bytes"))).map(drop);
        after = tx.put("d", b"more").unwrap_err().to_string();
        failed
    });
    let Err(Error::Invalid(text)) = failed else { panic!("{failed:?}") };
    assert!(text.starts_with("object 2 of the call (\"xxx"), "{text}");
    assert!(text.ends_with("too long; at most 1024"), "{text}");
    assert!(after.contains("failed earlier"), "{after}");
    let empty = store.write(|tx| tx.put_many([("a", ""), ("", "")])).unwrap_err();
    assert_eq!(empty.to_string(), "object 1 of the call (\"\"): a name must not be empty");
    assert_eq!(store.read().unwrap().get("a").unwrap(), None);
    let kept = store.write(|tx| tx.put_many([("a", "1"), ("b", "2"), ("a", "3")])).unwrap();
    assert_eq!(kept[0], kept[2], "replaced");
    assert_eq!(store.read().unwrap().get("a").unwrap().unwrap(), b"3");
    assert_eq!(store.write(|tx| tx.create_many([""; 0])).unwrap(), []);
}

#[test]
fn a_panic_of_the_callers_iterator_leaves_whole_objects() {
    let store = options(4096, 4000).create_on(Arc::new(MemoryStorage::new())).unwrap();
    store
        .write(|tx| {
            let given = (0..1000).map(|i| {
                assert!(i < 700, "on purpose");
                [i as u8; 200]
            });
            let call = std::panic::AssertUnwindSafe(|| tx.create_many(given));
            assert!(std::panic::catch_unwind(call).is_err());
            Ok(())
        })
        .unwrap();
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:#?}", report.problems);
    assert_eq!(store.stat().unwrap().objects, 640, "the groups before");
}
