//! Each rule of the paper by script. `crate::mutation` breaks the rules one by one; each breakage
//! fails a test here.

use std::sync::Arc;

use holdall_io::{Disk, MemoryDisk};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::oid_map::btree::{BTree, Split};
use crate::oid_map::direct::{Direct, Placement, SLOTS};
use crate::oid_map::hash::{CAPACITY, Control, LinearHash};
use crate::oid_map::mapping::{Mapping, Place};
use crate::oid_map::oid::{Handle, Oid};
use crate::oid_map::pages::Faults;
use crate::oid_map::physical::Objects;

fn disk() -> Arc<dyn Disk> {
    Arc::new(MemoryDisk::new())
}

fn create(map: &mut dyn Mapping, near: Option<Oid>, n: usize) -> Oid {
    map.create(Place { near, slot: (n % 20) as u16 }, Handle::of(n)).unwrap()
}

/// A tree of `n` objects, each near the one before.
fn tree(rule: Split, n: usize) -> (BTree, Vec<Oid>) {
    let mut tree = BTree::open(disk(), 100, rule).unwrap();
    let mut oids = Vec::new();
    (0..n).for_each(|n| oids.push(create(&mut tree, oids.last().copied(), n)));
    (tree, oids)
}

#[test]
fn the_tuned_split_moves_the_last_entry_and_the_other_half_of_them() {
    for (rule, split) in [(Split::Tuned, [101, 1]), (Split::Half, [51, 51])] {
        assert_eq!(tree(rule, 102).0.leaves().unwrap(), split, "{rule:?}");
    }
    let (mut tuned, _) = tree(Split::Tuned, 20_000);
    let leaves = tuned.leaves().unwrap();
    assert!(leaves[..leaves.len() - 1].iter().all(|&n| n >= 96), "{leaves:?}");
}

#[test]
fn a_leaf_keeps_once_what_its_keys_begin_with() {
    let (mut near, _) = tree(Split::Tuned, 200);
    // Numbers of 2^32 each begin anew: eight bytes of their keys are not in common.
    let mut far = BTree::open(disk(), 100, Split::Tuned).unwrap();
    for n in 0..200 {
        create(&mut far, None, n);
    }
    assert_eq!((near.leaves().unwrap()[0], far.leaves().unwrap()[0]), (101, 92));
}

#[test]
fn an_oid_near_another_falls_into_its_leaf() {
    let (mut tree, oids) = tree(Split::Half, 300);
    let pages = tree.used();
    let new = create(&mut tree, Some(oids[299]), 300);
    assert_eq!((new.number(), tree.used()), (oids[299].number() + 1, pages));
}

fn table(buckets: u32, control: Control, n: usize) -> LinearHash {
    let mut table = LinearHash::open(disk(), 1000, buckets, control).unwrap();
    for n in 0..n {
        create(&mut table, None, n);
    }
    table
}

#[test]
fn a_tuned_table_has_no_overflow_and_one_collision_splits_one_bucket() {
    let first = LinearHash::tuned(8000);
    let all = first as usize * CAPACITY;
    let full = table(first, Control::Collision, all);
    assert_eq!((full.buckets(), full.overflow_pages()), (first, 0));
    assert_eq!(table(first, Control::Collision, all + 1).buckets(), first + 1);
}

#[test]
fn load_control_splits_when_the_load_is_exceeded_and_not_before() {
    for (n, buckets) in [(128, 2), (129, 3), (192, 3), (193, 4), (257, 5)] {
        assert_eq!(table(2, Control::Load(0.8), n).buckets(), buckets, "{n} entries");
    }
}

#[test]
fn a_split_moves_the_entries_that_the_next_function_addresses() {
    let mut table = table(2, Control::Collision, 161);
    // Bucket 0 split: numbers divisible by 4 stay, the other even ones are in bucket 2.
    assert_eq!((table.buckets(), table.overflow_pages()), (3, 0));
    for n in 0..161 {
        assert_eq!(table.lookup(Oid::serial(n)).unwrap(), Some(Handle::of(n as usize)));
    }
}

#[test]
fn an_overflow_page_that_becomes_empty_is_used_again() {
    let mut table = table(1, Control::Load(9.0), 2 * CAPACITY + 1);
    assert_eq!(table.overflow_pages(), 2);
    let pages = table.used();
    assert!(table.remove(Oid::serial(2 * CAPACITY as u64)).unwrap());
    assert_eq!((table.overflow_pages(), table.used()), (1, pages));
    create(&mut table, None, 1);
    assert_eq!((table.overflow_pages(), table.used()), (2, pages));
}

fn direct(placement: Placement) -> Direct {
    Direct::open(disk(), 30, placement).unwrap()
}

