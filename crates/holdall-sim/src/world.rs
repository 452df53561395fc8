//! A store in its simulated world: storage, model, open snapshots, planned faults.
//!
//! Owns: [`World`], which plays operations and knows which states the store may be in.
//! Invariants: `states[0]` is the newest state known to be durable, the others are deferred
//! commits in order; `pending` is a commit that failed while it became durable.

use crate::check::{self, Bad};
use crate::model::State;
use crate::op::{Crash, End, Fault, Op, TxOp};
use crate::params::{Params, Tuning};
use crate::script::{Report, Script};
use crate::transact::Playing;
use holdall::{Error, Oid, Reader, Store};
use holdall_io::{CrashKind, FaultPlan, FaultyStorage};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Ok, or what rule was broken.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// A kept snapshot.
struct Kept {
    reader: Reader,
    state: Arc<State>,
}

pub(crate) struct World {
    pub(crate) params: Params,
    pub(crate) storage: Arc<FaultyStorage>,
    pub(crate) store: Option<Store>,
    pub(crate) states: Vec<Arc<State>>,
    /// States from the last durable one before `states[0]` up to that: where damage to the
    /// log's last group may lead.
    pub(crate) prior: Vec<Arc<State>>,
    /// How many states came before those.
    dropped: u64,
    pub(crate) pending: Option<Arc<State>>,
    kept: Vec<Kept>,
    ever: BTreeSet<Oid>,
    uniques: BTreeSet<u32>,
    armed: Option<(Fault, Crash)>,
    /// A fault of this life that is over but may have poisoned the store.
    past: Option<(Fault, Crash)>,
    poisoned: bool,
    /// Inside a checkpoint: nothing may need another one.
    inside: bool,
    pub(crate) report: Report,
    pub(crate) at: usize,
}

impl World {
    pub(crate) fn new(script: &Script) -> Self {
        Self {
            params: script.params.clone(),
            storage: Arc::new(FaultyStorage::new(script.seed)),
            store: None,
            states: vec![Arc::default()],
            prior: vec![Arc::default()],
            dropped: 0,
            pending: None,
            kept: Vec::new(),
            ever: BTreeSet::new(),
            uniques: BTreeSet::new(),
            armed: None,
            past: None,
            poisoned: false,
            inside: false,
            report: Report::default(),
            at: 0,
        }
    }

    pub(crate) fn create(&mut self) -> Outcome {
        let options = self.params.options();
        let store = Store::create_on(self.storage.clone(), &options)
            .map_err(|e| format!("creating the store: {e}"))?;
        self.store = Some(store);
        Ok(())
    }

    pub(crate) fn take_report(&mut self) -> Report {
        std::mem::take(&mut self.report)
    }

    /// The last calls to the disk.
    pub(crate) fn calls(&self) -> String {
        self.storage.trace()
    }

    pub(crate) fn newest(&self) -> &Arc<State> {
        self.states.last().unwrap_or(&self.states[0])
    }

    pub(crate) fn store(&self) -> Outcome<&Store> {
        self.store.as_ref().ok_or_else(|| "no store is open".into())
    }

    /// Adds to the trace.
    pub(crate) fn note(&mut self, text: String) {
        let (at, calls) = (self.at, self.storage.calls());
        self.report.trace.push(format!("{at:>4} [{calls}] {text}"));
    }

    /// Ends a run: the store can be closed, opened and read.
    pub(crate) fn finish(&mut self) -> Outcome {
        self.play(&Op::Heal)?;
        self.settle()?;
        self.play(&Op::Check)?;
        self.play(&Op::Close(None))?;
        self.play(&Op::Check)?;
        self.report.volume = self.storage.durable().0;
        Ok(())
    }

