//! Stores and logs made by somebody who can compute checksums: errors, no panic, and memory
//! that the files' size bounds. HOLDALL_FUZZ_RUNS=100 runs a hundred times as many inputs,
//! HOLDALL_FUZZ_SEED moves them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod counting;
#[expect(dead_code, reason = "this test uses the bodies of whole stores")]
mod fuzz_bodies;

use holdall::{Error, Lsn, PageNo};
use holdall_core::checksum::crc;
use holdall_core::log_format::{
    InPlaceKind, MAX_COMPOSED, Part, push_composed, push_in_place, push_page, push_segment,
};
use holdall_core::page::{self, PageKind};
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES, Superblock};
use holdall_io::{MemoryStorage, Storage};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::sync::Arc;
use std::time::{Duration, Instant};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

/// Most memory a body may take beside what is there when it begins: the growth that replay may
/// make again, on a disk in memory which doubles, and one record of the longest.
const MOST_MEMORY: usize = 320 << 20;
/// A hundred times what the slowest takes, on a busy machine.
const MOST_TIME: Duration = Duration::from_secs(60);

/// Inputs that failed once: body, seed, number.
const FOUND: [(&str, u64, u64); 1] = [
    // Counts of a heap's bytes that overflow in stat.
    ("hostile_store", 22, 3439),
];

/// Runs a body with seeded inputs; returns the most memory that one of them took.
fn run(body: fuzz_bodies::Body, what: &str, count: u64) -> usize {
    let seed = number("HOLDALL_FUZZ_SEED", 1);
    let mut most = 0;
    // What it makes once is not counted.
    body(&[]);
    let found = FOUND.iter().filter(|f| f.0 == what).map(|f| (f.1, f.2));
    let all = (0..count * number("HOLDALL_FUZZ_RUNS", 1)).map(|i| (seed, i));
    for (seed, i) in found.chain(all) {
        let mut rng = SmallRng::seed_from_u64(seed << 32 | i);
        let mut data = vec![0; rng.random_range(0..200)];
        rng.fill(&mut data[..]);
        // Shown only if the body fails.
        println!("{what}: seed {seed}, input {i}");
        let begun = Instant::now();
        let taken = counting::peak(|| body(&data));
        assert!(begun.elapsed() < MOST_TIME, "{:?}", begun.elapsed());
        assert!(taken < MOST_MEMORY, "{taken} bytes of memory");
        most = most.max(taken);
    }
    most
}

#[test]
fn changed_logs_with_right_checksums_are_survived() {
    let _alone = counting::alone();
    let most = run(fuzz_bodies::hostile_log, "hostile_log", 2000);
    assert!(most > 60 << 20, "{most} bytes: no log asked for much");
}

#[test]
fn changed_pages_of_every_kind_with_right_checksums_are_survived() {
    let _alone = counting::alone();
    run(fuzz_bodies::hostile_store, "hostile_store", 300);
}

/// What opening says of a store whose log ends with a group of these records, for reading and
/// for writing; how much memory that took, and how long the volume is then.
fn opened(
    page_size: usize,
    records: &dyn Fn(Lsn, u64) -> Vec<u8>,
) -> (Result<(), Error>, usize, u64) {
    let (storage, options) = fuzz_bodies::log::one_more_group(page_size, records);
    let storage = Arc::new(storage);
    let before = storage.volume().len().unwrap();
    let mut result = Ok(());
    let taken = counting::peak(|| {
        result = options.open_read_only_on(storage.clone()).map(drop);
    });
    let written = options.open_on(storage.clone());
    let after = storage.volume().len().unwrap();
    assert_eq!(written.is_ok(), result.is_ok(), "{written:?}, {result:?}");
    (result, taken, after - before)
}

#[track_caller]
fn refused(page_size: usize, what: &str, records: &dyn Fn(Lsn, u64) -> Vec<u8>) {
    let (result, taken, grown) = opened(page_size, records);
    let text = result.map_err(|e| e.to_string()).unwrap_err();
    assert!(text.contains("damaged: log") && text.contains(what), "{text}");
    assert!(taken < 8 << 20 && grown == 0, "{taken} bytes of memory, {grown} of the file");
}

