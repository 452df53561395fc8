//! Rare meetings, staged behind all else that a script does.
//!
//! Owns: [`add`]. At the end of a script nothing of it changes what a seed found before. Draws come
//! from a generator of their own.

use crate::draws::{LARGE, SMALL, commit, put};
use crate::op::{EditKind, Op, TxOp};
use crate::params::Tuning;
use crate::script::Script;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The collection that is dropped.
const DROPPED: u8 = 40;
/// Objects whose heap pages are read in old versions.
const OBJECTS: u8 = 48;
/// Openings drawn for one with a small budget of old versions.
const OPENINGS: usize = 64;

/// Objects that grow in turns.
const GROWING: u8 = 20;

/// One script of eight ends with a cut and emptying beside a backup, one with old versions in scratch
/// that meet others there. Each of a bounded store ends with objects that grow, and one that needs
/// what is kept for them.
pub(crate) fn add(script: &mut Script) {
    let mut rng = SmallRng::seed_from_u64(script.seed.rotate_left(37) ^ 0x7261_7265);
    let page = script.params.page_size;
    let ops = match rng.random_range(0..8) {
        _ if script.params.max_bytes < u64::MAX => windows(&mut rng, script.params.max_bytes, page),
        0 if script.params.max_bytes == u64::MAX => cut(&mut rng, page as u32),
        1 => scratch(&mut rng, page),
        _ => return,
    };
    script.ops.push(Op::Heal);
    script.ops.extend(ops);
}

/// What lay at the end of the file is free when a backup begins; checkpoints cut it meanwhile, and
/// what was dropped is emptied.
fn cut(rng: &mut SmallRng, page: u32) -> Vec<Op> {
    let fill = |rng: &mut SmallRng| {
        let puts = (0..8).map(|name| put(rng, LARGE, name, 100 * page));
        commit(puts.collect())
    };
    let gone = || commit((0..8).map(|name| TxOp::DeleteName { coll: LARGE, name }).collect());
    // A collection that is large in every opening.
    let many = commit((0..200).map(|name| put(rng, DROPPED, name, 500)).collect());
    let drop = commit(vec![TxOp::DropCollection { coll: DROPPED }]);
    // No snapshot keeps what goes.
    let mut ops = vec![Op::Close(None), many, drop, fill(rng), gone()];
    let mut work = vec![Op::EmptyDropped, Op::Checkpoint, Op::Checkpoint, Op::Checkpoint];
    if rng.random_bool(0.5) {
        work.extend([fill(rng), gone(), Op::Checkpoint, Op::Checkpoint]);
    }
    // A whole one or an increment, not broken off.
    let n = *[0, 1, 2].get(rng.random_range(0..3)).unwrap_or(&0);
    ops.extend([Op::Backup(n, work), Op::Check]);
    ops
}

/// Snapshots whose old versions do not fit memory, each beside those of the one before, beside
/// commits and a mover that take what they leave.
fn scratch(rng: &mut SmallRng, page: usize) -> Vec<Op> {
    let small = |seed: &u64| {
        let tuning = Tuning::draw(&mut SmallRng::seed_from_u64(*seed), page);
        tuning.old_version_bytes == 8 * page
    };
    let Some(tuning) = (0..OPENINGS).map(|_| rng.random()).find(small) else { return Vec::new() };
    let size = page as u32 / 2;
    let all = |rng: &mut SmallRng| {
        let puts = (0..OBJECTS).map(|name| put(rng, SMALL, name, size));
        commit(puts.collect())
    };
    let mut ops = vec![Op::Close(Some(tuning)), all(rng)];
    for _ in 0..rng.random_range(2..4) {
        ops.extend([Op::OpenReader { newest: true }, all(rng), Op::CheckReader(rng.random())]);
    }
    let gone = (0..OBJECTS).filter(|name| name % 3 > 0);
    let gone = gone.map(|name| TxOp::DeleteName { coll: SMALL, name });
    ops.push(commit(gone.collect()));
    let between = vec![all(rng), Op::OpenReader { newest: true }, Op::CheckReader(rng.random())];
    ops.extend([Op::Defrag(between), Op::CheckReader(0), Op::DropReader(0), all(rng)]);
    ops.extend([Op::CheckReader(rng.random()), Op::Check]);
    ops
}

/// Objects grow in turns, so that pages are kept behind each; then one is put that needs nearly all
/// that is free.
fn windows(rng: &mut SmallRng, most: u64, page: usize) -> Vec<Op> {
    let (coll, page) = (LARGE, page as u32);
    let gone = |name| commit(vec![TxOp::DeleteName { coll, name }]);
    let mut ops = vec![commit(vec![TxOp::DropCollection { coll: SMALL }]), Op::EmptyDropped];
    ops.extend((0..12).map(gone));
    ops.extend([Op::Checkpoint, Op::Checkpoint]);
    let page_more = |rng: &mut SmallRng, pick| {
        let (kind, size, seed) = (EditKind::Append, page, rng.random());
        commit(vec![TxOp::Edit { pick, kind, at: 0, len: 0, size, seed }])
    };
    for _ in 0..2 {
        ops.extend((0..GROWING).map(|pick| page_more(rng, 2 * u16::from(pick))));
    }
    // The first do not fit.
    ops.extend(
        (4..20).rev().map(|part| commit(vec![put(rng, coll, 0, (most * part / 20) as u32)])),
    );
    ops.push(Op::Check);
    ops
}
