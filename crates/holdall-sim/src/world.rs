//! A store in its simulated world: storage, model, open snapshots, planned faults.
//!
//! Owns: [`World`], which plays operations and knows which states the store may be in.
//! Invariants: `states[0]` is the newest state known to be durable, the others are deferred
//! commits in order; `pending` is a commit that failed while it became durable.

use crate::backup::Chain;
use crate::check::Bad;
use crate::clock;
use crate::follow::Other;
use crate::held::Held;
use crate::model::State;
use crate::op::{Crash, Fault, Op};
use crate::pairs::Actor;
use crate::params::{Params, Tuning};
use crate::script::{Report, Script};
use crate::staged::Staging;
use holdall::{Elsewhere, Error, Oid, Reader, Store};
use holdall_testkit::{CrashKind, FaultPlan, FaultyStorage, Reshaped};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::SystemTime;

/// Ok, or what rule was broken.
pub(crate) type Outcome<T = ()> = Result<T, String>;

/// A kept snapshot.
pub(crate) struct Kept {
    pub(crate) reader: Reader,
    pub(crate) state: Arc<State>,
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
    pub(crate) dropped: u64,
    pub(crate) pending: Option<Arc<State>>,
    pub(crate) kept: Vec<Kept>,
    /// A process that reads beside the store's own.
    pub(crate) other: Option<Other>,
    /// Snapshots held for other processes.
    pub(crate) held: Vec<Held>,
    /// Backups taken, which nothing takes away.
    pub(crate) backups: Chain,
    /// Objects that are being staged.
    pub(crate) staged: Vec<Staging>,
    pub(crate) ever: BTreeMap<Oid, u8>,
    /// What each version ever seen stood for, as a hash (rule 26).
    pub(crate) versions: BTreeMap<String, u64>,
    /// The version of an object that had this time.
    pub(crate) times: BTreeMap<(Oid, SystemTime), String>,
    pub(crate) uniques: BTreeSet<u32>,
    pub(crate) armed: Option<(Fault, Crash)>,
    /// A fault of this life that is over but may have poisoned the store.
    pub(crate) past: Option<(Fault, Crash)>,
    pub(crate) poisoned: bool,
    /// The disk was full once in this life: snapshots may have been given up for space.
    pub(crate) was_full: bool,
    /// Inside a call that goes on: no crash or close now.
    pub(crate) inside: bool,
    /// Calls that go on, the outermost first.
    pub(crate) under_way: Vec<Actor>,
    /// Collections, and whether they were small when that was last looked at.
    pub(crate) small: BTreeMap<String, bool>,
    /// What of the volume's shape was counted already.
    reshaped: Reshaped,
    elsewhere: Elsewhere,
    given_up: u64,
    /// How often windows had been made or used when last looked at.
    windows: u64,
    /// Bytes of the log when that was last looked at; 0 if there was none.
    log_bytes: u64,
    /// Inside a checkpoint: nothing may need another one.
    pub(crate) in_checkpoint: bool,
    pub(crate) report: Report,
    pub(crate) at: usize,
}

/// An empty storage; that of every fifth seed cannot punch holes, so that defragmentation moves
/// everything down and cuts the file.
fn storage(script: &Script) -> Arc<FaultyStorage> {
    let storage = FaultyStorage::new(script.seed);
    if !script.can_punch() {
        storage.never_punch();
    }
    Arc::new(storage)
}

impl World {
    pub(crate) fn new(script: &Script) -> Self {
        clock::start();
        Self {
            params: script.params.clone(),
            storage: storage(script),
            store: None,
            states: vec![Arc::default()],
            prior: vec![Arc::default()],
            dropped: 0,
            pending: None,
            kept: Vec::new(),
            other: None,
            held: Vec::new(),
            backups: Chain::default(),
            staged: Vec::new(),
            ever: BTreeMap::new(),
            versions: BTreeMap::new(),
            times: BTreeMap::new(),
            uniques: BTreeSet::new(),
            armed: None,
            past: None,
            poisoned: false,
            was_full: false,
            inside: false,
            under_way: Vec::new(),
            small: BTreeMap::new(),
            reshaped: Reshaped::default(),
            elsewhere: Elsewhere::default(),
            given_up: 0,
            windows: 0,
            log_bytes: 0,
            in_checkpoint: false,
            report: Report::default(),
            at: 0,
        }
    }

