//! Meetings: scripts in which mechanisms run at the same time that each work alone.
//!
//! Owns: [`add`]. What loses data is seldom one mechanism, but two that meet (docs/testing.md has
//! the table of pairs). Some scripts become one of three kinds here: *growth*, in which staged
//! objects lie in spaces that no commit knows yet while the store shrinks below them;
//! *exchange*, in which objects are replaced until they lie where they lay before, while a mover
//! works from a snapshot that is given up; and *emptied*, in which what lies behind is removed, moved
//! towards the front and put there again. All others get staged objects over several steps.
//! Draws come from a generator of their own, so that the rest of a seed's script stays as it is.

use crate::draws::{LARGE, SMALL, any_call, commit, crash, cut, put, stage, take};
use crate::emptied;
use crate::op::{End, Fault, Op, TxOp};
use crate::params::Params;
use crate::script::Script;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// The object that leaves its place to the mover.
const FILLER: u8 = 100;

/// Of 16 scripts two become a meeting in growth, one a meeting in exchange, one a load that comes and
/// goes, and one a meeting in emptied spaces; of those without holes one in four.
pub(crate) fn add(script: &mut Script) {
    let mut rng = SmallRng::seed_from_u64(script.seed.wrapping_mul(0x9E37_79B9) ^ 0x6D65_6574);
    let kind = rng.random_range(0..16);
    script.params.debug_sums = rng.random_bool(0.5);
    if !script.can_punch() && rng.random_bool(0.25) {
        return emptied::make(script, &mut rng);
    }
    match kind {
        0 | 1 => growth(script, &mut rng),
        2 => exchange(script, &mut rng),
        3..8 => beside(script, &mut rng),
        8..11 => mingle(script, &mut rng),
        11 => log_size(script, &mut rng),
        12 => emptied::make(script, &mut rng),
        _ => {}
    }
}

/// Calls of every kind inside each call that goes on, and around what needs no transaction.
fn mingle(script: &mut Script, rng: &mut SmallRng) {
    for _ in 0..rng.random_range(2..6) {
        let calls = |rng: &mut SmallRng, n| (0..n).map(|_| any_call(rng)).collect::<Vec<_>>();
        let inside = (0..rng.random_range(2..7)).map(|_| {
            let n = rng.random_range(1..4);
            commit(calls(rng, n))
        });
        let inside: Vec<Op> = inside.collect();
        let op = match rng.random_range(0..5) {
            0 => Op::CheckpointWith(inside),
            1 => Op::Defrag(inside),
            2 => Op::VerifyBeside(inside),
            _ => around(rng),
        };
        let before = commit(calls(rng, 3));
        let at = rng.random_range(0..=script.ops.len());
        script.ops.splice(at..at, [before, op]);
    }
}

/// A transaction that is open while the store is maintained.
fn around(rng: &mut SmallRng) -> Op {
    let mut some = |n: u32| (0..n).map(|_| any_call(rng)).collect::<Vec<_>>();
    let (ops, then) = (some(4), some(2));
    let between = (0..rng.random_range(1..4)).map(|_| match rng.random_range(0..5) {
        0 => Op::OpenReader { newest: rng.random() },
        1 => Op::CheckReader(rng.random()),
        2 => Op::Push(rng.random(), rng.random_range(0..200_000)),
        _ => Op::Checkpoint,
    });
    let between = between.collect();
    let end = *[End::Commit, End::Deferred, End::Abort].choose(rng).unwrap_or(&End::Commit);
    Op::WriteAround { ops, between, then, end }
}

/// A load that comes and goes, by which the log grows and becomes small again, with crashes in both.
fn log_size(script: &mut Script, rng: &mut SmallRng) {
    let tuning = &mut script.params.tuning;
    (tuning.log_bytes, tuning.first_log_bytes) = (4 << 20, 32 << 10);
    (tuning.log_data_bytes, tuning.auto_checkpoint) = (1 << 20, true);
    script.ops.clear();
    for _ in 0..rng.random_range(1..6) {
        let crash_within = |rng: &mut SmallRng, calls| {
            let crash = crash(rng);
            Op::Arm(Fault::Crash(rng.random_range(1..calls)), crash)
        };
        if rng.random_bool(0.3) {
            let op = crash_within(rng, 120);
            script.ops.push(op);
        }
        for _ in 0..rng.random_range(1..12) {
            let (name, size) = (rng.random_range(0..20), rng.random_range(1..100_000));
            script.ops.push(commit(vec![put(rng, SMALL, name, size), any_call(rng)]));
        }
        match rng.random_range(0..6) {
            0 => script.ops.push(Op::OpenReader { newest: rng.random() }),
            1 => script.ops.push(stage(rng, 50_000)),
            2 => script.ops.push(take(rng)),
            3 => script.ops.push(around(rng)),
            _ => {}
        }
        if rng.random_bool(0.7) {
            let op = crash_within(rng, 20);
            script.ops.push(op);
        }
        script.ops.extend([Op::Wait, Op::CheckReader(rng.random())]);
    }
}

