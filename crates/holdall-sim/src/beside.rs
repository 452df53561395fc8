//! Time that passes over deferred commits, verification beside growth, and freed space that
//! snapshots hold.
//!
//! Owns: which scripts get these, and what is expected of them: a deferred commit is durable
//! after its time although no thread flushes it; a sound store that grows while it is verified
//! is found sound. These draws have a generator of their own, so that the rest of a seed's
//! script is what it was without them.

use crate::check::{self, Bad};
use crate::op::{End, Op, TxOp};
use crate::params::DEFER;
use crate::script::Script;
use crate::world::{Outcome, World};
use holdall::Error;
use holdall_io::Storage;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Puts such operations into a quarter of all scripts.
pub(crate) fn add(script: &mut Script) {
    let mut rng = SmallRng::seed_from_u64(script.seed.rotate_left(32) ^ 0x6265_7369_6465);
    if rng.random_range(0..4) > 0 {
        return;
    }
    if rng.random_bool(0.5) {
        let pages = rng.random_range(0..200);
        script.params.tuning.pinned_bytes = Some(pages * script.params.page_size as u64);
    }
    for _ in 0..rng.random_range(1..8) {
        let at = rng.random_range(0..=script.ops.len());
        let op = if rng.random_bool(0.5) {
            Op::Wait
        } else {
            Op::VerifyBeside(vec![growth(&mut rng), Op::Checkpoint, growth(&mut rng), Op::Flush])
        };
        script.ops.insert(at, op);
    }
}

fn growth(rng: &mut SmallRng) -> Op {
    let (name, size, seed) = (rng.random_range(0..3), rng.random_range(1..300_000), rng.random());
    let end = if rng.random_bool(0.3) { End::Deferred } else { End::Commit };
    let put = TxOp::Put { coll: 0, name, size, seed, attributes: 0 };
    Op::Write { ops: vec![put], end }
}

impl World {
    /// Lets the time go by after which deferred commits must be durable.
    pub(crate) fn wait(&mut self) -> Outcome {
        let later = self.storage.now() + DEFER;
        self.storage.set_now(later);
        let reader = match self.store()?.read() {
            Ok(reader) => reader,
            Err(e) => return self.explain("a snapshot after a while", e),
        };
        if self.is_quiet() {
            match check::read_out(&reader) {
                Ok(found) => {
                    if let Some(text) = found.difference(self.newest()) {
                        return Err(format!("a deferred commit is not durable in time: {text}"));
                    }
                    self.note("waited".into());
                    self.all_durable();
                }
                Err(bad) => return self.explain_bad("a snapshot after a while", bad),
            }
        }
        drop(reader);
        // As a store does in which nobody writes.
        match self.store()?.shrink_log() {
            Ok(()) => self.check_contents(),
            Err(e) => self.explain("a smaller log", e),
        }
    }

    /// Verifies while these are done, one at each report of progress.
    pub(crate) fn verify_beside(&mut self, work: &[Op]) -> Outcome {
        if self.inside || !self.is_quiet() || self.storage.crashed() || self.poisoned {
            return Ok(());
        }
        let store = self.store()?.clone();
        let (mut left, mut failure) = (work.iter(), None);
        let report = store.verify_with(&holdall::VerifyOptions::default(), &mut |_| {
            if failure.is_none()
                && let Some(op) = left.next()
            {
                failure = self.play(op).err();
            }
        });
        if let Some(failure) = failure {
            return Err(format!("beside a verification: {failure}"));
        }
        match report {
            Ok(report) => {
                self.note(format!("verified beside {} operations", work.len() - left.len()));
                check::sound(&report).map_err(|bad| format!("beside work: {bad}"))
            }
            Err(Error::SnapshotTooOld { .. }) if self.may_expire() => Ok(()),
            Err(e) => self.explain_bad("a verification beside work", Bad::Engine(e)),
        }
    }
}