    pub(crate) fn create(&mut self) -> Outcome {
        let options = self.params.options();
        let store = options
            .create_on(self.storage.clone())
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

    /// Notes that `actor` acts, for the table of pairs.
    pub(crate) fn act(&mut self, actor: Actor) {
        let mut under_way = self.under_way.clone();
        under_way.extend((!self.staged.is_empty()).then_some(Actor::Staged));
        under_way.extend((!self.kept.is_empty()).then_some(Actor::Snapshot));
        under_way.extend(matches!(self.armed, Some((Fault::Full(_), _))).then_some(Actor::Full));
        under_way.extend(self.has_given_up().then_some(Actor::Spaces));
        let keeps = self.other.as_ref().is_some_and(|other| !other.kept.is_empty());
        under_way.extend(keeps.then_some(Actor::Follower));
        under_way.extend((!self.held.is_empty()).then_some(Actor::Held));
        let windows = self.store.as_ref().is_some_and(|store| store.windows().1 > 0);
        under_way.extend(windows.then_some(Actor::Window));
        under_way.extend(self.has_scratch().then_some(Actor::Scratch));
        self.report.met.act(actor, &under_way);
    }

    /// Whether spaces that were given up may still be needed.
    fn has_given_up(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.spaces_given_up().1 > 0)
    }

    /// Whether a snapshot still reads old versions in scratch.
    fn has_scratch(&self) -> bool {
        let bytes = |store: &Store| store.written_elsewhere().scratch_bytes;
        self.store.as_ref().is_some_and(|store| bytes(store) > 0)
    }

    /// Notes what has become of the volume's shape.
    fn act_on_shape(&mut self) {
        let (now, before) = (self.storage.reshaped(), self.reshaped);
        let acts = [
            (Actor::Growth, now.grown, before.grown),
            (Actor::Punch, now.punched, before.punched),
            (Actor::Cut, now.cut, before.cut),
            (Actor::LogSize, now.log_cut, before.log_cut),
        ];
        // After a crash the storage is another one, and counts anew.
        acts.iter().filter(|a| a.1 > a.2).for_each(|a| self.act(a.0));
        self.reshaped = now;
        let bytes = self.store.as_ref().map_or(0, Store::log_bytes);
        let before = std::mem::replace(&mut self.log_bytes, bytes);
        if before.min(bytes) > 0 && before != bytes {
            self.act(Actor::LogSize);
        }
        let now = self.store.as_ref().map_or(0, |store| store.spaces_given_up().0);
        if now > std::mem::replace(&mut self.given_up, now) {
            self.act(Actor::Spaces);
        }
        let now = self.store.as_ref().map_or(0, |store| store.windows().0);
        if now > std::mem::replace(&mut self.windows, now) {
            self.act(Actor::Window);
        }
        let now = self.store.as_ref().map(Store::written_elsewhere).unwrap_or_default();
        let before = std::mem::replace(&mut self.elsewhere, now);
        let acts = [
            (Actor::Spill, now.images_written, before.images_written),
            (Actor::Home, now.images_home, before.images_home),
            (Actor::Scratch, now.old_versions_written, before.old_versions_written),
        ];
        acts.iter().filter(|a| a.1 > a.2).for_each(|a| self.act(a.0));
    }

    /// Plays a call that goes on while `f` plays others in it.
    pub(crate) fn around(&mut self, actor: Actor, f: impl FnOnce(&mut Self) -> Outcome) -> Outcome {
        self.act(actor);
        self.under_way.push(actor);
        let result = f(self);
        self.under_way.pop();
        self.act(actor);
        result.and_then(|()| self.check_contents())
    }

    pub(crate) fn play(&mut self, op: &Op) -> Outcome {
        self.report.met.turn();
        self.play_one(op)?;
        if matches!(op, Op::Write { .. } | Op::WriteAround { .. } | Op::Defrag(_)) {
            self.look_at_border();
        }
        self.act_on_shape();
        if self.inside { Ok(()) } else { self.settle() }
    }

