//! Another process that reads while the store's own writes.
//!
//! Owns: what it may see: the newest state that is known to be durable, or a newer one that a power
//! cut would leave too; of a snapshot that it keeps, that snapshot's state, or that it is too old.
//! The process outlives the death of the one that writes.

use crate::check::{self, Bad};
use crate::model::State;
use crate::op::{End, Op, TxOp};
use crate::pairs::Actor;
use crate::script::Script;
use crate::world::{Kept, Outcome, World};
use holdall::{Error, Store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// Snapshots that it keeps at most.
const MOST_KEPT: usize = 4;

/// A process that reads.
pub(crate) struct Other {
    store: Store,
    pub(crate) kept: Vec<Kept>,
}

/// Puts such a process into a third of all scripts.
pub(crate) fn add(script: &mut Script) {
    let mut rng = SmallRng::seed_from_u64(script.seed.rotate_left(24) ^ 0x66_6f_6c_6c_6f_77);
    match rng.random_range(0..12) {
        0 => return replacements(script, &mut rng),
        1..5 => {}
        _ => return,
    }
    for _ in 0..rng.random_range(2..40) {
        let at = rng.random_range(0..=script.ops.len());
        let op = Op::Follow(rng.random());
        match script.ops.get_mut(at) {
            Some(Op::CheckpointWith(between) | Op::Defrag(between) | Op::VerifyBeside(between)) => {
                let at = rng.random_range(0..=between.len());
                between.insert(at, op);
            }
            Some(Op::WriteAround { between, .. }) => between.push(op),
            _ => script.ops.insert(at, op),
        }
    }
}

/// A few objects that are replaced again and again while the other process looks: their places, and
/// the info pages that these have, are used in turns.
fn replacements(script: &mut Script, rng: &mut SmallRng) {
    let params = &mut script.params;
    (params.max_bytes, params.tuning.auto_checkpoint) = (u64::MAX, true);
    // Many small spaces, all of whose pages stay in memory and in their places.
    (params.space_pages, params.tuning.cache_bytes) = (Some(64), 4 << 20);
    (params.tuning.transaction_bytes, params.tuning.checksum_bytes) = (32 << 20, 2 << 20);
    let (page, direct) = (params.page_size as u32, params.tuning.log_data_bytes as u32);
    script.ops.clear();
    let objects = rng.random_range(1..4);
    let all = rng.random();
    for _ in 0..rng.random_range(20..120) {
        let some = rng.random_range(0..objects);
        let ops = (0..objects).filter(|name| all || *name == some).map(|name| {
            let size = direct.min(1 << 20) + rng.random_range(1..64) * page;
            TxOp::Put { coll: 0, name, size, seed: rng.random(), attributes: 0 }
        });
        script.ops.push(Op::Write { ops: ops.collect(), end: End::Commit });
        match rng.random_range(0..8) {
            0..5 => script.ops.push(Op::Follow(rng.random_range(0..15))),
            5 => script.ops.push(Op::Checkpoint),
            _ => {}
        }
    }
}

impl World {
    pub(crate) fn follow(&mut self, n: u8) -> Outcome {
        if self.storage.crashed() || self.store.is_none() {
            return Ok(());
        }
        if n % 16 == 15 {
            self.other = None;
        }
        if self.other.is_none() {
            match self.params.options().open_read_only_on(self.storage.clone()) {
                Ok(store) => self.other = Some(Other { store, kept: Vec::new() }),
                Err(e) => return self.explain("opening beside the writer", e),
            }
        }
        self.act(Actor::Follower);
        match n % 8 {
            0..3 => self.look_from_outside(),
            3..6 => self.keep_outside(n.is_multiple_of(3)),
            _ => self.check_outside(n / 8),
        }
    }

    /// What a new snapshot of the other process shows.
    pub(crate) fn look_from_outside(&mut self) -> Outcome {
        match self.seen_outside() {
            Ok(found) => self.found_outside(found).map(drop),
            Err(bad) => self.explain_bad("a snapshot beside the writer", bad),
        }
    }

    fn seen_outside(&self) -> Result<State, Bad> {
        match &self.other {
            Some(other) if !self.storage.crashed() => check::read_out(&other.store.read()?),
            // As if it had looked.
            _ => Ok(State::clone(&self.states[0])),
        }
    }

    /// The state that another process found, which a power cut must leave.
    fn found_outside(&mut self, found: State) -> Outcome<Arc<State>> {
        self.report.checks += 1;
        let state = self.one_of(&found, "beside the writer")?;
        if *self.states[0] == found {
            return Ok(state);
        }
        let survivor = self.after_power_cut()?;
        let all: Vec<_> = self.states.iter().chain(&self.pending).cloned().collect();
        let place = |state: &State| all.iter().rposition(|s| **s == *state);
        if place(&survivor) < place(&found) {
            return Err("another process sees commits that a power cut loses".into());
        }
        Ok(state)
    }

    /// Keeps a snapshot; a cold one of a process that has read nothing yet.
    fn keep_outside(&mut self, cold: bool) -> Outcome {
        let found = match self.seen_outside() {
            Ok(found) => found,
            Err(bad) => return self.explain_bad("a snapshot beside the writer", bad),
        };
        let state = self.found_outside(found)?;
        let Some(other) = &self.other else { return Ok(()) };
        let reader = match cold {
            true => {
                let opened = self.params.options().open_read_only_on(self.storage.clone());
                opened.and_then(|store| store.read())
            }
            false => other.store.read(),
        };
        match (reader, &mut self.other) {
            (Ok(reader), Some(other)) => {
                other.kept.truncate(MOST_KEPT - 1);
                other.kept.insert(0, Kept { reader, state });
                Ok(())
            }
            (Err(e), _) => self.explain("a snapshot beside the writer", e),
            _ => Ok(()),
        }
    }

    fn check_outside(&mut self, n: u8) -> Outcome {
        let Some(other) = self.other.as_ref().filter(|other| !other.kept.is_empty()) else {
            return self.look_from_outside();
        };
        let n = usize::from(n) % other.kept.len();
        let Some(kept) = other.kept.get(n) else { return Ok(()) };
        self.report.checks += 1;
        match check::read_out(&kept.reader) {
            Ok(found) => match found.difference(&kept.state) {
                None => Ok(()),
                Some(text) => Err(format!("a snapshot beside the writer: {text}")),
            },
            Err(Bad::Engine(Error::SnapshotTooOld { .. })) => {
                if let Some(other) = &mut self.other {
                    other.kept.remove(n);
                }
                self.act(Actor::Expiry);
                self.note("a snapshot beside the writer is too old".into());
                Ok(())
            }
            Err(bad) => self.explain_bad("a kept snapshot beside the writer", bad),
        }
    }
}
