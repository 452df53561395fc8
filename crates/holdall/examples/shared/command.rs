//! What the example programs share as commands: where their files lie, output, exit code.
//!
//! Owns the run's folder, which goes when the run ends.

use anyhow::{Context, Result};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the files of a run lie.
#[derive(clap::Args, Debug)]
pub struct Place {
    /// Make the run's folder in this one instead of the system's temporary folder
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Leave the run's folder there
    #[arg(long)]
    keep: bool,
}

/// Runs an example in a folder of its own; prints what it reports, or its error.
pub fn run<R: Display>(
    name: &str,
    place: &Place,
    example: impl FnOnce(&Path) -> Result<R>,
) -> ExitCode {
    match in_folder(name, place, example) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("{name}: {e:#}");
            ExitCode::FAILURE
        }
    }
}

fn in_folder<R>(name: &str, place: &Place, example: impl FnOnce(&Path) -> Result<R>) -> Result<R> {
    let parent = place.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new()
        .prefix(&format!("holdall-{name}-"))
        .disable_cleanup(place.keep)
        .tempdir_in(&parent)
        .with_context(|| format!("making a folder in {}", parent.display()))?;
    let report = example(folder.path())?;
    if place.keep {
        eprintln!("files are in {}", folder.path().display());
    }
    Ok(report)
}
