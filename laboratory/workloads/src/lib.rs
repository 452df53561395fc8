//! Measurements of Holdall, and the workloads it shares with other stores and servers.
//!
//! Owns: the workloads W1 to W10 ([`workloads`]) behind one trait ([`peer`]), those of S3 servers,
//! of WebDAV servers and of Python packages, and those of Holdall alone; the adapters of Holdall
//! and of plain files ([`stores`]); how stores are driven and what they use ([`measure`]); the
//! command line (`cli`). Turns, judgement and kept results are the instrument's. docs/benchmarks.md
//! says what each figure means.

mod age;
pub mod bare;
mod bucket;
mod cli;
mod cost;
pub mod data;
mod edits;
mod execute;
mod gate;
mod http;
mod import;
pub mod measure;
mod memory;
mod options;
pub mod peer;
pub mod product;
mod scale;
mod script;
mod settings;
pub mod stores;
pub mod workloads;

use std::process::ExitCode;

/// What Holdall is called if no store but it takes part.
const HOLDALL: &str = "Holdall";

/// The command line of the workloads, for Holdall and plain files, which are always there,
/// and the stores of `more`. Reads the process's arguments; also is what the processes it
/// starts of itself run, so `main` must do nothing before it.
pub fn run(more: Vec<Box<dyn peer::Maker>>) -> ExitCode {
    cli::main(more)
}
