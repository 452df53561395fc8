//! A script: options and operations, from a seed or shrunk from such, and its run.
//!
//! Owns: [`Script`], [`run`], and what a run reports. A run is a function of the script alone.

use crate::op::Op;
use crate::pairs::Met;
use crate::params::Params;
use crate::world::World;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Options and operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Decides how far calls get in which a fault strikes.
    pub seed: u64,
    /// The store's options.
    pub params: Params,
    /// What is done.
    pub ops: Vec<Op>,
}

impl Script {
    /// Whether its file system punches holes: not that of every fifth seed.
    pub(crate) fn can_punch(&self) -> bool {
        self.seed % 5 != 3
    }
}

/// What a run did: for replays, and to see that the interesting things happen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// One line per operation.
    pub trace: Vec<String>,
    /// Commits acknowledged.
    pub commits: u64,
    /// Crashes recovered from, in copies too.
    pub crashes: u64,
    /// States read out and compared.
    pub checks: u64,
    /// Errors that faults or limits explain.
    pub errors: u64,
    /// Who met whom.
    pub met: Met,
    /// Divided records found after crashes, in copies.
    pub divided: u64,
    /// The volume at the end.
    pub volume: Vec<u8>,
}

/// A rule was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Number of the operation, from 0.
    pub at: usize,
    /// What was wrong.
    pub what: String,
    /// One line per operation so far.
    pub trace: Vec<String>,
    /// The last calls to the disk.
    pub calls: String,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "operation {}: {}", self.at, self.what)
    }
}

/// Plays a script. A panic in the store counts as a failure.
///
/// # Errors
/// What was wrong first.
pub fn run(script: &Script) -> Result<Report, Box<Failure>> {
    let mut world = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let w = world.insert(World::new(script));
        let mut result = w.create();
        for (at, op) in script.ops.iter().enumerate() {
            if result.is_err() {
                break;
            }
            w.at = at;
            result = w.play(op);
        }
        result.and_then(|()| w.finish())
    }));
    let what = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(what)) => Some(what),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Some(format!("panic: {}", text.unwrap_or_default()))
        }
    };
    let Some(mut world) = world else {
        let what = what.unwrap_or_default();
        return Err(Failure { at: 0, what, trace: Vec::new(), calls: String::new() }.into());
    };
    match what {
        None => Ok(world.take_report()),
        Some(what) => {
            let calls = world.calls();
            let trace = world.take_report().trace;
            Err(Failure { at: world.at, what, trace, calls }.into())
        }
    }
}
