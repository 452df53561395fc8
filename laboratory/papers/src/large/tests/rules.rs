//! Each rule of the paper by script, in accesses and pages. `crate::mutation` breaks the rules
//! one by one; each breakage fails a test named `rules`.

use std::sync::Arc;

use holdall_io::{Disk, MemoryDisk};
use holdall_testkit::{CostModel, DiskStats};

use crate::large::runs::{MIB, OBJECT, build, build_and_scan, in_memory, scan, sparse};
use crate::large::store::{Area, Config};
use crate::large::technique::{LargeObject, Technique};

fn cost(object: &mut dyn LargeObject, act: impl FnOnce(&mut dyn LargeObject)) -> f64 {
    let before = object.stats();
    act(object);
    CostModel::default().time_ms(&(object.stats() - before))
}

fn object(technique: Technique, size: u64) -> Box<dyn LargeObject> {
    let mut object = in_memory(technique, Config::default()).unwrap();
    build(object.as_mut(), size, 64 * 1024).unwrap();
    object
}

#[test]
fn reads_cost_what_the_paper_says() {
    let read = |object: &mut dyn LargeObject, at, len| {
        cost(object, |o| o.read(at, &mut vec![0; len]).unwrap())
    };
    for technique in [Technique::Starburst, Technique::Eos(4), Technique::Esm(4)] {
        // Three pages in one access, and not again while they are in the pool.
        let mut one = object(technique, 256 * 1024);
        assert_eq!(read(one.as_mut(), 0, 3 * 4096), 45.0);
        assert_eq!(read(one.as_mut(), 0, 3 * 4096), 0.0);
    }
    // The same three in three accesses.
    assert_eq!(read(object(Technique::Esm(1), 256 * 1024).as_mut(), 0, 3 * 4096), 111.0);
    // Ten pages that do not meet borders: one, eight and one.
    let steps = read(object(Technique::Starburst, 256 * 1024).as_mut(), 100, 9 * 4096);
    assert_eq!(steps, 3.0 * 33.0 + 40.0);
    // Ten that do: one access.
    let mut ten = object(Technique::Starburst, 256 * 1024);
    assert_eq!(read(ten.as_mut(), 0, 10 * 4096), 73.0);
    // More than four pages are not kept.
    assert_eq!(read(ten.as_mut(), 0, 10 * 4096), 73.0);
}

#[test]
fn an_update_shadows_and_leaves_the_root() {
    // A root alone: no index page is written, whatever the update.
    let mut eos = object(Technique::Eos(1), OBJECT);
    let before = eos.stats();
    eos.insert(OBJECT / 2 + 100, &[7; 100]).unwrap();
    let done = eos.stats() - before;
    assert_eq!((done.reads, done.pages_read, done.writes), (1, 1, 1));
    // With index pages below it one is written, on a page of its own.
    let mut esm = object(Technique::Esm(1), OBJECT);
    let before = esm.stats();
    esm.replace(OBJECT / 2 + 100, &[7; 100]).unwrap();
    let done = esm.stats() - before;
    assert_eq!((done.writes, done.pages_written), (2, 2));
    esm.check().unwrap();
}

#[test]
fn starburst_copies_from_the_change_on() {
    let mut field = object(Technique::Starburst, OBJECT);
    // The first makes one segment of those that doubled.
    field.insert(OBJECT / 2, &[1; 10]).unwrap();
    let ms = cost(field.as_mut(), |o| o.insert(OBJECT - 10, &[1; 10]).unwrap());
    // All of it: 20 reads and 20 writes of 512 KiB, and a few pages at the place.
    assert!((21_800.0..22_100.0).contains(&ms), "{ms}");
    let ms = cost(field.as_mut(), |o| scan(o, 512 * 1024).unwrap());
    assert!((10_890.0..10_950.0).contains(&ms), "{ms}");
}

/// Accesses of an act.
fn accesses(object: &mut dyn LargeObject, act: impl FnOnce(&mut dyn LargeObject)) -> DiskStats {
    let before = object.stats();
    act(object);
    object.check().unwrap();
    object.stats() - before
}

