//! Objects that are staged over several operations.
//!
//! Owns: [`Staging`], a staged object with the bytes it will have. It stays open beside commits,
//! checkpoints, growth, cuts, defragmentation and the expiry of snapshots, until a transaction
//! takes it, a crash forgets it, or it is dropped. A closed store takes no more of its bytes.

use crate::check::Bad;
use crate::model::{self, Object};
use crate::op::{Hint, Op, TxOp};
use crate::pairs::Actor;
use crate::transact::Playing;
use crate::world::{Outcome, World};
use holdall::{Attributes, PutOptions, StagedObject, Target, WriteTx};
use std::sync::Arc;

/// Staged objects open at a time.
const MOST_STAGED: usize = 4;

/// An object on its way in.
pub(crate) struct Staging {
    object: StagedObject,
    coll: u8,
    name: Option<Vec<u8>>,
    bytes: Arc<[u8]>,
    /// Bytes pushed so far.
    at: usize,
}

impl Staging {
    fn push(&mut self, most: usize) -> Result<(), holdall::Error> {
        let to = self.at.saturating_add(most).min(self.bytes.len());
        let part = &self.bytes[self.at..to];
        self.at = to;
        self.object.push(part)
    }
}

/// The size that a streaming writer expects, of `size` bytes that come.
pub(crate) fn expected_size(hint: Hint, size: u32) -> Option<u64> {
    match hint {
        Hint::None => None,
        Hint::Right => Some(u64::from(size)),
        Hint::Less => Some(u64::from(size) / 2),
        Hint::More => Some(u64::from(size) * 3),
    }
}

impl World {
    /// Begins to stage an object, and pushes a quarter of it.
    pub(crate) fn stage(&mut self, op: &Op) -> Outcome {
        let Op::Stage { coll, name, size, seed, hint } = *op else { return Ok(()) };
        if self.in_checkpoint || self.storage.crashed() || self.poisoned {
            return Ok(());
        }
        if self.staged.len() == MOST_STAGED {
            self.staged.remove(0);
        }
        let name = name.map(model::name);
        let target = name.clone().map_or(Target::New, Target::Name);
        let options =
            PutOptions { expected_size: expected_size(hint, size), ..PutOptions::default() };
        match self.store()?.stage(target, options) {
            Ok(object) => {
                let bytes = model::bytes(seed, size);
                self.staged.push(Staging { object, coll, name, bytes, at: 0 });
                self.push(u8::try_from(self.staged.len() - 1).unwrap_or(0), size / 4)
            }
            Err(e) => self.explain("staging", e),
        }
    }

    /// Pushes up to `most` more bytes of a staged object.
    pub(crate) fn push(&mut self, n: u8, most: u32) -> Outcome {
        if self.in_checkpoint || self.staged.is_empty() || self.storage.crashed() {
            return Ok(());
        }
        self.act(Actor::Staged);
        let n = usize::from(n) % self.staged.len();
        let Some(staging) = self.staged.get_mut(n) else { return Ok(()) };
        let result = staging.push(most as usize);
        let (at, all) = (staging.at, staging.bytes.len());
        self.note(format!("staged {at} of {all} bytes"));
        match result {
            Ok(()) => Ok(()),
            Err(e) => {
                self.staged.remove(n);
                self.explain("pushing bytes of a staged object", e)
            }
        }
    }

    pub(crate) fn drop_staged(&mut self, n: u8) {
        if !self.staged.is_empty() {
            self.staged.remove(usize::from(n) % self.staged.len());
        }
    }

    /// After a close: what still comes goes nowhere, or is refused.
    pub(crate) fn push_to_closed(&mut self) {
        for mut staging in std::mem::take(&mut self.staged) {
            let result = staging.push(usize::MAX);
            self.note(format!("pushed to a closed store: {}", result.is_ok()));
        }
    }
}

impl Playing<'_> {
    /// Pushes the rest of a staged object, which joins the transaction.
    pub(crate) fn take_staged(&mut self, tx: &mut WriteTx, op: &TxOp) -> Result<(), Bad> {
        let TxOp::Staged { n } = *op else { return Ok(()) };
        if self.staged.is_empty() {
            return Ok(());
        }
        let mut staging = self.staged.remove(usize::from(n) % self.staged.len());
        staging.push(usize::MAX)?;
        let Staging { object, coll, name, bytes, .. } = staging;
        let oid = object.finish(&mut *tx.collection(&model::collection(coll))?)?;
        self.put(coll, oid, Object { name, attributes: Attributes::new(), bytes })
    }
}
