//! Threads stream an object from their snapshots while it is spliced, deleted and replaced.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Object, Options, Reader, Store};
use holdall_io::MemoryStorage;
use rand::{Rng, RngCore, SeedableRng, rngs::SmallRng};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that each thread of a snapshot hashes for itself.
const STRIPE: usize = 100_000;

fn options(background: bool) -> Options {
    Options::default()
        .background(background)
        .page_size(4096)
        .cache_bytes(96 << 10)
        .tuning(|t| t.dirty_pages(300).log_bytes(1 << 20))
}

/// FNV-1a over 8 bytes at a time.
fn hash(bytes: &[u8]) -> u64 {
    let words = bytes.chunks(8).map(|c| {
        let mut word = [0; 8];
        word[..c.len()].copy_from_slice(c);
        u64::from_le_bytes(word) ^ c.len() as u64
    });
    words.fold(0xcbf2_9ce4_8422_2325, |h, w| (h ^ w).wrapping_mul(0x100_0000_01b3).rotate_left(23))
}

/// What is written beside the object in the same transaction: its size and the hash of each
/// stripe of it.
fn summary(bytes: &[u8]) -> Vec<u8> {
    let mut all = (bytes.len() as u64).to_le_bytes().to_vec();
    all.extend(bytes.chunks(STRIPE).flat_map(|s| hash(s).to_le_bytes()));
    all
}

/// Changes the object once; the model follows. None: it does not exist.
fn change(store: &Store, model: &mut Option<Vec<u8>>, rng: &mut SmallRng) {
    let n = rng.random_range(0..150_000);
    let mut new = vec![0; n];
    rng.fill_bytes(&mut new);
    let kind = rng.random_range(0..10);
    store
        .write(|tx| {
            let Some(bytes) = model.as_mut().filter(|_| kind != 9) else {
                let mut whole = new.repeat(rng.random_range(1..8));
                whole.truncate(1 << 20);
                tx.put("x", &whole)?;
                tx.put("summary", &summary(&whole))?;
                *model = Some(whole);
                return Ok(());
            };
            if kind == 8 {
                tx.remove("x")?;
                tx.remove("summary")?;
                *model = None;
                return Ok(());
            }
            for _ in 0..rng.random_range(1..4) {
                let a = rng.random_range(0..=bytes.len());
                let b = (a + rng.random_range(0..120_000)).min(bytes.len());
                let add = if bytes.len() > 2 << 20 { &[] } else { &new[..] };
                bytes.splice(a..b, add.iter().copied());
                if kind < 4 {
                    let mut object = tx.open("x")?;
                    object.set_position(a as u64);
                    object.delete_range(a as u64..b as u64)?;
                    add.chunks(7_000).try_for_each(|piece| object.insert(piece))?;
                    object.finish()?;
                } else {
                    tx.splice("x", a as u64..b as u64, add)?;
                }
            }
            tx.put("summary", &summary(bytes)).map(|_| ())
        })
        .unwrap();
}

/// The hashes a snapshot must give; None if it has no object.
fn expected(reader: &Reader) -> Option<(u64, Vec<u64>)> {
    let Some(bytes) = reader.get("summary").unwrap() else {
        assert_eq!(reader.get("x").unwrap(), None);
        return None;
    };
    let mut words = bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap()));
    Some((words.next().unwrap(), words.collect()))
}

/// From the first byte to the end, in pieces of odd length.
fn stream(mut object: Object, size: u64, hashes: &[u64], rng: &mut SmallRng) {
    let mut all = Vec::new();
    let mut buf = vec![0; rng.random_range(500..60_000)];
    loop {
        let n = object.read(&mut buf).unwrap();
        if n == 0 {
            break;
        }
        all.extend_from_slice(&buf[..n]);
    }
    assert_eq!(all.len() as u64, size);
    let got: Vec<u64> = all.chunks(STRIPE).map(hash).collect();
    assert!(got == hashes, "streamed bytes are not the snapshot's");
}

/// Stripes from any place, by several threads that share the object.
fn stripes(object: &Object, size: u64, hashes: &[u64]) {
    thread::scope(|scope| {
        for first in 0..2 {
            scope.spawn(move || {
                let mut buf = vec![0; STRIPE];
                for (i, want) in hashes.iter().enumerate().rev().filter(|(i, _)| i % 2 == first) {
                    let at = (i * STRIPE) as u64;
                    let n = object.read_at(at, &mut buf).unwrap();
                    assert_eq!(n as u64, (size - at).min(STRIPE as u64));
                    assert!(hash(&buf[..n]) == *want, "stripe {i} is not the snapshot's");
                }
            });
        }
    });
}

/// Takes snapshots and reads them until stopped. Counts the objects read to their end.
fn read_on(store: &Store, seed: u64, stop: &AtomicBool, count: &AtomicU64) {
    let mut rng = SmallRng::seed_from_u64(seed);
    while !stop.load(Ordering::Relaxed) {
        let reader = store.read().unwrap();
        let Some((size, hashes)) = expected(&reader) else { continue };
        let object = reader.open("x").unwrap();
        drop(reader);
        // Some of them wait, so that the writer is far ahead.
        thread::sleep(Duration::from_millis(rng.random_range(0..20)));
        if rng.random() {
            stream(object, size, &hashes, &mut rng);
        } else {
            stripes(&object, size, &hashes);
        }
        count.fetch_add(1, Ordering::Relaxed);
    }
}

fn stress(background: bool, seed: u64) {
    let store = options(background).create_on(Arc::new(MemoryStorage::new())).unwrap();
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut model = None;
    change(&store, &mut model, &mut rng);
    let (stop, count, mut changes) = (AtomicBool::new(false), AtomicU64::new(0), 0);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..6)
            .map(|i| {
                let (store, stop, count) = (&store, &stop, &count);
                scope.spawn(move || read_on(store, seed * 100 + i, stop, count))
            })
            .collect();
        let began = Instant::now();
        // At least this many of both, however slow the machine; a reader that fails ends it.
        while began.elapsed() < Duration::from_secs(1)
            || (changes < 100 || count.load(Ordering::Relaxed) < 60)
                && !readers.iter().any(|r| r.is_finished())
        {
            change(&store, &mut model, &mut rng);
            changes += 1;
            if changes % 16 == 0 {
                store.checkpoint().unwrap();
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    match model {
        Some(bytes) => assert!(store.read().unwrap().get("x").unwrap().unwrap() == bytes),
        None => assert_eq!(store.read().unwrap().get("x").unwrap(), None),
    }
    let report = store.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    println!("{changes} changes, {} objects read to their end", count.load(Ordering::Relaxed));
}

#[test]
fn each_thread_sees_its_snapshot_to_the_end_while_the_object_changes() {
    stress(false, 1);
}

#[test]
fn the_same_with_checkpoints_in_the_background() {
    stress(true, 2);
}
