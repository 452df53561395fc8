//! Single calls, drawn, for the scripts in which mechanisms meet.

use crate::crash::draw_kind;
use crate::op::{Crash, EditKind, End, Hint, Op, TxOp};
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;

/// The collection of small objects in these scripts.
pub(crate) const SMALL: u8 = 7;
/// The collection of large objects in these scripts.
pub(crate) const LARGE: u8 = 8;

pub(crate) fn any_call(rng: &mut SmallRng) -> TxOp {
    let (coll, name) = (rng.random_range(0..3), rng.random_range(0..12));
    let (pick, size) = (rng.random::<u16>() & !1, rng.random_range(0..30_000));
    match rng.random_range(0..12) {
        0..3 => put(rng, coll, name, size),
        3 => TxOp::DropCollection { coll: rng.random_range(1..3) },
        4 | 5 => TxOp::Copy { pick, coll, name: Some(name) },
        6 => {
            TxOp::CopyRange { from: pick, at: 0, end: 9000, into: rng.random::<u16>() & !1, to: 0 }
        }
        7 | 8 => TxOp::DeleteName { coll, name },
        9 => TxOp::DeleteOid { pick },
        _ => cut(rng, 4096),
    }
}

pub(crate) fn commit(ops: Vec<TxOp>) -> Op {
    Op::Write { ops, end: End::Commit }
}

pub(crate) fn put(rng: &mut SmallRng, coll: u8, name: u8, size: u32) -> TxOp {
    TxOp::Put { coll, name, size, seed: rng.random(), attributes: 0 }
}

pub(crate) fn crash(rng: &mut SmallRng) -> Crash {
    Crash { kind: draw_kind(rng), seed: rng.random(), read_only: false, again: Vec::new() }
}

pub(crate) fn cut(rng: &mut SmallRng, page: u32) -> TxOp {
    TxOp::Edit {
        pick: rng.random::<u16>() & !1,
        kind: EditKind::Splice,
        at: rng.random_range(0..32_768),
        len: rng.random_range(0..2 * page),
        size: rng.random_range(1..2 * page),
        seed: rng.random(),
    }
}

/// A staged object begins.
pub(crate) fn stage(rng: &mut SmallRng, size: u32) -> Op {
    let hints = [Hint::None, Hint::Right, Hint::Less, Hint::More];
    Op::Stage {
        coll: LARGE,
        name: rng.random_bool(0.8).then(|| rng.random_range(0..6)),
        size,
        seed: rng.random(),
        hint: *hints.choose(rng).unwrap_or(&Hint::None),
    }
}

/// A transaction takes one that is staged.
pub(crate) fn take(rng: &mut SmallRng) -> Op {
    let end = *[End::Commit, End::Commit, End::Commit, End::Deferred, End::Abort]
        .choose(rng)
        .unwrap_or(&End::Commit);
    let mut ops = vec![TxOp::Staged { n: rng.random() }];
    if rng.random_bool(0.3) {
        let more = put(rng, SMALL, 0, 5000);
        ops.push(more);
    }
    Op::Write { ops, end }
}
