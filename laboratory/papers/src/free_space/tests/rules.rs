//! Each rule of the paper by script: a few pages, a few objects, and the page that must take
//! the next. `crate::mutation` breaks the rules one by one; each breakage fails a test here.

use crate::free_space::algorithm::{Eviction, Kind};
use crate::free_space::heap_file::{HeapFile, Options, Release, Rid, TxId};
use holdall_io::MemoryDisk;
use std::sync::Arc;

/// 940 usable bytes; buckets begin at 0, 7, 14, 29, 59, 118, 209, 301, 392, 483, 574, ...
fn open(kind: Kind, release: Release) -> HeapFile {
    let options = Options { page_size: 1024, pool_pages: 40, max_pages: 4000, release };
    HeapFile::open(Arc::new(MemoryDisk::new()), options, kind).unwrap()
}

fn put(file: &mut HeapFile, len: usize) -> u32 {
    let tx = file.begin().unwrap();
    let rid = file.create(tx, &vec![1; len]).unwrap();
    file.commit(tx).unwrap();
    rid.page
}

fn create(file: &mut HeapFile, tx: TxId, len: usize) -> u32 {
    file.create(tx, &vec![1; len]).unwrap().page
}

fn delete(file: &mut HeapFile, rid: Rid) {
    let tx = file.begin().unwrap();
    file.delete(tx, rid).unwrap();
    file.commit(tx).unwrap();
}

/// Pages with an object of 500 bytes and one of 430 each, 2 bytes free; the objects by page.
fn full(pages: u32, release: Release) -> (HeapFile, Vec<[Rid; 2]>) {
    let mut file = open(Kind::Bf, release);
    let tx = file.begin().unwrap();
    let mut objects = Vec::new();
    for page in 0..pages {
        let both = [500, 430].map(|len| file.create(tx, &vec![1; len]).unwrap());
        assert_eq!(both.map(|rid| rid.page), [page, page]);
        objects.push(both);
    }
    file.commit(tx).unwrap();
    (file, objects)
}

/// The same with holes of 502 bytes (bucket 9) on some pages, met by `kind` for the first time.
fn holes(pages: u32, holes: &[usize], kind: Kind) -> (HeapFile, Vec<[Rid; 2]>) {
    let (mut file, objects) = full(pages, Release::Lazy);
    holes.iter().for_each(|&page| delete(&mut file, objects[page][0]));
    file.switch(kind).unwrap();
    (file, objects)
}

/// Entries looked at and searches made.
fn looks(file: &HeapFile) -> (u64, u64) {
    let looks = file.counters().looks;
    (looks.entries, looks.searches)
}

#[test]
fn only_pages_that_guarantee_the_room() {
    for kind in [Kind::Ff, Kind::Nf, Kind::NfH, Kind::NfWh] {
        // 502 bytes are free on page 3; its bucket guarantees 483.
        let (mut file, _) = holes(10, &[3], kind);
        assert_eq!(put(&mut file, 496), 10, "{}", kind.name());
        assert_eq!(put(&mut file, 479), 3, "{}", kind.name());
        assert_eq!(file.counters().misled, 0);
    }
}

#[test]
fn append_only_knows_the_pages_most_recently_added() {
    let mut file = open(Kind::Ao(2), Release::Lazy);
    assert_eq!([500, 930, 930].map(|len| put(&mut file, len)), [0, 1, 2]);
    // Page 0 has room, but two pages were added since.
    assert_eq!(put(&mut file, 300), 3);
    assert_eq!(put(&mut file, 200), 3);
    assert_eq!([put(&mut file, 600), put(&mut file, 150)], [4, 4]);
    assert_eq!(put(&mut file, 300), 3);
    assert_eq!(looks(&file), (0, 0));
    let other = crate::free_space::algorithm::CacheOptions::HY;
    assert_eq!(other.eviction, Eviction::Fullest);
    let mut file = open(Kind::AoWith(2, other, "the fullest page leaves"), Release::Lazy);
    assert_eq!([500, 930, 930, 300].map(|len| put(&mut file, len)), [0, 1, 2, 0]);
}

#[test]
fn append_only_knows_free_bytes_and_the_hybrid_buckets() {
    // 436 bytes are free on page 0; its bucket guarantees 392.
    for (kind, page) in [(Kind::Ao(1), 0), (Kind::Hy(1, 0.875), 1)] {
        let mut file = open(kind, Release::Lazy);
        assert_eq!([500, 430].map(|len| put(&mut file, len)), [0, page], "{}", kind.name());
    }
}

