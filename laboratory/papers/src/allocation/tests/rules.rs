//! The rules of Iyengar §2, one by one; a rule that is broken makes its test fail.

use super::*;
use crate::allocation::htod::{Htod, Shape};
use holdall_io::Storage;
use holdall_testkit::{CostModel, CountedDisk, CrashKind, FaultPlan, FaultyStorage};

fn counted(params: Params) -> (Pmflf, Arc<CountedDisk>) {
    let disk = Arc::new(CountedDisk::new(Arc::new(MemoryDisk::new()), CostModel::default()));
    (Pmflf::create(disk.clone(), params, 1).unwrap(), disk)
}

/// Bytes of content that fill a number of grains.
fn fill(params: &Params, grains: usize) -> usize {
    grains * 512 - params.method.within()
}

fn put(store: &mut Pmflf, grains: usize) -> Block {
    let len = fill(store.params(), grains);
    store.put(&content(1, len)).unwrap()
}

fn free(store: &mut Pmflf, block: Block) {
    let len = store.room(block) as usize;
    store.free(block, len).unwrap();
}

#[test]
fn one_access_for_each_operation_without_split_or_coalesce() {
    for method in Method::ALL {
        let params = Params { checkpoint_every: u32::MAX, ..small(method) };
        let (mut store, disk) = counted(params);
        let accesses = || disk.stats().reads + disk.stats().writes;
        let blocks: Vec<Block> =
            [1, 2, 6, 20].map(|g| store.allocate(fill(&params, g)).unwrap()).into();
        assert_eq!(accesses(), 1 + 4, "{method:?}: tail allocations");
        for &block in &blocks {
            free(&mut store, block);
        }
        assert_eq!(accesses(), 1 + 8, "{method:?}: deallocations");
        for &block in &blocks {
            assert_eq!(store.allocate(store.room(block) as usize).unwrap(), block);
        }
        assert_eq!(accesses(), 1 + 12, "{method:?}: allocations from free lists");
        let found = store.block_at(blocks[0].at).unwrap();
        store.free(found, 0).unwrap();
        assert_eq!(accesses(), 1 + 14, "{method:?}: the size had to be read");
    }
}

#[test]
fn a_split_takes_one_more_access_and_writes_the_rest_first() {
    let (mut store, disk) = counted(small(Method::Ts));
    let block = put(&mut store, 60);
    free(&mut store, block);
    let before = disk.stats();
    let part = put(&mut store, 56);
    assert_eq!((part.at, part.grains), (block.at, 56));
    assert_eq!((disk.stats() - before).writes, 2);
    assert_eq!(store.counts().splits, 1);
    assert_eq!(store.lists().iter().next().unwrap().grains, 4);
    // Both parts are found again after a crash.
    drop(store);
    let (store, _) = Pmflf::open(disk, small(Method::Ts)).unwrap();
    assert_eq!((store.usage().blocks, store.lists().iter().next().unwrap().grains), (1, 4));
}

#[test]
fn small_requests_go_to_the_quick_list_then_the_tail_then_larger_lists() {
    let params = small(Method::Ts);
    let first = file(params).0.first();
    // Room for 1 + 2 + 4 + 30 grains and no more.
    let (mut store, _) = file(Params { max_bytes: first + 37 * 512, ..params });
    let [one, two, four, large] = [1, 2, 4, 30].map(|g| put(&mut store, g));
    free(&mut store, four);
    free(&mut store, large);
    free(&mut store, one);
    // Step 1, the list of just the size.
    assert_eq!(put(&mut store, 1), one);
    // The tail is used up: step 3, the next larger list; three grains for one are within waste.
    let counts = store.counts();
    assert_eq!((counts.quick, counts.tail, counts.larger), (1, 4, 0));
    let two_more = put(&mut store, 2);
    assert_eq!(two_more, four, "4 grains for 2 are within a waste of 2 and not split");
    let split = put(&mut store, 1);
    assert_eq!((split.at, split.grains), (large.at, 1), "30 grains for 1 are split");
    assert_eq!(store.counts().larger, 2);
    free(&mut store, two);
    assert_eq!(store.counts().coalesced, 0);
    // Step 4: coalescing, when nothing fits.
    assert!(matches!(store.put(&content(1, fill(&params, 31))), Err(Error::Full)));
    assert_eq!(store.counts().coalesced, 1);
}

