//! Sums of objects' bytes beside the store: every kind of change is compared, and old bytes with
//! right checksums are found.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;

use damage::{bytes, pages_of, quiet, random_step};
use holdall::{
    Attributes, DefragOptions, Durability, Error, Hints, Key, Options, PutOptions, Result, Store,
    VerifyReport, WriteTx,
};
use holdall_core::checksum::crc;
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::SpaceLayout;
use holdall_core::space_info::SpaceInfo;
use holdall_io::{MemoryStorage, Storage};
use holdall_testkit::{CrashKind, FaultyStorage, LossPolicy};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn options() -> Options {
    quiet().debug_sums(true)
}

fn verify(store: &Store) -> VerifyReport {
    store.verify().unwrap()
}

/// All objects are compared, and have the bytes that they were given.
#[track_caller]
fn all_compared(store: &Store, context: &str) {
    let report = verify(store);
    assert!(report.is_sound(), "{context}: {:#?}", report.problems);
    assert_eq!(report.compared, Some(report.objects), "{context}");
}

#[track_caller]
fn says(report: &VerifyReport, parts: &[&str]) {
    let one = [report.problems.len(), 1];
    let text = report.problems.first().map(ToString::to_string).unwrap_or_default();
    assert!(one[0] == one[1] && parts.iter().all(|part| text.contains(part)), "{report:#?}");
}

type Change = fn(&mut WriteTx, &mut SmallRng) -> Result<()>;

const LARGE: usize = 300_000;

/// Every call that gives an object a version, and those that give none.
const CHANGES: [(&str, Change); 24] = [
    ("put", |tx, rng| tx.put("small", &bytes(rng, 200)).map(drop)),
    ("large", |tx, rng| tx.put("large", &bytes(rng, LARGE)).map(drop)),
    ("huge", |tx, rng| tx.put("huge", &bytes(rng, 3 << 20)).map(drop)),
    ("empty", |tx, _| tx.put("empty", b"").map(drop)),
    ("again", |tx, rng| tx.put("large", &bytes(rng, LARGE)).map(drop)),
    ("create", |tx, rng| tx.create(&bytes(rng, 5000)).map(drop)),
    ("many", |tx, rng| {
        let all: Vec<_> = (0..100).map(|i| (format!("many {i:03}"), bytes(rng, i * 97))).collect();
        tx.put_many(all).map(drop)
    }),
    ("nameless", |tx, rng| {
        let all: Vec<_> = [10, 20_000, 30].map(|len| bytes(rng, len)).into();
        tx.create_many(all).map(drop)
    }),
    ("streamed", |tx, rng| {
        for (name, len) in [("stream", 2_000_000), ("trickle", 900)] {
            let mut writer = tx.writer(name, PutOptions::default())?;
            for piece in bytes(rng, len).chunks(777) {
                writer.push(piece)?;
            }
            writer.finish()?;
        }
        Ok(())
    }),
    ("set", |tx, rng| tx.set_bytes("large", &bytes(rng, LARGE / 2))),
    ("splice", |tx, rng| tx.splice("large", 1000..90_000, &bytes(rng, 40_000)).map(drop)),
    ("insert", |tx, rng| tx.insert("small", 7, &bytes(rng, 90)).map(drop)),
    ("delete", |tx, _| tx.delete_range("huge", 5000..1_000_000).map(drop)),
    ("append", |tx, rng| (0..5).try_for_each(|_| tx.append("empty", &bytes(rng, 3000)).map(drop))),
    ("replace", |tx, rng| tx.replace("huge", 70_000, &bytes(rng, 9)).map(drop)),
    ("beyond", |tx, rng| tx.write_at("small", 5000, &bytes(rng, 9)).map(drop)),
    ("cut", |tx, _| tx.set_len("large", 12_345).map(drop)),
    ("stream in", |tx, rng| {
        let more = bytes(rng, 50_000);
        tx.splice_from("large", 5..6, &more[..], more.len() as u64).map(drop)
    }),
    ("file", |tx, rng| {
        let mut file = tx.open_or_create("file")?;
        (0..50).try_for_each(|_| file.write_all(&bytes(rng, 1000))).unwrap();
        file.set_position(20_000);
        file.insert(&bytes(rng, 100))?;
        file.finish().map(drop)
    }),
    ("copies", |tx, _| {
        tx.copy("huge", "huge copy")?;
        tx.copy("small", "small copy")?;
        tx.copy_range("huge", 100_000..500_000, "small copy", 3)?;
        tx.concat(&[Key::from("huge"), "small".into(), "huge".into()], "joined").map(drop)
    }),
    ("edited copy", |tx, rng| tx.insert("huge copy", 300_000, &bytes(rng, 10)).map(drop)),
    ("attributes", |tx, rng| {
        let value = Attributes::from([("k".into(), bytes(rng, 99))]);
        tx.put("both", &bytes(rng, 50_000))?;
        ["large", "small", "both"].iter().try_for_each(|name| tx.set_attributes(*name, &value))
    }),
    ("names and hints", |tx, _| {
        tx.rename("large", "renamed")?;
        tx.set_hints("renamed", Hints { append_mostly: true, ..Hints::default() })?;
        tx.rename("renamed", "large")
    }),
    ("removed", |tx, rng| {
        tx.put("gone", &bytes(rng, 50_000))?;
        assert!(tx.remove("gone")? && tx.remove("huge")?);
        tx.collection("other")?.put("x", &bytes(rng, 10_000))?;
        tx.put("huge", &bytes(rng, 100)).map(drop)
    }),
];

