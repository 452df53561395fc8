//! How many reads of the volume a lookup costs, and how many bytes an edit writes.

use holdall::{Oid, Options};
use holdall_io::MemoryStorage;
use holdall_testkit::{CostModel, CountedStorage};
use std::sync::Arc;

/// Bytes of the pool: enough for all handle pages and what leads to them, far too few for the
/// records.
const POOL: usize = 2 << 20;
const OBJECTS: usize = 60_000;

fn options() -> Options {
    Options::default().cache_bytes(POOL)
}

fn bytes(i: usize) -> Vec<u8> {
    vec![i as u8; 100 + i * 7 % 201]
}

#[test]
fn a_small_object_by_oid_costs_at_most_one_read_beyond_handle_pages() {
    let storage =
        Arc::new(CountedStorage::new(Arc::new(MemoryStorage::new()), CostModel::default()));
    let store = options().create_on(storage.clone()).unwrap();
    let mut oids: Vec<Oid> = Vec::new();
    for batch in 0..OBJECTS / 1000 {
        let new = store.write(|tx| {
            (0..1000).map(|k| tx.create(&bytes(batch * 1000 + k))).collect::<Result<Vec<_>, _>>()
        });
        oids.extend(new.unwrap());
    }
    store.close().unwrap();
    let store = options().open_on(storage.clone()).unwrap();
    // Every handle page and the map above them, by one object of each.
    let mut pages: Vec<u32> = oids.iter().map(|oid| oid.page).collect();
    pages.dedup();
    assert!(pages.len() * 8192 < POOL / 2, "{} handle pages", pages.len());
    for page in &pages {
        let oid = oids.iter().find(|oid| oid.page == *page).unwrap();
        store.read().unwrap().get(*oid).unwrap();
    }
    let (mut reads, mut most) = (0, 0);
    for n in 0..3000_usize {
        let i = n * 7919 % OBJECTS;
        let before = storage.volume_stats().reads;
        assert_eq!(store.read().unwrap().get(oids[i]).unwrap().unwrap(), bytes(i));
        let now = storage.volume_stats().reads - before;
        reads += now;
        // The clock may have let go a handle page.
        most = most.max(now);
    }
    assert!(most <= 2, "{most} reads for one object");
    assert!((1500..=3100).contains(&reads), "{reads} reads for 3000 objects");
}

#[test]
fn an_edit_by_a_command_of_its_own_writes_little() {
    let storage =
        Arc::new(CountedStorage::new(Arc::new(MemoryStorage::new()), CostModel::default()));
    let store = Options::default().create_on(storage.clone()).unwrap();
    store.write(|tx| tx.put("large", &vec![7; 5_000_000])).unwrap();
    store.close().unwrap();
    storage.reset();
    let store = Options::default().open_on(storage.clone()).unwrap();
    store.write(|tx| tx.insert("large", 1_000_000, &[1; 100])).unwrap();
    store.close().unwrap();
    let written = storage.stats().bytes_written;
    assert!((4096..=200_000).contains(&written), "{written} bytes");
}

#[test]
fn metadata_reads_the_record_whatever_the_number_of_segments() {
    // More than T pages, so that nothing is copied.
    const PART: u64 = 32 * 4096;
    let storage =
        Arc::new(CountedStorage::new(Arc::new(MemoryStorage::new()), CostModel::default()));
    let options = Options::default().cache_bytes(16 << 20).page_size(4096);
    let store = options.create_on(storage.clone()).unwrap();
    store
        .write(|tx| tx.put("part", &[7; PART as usize]).and_then(|_| tx.put("whole", b"")))
        .unwrap();
    // The same shared segment again and again: no two are neighbours.
    store
        .write(|tx| {
            for at in 0..10_000 {
                tx.copy_range("part", 0..PART, "whole", at * PART)?;
            }
            Ok(())
        })
        .unwrap();
    store.close().unwrap();
    let reads = |what: &dyn Fn(&holdall::Reader)| {
        let store = options.open_read_only_on(storage.clone()).unwrap();
        let reader = store.read().unwrap();
        reader.lookup("whole").unwrap();
        let before = storage.volume_stats().reads;
        what(&reader);
        storage.volume_stats().reads - before
    };
    let size = |r: &holdall::Reader| assert_eq!(r.metadata("whole").unwrap().size, 10_000 * PART);
    let count = |r: &holdall::Reader| assert_eq!(r.segments("whole").unwrap().segments, 10_000);
    let (known, counted) = (reads(&size), reads(&count));
    assert!(known <= 3, "{known} reads: the handle's page, the record's and the map's");
    assert!(counted > 30, "{counted} reads: there is a tree that could have been walked");
}
