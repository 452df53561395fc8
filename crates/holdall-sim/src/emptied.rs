//! Emptied spaces: a meeting of writers with the movers that make the end of the file free.
//!
//! Owns: [`make`]. If holes cannot be punched, defragmentation moves all kinds of pages towards
//! the front; what lay behind is free for the next writer before the mover has ended.

use crate::draws::{LARGE, any_call, commit, crash, put};
use crate::op::{Fault, Op, TxOp};
use crate::script::Script;
use rand::Rng;
use rand::rngs::SmallRng;

/// Spaces fill and become empty, and fill again while a mover makes the end of the file free:
/// if holes cannot be punched it moves all kinds of pages.
pub(crate) fn make(script: &mut Script, rng: &mut SmallRng) {
    (script.params.space_pages, script.params.max_bytes) = (Some(64), u64::MAX);
    let page = script.params.page_size as u32;
    let trouble = rng.random_bool(0.3);
    script.ops.clear();
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
        script.ops.extend([commit(gone), Op::Checkpoint, Op::Checkpoint]);
        let step = |rng: &mut SmallRng| match rng.random_range(0..8) {
            0 => Op::Checkpoint,
            1 => Op::OpenReader { newest: rng.random() },
            2 => Op::CheckReader(rng.random()),
            3 => commit(vec![any_call(rng)]),
            4 if trouble => {
                let crash = crash(rng);
                Op::Arm(Fault::Crash(rng.random_range(1..80)), crash)
            }
            _ => commit(vec![large(rng)]),
        };
        let between = (0..rng.random_range(1..5)).map(|_| step(rng)).collect();
        script.ops.extend([Op::Defrag(between), Op::Check]);
    }
}
