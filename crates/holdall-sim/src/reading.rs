//! Snapshots and full comparisons of the open store.
//!
//! Owns: what a snapshot may show, when it is opened and as long as it is kept; that a poisoned
//! store takes no commit and can be read.

use crate::check::{self, Bad};
use crate::model::State;
use crate::pairs::Actor;
use crate::world::{Kept, Outcome, World};
use holdall::Error;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

impl World {
    pub(crate) fn open_reader(&mut self, newest: bool) -> Outcome {
        let store = self.store()?;
        let result = if newest { store.read_newest() } else { store.read() };
        let reader = match result {
            Ok(reader) => reader,
            Err(e) => return self.explain("opening a snapshot", e),
        };
        if newest {
            let state = self.newest().clone();
            self.kept.push(Kept { reader, state });
            self.act(Actor::Snapshot);
            return Ok(());
        }
        match check::read_out(&reader) {
            Ok(found) => {
                let state = self.one_of(&found, "a new snapshot")?;
                self.kept.push(Kept { reader, state });
                self.act(Actor::Snapshot);
                Ok(())
            }
            Err(bad) => self.explain_bad("a new snapshot", bad),
        }
    }

    pub(crate) fn check_reader(&mut self, n: u8) -> Outcome {
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
            Err(Bad::Engine(Error::SnapshotTooOld { .. })) if self.may_expire() => {
                self.kept.remove(n);
                self.act(Actor::Expiry);
                self.note("a snapshot was given up".into());
                Ok(())
            }
            Err(bad) => self.explain_bad("a kept snapshot", bad),
        }
    }

    /// Drops kept snapshots that the last commit gave up.
    pub(crate) fn look_for_expired(&mut self) {
        // A read counts among the calls that a fault is planned for.
        if !self.may_expire() || !self.is_quiet() || self.storage.crashed() {
            return;
        }
        let before = self.kept.len();
        let too_old =
            |kept: &Kept| matches!(kept.reader.collections(), Err(Error::SnapshotTooOld { .. }));
        self.kept.retain(|kept| !too_old(kept));
        if self.kept.len() < before {
            self.act(Actor::Expiry);
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

    /// A version stands for the same bytes, attributes and time whenever it is seen (rule 26),
    /// and another version of the object has another time: the clock never stands still.
    pub(crate) fn check_versions(&mut self, found: &State) -> Outcome {
        for (oid, version) in &found.versions {
            let Some(object) = found.objects.get(oid) else { continue };
            let Some(time) = found.times.get(oid) else {
                return Err(format!("{oid} of version {version} has no time"));
            };
            let mut hasher = DefaultHasher::new();
            (&object.attributes, &object.bytes, time).hash(&mut hasher);
            let hash = hasher.finish();
            if *self.versions.entry(version.clone()).or_insert(hash) != hash {
                let text = "with another time or other bytes than before";
                return Err(format!("{oid} has version {version} {text}"));
            }
            let first = self.times.entry((*oid, *time)).or_insert_with(|| version.clone());
            if first != version {
                return Err(format!("{oid}: version {version} has the time of {first}"));
            }
        }
        Ok(())
    }

    pub(crate) fn check_newest(&mut self) -> Outcome {
        let reader = match self.store()?.read_newest() {
            Ok(reader) => reader,
            Err(e) => return self.explain("a snapshot of the newest commit", e),
        };
        self.report.checks += 1;
        match check::read_out(&reader) {
            Ok(found) => match found.difference(self.newest()) {
                None => self.check_versions(&found),
                Some(text) => Err(format!("the newest state: {text}")),
            },
            Err(bad) => self.explain_bad("the newest state", bad),
        }
    }

    /// After maintenance: every object has its bytes and version still, and so it has for a kept
    /// snapshot.
    pub(crate) fn check_contents(&mut self) -> Outcome {
        if self.storage.crashed() || self.poisoned || self.in_checkpoint {
            return Ok(());
        }
        self.check_newest()?;
        if self.storage.crashed() { Ok(()) } else { self.check_reader(self.at as u8) }
    }

    pub(crate) fn check(&mut self) -> Outcome {
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
        let quiet = self.is_quiet();
        let sound = if quiet { check::check_sound(store) } else { Ok(0) };
        if quiet {
            self.act(Actor::Verify);
        }
        let store = self.store()?;
        let figures = sound
            .and_then(|_| check::check_figures(store, &newest))
            .and_then(|()| check::check_gone(&store.read_newest()?, &newest, self.ever.keys()));
        match figures {
            Ok(()) => {
                self.note("checked".into());
                Ok(())
            }
            Err(bad) => self.explain_bad("figures and dangling OIDs", bad),
        }
    }

    /// What a snapshot shows must survive a power cut now.
    pub(crate) fn check_durable(&mut self, found: &State) -> Outcome {
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
    pub(crate) fn check_poisoned(&mut self) -> Outcome {
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
}
