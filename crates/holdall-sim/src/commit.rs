//! Transactions, and what makes commits durable, played to store and model.
//!
//! Owns: the rules of acknowledgement: a commit that returned is durable, or durable in order
//! if it was deferred; one that failed for anything but poison has changed nothing.

use crate::check::Bad;
use crate::model::{self, State};
use crate::op::{EditKind, End, Fault, Op, TxOp};
use crate::pairs::Actor;
use crate::transact::Playing;
use crate::world::{Outcome, World};
use holdall::{DefragOptions, Durability, Error, WriteTx};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Steps of a checkpoint between which something is done; one of many pages has more.
const MOST_STEPS: usize = 40;

/// Who acts in a call.
fn actor_of(op: &TxOp) -> Option<Actor> {
    Some(match op {
        TxOp::Put { .. } | TxOp::Create { .. } | TxOp::Many { .. } => Actor::Put,
        TxOp::Stream { .. } | TxOp::Staged { .. } => Actor::Staged,
        TxOp::Edit { .. } | TxOp::Rename { .. } | TxOp::SetAttributes { .. } => Actor::Edit,
        TxOp::Copy { .. } | TxOp::CopyRange { .. } => Actor::Copy,
        TxOp::DeleteName { .. } | TxOp::DeleteOid { .. } => Actor::Remove,
        TxOp::DropCollection { .. } => Actor::Drop,
        TxOp::Get { .. } | TxOp::GetOid { .. } => return None,
    })
}

impl World {
    pub(crate) fn write(&mut self, ops: &[TxOp], end: End) -> Outcome {
        self.write_around((ops, &[], &[]), end)
    }

    /// A transaction of `ops` and `then`, with `between` played while it is open.
    pub(crate) fn write_around(
        &mut self,
        (ops, between, then): (&[TxOp], &[Op], &[TxOp]),
        end: End,
    ) -> Outcome {
        if self.in_checkpoint && !self.has_room_inside()? {
            return Ok(());
        }
        let store = self.store()?.clone();
        let mut next = State::clone(self.newest());
        let (mut finished, mut refused) = (false, false);
        let result = store.begin_write().map_err(Bad::Engine).and_then(|mut tx| {
            if end == End::Deferred {
                tx.set_durability(Durability::Deferred);
            }
            refused = self.call_all(&mut tx, &mut next, ops)?;
            if !refused && !between.is_empty() {
                self.within(ops, between).map_err(Bad::Wrong)?;
                refused = self.call_all(&mut tx, &mut next, then)?;
            }
            finished = !refused;
            if end == End::Abort {
                return Err(Error::Other("given up".into()).into());
            }
            tx.commit().map_err(Bad::Engine)
        });
        let result = match result {
            Err(Bad::Wrong(text)) => return Err(text),
            Err(Bad::Engine(e)) => Err(e),
            Ok(()) => Ok(()),
        };
        let ops = [ops, then].concat();
        self.act_all(&ops, &result);
        self.look_for_expired();
        let changed = next != **self.newest();
        let next = Arc::new(next);
        match result {
            Ok(()) if refused => Err("a transaction was committed of which a call failed".into()),
            Err(Error::Invalid(_)) if refused => {
                self.note("refused a name, and so the transaction".into());
                self.check_newest()
            }
            Ok(()) => {
                self.note(format!(
                    "{end:?} of {} calls, {} objects",
                    ops.len(),
                    next.objects.len()
                ));
                self.report.commits += 1;
                // Without a change nothing need have been committed, or become durable.
                if changed {
                    self.states.push(next);
                    if end == End::Commit {
                        self.all_durable();
                    }
                }
                Ok(())
            }
            Err(Error::Other(_)) if end == End::Abort => {
                self.note(format!("gave up {} calls", ops.len()));
                Ok(())
            }
            Err(e) => {
                let unsure = matches!(e, Error::Poisoned(_)) || self.storage.crashed();
                if finished && end != End::Abort && unsure {
                    self.pending = Some(next);
                }
                let full = matches!(e, Error::Full(_) | Error::NoRoom { .. });
                self.explain(&format!("{end:?} of {} calls", ops.len()), e)?;
                if unsure { Ok(()) } else { self.check_refused(full, &ops) }
            }
        }
    }

