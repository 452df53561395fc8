//! Verification: sound stores are found sound whatever was done to them, and each kind of
//! damage is found, named, and does not hide the rest.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;

use damage::{pages_of, quiet, sample};
use holdall::inspect::{self, ObjectBody, TreePart};
use holdall::{PageNo, Store, VerifyOptions, VerifyReport};
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::{bytes, collection_page};
use holdall_io::{MemoryStorage, Storage};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Arc;

fn sound(store: &Store, context: &str) -> VerifyReport {
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{context}: {:#?}", report.problems);
    report
}

#[test]
fn a_store_stays_sound_through_random_work() {
    for (seed, page_size, space_pages) in
        [(1, 4096, 64), (2, 4096, 200), (3, 16384, 64), (4, 8192, 1000)]
    {
        let storage = Arc::new(MemoryStorage::new());
        let options = quiet().page_size(page_size).tuning(|t| t.space_pages(space_pages));
        let mut store = options.create_on(storage.clone()).unwrap();
        sound(&store, "new");
        let mut rng = SmallRng::seed_from_u64(seed);
        for step in 0..60 {
            damage::random_step(&store, &mut rng);
            let context = format!("seed {seed} step {step}");
            let report = sound(&store, &context);
            assert_eq!(report.objects, store.stat().unwrap().objects, "{context}");
            match rng.random_range(0..8) {
                0 => store.checkpoint().unwrap(),
                1 => {
                    store.close().unwrap();
                    store = options.open_on(storage.clone()).unwrap();
                    sound(&store, &format!("{context} reopened"));
                }
                2 => {
                    // As a kill leaves it: recovered in memory, nothing written.
                    let killed = Arc::new(storage.fork());
                    let other = options.open_read_only_on(killed).unwrap();
                    sound(&other, &format!("{context} killed"));
                }
                _ => {}
            }
        }
    }
}

#[test]
fn a_store_that_grows_meanwhile_is_not_taken_for_one_cut_short() {
    let options = quiet().tuning(|t| t.growth_bytes(1));
    let store = options.create_on(Arc::new(MemoryStorage::new())).unwrap();
    store.write(|tx| tx.put("first", b"1")).unwrap();
    store.checkpoint().unwrap();
    let mut calls = 0;
    let report = store.verify_with(&VerifyOptions::default(), &mut |_| {
        // The superblock then names a length that the file had not when the check began.
        calls += 1;
        store.write(|tx| tx.put(format!("more {calls}"), &vec![7; 300_000])).unwrap();
        store.checkpoint().unwrap();
    });
    let report = report.unwrap();
    assert!(calls > 1 && report.is_sound(), "{:#?}", report.problems);
}

#[test]
fn progress_reaches_the_total_and_data_can_be_left_out() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    store.write(|tx| tx.put("large", &vec![3; 5 << 20])).unwrap();
    let mut steps = Vec::new();
    let report = store.verify_with(&VerifyOptions::default(), &mut |p| steps.push(p)).unwrap();
    assert!(report.is_sound() && steps.len() > 4, "{report:?} {steps:?}");
    assert_eq!((steps[0].done, steps.remove(0).total), (0, 0), "told at the begin");
    assert!(steps.windows(2).all(|w| w[0].done <= w[1].done && w[0].total == w[1].total));
    let last = steps.last().unwrap();
    assert_eq!((last.done, last.total), (last.total, report.pages * 4096));
    assert!(report.bytes_checked > 5 << 20);
    let quick = store.verify_with(&VerifyOptions { data: false }, &mut |_| {}).unwrap();
    assert!(quick.is_sound() && quick.bytes_checked < 1 << 20, "{quick:?}");
    assert_eq!(quick.pages, report.pages);
}

const PAGE: usize = 4096;

fn report_of(volume: Vec<u8>) -> VerifyReport {
    let storage = Arc::new(MemoryStorage::from_bytes(volume, None));
    let store = quiet().open_read_only_on(storage).unwrap();
    let report = store.verify().unwrap();
    assert!(report.problems.len() < 200, "summed up: {:#?}", report.problems);
    report
}

/// The report on the sample after `change` to a page of `kind`, which then gets a right
/// checksum again: what only the walk can find.
fn forged(kind: PageKind, nth: usize, change: impl FnOnce(&mut [u8])) -> VerifyReport {
    let (mut volume, _) = sample(PAGE);
    let no = pages_of(&volume, PAGE, kind)[nth];
    let bytes = &mut volume[no as usize * PAGE..][..PAGE];
    change(bytes);
    let lsn = page::lsn(bytes);
    page::seal(bytes, lsn);
    report_of(volume)
}

#[track_caller]
fn says(report: &VerifyReport, parts: &[&str]) {
    let found = report.problems.iter().any(|p| {
        let text = p.to_string();
        parts.iter().all(|part| text.contains(part))
    });
    assert!(found, "nothing says {parts:?}: {:#?}", report.problems);
}