#[test]
fn an_oid_of_a_slot_that_is_used_again_is_always_detected() {
    let mut map = direct(Placement::Linear);
    let mut live: Vec<_> = (0..340).map(|n| create(&mut map, None, n)).collect();
    let mut rng = SmallRng::seed_from_u64(2);
    let mut gone = Vec::new();
    for turn in 0..200_000 {
        let at = rng.random_range(0..live.len());
        let (old, handle) = (live[at], Handle::of(turn));
        assert!(map.remove(old).unwrap());
        live[at] = create(&mut map, None, turn);
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
    let mut map = direct(Placement::Linear);
    let first = create(&mut map, None, 0);
    assert!(map.remove(first).unwrap());
    map.age(0, 0, u32::MAX - 1);
    let last = create(&mut map, None, 1);
    assert_eq!((last.slot(), last.unique()), (0, u32::MAX - 1));
    assert!(map.remove(last).unwrap());
    let slots = (0..SLOTS).map(|n| create(&mut map, None, n));
    assert!(slots.into_iter().all(|oid| (oid.page(), oid.slot()) != (0, 0)));
    assert_eq!(map.lookup(Oid::direct(0, 0, u32::MAX)).unwrap(), None);
}

#[test]
fn a_matrix_separates_the_slots_of_a_data_page_and_any_lookup_is_one_fault_at_most() {
    for (placement, pages) in [(Placement::Linear, 1..=2), (Placement::Matrix, 20..=20)] {
        let mut map = direct(placement);
        let oids: Vec<_> = (0..40_000).map(|n| create(&mut map, None, n)).collect();
        for page in oids.chunks(20) {
            let mut numbers: Vec<_> = page.iter().map(|oid| oid.page()).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert!(pages.contains(&numbers.len()), "{placement:?}: {numbers:?}");
        }
        if placement == Placement::Matrix {
            assert!(oids.iter().zip(0..).all(|(oid, n)| oid.page() % 20 == n % 20));
        }
        for n in (0..oids.len()).step_by(7) {
            let before = map.pages().faults();
            assert_eq!(map.lookup(oids[n]).unwrap(), Some(Handle::of(n)));
            assert!(map.pages().faults().since(&before).all() <= 1);
        }
    }
}

#[test]
fn linear_placement_puts_a_handle_beside_that_of_a_related_object() {
    let mut map = direct(Placement::Linear);
    let oids: Vec<_> = (0..2 * SLOTS).map(|n| create(&mut map, None, n)).collect();
    assert!(map.remove(oids[0]).unwrap() && map.remove(oids[SLOTS]).unwrap());
    assert_eq!(create(&mut map, Some(oids[1]), 1).page(), 0);
    assert_eq!(create(&mut map, Some(oids[SLOTS + 1]), 1).page(), 1);
}

#[test]
fn the_pages_that_took_new_mappings_stay_in_the_buffer() {
    let mut map = direct(Placement::Linear);
    let oids: Vec<_> = (0..100 * SLOTS).map(|n| create(&mut map, None, n)).collect();
    map.flush().unwrap();
    map.pages().set_buffer(10).unwrap();
    map.pages().set_kept(1);
    let last = create(&mut map, None, 0);
    let before = map.pages().faults();
    for page in 0..50 {
        map.lookup(oids[page * SLOTS]).unwrap();
    }
    map.lookup(last).unwrap();
    let since = map.pages().faults().since(&before);
    assert_eq!(since.to_string(), "50 handle pages read");
}

#[test]
fn the_inner_nodes_above_the_last_leaf_stay_in_the_buffer() {
    let (mut tree, mut oids) = tree(Split::Tuned, 50_000);
    tree.flush().unwrap();
    tree.pages().set_buffer(20).unwrap();
    let kept = 1 + tree.height() as usize;
    tree.pages().set_kept(kept);
    let mut sum = Faults::default();
    for n in 0..400 {
        // Others push out all that does not stay.
        for other in (0..40).map(|k| oids[k * 1000]) {
            tree.lookup(other).unwrap();
        }
        let before = tree.pages().faults();
        oids.push(create(&mut tree, oids.last().copied(), 50_000 + n));
        if n >= 150 {
            sum = sum.and(&tree.pages().faults().since(&before));
        }
    }
    let new = format!("{} leaves new in the file", sum.new_pages());
    assert!(sum.new_pages() >= 2 && sum.to_string() == new, "{sum}");
}

#[test]
fn an_object_that_moves_by_its_physical_oid_leaves_a_forward() {
    for physical in [true, false] {
        let mut objects = Objects::build(disk(), 400, 10).unwrap();
        let places: Vec<_> = (0..400).map(|n| Handle::of(n * 7 % 400)).collect();
        let moved: Vec<_> =
            places.iter().map(|at| objects.relocate(*at, physical).unwrap()).collect();
        assert_eq!(objects.used(), if physical { 40 } else { 21 });
        for (n, at) in moved.iter().enumerate() {
            assert_eq!(objects.read(*at).unwrap(), n * 7 % 400);
            if physical {
                assert_eq!(objects.read(places[n]).unwrap(), n * 7 % 400, "by its forward");
            }
        }
        objects.pages().set_buffer(10).unwrap();
        let before = objects.pages().faults();
        objects.read(places[0]).unwrap();
        assert_eq!(objects.pages().faults().since(&before).all(), if physical { 2 } else { 1 });
    }
}