/// An empty object with its two disks, leaves first.
fn on_disks(technique: Technique) -> (Box<dyn LargeObject>, [Arc<MemoryDisk>; 2]) {
    let disks = [Arc::new(MemoryDisk::new()), Arc::new(MemoryDisk::new())];
    let [leaf, index] = disks.clone();
    (technique.create(Config::default(), leaf, index).unwrap(), disks)
}

/// Pages of a disk that an act changes.
fn changed(disk: &MemoryDisk, act: impl FnOnce()) -> Vec<usize> {
    let bytes = |len: u64| {
        let mut all = vec![0; len as usize];
        disk.read_at(0, &mut all).unwrap();
        all
    };
    let mut before = bytes(disk.len().unwrap());
    act();
    let after = bytes(disk.len().unwrap());
    before.resize(after.len(), 0);
    let pages = before.chunks(4096).zip(after.chunks(4096)).enumerate();
    pages.filter(|(_, (old, new))| old != new).map(|(page, _)| page).collect()
}

#[test]
fn a_space_that_cannot_serve_is_not_visited() {
    let mut area = Area::new(Arc::new(MemoryDisk::new()), CostModel::default());
    let fours: Vec<u64> = (0..4064).map(|_| area.take(4).unwrap()).collect();
    assert_eq!((area.spaces(), area.visits()), (1, 4064));
    // The space is full, which the visit that took its last pages has told.
    let next = area.take(4).unwrap();
    assert_eq!((area.spaces(), area.most_visits()), (2, 1));
    assert!(next > 16_256);
    // Blocks of four in the first space: six pages do not fit in one, which needs no visit.
    fours.iter().step_by(2).for_each(|&page| area.free_later(page, 4));
    area.commit().unwrap();
    for _ in 0..3 {
        assert!(area.take(6).unwrap() > 16_256);
    }
    assert_eq!(area.most_visits(), 1);
    assert_eq!(area.take(3).unwrap(), 1, "if it does fit the first space serves");
    assert!(area.take(0).is_err() && area.take(8193).is_err());
}

#[test]
fn what_overwrites_useful_bytes_goes_to_new_pages() {
    let (mut object, [leaf, index]) = on_disks(Technique::Esm(1));
    build(object.as_mut(), OBJECT / 2, 64 * 1024).unwrap();
    // Each at another leaf under one index page, so that no old page comes back as it was.
    let mut at = OBJECT / 4 + 100;
    let mut replace = |disk: &MemoryDisk| {
        at += 8192;
        changed(disk, || object.replace(at, &[1; 100]).unwrap())
    };
    for disk in [&leaf, &index] {
        let (first, second) = (replace(disk), replace(disk));
        assert_eq!((first.len(), second.len()), (1, 1));
        assert_ne!(first, second, "the page in use was written over");
    }
    // More at the leaf's end than it holds: its first bytes go to new pages too.
    let inside = changed(&leaf, || object.insert(OBJECT / 4 + 200, &[3; 4000]).unwrap());
    let again = changed(&leaf, || object.insert(OBJECT / 4 + 200, &[4; 4000]).unwrap());
    assert!(inside.iter().all(|page| !again.contains(page)), "{inside:?} {again:?}");
    object.check().unwrap();
}

#[test]
fn appended_bytes_go_behind_the_last_in_place() {
    for technique in [Technique::Esm(4), Technique::Eos(4), Technique::Starburst] {
        let (mut object, [leaf, _]) = on_disks(technique);
        let first = changed(&leaf, || object.append(&[1; 100]).unwrap());
        let second = changed(&leaf, || object.append(&[2; 100]).unwrap());
        assert_eq!(first, second, "{}", technique.name());
        assert_eq!(object.shape().unwrap().segments, 1);
    }
    // ESM's leaf that overflows gets bytes to its half in place.
    let (mut object, [leaf, _]) = on_disks(Technique::Esm(1));
    let first = changed(&leaf, || object.append(&[1; 2500]).unwrap());
    let second = changed(&leaf, || object.append(&[2; 3000]).unwrap());
    assert!(second.len() == 2 && second.contains(&first[0]), "{first:?} {second:?}");
}

