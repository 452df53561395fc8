//! `holdall-bench`: measures Holdall against the bare machine.
//!
//! Every figure is compared with its counterpart in the same run, turn by turn; what is
//! measured and how to read it is in docs/benchmarks.md.

mod age;
mod choices;
mod cost;
mod edits;
mod hot_get;
mod http;
mod import;
mod memory;
mod million;
mod put_large;
mod put_small;
mod run;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};
use holdall_bench::{bare, cli, data, report, system};
use run::Run;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure Holdall against the bare machine
#[derive(Parser)]
#[command(name = "holdall-bench", version)]
struct Cli {
    #[command(flatten)]
    common: cli::Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Workload(cli::Command),
    /// A bounded volume filled, churned, emptied, compacted
    Age(age::Age),
    /// Everything but `memory`, `http` and `http-kill`
    All,
    /// Durable puts of 200 bytes: one thread, eight, beside a stream
    PutSmall,
    /// Durable puts of 1 GiB and of 1 MiB, cold reads
    PutLarge,
    /// A million small objects: loading, density, opening after a close and a kill
    SmallMillion,
    /// Import of a directory tree beside `cp -r`, export, comparison
    Import {
        /// Directories; parts of /usr if none are named
        trees: Vec<PathBuf>,
    },
    /// Memory resident with a large store and one large object
    Memory {
        /// Gigabytes of each
        #[arg(long, default_value_t = 20)]
        gb: u64,
    },
    /// Workloads of small and mixed objects with pages of 4 to 32 KiB
    PageSize,
    /// Objects of 4 to 256 KiB, one commit each, through the log and straight
    LogData,
    /// Random gets of objects in memory
    HotGet,
    /// Durable edits of large objects, the threshold T, copies
    Edits,
    /// Instructions of single operations, by valgrind
    Instructions,
    /// A plain workload for a profiler; prints nothing
    Work {
        /// Which
        work: cost::Work,
        /// Operations
        #[arg(long, default_value_t = 10_000)]
        count: u64,
    },
    Http(http::Http),
    HttpKill(http::kill::HttpKill),
    /// The bare handler of `http`
    #[command(hide = true)]
    BareServer(http::bare_server::BareServer),
    /// Fills a store's log and waits to be killed; used by small-million
    #[command(hide = true)]
    FillLog {
        /// The store
        store: PathBuf,
    },
}

fn main() -> Result<ExitCode> {
    let Cli { common, command } = Cli::parse();
    match &command {
        Command::Workload(workload) => return cli::execute(&common, workload, Vec::new()),
        Command::Age(args) => age::run(&common.dir, args)?,
        Command::Http(args) => return http::run(&common, args),
        Command::HttpKill(args) => return http::kill::run(&common, args),
        Command::BareServer(args) => http::bare_server::run(args)?,
        Command::FillLog { store } => million::fill_log(store)?,
        Command::Work { work, count } => cost::work(&common.dir, *work, *count)?,
        other => compare(&common, other)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn compare(common: &cli::Common, command: &Command) -> Result<()> {
    if cfg!(debug_assertions) {
        bail!("build with --release: figures of a debug build mean nothing");
    }
    let machine = system::describe(&common.dir);
    let mut run = Run::new(&common.dir, common.quick, common.rounds)?;
    measure(&mut run, command)?;
    print(&run, &machine, common.json)
}

fn measure(run: &mut Run, command: &Command) -> Result<()> {
    match command {
        Command::All => {
            put_small::run(run)?;
            put_large::run(run)?;
            million::run(run)?;
            hot_get::run(run)?;
            edits::run(run)?;
            import::run(run, &[])?;
            choices::page_size(run)?;
            choices::log_data(run)?;
            cost::instructions(run)
        }
        Command::PutSmall => put_small::run(run),
        Command::PutLarge => put_large::run(run),
        Command::SmallMillion => million::run(run),
        Command::Import { trees } => import::run(run, trees),
        Command::Memory { gb } => memory::run(run, *gb),
        Command::PageSize => choices::page_size(run),
        Command::LogData => choices::log_data(run),
        Command::HotGet => hot_get::run(run),
        Command::Edits => edits::run(run),
        Command::Instructions => cost::instructions(run),
        // Dealt with before a run begins.
        Command::Workload(_)
        | Command::Age(_)
        | Command::Http(_)
        | Command::HttpKill(_)
        | Command::BareServer(_)
        | Command::Work { .. }
        | Command::FillLog { .. } => Ok(()),
    }
}

fn print(run: &Run, machine: &str, as_json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if as_json {
        let sections: Vec<_> = run.sections().iter().map(report::Section::json).collect();
        let all = json!({ "machine": machine, "quick": run.quick, "sections": sections });
        return Ok(writeln!(out, "{all:#}")?);
    }
    writeln!(out, "{machine}; rounds: {}; median (least–most).\n", run.rounds)?;
    for section in run.sections() {
        writeln!(out, "{}", section.markdown())?;
    }
    Ok(())
}