#[test]
fn small_requests_prefer_the_tail_to_larger_blocks() {
    let (mut store, _) = file(small(Method::Ts));
    let two = put(&mut store, 2);
    let end = put(&mut store, 1);
    free(&mut store, two);
    assert_eq!(put(&mut store, 1).at, end.at + 512);
}

/// A file with two free blocks of these grains, the second one at the head.
fn with_free(sizes: [usize; 2]) -> (Pmflf, [Block; 2]) {
    let (mut store, _) = file(small(Method::Ts));
    let blocks = sizes.map(|grains| {
        let block = put(&mut store, grains);
        put(&mut store, 1);
        block
    });
    for block in blocks {
        free(&mut store, block);
    }
    (store, blocks)
}

#[test]
fn large_requests_take_the_first_within_waste_then_the_smallest_then_the_tail() {
    let (mut store, _) = file(small(Method::Ts));
    let class = store.lists().class(56);
    let (low, high) = store.lists().range(class);
    assert!(low <= 53 && high >= 60, "{low}..={high}");
    let [a, b, c] = [60, 57, 55].map(|g| {
        let block = put(&mut store, g);
        put(&mut store, 1);
        block
    });
    for block in [c, b, a] {
        free(&mut store, block);
    }
    // From the head: 60, 57, 55. For 54, the first of at most 56 is the last one.
    let got = put(&mut store, 54);
    assert_eq!((got, store.counts().splits), (c, 0));
    // For 56, 57 is within waste; the list's head, 60, is not.
    assert_eq!(put(&mut store, 56), b);
    // For 53, none is within waste: the smallest is split.
    let got = put(&mut store, 53);
    assert_eq!((got.at, got.grains, store.counts().splits), (a.at, 53, 1));
    // From the head: 57, 56. The first that fits goes, not the best.
    let (mut store, [_, first]) = with_free([56, 57]);
    assert_eq!(put(&mut store, 56), first);
    // None is within waste: of 60 and 58 the smaller one is split.
    let (mut store, [smaller, _]) = with_free([58, 60]);
    assert_eq!(put(&mut store, 54).at, smaller.at);
    // A free block of a larger range is left alone while there is a tail.
    let (mut store, _) = file(small(Method::Ts));
    let big = put(&mut store, 200);
    put(&mut store, 1);
    free(&mut store, big);
    let tail = store.usage().tail;
    assert!(put(&mut store, 60).at >= tail);
}

#[test]
fn freed_blocks_are_not_combined_until_nothing_fits() {
    for method in Method::ALL {
        let params = small(method);
        let first = file(params).0.first();
        let (mut store, disk) = file(Params { max_bytes: first + 8 * 512, ..params });
        let blocks: Vec<Block> = (0..8).map(|_| put(&mut store, 1)).collect();
        for &block in &blocks[1..5] {
            free(&mut store, block);
        }
        assert_eq!(store.lists().blocks(), 4);
        let got = put(&mut store, 4);
        assert_eq!((got.at, got.grains), (blocks[1].at, 4), "{method:?}");
        assert_eq!(store.counts().coalesced, 1);
        // Free blocks before the tail become tail again.
        free(&mut store, blocks[7]);
        store.coalesce().unwrap();
        assert_eq!(store.tail, blocks[7].at);
        drop(store);
        let (store, _) = Pmflf::open(disk, params).unwrap();
        let live = [blocks[0], got, blocks[5], blocks[6]];
        for block in live {
            assert_eq!(store.block_at(block.at).unwrap(), block);
        }
    }
}

/// A bounded file: larger blocks, then combining, and only then it grows.
#[test]
fn a_bounded_file_grows_only_if_combining_makes_no_room() {
    let params = Params { bounded: true, ..small(Method::Ts) };
    let (mut store, disk) = file(params);
    let blocks: Vec<Block> = (0..40).map(|_| put(&mut store, 1)).collect();
    for &block in &blocks[..20] {
        free(&mut store, block);
    }
    let most = store.usage().most;
    let (combined, got) = (store.counts().coalesced, put(&mut store, 12));
    assert_eq!((got.at, store.counts().coalesced), (blocks[0].at, combined + 1));
    assert_eq!(put(&mut store, 2).at, got.at + 12 * 512, "a larger block, split");
    assert_eq!(store.usage().most, most);
    assert!(put(&mut store, 12).at >= blocks[39].at + 512, "no room: the file grows");
    drop(store);
    assert_eq!(Pmflf::open(disk, params).unwrap().0.usage().blocks, 23);
}

