//! How peers take turns and how results are told.
//!
//! Owns: [`Plan`], which runs workloads, and [`Outcome`], what came of one. Each store's part
//! of each round runs in a process of its own (this program again, command `one`): what one
//! leaves in memory does not slow or grow the next, and memory is counted alone. Stores take
//! turns round by round, each round beginning with another and every second one going
//! backwards, so that none always has the better half of a noisy machine. Probes before and
//! after each round tell whether other work disturbed it ([`Attempts`]).

mod drawings;
mod json;
mod judge;
mod keep;
mod markdown;
mod one;
mod probe;
mod redact;
mod rounds;

pub use drawings::draw;
pub use json::json;
pub use judge::{Line, Row, Verdict, rows, verdicts};
pub use keep::{Keep, program, write_whole};
pub use markdown::{settings, tables};
pub(crate) use one::find;
pub use one::{Cell, ONE, run_one};
pub use probe::{Attempt, Attempts, Probe};

use crate::peer::Maker;
use crate::stores;
use crate::workloads::{Ctx, Workload};
use anyhow::{Context as _, Result};
use rounds::Place;
use std::path::{Path, PathBuf};

/// What the bare machine is called among stores.
pub const BARE: &str = "bare machine";

/// What to run.
pub struct Plan<'a> {
    /// On the disk to be measured; a directory of the run's own is made in it.
    pub dir: &'a Path,
    /// Small sizes.
    pub quick: bool,
    /// How often each store's part is run.
    pub rounds: usize,
    /// All data and choices come from it.
    pub seed: u64,
    /// The stores.
    pub makers: Vec<&'a dyn Maker>,
    /// Where results are kept as they come, and taken from where they are already.
    pub keep: Option<Keep>,
    /// Whether the machine is probed around each round.
    pub probe: bool,
}

/// A directory that goes with this.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What came of one workload.
pub struct Outcome {
    /// Which.
    pub workload: &'static dyn Workload,
    /// What it was given, but for the directory.
    pub ctx: Ctx,
    /// Names of stores, in order; the bare machine last.
    pub stores: Vec<&'static str>,
    /// By store, then by round.
    pub cells: Vec<Vec<Cell>>,
    /// The probes around each round.
    pub attempts: Vec<Attempts>,
    /// Whether every process came to its end.
    pub whole: bool,
}

impl Outcome {
    /// Errors of stores, each with its store and once only.
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

    /// Whether Holdall, plain files or the bare machine failed: then something is wrong with
    /// this program, not with a peer's limits.
    pub fn failed(&self) -> bool {
        let ours = |name: &str| name == BARE || stores::own().iter().any(|m| m.name() == name);
        self.errors().iter().any(|(store, _)| ours(store))
    }
}

impl Plan<'_> {
    /// Runs one workload with all stores.
    ///
    /// # Errors
    /// Those of making directories and starting processes. Errors of stores are in the
    /// outcome.
    pub fn run(&self, workload: &'static dyn Workload) -> Result<Outcome> {
        let scratch = Scratch(self.dir.join(format!("holdall-bench-{}", std::process::id())));
        std::fs::create_dir_all(&scratch.0)
            .with_context(|| format!("making {}", scratch.0.display()))?;
        let dir = scratch.0.canonicalize()?;
        let ctx = Ctx { dir, quick: self.quick, seed: self.seed };
        let takes = |m: &&dyn Maker| {
            m.takes(workload.load()) && (workload.takes_ordinals() || !m.by_ordinal())
        };
        let mut stores: Vec<_> =
            self.makers.iter().copied().filter(takes).map(Maker::name).collect();
        stores.push(BARE);
        let mut cells = vec![Vec::new(); stores.len()];
        let (mut attempts, mut whole) = (Vec::new(), true);
        for round in 0..self.rounds {
            let place = Place { ctx: &ctx, id: workload.id(), round, stores: &stores };
            let done = self.round(place)?;
            cells.iter_mut().zip(done.cells).for_each(|(all, cell)| all.push(cell));
            attempts.push(done.attempts);
            whole &= done.whole;
        }
        Ok(Outcome { workload, ctx, stores, cells, attempts, whole })
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
