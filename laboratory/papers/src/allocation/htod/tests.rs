//! Tests of the table: against a model, and crashes at every write (I12). Owns no state.

use super::*;
use crate::allocation::block::Method;
use holdall_io::{MemoryDisk, Storage};
use holdall_testkit::{CostModel, CountedDisk, CrashKind, FaultPlan, FaultyStorage, LossPolicy};
use proptest::prelude::*;
use std::collections::HashMap;
use std::ops::ControlFlow;

type Model = HashMap<Vec<u8>, Vec<u8>>;

fn params(method: Method) -> Params {
    let area = 1 << 12;
    Params { max_ql: 8, method, growth: 4096, checkpoint_every: 20, area, ..Params::default() }
}

const SMALL: Shape = Shape { buckets: 2, ratio: 1.5 };

fn key(i: u64) -> Vec<u8> {
    format!("key {i}").into_bytes()
}

fn value(i: u64, len: usize) -> Vec<u8> {
    (0..len).map(|b| (i + b as u64) as u8).collect()
}

fn same(table: &Htod, model: &Model) {
    let mut all = Model::new();
    table
        .entries(|key, value| {
            assert!(all.insert(key, value).is_none(), "a key twice");
            ControlFlow::Continue(())
        })
        .unwrap();
    assert!(all == *model, "{} keys, {} wanted", all.len(), model.len());
    for (key, value) in model {
        assert_eq!(table.get(key).unwrap().as_ref(), Some(value));
    }
    let mut keys = 0;
    table.keys(|key| keys += u64::from(model.contains_key(&key))).unwrap();
    let mut bytes = 0;
    table.values(|value| bytes += value.len()).unwrap();
    assert_eq!((keys, bytes), (model.len() as u64, model.values().map(Vec::len).sum()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_table_is_a_map(
        steps in proptest::collection::vec((0..10u8, 0..60u64, 0..9000usize), 1..200),
        method in proptest::sample::select(&Method::ALL[..]),
    ) {
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let mut table = Htod::create(disk.clone(), params(method), SMALL, 1).unwrap();
        let mut model = Model::new();
        for (what, i, len) in steps {
            match what {
                0..=5 => {
                    let old = model.insert(key(i), value(i, len));
                    prop_assert_eq!(table.put(&key(i), &value(i, len)).unwrap(), old.is_some());
                }
                6..=7 => {
                    let old = model.remove(&key(i));
                    prop_assert_eq!(table.remove(&key(i)).unwrap(), old.is_some());
                }
                8 => {
                    table.close().unwrap();
                    table = Htod::open(disk.clone(), params(method), 1.5).unwrap().0;
                    prop_assert_eq!(table.len(), model.len() as u64);
                }
                _ => {
                    drop(table);
                    table = Htod::open(disk.clone(), params(method), 1.5).unwrap().0;
                    prop_assert_eq!(table.sweep().unwrap(), 0);
                }
            }
            prop_assert_eq!(table.len(), model.len() as u64);
        }
        same(&table, &model);
    }
}

#[test]
fn accesses_of_each_operation() {
    let disk = Arc::new(CountedDisk::new(Arc::new(MemoryDisk::new()), CostModel::default()));
    let shape = Shape { buckets: 1 << 12, ratio: 1.0 };
    let quiet = Params { checkpoint_every: u32::MAX, ..Params::default() };
    let mut table = Htod::create(disk.clone(), quiet, shape, 1).unwrap();
    let mut at = disk.stats();
    let mut since = || {
        let now = disk.stats();
        let both = (now - at).reads + (now - at).writes;
        at = now;
        both
    };
    table.put(b"a", &[1; 2000]).unwrap();
    assert_eq!(since(), 2, "the item and its bucket");
    table.get(b"a").unwrap();
    assert_eq!(since(), 1);
    table.put(b"a", &[2; 2000]).unwrap();
    assert_eq!(since(), 4, "a look, the item, the bucket, the old item's tag");
    table.remove(b"a").unwrap();
    assert_eq!(since(), 3);
    table.put(b"a", &[3; 5000]).unwrap();
    since();
    table.get(b"a").unwrap();
    assert_eq!(since(), 2, "a long value takes a second read");
}

/// Fills a table so that the next new key doubles it, crashes that at every change, and goes on.
fn doubling(params: Params, kinds: &[CrashKind], again: bool) {
    let buckets = 256;
    let before = FaultyStorage::new(1);
    let shape = Shape { buckets, ratio: 1.5 };
    let mut table = Htod::create(before.volume(), params, shape, 1).unwrap();
    let mut model = Model::new();
    for i in 0..buckets * 3 / 2 {
        table.put(&key(i), &value(i, 20)).unwrap();
        model.insert(key(i), value(i, 20));
    }
    assert_eq!(table.buckets(), buckets);
    table.checkpoint().unwrap();
    drop(table);
    for change in 1.. {
        let storage = before.fork();
        let (mut table, _) = Htod::open(storage.volume(), params, 1.5).unwrap();
        let plan = |at| FaultPlan { crash_at_change: Some(at), ..FaultPlan::default() };
        storage.set_plan(plan(change));
        let done = table.put(b"one more", b"v").is_ok();
        for (seed, &kind) in kinds.iter().enumerate() {
            let mut after = storage.crash(kind, change * 5 + seed as u64).unwrap();
            if again {
                // Broken off once more, while it goes on.
                after.set_plan(plan(change % 97 + 1));
                let _ = Htod::open(after.volume(), params, 1.5);
                after = after.crash(kind, change).unwrap();
            }
            let opened = Htod::open(after.volume(), params, 1.5);
            let (mut table, _) = opened
                .unwrap_or_else(|e| panic!("{change} {kind:?} {again}: {e}\n{}", after.trace()));
            let mut now = model.clone();
            if table.get(b"one more").unwrap().is_some() {
                now.insert(b"one more".to_vec(), b"v".to_vec());
            }
            same(&table, &now);
            assert!(table.sweep().unwrap() <= 2, "an item, an index at most");
            table.put(b"after", b"all").unwrap();
            now.insert(b"after".to_vec(), b"all".to_vec());
            same(&table, &now);
            assert_eq!(table.sweep().unwrap(), 0);
        }
        if done {
            assert!(change > buckets / 2, "{change} changes");
            return;
        }
    }
}

/// I12.
#[test]
fn doubling_survives_the_end_of_the_process_at_any_write() {
    doubling(params(Method::Ts), &[CrashKind::ProcessKilled], false);
    doubling(params(Method::Ts), &[CrashKind::ProcessKilled], true);
}

/// I12, with the other methods under it.
#[test]
fn doubling_over_pl_and_pfl() {
    doubling(params(Method::Pl), &[CrashKind::ProcessKilled], false);
    doubling(params(Method::Pfl), &[CrashKind::ProcessKilled], true);
}

/// I12, with writes that a power cut loses and tears.
#[test]
fn doubling_survives_a_power_cut_with_barriers() {
    let barriers = Params { barriers: true, ..params(Method::Ts) };
    let some = CrashKind::PowerCut(LossPolicy::Random);
    doubling(barriers, &[some, CrashKind::PowerCut(LossPolicy::LoseAll)], false);
    doubling(barriers, &[some], true);
}

#[test]
fn rules_doubling_goes_on_where_it_was_broken_off() {
    let storage = FaultyStorage::new(1);
    let shape = Shape { buckets: 1024, ratio: 1.0 };
    let mut table = Htod::create(storage.volume(), params(Method::Ts), shape, 1).unwrap();
    for i in 0..1024 {
        table.put(&key(i), b"v").unwrap();
    }
    let whole = storage.fork();
    let changes = |storage: &FaultyStorage, f: &mut dyn FnMut()| {
        let before = storage.changes();
        f();
        storage.changes() - before
    };
    let (mut all, _) = Htod::open(whole.volume(), params(Method::Ts), 1.0).unwrap();
    let full = changes(&whole, &mut || assert!(!all.put(b"x", b"v").unwrap()));
    let plan = FaultPlan { crash_at_change: Some(full * 9 / 10), ..FaultPlan::default() };
    storage.set_plan(plan);
    table.put(b"x", b"v").unwrap_err();
    let after = storage.crash(CrashKind::ProcessKilled, 1).unwrap();
    let rest = changes(&after, &mut || {
        Htod::open(after.volume(), params(Method::Ts), 1.0).unwrap();
    });
    // A tenth is left to do. Links already right are not written again, so that to begin anew takes
    // a quarter.
    assert!(rest * 5 < full, "{rest} changes after a crash near the end, {full} in all");
}

/// Puts, replacements and removals broken off at any write: each key has its old value or its
/// new one, and nothing but one block is left without use.
fn operations(params: Params, kinds: &[CrashKind]) {
    let work = |table: &mut Htod, model: &mut Model, doubt: &mut Option<u64>| -> Result<()> {
        for i in 0..40u64 {
            let k = i * 7 % 12;
            *doubt = Some(k);
            if i % 5 == 4 {
                table.remove(&key(k))?;
                model.remove(&key(k));
            } else {
                table.put(&key(k), &value(i, 300 * (i as usize % 4)))?;
                model.insert(key(k), value(i, 300 * (i as usize % 4)));
            }
        }
        *doubt = None;
        Ok(())
    };
    for change in 1.. {
        let storage = FaultyStorage::new(change);
        let mut table = Htod::create(storage.volume(), params, SMALL, 1).unwrap();
        storage.volume().sync().unwrap();
        storage.set_plan(FaultPlan { crash_at_change: Some(change), ..FaultPlan::default() });
        let (mut model, mut doubt) = (Model::new(), None);
        let done = work(&mut table, &mut model, &mut doubt).is_ok();
        for (seed, &kind) in kinds.iter().enumerate() {
            let after = storage.crash(kind, change * 3 + seed as u64).unwrap();
            let (mut table, _) = Htod::open(after.volume(), params, 1.5).unwrap();
            let mut now = model.clone();
            if let Some(k) = doubt {
                now.remove(&key(k));
                now.extend(table.get(&key(k)).unwrap().map(|v| (key(k), v)));
            }
            same(&table, &now);
            assert!(table.sweep().unwrap() <= 2, "change {change}");
            assert_eq!(table.len(), now.len() as u64);
        }
        if done {
            return;
        }
    }
}

#[test]
fn operations_broken_off_at_any_write() {
    for method in Method::ALL {
        operations(params(method), &[CrashKind::ProcessKilled]);
        let barriers = Params { barriers: true, ..params(method) };
        let some = CrashKind::PowerCut(LossPolicy::Random);
        operations(barriers, &[some, some, CrashKind::PowerCut(LossPolicy::LoseAll)]);
    }
}
