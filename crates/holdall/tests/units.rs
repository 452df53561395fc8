//! Data of large objects kept in memory: what is given out is what the reader's state holds,
//! whatever the pages held before, and the disk is asked once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Options, Reader, Store};
use holdall_io::{MemoryStorage, Storage};
use holdall_testkit::{CostModel, CountedStorage};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Arc;

fn options() -> Options {
    Options { background: false, page_size: 4096, ..Options::default() }
}

/// Bytes that differ in every word and from every other version.
fn bytes(len: usize, version: u64) -> Vec<u8> {
    (0..len as u64 / 8).flat_map(|i| (i << 32 | version << 8 | 0xa5).to_le_bytes()).collect()
}

/// Compares ranges within one unit and over several, and the whole.
fn check(reader: &Reader, name: &str, expected: &[u8], rng: &mut SmallRng) {
    for most in [300, 9000, 60_000] {
        let from = rng.random_range(0..expected.len());
        let to = (from + rng.random_range(1..most)).min(expected.len());
        let read = reader.get_range(name, from as u64..to as u64).unwrap().unwrap();
        assert!(read == expected[from..to], "{name}: bytes {from}..{to}");
    }
    assert!(reader.get(name).unwrap().unwrap() == expected, "{name}");
}

#[test]
fn reused_pages_never_show_what_they_held() {
    let o = Options { max_bytes: 4 << 20, ..options() };
    let store = Store::create_on(Arc::new(MemoryStorage::new()), &o).unwrap();
    let mut rng = SmallRng::seed_from_u64(1);
    let lens = [20_000, 64_000, 200_000, 400_000];
    let mut old: Option<(Reader, Vec<Vec<u8>>)> = None;
    let mut written = 0;
    for version in 0..120_u64 {
        let all: Vec<Vec<u8>> = lens.iter().map(|len| bytes(*len, version)).collect();
        written += lens.iter().sum::<usize>();
        store
            .write(|tx| {
                // In another order each time, so that pages change their objects.
                for i in 0..lens.len() {
                    let i = (i + version as usize) % lens.len();
                    tx.put(format!("{i}").as_str(), &all[i])?;
                }
                Ok(())
            })
            .unwrap();
        for _ in 0..2 {
            let now = store.read().unwrap();
            for (i, expected) in all.iter().enumerate() {
                let name = i.to_string();
                check(&now, &name, expected, &mut rng);
                if let Some((reader, before)) = &old {
                    check(reader, &name, &before[i], &mut rng);
                }
            }
        }
        if version % 3 == 0 {
            // Lets go the pages of the state before, and keeps this one open over the next.
            old = Some((store.read().unwrap(), all));
            store.checkpoint().unwrap();
        }
    }
    assert!(written > 10 * (4 << 20), "most pages were used many times");
    drop(old);
    assert!(store.verify(&mut |_| {}).unwrap().is_sound());
}

#[test]
fn a_transaction_reads_its_own_data_in_pages_that_were_read_before() {
    let o = Options { max_bytes: 3 << 20, ..options() };
    let store = Store::create_on(Arc::new(MemoryStorage::new()), &o).unwrap();
    for version in 0..60 {
        let (first, second) = (bytes(300_000, 2 * version), bytes(300_000, 2 * version + 1));
        store.write(|tx| tx.put("x", &first).map(|_| ())).unwrap();
        for _ in 0..2 {
            assert!(store.read().unwrap().get("x").unwrap().unwrap() == first);
            assert!(
                store.read().unwrap().get_range("x", 50..9_000).unwrap().unwrap()
                    == first[50..9_000]
            );
        }
        // Staged, read, and given back: the next transaction writes to the same pages.
        let aborted: Result<(), Error> = store.write(|tx| {
            tx.put("x", &second)?;
            assert!(
                tx.get("x")?.unwrap() == second
                    && tx.get_range("x", 7..5_000)?.unwrap() == second[7..5_000]
            );
            Err(Error::Invalid("given up".into()))
        });
        assert!(aborted.is_err());
        assert!(store.read().unwrap().get("x").unwrap().unwrap() == first);
        store.checkpoint().unwrap();
    }
}

