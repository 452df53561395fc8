//! Breaking the rules on purpose: each patch in a folder takes one away, and the simulation
//! must notice.
//!
//! Owns: a copy of the workspace in a temporary folder, built there once per patch. A patch is
//! a unified diff against the workspace's folder `crates`; its first line, `# Rule N: ...`,
//! names the rule. A second line, `# Unseen: ...`, says why nobody can notice it from outside;
//! `# Seeds: A..B`, which seeds notice what takes more than the usual ones.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Seeds that a broken store gets to betray itself.
const SEEDS: &str = "0..400";

/// Runs all patches whose name contains `only`; `say` gets a line for each. Returns how many
/// were not noticed. Cost: a build and some seconds each.
///
/// # Errors
/// A patch that does not apply or does not build; what fails around it.
pub fn run_all(folder: &Path, only: &str, say: &mut dyn FnMut(&str)) -> Result<usize> {
    let folder =
        folder.canonicalize().with_context(|| format!("no folder {}", folder.display()))?;
    let root = folder.ancestors().find(|p| p.join("Cargo.lock").exists());
    let root = root.context("the patches do not lie in the workspace")?;
    let mut patches: Vec<PathBuf> = std::fs::read_dir(&folder)?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "patch"))
        .filter(|p| p.to_string_lossy().contains(only))
        .collect();
    patches.sort();
    let place = std::env::temp_dir().join(format!("holdall-mutants-{}", std::process::id()));
    let result = all_in(&place, root, &patches, say);
    std::fs::remove_dir_all(&place).with_context(|| format!("removing {}", place.display()))?;
    result
}

fn all_in(
    place: &Path,
    root: &Path,
    patches: &[PathBuf],
    say: &mut dyn FnMut(&str),
) -> Result<usize> {
    copy(root, place)?;
    let whole = simulate(place, SEEDS)?;
    if let Some(found) = whole {
        bail!("the simulation fails without any patch: {found}");
    }
    let mut survivors = 0;
    for patch in patches {
        let text = std::fs::read_to_string(patch)?;
        let rule = text.lines().next().unwrap_or_default().trim_start_matches("# ").to_owned();
        let unseen = text.lines().nth(1).and_then(|line| line.strip_prefix("# Unseen: "));
        let name = patch.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let seeds = text.lines().nth(1).and_then(|line| line.strip_prefix("# Seeds: "));
        let found = match (mutant(place, patch, seeds.unwrap_or(SEEDS)), unseen) {
            (Ok(Some(found)), _) => found,
            (Ok(None), Some(why)) => format!("not noticed, as expected: {why}"),
            (Ok(None), None) => {
                survivors += 1;
                "NOT NOTICED".into()
            }
            (Err(e), _) => {
                survivors += 1;
                format!("{e:#}")
            }
        };
        say(&format!("{name:<16} | {rule:<76} | {found}"));
    }
    Ok(survivors)
}

/// What the simulation finds with this patch.
fn mutant(place: &Path, patch: &Path, seeds: &str) -> Result<Option<String>> {
    apply(place, patch, false)?;
    let found = simulate(place, seeds);
    apply(place, patch, true)?;
    found
}

/// Copies what a build needs.
fn copy(root: &Path, place: &Path) -> Result<()> {
    std::fs::create_dir_all(place)?;
    let parts = ["Cargo.toml", "Cargo.lock", "crates"].map(|part| root.join(part));
    let output = Command::new("cp").arg("-r").args(parts).arg(place).output()?;
    check(&output, "copying the workspace")
}

fn check(output: &Output, what: &str) -> Result<()> {
    if output.status.success() {
        return Ok(());
    }
    bail!("{what}: {}", String::from_utf8_lossy(&output.stderr).trim());
}

fn apply(place: &Path, patch: &Path, back: bool) -> Result<()> {
    let mut command = Command::new("patch");
    command.current_dir(place.join("crates")).args(["-p1", "-s", "--no-backup-if-mismatch", "-i"]);
    command.arg(patch);
    if back {
        command.arg("-R");
    }
    check(&command.output()?, &format!("applying {}", patch.display()))
}

/// Builds and runs the simulation; what it found first, if anything.
fn simulate(place: &Path, seeds: &str) -> Result<Option<String>> {
    let build = Command::new("cargo")
        .current_dir(place)
        .args(["build", "--release", "--offline", "-q", "-p", "holdall-sim"])
        .args(["--config", "profile.release.lto=false"])
        .args(["--config", "profile.release.debug-assertions=true"])
        .args(["--config", "profile.release.debug=false"])
        .args(["--config", "profile.release.incremental=true"])
        .env("CARGO_TARGET_DIR", place.join("target"))
        .env_remove("RUSTFLAGS")
        .output()?;
    check(&build, "building")?;
    let runs = [
        ("60", &["--exhaustive", "2", "--twice", "0"][..]),
        ("300", &["--seeds", seeds, "--quick"][..]),
    ];
    for (seconds, arguments) in runs {
        let run = Command::new("timeout")
            .arg(seconds)
            .arg(place.join("target/release/holdall-sim"))
            .args(arguments)
            .output()?;
        if !run.status.success() {
            let text = String::from_utf8_lossy(&run.stderr);
            let line = text.lines().next().unwrap_or("no answer: it hangs");
            let seed = String::from_utf8_lossy(&run.stdout);
            let seed = seed.lines().next().unwrap_or_default().to_owned();
            let found = if seed.starts_with("seed ") { seed } else { line.to_owned() };
            return Ok(Some(found.chars().take(110).collect()));
        }
    }
    Ok(None)
}