/// Staged objects that stay open over several operations of the script.
fn beside(script: &mut Script, rng: &mut SmallRng) {
    for _ in 0..rng.random_range(1..5) {
        let size = rng.random_range(1..600_000);
        let from = rng.random_range(0..=script.ops.len());
        script.ops.insert(from, stage(rng, size));
        let mut at = from;
        for _ in 0..rng.random_range(0..4) {
            at = rng.random_range(at + 1..=script.ops.len());
            script.ops.insert(at, Op::Push(rng.random(), rng.random_range(0..size)));
        }
        at = rng.random_range(at + 1..=script.ops.len());
        let end = if rng.random_bool(0.85) { take(rng) } else { Op::DropStaged(rng.random()) };
        script.ops.insert(at, end);
    }
}

/// The store fills spaces and is emptied while objects are staged behind its end.
fn growth(script: &mut Script, rng: &mut SmallRng) {
    let params = &mut script.params;
    (params.space_pages, params.max_bytes) = (Some(64), u64::MAX);
    let page = params.page_size as u32;
    let trouble = rng.random_bool(0.4);
    script.ops.clear();
    for _ in 0..rng.random_range(1..4) {
        for name in 0..rng.random_range(2..12) {
            let size = rng.random_range(page..100 * page);
            script.ops.push(commit(vec![put(rng, SMALL, name, size)]));
        }
        for _ in 0..rng.random_range(1..3) {
            let size = rng.random_range(100..500) * page;
            script.ops.push(stage(rng, size));
        }
        for _ in 0..rng.random_range(4..16) {
            let op = growth_step(rng, page, trouble);
            script.ops.push(op);
        }
        for _ in 0..2 {
            script.ops.push(take(rng));
        }
        if trouble {
            // A crash in the cut of what goes now.
            let gone = (0..12).map(|name| TxOp::DeleteName { coll: SMALL, name });
            let crash = crash(rng);
            let crash = Op::Arm(Fault::Crash(rng.random_range(1..40)), crash);
            script.ops.extend([commit(gone.collect()), crash, Op::Checkpoint]);
        }
        script.ops.push(Op::Check);
    }
}

fn growth_step(rng: &mut SmallRng, page: u32, trouble: bool) -> Op {
    match rng.random_range(0..14) {
        0..3 => Op::Push(rng.random(), rng.random_range(1..200) * page),
        3..6 => {
            let gone = |rng: &mut SmallRng| TxOp::DeleteName {
                coll: if rng.random_bool(0.8) { SMALL } else { LARGE },
                name: rng.random_range(0..12),
            };
            commit((0..rng.random_range(1..6)).map(|_| gone(rng)).collect())
        }
        6 | 7 => Op::Checkpoint,
        8 => {
            // What goes makes the end of the file free, below a transaction that is open.
            let gone = (0..12).map(|name| TxOp::DeleteName { coll: SMALL, name });
            let (name, size) = (rng.random_range(0..4), rng.random_range(page..300 * page));
            let pick = rng.random::<u16>() & !1;
            let ops = vec![
                put(rng, LARGE, name, size),
                cut(rng, page),
                TxOp::Copy { pick, coll: LARGE, name: Some(9) },
                TxOp::DeleteName { coll: LARGE, name: rng.random_range(0..4) },
                TxOp::DropCollection { coll: rng.random_range(1..3) },
            ];
            let push = Op::Push(rng.random(), 50 * page);
            let (between, then) =
                (vec![Op::Checkpoint, push, Op::Checkpoint], vec![put(rng, LARGE, 1, page)]);
            let around = Op::WriteAround { ops, between, then, end: End::Commit };
            Op::Several(vec![commit(gone.collect()), around])
        }
        9 => Op::Defrag(vec![
            Op::Push(rng.random(), rng.random_range(1..100) * page),
            Op::Checkpoint,
            take(rng),
        ]),
        10 => {
            let (name, size) = (rng.random_range(0..12), rng.random_range(page..60 * page));
            commit(vec![put(rng, SMALL, name, size)])
        }
        11 => Op::OpenReader { newest: rng.random() },
        12 if trouble => {
            let crash = crash(rng);
            // Soon enough to strike in the cut.
            let crash = Op::Arm(Fault::Crash(rng.random_range(1..60)), crash);
            Op::Several(vec![crash, Op::Checkpoint])
        }
        13 if trouble => Op::Close(rng.random_bool(0.3).then(|| rng.random())),
        _ => Op::CheckReader(rng.random()),
    }
}