#[test]
fn esm_takes_a_neighbour_where_that_saves_a_leaf() {
    let three = |technique: Technique| {
        let mut object = in_memory(technique, Config::default()).unwrap();
        // Leaves of 4096, 3072 and 3072 bytes.
        object.append(&[1; 10 * 1024]).unwrap();
        object.insert(4096 + 100, &[2; 2000]).unwrap();
        object.check().unwrap();
        object.shape().unwrap().segments
    };
    assert_eq!(three(Technique::Esm(1)), 3);
    assert_eq!(three(Technique::EsmBasic(1)), 4);
}

#[test]
fn esm_spreads_evenly_and_writes_only_pages_with_bytes() {
    let mut object = in_memory(Technique::Esm(4), Config::default()).unwrap();
    object.append(&[1; 16 * 1024]).unwrap();
    let done = accesses(object.as_mut(), |o| o.insert(8000, &[2; 8192]).unwrap());
    // 24 KiB in two leaves of four pages: three pages of each.
    assert_eq!((done.writes, done.pages_written), (2, 6));
    assert_eq!(object.shape().unwrap().leaf_pages, 8);
}

#[test]
fn esm_appends_leave_all_but_two_leaves_full() {
    let mut object = in_memory(Technique::Esm(1), Config::default()).unwrap();
    object.append(&[1; 10 * 1024]).unwrap();
    // The first leaf is full, the last has room for 1024 bytes more.
    let first = accesses(object.as_mut(), |o| o.read(0, &mut [0; 4096]).unwrap());
    assert_eq!(first.reads, 1);
    let done = accesses(object.as_mut(), |o| o.append(&[1; 1024]).unwrap());
    assert_eq!((done.writes, object.shape().unwrap().segments), (1, 3));
}

#[test]
fn esm_leaves_are_half_full_at_least() {
    for technique in [Technique::Esm(1), Technique::Esm(4), Technique::EsmBasic(4)] {
        let mut object = object(technique, 256 * 1024);
        for (at, len) in [(5000, 3000), (30_000, 40_000), (0, 9000), (100_000, 15_000)] {
            object.delete(at, len).unwrap();
            object.check().unwrap();
        }
    }
}

#[test]
fn starburst_doubles_its_segments_and_trims_the_last() {
    for technique in [Technique::Starburst, Technique::Eos(1)] {
        let mut object = in_memory(technique, Config::default()).unwrap();
        for _ in 0..6 {
            object.append(&[1; 4096]).unwrap();
        }
        // 1, 2 and 4 pages, of which 3 are used.
        let shape = object.shape().unwrap();
        assert_eq!((shape.segments, shape.leaf_pages), (3, 7), "{}", technique.name());
        object.finish().unwrap();
        object.check().unwrap();
        assert_eq!(object.shape().unwrap().leaf_pages, 6, "{}", technique.name());
    }
}

#[test]
fn starburst_leaves_segments_before_the_change() {
    let mut field = sparse(Technique::Starburst, Config::default(), 100 * MIB).unwrap();
    let done = accesses(field.as_mut(), |o| o.insert(99 * MIB, &[0; 10]).unwrap());
    // Of 32, 32, 32 and 4 MiB the last is copied, 512 KiB at a time.
    assert_eq!((done.writes, done.pages_written), (9, 1025));
}

#[test]
fn eos_keeps_to_its_threshold() {
    let insert = |threshold, at| {
        let mut eos = object(Technique::Eos(threshold), 256 * 1024);
        accesses(eos.as_mut(), |o| o.insert(at, &[7; 100]).unwrap())
    };
    // With T = 1 the page of the change is written and no other.
    assert_eq!(insert(1, 100_000).pages_written, 1);
    // 100 bytes may not stay beside others in less than T pages if one segment holds both.
    for threshold in [4, 16] {
        let done = insert(threshold, 100_000);
        assert_eq!(done.writes, 1);
        assert!(done.pages_written >= u64::from(threshold), "{}", done.pages_written);
        assert!(done.pages_written < 2 * u64::from(threshold), "{}", done.pages_written);
    }
    // New bytes are one segment, however many.
    let mut eos = object(Technique::Eos(4), 256 * 1024);
    let done = accesses(eos.as_mut(), |o| o.insert(100_000, &[7; 100_000]).unwrap());
    assert_eq!(done.writes, 1);
}

