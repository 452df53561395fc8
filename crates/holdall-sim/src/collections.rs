//! Collections that become large and small again, and large ones that are dropped.
//!
//! Owns: [`add`], which has scripts do that; and emptying what was dropped, played to store and
//! model, of which the model sees nothing. Draws come from a generator of their own, so that the
//! rest of a seed's script stays as it is.

use crate::draws::{any_call, commit, crash, put};
use crate::op::{End, Fault, Op, TxOp};
use crate::pairs::Actor;
use crate::script::Script;
use crate::world::{Outcome, World};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The first of the collections in these scripts.
const FIRST: u8 = 10;
/// How many there are.
const COUNT: u8 = 3;

/// Puts such operations into two of five scripts.
pub(crate) fn add(script: &mut Script) {
    let mut rng = SmallRng::seed_from_u64(script.seed.rotate_left(17) ^ 0x636f_6c6c);
    if !rng.random_bool(0.4) {
        return;
    }
    for _ in 0..rng.random_range(1..5) {
        let ops = match rng.random_range(0..3) {
            0 => across(&mut rng),
            _ => dropped(&mut rng),
        };
        let at = rng.random_range(0..=script.ops.len());
        script.ops.splice(at..at, ops);
    }
}

fn any(rng: &mut SmallRng) -> u8 {
    FIRST + rng.random_range(0..COUNT)
}

fn small(rng: &mut SmallRng, coll: u8) -> TxOp {
    let size = if rng.random_bool(0.1) { 20_000 } else { 700 };
    let (name, size) = (rng.random_range(0..20), rng.random_range(0..size));
    put(rng, coll, name, size)
}

/// Objects come to a collection until it is large, and go until it is small.
fn across(rng: &mut SmallRng) -> Vec<Op> {
    let coll = any(rng);
    let mut ops = Vec::new();
    for _ in 0..rng.random_range(1..3) {
        for _ in 0..rng.random_range(2..9) {
            let mut calls: Vec<TxOp> =
                (0..rng.random_range(1..4)).map(|_| small(rng, coll)).collect();
            if rng.random_bool(0.3) {
                calls.push(any_call(rng));
            }
            let end = if rng.random_bool(0.2) { End::Deferred } else { End::Commit };
            ops.push(around(rng, Op::Write { ops: calls, end }));
        }
        let gone = (0..20).filter(|_| rng.random_bool(0.9));
        let gone = gone.map(|name| TxOp::DeleteName { coll, name }).collect();
        let between = (0..rng.random_range(0..3)).map(|_| commit(vec![small(rng, coll)])).collect();
        ops.extend([commit(gone), Op::Defrag(between), Op::Check]);
    }
    ops
}

/// What happens around a step, or in it.
fn around(rng: &mut SmallRng, op: Op) -> Op {
    match rng.random_range(0..10) {
        0 => Op::CheckpointWith(vec![op]),
        1 => Op::VerifyBeside(vec![op]),
        2 => {
            let crash = crash(rng);
            let crash = Op::Arm(Fault::Crash(rng.random_range(1..12)), crash);
            Op::Several(vec![crash, op])
        }
        3 => Op::Several(vec![Op::OpenReader { newest: rng.random() }, op]),
        4 => {
            let crash = crash(rng);
            let more = 4096 * rng.random_range(0..40);
            Op::Several(vec![Op::Arm(Fault::Full(more), crash), op])
        }
        _ => op,
    }
}

/// A large collection is dropped and emptied step by step; one of its name may come meanwhile.
fn dropped(rng: &mut SmallRng) -> Vec<Op> {
    let coll = any(rng);
    let mut ops = Vec::new();
    for _ in 0..rng.random_range(1..6) {
        let mut calls: Vec<TxOp> = (0..rng.random_range(1..12)).map(|_| small(rng, coll)).collect();
        let near = Some(rng.random());
        let size = rng.random_range(0..9000);
        calls.push(TxOp::Create { coll, size, seed: rng.random(), near });
        ops.push(commit(calls));
    }
    if rng.random_bool(0.5) {
        ops.push(Op::OpenReader { newest: rng.random() });
    }
    let mut calls = vec![TxOp::DropCollection { coll }];
    if rng.random_bool(0.3) {
        calls.push(small(rng, coll));
    }
    let end = if rng.random_bool(0.3) { End::Deferred } else { End::Commit };
    ops.push(around(rng, Op::Write { ops: calls, end }));
    for _ in 0..rng.random_range(1..8) {
        let step = match rng.random_range(0..12) {
            0 => commit(vec![small(rng, coll), any_call(rng)]),
            1 => Op::CheckReader(rng.random()),
            2 => Op::Close(rng.random_bool(0.5).then(|| rng.random())),
            3 => Op::Defrag(vec![Op::EmptyDropped, commit(vec![small(rng, coll)])]),
            4 => Op::Check,
            // Room in the log, for a commit in the checkpoint.
            5..8 => Op::Several(vec![
                Op::Checkpoint,
                Op::CheckpointWith(vec![Op::EmptyDropped, Op::EmptyDropped]),
            ]),
            _ => around(rng, Op::EmptyDropped),
        };
        ops.push(step);
    }
    ops.push(Op::Check);
    ops
}

impl World {
    /// Empties a part of what was dropped. Nobody sees a difference.
    pub(crate) fn empty_dropped(&mut self) -> Outcome {
        if self.in_checkpoint && !self.has_room_inside()? {
            return Ok(());
        }
        self.act_if_dropped();
        match self.store()?.empty_dropped() {
            Ok(more) => {
                self.note(format!("emptied a part of what was dropped, more: {more}"));
                self.look_for_expired();
                self.check_contents()
            }
            Err(e) => self.explain("emptying what was dropped", e),
        }
    }

    /// Notes that what was dropped is about to be emptied, if anything is.
    pub(crate) fn act_if_dropped(&mut self) {
        // A read counts among the calls that a fault is planned for, and the page is in memory.
        if self.store().is_ok_and(|store| store.has_dropped()) {
            self.act(Actor::Emptying);
        }
    }

    /// Notes whether a collection has become large or small since the last look.
    pub(crate) fn look_at_border(&mut self) {
        // A look reads only, which a full disk does not count.
        let is_full = matches!(self.armed, Some((Fault::Full(_), _))) && self.past.is_none();
        if !(self.is_quiet() || is_full) || self.storage.crashed() || self.poisoned {
            return;
        }
        let Some(stat) = self.store.as_ref().and_then(|store| store.stat().ok()) else { return };
        let now = stat.collections.into_iter().map(|c| (c.name, c.small)).collect();
        let before = std::mem::replace(&mut self.small, now);
        if before.iter().any(|(name, small)| self.small.get(name).is_some_and(|now| now != small)) {
            self.act(Actor::Border);
        }
    }
}
