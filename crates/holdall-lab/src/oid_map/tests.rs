//! Each technique against a map in memory, and the rules of each.

use std::collections::HashMap;
use std::sync::Arc;

use holdall_io::{Disk, MemoryDisk};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::btree::{BTree, Split};
use super::direct::{Direct, Placement, SLOTS};
use super::hash::{CAPACITY, Control, LinearHash};
use super::mapping::{Mapping, Place};
use super::oid::{Handle, Oid};

type Open = fn(Arc<dyn Disk>) -> Box<dyn Mapping>;

const ALL: [Open; 6] = [
    |disk| Box::new(LinearHash::open(disk, 30, 3, Control::Collision).unwrap()),
    |disk| Box::new(LinearHash::open(disk, 30, 1, Control::Load(0.8)).unwrap()),
    |disk| Box::new(BTree::open(disk, 30, Split::Tuned).unwrap()),
    |disk| Box::new(BTree::open(disk, 30, Split::Half).unwrap()),
    |disk| Box::new(Direct::open(disk, 30, Placement::Linear).unwrap()),
    |disk| Box::new(Direct::open(disk, 30, Placement::Matrix).unwrap()),
];

#[test]
fn random_use_equals_a_map_and_no_oid_comes_again() {
    for open in ALL {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut mapping = open(disk.clone());
        let mut rng = SmallRng::seed_from_u64(1);
        let mut model: HashMap<Oid, Option<Handle>> = HashMap::new();
        let mut given: Vec<Oid> = Vec::new();
        for turn in 0..20_000_usize {
            let some = (!given.is_empty()).then(|| given[rng.random_range(0..given.len())]);
            match (rng.random_range(0..10), some) {
                (0..5, _) | (_, None) => {
                    let near = some.filter(|_| rng.random_bool(0.9));
                    let oid = mapping
                        .create(Place { near, slot: (turn % 20) as u16 }, Handle::of(turn))
                        .unwrap();
                    assert!(model.insert(oid, Some(Handle::of(turn))).is_none(), "{oid:?} again");
                    given.push(oid);
                }
                (5..8, Some(oid)) => {
                    let was = model.insert(oid, None).flatten().is_some();
                    assert_eq!(mapping.remove(oid).unwrap(), was);
                }
                (_, Some(oid)) => {
                    let found = mapping.update(oid, Handle::of(turn * 7)).unwrap();
                    assert_eq!(found, model[&oid].is_some());
                    if found {
                        model.insert(oid, Some(Handle::of(turn * 7)));
                    }
                }
            }
            if turn % 5000 == 4999 {
                mapping.flush().unwrap();
                mapping = open(disk.clone());
            }
        }
        for (oid, handle) in &model {
            assert_eq!(mapping.lookup(*oid).unwrap(), *handle);
        }
    }
}

#[test]
fn a_tuned_table_has_no_overflow_and_one_collision_splits_one_bucket() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let first = LinearHash::tuned(8000, 1.0);
    let mut table = LinearHash::open(disk, 1000, first, Control::Collision).unwrap();
    for n in 0..first as usize * CAPACITY {
        table.create(Place::default(), Handle::of(n)).unwrap();
    }
    assert_eq!((table.buckets(), table.overflow_pages()), (first, 0));
    table.create(Place::default(), Handle::of(1)).unwrap();
    assert_eq!(table.buckets(), first + 1);
}

#[test]
fn ascending_oids_fill_leaves_by_the_tuned_split_and_halve_them_by_the_other() {
    for (rule, least, most) in [(Split::Tuned, 96, 101), (Split::Half, 45, 55)] {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut tree = BTree::open(disk, 100, rule).unwrap();
        let mut near = None;
        for n in 0..20_000 {
            near = Some(tree.create(Place { near, slot: 0 }, Handle::of(n)).unwrap());
        }
        let leaves = tree.leaves().unwrap();
        let mean = leaves.iter().sum::<usize>() / leaves.len();
        assert!((least..=most).contains(&mean), "{rule:?}: {mean}");
    }
}

fn linear() -> Direct {
    Direct::open(Arc::new(MemoryDisk::new()), 30, Placement::Linear).unwrap()
}

#[test]
fn an_oid_of_a_slot_that_is_used_again_is_always_detected() {
    let mut map = linear();
    let mut live: Vec<_> =
        (0..340).map(|n| map.create(Place::default(), Handle::of(n)).unwrap()).collect();
    let mut rng = SmallRng::seed_from_u64(2);
    let mut gone = Vec::new();
    for turn in 0..200_000 {
        let at = rng.random_range(0..live.len());
        let (old, handle) = (live[at], Handle::of(turn));
        assert!(map.remove(old).unwrap());
        live[at] = map.create(Place::default(), handle).unwrap();
        assert!(live[at] != old && map.lookup(old).unwrap().is_none());
        assert!(!map.remove(old).unwrap() && !map.update(old, handle).unwrap());
        assert_eq!(map.lookup(live[at]).unwrap(), Some(handle));
        gone.push(old);
    }
    assert!(gone.into_iter().all(|old| map.lookup(old).unwrap().is_none()));
    assert_eq!(map.used(), 4, "two handle pages, used again and again");
}

#[test]
fn a_slot_whose_unique_field_has_run_out_is_not_used_again() {
    let mut map = linear();
    let first = map.create(Place::default(), Handle::of(0)).unwrap();
    assert!(map.remove(first).unwrap());
    map.age(0, 0, u32::MAX - 1);
    let last = map.create(Place::default(), Handle::of(1)).unwrap();
    assert_eq!((last.slot(), last.unique()), (0, u32::MAX - 1));
    assert!(map.remove(last).unwrap());
    let slots = (0..SLOTS).map(|n| map.create(Place::default(), Handle::of(n)).unwrap());
    assert!(slots.into_iter().all(|oid| (oid.page(), oid.slot()) != (0, 0)));
    assert_eq!(map.lookup(Oid::direct(0, 0, u32::MAX)).unwrap(), None);
}

#[test]
fn a_matrix_separates_the_slots_of_a_data_page_and_any_lookup_is_one_fault_at_most() {
    for (placement, pages) in [(Placement::Linear, 1..=2), (Placement::Matrix, 20..=20)] {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut map = Direct::open(disk, 30, placement).unwrap();
        let oids: Vec<_> = (0..40_000)
            .map(|n| {
                let place = Place { near: None, slot: Handle::of(n).slot };
                map.create(place, Handle::of(n)).unwrap()
            })
            .collect();
        for page in oids.chunks(20) {
            let mut numbers: Vec<_> = page.iter().map(|oid| oid.page()).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert!(pages.contains(&numbers.len()), "{placement:?}: {numbers:?}");
        }
        for n in (0..oids.len()).step_by(7) {
            let before = map.pages().faults();
            assert_eq!(map.lookup(oids[n]).unwrap(), Some(Handle::of(n)));
            assert!(map.pages().faults() <= before + 1);
        }
    }
}
