//! Crashes, recoveries, and the states they may lead to.
//!
//! Owns: the rule that a recovered store holds everything acknowledged as durable, and of the
//! rest a prefix of the commits in order; that a read-only opening sees the same and writes
//! nothing; that a recovery may itself crash or fail.

use crate::check::{self, Bad};
use crate::model::State;
use crate::op::{Again, Crash, Op};
use crate::pairs::Actor;
use crate::world::{Outcome, World};
use holdall::{Error, Reader, Store};
use holdall_testkit::{CrashKind, FaultPlan, FaultyStorage, LossPolicy};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;

pub(crate) fn text(e: std::io::Error) -> String {
    format!("the simulation itself: {e}")
}

pub(crate) fn out(reader: Result<Reader, Error>, what: &str) -> Outcome<State> {
    match reader.map_err(Bad::from).and_then(|r| check::read_out(&r)) {
        Ok(found) => Ok(found),
        Err(bad) => Err(format!("{what}: {bad}")),
    }
}

/// A crash of one of the kinds that a script draws.
pub(crate) fn draw_kind(rng: &mut SmallRng) -> CrashKind {
    match rng.random_range(0..6) {
        0 | 1 => CrashKind::ProcessKilled,
        2 => CrashKind::PowerCut(LossPolicy::LoseAll),
        3 => CrashKind::PowerCut(LossPolicy::KeepAll),
        _ => CrashKind::PowerCut(LossPolicy::Random),
    }
}

impl World {
    /// The store's process or machine dies now and is started again.
    pub(crate) fn crash(&mut self, crash: &Crash) -> Outcome {
        if self.at_work_inside() {
            return Ok(());
        }
        self.act(Actor::Recovery);
        let full = self.was_full.then_some(crash.kind);
        if crash.kind == CrashKind::ProcessKilled && self.other.is_some() {
            self.storage.kill_writer();
            self.forget_life();
            self.storage.heal();
        } else {
            let storage = self.storage.crash(crash.kind, crash.seed).map_err(text)?;
            self.other = None;
            self.forget_life();
            self.storage = Arc::new(storage);
        }
        self.report.crashes += 1;
        self.note(format!("crash: {:?}", crash.kind));
        let seen = if crash.read_only { Some(self.open_read_only()?) } else { None };
        let recovered = self.recover(&crash.again, full)?;
        let found = out(recovered.read(), "after recovery")?;
        self.store = Some(recovered);
        let state = self.one_of(&found, "the recovered state")?;
        self.check_versions(&found)?;
        if crash.again.is_empty() && seen.is_some_and(|seen| seen != found) {
            return Err("opened read-only, the crashed store showed another state".into());
        }
        self.prior = vec![state.clone()];
        self.states = vec![state];
        self.pending = None;
        self.report.checks += 1;
        self.look_from_outside()?;
        self.play(&Op::Check)
    }

    fn open_read_only(&mut self) -> Outcome<State> {
        let before = self.storage.changes();
        let options = self.params.options();
        let store = options
            .open_read_only_on(self.storage.clone())
            .map_err(|e| format!("opening a crashed store read-only: {e}"))?;
        let found = out(store.read(), "a crashed store opened read-only")?;
        self.one_of(&found, "a crashed store opened read-only")?;
        if !matches!(store.write(|tx| tx.put("x", b"x")), Err(Error::ReadOnly)) {
            return Err("a store opened read-only took a commit".into());
        }
        drop(store);
        if self.storage.changes() != before {
            return Err("opening read-only changed the storage".into());
        }
        Ok(found)
    }

    /// Opens the crashed storage if no byte is free and no fill succeeds. All that a killed
    /// process relied on has its blocks; a power cut may have undone that. `None`: it asks for
    /// room.
    fn recover_when_full(&mut self, kind: CrashKind) -> Outcome<Option<Store>> {
        let full_at_bytes = Some(self.storage.taken());
        self.storage.set_plan(FaultPlan {
            full_at_bytes,
            refuse_fill: true,
            ..FaultPlan::default()
        });
        let opened = self.params.options().open_on(self.storage.clone());
        self.note(format!("recovery on a full disk: {}", opened.is_ok()));
        match opened {
            Ok(store) => Ok(Some(store)),
            Err(Error::NoRoom { .. }) if kind != CrashKind::ProcessKilled => Ok(None),
            Err(e) => Err(format!("recovery on a full disk: {e}")),
        }
    }

