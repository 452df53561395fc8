//! A contest: contestants that do the same work take turns, and each row says who was faster.
//!
//! Owns: [`Contest`], [`Plan`], which runs one, and [`Outcome`], what came of it. Each
//! contestant's part of each round runs in a process of its own (this program again, command
//! `one`): what one leaves in memory does not slow or grow the next, and memory is counted
//! alone. They take turns round by round, each round beginning with another and every second
//! one going backwards, so that none always has the better half of a noisy machine. Probes
//! before and after each round tell whether other work disturbed it ([`Attempts`]).

mod drawings;
mod figure;
mod goal;
mod json;
mod judge;
mod keep;
mod latency;
mod markdown;
mod one;
mod probe;
pub(crate) mod redact;
mod rounds;

pub use drawings::draw;
pub use figure::{Figure, Point, Unit};
pub use goal::{Bound, Goal, Than, What};
pub use json::json;
pub use judge::{Line, Row, Verdict, rows, verdicts};
pub use keep::Keep;
pub use latency::{Latency, Recorder};
pub use markdown::tables;
pub use one::{Cell, ONE, run_one};
pub use probe::{Attempt, Attempts, Probe};

use crate::scratch;
use anyhow::Result;
use rounds::Place;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the bare machine is called among contestants.
pub const BARE: &str = "bare machine";

/// Whether a contestant of this name is ours, to which goals are set, not a peer.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    name.starts_with("Holdall")
}

/// What a contestant's part is given.
#[derive(Debug, Clone)]
pub struct Ctx {
    /// An empty directory of its own, on the disk to be measured.
    pub dir: PathBuf,
    /// Small sizes: every contest within some seconds.
    pub quick: bool,
    /// All data and choices come from it.
    pub seed: u64,
}

impl Ctx {
    /// `full`, or `quick` if little time is to be spent.
    #[must_use]
    pub fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }

    /// How long a loop may take: `full` seconds, or a twentieth.
    #[must_use]
    pub fn seconds(&self, full: u64) -> Duration {
        Duration::from_millis(full * self.pick(1000, 50))
    }
}

/// How a drawing is filled.
#[derive(Debug, Clone)]
pub enum Source {
    /// From figures' points of the drawing's id.
    Points {
        /// What the axis to the right shows.
        x: &'static str,
        /// What the axis upwards shows.
        y: &'static str,
        /// Labels of x = 0, 1, 2 …, drawn as bars; lines if there are none.
        ticks: Vec<&'static str>,
    },
    /// The distribution of latencies of this row.
    Latency(String),
}

/// A drawing of a contest.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Its file's name.
    pub id: String,
    /// Above it.
    pub title: String,
    /// What it shows.
    pub source: Source,
}

/// One comparison.
pub trait Contest: Sync {
    /// `w1`, `edits`: its name on the command line and in results.
    fn id(&self) -> &'static str;
    /// Above its tables.
    fn title(&self, ctx: &Ctx) -> String;
    /// What it does exactly, what its figures count, what the bare machine does.
    fn remark(&self) -> &'static str;
    /// Who takes part, in order; the bare machine last.
    fn contestants(&self) -> Vec<&'static str>;
    /// Contestants with their versions and settings; shown once for a run.
    fn settings(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
    /// What the command line must say again to the processes of its parts.
    fn arguments(&self) -> Vec<OsString> {
        Vec::new()
    }
    /// A contestant's part; pushes rows as they are done, so that those before an error are
    /// kept.
    ///
    /// # Errors
    /// The contestant's, and wrong answers of it.
    fn measure(&self, ctx: &Ctx, contestant: &str, out: &mut Vec<Figure>) -> Result<()>;
    /// What we are to reach.
    fn goals(&self, ctx: &Ctx) -> Vec<Goal>;
    /// Its drawings.
    fn plots(&self, _ctx: &Ctx) -> Vec<Plot> {
        Vec::new()
    }
}

/// How to run.
pub struct Plan<'a> {
    /// On the disk to be measured; a directory of the run's own is made in it.
    pub dir: &'a Path,
    /// Small sizes.
    pub quick: bool,
    /// Only contestants whose names contain one of these, in any case, and the bare machine; all
    /// if it is empty.
    pub only: &'a [String],
    /// How often each contestant's part is run.
    pub rounds: usize,
    /// All data and choices come from it.
    pub seed: u64,
    /// Where results are kept as they come, and taken from where they are already.
    pub keep: Option<Keep>,
    /// Whether the machine is probed around each round.
    pub probe: bool,
}

