//! The command line of the workloads.
//!
//! Owns: its options and commands, also for programs that add commands of their own, and the
//! two hidden commands that this program runs of itself.

use crate::age::{self, Age};
use crate::bucket::Buckets;
use crate::cost::{self, Instructions};
use crate::edits::Edits;
use crate::gate::{self, GateArgs};
use crate::http::bare_server::{self, BareServer};
use crate::http::kill::{self, S3Kill};
use crate::http::{Phase, Servers, Sizes};
use crate::import::Import;
use crate::memory::Memory;
use crate::options::{Common, Programs, Select};
use crate::peer::Maker;
use crate::scale::Scale;
use crate::script::{PYTHON, Script, WEBDAV};
use crate::workloads::{self, Stores, Workload, w8_open};
use crate::{execute, stores};
use anyhow::{Context as _, Result, bail};
use clap::{Args, Parser, Subcommand};
use holdall_instrument::contest::{self, Contest, Ctx};
use holdall_instrument::ratios;
use std::path::PathBuf;
use std::process::ExitCode;

/// Commands that compare.
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
    /// All of these workloads
    Peers(PeersArgs),
    /// Many edits of a large object, the threshold T, copies
    Edits(Select),
    /// Import of a directory tree beside `cp -r`, export, comparison
    Import(ImportArgs),
    /// Memory resident with a large store and one large object
    Memory(MemoryArgs),
    /// Very many small objects; a terabyte of holes with a piece in each MiB
    Scale(ScaleArgs),
    /// Instructions of single operations, by valgrind
    Instructions(Select),
    /// S3 servers: Holdall's, MinIO, versitygw, a bare handler
    S3(S3Args),
    /// A store in a bucket, the S3 client alone, file systems over buckets; needs --versitygw
    Bucket(ScriptArgs),
    /// WebDAV servers: Holdall's, Apache mod_dav, rclone
    Webdav(ScriptArgs),
    /// The Python package beside py-lmdb, sqlite3, h5py, zarr's stores, archives, files
    Python(ScriptArgs),
    S3Kill(S3Kill),
    /// A bounded volume filled, churned, emptied, compacted
    Age(Age),
    /// W1 to W10, edits, import, instructions
    All(Select),
    /// Picture of every row's ratio to the best other store, from kept runs' results.json
    Ratios {
        /// Folders that --into made; of a workload that several have, the first one's rows
        #[arg(required = true, value_name = "FOLDER")]
        folders: Vec<PathBuf>,
        /// Where ratios.svg and ratios.png go [default: the first folder]
        #[arg(long, value_name = "DIR")]
        draw_into: Option<PathBuf>,
    },
    /// Whether a change made a row slower by 5 %: two builds in turns
    Gate(GateArgs),
    /// One store's part of one round; used by the others
    #[command(hide = true)]
    One(Box<One>),
    /// A plain workload for a profiler; prints nothing
    Work {
        /// Which
        work: cost::Work,
        /// Operations
        #[arg(long, default_value_t = 10_000)]
        count: u64,
    },
    /// Works on a store until it is killed; used by W8
    #[command(hide = true)]
    Killed(Killed),
    /// The bare handler of `s3`
    #[command(hide = true)]
    BareServer(BareServer),
}

/// Options of `peers`.
#[derive(Debug, Clone, Args)]
pub struct PeersArgs {
    #[command(flatten)]
    select: Select,
    /// Only these workloads
    #[arg(long, value_delimiter = ',', value_parser = workloads::all().map(Workload::id))]
    workloads: Vec<String>,
}

/// Options of `import`.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    select: Select,
    /// A directory; parts of /usr if none is named
    #[arg(long = "tree", value_name = "DIR")]
    trees: Vec<PathBuf>,
}

/// Options of `memory`.
#[derive(Debug, Clone, Args)]
pub struct MemoryArgs {
    #[command(flatten)]
    select: Select,
    /// Gigabytes of each
    #[arg(long, default_value_t = 20)]
    gb: u64,
}

/// Options of `scale`.
#[derive(Debug, Clone, Args)]
pub struct ScaleArgs {
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    scale: Scale,
}

/// Options of `s3`.
#[derive(Debug, Clone, Args)]
pub struct S3Args {
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    programs: Programs,
    #[command(flatten)]
    sizes: Sizes,
    /// Only these phases
    #[arg(long, value_delimiter = ',', value_name = "PHASE")]
    phases: Vec<Phase>,
}

/// Options of comparisons of programs.
#[derive(Debug, Clone, Args)]
pub struct ScriptArgs {
    #[command(flatten)]
    select: Select,
    #[command(flatten)]
    programs: Programs,
}