#[test]
fn append_only_never_looks_again_at_a_page_that_left() {
    let mut file = open(Kind::Ao(2), Release::Lazy);
    let tx = file.begin().unwrap();
    let rids: Vec<Rid> = (0..4).map(|_| file.create(tx, &[1; 930]).unwrap()).collect();
    file.commit(tx).unwrap();
    delete(&mut file, rids[0]);
    assert_eq!(put(&mut file, 600), 4);
    delete(&mut file, rids[3]);
    assert_eq!(put(&mut file, 400), 3, "still one of the two");
}

#[test]
fn first_fit_begins_at_the_beginning() {
    let (mut file, _) = holes(10, &[3, 6], Kind::Ff);
    assert_eq!((put(&mut file, 300), looks(&file)), (3, (4, 1)));
    assert_eq!((put(&mut file, 300), looks(&file)), (6, (11, 2)));
    assert_eq!((put(&mut file, 300), looks(&file)), (10, (21, 3)));
}

#[test]
fn first_fit_of_db2_goes_back_for_smaller_objects_only() {
    let (mut file, _) = holes(10, &[3, 6], Kind::FfDb2);
    assert_eq!((put(&mut file, 300), looks(&file).0), (3, 4));
    assert_eq!((put(&mut file, 300), looks(&file).0), (6, 4 + 4), "from page 3 on");
    assert_eq!((put(&mut file, 100), looks(&file).0), (3, 8 + 4), "smaller: from page 0 on");
    assert_eq!((put(&mut file, 110), looks(&file).0), (6, 12 + 4), "from page 3 on");
}

#[test]
fn next_fit_goes_on_from_the_page_last_used_and_round() {
    let (mut file, objects) = holes(10, &[2, 6, 8], Kind::Nf);
    assert_eq!((put(&mut file, 300), looks(&file).0), (2, 3));
    assert_eq!((put(&mut file, 300), looks(&file).0), (6, 3 + 5));
    delete(&mut file, objects[1][0]);
    assert_eq!((put(&mut file, 300), looks(&file).0), (8, 8 + 3));
    assert_eq!((put(&mut file, 300), looks(&file).0), (1, 11 + 4));
    assert_eq!((put(&mut file, 300), looks(&file).0), (10, 15 + 10), "a search that must fail");
}

#[test]
fn the_histogram_spares_searches_that_must_fail() {
    for kind in [Kind::NfH, Kind::NfWh] {
        let (mut file, _) = holes(10, &[2], kind);
        assert_eq!((put(&mut file, 800), looks(&file)), (10, (0, 0)), "{}", kind.name());
        assert_eq!((put(&mut file, 300), looks(&file)), (2, (4, 1)), "{}", kind.name());
    }
}

#[test]
fn a_known_witness_spares_the_search_and_is_forgotten_when_it_moves() {
    let (mut file, objects) = holes(10, &[], Kind::NfWh);
    delete(&mut file, objects[3][0]);
    assert_eq!((put(&mut file, 300), looks(&file)), (3, (0, 0)));
    delete(&mut file, objects[6][0]);
    assert_eq!((put(&mut file, 300), looks(&file)), (6, (0, 0)));
    assert_eq!(file.counters().misled, 0);
    // An empty page that is added is a witness too.
    assert_eq!([put(&mut file, 700), put(&mut file, 200)], [10, 10]);
}

#[test]
fn a_search_picks_up_witnesses() {
    let (mut file, objects) = full(10, Release::Lazy);
    delete(&mut file, objects[2][1]); // bucket 8
    delete(&mut file, objects[5][0]); // bucket 9
    file.switch(Kind::NfWh).unwrap();
    assert_eq!((put(&mut file, 440), looks(&file)), (5, (6, 1)));
    assert_eq!((put(&mut file, 380), looks(&file)), (2, (6, 1)));
}

#[test]
fn the_cursor_is_the_page_last_used_on_a_witness_too() {
    let after = |kind: Kind| {
        let (mut file, objects) = holes(10, &[], kind);
        [3, 6, 8].iter().for_each(|&page: &usize| delete(&mut file, objects[page][0]));
        assert_eq!((put(&mut file, 440), looks(&file).0), (3, 0), "one witness to a bucket");
        assert_eq!(put(&mut file, 440), 6);
        looks(&file).0
    };
    assert_eq!(after(Kind::NfWh), 4, "pages 3 to 6");
    assert_eq!(after(Kind::NfWhSearches), 7, "pages 0 to 6");
}

