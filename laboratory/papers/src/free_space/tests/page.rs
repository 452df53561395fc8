//! Tests of the slotted page with reserved space.

use crate::free_space::buckets::OVERHEAD;
use crate::free_space::page::{PageMut, record, records};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::HashMap;

const SIZE: usize = 1024;
const USABLE: usize = SIZE - OVERHEAD;

fn empty(bytes: &mut Vec<u8>) -> PageMut<'_> {
    bytes.clear();
    bytes.resize(SIZE, 0);
    PageMut::init(bytes, 7)
}

#[test]
fn the_papers_page_has_8108_bytes() {
    let mut bytes = vec![0; 8192];
    let mut page = PageMut::init(&mut bytes, 1);
    assert_eq!(page.free(), 8108);
    assert_eq!(page.insert(1, &[1; 8105]), None);
    assert_eq!(page.insert(1, &[1; 8104]), Some(0));
    assert_eq!(page.free(), 0);
    assert!(PageMut::new(&mut bytes, 2).is_err());
}

#[test]
fn reserved_space_is_the_deleters_until_it_ends() {
    let mut bytes = Vec::new();
    let mut page = empty(&mut bytes);
    let slot = page.insert(1, &[1; 500]).unwrap();
    page.insert(1, &[2; USABLE - 508]).unwrap();
    assert_eq!(page.free(), 0);
    let mut kept = Vec::new();
    page.delete(2, slot, &mut kept).unwrap();
    assert_eq!(kept, [1; 500]);
    assert_eq!((page.free(), page.available(3), page.available(2)), (500, 0, 500));
    assert_eq!(page.insert(3, &[3; 10]), None);
    page.purge(|tx| tx == 2);
    assert_eq!(page.available(3), 0);
    // The deleter may use its own, and still roll back.
    let own = page.insert(2, &[4; 400]).unwrap();
    assert_eq!(page.available(3), 0);
    page.remove(own).unwrap();
    page.restore(2, slot, &kept).unwrap();
    assert_eq!(record(page.bytes, slot), Some(&[1; 500][..]));
    assert!(!page.has_reservations());
    page.delete(2, slot, &mut kept).unwrap();
    page.purge(|_| false);
    assert_eq!(page.insert(3, &[3; 500]), Some(slot));
}

#[test]
fn an_emptied_page_is_as_good_as_new() {
    let mut bytes = Vec::new();
    let mut page = empty(&mut bytes);
    for _ in 0..3 {
        page.insert(1, &[1; 100]).unwrap();
    }
    for slot in [1, 0, 2] {
        page.delete(2, slot, &mut Vec::new()).unwrap();
    }
    assert!(!page.is_empty());
    page.purge(|_| false);
    assert!(page.is_empty());
    assert_eq!(page.free(), USABLE);
}

#[test]
fn only_five_transactions_reserve() {
    let mut bytes = Vec::new();
    let mut page = empty(&mut bytes);
    for tx in 1..=6 {
        let slot = page.insert(9, &[1; 10]).unwrap();
        assert_eq!(page.delete(tx, slot, &mut Vec::new()).is_ok(), tx <= 5);
    }
}

/// What one transaction did, for its rollback.
enum Done {
    Created(u16),
    Deleted(u16, Vec<u8>),
}

#[test]
fn random_transactions_against_a_map() {
    let mut rng = SmallRng::seed_from_u64(3);
    let mut bytes = Vec::new();
    let mut page = empty(&mut bytes);
    let mut model: HashMap<u16, Vec<u8>> = HashMap::new();
    let mut done: HashMap<u64, Vec<Done>> = (1..=4).map(|tx| (tx, Vec::new())).collect();
    let mut next = 5;
    let (mut refused, mut restored) = (0, 0);
    for _ in 0..60_000 {
        let mut active: Vec<u64> = done.keys().copied().collect();
        active.sort_unstable();
        let tx = active[rng.random_range(0..active.len())];
        page.purge(|tx| done.contains_key(&tx));
        let mine = |slot: &u16| {
            done.iter().all(|(&other, log)| {
                other == tx || !log.iter().any(|d| matches!(d, Done::Created(s) if s == slot))
            })
        };
        match rng.random_range(0..10) {
            0..=4 => {
                let record = vec![rng.random(); rng.random_range(1..120)];
                match page.insert(tx, &record) {
                    Some(slot) => {
                        assert!(model.insert(slot, record).is_none());
                        done.get_mut(&tx).unwrap().push(Done::Created(slot));
                    }
                    None => refused += 1,
                }
            }
            5..=7 => {
                let mut slots: Vec<u16> = model.keys().copied().filter(mine).collect();
                slots.sort_unstable();
                if let Some(&slot) = slots.get(rng.random_range(0..slots.len().max(1))) {
                    let mut kept = Vec::new();
                    page.delete(tx, slot, &mut kept).unwrap();
                    assert_eq!(model.remove(&slot).unwrap(), kept);
                    done.get_mut(&tx).unwrap().push(Done::Deleted(slot, kept));
                }
            }
            end => {
                let log = done.remove(&tx).unwrap();
                for step in log.into_iter().rev().filter(|_| end == 8) {
                    restored += 1;
                    match step {
                        Done::Created(slot) => {
                            page.remove(slot).unwrap();
                            model.remove(&slot);
                        }
                        Done::Deleted(slot, kept) => {
                            page.restore(tx, slot, &kept).unwrap();
                            model.insert(slot, kept);
                        }
                    }
                }
                done.insert(next, Vec::new());
                next += 1;
            }
        }
        assert_eq!(records(page.bytes).count(), model.len());
        for (slot, record) in records(page.bytes) {
            assert_eq!(model[&slot], record);
        }
    }
    assert!(refused > 1000 && restored > 1000, "{refused} {restored}");
}
