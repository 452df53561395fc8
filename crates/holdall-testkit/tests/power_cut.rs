//! Random calls to a faulty storage, compared with a plain model: what a sector may contain after
//! a crash is what it contained at some moment since the last sync.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;

use holdall_io::Storage;
use holdall_testkit::{CrashKind, FaultPlan, FaultyStorage, LossPolicy};
use proptest::prelude::*;

const LEN: usize = 8 * 512;

/// For each sector, what it contained at every moment since it was last surely durable.
struct Model {
    now: Vec<u8>,
    durable: Vec<u8>,
    allowed: Vec<BTreeSet<Vec<u8>>>,
}

impl Model {
    fn new() -> Self {
        let now = vec![0; LEN];
        let allowed = now.chunks(512).map(|s| BTreeSet::from([s.to_vec()])).collect();
        Self { durable: now.clone(), now, allowed }
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.now[offset..offset + bytes.len()].copy_from_slice(bytes);
        for (allowed, sector) in self.allowed.iter_mut().zip(self.now.chunks(512)) {
            allowed.insert(sector.to_vec());
        }
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.now);
        for (allowed, sector) in self.allowed.iter_mut().zip(self.now.chunks(512)) {
            *allowed = BTreeSet::from([sector.to_vec()]);
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Write(usize, usize),
    Sync,
    Kill,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..LEN - 1500, 1..1500usize).prop_map(|(at, len)| Op::Write(at, len)),
        2 => (0..8usize, 1..3usize).prop_map(|(at, n)| Op::Write(at.min(8 - n) * 512, n * 512)),
        1 => Just(Op::Sync),
        1 => Just(Op::Kill),
    ]
}

fn crash(storage: &FaultyStorage, policy: LossPolicy, seed: u64) -> Vec<u8> {
    storage.crash(CrashKind::PowerCut(policy), seed).unwrap().snapshot().0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_sector_is_one_it_has_been(
        ops in prop::collection::vec(op(), 1..25), seed: u64, fail in prop::option::of(1..3u64),
    ) {
        let mut storage = FaultyStorage::from_bytes(&[0; LEN], None, seed).unwrap();
        let mut model = Model::new();
        storage.set_plan(FaultPlan { fail_sync_at: fail, ..FaultPlan::default() });
        let mut failed = false;
        for (i, op) in ops.iter().enumerate() {
            match *op {
                Op::Write(at, len) => {
                    let bytes = vec![i as u8 + 1; len];
                    storage.volume().write_at(at as u64, &bytes).unwrap();
                    model.write(at, &bytes);
                }
                Op::Sync => match storage.volume().sync() {
                    // After a failure, a sync that succeeds promises nothing of older writes.
                    Ok(()) if failed => {}
                    Ok(()) => model.sync(),
                    Err(_) => failed = true,
                },
                Op::Kill => storage = storage.crash(CrashKind::ProcessKilled, seed).unwrap(),
            }
            prop_assert_eq!(&storage.snapshot().0, &model.now);
        }
        prop_assert_eq!(&crash(&storage, LossPolicy::KeepAll, seed), &model.now);
        let lost = crash(&storage, LossPolicy::LoseAll, seed);
        prop_assert_eq!(&lost, &storage.durable().0);
        if !failed {
            prop_assert_eq!(&lost, &model.durable);
        }
        for seed in 0..10 {
            let found = crash(&storage, LossPolicy::Random, seed);
            prop_assert_eq!(&found, &crash(&storage.fork(), LossPolicy::Random, seed));
            for (n, sector) in found.chunks(512).enumerate() {
                prop_assert!(model.allowed[n].contains(sector), "sector {} after seed {}", n, seed);
            }
        }
        // Writing everything again and syncing is always enough.
        storage.heal();
        storage.volume().write_at(0, &model.now).unwrap();
        storage.volume().sync().unwrap();
        prop_assert_eq!(&crash(&storage, LossPolicy::Random, seed), &model.now);
    }
}
