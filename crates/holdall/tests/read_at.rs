//! A few bytes of an object, or all of it, in one call: what a reader of the same state gives.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Options, Store};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;

fn options() -> Options {
    Options::default().background(false)
}

/// Bytes that differ in every word and from every other version.
fn bytes(len: usize, version: u64) -> Vec<u8> {
    (0..len as u64 / 8).flat_map(|i| (i << 32 | version << 8 | 0xa5).to_le_bytes()).collect()
}

/// Compares random ranges, and those at the ends, by all ways.
fn check(store: &Store, name: &str, expected: &[u8], rng: &mut SmallRng) {
    let reader = store.read().unwrap();
    let object = reader.open(name).unwrap();
    let oid = object.oid();
    let size = expected.len();
    for most in [1, 300, 4096, 9000, 100_000] {
        for from in [0, size.saturating_sub(most), rng.random_range(0..=size), size] {
            let len = rng.random_range(0..=most);
            let due = &expected[from..size.min(from + len)];
            let mut got = [0; 4].map(|_| vec![0xee; len]);
            let [a, b, c, d] = &mut got;
            let counts = [
                store.read_at(name, from as u64, a).unwrap(),
                store.read_at(oid, from as u64, b).unwrap(),
                reader.read_at(name, from as u64, c).unwrap(),
                Some(object.read_at(from as u64, d).unwrap()),
            ];
            assert_eq!(counts, [Some(due.len()); 4], "{name}: {len} bytes at {from}");
            assert!(got.iter().all(|g| g[..due.len()] == *due), "{name}: {len} bytes at {from}");
        }
    }
    let mut all = vec![1; 10];
    assert!(store.get_into(name, &mut all).unwrap());
    assert!(all == expected, "{name}");
}

#[test]
fn one_call_reads_what_an_open_object_does() {
    let dir = tempfile::tempdir().unwrap();
    let store = options().create(dir.path().join("s")).unwrap();
    let other = options().create(dir.path().join("other")).unwrap();
    other.write(|tx| tx.put("small", b"of another store")).unwrap();
    let mut rng = SmallRng::seed_from_u64(3);
    let mut data: Vec<(&str, Vec<u8>)> =
        [("small", 100), ("one run", 200_000), ("some runs", 300_000), ("tree", 2_000_000)]
            .into_iter()
            .map(|(name, len)| (name, bytes(len, 1)))
            .collect();
    for round in 0..12_u64 {
        store
            .write(|tx| {
                for (name, expected) in &mut data {
                    if round == 0 {
                        tx.put(*name, &*expected)?;
                        continue;
                    }
                    let edits = match *name {
                        "some runs" => 1,
                        "tree" => 10,
                        _ => 0,
                    };
                    for _ in 0..edits {
                        let at = rng.random_range(0..expected.len());
                        tx.insert(*name, at as u64, &bytes(800, round))?;
                        expected.splice(at..at, bytes(800, round));
                    }
                }
                Ok(())
            })
            .unwrap();
        // Several times, so that what is kept from one read for the next is used, and with
        // looks at another store in between.
        for _ in 0..4 {
            for (name, expected) in &data {
                check(&store, name, expected, &mut rng);
            }
            let mut got = [0; 30];
            assert_eq!(other.read_at("small", 3, &mut got).unwrap(), Some(13));
            assert_eq!(&got[..13], b"another store");
        }
    }
    let mut got = [0; 8];
    let size = data[1].1.len() as u64;
    for name in ["small", "one run", "tree"] {
        let reader = store.read().unwrap();
        let mut object = reader.open(name).unwrap();
        for at in [object.size(), object.size() + 1, size * 100, u64::MAX] {
            assert_eq!(store.read_at(name, at, &mut got).unwrap(), Some(0));
            assert_eq!(reader.read_at(name, at, &mut got).unwrap(), Some(0));
            assert_eq!(object.read_at(at, &mut got).unwrap(), 0);
            assert_eq!(reader.get_range(name, at..u64::MAX).unwrap(), Some(vec![]));
            assert_eq!(object.seek(SeekFrom::Start(at)).unwrap(), at);
            assert_eq!(object.read(&mut got).unwrap(), 0);
            let in_tx = store.write(|tx| {
                assert_eq!(tx.open(name)?.read_at(at, &mut [0; 8])?, 0);
                tx.get_range(name, at..u64::MAX)
            });
            assert_eq!(in_tx.unwrap(), Some(vec![]));
        }
        let end = object.size();
        assert_eq!(reader.get_range(name, end - 3..end + 9).unwrap().unwrap().len(), 3);
    }
    assert_eq!(store.read_at("none", 0, &mut got).unwrap(), None);
    let mut all = vec![7; 10];
    assert!(!store.get_into("none", &mut all).unwrap());
    assert!(all.is_empty());
    let oid = store.read().unwrap().lookup("one run").unwrap().unwrap();
    store.write(|tx| tx.remove("one run")).unwrap();
    assert!(matches!(store.read_at(oid, 0, &mut got), Err(Error::Dangling(_))));
    assert_eq!(store.read_at("one run", 0, &mut got).unwrap(), None);
}

#[test]
fn damage_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let data = bytes(200_000, 9);
    let store = options().create(&path).unwrap();
    let oid = store.write(|tx| tx.put("x", &data)).unwrap();
    store.close().unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut whole = vec![0; file.metadata().unwrap().len() as usize];
    file.read_exact_at(&mut whole, 0).unwrap();
    let part = &data[80_000..80_008];
    let at = whole.chunks_exact(8).position(|w| w == part).unwrap() as u64 * 8;
    file.write_all_at(&[part[7] ^ 1], at + 7).unwrap();
    let store = options().open(&path).unwrap();
    let mut got = [0; 500];
    for _ in 0..20 {
        let error = store.read_at(oid, 79_800, &mut got).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{error}");
        assert_eq!(store.read_at(oid, 100_000, &mut got).unwrap(), Some(500));
        assert!(got == data[100_000..100_500]);
    }
    file.write_all_at(&part[7..], at + 7).unwrap();
    assert_eq!(store.read_at(oid, 79_800, &mut got).unwrap(), Some(500));
    assert!(got == data[79_800..80_300]);
}
