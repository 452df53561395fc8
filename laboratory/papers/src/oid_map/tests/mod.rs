//! Each technique against a map in memory, and what the workloads ask for; the paper's rules.

mod rules;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use holdall_io::{Disk, MemoryDisk};
use proptest::prelude::*;

use super::btree::{BTree, Split};
use super::direct::{Direct, Placement};
use super::hash::{Control, LinearHash};
use super::mapping::{Mapping, Place};
use super::oid::{Handle, Oid, PER_PAGE};
use super::workload::{Base, TABLE_2, Technique};

type Open = fn(Arc<dyn Disk>) -> Box<dyn Mapping>;

const ALL: [Open; 6] = [
    |disk| Box::new(LinearHash::open(disk, 30, 3, Control::Collision).unwrap()),
    |disk| Box::new(LinearHash::open(disk, 30, 1, Control::Load(0.8)).unwrap()),
    |disk| Box::new(BTree::open(disk, 30, Split::Tuned).unwrap()),
    |disk| Box::new(BTree::open(disk, 30, Split::Half).unwrap()),
    |disk| Box::new(Direct::open(disk, 30, Placement::Linear).unwrap()),
    |disk| Box::new(Direct::open(disk, 30, Placement::Matrix).unwrap()),
];

/// What is done with a mapping; objects are chosen by number, modulo those there were.
#[derive(Debug, Clone)]
enum Op {
    /// This many objects; near another one, or not.
    Create(usize, Option<usize>),
    /// This many objects from this one on.
    Remove(usize, usize),
    Update(usize),
    Reopen,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1..400_usize, prop::option::weighted(0.9, 0..9999_usize))
            .prop_map(|(n, near)| Op::Create(n, near)),
        3 => (1..300_usize, 0..9999_usize).prop_map(|(n, first)| Op::Remove(n, first)),
        2 => (0..9999_usize).prop_map(Op::Update),
        1 => Just(Op::Reopen),
    ]
}

/// Does `ops`, and says how many objects there were.
fn check(open: Open, ops: &[Op]) -> usize {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut mapping = open(disk.clone());
    let mut model: HashMap<Oid, Option<Handle>> = HashMap::new();
    let mut given: Vec<Oid> = Vec::new();
    for op in ops {
        match *op {
            Op::Create(count, near) => {
                let near = near.filter(|_| !given.is_empty()).map(|n| given[n % given.len()]);
                for n in given.len()..given.len() + count {
                    let slot = (n % PER_PAGE) as u16;
                    let oid = mapping.create(Place { near, slot }, Handle::of(n)).unwrap();
                    assert!(model.insert(oid, Some(Handle::of(n))).is_none(), "{oid:?} again");
                    given.push(oid);
                }
            }
            Op::Remove(count, first) => {
                for n in (first..first + count).filter(|_| !given.is_empty()) {
                    let oid = given[n % given.len()];
                    let was = model.insert(oid, None).flatten().is_some();
                    assert_eq!(mapping.remove(oid).unwrap(), was);
                    assert!(!mapping.update(oid, Handle::of(n)).unwrap());
                }
            }
            Op::Update(n) if !given.is_empty() => {
                let (oid, handle) = (given[n % given.len()], Handle::of(n * 7));
                let there = model[&oid].is_some();
                assert_eq!(mapping.update(oid, handle).unwrap(), there);
                model.insert(oid, there.then_some(handle));
            }
            Op::Update(_) => {}
            Op::Reopen => {
                mapping.flush().unwrap();
                mapping = open(disk.clone());
            }
        }
    }
    for (oid, handle) in &model {
        assert_eq!(mapping.lookup(*oid).unwrap(), *handle);
    }
    given.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_use_equals_a_map_and_no_oid_comes_again(ops in prop::collection::vec(op(), 1..40)) {
        for open in ALL {
            check(open, &ops);
        }
    }
}

#[test]
fn many_splits_deletions_and_openings_equal_a_map() {
    let ops: Vec<Op> = (0..60)
        .flat_map(|n| {
            let near = (n > 0).then_some(n * 331);
            [Op::Create(350, near), Op::Remove(200, n * 577), Op::Update(n * 91), Op::Reopen]
        })
        .collect();
    ALL.into_iter().for_each(|open| assert_eq!(check(open, &ops), 21_000));
}

fn base(objects: usize) -> Base {
    let disk = Arc::new(MemoryDisk::new());
    Base::build(disk, Technique::LinearDirect, objects, 0, 1).unwrap()
}

#[test]
fn sequential_asks_for_the_first_object_of_every_page_in_order() {
    let asked = base(200_000).objects(TABLE_2[0], 1);
    assert!(asked.into_iter().eq((5000..10_000).map(|page| page * PER_PAGE)));
}

#[test]
fn random_asks_for_any_object_of_five_pages_of_any_module() {
    let mut base = base(200_000);
    let (mut pages, mut slots, mut modules) = ([0; 50], [0; PER_PAGE], HashSet::new());
    for _ in 0..4000 {
        let module = base.module(TABLE_2[1]);
        modules.insert(module);
        let asked = base.objects(TABLE_2[1], module);
        let distinct: HashSet<_> = asked.iter().map(|object| object / PER_PAGE).collect();
        assert_eq!((asked.len(), distinct.len()), (5, 5));
        for object in asked {
            pages[object / PER_PAGE - module * 50] += 1;
            slots[object % PER_PAGE] += 1;
        }
    }
    // 400 of each page and 1000 of each slot are expected.
    assert!(pages.iter().all(|n| (300..500).contains(n)), "{pages:?}");
    assert!(slots.iter().all(|n| (850..1150).contains(n)), "{slots:?}");
    assert_eq!(modules.len(), 200);
}

#[test]
fn hot_gives_a_twentieth_of_the_modules_four_fifths_of_the_transactions() {
    let mut base = base(1_000_000);
    let mut counts = vec![0; base.modules(TABLE_2[2])];
    (0..20_000).for_each(|_| counts[base.module(TABLE_2[2])] += 1);
    counts.sort_unstable();
    let (cold, hot) = counts.split_at(95);
    let share = f64::from(hot.iter().sum::<i32>()) / 20_000.0;
    assert!((0.79..0.81).contains(&share), "{share}");
    // 42 of each cold one and 3200 of each hot one are expected.
    assert!(cold[0] > 15 && cold[94] < 75 && hot[0] > 3000 && hot[4] < 3400, "{counts:?}");
    let asked: HashSet<_> = base.objects(TABLE_2[2], 7).into_iter().map(|n| n / PER_PAGE).collect();
    assert!(asked.len() == 500 && asked.into_iter().all(|page| page / 500 == 7));
}