    pub(crate) fn play(&mut self, op: &Op) -> Outcome {
        match op {
            Op::Write { ops, end } => self.write(ops, *end)?,
            Op::Flush => {
                let result = self.store()?.flush();
                self.made_durable("flush", result)?;
            }
            Op::Checkpoint => {
                let result = self.store()?.checkpoint();
                self.made_durable("checkpoint", result)?;
            }
            Op::CheckpointWith(between) => self.checkpoint_with(between)?,
            Op::OpenReader { newest } => self.open_reader(*newest)?,
            Op::CheckReader(n) => self.check_reader(*n)?,
            Op::DropReader(n) => {
                if !self.kept.is_empty() {
                    self.kept.remove(usize::from(*n) % self.kept.len());
                }
            }
            Op::Check => self.check()?,
            Op::Probe(seed) => self.probe(*seed)?,
            Op::Damage(seed) => self.damage(*seed)?,
            Op::Close(tuning) => self.close(*tuning)?,
            Op::Crash(crash) => self.crash(crash)?,
            Op::Arm(fault, crash) => self.arm(*fault, crash),
            Op::Heal => {
                if !self.storage.crashed() {
                    self.storage.heal();
                    self.disarm();
                }
            }
        }
        if self.inside { Ok(()) } else { self.settle() }
    }

    /// Recovers where a planned crash has struck or the store is poisoned.
    fn settle(&mut self) -> Outcome {
        if !self.storage.crashed() && !self.poisoned {
            return Ok(());
        }
        if !self.storage.crashed() {
            self.check_poisoned()?;
        }
        let after = self.armed.take().or(self.past.take()).map(|(_, crash)| crash);
        let after = after.ok_or("the store is poisoned although nothing was to fail")?;
        self.crash(&after)
    }

    fn disarm(&mut self) {
        if let Some(armed) = self.armed.take().filter(|(fault, _)| may_break(*fault)) {
            self.past = Some(armed);
        }
    }

    fn arm(&mut self, fault: Fault, crash: &Crash) {
        let mut plan = FaultPlan::default();
        match fault {
            Fault::Crash(n) => plan.crash_at_change = Some(n),
            Fault::Read(n) => plan.fail_read_at = Some(n),
            Fault::Write(n) => plan.fail_write_at = Some(n),
            Fault::Sync(n) => plan.fail_sync_at = Some(n),
            Fault::Other(n) => plan.fail_other_at = Some(n),
            Fault::Full(more) => {
                let (volume, log) = self.storage.snapshot();
                let now = volume.len() + log.map_or(0, |l| l.len());
                plan.full_at_bytes = Some(now as u64 + more);
            }
        }
        self.disarm();
        self.storage.set_plan(plan);
        self.armed = Some((fault, crash.clone()));
        self.note(format!("{fault:?} armed"));
    }

    /// Sorts out an error: explained by a fault or a limit, or a failure of the store.
    pub(crate) fn explain(&mut self, what: &str, e: Error) -> Outcome {
        self.note(format!("{what}: {e}"));
        self.report.errors += 1;
        if self.storage.crashed() {
            return Ok(());
        }
        let fault = self.armed.as_ref().map(|(f, _)| *f);
        let broken = fault.is_some_and(may_break);
        let full = matches!(fault, Some(Fault::Full(_))) || self.params.max_bytes < u64::MAX;
        match e {
            Error::Poisoned(_) if broken || self.past.is_some() => {
                self.poisoned = true;
                Ok(())
            }
            Error::Io { .. } if broken => Ok(()),
            Error::Full(_) if full => Ok(()),
            Error::TooLarge(_) => Ok(()),
            e => Err(format!("{what}: {e}")),
        }
    }

    fn explain_bad(&mut self, what: &str, bad: Bad) -> Outcome {
        match bad {
            Bad::Engine(e) => self.explain(what, e),
            Bad::Wrong(text) => Err(format!("{what}: {text}")),
        }
    }