#[test]
fn what_was_read_is_not_asked_of_the_disk_again() {
    let storage =
        Arc::new(CountedStorage::new(Arc::new(MemoryStorage::new()), CostModel::default()));
    let store = Store::create_on(storage.clone(), &options()).unwrap();
    let (medium, large) = (bytes(50_000, 1), bytes(1 << 20, 2));
    store.write(|tx| tx.put("medium", &medium).and(tx.put("large", &large)).map(|_| ())).unwrap();
    store.close().unwrap();
    let store = Store::open_on(storage.clone(), &options()).unwrap();
    let reads = |f: &dyn Fn(&Reader)| {
        let before = storage.volume_stats().reads;
        f(&store.read().unwrap());
        storage.volume_stats().reads - before
    };
    let range = |r: &Reader| {
        assert!(r.get_range("large", 70_000..90_000).unwrap().unwrap() == large[70_000..90_000]);
    };
    assert!(reads(&range) > 0);
    assert_eq!(reads(&range), 0);
    let part = |r: &Reader| {
        assert!(r.get_range("large", 75_001..75_011).unwrap().unwrap() == large[75_001..75_011]);
    };
    assert_eq!(reads(&part), 0, "a part of what was read");
    let whole = |r: &Reader| assert!(r.get("medium").unwrap().unwrap() == medium);
    assert!(reads(&whole) > 0);
    assert_eq!(reads(&whole), 0);
    let whole = |r: &Reader| assert!(r.get("large").unwrap().unwrap() == large);
    assert!(reads(&whole) > 0);
    assert!(reads(&whole) > 0, "a long read is kept the second time");
    assert_eq!(reads(&whole), 0);
    let o = Options { pool_bytes: 4096, ..options() };
    store.close().unwrap();
    let store = Store::open_on(storage.clone(), &o).unwrap();
    for _ in 0..3 {
        let before = storage.volume_stats().reads;
        range(&store.read().unwrap());
        assert!(storage.volume_stats().reads > before, "no budget, nothing kept");
    }
}

#[test]
fn damage_on_the_disk_is_found_by_who_reads_it() {
    let storage = Arc::new(MemoryStorage::new());
    let store = Store::create_on(storage.clone(), &options()).unwrap();
    let expected = bytes(64_000, 9);
    store.write(|tx| tx.put("x", &expected).map(|_| ())).unwrap();
    store.close().unwrap();
    let store = Store::open_on(storage.clone(), &options()).unwrap();
    let range = || store.read().unwrap().get_range("x", 8_200..8_300);
    assert!(range().unwrap().unwrap() == expected[8_200..8_300]);
    let disk = storage.volume();
    let mut volume = vec![0; disk.len().unwrap() as usize];
    disk.read_at(0, &mut volume).unwrap();
    let places = |at: usize| {
        let found = volume.windows(16).position(|w| w == &expected[at..at + 16]).unwrap();
        (found, volume[found] ^ 0x10)
    };
    for at in [8_208, 40_000] {
        let (place, flipped) = places(at);
        disk.write_at(place as u64, &[flipped]).unwrap();
    }
    assert!(
        range().unwrap().unwrap() == expected[8_200..8_300],
        "what is kept is what was checked"
    );
    let other = store.read().unwrap().get_range("x", 39_000..41_000);
    assert!(matches!(other, Err(Error::Corrupt { .. })), "{other:?}");
    let report = store.verify(&mut |_| {}).unwrap();
    assert!(report.problems.len() >= 2, "verification reads the disk: {:?}", report.problems);
    store.close().unwrap();
    let store = Store::open_on(storage, &options()).unwrap();
    let again = store.read().unwrap().get_range("x", 8_200..8_300);
    assert!(matches!(again, Err(Error::Corrupt { .. })), "{again:?}");
}
