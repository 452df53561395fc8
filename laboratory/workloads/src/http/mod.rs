//! `http`: S3 servers side by side, and `http-kill`: Holdall's server killed again and again.
//!
//! Owns: the command lines and the turns. One thread generates all load, so that a second
//! processor is the server's; each server runs alone, on a fresh directory for each phase and
//! round, and every second round goes in reverse order.

pub mod bare_server;
mod client;
mod content;
pub mod kill;
mod load;
mod plan;
mod rows;
mod server;
mod sign;
mod syncs;
mod table;
mod upload;
mod usage;
mod xml;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use holdall_bench::cli;
use holdall_instrument::{scratch, system};
use plan::{Phase, Plan, ROWS};
use serde_json::json;
use server::{Kind, Program};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use syncs::Syncs;
use table::{Report, Taken, Told};
use tokio::runtime::Runtime;

/// S3 servers side by side: Holdall's, MinIO, versitygw, a bare handler
#[derive(Debug, Clone, Args)]
pub struct Http {
    /// The program `holdall`
    #[arg(long, value_name = "PATH")]
    server: Option<PathBuf>,
    /// The program `minio`
    #[arg(long, value_name = "PATH")]
    minio: Option<PathBuf>,
    /// The program `versitygw`, run with its POSIX backend
    #[arg(long, value_name = "PATH")]
    versitygw: Option<PathBuf>,
    /// Only these rows
    #[arg(long, value_delimiter = ',', value_name = "ROW", value_parser = row_ids())]
    rows: Vec<String>,
    /// Keys to list and to start with [default: 1,000,000, with --quick 4,000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(rows::LEAST_KEYS..))]
    keys: Option<u64>,
    /// Clients of the row of memory [default: 256, with --quick 16]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    clients: Option<u16>,
    /// MB that each of these puts [default: 100, with --quick 8]
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..=5_000))]
    size: Option<u32>,
}

fn row_ids() -> clap::builder::PossibleValuesParser {
    ROWS.map(|row| row.id).into()
}

impl Http {
    fn plan(&self, quick: bool) -> Plan {
        let mut plan = Plan::new(quick);
        if !self.rows.is_empty() {
            plan.rows.retain(|row| self.rows.iter().any(|id| id == row.id));
        }
        plan.keys = self.keys.unwrap_or(plan.keys);
        plan.clients = self.clients.map_or(plan.clients, usize::from);
        plan.client_bytes = self.size.map_or(plan.client_bytes, |mb| u64::from(mb) * 1_000_000);
        plan
    }

    fn programs(&self) -> Result<Vec<Program>> {
        let given = [
            (Kind::Holdall, &self.server),
            (Kind::Minio, &self.minio),
            (Kind::Versitygw, &self.versitygw),
        ];
        let mut programs = vec![Program::bare()?];
        for (kind, path) in given {
            let Some(path) = path else { continue };
            let path = path.canonicalize().with_context(|| path.display().to_string())?;
            programs.push(Program { kind, path });
        }
        if programs.len() == 1 {
            bail!("name at least one of --server, --minio, --versitygw");
        }
        Ok(programs)
    }
}

/// The runtime of the generator: one thread.
fn runtime() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// Runs it and prints. The code is a failure where Holdall or the bare handler did not finish.
///
/// # Errors
/// Those of the system.
pub fn run(common: &cli::Common, args: &Http) -> Result<ExitCode> {
    let (plan, programs) = (args.plan(common.quick), args.programs()?);
    let machine = system::describe(&common.dir);
    let rounds = common.rounds.unwrap_or(if common.quick { 1 } else { 3 });
    let scratch = scratch::make(&common.dir)?;
    let dir = scratch.path();
    let runtime = runtime()?;
    let mut report = Report::default();
    for program in &programs {
        report.servers.push(runtime.block_on(look(dir, &plan, program, &mut report.errors)));
    }
    for phase in Phase::ALL.into_iter().filter(|phase| plan.wants_phase(*phase)) {
        let rounds = if phase.once() { 1 } else { rounds };
        for round in 0..rounds {
            let mut order: Vec<&Program> = programs.iter().collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for program in order {
                if program.kind != Kind::Bare || phase.has_bare() {
                    one(dir, &plan, program, (phase, round), &runtime, &mut report)?;
                }
            }
        }
    }
    print(common, &machine, &plan, rounds, &report)?;
    let ours = |kind: Kind| !kind.is_peer();
    let failed = report.errors.iter().any(|(kind, _, _)| ours(*kind));
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// One server's part of one round of a phase.
fn one(
    scratch: &Path,
    plan: &Plan,
    program: &Program,
    (phase, round): (Phase, usize),
    runtime: &Runtime,
    report: &mut Report,
) -> Result<()> {
    let kind = program.kind;
    eprintln!("… {phase:?}, round {}, {}", round + 1, kind.name());
    let dir = scratch.join("server");
    // What the one before left to be written is not this one's.
    system::sync_all(scratch)?;
    match runtime.block_on(rows::run(phase, plan, program, &dir)) {
        Ok(readings) => {
            let taken = |reading| Taken { kind, round, reading };
            report.taken.extend(readings.into_iter().map(taken));
        }
        Err(e) => {
            eprintln!("… {} failed: {e:#}", kind.name());
            let of = plan.rows.iter().find(|row| row.phase == phase);
            report.errors.push((kind, of.map_or("", |row| row.id), format!("{e:#}")));
        }
    }
    clear(&dir)
}

fn clear(dir: &Path) -> Result<()> {
    for path in [dir.to_owned(), dir.with_extension("log")] {
        let gone = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        match gone {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Version and syncs of a server.
async fn look(
    scratch: &Path,
    plan: &Plan,
    program: &Program,
    errors: &mut Vec<(Kind, &'static str, String)>,
) -> Told {
    eprintln!("… syncs of {}", program.kind.name());
    let version = if program.kind == Kind::Bare { String::new() } else { program.version() };
    let dir = scratch.join("server");
    let mut syncs = Vec::new();
    let counted = async {
        let server = program.serve(&dir).await?;
        for (what, bytes, count) in [("4 KB", 4096, 20), ("10 MB", 10_000_000, 4)] {
            let contents: Vec<_> = (0..=count).map(|n| plan.content(n, bytes)).collect();
            syncs.push((what, syncs::count(&server, &contents, &scratch.join("trace")).await?));
        }
        server.stop()
    };
    if let Err(e) = counted.await {
        errors.push((program.kind, "the count of syncs", format!("{e:#}")));
        syncs.push(("puts", Syncs::NotCounted("see below".into())));
    }
    if let Err(e) = clear(&dir) {
        errors.push((program.kind, "the count of syncs", format!("{e:#}")));
    }
    Told { kind: program.kind, version, syncs }
}

fn print(
    common: &cli::Common,
    machine: &str,
    plan: &Plan,
    rounds: usize,
    report: &Report,
) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let debug = cfg!(debug_assertions);
    if common.json {
        let mut all = report.json(plan);
        all["machine"] = json!(machine);
        all["quick"] = json!(common.quick);
        all["rounds"] = json!(rounds);
        all["debug_build"] = json!(debug);
        return Ok(writeln!(out, "{all:#}")?);
    }
    writeln!(out, "## S3 servers\n\n{machine}; rounds: {rounds}; median (least–most).\n")?;
    if debug {
        writeln!(out, "**The generator is a debug build: the figures mean nothing.**\n")?;
    }
    Ok(writeln!(out, "{}", report.markdown(plan))?)
}