    /// Notes who acted in a transaction, for the table of pairs.
    fn act_all(&mut self, ops: &[TxOp], result: &Result<(), Error>) {
        if matches!(result, Err(Error::Full(_) | Error::NoRoom { .. })) {
            self.act(Actor::Full);
        }
        for actor in ops.iter().filter_map(actor_of) {
            self.act(actor);
        }
    }

    /// Plays the calls of a transaction; returns whether one was refused.
    fn call_all(&mut self, tx: &mut WriteTx, next: &mut State, ops: &[TxOp]) -> Result<bool, Bad> {
        let (ever, uniques, staged) = (&mut self.ever, &mut self.uniques, &mut self.staged);
        let mut playing = Playing { state: next, ever, uniques, staged, refused: false };
        for op in ops {
            if !playing.refused {
                playing.apply(tx, op)?;
            }
        }
        Ok(playing.refused)
    }

    /// Plays operations while a transaction of `ops` is open.
    fn within(&mut self, ops: &[TxOp], between: &[Op]) -> Outcome {
        let (outer, begun) = (self.inside, self.under_way.len());
        self.inside = true;
        self.under_way.extend(ops.iter().filter_map(actor_of));
        let mut result = Ok(());
        for op in between {
            if result.is_ok() && !self.storage.crashed() && !self.poisoned {
                result = self.play(op);
            }
        }
        self.under_way.truncate(begun);
        self.inside = outer;
        result
    }

    /// Fails if a transaction that was refused left a trace, and where a bounded store refused,
    /// as full, what it promises: deleting, and a put that free pages hold.
    fn check_refused(&mut self, full: bool, ops: &[TxOp]) -> Outcome {
        self.check_newest()?;
        // What is staged is reserved and not stored.
        let staged = !self.staged.is_empty();
        if !full || staged || self.inside || self.armed.is_some() || self.storage.crashed() {
            return Ok(());
        }
        let stat = self.store()?.stat().map_err(|e| format!("stat: {e}"))?;
        let mut full = stat.fullness;
        if full.reserve_bytes == 0 {
            return Ok(());
        }
        // An edit of what a copy shares frees nothing, and takes pages of its own.
        let shared = stat.shared_bytes > 0;
        let deletes = |op: &TxOp| match op {
            TxOp::DeleteName { .. } | TxOp::DeleteOid { .. } => true,
            TxOp::Edit { kind: EditKind::Splice, size: 0, .. } => !shared,
            _ => false,
        };
        // One edit alone: the reserve of the smallest stores is no more.
        if let [op] = ops
            && deletes(op)
        {
            return Err(format!("{op:?} was refused for want of space"));
        }
        let [TxOp::Put { name, size, attributes, .. }] = ops else { return Ok(()) };
        let attributes = model::attributes(*attributes);
        let head = attributes.iter().map(|(key, value)| key.len() + value.len() + 4).sum::<usize>();
        let head = head + model::name(*name).len();
        // What heap pages have room for may round badly in a file of a few pages.
        full.stored_bytes += full.heap_room_bytes;
        if full.fits(head, u64::from(*size)) {
            return Err(format!("a put of {size} bytes that fits was refused: {full:?}"));
        }
        Ok(())
    }

    pub(crate) fn all_durable(&mut self) {
        self.durable_up_to(self.dropped + self.states.len() as u64 - 1);
    }

    /// The state of this number, counted from the beginning of this life, is durable.
    pub(crate) fn durable_up_to(&mut self, number: u64) {
        let older = number.saturating_sub(self.dropped) as usize;
        if older > 0 {
            self.prior = self.states.drain(..older).collect();
        }
        self.dropped += older as u64;
    }

