//! Emptied spaces: a meeting of writers with the movers that make the end of the file free.
//!
//! Owns: [`make`]. If holes cannot be punched, defragmentation moves all kinds of pages towards
//! the front; what lay behind is free for the next writer before the mover has ended.

use crate::draws::{LARGE, any_call, commit, crash, put, stage, take};
use crate::op::{EditKind, Fault, Hint, Op, TxOp};
use crate::script::Script;
use rand::Rng;
use rand::rngs::SmallRng;

/// The first of the collections that become large, and how many there are.
const CROSSING: (u8, u8) = (20, 12);

/// Spaces fill and become empty, and fill again while a mover makes the end of the file free:
/// if holes cannot be punched it moves all kinds of pages.
pub(crate) fn make(script: &mut Script, rng: &mut SmallRng) {
    (script.params.space_pages, script.params.max_bytes) = (Some(64), u64::MAX);
    let page = script.params.page_size as u32;
    let trouble = rng.random_bool(0.3);
    script.ops.clear();
    if rng.random_bool(0.5) {
        // No reader is given up, so that directories wait for long.
        script.params.tuning.pinned_bytes = None;
    }
    for _ in 0..rng.random_range(1..4) {
        let large = |rng: &mut SmallRng| {
            let (name, size) = (rng.random_range(0..12), rng.random_range(page..70 * page));
            put(rng, LARGE, name, size)
        };
        for _ in 0..rng.random_range(4..12) {
            let ops = vec![large(rng), any_call(rng), any_call(rng)];
            script.ops.push(commit(ops));
        }
        let gone = (0..12).filter(|_| rng.random_bool(0.8));
        let gone = gone.map(|name| TxOp::DeleteName { coll: LARGE, name }).collect();
        // One that still needs the spaces that are given up.
        if rng.random_bool(0.5) {
            script.ops.push(Op::OpenReader { newest: rng.random() });
        }
        script.ops.extend([commit(gone), Op::Checkpoint, Op::Checkpoint]);
        let step = |rng: &mut SmallRng| match rng.random_range(0..12) {
            0 => Op::Checkpoint,
            1 => Op::OpenReader { newest: rng.random() },
            2 => Op::CheckReader(rng.random()),
            3 | 4 => commit(vec![any_call(rng)]),
            5 | 6 => commit(vec![large(rng)]),
            _ => beside(rng, trouble),
        };
        let between = (0..rng.random_range(1..5)).map(|_| step(rng)).collect();
        script.ops.extend([Op::Defrag(between), Op::Check]);
        for _ in 0..rng.random_range(0..9) {
            let op = beside(rng, trouble);
            script.ops.push(op);
        }
        let ops = given_up(rng, page);
        script.ops.extend(ops);
    }
}

/// Spaces are given up that a reader still needs; collections become large meanwhile, the store
/// grows past them, and its log becomes small again.
fn given_up(rng: &mut SmallRng, page: u32) -> Vec<Op> {
    let all = |rng: &mut SmallRng, coll, names| {
        let name = 0..names;
        commit(name.map(|name| put(rng, coll, name, 500)).collect())
    };
    let (one, other) = (CROSSING.0, CROSSING.0 + 1);
    let mut ops = vec![Op::Heal, all(rng, one, 1), all(rng, other, 1)];
    ops.extend((0..6).map(|name| commit(vec![put(rng, LARGE, name, 60 * page)])));
    let gone = (0..12).map(|name| TxOp::DeleteName { coll: LARGE, name });
    // Before, it sees what lay there; afterwards, the directories alone.
    if rng.random_bool(0.5) {
        ops.push(Op::OpenReader { newest: true });
        ops.push(commit(gone.collect()));
    } else {
        ops.extend([commit(gone.collect()), Op::Checkpoint, Op::Checkpoint]);
        ops.push(Op::OpenReader { newest: true });
    }
    ops.push(Op::Defrag(Vec::new()));
    // Room is kept behind what grows while their directories wait. Nothing is drawn for it: other
    // draws of a seed stay as they are.
    let (size, seed) = (12 * page, 0x67_726f_7773);
    let (coll, name, chunk, hint) = (LARGE, Some(3), 2 * page, Hint::More);
    let stream = TxOp::Stream { coll, name, size, seed, chunk, hint, finish: true };
    let (pick, kind) = (0, EditKind::Append);
    let append = TxOp::Edit { pick, kind, at: 0, len: 0, size, seed };
    ops.extend([commit(vec![stream]), commit(vec![append])]);
    if rng.random_bool(0.3) {
        ops.push(Op::Crash(crash(rng)));
    }
    ops.extend([all(rng, one, 9), all(rng, other, 9)]);
    ops.push(commit(vec![put(rng, LARGE, 1, 500 * page)]));
    ops.extend([Op::Wait, Op::CheckReader(rng.random()), Op::Check]);
    let gone = (0..12).map(|name| TxOp::DeleteName { coll: LARGE, name });
    ops.extend([commit(gone.collect()), Op::Defrag(Vec::new())]);
    ops.push(match rng.random_range(0..3) {
        0 => Op::Close(None),
        1 => Op::Wait,
        _ => Op::Crash(crash(rng)),
    });
    ops
}

/// What may meet spaces that are given up, or their directories that wait.
fn beside(rng: &mut SmallRng, trouble: bool) -> Op {
    match rng.random_range(0..13) {
        0 => Op::VerifyBeside(vec![commit(vec![any_call(rng)])]),
        1 => Op::Close(None),
        2 => Op::Wait,
        3 => Op::EmptyDropped,
        4 => commit(vec![TxOp::DropCollection { coll: rng.random_range(1..4) }]),
        5 | 6 => {
            let coll = CROSSING.0 + rng.random_range(0..CROSSING.1);
            commit((0..8).map(|name| put(rng, coll, name, 500)).collect())
        }
        7 if trouble => {
            let crash = crash(rng);
            Op::Arm(Fault::Crash(rng.random_range(1..80)), crash)
        }
        8 => stage(rng, 50_000),
        9 => take(rng),
        10 => {
            let (name, size) = (rng.random_range(0..12), rng.random_range(0..900_000));
            commit(vec![put(rng, LARGE, name, size)])
        }
        _ => commit(vec![any_call(rng), any_call(rng)]),
    }
}