#[test]
fn every_change_is_compared_in_stores_of_all_page_sizes() {
    for page_size in [4096, 8192, 65536] {
        let storage = Arc::new(MemoryStorage::new());
        let options = options().page_size(page_size);
        let mut store = options.create_on(storage.clone()).unwrap();
        let mut rng = SmallRng::seed_from_u64(page_size as u64);
        for (i, (what, change)) in CHANGES.iter().enumerate() {
            let context = format!("{what}, pages of {page_size}");
            store.write(|tx| change(tx, &mut rng)).unwrap();
            all_compared(&store, &context);
            let mut staged = store.stage("staged", PutOptions::default()).unwrap();
            staged.push(&bytes(&mut rng, i * 3000)).unwrap();
            staged.push(b"end").unwrap();
            store
                .write(|tx| {
                    tx.set_durability(Durability::Deferred);
                    staged.finish(tx)
                })
                .unwrap();
            store.flush().unwrap();
            all_compared(&store, &context);
            if i % 4 == 0 {
                store.close().unwrap();
                store = options.open_on(storage.clone()).unwrap();
                all_compared(&store, &context);
            }
        }
        store.write(|tx| tx.drop_collection("other")).unwrap();
        store.defrag(&DefragOptions::default(), &mut |_| ControlFlow::Continue(())).unwrap();
        all_compared(&store, "put in order");
        store.close().unwrap();
        all_compared(&options.open_read_only_on(storage.clone()).unwrap(), "read-only");
        let without = options.debug_sums(false).open_on(storage).unwrap();
        assert_eq!(verify(&without).compared, None);
    }
}

#[test]
fn random_work_is_compared_and_crashes_raise_no_alarm() {
    for seed in 0..12 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut storage = Arc::new(FaultyStorage::new(seed));
        let mut store = options().create_on(storage.clone()).unwrap();
        for step in 0..40 {
            if rng.random_range(0..3) == 0 {
                // Not all of them are made durable: a crash takes them back.
                let deferred = store.write(|tx| {
                    tx.set_durability(Durability::Deferred);
                    let name = format!("name {}", rng.random_range(0..40));
                    tx.put(&name, &bytes(&mut rng, 20_000))?;
                    tx.append(&name, b"more")
                });
                deferred.unwrap();
            } else {
                random_step(&store, &mut rng);
            }
            let context = format!("seed {seed} step {step}");
            if rng.random_range(0..8) == 0 {
                let losses = [LossPolicy::LoseAll, LossPolicy::Random, LossPolicy::KeepAll];
                let kind = match rng.random_range(0..4) {
                    3 => CrashKind::ProcessKilled,
                    i => CrashKind::PowerCut(losses[i]),
                };
                storage = Arc::new(storage.crash(kind, rng.random()).unwrap());
                all_compared(&options().open_read_only_on(storage.clone()).unwrap(), &context);
                store = options().open_on(storage.clone()).unwrap();
            }
            all_compared(&store, &context);
        }
    }
}

#[test]
fn commits_beside_a_verification_raise_no_alarm() {
    let options = Options::default().debug_sums(true).tuning(|t| t.dirty_pages(256));
    let store = options.create_on(Arc::new(MemoryStorage::new())).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(thread);
                while !stop.load(SeqCst) {
                    let deferred = rng.random_range(0..2) == 0;
                    let written = store.write(|tx| {
                        if deferred {
                            tx.set_durability(Durability::Deferred);
                        }
                        let name = format!("{}", rng.random_range(0..30));
                        tx.put(&name, &bytes(&mut rng, 30_000))?;
                        tx.insert(&name, 17, b"more")
                    });
                    written.unwrap();
                }
            });
        }
        for _ in 0..30 {
            let report = verify(&store);
            assert!(report.is_sound(), "{:#?}", report.problems);
        }
        stop.store(true, SeqCst);
    });
    store.flush().unwrap();
    all_compared(&store, "at the end");
}