#[test]
fn a_damaged_heap_page_is_told_with_the_names_of_its_objects() {
    let (mut volume, model) = sample(PAGE);
    let pages = pages_of(&volume, PAGE, PageKind::Heap);
    let all = model.objects() as u64;
    for no in &pages {
        volume[*no as usize * PAGE + 3000] ^= 4;
    }
    let report = report_of(volume);
    for no in pages {
        says(&report, &[&format!("page {no} (heap page"), "checksum is"]);
    }
    says(
        &report,
        &["object \"small 7\" (oid:", "collection \"default\"", "cannot be read", "restore"],
    );
    says(&report, &["object \"tree\" (oid:"]);
    // The one without a name is known by its OID only.
    says(&report, &["object oid:"]);
    says(&report, &["nothing refers to", "they may belong to what is damaged"]);
    let objects = report.problems.iter().filter(|p| p.place.starts_with("object ")).count();
    assert_eq!((objects as u64, report.objects), (all, 0));
}

#[test]
fn damaged_data_is_told_as_bytes_of_the_object() {
    let (volume, _) = sample(PAGE);
    let object = {
        let storage = Arc::new(MemoryStorage::from_bytes(volume.clone(), None));
        let store = quiet().open_read_only_on(storage).unwrap();
        inspect::object(&store, "default", "large").unwrap()
    };
    let ObjectBody::Large(large) = &object.body else { panic!("{object:?}") };
    // Pages of the object in order.
    let mut pages: Vec<usize> = Vec::new();
    for part in &large.tree {
        let TreePart::Segment(_, slice) = part else { continue };
        pages.extend((slice.reference..slice.end_page(PAGE as u64)).map(|page| page as usize));
    }
    assert_eq!(pages.len(), 6, "{object:?}");
    let mut volume = volume;
    for i in [1, 2, 4] {
        volume[pages[i] * PAGE + 17] ^= 1;
    }
    let report = report_of(volume);
    assert_eq!(report.problems.len(), 2, "{:#?}", report.problems);
    says(&report, &["object \"large\" (oid:", "bytes 4096..12288 are damaged"]);
    says(
        &report,
        &["object \"large\" (oid:", "bytes 16384..20480 are damaged", "restore this object"],
    );
}

#[test]
fn damage_of_names_leaves_the_objects_known() {
    let (mut volume, model) = sample(PAGE);
    let leaf = |no: &u64| {
        let b = &volume[*no as usize * PAGE..][..PAGE];
        b[page::HEADER] == 0 && page::owner(b) == 2
    };
    let no = pages_of(&volume, PAGE, PageKind::Names).into_iter().find(leaf).unwrap();
    volume[no as usize * PAGE + 4000] ^= 1;
    let report = report_of(volume);
    says(&report, &[&format!("page {no} (names of collection \"photos\""), "checksum"]);
    says(&report, &["object \"a folder/and a long name 000", "its name cannot be looked up"]);
    assert_eq!(report.objects as usize, model.objects(), "all records can be read");
}

#[test]
fn damaged_nodes_of_a_tree_name_the_bytes_lost() {
    let (mut volume, _) = sample(PAGE);
    let no = pages_of(&volume, PAGE, PageKind::SegmentNode)[0];
    volume[no as usize * PAGE + 100] ^= 1;
    let report = report_of(volume);
    says(
        &report,
        &["object \"tree\" (oid:", "bytes 0..40960 cannot be found", &format!("page {no}:")],
    );
}

#[test]
fn damaged_checksums_and_directories_are_told() {
    let (mut volume, _) = sample(PAGE);
    let no = pages_of(&volume, PAGE, PageKind::SpaceInfo)[0];
    volume[no as usize * PAGE + 60] ^= 1;
    let report = report_of(volume.clone());
    says(&report, &[&format!("page {no} (checksums of stretch 0 of space 0)")]);
    says(&report, &["object \"large\"", "are damaged"]);
    volume[3 * PAGE + 60] ^= 1;
    let report = report_of(volume);
    says(&report, &["page 3 (directory of space 0)"]);
}

#[test]
fn pages_used_but_free_and_in_use_for_nothing_are_told() {
    let (volume, _) = sample(PAGE);
    let layout = SpaceLayout::new(PAGE, 64).unwrap();
    let heap = pages_of(&volume, PAGE, PageKind::Heap)[0] as u32;
    let report = forged(PageKind::SpaceDir, 0, |b| {
        SpaceDir::open(layout, 0, b).unwrap().set_range(heap, 1, false).unwrap();
    });
    says(&report, &[&format!("1 pages in use are marked free: {heap}"), "do not write"]);
    let last = pages_of(&volume, PAGE, PageKind::SpaceDir).len() - 1;
    let report = forged(PageKind::SpaceDir, last, |b| {
        let space = last as u32;
        SpaceDir::open(layout, space, b).unwrap().set_range(60, 3, true).unwrap();
    });
    let first = last * 64 + 60;
    says(&report, &["nothing refers to 3 pages", &format!("{first} to {}", first + 2)]);
    let report = forged(PageKind::SpaceDir, 0, |b| {
        SpaceDir::open(layout, 0, b).unwrap().add_segment_pages(0, -1).unwrap();
    });
    says(&report, &["directory of space 0", "segment pages, noted"]);
}