/// Footnote 3.
#[test]
fn serious_fragmentation_has_free_blocks_combined() {
    for (serious, combined) in [(0.7, 0), (0.2, 1)] {
        let (mut store, _) = file(Params { serious, ..small(Method::Ts) });
        let blocks: Vec<Block> = (0..20).map(|_| put(&mut store, 1)).collect();
        for &block in &blocks[3..15] {
            free(&mut store, block);
        }
        put(&mut store, 6);
        assert_eq!(store.counts().coalesced, combined);
        put(&mut store, 1);
        assert_eq!(store.counts().coalesced, combined, "not again, though much is free");
    }
}

/// I3. One access each, none for the tail pointer; it is found again by the code bytes, over
/// blocks that were freed since as well.
#[test]
fn the_tail_is_found_again_by_walking() {
    for method in Method::ALL {
        let params = Params { checkpoint_every: u32::MAX, ..small(method) };
        let (mut store, disk) = file(params);
        let blocks: Vec<Block> = [1, 3, 9, 2].map(|g| put(&mut store, g)).into();
        free(&mut store, blocks[1]);
        let tail = store.tail;
        drop(store);
        let (store, found) = Pmflf::open(disk.clone(), params).unwrap();
        assert_eq!((store.tail, found.behind_tail), (tail, 4), "{method:?}");
        assert_eq!(store.usage().free_blocks, 1);
        // Bytes behind the tail that are no block of this file do not count.
        disk.write_at(store.header_place(tail), &Pmflf::stray_header(99)).unwrap();
        drop(store);
        assert_eq!(Pmflf::open(disk, params).unwrap().0.tail, tail);
    }
}

/// I2. The heads on disk are those of the last checkpoint; PFL drops what was allocated since.
#[test]
fn pfl_drops_allocated_blocks_from_the_heads_of_its_lists() {
    for method in Method::ALL {
        let params = Params { checkpoint_every: u32::MAX, ..small(method) };
        let (mut store, disk) = file(params);
        let blocks: Vec<Block> = (0..6).map(|_| put(&mut store, 2)).collect();
        for &block in &blocks[..4] {
            free(&mut store, block);
        }
        store.checkpoint().unwrap();
        let writes = store.counts().checkpoints;
        let taken = [put(&mut store, 2), put(&mut store, 2)];
        assert_eq!(taken, [blocks[3], blocks[2]], "from the head of the list");
        free(&mut store, blocks[5]);
        assert_eq!(store.counts().checkpoints, writes, "heads are not written in between");
        drop(store);
        let (mut store, found) = Pmflf::open(disk, params).unwrap();
        assert_eq!(found.dropped, if method == Method::Pfl { 2 } else { 0 });
        // Freed since the checkpoint: PFL has lost track of it, the scan finds it.
        let lost = u64::from(method == Method::Pfl);
        assert_eq!(store.usage().free_blocks, 3 - lost);
        assert_eq!(store.reclaim().unwrap(), lost);
        assert_eq!(store.usage().free_blocks, 3);
    }
}

/// Content and tags lie apart, and a scan reads many tags at once.
#[test]
fn headers_of_an_area_are_read_at_once() {
    let params = Params { checkpoint_every: u32::MAX, ..small(Method::Area) };
    let (mut store, disk) = counted(params);
    let blocks: Vec<Block> = (0..200).map(|_| put(&mut store, 2)).collect();
    free(&mut store, blocks[50]);
    let before = disk.stats();
    let (store, found) = Pmflf::open(disk.clone(), params).unwrap();
    assert_eq!((found.headers, found.behind_tail), (200, 200));
    assert!((disk.stats() - before).reads < 5);
    assert_eq!(store.usage().free_blocks, 1);
    let mut bytes = vec![0; 1024];
    store.read(blocks[199].at, 0, &mut bytes).unwrap();
    assert_eq!(bytes, content(1, 1024), "no header within the block");
    let (mut full, _) = file(Params { area: 3, ..params });
    put(&mut full, 2);
    assert!(matches!(full.put(&content(1, 1024)), Err(Error::Full)), "the area ends the file");
}

