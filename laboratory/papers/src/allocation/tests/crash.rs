//! Crashes at every write (I2, I3): after each, the file opens, holds every block that was
//! handed out and not given back, and hands out none twice.

use super::*;
use holdall_io::Storage;
use holdall_testkit::{CrashKind, FaultPlan, FaultyStorage, LossPolicy};

type Live = BTreeMap<u64, (Block, u64, usize)>;

/// Work with splits, coalescing and checkpoints. What it holds is in `live`; `doubt` is the
/// block of the operation under way.
fn work(store: &mut Pmflf, live: &mut Live, doubt: &mut Option<Block>) -> Result<(), Error> {
    let lens = [100, 900, 2900, 9000, 100, 700, 400, 30_000, 1200, 100, 5000, 300];
    for round in 0..4u64 {
        for (i, &len) in lens.iter().enumerate() {
            let number = round * 100 + i as u64;
            let block = store.put(&content(number, len))?;
            store.barrier()?;
            live.insert(block.at, (block, number, len));
            if i % 3 != 1 {
                let at = *live.keys().nth((i * 7 + round as usize) % live.len()).unwrap();
                let (block, _, len) = live.remove(&at).unwrap();
                *doubt = Some(block);
                store.free(block, len)?;
                store.barrier()?;
                *doubt = None;
            }
        }
        if round == 2 {
            store.coalesce()?;
        }
    }
    Ok(())
}

fn crashed_at(params: Params, change: u64) -> (FaultyStorage, Live, Option<Block>, bool) {
    let storage = FaultyStorage::new(change);
    let mut store = Pmflf::create(storage.volume(), params, 3).unwrap();
    storage.volume().sync().unwrap();
    storage.set_plan(FaultPlan { crash_at_change: Some(change), ..FaultPlan::default() });
    let (mut live, mut doubt) = (Live::new(), None);
    let done = work(&mut store, &mut live, &mut doubt).is_ok();
    (storage, live, doubt, done)
}

fn every_write(params: Params, kinds: &[CrashKind]) {
    for change in 1.. {
        let (storage, live, doubt, done) = crashed_at(params, change);
        for (seed, &kind) in kinds.iter().enumerate() {
            let after = storage.crash(kind, change * 7 + seed as u64).unwrap();
            recovers(&after, params, &live, doubt, (change, kind));
        }
        if done {
            assert!(change > 100, "the work has many writes");
            return;
        }
    }
}

fn recovers(
    storage: &FaultyStorage,
    params: Params,
    live: &Live,
    doubt: Option<Block>,
    at: (u64, CrashKind),
) {
    let (mut store, found) = Pmflf::open(storage.volume(), params).unwrap();
    assert!(params.method == Method::Pfl || found.dropped == 0, "{at:?}");
    let mut free: Vec<Block> = store.lists().iter().collect();
    let in_use = |free: &[Block], store: &Pmflf| {
        for block in live.values().map(|(b, _, _)| *b) {
            assert_eq!(store.block_at(block.at).unwrap(), block, "{at:?}");
            let over = |f: &&Block| {
                f.at < block.at + 512 * u64::from(block.grains)
                    && block.at < f.at + 512 * u64::from(f.grains)
            };
            assert_eq!(free.iter().find(over), None, "{at:?}: {block:?} would be handed out twice");
        }
    };
    in_use(&free, &store);
    store.reclaim().unwrap();
    free = store.lists().iter().collect();
    in_use(&free, &store);
    for (block, number, len) in live.values() {
        let mut bytes = vec![0; *len];
        store.read(block.at, 0, &mut bytes).unwrap();
        assert!(bytes == content(*number, *len), "{at:?}: content at {}", block.at);
    }
    // All that is not free is live, or was under way.
    let known: u64 = live.values().map(|(b, _, _)| u64::from(b.grains) * 512).sum();
    let more = store.usage().allocated - known;
    let least_doubt = doubt.map_or(30_720, |b| u64::from(b.grains) * 512).max(30_720);
    assert!(more <= least_doubt, "{at:?}: {more} bytes are lost");
    // It goes on working, and opens again.
    let block = store.put(&content(9, 3000)).unwrap();
    assert!(!live.contains_key(&block.at));
    store.coalesce().unwrap();
    store.close().unwrap();
    let (store, _) = Pmflf::open(storage.volume(), params).unwrap();
    in_use(&[], &store);
}

