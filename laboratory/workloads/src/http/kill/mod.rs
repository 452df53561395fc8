//! `s3-kill`: Holdall's server killed with SIGKILL at random moments under load.
//!
//! The page cache outlives the process, so this finds what is answered before it is committed,
//! torn or lost by recovery, not a missing sync: `s3` counts those.

mod check;
mod model;
mod work;

use super::client::Client;
use super::load;
use super::server::{Kind, Program};
use crate::data;
use crate::options::Common;
use anyhow::{Context as _, Result};
use bytes::Bytes;
use check::{Unanswered, Violation};
use clap::Args;
use futures::future::join_all;
use rand::Rng;
use rand::rngs::SmallRng;
use serde_json::json;
use std::cell::Cell;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use work::{Answered, Worker};

/// Bytes that objects are taken from.
const POOL: usize = 16 << 20;
/// Earliest and latest kill after the clients begin, in milliseconds.
const MOMENTS: (usize, usize) = (20, 1_500);

/// Kills Holdall's server under load, once in each round [default: 50, with --quick 5], and checks
/// what it holds
#[derive(Debug, Clone, Args)]
pub struct S3Kill {
    /// The program `holdall`
    #[arg(long, value_name = "PATH")]
    server: PathBuf,
    /// Clients, each with keys of its own
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=256))]
    clients: u32,
    /// What clients do and when the server is killed comes from it; how far they get does not
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What a run came to.
#[derive(Debug, Default)]
struct Outcome {
    rounds: usize,
    answered: Answered,
    unanswered: Unanswered,
    /// With the round, from 1 on; 0 for what was found behind the last.
    violations: Vec<(usize, Violation)>,
}

/// Runs it and prints. The code is a failure if anything was violated.
///
/// # Errors
/// Those of the system; a server that does not start again.
pub fn run(common: &Common, args: &S3Kill) -> Result<ExitCode> {
    let path = args.server.canonicalize();
    let path = path.with_context(|| args.server.display().to_string())?;
    let program = Program { kind: Kind::Holdall, path, is_logged: false };
    let scratch = holdall_instrument::scratch::make(&common.dir)?;
    let count = common.rounds.unwrap_or(if common.quick { 5 } else { 50 });
    let outcome = super::runtime()?.block_on(rounds(scratch.path(), args, &program, count))?;
    print(common, args, &outcome)?;
    let sound = outcome.violations.is_empty();
    Ok(if sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn rounds(scratch: &Path, args: &S3Kill, program: &Program, most: usize) -> Result<Outcome> {
    let pool: Bytes = data::bytes(POOL, args.seed).into();
    let count = usize::try_from(args.clients)?;
    let mut workers: Vec<Worker> = (0..count).map(|n| Worker::new(n, &pool)).collect();
    let (mut outcome, dir) = (Outcome::default(), scratch.join("killed"));
    let mut rng = data::rng(args.seed);
    for round in 1..=most {
        outcome.rounds = round;
        let moment = data::log_len(&mut rng, MOMENTS.0, MOMENTS.1);
        let moment = Duration::from_millis(u64::try_from(moment)?);
        eprintln!("… round {round}: killed after {moment:?}");
        let found = one(program, &dir, &mut workers, moment, &mut rng, &mut outcome.unanswered);
        let found = found.await?;
        if !found.is_empty() {
            outcome.violations.extend(found.into_iter().map(|v| (round, v)));
            break;
        }
    }
    workers.iter().for_each(|worker| outcome.answered.add(&worker.answered));
    if let Err(text) = verify(program, &dir.join("store"))? {
        outcome.violations.push((0, ("the store".into(), text)));
    }
    Ok(outcome)
}

/// Load, kill, restart, check. Returns what was violated.
async fn one(
    program: &Program,
    dir: &Path,
    workers: &mut [Worker],
    moment: Duration,
    rng: &mut SmallRng,
    unanswered: &mut Unanswered,
) -> Result<Vec<Violation>> {
    let mut server = program.serve(dir).await?;
    let mut clients = load::clients(workers.len(), server.address)?;
    let mut rngs: Vec<SmallRng> = workers.iter().map(|_| data::rng(rng.random())).collect();
    let killed = Cell::new(false);
    let work = workers.iter_mut().zip(&mut clients).zip(&mut rngs);
    let work = join_all(work.map(|((w, client), rng)| w.run(client, rng, &killed)));
    let kill = async {
        tokio::time::sleep(moment).await;
        killed.set(true);
        server.kill();
    };
    let (done, ()) = futures::future::join(work, kill).await;
    let mut violations: Vec<Violation> = done.into_iter().filter_map(Result::err).collect();
    drop(clients);
    let server = program.serve(dir).await.context("after a kill")?;
    let mut client = Client::new(server.address)?;
    for worker in workers.iter_mut() {
        violations.extend(check::keys(worker, &mut client, unanswered).await.err());
    }
    if violations.is_empty() {
        violations.extend(check::list(workers, &mut client).await.err());
    }
    server.stop()?;
    Ok(violations)
}

/// Runs `holdall verify`. The inner error is what it found.
fn verify(program: &Program, store: &Path) -> Result<Result<(), String>> {
    let out = Command::new(&program.path).arg("verify").arg(store).output()?;
    let said = [out.stdout, out.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    Ok(if out.status.success() { Ok(()) } else { Err(format!("holdall verify: {said}")) })
}

fn print(common: &Common, args: &S3Kill, outcome: &Outcome) -> Result<()> {
    let Outcome { rounds, answered, unanswered, violations } = outcome;
    let (seed, clients) = (args.seed, args.clients);
    let mut out = std::io::stdout().lock();
    if common.json {
        let told: Vec<_> = violations
            .iter()
            .map(|(round, (key, what))| json!({ "round": round, "key": key, "what": what }))
            .collect();
        let all = json!({ "seed": seed, "rounds": rounds, "clients": clients,
            "answered": answered, "unanswered": unanswered, "violations": told });
        return Ok(writeln!(out, "{all:#}")?);
    }
    for (round, (key, what)) in violations {
        let round = if *round == 0 { "the end".into() } else { format!("round {round}") };
        writeln!(out, "violated: seed {seed}, {round}, {key}: {what}")?;
    }
    writeln!(
        out,
        "{rounds} kills, {clients} clients, seed {seed}: {} answered changes ({} puts, {} deletes, \
         {} inserts, {} parts, {} completions) and {} gets checked; of {} unanswered changes of \
         objects {} are whole and {} absent; {}",
        answered.changes(),
        answered.puts,
        answered.deletes,
        answered.inserts,
        answered.parts,
        answered.completes,
        answered.gets,
        unanswered.whole + unanswered.absent,
        unanswered.whole,
        unanswered.absent,
        match violations.len() {
            0 => "nothing violated, the store verifies".to_owned(),
            n => format!("{n} violations"),
        }
    )?;
    Ok(())
}
