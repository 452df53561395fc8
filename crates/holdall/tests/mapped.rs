//! Short reads of data in the page cache, without calls: they give what the disk holds,
//! and what is wrong with it is an error as on every other way.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Oid, Options, Reader, Store};
use holdall_io::{Disk, MemoryStorage, Storage};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const LEN: usize = 1 << 20;

fn options(map_reads: bool) -> Options {
    // Nothing of the data stays in the store's own memory.
    Options::default().background(false).cache_bytes(0).map_reads(map_reads)
}

fn bytes() -> Vec<u8> {
    (0..LEN as u64 / 8).flat_map(|i| (i << 20 | 0x5a).to_le_bytes()).collect()
}

/// What the disk answers to reads without calls.
#[derive(Debug, Default)]
struct Answer {
    asked: AtomicU64,
    given: AtomicU64,
    /// Flips a bit of what is given.
    wrong: AtomicU64,
    /// Bytes given past the cache; `u64::MAX`: none are to be given.
    bulk: AtomicU64,
    /// Hints that data will be read through the cache.
    hints: AtomicU64,
    /// Where the device fails; 0: nowhere.
    broken: AtomicU64,
}

impl Answer {
    fn fails(&self, offset: u64, len: usize) -> bool {
        let broken = self.broken.load(Relaxed);
        broken > 0 && (offset..offset + len as u64).contains(&broken)
    }
}

#[derive(Debug)]
struct Spy(Arc<dyn Disk>, Arc<Answer>);

impl Disk for Spy {
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        if self.1.fails(offset, buf.len()) {
            return Err(io::Error::other("a bad sector"));
        }
        self.0.read_at(offset, buf)
    }

    fn reads_bulk(&self, _offset: u64, _len: u64) -> bool {
        self.1.bulk.load(Relaxed) != u64::MAX
    }

    fn read_hint(&self, _offset: u64, _len: u64) -> io::Result<bool> {
        self.1.hints.fetch_add(1, Relaxed);
        Ok(true)
    }

    fn read_resident(&self, offset: u64, buf: &mut [u8], sums: &mut [u32]) -> bool {
        self.1.asked.fetch_add(1, Relaxed);
        if self.1.given.load(Relaxed) == u64::MAX || self.read_at(offset, buf).is_err() {
            return false;
        }
        self.1.given.fetch_add(1, Relaxed);
        if let Some(last) = buf.last_mut() {
            *last ^= self.1.wrong.load(Relaxed) as u8;
        }
        let units = buf.chunks(4096).map(holdall_core::checksum::crc);
        sums.iter_mut().zip(units).for_each(|(sum, unit)| *sum = unit);
        true
    }

    fn read_bulk(&self, offset: u64, parts: &mut [&mut [u8]], sums: &mut [u32]) -> bool {
        if self.1.bulk.load(Relaxed) == u64::MAX {
            return false;
        }
        let mut at = offset;
        for part in &mut *parts {
            if self.1.fails(at, part.len()) {
                return false;
            }
            self.0.read_at(at, part).unwrap();
            at += part.len() as u64;
        }
        assert!(offset.is_multiple_of(4096) && at.is_multiple_of(4096), "{offset}..{at}");
        self.1.bulk.fetch_add(at - offset, Relaxed);
        let last = parts.iter_mut().rev().find_map(|part| part.last_mut());
        *last.unwrap() ^= self.1.wrong.load(Relaxed) as u8;
        let units =
            parts.iter().flat_map(|part| part.chunks(4096)).map(holdall_core::checksum::crc);
        sums.iter_mut().zip(units).for_each(|(sum, unit)| *sum = unit);
        true
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn grow(&self, len: u64) -> io::Result<()> {
        self.0.grow(len)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.0.truncate(len)
    }

    fn allocated(&self) -> io::Result<u64> {
        self.0.allocated()
    }
}

#[derive(Debug)]
struct SpyStorage(MemoryStorage, Arc<Answer>);

impl Storage for SpyStorage {
    fn volume(&self) -> Arc<dyn Disk> {
        Arc::new(Spy(self.0.volume(), self.1.clone()))
    }

    fn open_log(&self) -> io::Result<Option<Arc<dyn Disk>>> {
        self.0.open_log()
    }

    fn create_log(&self) -> io::Result<Arc<dyn Disk>> {
        self.0.create_log()
    }