#[test]
fn defragmentation_beside_edits_puts_no_old_bytes_in_place() {
    let store = options().create_on(Arc::new(FaultyStorage::new(3))).unwrap();
    let mut rng = SmallRng::seed_from_u64(3);
    // Room for what is joined, which stays if holes can be punched.
    store.write(|tx| tx.put("room", &bytes(&mut rng, 4 << 20))).unwrap();
    store.write(|tx| tx.put("a", &bytes(&mut rng, 400_000))).unwrap();
    store.write(|tx| tx.remove("room")).unwrap();
    store.checkpoint().unwrap();
    let stop = AtomicBool::new(false);
    let mut joined = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rng = SmallRng::seed_from_u64(4);
            while !stop.load(SeqCst) {
                let at = rng.random_range(0..390_000);
                store.write(|tx| tx.replace("a", at, &bytes(&mut rng, 5000))).unwrap();
                std::thread::sleep(Duration::from_micros(rng.random_range(0..2000)));
            }
        });
        // Most calls find nothing to join, as many as the editor is slow.
        let end = Instant::now() + Duration::from_secs(60);
        while joined < 100 && Instant::now() < end {
            let all = DefragOptions::default();
            let report = store.defrag(&all, &mut |_| ControlFlow::Continue(())).unwrap();
            joined += report.moved.objects;
        }
        stop.store(true, SeqCst);
    });
    all_compared(&store, "at the end");
    assert!(joined > 10, "only {joined} times joined");
}

/// A closed store of 4 KiB pages with two objects of 20 pages, and its sums.
fn two_objects() -> (Vec<u8>, Vec<u8>, [Vec<u8>; 2]) {
    let mut rng = SmallRng::seed_from_u64(5);
    let both = [bytes(&mut rng, 20 * 4096), bytes(&mut rng, 20 * 4096)];
    let storage = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage.clone()).unwrap();
    store.write(|tx| tx.put("old", &both[0])).unwrap();
    store.write(|tx| tx.put("new", &both[1])).unwrap();
    store.close().unwrap();
    (storage.snapshot().0, sums_of(&*storage), both)
}

fn sums_of(storage: &dyn Storage) -> Vec<u8> {
    let disk = storage.open_sums(false).unwrap().unwrap();
    let mut bytes = vec![0; disk.len().unwrap() as usize];
    disk.read_at(0, &mut bytes).unwrap();
    bytes
}

fn storage(volume: Vec<u8>, sums: &[u8]) -> Arc<MemoryStorage> {
    let storage = Arc::new(MemoryStorage::from_bytes(volume, None));
    storage.open_sums(true).unwrap().unwrap().write_at(0, sums).unwrap();
    storage
}

/// Writes the pages of one object over those of another, and their checksums over theirs.
fn put_in_place(volume: &mut [u8], from: &[u8], over: &[u8]) {
    const PAGE: usize = 4096;
    let is = |page: &[u8]| page == &over[..PAGE];
    let at = volume.chunks(PAGE).position(is).unwrap();
    assert_eq!(&volume[at * PAGE..][..over.len()], over, "it lies in one run");
    volume[at * PAGE..][..from.len()].copy_from_slice(from);
    let layout = SpaceLayout::new(PAGE, SpaceLayout::default_space_pages(PAGE)).unwrap();
    let (stretch, place) = layout.stretch_of(at as u32);
    for no in pages_of(volume, PAGE, PageKind::SpaceInfo) {
        let info = &mut volume[no as usize * PAGE..][..PAGE];
        let lsn = page::lsn(info);
        let Ok(mut open) = SpaceInfo::open(layout, 0, stretch, &mut *info) else { continue };
        for (place, page) in (place..).zip(from.chunks(PAGE)) {
            open.set_entry(place, &[crc(page)]).unwrap();
        }
        page::seal(info, lsn);
    }
}

