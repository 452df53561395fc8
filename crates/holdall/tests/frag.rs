//! The report on fragmentation: stores of known layout, and its counts against verification.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod damage;

use damage::{pages_of, quiet};
use holdall::frag::{Action, FragReport};
use holdall::{Options, Store};
use holdall_core::page::PageKind;
use holdall_io::{MemoryStorage, Storage};
use rand::{SeedableRng, rngs::SmallRng};
use std::sync::Arc;

const PAGE: u64 = 4096;
const MIB: usize = 1 << 20;

fn report(store: &Store) -> FragReport {
    let mut last = (0, 0);
    let report = store.frag(&mut |done, total| last = (done, total)).unwrap();
    assert!(last.0 == last.1 && last.1 > 0, "progress ends at the total: {last:?}");
    consistent(&report);
    report
}

/// What holds of every report.
fn consistent(r: &FragReport) {
    let g = &r.geometry;
    let kinds = g.used_pages() + g.waiting_pages + g.reserved_pages + g.free_pages;
    assert_eq!(kinds, g.volume_pages, "{g:?}");
    let cells = r.map.cells.iter();
    let all = cells.map(|c| c.segment + c.heap + c.metadata + c.waiting + c.free + c.hole);
    assert_eq!(all.sum::<u64>(), g.volume_pages);
    assert!(r.map.cells.len() <= 4096 && g.hole_pages <= g.free_pages);
    let classes = &r.free_runs.classes;
    assert_eq!(classes.iter().map(|c| c.bytes).sum::<u64>(), g.bytes(g.free_pages));
    assert_eq!(classes.iter().map(|c| c.count).sum::<u64>(), r.free_runs.runs);
    let longest = classes.last().map_or(0, |c| c.least);
    assert!((longest..=2 * longest).contains(&r.free_runs.longest_bytes));
    let s = &r.score;
    assert!((0.0..=1.0).contains(&s.pieces) && (0.0..=1.0).contains(&s.space), "{s:?}");
    assert!((s.value - s.pieces * s.space).abs() < 1e-12);
    assert_eq!(r.objects.excess, r.objects.pieces - r.objects.fewest);
    assert_eq!(r.contract.objects, r.objects.large + r.objects.small);
}

/// Counts of verification and of `stat` against those of the report.
fn agrees(store: &Store, context: &str) {
    let (r, stat) = (report(store), store.stat().unwrap());
    let sound = store.verify().unwrap();
    let size = stat.page_size as u64;
    assert!(sound.is_sound(), "{context}: {:?}", sound.problems);
    assert_eq!(r.geometry.used_pages(), sound.pages, "{context}");
    assert_eq!(r.geometry.bytes(r.geometry.free_pages), stat.free_bytes, "{context}");
    assert_eq!(r.geometry.waiting_pages * size, stat.waiting_bytes, "{context}");
    assert_eq!(r.contract.objects, sound.objects, "{context}");
    let records: u64 = r.heap.collections.iter().map(|c| c.records).sum();
    assert_eq!(records, sound.objects, "{context}");
    assert!((r.heap.utilization - stat.heap_utilization).abs() < 1e-9, "{context}");
    assert_eq!(r.objects.saved_bytes, stat.shared_bytes, "{context}");
}

#[test]
fn counts_agree_with_verification_through_random_work() {
    for (seed, page_size, space_pages) in [(1, 4096, 64), (2, 16384, 64), (3, 8192, 1000)] {
        let storage = Arc::new(MemoryStorage::new());
        let options = quiet().page_size(page_size).tuning(|t| t.space_pages(space_pages));
        let mut store = options.create_on(storage.clone()).unwrap();
        agrees(&store, "new");
        let mut rng = SmallRng::seed_from_u64(seed);
        for step in 0..30 {
            damage::random_step(&store, &mut rng);
            let context = format!("seed {seed} step {step}");
            agrees(&store, &context);
            if step % 4 == 0 {
                // As a kill leaves it, opened for reading: recovered in memory.
                let killed = Arc::new(storage.fork());
                agrees(&options.open_read_only_on(killed).unwrap(), &context);
                store.checkpoint().unwrap();
            }
        }
        store.close().unwrap();
        store = options.open_read_only_on(storage.clone()).unwrap();
        let r = report(&store);
        let disk = storage.volume();
        let mut volume = vec![0; disk.len().unwrap() as usize];
        disk.read_at(0, &mut volume).unwrap();
        let heap = pages_of(&volume, page_size, PageKind::Heap).len() as u64;
        let formatted: u64 = r.heap.collections.iter().map(|c| c.pages).sum();
        let fresh: u64 = r.heap.collections.iter().map(|c| c.fresh_pages).sum();
        // A fresh page may still hold what it held before.
        assert!((formatted..=formatted + fresh).contains(&heap), "{formatted} {fresh} {heap}");
        assert_eq!(r.geometry.heap_pages, formatted + fresh);
    }
}