    fn remove_log(&self, log: &dyn Disk) -> io::Result<()> {
        self.0.remove_log(log)
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.0.sync_dir()
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn now(&self) -> Duration {
        self.0.now()
    }
}

fn spied(map_reads: bool) -> (Store, Oid, Arc<Answer>) {
    let answer = Arc::new(Answer::default());
    let storage = Arc::new(SpyStorage(MemoryStorage::new(), answer.clone()));
    let store = options(map_reads).create_on(storage).unwrap();
    let oid = store.write(|tx| tx.put("x", &bytes())).unwrap();
    (store, oid, answer)
}

/// Ranges within a unit, of units, and over ragged ends.
const RANGES: [(usize, usize); 6] =
    [(0, 4096), (5, 100), (4000, 300), (8192, 32_768), (1, 32_000), (LEN - 9, 9)];

fn check(store: &Store, oid: Oid) {
    let expected = bytes();
    for (at, n) in RANGES {
        let got = store.read().unwrap().get_range(oid, at as u64..(at + n) as u64).unwrap();
        assert!(got.as_deref() == Some(&expected[at..at + n]), "{n} at {at}");
    }
}

#[test]
fn short_reads_are_given_without_calls_and_long_ones_are_not() {
    let (store, oid, answer) = spied(true);
    check(&store, oid);
    let given = answer.given.load(Relaxed);
    assert!(given >= RANGES.len() as u64, "{given}");
    assert_eq!(given, answer.asked.load(Relaxed));
    assert!(store.read().unwrap().get(oid).unwrap().unwrap() == bytes());
    assert_eq!(given, answer.asked.load(Relaxed));
}

/// Ranges of 256 KiB and more, ragged at neither end, one, both; in one piece and several.
const LONG: [(usize, usize); 5] =
    [(0, 256 << 10), (4096, 300_001), (77, 1 << 20), (4095, 9 << 20), (1, (10 << 20) - 1)];

fn long(direct_reads: bool) -> (Store, Oid, Arc<Answer>, Vec<u8>) {
    let answer = Arc::new(Answer::default());
    let storage = Arc::new(SpyStorage(MemoryStorage::new(), answer.clone()));
    let options = options(true).direct_reads(direct_reads);
    let store = options.create_on(storage).unwrap();
    let bytes: Vec<u8> = (0..10 << 20).map(|i: u32| (i / 4096 + i / 3) as u8).collect();
    let oid = store.write(|tx| tx.put("x", &bytes)).unwrap();
    (store, oid, answer, bytes)
}

fn part(store: &Store, oid: Oid, (at, n): (usize, usize)) -> holdall::Result<Vec<u8>> {
    Ok(store.read()?.get_range(oid, at as u64..(at + n) as u64)?.unwrap())
}

#[test]
fn long_reads_go_past_the_cache_where_the_disk_lets_them() {
    let (store, oid, answer, bytes) = long(true);
    for (at, n) in LONG {
        let before = answer.bulk.load(Relaxed);
        assert!(part(&store, oid, (at, n)).unwrap() == bytes[at..at + n], "{n} at {at}");
        let read = answer.bulk.load(Relaxed) - before;
        assert!((n as u64..n as u64 + 3 * 4096).contains(&read), "{read} for {n} at {at}");
    }
    let before = answer.bulk.swap(u64::MAX, Relaxed);
    for (at, n) in LONG {
        assert!(part(&store, oid, (at, n)).unwrap() == bytes[at..at + n], "{n} at {at}");
    }
    // What is wrong is an error, wherever in a range it lies.
    answer.bulk.store(before, Relaxed);
    answer.wrong.store(1, Relaxed);
    for (at, n) in LONG {
        let error = part(&store, oid, (at, n)).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{n} at {at}: {error}");
    }
    let (store, oid, answer, bytes) = long(false);
    for (at, n) in LONG {
        assert!(part(&store, oid, (at, n)).unwrap() == bytes[at..at + n], "{n} at {at}");
    }
    assert_eq!(answer.bulk.load(Relaxed), 0, "it was turned off");
}

/// Where in the volume the unit lies that byte `at` of the object is in.
fn place(answer: &Answer, store: &Store, oid: Oid, at: usize) -> u64 {
    // Found by asking: where the device fails there, this unit cannot be read, but the next can.
    let fails = |broken: u64, unit: usize| {
        answer.broken.store(broken, Relaxed);
        let read = part(store, oid, (unit * 4096, 4096));
        answer.broken.store(0, Relaxed);
        read.is_err()
    };
    let unit = at / 4096;
    (1..1 << 13).map(|n| n * 4096).find(|&n| fails(n, unit) && !fails(n, unit ^ 1)).unwrap()
}

#[test]
fn what_is_wrong_in_one_of_several_threads_is_told_and_the_first_of_two() {
    let (store, oid, answer, bytes) = long(true);
    let whole = || part(&store, oid, (0, bytes.len()));
    // A device that fails in the last part, in the first, in the midst.
    for at in [bytes.len() - 1, 0, 5 << 20] {
        let broken = place(&answer, &store, oid, at);
        answer.broken.store(broken, Relaxed);
        let error = whole().unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{at}: {error}");
        let mut buf = vec![0; bytes.len()];
        let error = store.read().unwrap().open(oid).unwrap().read_at(0, &mut buf).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{at}: {error}");
        answer.broken.store(0, Relaxed);
        assert!(whole().unwrap() == bytes, "{at}");
    }
    // All parts are damaged: the error is that of the first, as where one thread reads.
    answer.wrong.store(1, Relaxed);
    let first = part(&store, oid, (0, 1 << 20)).unwrap_err().to_string();
    for round in 0..50 {
        assert_eq!(whole().unwrap_err().to_string(), first, "{round}");
    }
}

#[test]
fn an_open_object_is_read_by_several_threads_at_any_offset() {
    let (store, oid, answer, bytes) = long(true);
    let object = store.read().unwrap().open(oid).unwrap();
    for (at, n) in LONG {
        let before = answer.bulk.load(Relaxed);
        let mut found = vec![0xee; n];
        assert_eq!(object.read_at(at as u64, &mut found).unwrap(), n);
        assert!(found == bytes[at..at + n], "{n} at {at}");
        assert!(answer.bulk.load(Relaxed) - before >= n as u64, "{n} at {at}");
    }
    // In place of what was there: more, less, nothing; with room for it and without.
    let mut found = Vec::new();
    for held in [0, 5, bytes.len(), bytes.len() + 9] {
        for room in [0, 20 << 20] {
            found.clear();
            found.shrink_to(room);
            found.reserve_exact(room);
            found.resize(held, 0xee);
            store.read().unwrap().get_into(oid, &mut found).unwrap();
            assert!(found == bytes, "{held} in {room}");
        }
    }
}

#[test]
fn hints_are_for_what_is_read_through_the_cache() {
    let insert = |store: &Store, oid| store.write(|tx| tx.insert(oid, 3 << 20, b"between"));
    let hints = |answer: &Answer, read: &mut dyn FnMut()| {
        let before = answer.hints.load(Relaxed);
        read();
        answer.hints.load(Relaxed) - before
    };
    for direct in [true, false] {
        let (store, oid, answer, bytes) = long(direct);
        let given = hints(&answer, &mut || drop(part(&store, oid, (0, bytes.len())).unwrap()));
        assert_eq!(given, 0, "hints for a long read");
        // Hints are for objects in several segments.
        insert(&store, oid).unwrap();
        // Reads too short to go past the page cache.
        let given = hints(&answer, &mut || {
            let mut object = store.read().unwrap().open(oid).unwrap();
            let mut small = vec![0; 64 << 10];
            while io::Read::read(&mut object, &mut small).unwrap() > 0 {}
        });
        assert!(given > 0, "hints for small reads in order");
    }
}

#[test]
fn the_device_is_asked_at_once_for_the_pages_of_a_batch() {
    let answer = Arc::new(Answer::default());
    let storage = Arc::new(SpyStorage(MemoryStorage::new(), answer.clone()));
    let store = options(false).create_on(storage.clone()).unwrap();
    let names: Vec<String> = (0..160).map(|i| format!("name {i:03}")).collect();
    store.write(|tx| tx.put_many(names.iter().map(|name| (name, [7; 2000])))).unwrap();
    store.close().unwrap();

    // Sixteen objects, no two of which share a page: one leaf and one handle page lead to sixteen heap pages.
    let some = || names.iter().step_by(10);
    let hints = |read: &dyn Fn(&Reader)| {
        let store = options(false).cache_bytes(1 << 20).open_on(storage.clone()).unwrap();
        let reader = store.read().unwrap();
        reader.lookup("none").unwrap();
        let before = answer.hints.load(Relaxed);
        read(&reader);
        let first = answer.hints.load(Relaxed) - before;
        read(&reader);
        assert_eq!(answer.hints.load(Relaxed), before + first, "now all is in memory");
        first
    };
    let many = |reader: &Reader| {
        let all = reader.get_many(some(), |_, got| {
            assert_eq!(got?.unwrap(), [7; 2000]);
            Ok(())
        });
        all.unwrap();
    };
    let located = |reader: &Reader| {
        let mut found = reader.locate_many(some()).unwrap();
        found.truncate(16);
        assert!(found.sizes().all(|size| size == Some(2000)));
    };
    let one = |reader: &Reader| {
        assert_eq!(reader.get(&names[80]).unwrap().unwrap(), [7; 2000]);
    };
    // A record may go on in another page.
    assert!((16..20).contains(&hints(&many)) && (16..20).contains(&hints(&located)));
    assert_eq!(hints(&one), 0);
}

#[test]
fn what_is_not_given_or_wrong_is_read_by_calls() {
    let (store, oid, answer) = spied(true);
    answer.wrong.store(1, Relaxed);
    check(&store, oid);
    assert!(answer.given.load(Relaxed) >= RANGES.len() as u64);
    answer.given.store(u64::MAX, Relaxed);
    check(&store, oid);
}

#[test]
fn the_option_turns_it_off() {
    let (store, oid, answer) = spied(false);
    check(&store, oid);
    assert_eq!(answer.asked.load(Relaxed), 0);
}

#[test]
fn a_flipped_byte_in_the_file_is_an_error_and_one_put_right_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    for map_reads in [true, false] {
        let store = options(map_reads).create(&path).unwrap();
        let oid = store.write(|tx| tx.put("x", &bytes())).unwrap();
        let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut whole = vec![0; file.metadata().unwrap().len() as usize];
        // Into the page cache, so that it can be given from there.
        file.read_exact_at(&mut whole, 0).unwrap();
        let part = &bytes()[8192..8200];
        let at = whole.windows(8).position(|w| w == part).unwrap() as u64;
        let read = || store.read().unwrap().get_range(oid, 8192..12_288);
        for round in 0..100_u8 {
            assert!(read().unwrap().unwrap() == bytes()[8192..12_288], "{round}");
            file.write_all_at(&[part[0] ^ (round + 1)], at).unwrap();
            let error = read().unwrap_err();
            assert!(matches!(error, Error::Corrupt { .. }), "{round}: {error}");
            file.write_all_at(&part[..1], at).unwrap();
        }
        check(&store, oid);
        store.close().unwrap();
        std::fs::remove_file(&path).unwrap();
    }
}

