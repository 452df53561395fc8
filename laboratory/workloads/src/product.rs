//! The product's command, which some workloads start: it is built from the same checkout.
//!
//! Owns nothing.

use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The command `holdall`: what the variable `HOLDALL` names, else what Cargo builds now, which
/// takes minutes the first time.
///
/// # Errors
/// `HOLDALL` names no file; the build fails, having said why on standard error.
pub fn command(release: bool) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("HOLDALL") {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "HOLDALL names {}, which is no file", path.display());
        return Ok(path.canonicalize()?);
    }
    let mut build = Command::new("cargo");
    build.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    build.args(["build", "--quiet", "-p", "holdall-cli", "--message-format=json"]);
    if release {
        build.arg("--release");
    }
    let built = build.stderr(Stdio::inherit()).output().context("starting cargo")?;
    ensure!(built.status.success(), "`cargo build -p holdall-cli` failed");
    let messages = String::from_utf8(built.stdout)?;
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    };
    messages.lines().rev().find_map(executable).context("cargo named no command that it built")
}
