//! Breaking the rules on purpose: each mutation takes one away, and the simulation must notice.
//!
//! Owns: one build of the simulation with `--cfg holdall_mutations`, in `target/mutants`, and
//! the runs of it. The mutations are listed in [`mutation_list`](crate::mutation_list).

use crate::mutation_list::{ALL, Entry, Shows};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Seeds that a broken store gets to betray itself.
const SEEDS: &str = "0..400";

/// How many mutations were noticed, and how many not although they should have been.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    /// Noticed.
    pub noticed: usize,
    /// Not noticed, as argued.
    pub argued: usize,
    /// Not noticed, or noticed against the argument.
    pub wrong: usize,
}

/// The run without a mutation, by which the others are limited, may take as long as it takes.
const NO_LIMIT: Duration = Duration::from_secs(3600);
/// How long each of [`runs`] may take.
type Limits = [Duration; 2];

/// Runs all mutations whose name contains `only`; `say` gets a line for each. Cost: one build
/// and some seconds each.
///
/// # Errors
/// A build that fails, or a simulation that fails without any mutation.
pub fn run_all(only: &str, say: &mut dyn FnMut(&str)) -> Result<Tally> {
    let program = build()?;
    let mut limits = [NO_LIMIT; 2];
    for (limit, arguments) in limits.iter_mut().zip(runs(SEEDS)) {
        let begun = Instant::now();
        if let Some(found) = simulate(&program, None, &arguments, NO_LIMIT)? {
            bail!("the simulation fails without any mutation: {found}");
        }
        *limit = begun.elapsed() * 5 + Duration::from_secs(30);
    }
    let mut tally = Tally::default();
    for entry in ALL.iter().filter(|e| e.name.contains(only)) {
        let said = one(&program, entry, limits, &mut tally)?;
        say(&format!("{:<16} | {:<76} | {said}", entry.name, entry.rule));
    }
    Ok(tally)
}

fn one(program: &Path, entry: &Entry, limits: Limits, tally: &mut Tally) -> Result<String> {
    let seeds = if let Shows::In(seeds) = entry.shows { seeds } else { SEEDS };
    let mut found = None;
    for (limit, arguments) in limits.into_iter().zip(runs(seeds)) {
        if found.is_none() {
            found = simulate(program, Some(entry.name), &arguments, limit)?;
        }
    }
    let (count, said) = match (found, entry.shows) {
        (Some(found), Shows::Never(_)) => (&mut tally.wrong, format!("NOTICED: {found}")),
        (Some(found), _) => (&mut tally.noticed, found),
        (None, Shows::Never(why)) => (&mut tally.argued, format!("not noticed, as argued: {why}")),
        (None, _) => (&mut tally.wrong, "NOT NOTICED".into()),
    };
    *count += 1;
    Ok(said)
}

/// Builds the simulation with its mutations; returns the program.
fn build() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = root.join("target/mutants");
    let status = Command::new("cargo")
        .current_dir(&root)
        .args(["build", "--release", "-q", "-p", "holdall-sim"])
        .args(["--config", "profile.release.lto=false"])
        .args(["--config", "profile.release.debug-assertions=true"])
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", "--cfg holdall_mutations")
        .status()
        .context("running cargo")?;
    if !status.success() {
        bail!("the simulation does not build with --cfg holdall_mutations");
    }
    Ok(target.join("release/holdall-sim"))
}

/// What a broken store has to get through: the exhaustive test, then seeds.
fn runs(seeds: &str) -> [Vec<&str>; 2] {
    [vec!["--exhaustive", "2", "--twice", "0"], vec!["--seeds", seeds, "--quick"]]
}

/// Runs the simulation; what it found first, if anything. A mutation may make the store hang,
/// which counts as noticed after `limit`.
fn simulate(
    program: &Path,
    mutation: Option<&str>,
    arguments: &[&str],
    limit: Duration,
) -> Result<Option<String>> {
    let mut run = Command::new("timeout");
    run.arg(limit.as_secs().to_string()).arg(program).args(arguments);
    let run = run.args(mutation.iter().flat_map(|name| ["--mutation", name])).output()?;
    if run.status.success() {
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&run.stderr);
    let line = text.lines().next().unwrap_or("no answer: it hangs");
    let seed = String::from_utf8_lossy(&run.stdout);
    let seed = seed.lines().next().unwrap_or_default().to_owned();
    let found = if seed.starts_with("seed ") { seed } else { line.to_owned() };
    Ok(Some(found.chars().take(110).collect()))
}
