//! Tests of the allocator: the paper's rules one by one ([`rules`]), crashes at every write
//! ([`crash`]), and random operations against a model. Owns what they share.

mod crash;
mod rules;

use super::block::{Block, Method, Params};
use super::oba::Batch;
use super::pmflf::Pmflf;
use crate::kit::error::Error;
use holdall_io::{Disk, MemoryDisk};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Parameters for small files.
fn small(method: Method) -> Params {
    Params {
        max_ql: 4,
        waste: 1024,
        method,
        growth: 512,
        checkpoint_every: 5,
        area: 1 << 11,
        ..Params::default()
    }
}

fn file(params: Params) -> (Pmflf, Arc<dyn Disk>) {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    (Pmflf::create(disk.clone(), params, 1).unwrap(), disk)
}

/// Content that holds its number.
fn content(number: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| (number.wrapping_mul(31) + i as u64) as u8).collect()
}

/// Blocks do not overlap, free ones and allocated ones together fill the file up to its tail
/// (less `lost` blocks), and every content is what was stored.
fn check(store: &Pmflf, live: &BTreeMap<u64, (Block, u64, usize)>, lost: bool) {
    let grain = u64::from(store.params().grain);
    let mut all: Vec<(Block, bool)> = store.lists().iter().map(|b| (b, false)).collect();
    all.extend(live.values().map(|(b, _, _)| (*b, true)));
    all.sort_unstable();
    let mut end = store.first();
    for (block, allocated) in &all {
        assert!(block.at >= end, "blocks overlap at {}", block.at);
        assert!(lost || block.at == end, "a hole before {}", block.at);
        end = block.at + u64::from(block.grains) * grain;
        let header = store.header_at(block.at).unwrap().unwrap();
        assert_eq!((header.grains, header.allocated), (block.grains, *allocated));
    }
    assert!(end <= store.tail && (lost || end == store.tail));
    for (block, number, len) in live.values() {
        let mut bytes = vec![0; *len];
        store.read(block.at, 0, &mut bytes).unwrap();
        assert!(bytes == content(*number, *len), "content of the block at {}", block.at);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(usize),
    Free(usize),
    Batch(Vec<usize>),
    Coalesce,
    Close,
    Crash,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = || prop_oneof![4 => 0..3000usize, 1 => 0..30_000usize];
    let step = prop_oneof![
        8 => len().prop_map(Step::Put),
        6 => any::<usize>().prop_map(Step::Free),
        1 => proptest::collection::vec(len(), 1..8).prop_map(Step::Batch),
        1 => Just(Step::Coalesce),
        1 => Just(Step::Close),
        1 => Just(Step::Crash),
    ];
    proptest::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn blocks_are_what_a_model_says(
        steps in steps(),
        method in proptest::sample::select(&Method::ALL[..]),
        full in any::<bool>(),
    ) {
        let max_bytes = if full { 80_000 } else { 1 << 40 };
        let params = Params { max_bytes, ..small(method) };
        let (mut store, disk) = file(params);
        let mut live = BTreeMap::new();
        let mut number = 0;
        for step in steps {
            number += 1;
            match step {
                Step::Put(len) => match store.put(&content(number, len)) {
                    Ok(block) => prop_assert!(live.insert(block.at, (block, number, len)).is_none()),
                    Err(Error::Full) => prop_assert!(full),
                    Err(other) => return Err(TestCaseError::fail(other.to_string())),
                },
                Step::Free(which) if !live.is_empty() => {
                    let at = *live.keys().nth(which % live.len()).unwrap();
                    let (block, _, len) = live.remove(&at).unwrap();
                    store.free(block, len).unwrap();
                }
                Step::Batch(lens) if method == Method::Ts && !full => {
                    let mut batch = Batch::new(1 + (number % 5) as u32);
                    for (i, len) in lens.iter().enumerate() {
                        batch.add(content(number + 1000 * i as u64, *len));
                    }
                    for (i, block) in batch.write(&mut store).unwrap().into_iter().enumerate() {
                        let one = (block, number + 1000 * i as u64, lens[i]);
                        prop_assert!(live.insert(block.at, one).is_none());
                    }
                }
                Step::Coalesce => store.coalesce().unwrap(),
                Step::Close => {
                    let usage = store.usage();
                    store.close().unwrap();
                    let (again, found) = Pmflf::open(disk.clone(), params).unwrap();
                    prop_assert!(found.clean && found.headers == 0);
                    prop_assert_eq!(again.usage(), super::pmflf::Usage { most: usage.tail, ..usage });
                    store = again;
                }
                Step::Crash => {
                    drop(store);
                    let (again, found) = Pmflf::open(disk.clone(), params).unwrap();
                    prop_assert!(!found.clean);
                    prop_assert!(method == Method::Pfl || found.dropped == 0);
                    store = again;
                    check(&store, &live, method.has_lists());
                    store.reclaim().unwrap();
                }
                Step::Free(_) | Step::Batch(_) => {}
            }
            check(&store, &live, false);
            let allocated: u64 = live.values().map(|(b, _, _)| u64::from(b.grains) * 512).sum();
            prop_assert_eq!(store.usage().allocated, allocated);
        }
    }
}
