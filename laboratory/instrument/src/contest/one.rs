//! One store's part of one round, in a process of its own.

use super::{Contest, Ctx, Figure};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};

/// The command that runs it.
pub const ONE: &str = "one";

/// What came of it: rows done, and what kept it from doing more.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Cell {
    /// One for each row.
    pub figures: Vec<Figure>,
    /// The error that ended it.
    pub error: Option<String>,
}

/// Runs it in this process and writes the cell to file `out`.
///
/// # Errors
/// Those of writing the file and of the system. A contestant's errors are in the cell.
pub fn run_one(ctx: &Ctx, contest: &dyn Contest, contestant: &str, out: &Path) -> Result<()> {
    // A part of a run that was killed would write beside the run that goes on.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let mut figures = Vec::new();
    let result = contest.measure(ctx, contestant, &mut figures);
    let cell = Cell { figures, error: result.err().map(|e| format!("{e:#}")) };
    Ok(std::fs::write(out, serde_json::to_vec(&cell)?)?)
}

/// Runs it in a new process, in a new directory that is removed afterwards. Also returns
/// whether the process came to its end.
pub(super) fn start(ctx: &Ctx, contest: &dyn Contest, store: &str) -> Result<(Cell, bool)> {
    let (id, dir) = (contest.id(), ctx.dir.join(contest.id()));
    let out = ctx.dir.join("cell.json");
    std::fs::create_dir_all(&dir)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(ONE).arg("--workload").arg(id).arg("--store").arg(store);
    command.args(contest.arguments());
    command.arg("--dir").arg(&dir).arg("--out").arg(&out);
    command.arg("--seed").arg(ctx.seed.to_string());
    if ctx.quick {
        command.arg("--quick");
    }
    // What stores print must not get into the report.
    command.stdout(Stdio::from(std::io::stderr().as_fd().try_clone_to_owned()?));
    let status = command.status()?;
    let cell = if status.success() {
        serde_json::from_slice(&std::fs::read(&out)?)?
    } else {
        Cell { figures: Vec::new(), error: Some(format!("the process ended with {status}")) }
    };
    std::fs::remove_dir_all(&dir)?;
    Ok((cell, status.success()))
}
