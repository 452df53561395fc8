//! Checks and counts of the repository itself: `cargo xtask tidy`, `cargo xtask count`,
//! `cargo xtask figures`.
//!
//! Owns no state. [`source`] reads the sources, [`imports`] finds who uses whom, [`tidy`] holds
//! the tree against its rules, [`count`] prints the figures that a clean-up is judged by.

mod count;
mod dependencies;
mod documents;
mod figures;
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
    /// Write the tables of figures in documents from the kept runs in bench-results
    Figures,
    /// Print lines, words, cycles and other figures of the tree
    Count,
    /// Print how often comments, strings, names and documents have phrases of foreign grammar
    Words,
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
        Command::Figures => {
            let changed = figures::write(&root, &documents::files(&root)?)?;
            for path in &changed {
                println!("{path}: figures written");
            }
            if changed.is_empty() {
                println!("figures: all documents show those of bench-results");
            }
        }
        Command::Count => count::print(&root)?,
        Command::Words => words::print(&source::files(&root)?, &documents::files(&root)?),
    }
    Ok(ExitCode::SUCCESS)
}

/// The repository's folder.
fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map(Path::to_path_buf).context("xtask lies in no folder")
}