fn new_page(no: u64, page_size: usize, lsn: Lsn, out: &mut Vec<u8>) {
    let mut bytes = vec![0; page_size];
    page::format(&mut bytes, PageKind::Heap, PageNo(no), 0);
    page::seal(&mut bytes, lsn);
    push_page(out, PageNo(no), None, &bytes);
}

#[test]
fn a_log_that_names_pages_far_behind_the_file_is_refused() {
    let _alone = counting::alone();
    for page_size in [4096, 65536] {
        let far = (65 << 20) / page_size as u64;
        refused(page_size, "the volume may have", &|lsn, pages| {
            let mut log = Vec::new();
            new_page(pages + far, page_size, lsn, &mut log);
            log
        });
        refused(page_size, "the volume may have", &|_, pages| {
            let mut log = Vec::new();
            push_segment(&mut log, PageNo(pages + far), &vec![1; page_size]);
            log
        });
        for no in [1 << 40, PageNo::MAX.0, u64::MAX] {
            refused(page_size, "the volume may have", &|_, _| {
                let mut log = Vec::new();
                push_composed(&mut log, PageNo(no), 0, &[Part::Zeros(1 << 20)]);
                log
            });
        }
        // A directory that holds the last page of a space far away as allocated is one too.
        let (result, _, grown) = opened(page_size, &|lsn, pages| {
            let mut log = Vec::new();
            new_page(pages + far / 2, page_size, lsn, &mut log);
            log
        });
        assert!(result.is_ok(), "growth that a crash may have undone: {result:?}");
        assert!(grown <= 64 << 20, "{grown}");
    }
}

#[test]
fn a_short_log_that_stands_for_gigabytes_is_refused() {
    let _alone = counting::alone();
    let zeros = crc(&vec![0; MAX_COMPOSED as usize]);
    for many in [5, 300] {
        refused(4096, "stand for more", &|_, _| {
            let mut log = Vec::new();
            for _ in 0..many {
                push_composed(&mut log, PageNo(20), zeros, &[Part::Zeros(MAX_COMPOSED)]);
            }
            log
        });
    }
    // More than a group may list as lying in place.
    refused(4096, "8193 pages at page 0", &|_, _| {
        let mut log = Vec::new();
        push_in_place(&mut log, PageNo(0), 8193, InPlaceKind::Units, 0);
        log
    });
}

#[test]
fn records_of_new_pages_take_no_more_memory_than_what_differs() {
    let _alone = counting::alone();
    let many = 900;
    let (result, taken, grown) = opened(65536, &|lsn, pages| {
        let mut log = Vec::new();
        (0..many).for_each(|i| new_page(pages + i, 65536, lsn, &mut log));
        log
    });
    assert!(result.is_ok(), "{result:?}");
    assert_eq!(grown, many * 65536);
    // 64 MiB at most are kept of the pages that were checked; of each one page of 4 KiB stays.
    assert!(taken < 80 << 20, "{taken}");
}

#[test]
fn a_log_said_to_be_a_terabyte_is_looked_at_as_far_as_it_goes() {
    let _alone = counting::alone();
    let (storage, options) = fuzz_bodies::log::one_more_group(4096, |_, _| Vec::new());
    let (mut volume, log) = storage.snapshot();
    for at in SLOT_AT {
        let slot = &mut volume[at as usize..][..SLOT_BYTES];
        let mut sb = Superblock::decode(slot).unwrap().unwrap();
        (sb.log_bytes, sb.log_required) = (1 << 40, false);
        slot.copy_from_slice(&sb.encode());
    }
    let storage = Arc::new(MemoryStorage::from_bytes(volume, log));
    let taken = counting::peak(|| {
        let last = holdall::inspect::log_of(&*storage).unwrap().last();
        assert!(matches!(last, Some(Ok(holdall::inspect::LogPart::Short))), "{last:?}");
        let _ = options.open_on(storage.clone());
    });
    assert!(taken < 8 << 20, "{taken} bytes of memory");
}
