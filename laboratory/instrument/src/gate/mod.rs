//! The gate: whether a change made a row slower.
//!
//! Owns: [`Gate`], which lets two builds take turns, and the time they may take. What the
//! turns say of each row is [`Comparison`]'s, how sure that is [`Interval`]'s. Both builds do the
//! same work with the same seed, in turns next to each other, and every second pair begins with
//! the new build: what slows the machine for longer than a turn slows both. "No row worse by
//! 5 %" means that this finds none.

mod build;
mod comparison;
mod interval;
mod pattern;

pub use build::{Build, Reading, Turn};
pub use comparison::{Comparison, Row};
pub use interval::{FEWEST, GAIN, Interval, LOSS, MOST, Verdict, WIDEST};
pub use pattern::Pattern;

use crate::{scratch, system};
use anyhow::{Result, ensure};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long all turns together may take.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    begun: Instant,
    whole: Duration,
}

impl Limit {
    /// From now on.
    #[must_use]
    pub fn from_now(whole: Duration) -> Self {
        Self { begun: Instant::now(), whole }
    }

    /// What is left.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.whole.saturating_sub(self.begun.elapsed())
    }

    /// The message when nothing is left.
    fn is_up(&self) -> String {
        let minutes = self.whole.as_secs_f64() / 60.0;
        format!("the turns have {minutes:.1} minutes; name fewer rows or give --minutes")
    }

    /// Refuses `pairs` pairs if `done` of them show that they will take longer.
    fn holds(&self, done: f64, pairs: usize) -> Result<()> {
        let due = self.begun.elapsed().mul_f64(pairs as f64 / done);
        ensure!(
            due <= self.whole,
            "{pairs} pairs would take some {:.0} minutes here; {}",
            due.as_secs_f64() / 60.0,
            self.is_up()
        );
        Ok(())
    }
}

/// Two builds, and what they are to do.
pub struct Gate<'a> {
    /// What is compared against.
    pub old: Build,
    /// What is judged.
    pub new: Build,
    /// The rows that are judged.
    pub patterns: Vec<Pattern>,
    /// Names of the stores that rows may be of.
    pub stores: &'a [&'a str],
    /// Where stores are made and removed; on the disk to be measured.
    pub dir: &'a Path,
    /// Small sizes: says nothing of a change.
    pub quick: bool,
    /// Pairs of turns.
    pub pairs: usize,
    /// How long they may take.
    pub whole: Duration,
}

impl Gate<'_> {
    /// Workloads and stores that have turns, in the order in which they were asked for.
    ///
    /// # Errors
    /// Too few or too many pairs; a pattern that names no store.
    fn parts(&self) -> Result<Vec<(&str, &str)>> {
        ensure!(
            (FEWEST..=MOST).contains(&self.pairs),
            "{} pairs of turns show nothing; give {FEWEST} to {MOST}",
            self.pairs
        );
        let mut parts = Vec::new();
        for pattern in &self.patterns {
            let before = parts.len();
            let stores = self.stores.iter().filter(|store| pattern.takes_store(store));
            let mut found = false;
            for store in stores {
                found = true;
                let part = (pattern.workload.as_str(), *store);
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            ensure!(
                found || parts.len() > before,
                "{pattern} names none of the stores {}",
                self.stores.join(", ")
            );
        }
        ensure!(!parts.is_empty(), "no row is named");
        Ok(parts)
    }

    /// Runs all pairs and says how far it is on standard error.
    ///
    /// # Errors
    /// Whatever a build says; rows that a build does not have; pairs that take too long: known
    /// after the first pair, and held.
    pub fn run(&self) -> Result<Comparison> {
        let parts = self.parts()?;
        let limit = Limit::from_now(self.whole);
        scratch::clear(self.dir);
        let minutes = self.whole.as_secs_f64() / 60.0;
        eprintln!(
            "… {} pairs of turns of {} workloads, at most {minutes:.1} minutes",
            self.pairs,
            parts.len()
        );
        let mut comparison = Comparison::new(&self.patterns);
        for pair in 0..self.pairs {
            for (at, (workload, store)) in parts.iter().enumerate() {
                let turn = Turn { workload, store, seed: pair as u64 + 1, quick: self.quick };
                let [old, new] = self.pair(turn, pair, limit)?;
                comparison.add(workload, store, [&old, &new])?;
                let done = pair as f64 + (at + 1) as f64 / parts.len() as f64;
                let due = limit.begun.elapsed().mul_f64(self.pairs as f64 / done - 1.0);
                let due = due.as_secs_f64() / 60.0;
                eprintln!(
                    "… pair {} of {}: {workload} by {store}; some {due:.1} minutes are left",
                    pair + 1,
                    self.pairs
                );
            }
            if pair == 0 {
                comparison.check()?;
                limit.holds(1.0, self.pairs)?;
            }
        }
        Ok(comparison)
    }

    /// A turn of each build, the old one's reading first; every second pair is turned round.
    fn pair(&self, turn: Turn<'_>, pair: usize, limit: Limit) -> Result<[Vec<Reading>; 2]> {
        let mut readings = [Vec::new(), Vec::new()];
        let order = if pair.is_multiple_of(2) { [0, 1] } else { [1, 0] };
        for which in order {
            let dir = scratch::make(self.dir)?;
            // What the turn before left to be written is not this one's.
            system::sync_all(self.dir)?;
            let build = if which == 0 { &self.old } else { &self.new };
            readings[which] = build.run(turn, &dir.path().canonicalize()?, limit)?;
        }
        Ok(readings)
    }
}

#[cfg(test)]
mod tests;