    /// Defragments: whatever moves, objects stay as they are.
    pub(crate) fn defrag(&mut self, between: &[Op], at_copies: bool) -> Outcome {
        if self.inside {
            return Ok(());
        }
        let store = self.store()?.clone();
        let (mut failure, mut next) = (None, between.iter().cycle().take(MOST_STEPS));
        self.act_if_dropped();
        self.inside = true;
        let result = store.defrag(&DefragOptions::default(), &mut |_| {
            let goes_on = failure.is_none() && !self.storage.crashed() && !self.poisoned;
            // What is copied is reserved until its exchange; nothing is staged in such scripts.
            let copied = || store.stat().is_ok_and(|stat| stat.reserved_bytes > 0);
            if goes_on
                && (!at_copies || copied())
                && let Some(op) = next.next()
            {
                failure = self.play(op).and_then(|()| self.check_contents()).err();
            }
            ControlFlow::Continue(())
        });
        self.inside = false;
        if let Some(failure) = failure {
            return Err(format!("beside a defragmentation: {failure}"));
        }
        match result {
            Ok(report) => {
                self.note(format!("defragmented: {:?}", report.moved));
                self.all_durable();
                Ok(())
            }
            Err(e) => self.explain("defragmentation", e),
        }
    }

    pub(crate) fn made_durable(&mut self, what: &str, result: Result<(), Error>) -> Outcome {
        match result {
            Ok(()) => {
                self.note(what.into());
                self.all_durable();
                Ok(())
            }
            Err(e) => self.explain(what, e),
        }
    }

    /// Whether a small transaction can run now without needing a checkpoint.
    pub(crate) fn has_room_inside(&mut self) -> Outcome<bool> {
        if self.storage.crashed() || self.poisoned {
            return Ok(false);
        }
        let stat = match self.store()?.stat() {
            Ok(stat) => stat,
            Err(e) => {
                self.explain("figures", e)?;
                return Ok(false);
            }
        };
        let dirty = self.params.tuning.dirty_pages as u64;
        let whole = stat.log_capacity >= self.params.tuning.log_bytes;
        Ok(whole
            && (stat.log_used + (192 << 10)) * 2 < stat.log_capacity
            && (stat.dirty_pages + 40) * 2 < dirty
            // A checkpoint that frees a long run is preferred to growth.
            && stat.waiting_bytes < 16 * stat.page_size as u64)
    }

    pub(crate) fn checkpoint_with(&mut self, between: &[Op]) -> Outcome {
        let log = self.params.tuning.log_bytes;
        let roomy = (1 << 19..=1 << 20).contains(&log)
            && self.params.max_bytes == u64::MAX
            && !matches!(self.armed, Some((Fault::Full(_), _)));
        if !roomy || self.inside {
            return Ok(());
        }
        let store = self.store()?.clone();
        let mut failure = None;
        let mut next = between.iter().cycle();
        let mut steps = 0;
        let newest = self.dropped + self.states.len() as u64 - 1;
        (self.inside, self.in_checkpoint) = (true, true);
        let result = store.checkpoint_with(&mut || {
            steps += 1;
            // A checkpoint of many pages has many steps; some of them suffice.
            let goes_on = failure.is_none() && !self.storage.crashed() && !self.poisoned;
            if goes_on
                && steps < MOST_STEPS
                && let Some(op) = next.next()
            {
                failure = self.play(op).err();
            }
        });
        (self.inside, self.in_checkpoint) = (false, false);
        if let Some(failure) = failure {
            return Err(format!("inside a checkpoint, step {steps}: {failure}"));
        }
        match result {
            Ok(()) => {
                // What was there when it began is durable; deferred commits since are not.
                self.note(format!("checkpoint in {steps} steps"));
                self.durable_up_to(newest);
                Ok(())
            }
            Err(e) => self.explain("checkpoint with work between", e),
        }
    }
}
