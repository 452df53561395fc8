//! The command `holdall-sim`: runs seeds, replays one, tries every crash point, runs mutants.
//!
//! Owns nothing. A failure prints what was wrong, the smallest script that shows it, and the
//! command that replays it; the exit code is then 1.

use anyhow::{Result, bail};
use clap::Parser;
#[cfg(holdall_mutations)]
use holdall_core::mutation;
use holdall_sim::{Script, exhaustive, mutants, run, shrink, threads};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Deterministic simulation of Holdall.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Replay one seed with its trace.
    #[arg(long)]
    seed: Option<u64>,
    /// Run the seeds A..B.
    #[arg(long, value_name = "A..B")]
    seeds: Option<String>,
    /// Run fresh seeds for this many minutes.
    #[arg(long)]
    minutes: Option<u64>,
    /// Try every crash point of every sequence of up to K operations.
    #[arg(long, value_name = "K")]
    exhaustive: Option<usize>,
    /// With --exhaustive: crash recoveries too, for sequences of up to this length.
    #[arg(long, default_value_t = 2)]
    twice: usize,
    /// With --minutes: real threads beside each other, which no seed repeats.
    #[arg(long)]
    threads: bool,
    /// Break the rules one by one and see that it shows.
    #[arg(long)]
    mutants: bool,
    /// Break this rule, in a build with `--cfg holdall_mutations`.
    #[arg(long, value_name = "NAME")]
    mutation: Option<String>,
    /// With --mutants: only mutations whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Stop at the first failure and do not shrink it.
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    match work() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("Error: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn work() -> Result<()> {
    let arguments = Arguments::parse();
    // A panic of the store is a finding like others and reported as such.
    std::panic::set_hook(Box::new(|_| {}));
    if let Some(name) = &arguments.mutation {
        activate(name)?;
    }
    if let Some(seed) = arguments.seed {
        return replay(seed);
    }
    if let Some(length) = arguments.exhaustive {
        return every_crash_point(&exhaustive::Plan { length, twice: arguments.twice, random: 2 });
    }
    if arguments.mutants {
        let tally = mutants::run_all(&arguments.only, &mut |line| println!("{line}"))?;
        let (noticed, argued) = (tally.noticed, tally.argued);
        println!(
            "{noticed} mutations noticed, {argued} not noticed as argued, {} wrong",
            tally.wrong
        );
        if tally.wrong > 0 {
            bail!("{} mutations did not show as they should", tally.wrong);
        }
        return Ok(());
    }
    let (from, to) = match (&arguments.seeds, arguments.minutes) {
        (Some(range), _) => parse_range(range)?,
        (None, Some(_)) => (fresh_seed(), u64::MAX),
        (None, None) => (0, 300),
    };
    let limit = arguments.minutes.map(|m| Duration::from_secs(60 * m));
    if arguments.threads {
        return rounds(from..to, limit);
    }
    many(from..to, limit, arguments.quick)
}

/// Takes a rule away for this process.
#[cfg(holdall_mutations)]
fn activate(name: &str) -> Result<()> {
    let entry = holdall_sim::mutation_list::ALL.iter().find(|entry| entry.name == name);
    let Some(entry) = entry else { bail!("there is no mutation {name}") };
    mutation::activate(Some(entry.mutation));
    Ok(())
}

#[cfg(not(holdall_mutations))]
fn activate(name: &str) -> Result<()> {
    bail!("this build has no mutation {name}: build it with RUSTFLAGS='--cfg holdall_mutations'")
}

fn parse_range(range: &str) -> Result<(u64, u64)> {
    let Some((a, b)) = range.split_once("..") else { bail!("write --seeds A..B") };
    Ok((a.trim().parse()?, b.trim().parse()?))
}

/// Seeds that a run of some minutes begins with: others each time.
fn fresh_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |d| d.as_secs()) * 1_000_000
}

fn replay(seed: u64) -> Result<()> {
    let script = Script::draw(seed);
    println!("{:#?}", script.params);
    match run(&script) {
        Ok(report) => {
            report.trace.iter().for_each(|line| println!("{line}"));
            println!("seed {seed}: fine");
            Ok(())
        }
        Err(failure) => {
            failure.trace.iter().for_each(|line| println!("{line}"));
            println!("last calls to the disk:\n{}", failure.calls);
            bail!("seed {seed}: {failure}");
        }
    }
}

/// Rounds of real threads until one fails.
fn rounds(seeds: std::ops::Range<u64>, limit: Option<Duration>) -> Result<()> {
    let (begun, mut done, mut commits) = (Instant::now(), 0u64, 0);
    for seed in seeds {
        if limit.is_some_and(|limit| begun.elapsed() > limit) {
            break;
        }
        match threads::round(seed) {
            Ok(more) => commits += more,
            Err(what) => bail!("round {seed}, number {done}: {what}"),
        }
        done += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!("{done} rounds of threads, {commits} commits in {seconds:.1} s");
    Ok(())
}

fn many(seeds: std::ops::Range<u64>, limit: Option<Duration>, quick: bool) -> Result<()> {
    let begun = Instant::now();
    let (mut done, mut failed, mut commits, mut crashes, mut checks) = (0u64, 0, 0, 0, 0);
    for seed in seeds {
        if limit.is_some_and(|limit| begun.elapsed() > limit) {
            break;
        }
        done += 1;
        let script = Script::draw(seed);
        match run(&script) {
            Ok(report) => {
                commits += report.commits;
                crashes += report.crashes;
                checks += report.checks;
            }
            Err(failure) => {
                failed += 1;
                println!("seed {seed}: {failure}\n  replay: holdall-sim --seed {seed}");
                if quick {
                    break;
                }
                if let Some((small, failure)) = shrink::shrink(&script, 2000) {
                    println!("  smallest: {:?}", small.params);
                    small.ops.iter().for_each(|op| println!("    {op:?}"));
                    failure.trace.iter().for_each(|line| println!("  {line}"));
                    println!("last calls to the disk:\n{}\n  {failure}", failure.calls);
                }
            }
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{done} seeds, {failed} failed; {commits} commits, {crashes} crashes, {checks} states \
         compared in {seconds:.1} s"
    );
    if failed > 0 { bail!("{failed} seeds failed") } else { Ok(()) }
}

fn every_crash_point(plan: &exhaustive::Plan) -> Result<()> {
    let begun = Instant::now();
    let mut told = begun;
    let outcome = exhaustive::exhaustive(plan, &mut |tried| {
        if told.elapsed() > Duration::from_secs(10) {
            told = Instant::now();
            println!("{tried:?}");
        }
    });
    match outcome {
        Ok(tried) => {
            println!("{tried:?} in {:.1} s", begun.elapsed().as_secs_f64());
            Ok(())
        }
        Err(found) => {
            let (script, failure) = *found;
            println!("{:?}\n{:#?}", script.params, script.ops);
            failure.trace.iter().for_each(|line| println!("{line}"));
            println!("{}", failure.calls);
            bail!("{failure}");
        }
    }
}
