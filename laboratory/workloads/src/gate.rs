//! `gate`: whether a change made a row of the workloads slower.
//!
//! Owns: the command's options, and the rows that are judged if none is named. How it is
//! measured and judged is the instrument's.

use crate::options::Common;
use crate::workloads::{BY_NAME, BY_OID};
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use holdall_instrument::gate::{Build, Comparison, FEWEST, Gate, Pattern, Verdict};
use holdall_instrument::system;
use serde_json::json;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

/// The rows that matter most, ten of five workloads: with those that are left out, nine
/// pairs of turns would take more than 40 minutes on two cores.
const ROWS: [&str; 10] = [
    "w1/ordered keys/by name",
    "w1/random keys/by name",
    "w2/1 thread/by OID",
    "w2/8 threads/by OID",
    "w3/hot, a snapshot each, 1 thread/by name",
    "w3/W3c: cold, a snapshot each, 1 thread/by name",
    "w4/load/by OID",
    "w4/replace/by OID",
    "w9/puts, beside the stream/by OID",
    "w9/stream/by OID",
];

/// The code of a gate that could not be passed through at all.
const FAILED: u8 = 2;

/// Options of `gate`.
#[derive(Debug, Clone, Args)]
pub struct GateArgs {
    /// What is compared against: a commit, a checkout's folder or a build of this command
    old: String,
    /// What is judged: the same
    new: String,
    /// WORKLOAD, WORKLOAD/ROW or WORKLOAD/ROW/STORE: how the row's name begins, what the store's
    /// contains [default: ten rows]
    #[arg(value_name = "ROW")]
    rows: Vec<Pattern>,
    /// Most minutes that all turns may take; building is not counted
    #[arg(long, default_value_t = 40.0)]
    minutes: f64,
}

/// Runs it and prints. The code is 1 if a row is worse, 2 if it could not be done.
pub(crate) fn execute(common: &Common, args: &GateArgs) -> ExitCode {
    match run(common, args) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::from(FAILED)
        }
    }
}

/// Whether a row is worse.
fn run(common: &Common, args: &GateArgs) -> Result<bool> {
    let minutes = args.minutes;
    let whole = Duration::try_from_secs_f64(minutes * 60.0);
    let whole = whole.with_context(|| format!("{minutes} is no number of minutes"))?;
    let pairs = common.rounds.unwrap_or(FEWEST);
    ensure!(pairs >= FEWEST, "{pairs} pairs of turns show nothing; --rounds {FEWEST} or more do");
    let mut patterns = args.rows.clone();
    if patterns.is_empty() {
        patterns = ROWS.iter().map(|row| row.parse()).collect::<Result<_>>()?;
    }
    let (old, new) = (Build::find(&args.old)?, Build::find(&args.new)?);
    let (dir, quick) = (&*common.dir, common.quick);
    let gate = Gate { old, new, patterns, stores: &[BY_NAME, BY_OID], dir, quick, pairs, whole };
    let found = gate.run()?;
    let worse = found.judged()?.iter().any(|(_, _, verdict)| *verdict == Verdict::Worse);
    print(common, &gate, &found)?;
    Ok(worse)
}

fn print(common: &Common, gate: &Gate<'_>, found: &Comparison) -> Result<()> {
    let (old, new) = (&gate.old.name, &gate.new.name);
    let machine = system::describe(&common.dir);
    let mut out = std::io::stdout().lock();
    if common.json {
        let mut all = found.json()?;
        all["old"] = json!(old);
        all["new"] = json!(new);
        all["pairs"] = json!(gate.pairs);
        all["quick"] = json!(gate.quick);
        all["machine"] = json!(machine);
        return Ok(writeln!(out, "{all:#}")?);
    }
    let quick =
        if gate.quick { " Small sizes (--quick), which say nothing of a change." } else { "" };
    writeln!(
        out,
        "# {new} against {old}\n\n{machine}; {} pairs of turns.{quick}\n\n{}",
        gate.pairs,
        found.text()?
    )?;
    Ok(())
}
