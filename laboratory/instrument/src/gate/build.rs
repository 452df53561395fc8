//! The two builds that a gate compares: where they come from, how they are called, how their
//! answers are read.
//!
//! Owns: the folder `target/gate` of the repository, with a copy of each build. A build of any
//! commit since the workloads exist answers to one call, the command `one`; what it writes is
//! read here without the instrument's own types, which older commits do not share.

use super::Limit;
use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// The package of the workloads, in every commit.
const PACKAGE: &str = "holdall-bench";
/// Where builds are made, below the repository's folder.
const FOLDER: &str = "target/gate";
/// How often a turn is asked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// A build of the workloads' command.
#[derive(Debug, Clone)]
pub struct Build {
    /// For reports: commit and hash of the file, without the machine's paths.
    pub name: String,
    program: PathBuf,
}

/// One row as a build reported it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The row's name.
    pub row: String,
    /// What the value counts.
    pub unit: String,
    /// The figure, positive.
    pub value: f64,
    /// Whether a smaller value is better.
    pub less_is_better: bool,
}

/// What is to be run.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// `w2`.
    pub workload: &'a str,
    /// `Holdall by OID`.
    pub store: &'a str,
    /// All data and choices come from it.
    pub seed: u64,
    /// Small sizes.
    pub quick: bool,
}

/// What `one` writes, as far as it is the same in all commits.
#[derive(Deserialize)]
struct Cell {
    figures: Vec<Figure>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Figure {
    row: String,
    unit: String,
    value: f64,
}

impl Build {
    /// The build that `name` means: a file is a build, a folder is a checkout that is built as
    /// it is, anything else is a commit that is checked out and built. Building takes minutes.
    ///
    /// # Errors
    /// None of these; what cannot be built; a program that has no command `one`.
    pub fn find(name: &str) -> Result<Self> {
        let path = Path::new(name);
        let (program, name) = if path.is_file() {
            (path.canonicalize()?, None)
        } else if path.is_dir() {
            from_tree(path)?
        } else {
            from_commit(name)?
        };
        let hash = blake3::hash(&fs::read(&program)?).to_hex();
        let name = name.or_else(|| Some(program.file_name()?.to_string_lossy().into_owned()));
        let name = format!("{} ({})", name.unwrap_or_default(), &hash[..12]);
        let build = Self { name, program };
        build.check()?;
        Ok(build)
    }

    /// Whether it answers to the one call that is made.
    fn check(&self) -> Result<()> {
        let out = Command::new(&self.program).args(["one", "--help"]).output();
        let out = out.with_context(|| format!("starting {}", self.program.display()))?;
        let help = String::from_utf8_lossy(&out.stdout);
        let known = ["--workload", "--store", "--seed", "--out"].iter().all(|o| help.contains(o));
        ensure!(
            out.status.success() && known,
            "{} has no command `one` with a workload, a store, a seed and a file: it is no build \
             of the workloads, or older than they are",
            self.name
        );
        Ok(())
    }

    /// Runs a turn in `dir`, which is empty, and reads what it wrote. It is ended when `limit` is up.
    ///
    /// # Errors
    /// The store's, with the build, workload and store; an answer that is not understood.
    pub fn run(&self, turn: Turn<'_>, dir: &Path, limit: Limit) -> Result<Vec<Reading>> {
        let Turn { workload, store, seed, quick } = turn;
        let context = || format!("{workload} by {store} of {}", self.name);
        let (work, out) = (dir.join("work"), dir.join("cell.json"));
        fs::create_dir(&work)?;
        let mut command = Command::new(&self.program);
        command.args(["one", "--workload", workload, "--store", store]);
        command.arg("--dir").arg(&work).arg("--out").arg(&out);
        command.arg("--seed").arg(seed.to_string());
        command.args(quick.then_some("--quick"));
        // Standard output is the report's.
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().with_context(context)?;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if limit.left().is_zero() {
                child.kill()?;
                child.wait()?;
                bail!("{} was ended: {}", context(), limit.is_up());
            }
            thread::sleep(LOOK);
        };
        ensure!(status.success(), "{} ended with {status}", context());
        let bytes = fs::read(&out).with_context(|| format!("{} wrote nothing", context()))?;
        read(&bytes).with_context(context)
    }
}

/// The rows of a cell.
fn read(bytes: &[u8]) -> Result<Vec<Reading>> {
    let cell: Cell = serde_json::from_slice(bytes).context("what it wrote is not understood")?;
    if let Some(error) = cell.error {
        bail!("{error}");
    }
    let reading = |figure: Figure| {
        let Figure { row, unit, value } = figure;
        let less_is_better = match unit.as_str() {
            "PerSecond" | "MbPerSecond" => false,
            "Ms" | "Mib" | "Instructions" => true,
            _ => bail!(
                "row {row:?} counts {unit:?}, of which it is not known whether more is better"
            ),
        };
        ensure!(value.is_finite() && value > 0.0, "row {row:?} has the value {value}");
        Ok(Reading { row, unit, value, less_is_better })
    };
    cell.figures.into_iter().map(reading).collect()
}

