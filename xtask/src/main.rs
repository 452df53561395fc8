//! Checks and counts of the repository itself: `cargo xtask tidy`, `cargo xtask count`.
//!
//! Owns no state. [`source`] reads the sources, [`imports`] finds who uses whom, [`tidy`] holds
//! the tree against its rules, [`count`] prints the figures that a clean-up is judged by.

mod count;
mod dependencies;
mod documents;
mod imports;
mod layers;
mod lexer;
mod mentions;
mod names;
mod options;
mod sizes;
mod source;
mod tidy;
mod tree;
mod words;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Checks and counts of the Holdall repository
#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Hold the tree against its rules: layers, headers, sizes, words, documents
    Tidy,
    /// Print lines, words, cycles and other figures of the tree
    Count,
}

fn main() -> Result<ExitCode> {
    let root = root()?;
    match Args::parse().command {
        Command::Tidy => {
            let problems = tidy::problems(&root)?;
            for problem in &problems {
                eprintln!("{problem}");
            }
            if !problems.is_empty() {
                eprintln!("{} things are not as they should be", problems.len());
                return Ok(ExitCode::FAILURE);
            }
            println!("tidy: layers, headers, sizes, words and documents are as they should be");
        }
        Command::Count => count::print(&root)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The repository's folder.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_path_buf).context("xtask lies in no folder")
}
