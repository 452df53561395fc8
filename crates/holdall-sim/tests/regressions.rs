//! Scripts by hand for bugs that the simulation found, so that they do not depend on what a
//! seed draws.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use holdall_sim::{Crash, End, Fault, Op, Params, Script, TxOp, run};
use holdall_testkit::{CrashKind, LossPolicy};

fn put(name: u8, size: u32, end: End) -> Op {
    let op = TxOp::Put { coll: 0, name, size, seed: 1, attributes: 0 };
    Op::Write { ops: vec![op], end }
}

fn crash(kind: CrashKind, seed: u64) -> Crash {
    Crash { kind, seed, read_only: false, again: Vec::new() }
}

fn play(params: &Params, ops: Vec<Op>) {
    let script = Script { seed: 1, params: params.clone(), ops };
    if let Err(failure) = run(&script) {
        panic!("{failure}\n{:#?}\n{}", script.ops, failure.calls);
    }
}

#[test]
fn a_close_after_a_recovery_without_a_commit_removes_the_log() {
    let cuts =
        [LossPolicy::LoseAll, LossPolicy::KeepAll, LossPolicy::Random].map(CrashKind::PowerCut);
    for n in 1..40 {
        for (seed, kind) in cuts.into_iter().chain([CrashKind::ProcessKilled]).enumerate() {
            // Also if the log was just being made: a log that no superblock asks for.
            let arm = Op::Arm(Fault::Crash(n), crash(kind, seed as u64 + n));
            play(&Params::tiny(), vec![arm, put(0, 100, End::Commit), Op::Close(None)]);
        }
    }
}

#[test]
fn a_superblock_whose_write_failed_half_way_does_not_ask_for_a_removed_log() {
    for n in 1..30 {
        let after = crash(CrashKind::ProcessKilled, n);
        let arm = Op::Arm(Fault::Write(n), after.clone());
        play(&Params::tiny(), vec![arm, put(0, 100, End::Commit), Op::Heal, Op::Close(None)]);
        for seed in 0..8 {
            let ops = vec![Op::Arm(Fault::Write(n), after.clone()), put(0, 100, End::Commit)];
            let script = Script { seed, params: Params::tiny(), ops };
            assert_eq!(run(&script).map(|_| ()).map_err(|f| f.what), Ok(()));
        }
    }
}

#[test]
fn a_commit_does_not_fail_for_the_checkpoint_after_it() {
    for n in 1..60 {
        let mut ops: Vec<Op> = vec![put(0, 100, End::Commit)];
        ops.push(Op::Arm(Fault::Write(n), crash(CrashKind::ProcessKilled, n)));
        ops.extend((0..20).map(|i| put(i, 3000, End::Commit)));
        play(&Params::tiny(), ops);
    }
}

#[test]
fn an_older_version_stays_visible_when_its_page_was_evicted_before_a_commit() {
    for newest in [false, true] {
        let mut ops = vec![put(0, 100, End::Commit), Op::Close(None)];
        ops.push(Op::OpenReader { newest });
        ops.extend((0..6).map(|i| put(i, 9000, End::Deferred)));
        ops.extend([Op::CheckReader(0), Op::Check, Op::Checkpoint, Op::CheckReader(0)]);
        play(&Params::tiny(), ops);
    }
}

#[test]
fn pages_whose_growth_a_power_cut_undid_are_not_given_out_twice() {
    for (seed, size) in [(1, 200), (2, 3000), (3, 9000)] {
        let mut ops: Vec<Op> = Vec::new();
        for i in 0..12 {
            ops.push(put(i, size, End::Commit));
            ops.push(Op::Crash(crash(CrashKind::PowerCut(LossPolicy::LoseAll), seed)));
            ops.push(put(i + 20, 30_000, End::Commit));
            ops.push(Op::Probe(seed));
        }
        let mut params = Params::tiny();
        params.tuning.log_data_bytes = 1 << 20;
        play(&params, ops.clone());
        params.tuning.log_data_bytes = 0;
        play(&params, ops);
    }
}