#[test]
fn a_process_that_ends_at_any_write_of_ts() {
    every_write(small(Method::Ts), &[CrashKind::ProcessKilled]);
}

#[test]
fn a_process_that_ends_at_any_write_of_ts_with_an_area() {
    every_write(small(Method::Area), &[CrashKind::ProcessKilled]);
}

#[test]
fn a_process_that_ends_at_any_write_of_pl() {
    every_write(small(Method::Pl), &[CrashKind::ProcessKilled]);
}

#[test]
fn a_process_that_ends_at_any_write_of_pfl() {
    every_write(small(Method::Pfl), &[CrashKind::ProcessKilled]);
}

/// With a sync between writes whose order matters the same holds for a power cut that keeps,
/// loses and tears writes at will.
#[test]
fn a_power_cut_at_any_write_with_barriers() {
    let lost = CrashKind::PowerCut(LossPolicy::LoseAll);
    let some = CrashKind::PowerCut(LossPolicy::Random);
    for method in Method::ALL {
        let params = Params { barriers: true, ..small(method) };
        every_write(params, &[lost, some, some, some]);
    }
}

/// The walk that finds the tail must go over freed blocks: were it to stop at the first, as the
/// paper's sentence can be read, what lies behind would be lost.
#[test]
fn a_block_behind_a_freed_one_survives() {
    let params = Params { checkpoint_every: u32::MAX, ..small(Method::Ts) };
    let storage = FaultyStorage::new(1);
    let mut store = Pmflf::create(storage.volume(), params, 3).unwrap();
    let first = store.put(&content(1, 300)).unwrap();
    let second = store.put(&content(2, 300)).unwrap();
    store.free(first, 300).unwrap();
    let after = storage.crash(CrashKind::ProcessKilled, 1).unwrap();
    let (mut store, _) = Pmflf::open(after.volume(), params).unwrap();
    for _ in 0..3 {
        assert_ne!(store.put(&content(3, 300)).unwrap().at, second.at);
    }
}

/// Recovery itself may be broken off at any of its writes.
#[test]
fn a_crash_while_opening() {
    for method in Method::ALL {
        let params = Params { checkpoint_every: 1000, ..small(method) };
        for change in (1..130).step_by(3) {
            let (storage, live, doubt, _) = crashed_at(params, change);
            let after = storage.crash(CrashKind::ProcessKilled, change).unwrap();
            for second in 1..40 {
                let again = after.fork();
                let plan = FaultPlan { crash_at_change: Some(second), ..FaultPlan::default() };
                again.set_plan(plan);
                let done = Pmflf::open(again.volume(), params).is_ok();
                let found = again.crash(CrashKind::ProcessKilled, second).unwrap();
                recovers(&found, params, &live, doubt, (change, CrashKind::ProcessKilled));
                if done {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_batch_broken_off_at_any_write_leaves_a_whole_file() {
    let params = small(Method::Ts);
    for change in 1.. {
        let storage = FaultyStorage::new(change);
        let mut store = Pmflf::create(storage.volume(), params, 3).unwrap();
        let mut live = Live::new();
        let lens = [4000, 300, 6000, 300, 900, 300, 2000, 300];
        for (i, &len) in lens.iter().enumerate() {
            let block = store.put(&content(i as u64, len)).unwrap();
            if i % 2 == 0 {
                store.free(block, len).unwrap();
            } else {
                live.insert(block.at, (block, i as u64, len));
            }
        }
        storage.set_plan(FaultPlan { crash_at_change: Some(change), ..FaultPlan::default() });
        let mut batch = Batch::new(2);
        for (i, len) in [1500, 700, 3000, 100, 9000, 400, 2000].into_iter().enumerate() {
            batch.add(content(i as u64, len));
        }
        let done = batch.write(&mut store).is_ok();
        let after = storage.crash(CrashKind::ProcessKilled, change).unwrap();
        recovers(&after, params, &live, None, (change, CrashKind::ProcessKilled));
        if done {
            assert!(change > 4);
            return;
        }
    }
}