/// A full store in which one run is free for a mover, and besides that only crumbs: an object that
/// is replaced twice while it moves lies where it lay before.
fn exchange(script: &mut Script, rng: &mut SmallRng) {
    let pages = rng.random_range(100..400);
    script.params = exchange_params(&script.params, pages, rng);
    let page = script.params.page_size as u32;
    let trouble = rng.random_bool(0.3);
    let crumb = rng.random_range(1..5);
    let size = rng.random_range(2..6) * crumb;
    script.ops.clear();
    for _ in 0..rng.random_range(1..4) {
        let objects = rng.random_range(1..3);
        script.ops.push(commit(vec![put(rng, LARGE, FILLER, (size + 1) * page)]));
        // Crumbs until nothing more goes in.
        let crumbs = (pages / crumb).min(200) as u8;
        for name in 0..crumbs {
            script.ops.push(commit(vec![put(rng, SMALL, name, crumb * page)]));
        }
        // Every second one goes, so that two objects have room, in pieces.
        let some = (1 + objects) * size / crumb + rng.random_range(0..3);
        let gone = |n: u32| TxOp::DeleteName { coll: SMALL, name: (2 * n % 250) as u8 };
        script.ops.push(commit((0..some).map(gone).collect()));
        script.ops.extend([Op::Checkpoint, Op::Checkpoint]);
        for name in 0..objects as u8 {
            script.ops.push(commit(vec![put(rng, LARGE, name, size * page)]));
        }
        script.ops.push(commit(vec![TxOp::DeleteName { coll: LARGE, name: FILLER }]));
        script.ops.extend([Op::Checkpoint, Op::Checkpoint]);
        for _ in 0..rng.random_range(1..4) {
            let between = exchange_steps(rng, objects as u8, size * page, trouble);
            let order = if rng.random_bool(0.3) { Op::Defrag } else { Op::DefragAtCopies };
            script.ops.extend([order(between), Op::Check]);
        }
        script.ops.push(commit(vec![cut(rng, page)]));
    }
}

fn exchange_params(old: &Params, pages: u32, rng: &mut SmallRng) -> Params {
    let mut params = old.clone();
    params.max_bytes = u64::from(pages) * params.page_size as u64;
    let tuning = &mut params.tuning;
    tuning.pinned_bytes = rng.random_bool(0.7).then_some(0);
    if rng.random_bool(0.3) {
        tuning.old_version_bytes = 0;
    }
    params
}

/// What happens between two steps of the mover: the same objects, twice in the same places.
fn exchange_steps(rng: &mut SmallRng, objects: u8, size: u32, trouble: bool) -> Vec<Op> {
    let mut ops = Vec::new();
    for _ in 0..rng.random_range(1..3) {
        let name = rng.random_range(0..objects);
        for _ in 0..rng.random_range(2..4) {
            ops.push(commit(vec![put(rng, LARGE, name, size)]));
            if rng.random_bool(0.85) {
                ops.push(Op::Checkpoint);
                // A commit after it gives up snapshots that hold what the checkpoint freed.
                ops.push(commit(vec![put(rng, LARGE, FILLER - 1, 100)]));
            }
        }
        match rng.random_range(0..8) {
            0 => ops.push(Op::OpenReader { newest: rng.random() }),
            1 => ops.push(Op::CheckReader(rng.random())),
            2 if trouble => {
                let crash = crash(rng);
                ops.push(Op::Arm(Fault::Crash(rng.random_range(1..80)), crash));
            }
            3 => ops.push(commit(vec![TxOp::DeleteName { coll: LARGE, name }])),
            _ => {}
        }
    }
    let mut steps = vec![Op::Flush; rng.random_range(0..3)];
    steps.push(Op::Several(ops));
    steps
}