/// The repository that this command is started in.
fn repository() -> Result<PathBuf> {
    let top = git(Path::new("."), &["rev-parse", "--show-toplevel"]);
    top.map(PathBuf::from).context("to build commits, start this inside the repository")
}

fn git(folder: &Path, args: &[&str]) -> Result<String> {
    let out = Command::new("git").arg("-C").arg(folder).args(args).output();
    let out = out.context("starting git")?;
    let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    ensure!(out.status.success(), "`git {}` failed: {said}", args.join(" "));
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Builds a commit, unless that was done before. Its checkout is removed afterwards.
fn from_commit(name: &str) -> Result<(PathBuf, Option<String>)> {
    let top = repository()?;
    let asked = format!("{name}^{{commit}}");
    let commit = git(&top, &["rev-parse", "--verify", "--quiet", "--end-of-options", &asked])
        .map_err(|_| anyhow::anyhow!("{name:?} is no file, no folder and no commit"))?;
    let short: String = commit.chars().take(12).collect();
    let program = top.join(FOLDER).join(&short).join(PACKAGE);
    if !program.is_file() {
        let checkout = top.join(FOLDER).join(format!("checkout-{short}"));
        let shown = checkout.to_string_lossy().into_owned();
        // What a gate that was killed left.
        let _ = git(&top, &["worktree", "remove", "--force", &shown]);
        git(&top, &["worktree", "add", "--detach", &shown, &commit])?;
        let built = build(&top, &checkout, &program);
        git(&top, &["worktree", "remove", "--force", &shown])?;
        built.with_context(|| format!("building {name}"))?;
    }
    Ok((program, Some(short)))
}

/// Builds a checkout as it is, with what was changed in it.
fn from_tree(tree: &Path) -> Result<(PathBuf, Option<String>)> {
    let tree = PathBuf::from(git(tree, &["rev-parse", "--show-toplevel"])?);
    let commit = git(&tree, &["rev-parse", "--short=12", "HEAD"])?;
    let changed = !git(&tree, &["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    let name = if changed { format!("{commit}-dirty") } else { commit };
    let program = tree.join(FOLDER).join("tree").join(PACKAGE);
    build(&tree, &tree, &program).with_context(|| format!("building {name}"))?;
    Ok((program, Some(name)))
}

/// Builds the workloads of a checkout and copies their command to `program`.
fn build(top: &Path, checkout: &Path, program: &Path) -> Result<()> {
    // Before the laboratory was a workspace of its own, the package was the root's.
    let laboratory = checkout.join("laboratory");
    let own = laboratory.join("Cargo.toml").is_file();
    let folder = if own { &laboratory } else { checkout };
    eprintln!("… building the workloads of {}", checkout.display());
    let mut cargo = Command::new("cargo");
    cargo.current_dir(folder).env("CARGO_TARGET_DIR", top.join(FOLDER).join("build"));
    cargo.args(["build", "--release", "--quiet", "-p", PACKAGE]);
    cargo.arg("--message-format=json-render-diagnostics");
    let out = cargo.stderr(Stdio::inherit()).output().context("starting cargo")?;
    ensure!(out.status.success(), "`cargo build --release -p {PACKAGE}` failed");
    let messages = String::from_utf8_lossy(&out.stdout);
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        (message["target"]["name"] == PACKAGE).then_some(())?;
        message["executable"].as_str().map(PathBuf::from)
    };
    let made = messages.lines().rev().find_map(executable);
    let made = made.context("cargo named no command that it built")?;
    let into = program.parent().context("a program lies in a folder")?;
    fs::create_dir_all(into)?;
    let part = into.join("part");
    fs::copy(&made, &part).with_context(|| format!("copying to {}", part.display()))?;
    Ok(fs::rename(&part, program)?)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn cells_of_all_times_are_read() {
        let first = br#"{"figures":[{"row":"1 thread","unit":"PerSecond","value":5.5,
            "latency":null,"disk":1.0,"points":[]}],"error":null}"#;
        let readings = read(first).unwrap();
        assert_eq!((readings[0].value, readings[0].less_is_better), (5.5, false));
        let time = br#"{"figures":[{"row":"open","unit":"Ms","value":2}],"later":1}"#;
        assert!(read(time).unwrap()[0].less_is_better);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        let refused = |text: &str, why: &str| {
            let error = format!("{:#}", read(text.as_bytes()).unwrap_err());
            assert!(error.contains(why), "{text}: {error}");
        };
        refused("{}", "not understood");
        refused(r#"{"figures":[],"error":"disk full"}"#, "disk full");
        refused(r#"{"figures":[{"row":"r","unit":"Furlongs","value":1}]}"#, "Furlongs");
        refused(r#"{"figures":[{"row":"r","unit":"Ms","value":0}]}"#, "has the value 0");
    }
}
