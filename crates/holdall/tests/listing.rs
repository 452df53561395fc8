//! Names by prefix and by range, forwards, backwards and from both ends at once.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{NameIter, Store};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Bound;

fn names(found: impl Iterator<Item = holdall::Result<holdall::Entry>>) -> Vec<Vec<u8>> {
    found.map(|entry| entry.unwrap().name).collect()
}

/// Takes from the front and from the back as `turns` says.
fn both_ends(mut found: NameIter, turns: &[bool]) -> Vec<Vec<u8>> {
    let (mut front, mut back) = (Vec::new(), Vec::new());
    for front_next in turns.iter().cycle() {
        let next = if *front_next { found.next() } else { found.next_back() };
        let Some(entry) = next else { break };
        if *front_next { &mut front } else { &mut back }.push(entry.unwrap().name);
    }
    assert!(found.next().is_none() && found.next_back().is_none());
    front.extend(back.into_iter().rev());
    front
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_range_is_the_same_from_either_end(
        given in proptest::collection::btree_set("[a-c]{1,6}|[a-b]{200,900}", 0..200),
        from in "[a-c]{0,3}",
        to in "[a-c]{0,3}",
        kinds in 0_u8..9,
        turns in proptest::collection::vec(any::<bool>(), 1..20),
    ) {
        let store = Store::in_memory().unwrap();
        store.write(|tx| tx.put_many(given.iter().map(|name| (name, b"x")))).unwrap();
        let reader = store.read().unwrap();
        let bound = |kind, name: &String| match kind {
            0 => Bound::Included(name.clone()),
            1 => Bound::Excluded(name.clone()),
            _ => Bound::Unbounded,
        };
        let range = (bound(kinds % 3, &from), bound(kinds / 3, &to));
        let all: BTreeSet<Vec<u8>> = given.iter().map(|name| name.clone().into_bytes()).collect();
        let inside = |name: &[u8]| {
            let above = match &range.0 {
                Bound::Included(from) => name >= from.as_bytes(),
                Bound::Excluded(from) => name > from.as_bytes(),
                Bound::Unbounded => true,
            };
            let below = match &range.1 {
                Bound::Included(to) => name <= to.as_bytes(),
                Bound::Excluded(to) => name < to.as_bytes(),
                Bound::Unbounded => true,
            };
            above && below
        };
        let wanted: Vec<Vec<u8>> = all.iter().filter(|name| inside(name)).cloned().collect();
        prop_assert_eq!(&names(reader.range(range.clone())), &wanted);
        let mut back = names(reader.range(range.clone()).rev());
        back.reverse();
        prop_assert_eq!(&back, &wanted);
        prop_assert_eq!(&both_ends(reader.range(range.clone()), &turns), &wanted);
        let prefixed: Vec<Vec<u8>> =
            all.iter().filter(|name| name.starts_with(from.as_bytes())).cloned().collect();
        prop_assert_eq!(names(reader.names(&from)), prefixed);
    }
}

#[test]
fn many_names_are_fetched_in_parts_from_either_end() {
    let store = Store::in_memory().unwrap();
    let name = |i: u32| i.to_be_bytes();
    store.write(|tx| tx.put_many((0..5500).map(|i| (name(i), b"x")))).unwrap();
    let reader = store.read().unwrap();
    let wanted: Vec<Vec<u8>> = (0..5500).map(|i| name(i).to_vec()).collect();
    let mut back = names(reader.names("").rev());
    back.reverse();
    assert_eq!(back, wanted);
    assert_eq!(both_ends(reader.names(""), &[true, false, false]), wanted);
    assert_eq!(names(reader.range(name(1000)..name(3000))), wanted[1000..3000]);
    // Of a missing collection, as of one without names.
    assert_eq!(Store::in_memory().unwrap().read().unwrap().names("").rev().count(), 0);
}