/// What the processes of parts know of a comparison's own options.
#[derive(Debug, Clone, Default, Args)]
struct Own {
    #[arg(long = "tree")]
    trees: Vec<PathBuf>,
    #[arg(long, default_value_t = 0)]
    gb: u64,
    #[command(flatten)]
    scale: Scale,
    #[command(flatten)]
    programs: Programs,
    #[command(flatten)]
    sizes: Sizes,
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
    #[command(flatten)]
    own: Own,
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
/// if Holdall, plain files or the bare machine failed; missed goals are none.
///
/// # Errors
/// A store named that is not there; those of the system and of output.
pub fn execute(common: &Common, command: &Command, more: Vec<Box<dyn Maker>>) -> Result<ExitCode> {
    let mut makers = stores::own();
    makers.extend(more);
    let ctx = |seed| Ctx { dir: common.dir.clone(), quick: common.quick, seed };
    match command {
        Command::One(one) => {
            let makers: Vec<_> = makers.iter().map(|m| &**m).collect();
            let contest = named(&one.workload, &makers, &one.own)?;
            contest::run_one(&ctx(one.seed), &*contest, &one.store, &one.out)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Work { work, count } => {
            cost::work(&common.dir, *work, *count)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Killed(killed) => {
            let maker =
                makers.iter().find(|m| m.name() == killed.store).context("no such store")?;
            w8_open::work_until_killed(&ctx(killed.seed), &**maker, killed.turn)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Ratios { folders, draw_into } => {
            let into = draw_into.as_ref().or(folders.first()).context("no folder")?;
            ratios::draw(folders, into, &execute::WITH_SPACE)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Gate(args) => Ok(gate::execute(common, args)),
        Command::Age(args) => age::run(&common.dir, args).map(|()| ExitCode::SUCCESS),
        Command::S3Kill(args) => kill::run(common, args),
        Command::BareServer(args) => bare_server::run(args).map(|()| ExitCode::SUCCESS),
        other => {
            let (ids, select) = chosen(other).context("no comparison")?;
            let own = own(other)?;
            let makers: Vec<_> = makers.iter().map(|m| &**m).collect();
            let contests = ids.iter().map(|id| named(id, &makers, &own));
            execute::contests(common, select, &contests.collect::<Result<Vec<_>>>()?)
        }
    }
}

/// The contest called `id`; one between stores is held between those named.
fn named<'a>(id: &str, makers: &'a [&'a dyn Maker], own: &Own) -> Result<Box<dyn Contest + 'a>> {
    let Own { trees, gb, scale, programs, sizes } = own;
    if let Some(phase) = Phase::ALL.into_iter().find(|phase| phase.id() == id) {
        return Ok(Box::new(Servers { phase, programs: programs.clone(), sizes: sizes.clone() }));
    }
    if let Some(workload) = workloads::all().into_iter().find(|w| w.id() == id) {
        return Ok(Box::new(Stores { workload, makers }));
    }
    Ok(match id {
        "edits" => Box::new(Edits),
        "import" => Box::new(Import { trees: trees.clone() }),
        "memory" => Box::new(Memory { gb: *gb }),
        "scale" => Box::new(scale.clone()),
        "instructions" => Box::new(Instructions),
        "bucket" => Box::new(Buckets { programs: programs.clone() }),
        "webdav" => Box::new(Script { what: &WEBDAV, programs: programs.clone() }),
        "python" => Box::new(Script { what: &PYTHON, programs: programs.clone() }),
        _ => bail!("no comparison {id:?}"),
    })
}

/// A command's own options, programs found.
fn own(command: &Command) -> Result<Own> {
    let none = Own::default;
    Ok(match command {
        Command::Import(args) => Own { trees: args.trees.clone(), ..none() },
        Command::Memory(args) => Own { gb: args.gb, ..none() },
        Command::Scale(args) => Own { scale: args.scale.clone(), ..none() },
        Command::S3(args) => {
            Own { programs: args.programs.found()?, sizes: args.sizes.clone(), ..none() }
        }
        Command::Bucket(args) | Command::Webdav(args) | Command::Python(args) => {
            Own { programs: args.programs.found()?, ..none() }
        }
        _ => none(),
    })
}

/// Which contests a command is for.
fn chosen(command: &Command) -> Option<(Vec<&'static str>, &Select)> {
    let stores = || workloads::all().map(Workload::id).to_vec();
    Some(match command {
        Command::W1(s) => (vec!["w1"], s),
        Command::W2(s) => (vec!["w2"], s),
        Command::W3(s) => (vec!["w3"], s),
        Command::W4(s) => (vec!["w4"], s),
        Command::W5(s) => (vec!["w5"], s),
        Command::W6(s) => (vec!["w6"], s),
        Command::W7(s) => (vec!["w7"], s),
        Command::W8(s) => (vec!["w8"], s),
        Command::W9(s) => (vec!["w9"], s),
        Command::W10(s) => (vec!["w10"], s),
        Command::Peers(args) => {
            let wanted =
                |id: &&str| args.workloads.is_empty() || args.workloads.iter().any(|w| w == id);
            (stores().into_iter().filter(wanted).collect(), &args.select)
        }
        Command::Edits(s) => (vec!["edits"], s),
        Command::Import(args) => (vec!["import"], &args.select),
        Command::Memory(args) => (vec!["memory"], &args.select),
        Command::Scale(args) => (vec!["scale"], &args.select),
        Command::Instructions(s) => (vec!["instructions"], s),
        Command::S3(args) => {
            let wanted = |p: &Phase| args.phases.is_empty() || args.phases.contains(p);
            (Phase::ALL.into_iter().filter(wanted).map(Phase::id).collect(), &args.select)
        }
        Command::Bucket(args) => (vec!["bucket"], &args.select),
        Command::Webdav(args) => (vec!["webdav"], &args.select),
        Command::Python(args) => (vec!["python"], &args.select),
        Command::All(s) => ([stores(), vec!["edits", "import", "instructions"]].concat(), s),
        Command::Ratios { .. }
        | Command::Gate(_)
        | Command::One(_)
        | Command::S3Kill(_)
        | Command::Age(_)
        | Command::BareServer(_)
        | Command::Killed(_)
        | Command::Work { .. } => return None,
    })
}