#[test]
fn pieces_of_objects_are_counted() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    store
        .write(|tx| {
            for name in ["cut", "whole", "cut more"] {
                tx.put(name, &vec![1; MIB])?;
            }
            tx.set_len("whole", 9 * MIB as u64)
        })
        .unwrap();
    let before = report(&store);
    assert_eq!((before.objects.pieces, before.objects.fewest), (3, 3));
    assert!(before.objects.most_cut.is_empty() && before.map.cells.iter().all(|c| !c.cut));
    assert_eq!((before.geometry.segment_pages, before.objects.bytes), (768, 3 * MIB as u64));
    assert_eq!(before.contract.stored_bytes, 3 * MIB as u64, "zeros are not stored");
    assert_eq!(before.contract.name_bytes, "cutwholecut more".len() as u64);
    store
        .write(|tx| {
            tx.insert("cut", 100 * PAGE, &[2; 50 * PAGE as usize])?;
            tx.insert("cut more", 50 * PAGE, &[2; 20 * PAGE as usize])?;
            tx.insert("cut more", 150 * PAGE, &[2; 20 * PAGE as usize])
        })
        .unwrap();
    let r = report(&store);
    assert_eq!((r.objects.pieces, r.objects.fewest, r.objects.excess), (9, 3, 6));
    let (cut, more, all) = (256 + 50, 256 + 40, 256 + 50 + 256 + 40 + 256);
    assert_eq!((r.objects.bytes, r.objects.cut_bytes), (all * PAGE, (cut + more) * PAGE));
    let listed: Vec<_> = r.objects.most_cut.iter().map(|c| (c.name.clone(), c.pieces)).collect();
    assert_eq!(listed, [(Some(b"cut more".to_vec()), 5), (Some(b"cut".to_vec()), 3)]);
    let by_pieces: Vec<_> = r.objects.classes.iter().map(|c| (c.least, c.count)).collect();
    assert_eq!(by_pieces, [(1, 1), (2, 1), (4, 1)]);
    let whole = |pages: u64, pieces: f64| pages as f64 / pieces;
    let share = (whole(cut, 3.0) + whole(more, 5.0) + 256.0) / all as f64;
    assert!((r.score.pieces - share).abs() < 1e-12, "{}", r.score.pieces);
    let excess = (cut * 2 + more * 4) as f64 / all as f64;
    assert!((r.objects.mean_excess - excess).abs() < 1e-12, "{}", r.objects.mean_excess);
    let marked: u64 = r.map.cells.iter().filter(|c| c.cut).map(|c| c.segment).sum();
    assert!((cut + more..all).contains(&marked), "{marked} pages in marked cells");
    let join = r.remedies.iter().find(|x| x.action == Action::JoinPieces).unwrap();
    assert_eq!((join.gain_pieces, join.cost_bytes), (6, (cut + more) * PAGE));
}

#[test]
fn shared_runs_count_once() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    store.write(|tx| tx.put("a", &vec![1; MIB])).unwrap();
    let one = report(&store);
    store.write(|tx| tx.copy("a", "b").and_then(|_| tx.copy("a", "c"))).unwrap();
    let r = report(&store);
    assert_eq!(r.geometry.segment_pages, one.geometry.segment_pages);
    assert_eq!((r.objects.shared_bytes, r.objects.saved_bytes), (MIB as u64, 2 * MIB as u64));
    assert_eq!(r.objects.bytes, 3 * MIB as u64);
    assert_eq!(r.contract.stored_bytes, one.contract.stored_bytes);
}

