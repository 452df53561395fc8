//! Snapshots that the store's process holds for readers of other processes.
//!
//! Owns: what these may see: the state of the snapshot, for as long as it is held, whatever the
//! writer does to the places; and that a verification of it finds nothing.

use crate::check::{self, Bad};
use crate::op::Op;
use crate::pairs::Actor;
use crate::script::Script;
use crate::world::{Kept, Outcome, World};
use holdall::{Error, Holder, PageNo, Reader, Store};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

/// Snapshots held at most.
const MOST: usize = 3;

/// The writer's end: what a socket would lead to.
#[derive(Debug)]
struct Here(Reader);

impl Holder for Here {
    fn page(&self, page: PageNo, kind: u8) -> holdall::Result<Vec<u8>> {
        self.0.page_in_place(page, kind)
    }

    fn is_held(&self) -> bool {
        self.0.is_live()
    }
}

/// One of them.
pub(crate) struct Held {
    kept: Kept,
    store: Store,
    holder: Arc<Here>,
}

/// Puts them into a fifth of all scripts.
pub(crate) fn add(script: &mut Script) {
    let mut rng = SmallRng::seed_from_u64(script.seed.rotate_left(28) ^ 0x6865_6c64);
    if rng.random_range(0..5) > 0 {
        return;
    }
    for _ in 0..rng.random_range(2..40) {
        let at = rng.random_range(0..=script.ops.len());
        let op = Op::Hold(rng.random());
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

impl World {
    pub(crate) fn hold(&mut self, n: u8) -> Outcome {
        if self.storage.crashed() || self.store.is_none() {
            return Ok(());
        }
        self.act(Actor::Held);
        match n % 8 {
            0..3 => self.begin_to_hold(),
            3..7 => self.check_held(usize::from(n / 8)),
            _ if !self.held.is_empty() => {
                self.held.remove(usize::from(n / 8) % self.held.len());
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn begin_to_hold(&mut self) -> Outcome {
        let (store, storage) = (self.store()?.clone(), self.storage.clone());
        let opened = store.read().and_then(|reader| {
            let (holder, at) = (Arc::new(Here(reader.clone())), (store.id(), reader.lsn()));
            let elsewhere = self.params.options().open_held_on(storage, at, holder.clone())?;
            let seen = elsewhere.read()?;
            Ok((reader, seen, elsewhere, holder))
        });
        let (own, reader, store, holder) = match opened {
            Ok(opened) => opened,
            Err(Error::SnapshotTooOld { .. }) if self.may_expire() => return Ok(()),
            Err(e) => return self.explain("a held snapshot", e),
        };
        let found = match check::read_out(&own) {
            Ok(found) => found,
            Err(bad) => return self.explain_bad("a snapshot to be held", bad),
        };
        let state = self.one_of(&found, "a snapshot to be held")?;
        self.held.truncate(MOST - 1);
        self.held.insert(0, Held { kept: Kept { reader, state }, store, holder });
        self.check_held(0)
    }

    fn check_held(&mut self, n: usize) -> Outcome {
        let Some(held) = self.held.get(n % self.held.len().max(1)) else { return Ok(()) };
        self.report.checks += 1;
        let gone = |held: &Held| !held.holder.is_held();
        match check::read_out(&held.kept.reader) {
            Ok(found) => {
                if let Some(text) = found.difference(&held.kept.state) {
                    return Err(format!("a held snapshot: {text}"));
                }
            }
            Err(Bad::Engine(Error::SnapshotTooOld { .. })) if gone(held) && self.may_expire() => {
                let held = n % self.held.len();
                self.held.remove(held);
                self.act(Actor::Expiry);
                return Ok(());
            }
            Err(bad) => return self.explain_bad("a held snapshot", bad),
        }
        if !self.is_quiet() || self.poisoned {
            return Ok(());
        }
        match held.store.verify() {
            Ok(report) => check::sound(&report).map_err(|bad| format!("held: {bad}")),
            Err(Error::SnapshotTooOld { .. }) if gone(held) && self.may_expire() => Ok(()),
            Err(e) => self.explain("a verification of a held snapshot", e),
        }
    }
}