#[test]
fn best_fit_takes_the_fullest_page_that_holds_it() {
    let (mut file, objects) = full(10, Release::Lazy);
    delete(&mut file, objects[2][0]); // 502 bytes
    delete(&mut file, objects[5][1]); // 432 bytes
    assert_eq!([300, 450, 300].map(|len| put(&mut file, len)), [5, 2, 10]);
    file.switch(Kind::Bf).unwrap();
    assert_eq!(put(&mut file, 300), 10);
    assert_eq!(looks(&file), (0, 0));
}

const HY: Kind = Kind::Hy(2, 0.875);

#[test]
fn the_hybrid_does_not_search_a_dense_file() {
    let (mut file, _) = holes(20, &[3], HY);
    assert_eq!((put(&mut file, 300), looks(&file)), (20, (0, 0)));
    let (mut file, _) = holes(20, &[3, 5, 7, 9, 11, 13], HY);
    assert_eq!((put(&mut file, 300), looks(&file)), (3, (4, 1)), "below u it does");
}

#[test]
fn the_hybrid_considers_only_pages_emptier_than_u() {
    let mut file = open(Kind::Bf, Release::Lazy);
    let tx = file.begin().unwrap();
    let mut last = Vec::new();
    // 100 bytes are free on page 1: room for an object, but it is 89 % full.
    for [a, b] in [[500, 430], [500, 332], [500, 430], [500, 430]] {
        last.push([a, b].map(|len| file.create(tx, &vec![1; len]).unwrap()));
    }
    file.commit(tx).unwrap();
    delete(&mut file, last[3][0]);
    file.switch(HY).unwrap();
    assert_eq!(put(&mut file, 50), 3);
    file.switch(Kind::NfH).unwrap();
    assert_eq!(put(&mut file, 50), 1);
}

#[test]
fn the_fullest_page_leaves_the_hybrids_cache() {
    let mut file = open(HY, Release::Lazy);
    assert_eq!([500, 930, 930, 300].map(|len| put(&mut file, len)), [0, 1, 2, 0]);
    assert_eq!(looks(&file), (0, 0));
}

#[test]
fn a_deletion_puts_its_page_into_the_hybrids_cache() {
    let (mut file, objects) = holes(20, &[], HY);
    delete(&mut file, objects[3][0]);
    assert_eq!((put(&mut file, 300), looks(&file)), (3, (0, 0)));
}

#[test]
fn a_page_refused_for_reserved_space_leaves_the_hybrids_cache() {
    let (mut file, objects) = holes(20, &[], HY);
    let (a, b) = (file.begin().unwrap(), file.begin().unwrap());
    file.delete(a, objects[3][0]).unwrap();
    assert_eq!([create(&mut file, b, 300), create(&mut file, b, 300)], [20, 20]);
    assert_eq!(file.counters().collisions, 1);
}

#[test]
fn reserved_space_is_its_transactions_alone() {
    for kind in [Kind::Bf, Kind::Ff, Kind::NfWh, HY] {
        let (mut file, objects) = holes(20, &[], kind);
        let (a, b) = (file.begin().unwrap(), file.begin().unwrap());
        file.delete(a, objects[3][0]).unwrap();
        // The inventory hears of it at once, and misleads who may not use it.
        assert_eq!(create(&mut file, b, 300), 20, "{}", kind.name());
        assert_eq!(file.counters().collisions, 1, "{}", kind.name());
        if kind != HY && kind != Kind::NfWh {
            assert_eq!(create(&mut file, a, 400), 3, "{}", kind.name());
        }
        file.abort(a).unwrap();
        assert_eq!(file.read(objects[3][0]).unwrap(), Some(&[1; 500][..]));
    }
}

#[test]
fn eager_release_tells_at_commit() {
    let (mut file, objects) = full(20, Release::Eager);
    file.switch(Kind::Ff).unwrap();
    let (a, b) = (file.begin().unwrap(), file.begin().unwrap());
    file.delete(a, objects[3][0]).unwrap();
    assert_eq!(create(&mut file, b, 300), 20);
    assert_eq!(file.counters().collisions, 0);
    file.commit(a).unwrap();
    assert_eq!(create(&mut file, b, 300), 3);
}