/// Pages of leaves and segments.
fn leaves(object: &dyn LargeObject) -> (u64, u64) {
    object.check().unwrap();
    let shape = object.shape().unwrap();
    (shape.leaf_pages, shape.segments)
}

#[test]
fn eos_takes_bytes_along_if_that_saves_a_page() {
    // The 1000 bytes left of the cut and the 2896 right of it fit on one page.
    let mut eos = object(Technique::Eos(1), 64 * 1024);
    let done = accesses(eos.as_mut(), |o| o.delete(8 * 4096 + 1000, 200).unwrap());
    assert_eq!((done.pages_written, leaves(eos.as_ref())), (1, (16, 3)));
    // With 100 more they would not, and stay.
    let mut eos = object(Technique::Eos(1), 64 * 1024);
    let done = accesses(eos.as_mut(), |o| o.insert(8 * 4096 + 100, &[7; 100]).unwrap());
    assert_eq!((done.pages_written, leaves(eos.as_ref())), (1, (17, 3)));
    // The engine moves none.
    let mut engine = object(Technique::EosEngine(1), 64 * 1024);
    engine.delete(8 * 4096 + 1000, 200).unwrap();
    assert_eq!(leaves(engine.as_ref()), (17, 3));
}

#[test]
fn eos_takes_bytes_of_one_neighbour() {
    let mut eos = in_memory(Technique::Eos(1), Config::default()).unwrap();
    for len in [1500, 8100, 1500] {
        let end = eos.size();
        eos.insert(end, &vec![1; len]).unwrap();
    }
    assert_eq!(leaves(eos.as_ref()), (4, 3), "joining any two saves no page");
    // 500 bytes between twice 1500: one page would hold all, but one neighbour goes along.
    eos.delete(1500, 7600).unwrap();
    assert_eq!(leaves(eos.as_ref()), (2, 2));
}

#[test]
fn leaves_whole_or_in_place_as_the_comparison_has_them() {
    let esm = |unit, shadow| {
        let config = Config { unit, shadow, ..Config::default() };
        let mut object = in_memory(Technique::Esm(4), config).unwrap();
        build(object.as_mut(), 64 * 1024, 64 * 1024).unwrap();
        // The second of four leaves gets room.
        object.delete(5 * 4096, 1000).unwrap();
        object
    };
    let read = |unit, shadow| {
        let done = accesses(esm(unit, shadow).as_mut(), |o| o.read(100, &mut [0; 100]).unwrap());
        (done.reads, done.pages_read)
    };
    assert_eq!((read(1, true), read(4, true)), ((1, 1), (1, 4)));
    let written = |unit, shadow| {
        let mut object = esm(unit, shadow);
        let done = accesses(object.as_mut(), |o| o.insert(6 * 4096, &[7; 100]).unwrap());
        (done.writes, done.pages_written)
    };
    // Shadowed the leaf's four pages with useful bytes; in place those from the change on.
    assert_eq!((written(1, true), written(4, true), written(1, false)), ((1, 4), (1, 4), (1, 2)));
}

#[test]
fn building_and_scanning_closed_forms() {
    let model = CostModel::default();
    let esm = build_and_scan(Technique::Esm(1), Config::default(), OBJECT, 4096).unwrap();
    // Each append writes a leaf page, and behind the 507th an index page too.
    let expected = 37.0 * (2560.0 + (2560.0 - 507.0));
    let ours = model.time_ms(&esm.build);
    assert!((ours / expected - 1.0).abs() < 0.003, "{ours} for {expected}");
    let eos = build_and_scan(Technique::Eos(4), Config::default(), OBJECT, 64 * 1024).unwrap();
    assert_eq!(model.time_ms(&eos.build), 160.0 * (33.0 + 64.0));
    assert_eq!(eos.build.pages_written, 2560);
    assert_eq!(eos.build.reads, 0);
}