#[test]
fn contradictions_between_pages_are_told() {
    let report = forged(PageKind::Collection, 0, |b| {
        collection_page::set_objects(b, collection_page::objects(b) + 1);
    });
    says(&report, &["collection \"default\"", "counts"]);
    // Two handles point to each other's records.
    let report = forged(PageKind::Handle, 0, |b| {
        let (a, c) = (page::HEADER + 12 + 4, page::HEADER + 24 + 4);
        let (x, y) = (bytes::u64_at(b, a), bytes::u64_at(b, c));
        bytes::put_u64(b, a, y);
        bytes::put_u64(b, c, x);
    });
    says(&report, &["object \"small 0\"", "is that of oid:0.0.1."]);
    says(&report, &["slot", "holds object \"small 1\"", "its handle leads to page"]);
    // A page of another owner, and one that is named twice.
    let report = forged(PageKind::Names, 1, |b| page::set_owner(b, 77));
    says(&report, &["has owner 77, not"]);
    let (volume, _) = sample(PAGE);
    let heap = pages_of(&volume, PAGE, PageKind::Heap)[0];
    let report = forged(PageKind::PageMap, 1, |b| {
        let last =
            (page::HEADER + 8..PAGE).step_by(8).rfind(|at| bytes::u48_at(b, *at) != 0).unwrap();
        bytes::put_u48(b, last, heap);
    });
    assert!(!report.is_sound());
    let text = format!("{:#?}", report.problems);
    assert!(text.contains("and so does something else") || text.contains("is heap page"), "{text}");
}

#[test]
fn a_damaged_copy_of_the_superblock_is_told_and_renewed_by_the_next_change() {
    let (mut volume, _) = sample(PAGE);
    volume[65536 + 100] ^= 1;
    let report = report_of(volume.clone());
    assert_eq!(report.problems.len(), 1);
    says(&report, &["superblock copy 1 at byte 65536", "is damaged", "the other copy serves"]);
    let storage = Arc::new(MemoryStorage::from_bytes(volume, None));
    let store = quiet().open_on(storage.clone()).unwrap();
    store.write(|tx| tx.put("x", b"y")).unwrap();
    store.close().unwrap();
    sound(&quiet().open_on(storage).unwrap(), "renewed");
}

#[test]
fn damage_in_the_file_below_pages_in_memory_is_seen() {
    let (volume, _) = sample(PAGE);
    let pages = pages_of(&volume, PAGE, PageKind::Heap);
    let storage = Arc::new(MemoryStorage::from_bytes(volume, None));
    let store = quiet().open_on(storage.clone()).unwrap();
    let reader = store.read().unwrap();
    reader.names("").for_each(|n| drop(reader.get(n.unwrap().oid).unwrap()));
    sound(&store, "all in memory");
    let at = pages[0] * PAGE as u64 + 4000;
    storage.volume().write_at(at, &[0xaa, 0x55]).unwrap();
    reader.names("").for_each(|n| drop(reader.get(n.unwrap().oid).unwrap()));
    let report = store.verify().unwrap();
    assert_eq!(report.problems.len(), 1, "{:#?}", report.problems);
    says(&report, &[&format!("page {} in the file", pages[0]), "while memory still has it right"]);
    // A page that waits for a checkpoint may differ; the checkpoint puts it right.
    let no = PageNo(pages[0]);
    let mut small = 0;
    while store.verify().unwrap().problems.iter().any(|p| p.place.contains(&format!("page {no} ")))
    {
        assert!(small < 200, "the page is never written");
        let name = format!("small {small}");
        store
            .write(|tx| if tx.lookup(&name)?.is_some() { tx.remove(&name) } else { Ok(false) })
            .unwrap();
        small += 1;
    }
    store.checkpoint().unwrap();
    sound(&store, "written again");
}

#[test]
fn verification_runs_beside_writers() {
    let store = quiet().background(true).create_on(Arc::new(MemoryStorage::new())).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut rng = SmallRng::seed_from_u64(8);
            for _ in 0..150 {
                damage::random_step(&store, &mut rng);
                if rng.random_range(0..10) == 0 {
                    store.checkpoint().unwrap();
                }
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let mut rounds = 0;
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            sound(&store, "beside a writer");
            rounds += 1;
        }
        writer.join().unwrap();
        assert!(rounds > 3, "{rounds}");
    });
}
