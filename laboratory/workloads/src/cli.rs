//! The command line of the workloads.
//!
//! Owns: its options and commands, also for programs that add commands of their own, and the
//! two hidden commands that this program runs of itself.

use crate::peer::Maker;
use crate::workloads::{self, Ctx, Workload, w8_open};
use crate::{execute, runner, stores, summary};
use anyhow::{Result, bail};
use clap::{Args, Parser, Subcommand};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of all commands.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Where files are made and removed; on the disk to be measured
    #[arg(long, global = true, default_value = ".")]
    pub dir: PathBuf,
    /// Smaller and shorter; the figures are rougher
    #[arg(long, global = true)]
    pub quick: bool,
    /// Rounds of each comparison [workloads: 3, with --quick 1; others: 9, with --quick 5]
    #[arg(long, global = true)]
    pub rounds: Option<usize>,
    /// Print JSON instead of Markdown
    #[arg(long, global = true)]
    pub json: bool,
}

/// Options of workloads.
#[derive(Debug, Clone, Args)]
pub struct Select {
    /// Only stores whose names contain one of these, in any case; the bare machine always is
    #[arg(long, value_delimiter = ',', value_name = "PEER")]
    pub(crate) only: Vec<String>,
    /// All data and choices come from it
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Publish tables, drawings and all figures in a folder of this directory, called by day and
    /// commit; the same command started again goes on where it stopped
    #[arg(long, value_name = "DIR", conflicts_with_all = ["plots", "keep"])]
    pub(crate) into: Option<PathBuf>,
    /// Draw into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
    /// Keep each store's results here as they come; what is here is not run again
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Do not check before and after each round whether the machine is quiet; nor does --quick
    #[arg(long)]
    pub(crate) no_probe: bool,
}

/// Commands of workloads.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Workload: bulk load of small objects, ordered and random keys
    W1(Select),
    /// Workload: durable single puts by one thread and by eight
    W2(Select),
    /// Workload: random gets, hot and cold
    W3(Select),
    /// Workload: web objects, loaded, replaced, read
    W4(Select),
    /// Workload: large objects, put, got whole and in ranges, hot and cold
    W5(Select),
    /// Workload: aging of large objects under safe writes
    W6(Select),
    /// Workload: bytes inserted into and deleted from the middle of large objects
    W7(Select),
    /// Workload: opening after a clean close and after a kill
    W8(Select),
    /// Workload: readers, small writers and a streaming writer at once
    W9(Select),
    /// Workload: half of all objects deleted, then refilled
    W10(Select),
    /// All workloads
    Peers(Select),
    /// Table and picture of a published run, from its results.json; both go into its folder
    Summary {
        /// A folder that --into made
        folder: PathBuf,
    },
    /// One store's part of one round; used by the others
    #[command(hide = true)]
    One(One),
    /// Works on a store until it is killed; used by W8
    #[command(hide = true)]
    Killed(Killed),
}

/// Options of the hidden command that runs one store's part.
#[derive(Debug, Clone, Args)]
pub struct One {
    #[arg(long)]
    workload: String,
    #[arg(long)]
    store: String,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    out: PathBuf,
}

/// Options of the hidden command that is killed.
#[derive(Debug, Clone, Args)]
pub struct Killed {
    #[arg(long)]
    store: String,
    #[arg(long)]
    seed: u64,
    #[arg(long)]
    turn: u64,
}

/// Run the same workloads on Holdall, plain files and other stores, in turns
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

/// Parses the process's arguments and runs them. See [`crate::run`].
pub(crate) fn main(more: Vec<Box<dyn Maker>>) -> ExitCode {
    let cli = Cli::parse();
    match execute(&cli.common, &cli.command, more) {
        Ok(code) => code,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a command for Holdall, plain files and the stores of `more`. The code is a failure
/// where Holdall, plain files or the bare machine failed; missed goals are none.
///
/// # Errors
/// A store named that is not there; those of the system and of output.
pub fn execute(common: &Common, command: &Command, more: Vec<Box<dyn Maker>>) -> Result<ExitCode> {
    let mut makers = stores::own();
    makers.extend(more);
    let ctx = |seed| Ctx { dir: common.dir.clone(), quick: common.quick, seed };
    match command {
        Command::One(one) => {
            let ctx = ctx(one.seed);
            runner::run_one(&ctx, &one.workload, &one.store, &makers, &one.out)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Killed(killed) => {
            let maker = runner::find(&makers, &killed.store)?;
            w8_open::work_until_killed(&ctx(killed.seed), maker, killed.turn)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Summary { folder } => {
            write!(std::io::stdout(), "{}", summary::write(folder)?)?;
            Ok(ExitCode::SUCCESS)
        }
        other => {
            let Some((workloads, select)) = chosen(other) else { bail!("no workload") };
            execute::workloads(common, &workloads, select, &makers)
        }
    }
}

/// Which workloads a command is for.
fn chosen(command: &Command) -> Option<(Vec<&'static dyn Workload>, &Select)> {
    let all = workloads::all();
    let (i, select) = match command {
        Command::W1(s) => (0, s),
        Command::W2(s) => (1, s),
        Command::W3(s) => (2, s),
        Command::W4(s) => (3, s),
        Command::W5(s) => (4, s),
        Command::W6(s) => (5, s),
        Command::W7(s) => (6, s),
        Command::W8(s) => (7, s),
        Command::W9(s) => (8, s),
        Command::W10(s) => (9, s),
        Command::Peers(s) => return Some((all.into(), s)),
        Command::Summary { .. } | Command::One(_) | Command::Killed(_) => return None,
    };
    Some((vec![all[i]], select))
}