/// What came of one contest.
pub struct Outcome {
    /// As [`Contest::id`].
    pub id: &'static str,
    /// As [`Contest::title`].
    pub title: String,
    /// As [`Contest::remark`].
    pub remark: &'static str,
    /// As [`Contest::goals`].
    pub goals: Vec<Goal>,
    /// As [`Contest::plots`].
    pub plots: Vec<Plot>,
    /// Names of contestants, in order; the bare machine last.
    pub stores: Vec<&'static str>,
    /// By contestant, then by round.
    pub cells: Vec<Vec<Cell>>,
    /// The probes around each round.
    pub attempts: Vec<Attempts>,
    /// Whether every process came to its end.
    pub whole: bool,
}

impl Outcome {
    /// Errors of contestants, each with its name and once only.
    #[must_use]
    pub fn errors(&self) -> Vec<(&'static str, String)> {
        let mut all = Vec::new();
        for (store, cells) in self.stores.iter().zip(&self.cells) {
            for error in cells.iter().filter_map(|c| c.error.as_ref()) {
                if !all.contains(&(*store, error.clone())) {
                    all.push((*store, error.clone()));
                }
            }
        }
        all
    }
}

/// Whether `word` is in the name of a contestant, in any case.
#[must_use]
pub fn is_named(name: &str, word: &str) -> bool {
    name.to_lowercase().contains(&word.to_lowercase())
}

impl Plan<'_> {
    /// Who takes part in a contest, in order.
    #[must_use]
    pub fn contestants(&self, contest: &dyn Contest) -> Vec<&'static str> {
        let wanted = |name: &&str| {
            let named = self.only.iter().any(|word| is_named(name, word));
            self.only.is_empty() || *name == BARE || named
        };
        contest.contestants().into_iter().filter(wanted).collect()
    }

    /// Runs a contest.
    ///
    /// # Errors
    /// Those of making directories and starting processes. Errors of contestants are in the
    /// outcome.
    pub fn run(&self, contest: &dyn Contest) -> Result<Outcome> {
        scratch::clear(self.dir);
        let own = scratch::make(self.dir)?;
        let dir = own.path().canonicalize()?;
        let ctx = Ctx { dir, quick: self.quick, seed: self.seed };
        let stores = self.contestants(contest);
        let mut cells = vec![Vec::new(); stores.len()];
        let (mut attempts, mut whole) = (Vec::new(), true);
        for round in 0..self.rounds {
            let place = Place { ctx: &ctx, contest, round, stores: &stores };
            let done = self.round(place)?;
            cells.iter_mut().zip(done.cells).for_each(|(all, cell)| all.push(cell));
            attempts.push(done.attempts);
            whole &= done.whole;
        }
        Ok(Outcome {
            id: contest.id(),
            title: contest.title(&ctx),
            remark: contest.remark(),
            goals: contest.goals(&ctx),
            plots: contest.plots(&ctx),
            stores,
            cells,
            attempts,
            whole,
        })
    }
}

/// In which order `count` stores have their turns in a round.
fn turns(count: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    // Half the rounds go backwards: the rotation counts those in the same direction. Even a
    // single round does not begin with the first: that one meets memory that the host has yet
    // to hand over.
    order.rotate_left((count / 2 + round / 2) % count.max(1));
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use super::turns;

    #[test]
    fn everyone_has_a_turn_each_round_and_the_first_differs() {
        let all: Vec<_> = (0..6).map(|round| turns(3, round)).collect();
        let sorted = |order: &Vec<usize>| {
            let mut order = order.clone();
            order.sort_unstable();
            order
        };
        assert!(all.iter().all(|order| sorted(order) == [0, 1, 2]));
        let firsts: std::collections::BTreeSet<_> = all.iter().map(|order| order[0]).collect();
        assert_eq!(firsts.len(), 3, "{all:?}");
    }
}