    /// Opens the crashed storage, through crashes and errors of the recovery itself; `full`: after
    /// a crash of this kind on a full disk.
    fn recover(&mut self, again: &[Again], full: Option<CrashKind>) -> Outcome<Store> {
        let options = self.params.options();
        for trouble in again {
            self.act(Actor::Recovery);
            let mut plan = FaultPlan::default();
            match *trouble {
                Again::Crash(n, ..) => plan.crash_at_change = Some(n),
                Again::Read(n) => plan.fail_read_at = Some(n),
                Again::Write(n) => plan.fail_write_at = Some(n),
                Again::Sync(n, ..) => plan.fail_sync_at = Some(n),
            }
            self.storage.set_plan(plan);
            let opened = options.open_on(self.storage.clone());
            let failed = opened.is_err();
            if let Err(e) = &opened
                && !matches!(e, Error::Io { .. } | Error::Poisoned(_))
            {
                return Err(format!("recovery with trouble ({trouble:?}): {e}"));
            }
            self.note(format!("recovery with {trouble:?}: failed {failed}"));
            if let Ok(store) = opened {
                // It came through before the trouble; what it shows is durable from now on.
                if !self.storage.crashed()
                    && let Ok(reader) = store.read()
                    && let Ok(found) = check::read_out(&reader)
                {
                    self.states = vec![self.one_of(&found, "the recovered state")?];
                    self.pending = None;
                }
            }
            if let Again::Crash(_, kind, seed) | Again::Sync(_, kind, seed) = *trouble {
                self.other = None;
                self.storage = Arc::new(self.storage.crash(kind, seed).map_err(text)?);
                self.report.crashes += 1;
            }
        }
        let recovered = match full {
            Some(kind) if again.is_empty() => self.recover_when_full(kind)?,
            _ => None,
        };
        self.storage.heal();
        recovered
            .map_or_else(|| options.open_on(self.storage.clone()), Ok)
            .map_err(|e| format!("opening the crashed store: {e}"))
    }

    /// Crashes copies of the storage and opens them; the store itself goes on.
    pub(crate) fn probe(&mut self, seed: u64) -> Outcome {
        if self.storage.crashed() {
            return Ok(());
        }
        let mut rng = SmallRng::seed_from_u64(seed);
        for kind in [
            CrashKind::ProcessKilled,
            CrashKind::PowerCut(LossPolicy::LoseAll),
            CrashKind::PowerCut(LossPolicy::KeepAll),
            CrashKind::PowerCut(LossPolicy::Random),
            CrashKind::PowerCut(LossPolicy::Random),
        ] {
            let copy = self.storage.crash(kind, rng.random()).map_err(text)?;
            self.probe_one(copy, &mut rng).map_err(|e| format!("probe with {kind:?}: {e}"))?;
        }
        self.note("probed".into());
        Ok(())
    }

    /// What a power cut now would leave.
    pub(crate) fn after_power_cut(&mut self) -> Outcome<State> {
        let kind = CrashKind::PowerCut(LossPolicy::LoseAll);
        let copy = self.storage.crash(kind, 0).map_err(text)?;
        let store = self
            .params
            .options()
            .open_on(Arc::new(copy))
            .map_err(|e| format!("opening after a power cut: {e}"))?;
        let found = out(store.read(), "reading after a power cut")?;
        self.one_of(&found, "the state after a power cut")?;
        Ok(found)
    }

    fn probe_one(&mut self, copy: FaultyStorage, rng: &mut SmallRng) -> Outcome {
        self.report.crashes += 1;
        self.report.checks += 1;
        let options = self.params.options();
        let mut copy = Arc::new(copy);
        if rng.random_bool(0.4) {
            let n = rng.random_range(1..12);
            copy.set_plan(FaultPlan { crash_at_change: Some(n), ..FaultPlan::default() });
            // Whether it crashes or not: what counts is the opening after it.
            drop(options.open_on(copy.clone()));
            copy = Arc::new(copy.crash(draw_kind(rng), rng.random()).map_err(text)?);
        }
        let store = options.open_on(copy.clone()).map_err(|e| format!("opening: {e}"))?;
        let found = out(store.read(), "reading")?;
        let state = self.one_of(&found, "the recovered state")?;
        let divided = check::check_sound(&store).map_err(|bad| format!("verifying: {bad}"))?;
        self.report.divided += divided;
        if rng.random_bool(0.3) {
            store.close().map_err(|e| format!("closing: {e}"))?;
            let store = options.open_on(copy).map_err(|e| format!("reopening: {e}"))?;
            let found = out(store.read(), "reading after a close")?;
            if let Some(difference) = found.difference(&state) {
                return Err(format!("after a close: {difference}"));
            }
        }
        Ok(())
    }
}
