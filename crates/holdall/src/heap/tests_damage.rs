//! Damaged heap files give errors, never panics or endless loops.

use super::tests::World;
use super::*;
use holdall_core::page_map_node::ENTRIES;
use rand::Rng;

fn world() -> World {
    let mut w = World::new(4096, Policy { cache_pages: 3, utilization: 87 }, 1);
    for _ in 0..400 {
        w.insert(100..400, None);
    }
    for _ in 0..100 {
        w.delete();
    }
    w.verify();
    w
}

#[test]
fn damaged_bodies_give_errors_and_end() {
    let mut w = world();
    let live: Vec<_> = w.pages.live().into_iter().collect();
    let mut caught = 0;
    for round in 0..3000 {
        let mut bad = w.pages.clone();
        let no = live[w.rng.random_range(0..live.len())];
        let kind = if bad.page(no, PageKind::PageMap).is_ok() {
            PageKind::PageMap
        } else {
            PageKind::Heap
        };
        let Ok(body) = bad.page_mut(no, kind) else { continue };
        for _ in 0..w.rng.random_range(1..4) {
            let end = if round % 2 == 0 { ENTRIES + 8 } else { 120 };
            body[w.rng.random_range(24..end)] = w.rng.random();
        }
        let ok = w.file.check(&bad, &mut |_| Ok(()), &mut |_, _| Ok(())).is_ok();
        caught += usize::from(!ok);
        let (mut file, mut placement) = (w.file, w.placement.clone());
        for _ in 0..5 {
            let loc = w.locs[w.rng.random_range(0..w.locs.len())];
            let len = w.rng.random_range(1..800);
            let _ = HeapFile::get(&bad, loc);
            let _ = file.insert(&mut bad, &mut placement, &vec![1; len], Some(loc.page));
            let _ = file.insert(&mut bad, &mut placement, &vec![2; len], None);
            let _ = file.replace(&mut bad, &mut placement, loc, &vec![3; len]);
            let _ = file.delete(&mut bad, &mut placement, loc);
        }
        let _ = file.flush(&mut bad, &mut placement);
        assert!(file.iter(&bad).count() < 5000);
        let _ = file.drop_pages(&mut bad, 1000);
    }
    assert!(caught > 1000, "{caught}");
}

/// A check finds each class that promises too much, each wrong sum and each wrong owner.
#[test]
fn check_finds_wrong_classes_sums_and_owners() {
    let w = world();
    let fails = |file: &HeapFile, pages: &holdall_core::pages::MemPages| {
        file.check(pages, &mut |_| Ok(()), &mut |_, _| Ok(())).is_err()
    };
    for change in 0..3 {
        let mut file = w.file;
        match change {
            0 => file.records += 1,
            1 => file.used -= 1,
            _ => file.formatted += 1,
        }
        assert!(fails(&file, &w.pages), "sum {change}");
    }
    assert!(fails(&HeapFile { owner: 43, ..w.file }, &w.pages));
    for index in 0..5 {
        let (mut pages, mut file) = (w.pages.clone(), w.file);
        let page = w.file.map.get(&pages, index).unwrap().unwrap();
        let wrong = if page.1 == 14 { 13 } else { page.1.max(1) + 1 };
        file.map.set_class(&mut pages, index, wrong).unwrap();
        assert!(fails(&file, &pages), "class {wrong} of {page:?}");
        file.map.set_class(&mut pages, index, 0).unwrap();
        assert!(!fails(&file, &pages), "class 0 is always allowed");
    }
}

/// Deletes give back what is not theirs only after the page has been identified.
#[test]
fn a_foreign_location_changes_nothing() {
    let mut w = world();
    let mut other = HeapFile::new(7);
    let loc = w.locs[0];
    let mut placement = Placement::default();
    assert!(other.delete(&mut w.pages, &mut placement, loc).unwrap_err().is_corrupt());
    assert!(other.replace(&mut w.pages, &mut placement, loc, &[1]).unwrap_err().is_corrupt());
    let away = other.insert(&mut w.pages, &mut placement, &[1], Some(loc.page)).unwrap();
    assert_ne!(away.page, loc.page);
    let gone = Location { slot: u16::MAX, ..loc };
    assert!(HeapFile::get(&w.pages, gone).unwrap_err().is_corrupt());
}