/// More ranges of a state than it takes to have it remember where checksums lie, while the same
/// stretches come to other objects in the states after it.
#[test]
fn each_state_finds_its_own_checksums_after_many_ranges() {
    for cache_bytes in [0, 8 << 20] {
        let storage = Arc::new(SpyStorage(MemoryStorage::new(), Arc::default()));
        let store = options(true).cache_bytes(cache_bytes).create_on(storage).unwrap();
        let data = |n: u64| -> Vec<u8> {
            (0..(5 << 20) / 8_u64).flat_map(|i| (i << 24 | n).to_le_bytes()).collect()
        };
        let check = |reader: &Reader, name: &str, expected: &[u8]| {
            for i in 0..200 {
                let at = i * 26_111 % (expected.len() - 5000);
                let got = reader.get_range(name, at as u64..at as u64 + 5000).unwrap();
                assert!(got.as_deref() == Some(&expected[at..at + 5000]), "{name} at {at}");
            }
        };
        for round in 0..4 {
            let (first, second) = (data(2 * round), data(2 * round + 1));
            store.write(|tx| tx.put("a", &first)).unwrap();
            let old = store.read().unwrap();
            check(&old, "a", &first);
            store.write(|tx| tx.remove("a")).unwrap();
            store.checkpoint().unwrap();
            store.write(|tx| tx.put("b", &second)).unwrap();
            check(&store.read().unwrap(), "b", &second);
            check(&old, "a", &first);
            drop(old);
            store.checkpoint().unwrap();
            store.write(|tx| tx.put("c", &first)).unwrap();
            let new = store.read().unwrap();
            check(&new, "b", &second);
            check(&new, "c", &first);
            drop(new);
            store.write(|tx| tx.remove("b").and_then(|_| tx.remove("c"))).unwrap();
            store.checkpoint().unwrap();
        }
    }
}

