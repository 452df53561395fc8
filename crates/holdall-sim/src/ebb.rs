//! Tides: a script that fills the store, empties it, and fills it again on a nearly full disk.
//!
//! Owns: [`add`]. What is given back to the file system must have blocks again before it is used
//! (rules 28 to 30), also after a crash or an opening.

use crate::op::{Crash, EditKind, End, Fault, Op, TxOp};
use crate::script::Script;
use holdall_testkit::{CrashKind, LossPolicy};
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

/// The collection that comes and goes.
const COLLECTION: u8 = 9;

/// Puts a tide or two into some scripts. Draws from a generator of its own, so that the rest of
/// a seed's script stays as it is.
pub(crate) fn add(script: &mut Script) {
    let mut rng = SmallRng::seed_from_u64(script.seed ^ 0xEBB);
    if rng.random_bool(0.3) {
        for _ in 0..rng.random_range(1..5) {
            let at = rng.random_range(0..=script.ops.len());
            let defrag = defrag(&mut rng, script.params.page_size as u32);
            script.ops.splice(at..at, defrag);
        }
    }
    if script.params.max_bytes < u64::MAX && rng.random_bool(0.5) {
        let at = rng.random_range(0..=script.ops.len());
        let brim = brim(&mut rng, script.params.page_size as u32);
        script.ops.splice(at..at, brim);
    }
    if !rng.random_bool(0.25) {
        return;
    }
    for _ in 0..rng.random_range(1..3) {
        let tide = tide(&mut rng, script.params.page_size as u32);
        let at = rng.random_range(0..=script.ops.len());
        script.ops.splice(at..at, tide);
    }
}

fn tide(rng: &mut SmallRng, page: u32) -> Vec<Op> {
    let mut ops = vec![Op::Heal];
    ops.extend((0..rng.random_range(2..6)).map(|_| flood(rng, page, 20..60)));
    ops.push(Op::Checkpoint);
    // Mostly all of it goes; what stays of it keeps the file from being cut.
    if rng.random_bool(0.4) {
        ops.push(write(vec![TxOp::DropCollection { coll: COLLECTION }]));
    } else {
        let gone =
            (0..9).map(|_| TxOp::DeleteName { coll: COLLECTION, name: rng.random_range(0..12) });
        ops.push(write(gone.collect()));
    }
    // The second one finds free what the first one made so.
    ops.extend([Op::Checkpoint, Op::Checkpoint]);
    match rng.random_range(0..4) {
        0 => ops.push(Op::Close(None)),
        1 => ops.push(Op::Crash(Crash {
            kind: *[CrashKind::ProcessKilled, CrashKind::PowerCut(LossPolicy::Random)]
                .choose(rng)
                .unwrap_or(&CrashKind::ProcessKilled),
            seed: rng.random(),
            read_only: false,
            again: Vec::new(),
        })),
        _ => {}
    }
    if rng.random_bool(0.7) {
        let crash = Crash {
            kind: CrashKind::ProcessKilled,
            seed: rng.random(),
            read_only: false,
            again: Vec::new(),
        };
        let most = u64::from(page) * rng.random_range(0..30);
        ops.push(Op::Arm(Fault::Full(most), crash));
    }
    for _ in 0..rng.random_range(2..6) {
        if rng.random_bool(0.3) {
            ops.push(flood(rng, page, 1..30));
        } else {
            ops.push(trickle(rng, page));
        }
        ops.push(Op::Checkpoint);
    }
    ops.push(Op::Heal);
    ops.extend(defrag(rng, page));
    ops
}

/// Fills a bounded store until nothing more goes in, then shrinks objects and deletes some: the
/// reserve is for that (rule 25).
fn brim(rng: &mut SmallRng, page: u32) -> Vec<Op> {
    let mut ops = vec![Op::Heal];
    for most in [80, 40, 20, 8, 3, 2, 1] {
        for _ in 0..6 {
            let put = TxOp::Put {
                coll: COLLECTION,
                name: rng.random_range(0..60),
                size: page * rng.random_range(most / 2..=most) + page / 3,
                seed: rng.random(),
                attributes: 0,
            };
            ops.push(write(vec![put]));
        }
    }
    for _ in 0..8 {
        let op = if rng.random_bool(0.7) {
            TxOp::Edit {
                pick: rng.random::<u16>() & !1,
                kind: EditKind::Splice,
                at: rng.random_range(0..32_768),
                len: rng.random_range(1..2 * page),
                size: 0,
                seed: 0,
            }
        } else {
            TxOp::DeleteOid { pick: rng.random::<u16>() & !1 }
        };
        ops.push(write(vec![op]));
    }
    ops
}

/// Edits that cut objects into pieces, and a defragmentation, mostly with more of them beside it.
fn defrag(rng: &mut SmallRng, page: u32) -> [Op; 2] {
    // Few objects, so that the one that moves is changed meanwhile.
    let picks: Vec<u16> = (0..3).map(|_| rng.random::<u16>() & !1).collect();
    let edit = |rng: &mut SmallRng| TxOp::Edit {
        pick: *picks.choose(rng).unwrap_or(&0),
        kind: *[EditKind::Splice, EditKind::Splice, EditKind::WriteAt]
            .choose(rng)
            .unwrap_or(&EditKind::Splice),
        at: rng.random_range(0..33_000),
        len: rng.random_range(0..page),
        size: rng.random_range(1..3 * page),
        seed: rng.random(),
    };
    let cuts = (0..rng.random_range(0..12)).map(|_| edit(rng)).collect();
    let mut beside = Vec::new();
    if rng.random_bool(0.8) {
        beside.extend((0..6).map(|_| write(vec![edit(rng)])));
        beside.push(Op::OpenReader { newest: rng.random() });
        beside.push(Op::CheckReader(rng.random()));
    }
    [write(cuts), Op::Defrag(beside)]
}

fn write(ops: Vec<TxOp>) -> Op {
    Op::Write { ops, end: End::Commit }
}

/// Objects that pass through the log: their places are written to by a checkpoint.
fn trickle(rng: &mut SmallRng, page: u32) -> Op {
    let put = |rng: &mut SmallRng| TxOp::Put {
        coll: 0,
        name: rng.random_range(0..60),
        size: rng.random_range(page / 2..3 * page),
        seed: rng.random(),
        attributes: 0,
    };
    write((0..rng.random_range(4..14)).map(|_| put(rng)).collect())
}

fn flood(rng: &mut SmallRng, page: u32, pages: std::ops::Range<u32>) -> Op {
    let calls = rng.random_range(1..4);
    let put = |rng: &mut SmallRng| TxOp::Put {
        coll: COLLECTION,
        name: rng.random_range(0..12),
        size: page * rng.random_range(pages.clone()),
        seed: rng.random(),
        attributes: 0,
    };
    write((0..calls).map(|_| put(rng)).collect())
}