    fn play_one(&mut self, op: &Op) -> Outcome {
        match op {
            Op::Write { ops, end } => self.write(ops, *end)?,
            Op::WriteAround { ops, between, then, end } => {
                self.write_around((ops, between, then), *end)?;
            }
            Op::Flush => {
                let result = self.store()?.flush();
                self.made_durable("flush", result)?;
            }
            Op::Wait => self.wait()?,
            Op::VerifyBeside(work) => self.around(Actor::Verify, |w| w.verify_beside(work))?,
            Op::Checkpoint => {
                self.act(Actor::Checkpoint);
                let result = self.store()?.checkpoint();
                if matches!(result, Err(Error::Full(_))) {
                    return Err("a checkpoint found the disk full: a page had no blocks".into());
                }
                self.made_durable("checkpoint", result)?;
                self.check_contents()?;
            }
            Op::Defrag(between) => self.around(Actor::Mover, |w| w.defrag(between, false))?,
            Op::DefragAtCopies(between) => {
                self.around(Actor::Mover, |w| w.defrag(between, true))?;
            }
            Op::CheckpointWith(between) => {
                self.around(Actor::Checkpoint, |w| w.checkpoint_with(between))?;
            }
            Op::Several(ops) => {
                for op in ops {
                    if self.storage.crashed() || self.poisoned {
                        break;
                    }
                    self.play(op)?;
                }
            }
            Op::Stage { .. } => self.stage(op)?,
            Op::Push(n, most) => self.push(*n, *most)?,
            Op::DropStaged(n) => self.drop_staged(*n),
            Op::EmptyDropped => self.empty_dropped()?,
            Op::OpenReader { newest } => self.open_reader(*newest)?,
            Op::CheckReader(n) => self.check_reader(*n)?,
            Op::DropReader(n) => {
                if !self.kept.is_empty() {
                    self.kept.remove(usize::from(*n) % self.kept.len());
                }
            }
            Op::Follow(n) => self.follow(*n)?,
            Op::Hold(n) => self.hold(*n)?,
            Op::Backup(n, work) => self.around(Actor::Backup, |w| w.back_up(*n, work))?,
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
        Ok(())
    }

    /// Recovers if a planned crash has struck or the store is poisoned.
    fn settle(&mut self) -> Outcome {
        if !self.storage.crashed() && !self.poisoned {
            return Ok(());
        }
        if !self.storage.crashed() {
            self.check_poisoned()?;
            self.look_from_outside()?;
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
                plan.full_at_bytes = Some(self.storage.taken() + more);
                // Kinds of file systems, by what the seed has drawn already.
                let pages = more / self.params.page_size as u64;
                plan.room_of_log_name = if pages.is_multiple_of(3) { 64 << 10 } else { 0 };
                plan.refuse_fill = pages.is_multiple_of(4);
                self.was_full = true;
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
            Error::Full(_) | Error::NoRoom { .. } if full => Ok(()),
            Error::TooLarge(_) => Ok(()),
            e => Err(format!("{what}: {e}")),
        }
    }

    pub(crate) fn explain_bad(&mut self, what: &str, bad: Bad) -> Outcome {
        match bad {
            Bad::Engine(e) => self.explain(what, e),
            Bad::Wrong(text) => Err(format!("{what}: {text}")),
        }
    }

    fn close(&mut self, tuning: Option<u64>) -> Outcome {
        if self.inside {
            return Ok(());
        }
        self.act(Actor::Close);
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
        self.held.clear();
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
        self.push_to_closed();
        self.armed = None;
        self.past = None;
        let store = self.params.options().open_on(self.storage.clone());
        self.store = Some(store.map_err(|e| format!("opening a closed store: {e}"))?);
        self.check_newest()
    }

    /// Whether no fault is planned, and none struck in this life.
    pub(crate) fn is_quiet(&self) -> bool {
        self.armed.is_none() && self.past.is_none()
    }

    /// Whether a snapshot may be given up: for space, never for memory.
    pub(crate) fn may_expire(&self) -> bool {
        let tuning = &self.params.tuning;
        let space = tuning.pinned_bytes.is_some() || self.params.max_bytes < u64::MAX;
        space || self.was_full
    }

    /// Whether a checkpoint is running below: no crash can be played now.
    pub(crate) fn at_work_inside(&self) -> bool {
        self.inside
    }

    /// Forgets what a crash takes with it.
    pub(crate) fn forget_life(&mut self) {
        self.kept.clear();
        self.held.clear();
        self.staged.clear();
        self.store = None;
        self.armed = None;
        self.past = None;
        self.poisoned = false;
        self.was_full = false;
    }
}

/// Whether the fault gives errors that the store cannot foresee.
fn may_break(fault: Fault) -> bool {
    !matches!(fault, Fault::Crash(_) | Fault::Full(_))
}
