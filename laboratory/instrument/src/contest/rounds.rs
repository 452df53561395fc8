//! One round of a workload: every store's turn, between two probes of the machine.
//!
//! Invariant: an attempt that does not count leaves no kept cells, and an attempt that was cut
//! off goes on with the probe it began with.

use super::probe::{Attempts, Probe, Step};
use super::{Cell, Contest, Ctx, Plan, one, redact, turns};
use anyhow::Result;
use std::time::Instant;

/// What came of a round.
pub(super) struct Round {
    /// By store.
    pub(super) cells: Vec<Cell>,
    /// The probes around it.
    pub(super) attempts: Attempts,
    /// Whether every process came to its end.
    pub(super) whole: bool,
}

/// A round's place: workload, number and stores.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) ctx: &'a Ctx,
    pub(super) contest: &'a dyn Contest,
    pub(super) round: usize,
    pub(super) stores: &'a [&'static str],
}

impl Plan<'_> {
    /// Runs a round until it counts or no attempt is left.
    pub(super) fn round(&self, place: Place<'_>) -> Result<Round> {
        let Some(mut attempts) = self.begun(place)? else {
            return self.attempt(place, Attempts::default());
        };
        loop {
            if attempts.step() == Step::Begin {
                if let Some(keep) = &self.keep {
                    keep.forget(place.contest.id(), place.round, place.stores)?;
                }
                attempts.begin(Probe::take(&place.ctx.dir)?);
                self.note(place, &attempts)?;
            }
            let mut round = self.attempt(place, attempts)?;
            if round.attempts.step() == Step::GoOn {
                round.attempts.end(Some(Probe::take(&place.ctx.dir)?));
                self.note(place, &round.attempts)?;
            }
            if round.attempts.step() == Step::Done {
                return Ok(round);
            }
            let number = place.round + 1;
            let probes = round.attempts.0.last().map(ToString::to_string).unwrap_or_default();
            eprintln!("… {}, round {number}: not quiet ({probes}); again", place.contest.id());
            attempts = round.attempts;
        }
    }

    /// The attempts an earlier run made; none if the round is not probed, because that is
    /// not wanted or because kept cells were measured without.
    fn begun(&self, place: Place<'_>) -> Result<Option<Attempts>> {
        let Some(keep) = self.keep.as_ref().filter(|_| self.probe) else {
            return Ok(self.probe.then(Attempts::default));
        };
        let mut kept = 0;
        for store in place.stores {
            kept += usize::from(keep.find(place.contest.id(), place.round, store)?.is_some());
        }
        let Some(mut attempts) = keep.attempts(place.contest.id(), place.round)? else {
            return Ok((kept == 0).then(Attempts::default));
        };
        if attempts.step() == Step::Done && kept < place.stores.len() {
            attempts.end(None);
        }
        Ok(Some(attempts))
    }

    fn note(&self, place: Place<'_>, attempts: &Attempts) -> Result<()> {
        let keep = self.keep.as_ref();
        keep.map_or(Ok(()), |keep| keep.put_attempts(place.contest.id(), place.round, attempts))
    }

    /// All stores' turns.
    fn attempt(&self, place: Place<'_>, attempts: Attempts) -> Result<Round> {
        let mut cells = vec![Cell::default(); place.stores.len()];
        let mut all_whole = true;
        for i in turns(place.stores.len(), place.round) {
            let (cell, whole) = self.turn(place, place.stores[i])?;
            cells[i] = cell;
            all_whole &= whole;
        }
        Ok(Round { cells, attempts, whole: all_whole })
    }

    /// One store's part: as it was kept, or run now; and whether its process came to its end.
    fn turn(&self, place: Place<'_>, store: &str) -> Result<(Cell, bool)> {
        let Place { ctx, contest, round, .. } = place;
        let id = contest.id();
        if let Some(keep) = &self.keep
            && let Some(cell) = keep.find(id, round, store)?
        {
            eprintln!("… {id}, round {}: {store} was kept", round + 1);
            return Ok((cell, true));
        }
        let start = Instant::now();
        let (mut cell, whole) = one::start(ctx, contest, store)?;
        let time = start.elapsed().as_secs_f64();
        eprintln!("… {id}, round {}: {store} took {time:.1} s", round + 1);
        if let Some(error) = &mut cell.error {
            eprintln!("  error: {error}");
            *error = redact::paths(error, &ctx.dir);
        }
        // A part whose process died is run again next time.
        if let (Some(keep), true) = (&self.keep, whole) {
            keep.put(id, round, store, &cell)?;
        }
        Ok((cell, whole))
    }
}