#[test]
fn lists_are_found_with_fewer_reads_than_all_headers() {
    let read = |method| {
        let params = Params { checkpoint_every: 1, ..small(method) };
        let (mut store, disk) = file(params);
        let blocks: Vec<Block> = (0..100).map(|_| put(&mut store, 1)).collect();
        for &block in &blocks[..10] {
            free(&mut store, block);
        }
        drop(store);
        Pmflf::open(disk, params).unwrap().1.headers
    };
    assert_eq!((read(Method::Ts), read(Method::Pl), read(Method::Pfl)), (100, 100, 10));
}

#[test]
fn batches_place_large_requests_first_and_leave_small_blocks() {
    let (mut store, disk) = counted(small(Method::Ts));
    let [a, _, b, _, c, _] = [10, 1, 3, 1, 2, 1].map(|g| put(&mut store, g));
    for block in [a, b, c] {
        free(&mut store, block);
    }
    let mut batch = Batch::new(3);
    for grains in [2, 3, 7] {
        batch.add(content(5, fill(store.params(), grains)));
    }
    let before = disk.stats();
    let blocks = batch.write(&mut store).unwrap();
    // 7 into 10, 3 into the 3 left of it, 2 into the 3 of b: the 2 of c are below T.
    assert_eq!((blocks[2].at, blocks[1].at), (a.at, a.at + 7 * 512));
    assert_eq!((blocks[0].at, blocks[0].grains), (b.at, 2));
    let free: Vec<Block> = store.lists().iter().collect();
    assert!(free.contains(&c) && free.len() == 2);
    // Each of the two blocks that were split in two writes, and a checkpoint.
    assert_eq!((disk.stats() - before).writes, 5);
}

#[test]
fn a_batch_from_the_tail_is_one_write() {
    let (mut store, disk) = counted(small(Method::Ts));
    let mut batch = Batch::new(1);
    for grains in [1, 2, 3] {
        batch.add(content(5, fill(store.params(), grains)));
    }
    let before = disk.stats();
    batch.write(&mut store).unwrap();
    assert_eq!((disk.stats() - before).writes, 2, "the blocks and a checkpoint");
}

/// An item that is replaced can be read until its bucket leads to the new one.
#[test]
fn a_key_has_its_old_value_or_its_new_one() {
    for change in 1..8 {
        let storage = FaultyStorage::new(1);
        let params = small(Method::Ts);
        let mut table = Htod::create(storage.volume(), params, Shape::default(), 1).unwrap();
        table.put(b"key", b"old").unwrap();
        storage.set_plan(FaultPlan { crash_at_change: Some(change), ..FaultPlan::default() });
        let _ = table.put(b"key", b"new");
        let after = storage.crash(CrashKind::ProcessKilled, change).unwrap();
        let (table, _) = Htod::open(after.volume(), params, 1.0).unwrap();
        let value = table.get(b"key").unwrap().unwrap();
        assert!(value == b"old" || value == b"new");
    }
}

#[test]
fn a_table_doubles_above_its_ratio() {
    let shape = Shape { buckets: 4, ratio: 1.5 };
    let disk = Arc::new(MemoryDisk::new());
    let mut table = Htod::create(disk, small(Method::Ts), shape, 1).unwrap();
    for i in 0..7u8 {
        assert_eq!(table.buckets(), 4);
        table.put(&[i], b"value").unwrap();
    }
    assert_eq!(table.buckets(), 8);
    assert!((0..7u8).all(|i| table.get(&[i]).unwrap().is_some()));
}

#[test]
fn a_file_refuses_what_cannot_be() {
    let bad = |params| Pmflf::create(Arc::new(MemoryDisk::new()), params, 1).is_err();
    assert!(bad(Params { grain: 500, ..Params::default() }));
    assert!(bad(Params { max_ql: 0, ..Params::default() }));
    let (mut store, disk) = file(small(Method::Ts));
    let block = put(&mut store, 1);
    assert!(matches!(store.write(block, 500, &[0; 5]), Err(Error::Misuse(_))));
    assert!(matches!(store.block_at(block.at + 512), Err(Error::Misuse(_))));
    disk.write_at(0, b"something").unwrap();
    assert!(matches!(Pmflf::open(disk, small(Method::Ts)), Err(Error::Corrupt(_))));
}