/// An object of many windows of the mapping, ragged at its end.
#[test]
fn a_flipped_byte_in_a_long_object_is_an_error_and_one_put_right_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = options(true).create(&path).unwrap();
    let data: Vec<u8> =
        (0..(64 << 20) / 8 + 700_u64).flat_map(|i| (i << 24 | 0xa5).to_le_bytes()).collect();
    let oid = store.write(|tx| tx.put("x", &data)).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let mut whole = vec![0; file.metadata().unwrap().len() as usize];
    // Into the page cache, so that it can be given from there.
    file.read_exact_at(&mut whole, 0).unwrap();
    let mut got = Vec::new();
    for _ in 0..3 {
        store.read().unwrap().get_into(oid, &mut got).unwrap();
        assert!(got == data);
    }
    assert!(
        store.read().unwrap().get_range(oid, 3..data.len() as u64).unwrap().unwrap() == data[3..]
    );
    for place in [5 << 20, 40 << 20, data.len() - 8] {
        let part = &data[place..place + 8];
        let at = whole.chunks_exact(8).position(|w| w == part).unwrap() as u64 * 8;
        file.write_all_at(&[part[7] ^ 1], at + 7).unwrap();
        let error = store.read().unwrap().get_into(oid, &mut got).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{place}: {error}");
        file.write_all_at(&part[7..], at + 7).unwrap();
        store.read().unwrap().get_into(oid, &mut got).unwrap();
        assert!(got == data);
    }
}
