//! The cost model's closed forms, and the experiments as a whole.

use std::collections::HashSet;

use holdall_testkit::CostModel;

use super::runs::{OBJECT, build, build_and_scan, in_memory, scan};
use super::store::Config;
use super::technique::{LargeObject, Technique};

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
    assert_eq!(read(object(Technique::Starburst, 256 * 1024).as_mut(), 0, 10 * 4096), 73.0);
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

#[test]
fn experiments_have_names_of_their_own() {
    let all = (super::PAPER.experiments)();
    let ids: HashSet<_> = all.iter().map(|e| e.id()).collect();
    assert_eq!(ids.len(), all.len());
    for id in ["biliris-5", "biliris-12", "biliris-table2", "biliris-modern", "biliris-eos-mix"] {
        assert!(ids.contains(id), "{id}");
    }
}