#[test]
fn shared_runs_take_nothing_from_their_neighbours_on_a_coarse_map() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    store.write(|tx| tx.put("large", &vec![1; 40 * MIB])).unwrap();
    // Nodes of the tree come to lie between segments.
    for i in 0..300 {
        let at = i * 30 * PAGE + 7;
        store.write(|tx| tx.insert("large", at, &[2; 9000])).unwrap();
        store.checkpoint().unwrap();
    }
    let before = report(&store);
    assert!(before.map.pages_per_cell > 2, "{}", before.map.pages_per_cell);
    let mixed = before.map.cells.iter().filter(|c| c.segment > 0 && c.metadata > 0).count();
    assert!(mixed > 0, "no cell with both kinds");
    let segments = |name: &str| store.read().unwrap().segments(name).unwrap();
    assert_eq!(before.geometry.segment_pages, segments("large").pages);
    store.write(|tx| tx.copy("large", "b").and_then(|_| tx.copy("large", "c"))).unwrap();
    let after = report(&store);
    assert_eq!(after.geometry.segment_pages, segments("large").pages);
    assert!(after.geometry.metadata_pages > before.geometry.metadata_pages);
}

#[test]
fn what_a_snapshot_keeps_waits_and_has_a_remedy() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    store.write(|tx| tx.put("gone", &vec![1; 8 * MIB])).unwrap();
    store.checkpoint().unwrap();
    let reader = store.read().unwrap();
    store.write(|tx| tx.remove("gone")).unwrap();
    store.checkpoint().unwrap();
    let r = report(&store);
    assert!(r.geometry.pinned_pages >= 8 * MIB as u64 / PAGE, "{:?}", r.geometry);
    assert!(r.remedies.iter().any(|x| x.action == Action::CloseOldestReader), "{:?}", r.remedies);
    assert!(r.contract.waiting_bytes >= 8 * MIB as u64);
    drop(reader);
    store.checkpoint().unwrap();
    assert_eq!(report(&store).geometry.waiting_pages, 0);
}

#[test]
fn sparse_heap_pages_are_slack() {
    let store = quiet().create_on(Arc::new(MemoryStorage::new())).unwrap();
    let name = |i: usize| format!("{i:05}");
    store.write(|tx| (0..4000).try_for_each(|i| tx.put(name(i), &[1; 400]).map(drop))).unwrap();
    let full = report(&store);
    let gone = (0..4000).filter(|i| i % 8 != 0);
    store.write(|tx| gone.into_iter().try_for_each(|i| tx.remove(name(i)).map(drop))).unwrap();
    let r = report(&store);
    assert!(full.heap.slack_bytes < r.heap.slack_bytes / 10, "{:?}", full.heap);
    // An eighth is left: about four fifths of the pages need not be there.
    let pages = r.heap.collections.iter().map(|c| c.pages).sum::<u64>() * PAGE;
    assert!(r.heap.slack_bytes > pages * 4 / 5 && r.heap.slack_cost > 0, "{:?}", r.heap);
    assert!(r.remedies.iter().any(|x| x.action == Action::EmptyHeapPages), "{:?}", r.remedies);
    assert!(r.score.space < full.score.space);
}

#[test]
fn holes_are_known_while_open_and_follow_from_the_blocks_afterwards() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = Options::default().background(false).create(&path).unwrap();
    for i in 0..64 {
        store.write(|tx| tx.put(format!("{i:02}"), &vec![i as u8; MIB])).unwrap();
    }
    store.checkpoint().unwrap();
    for i in (0..64).filter(|i| i % 8 != 0) {
        store.write(|tx| tx.remove(format!("{i:02}"))).unwrap();
    }
    store.checkpoint().unwrap();
    let open = report(&store);
    assert!(open.geometry.bytes(open.geometry.hole_pages) > 40 * MIB as u64);
    assert!(!open.geometry.holes_assumed && open.contract.holds, "{:?}", open.contract);
    store.close().unwrap();
    let read_only = report(&Store::open_read_only(&path).unwrap());
    let holes = |r: &FragReport| r.geometry.bytes(r.geometry.hole_pages);
    assert!(read_only.geometry.holes_assumed);
    let near = holes(&open).abs_diff(holes(&read_only));
    assert!(near < 2 * MIB as u64, "{:?} {:?}", open.geometry, read_only.geometry);
    assert_eq!(read_only.contract.left_bytes, std::fs::metadata(&path).map(blocks).unwrap());
}

fn blocks(data: std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::blocks(&data) * 512
}