#[test]
fn old_bytes_with_right_checksums_are_found() {
    let (mut volume, sums, [old, new]) = two_objects();
    put_in_place(&mut volume, &old, &new);
    let plain = quiet().open_read_only_on(storage(volume.clone(), &sums)).unwrap();
    assert_eq!(plain.read().unwrap().get("new").unwrap().unwrap(), old);
    assert!(verify(&plain).is_sound(), "without sums nothing is wrong with it");
    let store = options().open_on(storage(volume, &sums)).unwrap();
    let report = verify(&store);
    says(&report, &["object \"new\"", "version 0-", "81920 bytes with CRC-64", "were put"]);
    assert_eq!(report.compared, Some(2));
    // What takes bytes of it as they are is refused before anything is changed.
    store
        .write(|tx| {
            assert!(matches!(tx.append("new", b"x"), Err(Error::Corrupt { .. })));
            assert!(matches!(tx.copy_range("new", 0..9, "old", 0), Err(Error::Corrupt { .. })));
            assert!(matches!(tx.concat(&["new".into()], "c"), Err(Error::Corrupt { .. })));
            tx.put("other", b"1")
        })
        .unwrap();
    // What passes the bytes on passes their sum on.
    store.write(|tx| tx.set_attributes("new", &Attributes::new())).unwrap();
    says(&verify(&store), &["object \"new\""]);
    let value = Attributes::from([("k".into(), b"v".to_vec())]);
    store.write(|tx| tx.set_attributes("new", &value)).unwrap();
    says(&verify(&store), &["object \"new\"", "-1 has 81920 bytes"]);
    store.write(|tx| tx.copy("new", "copy")).unwrap();
    let report = verify(&store);
    assert_eq!((report.problems.len(), report.compared), (2, Some(4)), "{report:#?}");
    store.write(|tx| tx.remove("copy").and_then(|_| tx.put("new", &new))).unwrap();
    all_compared(&store, "put again");
}

#[test]
fn what_cannot_be_read_is_told_once_and_not_compared() {
    let storage = Arc::new(MemoryStorage::new());
    let store = options().create_on(storage.clone()).unwrap();
    let given = bytes(&mut SmallRng::seed_from_u64(1), 3 << 20);
    let mut staged = store.stage("a", PutOptions::default()).unwrap();
    staged.push(&given).unwrap();
    // What is written so far is damaged before the object is part of a transaction.
    let disk = storage.volume();
    let volume = storage.snapshot().0;
    let at = volume.chunks(4096).position(|page| page == &given[..4096]).unwrap();
    disk.write_at(at as u64 * 4096, &[given[0] ^ 1]).unwrap();
    store.write(|tx| staged.finish(tx)).unwrap();
    let report = verify(&store);
    assert!(!report.is_sound(), "its checksum is wrong as well");
    assert_eq!(report.compared, Some(0), "what cannot be read is reported once");
}

#[test]
fn tampered_sums_and_versions_gone_back_are_found() {
    let (volume, sums, _) = two_objects();
    let noted = |change: &dyn Fn(&mut [u8])| {
        let mut sums = sums.clone();
        let record = &mut sums[48..96];
        change(record);
        let sum = crc(&record[..44]).to_le_bytes();
        record[44..].copy_from_slice(&sum);
        verify(&options().open_read_only_on(storage(volume.clone(), &sums)).unwrap())
    };
    says(&noted(&|record| record[24] ^= 1), &["object \"old\"", "has 81920 bytes, but 81921"]);
    says(&noted(&|record| record[33] ^= 1), &["object \"old\"", "CRC-64"]);
    let report = noted(&|record| record[16] += 1);
    assert_eq!((report.is_sound(), report.compared), (true, Some(1)), "of another epoch");

    // An older state of the same epoch in the place of the newer one.
    let storage_now = storage(volume.clone(), &sums);
    let store = options().open_on(storage_now.clone()).unwrap();
    let epoch = store.stat().unwrap().epoch;
    store.write(|tx| tx.append("new", b"more")).unwrap();
    all_compared(&store, "now");
    store.close().unwrap();
    let sums = sums_of(&*storage_now);
    let back = options().open_read_only_on(storage(volume.clone(), &sums)).unwrap();
    assert_eq!(back.stat().unwrap().epoch, epoch);
    says(&verify(&back), &["object \"new\"", "is of version", "but version", "was committed"]);
}

#[test]
fn sums_in_files_are_found_by_the_stores_name_and_nothing_else_is_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let sums = dir.path().join("s.holdall-sums");
    let options = Options::default().debug_sums(true);
    Store::create(&path).unwrap().close().unwrap();
    assert!(!sums.exists());
    let missing = options.open_read_only(&path).unwrap_err();
    assert!(matches!(&missing, Error::NotFound(what) if what.contains("-sums")), "{missing}");
    std::fs::write(&sums, b"a letter of mine").unwrap();
    assert!(matches!(options.open(&path), Err(Error::Invalid(_))));
    assert_eq!(std::fs::read(&sums).unwrap(), b"a letter of mine");
    std::fs::remove_file(&sums).unwrap();

    let store = options.open(&path).unwrap();
    store.write(|tx| tx.put("a", b"1")).unwrap();
    store.close().unwrap();
    Store::open(&path).unwrap().write(|tx| tx.put("b", b"2")).unwrap();
    let store = options.open_read_only(&path).unwrap();
    let report = verify(&store);
    assert!(report.is_sound());
    assert_eq!((report.objects, report.compared), (2, Some(1)), "put without the option");
}