    fn write(&mut self, ops: &[TxOp], end: End) -> Outcome {
        if self.inside && !self.has_room_inside()? {
            return Ok(());
        }
        let store = self.store()?.clone();
        let mut next = State::clone(self.newest());
        let (mut bad, mut finished) = (None, false);
        let (ever, uniques) = (&mut self.ever, &mut self.uniques);
        let body = |tx: &mut holdall::WriteTx| {
            let mut playing = Playing { state: &mut next, ever, uniques };
            for op in ops {
                match playing.apply(tx, op) {
                    Ok(()) => {}
                    Err(Bad::Engine(e)) => return Err(e),
                    Err(Bad::Wrong(text)) => {
                        bad = Some(text);
                        return Err(Error::Invalid("wrong answer".into()));
                    }
                }
            }
            finished = true;
            if end == End::Abort { Err(Error::Other("given up".into())) } else { Ok(()) }
        };
        let result =
            if end == End::Deferred { store.write_deferred(body) } else { store.write(body) };
        if let Some(text) = bad {
            return Err(text);
        }
        let changed = next != **self.newest();
        let next = Arc::new(next);
        match result {
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
                self.explain(&format!("{end:?} of {} calls", ops.len()), e)?;
                if unsure { Ok(()) } else { self.check_newest() }
            }
        }
    }

    fn all_durable(&mut self) {
        self.durable_up_to(self.dropped + self.states.len() as u64 - 1);
    }

    /// The state of this number, counted from the beginning of this life, is durable.
    fn durable_up_to(&mut self, number: u64) {
        let older = number.saturating_sub(self.dropped) as usize;
        if older > 0 {
            self.prior = self.states.drain(..older).collect();
        }
        self.dropped += older as u64;
    }

    fn made_durable(&mut self, what: &str, result: Result<(), Error>) -> Outcome {
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
    fn has_room_inside(&mut self) -> Outcome<bool> {
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
            && stat.waiting_bytes < 2 << 20)
    }

    fn checkpoint_with(&mut self, between: &[Op]) -> Outcome {
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
        self.inside = true;
        let result = store.checkpoint_with(&mut || {
            steps += 1;
            // A checkpoint of many pages has many steps; some of them suffice.
            let goes_on = failure.is_none() && !self.storage.crashed() && !self.poisoned;
            if goes_on
                && steps < 40
                && let Some(op) = next.next()
            {
                failure = self.play(op).err();
            }
        });
        self.inside = false;
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

    fn open_reader(&mut self, newest: bool) -> Outcome {
        let store = self.store()?;
        let result = if newest { store.read_newest() } else { store.read() };
        let reader = match result {
            Ok(reader) => reader,
            Err(e) => return self.explain("opening a snapshot", e),
        };
        if newest {
            let state = self.newest().clone();
            self.kept.push(Kept { reader, state });
            return Ok(());
        }
        match check::read_out(&reader) {
            Ok(found) => {
                let state = self.one_of(&found, "a new snapshot")?;
                self.kept.push(Kept { reader, state });
                Ok(())
            }
            Err(bad) => self.explain_bad("a new snapshot", bad),
        }
    }

    fn check_reader(&mut self, n: u8) -> Outcome {
        if self.kept.is_empty() {
            return Ok(());
        }
        let n = usize::from(n) % self.kept.len();
        let Some(kept) = self.kept.get(n) else { return Ok(()) };
        self.report.checks += 1;
        match check::read_out(&kept.reader) {
            Ok(found) => match found.difference(&kept.state) {
                None => Ok(()),
                Some(text) => Err(format!("snapshot {n}: {text}")),
            },
            Err(Bad::Engine(Error::SnapshotTooOld)) if self.params.tuning.bounds_old_versions() => {
                self.kept.remove(n);
                self.note("a snapshot was given up".into());
                Ok(())
            }
            Err(bad) => self.explain_bad("a kept snapshot", bad),
        }
    }

    /// The state that `found` is, if a durable snapshot may show it.
    pub(crate) fn one_of(&self, found: &State, what: &str) -> Outcome<Arc<State>> {
        let candidates = self.states.iter().chain(&self.pending);
        if let Some(state) = candidates.clone().rev().find(|s| ***s == *found) {
            return Ok(state.clone());
        }
        let mut text = format!("{what} is none of {} possible states", candidates.clone().count());
        for (i, state) in candidates.enumerate().take(4) {
            text += &format!("\n  {i}: {}", found.difference(state).unwrap_or_default());
        }
        Err(text)
    }

    fn check_newest(&mut self) -> Outcome {
        let reader = match self.store()?.read_newest() {
            Ok(reader) => reader,
            Err(e) => return self.explain("a snapshot of the newest commit", e),
        };
        self.report.checks += 1;
        match check::read_out(&reader) {
            Ok(found) => match found.difference(self.newest()) {
                None => Ok(()),
                Some(text) => Err(format!("the newest state: {text}")),
            },
            Err(bad) => self.explain_bad("the newest state", bad),
        }
    }

    fn check(&mut self) -> Outcome {
        if self.storage.crashed() {
            return Ok(());
        }
        self.check_newest()?;
        let reader = match self.store()?.read() {
            Ok(reader) => reader,
            Err(e) => return self.explain("a snapshot", e),
        };
        match check::read_out(&reader) {
            Ok(found) => self.check_durable(&found)?,
            Err(bad) => self.explain_bad("the durable state", bad)?,
        }
        let newest = self.newest().clone();
        let store = self.store()?;
        // A failed write may leave a torn superblock, and a failed read looks like damage.
        let quiet = self.armed.is_none() && self.past.is_none();
        let sound = if quiet { check::check_sound(store) } else { Ok(()) };
        let figures = sound
            .and_then(|()| check::check_figures(store, &newest))
            .and_then(|()| check::check_gone(&store.read_newest()?, &newest, self.ever.iter()));
        match figures {
            Ok(()) => {
                self.note("checked".into());
                Ok(())
            }
            Err(bad) => self.explain_bad("figures and dangling OIDs", bad),
        }
    }

    /// What a snapshot shows must survive a power cut now.
    fn check_durable(&mut self, found: &State) -> Outcome {
        self.one_of(found, "the durable state")?;
        if self.states.len() == 1 {
            return Ok(());
        }
        let survivor = self.after_power_cut()?;
        let place = |state: &State| self.states.iter().rposition(|s| **s == *state);
        match (place(found), place(&survivor)) {
            (Some(shown), Some(kept)) if kept < shown => {
                Err("a snapshot shows commits that a power cut loses".into())
            }
            _ => Ok(()),
        }
    }

    /// A poisoned store takes no commit and still reads.
    fn check_poisoned(&mut self) -> Outcome {
        let store = self.store()?.clone();
        match store.write(|tx| tx.put("poisoned", b"x")) {
            Err(Error::Poisoned(_)) => {}
            Err(e) => self.explain("a write after poison", e)?,
            Ok(_) => return Err("a poisoned store took a commit".into()),
        }
        self.storage.heal();
        let reader = match store.read() {
            Ok(reader) => reader,
            Err(e) => return Err(format!("a poisoned store cannot be read: {e}")),
        };
        match check::read_out(&reader) {
            Ok(found) => self.one_of(&found, "the state of a poisoned store").map(|_| ()),
            Err(bad) => Err(format!("reading a poisoned store: {bad}")),
        }
    }

    fn close(&mut self, tuning: Option<u64>) -> Outcome {
        if self.inside {
            return Ok(());
        }
        let Some(store) = self.store.take() else { return Err("no store is open".into()) };
        let result = store.clone().close();
        let closed = result.is_ok();
        if closed {
            while !self.kept.is_empty() {
                self.check_reader(0)?;
                if !self.kept.is_empty() {
                    self.kept.remove(0);
                }
            }
        }
        self.kept.clear();
        drop(store);
        if let Some(seed) = tuning {
            let mut rng = SmallRng::seed_from_u64(seed);
            self.params.tuning = Tuning::draw(&mut rng, self.params.page_size);
        }
        match result {
            Ok(()) => self.all_durable(),
            Err(e) => self.explain("close", e)?,
        }
        if !closed {
            let crash = self.armed.take().or(self.past.take()).map(|(_, crash)| crash);
            let kill = Crash {
                kind: CrashKind::ProcessKilled,
                seed: 0,
                read_only: false,
                again: Vec::new(),
            };
            return self.crash(&crash.unwrap_or(kill));
        }
        self.note("closed".into());
        if self.storage.snapshot().1.is_some() {
            return Err("a closed store has a log".into());
        }
        self.storage.heal();
        self.armed = None;
        self.past = None;
        let store = Store::open_on(self.storage.clone(), &self.params.options());
        self.store = Some(store.map_err(|e| format!("opening a closed store: {e}"))?);
        self.check_newest()
    }

    /// Whether a checkpoint is running below: no crash can be played now.
    pub(crate) fn at_work_inside(&self) -> bool {
        self.inside
    }

    /// Forgets what a crash takes with it.
    pub(crate) fn forget_life(&mut self) {
        self.kept.clear();
        self.store = None;
        self.armed = None;
        self.past = None;
        self.poisoned = false;
    }
}

/// Whether the fault gives errors that the store cannot foresee.
fn may_break(fault: Fault) -> bool {
    !matches!(fault, Fault::Crash(_) | Fault::Full(_))
}
