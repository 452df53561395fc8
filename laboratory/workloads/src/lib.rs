//! Measurements of Holdall, and the workloads it shares with other stores.
//!
//! Owns: the workloads W1 to W10 ([`workloads`]) behind one trait ([`peer`]), the adapters of
//! Holdall and of plain files ([`stores`]), how things are measured ([`measure`]), how peers
//! take turns and how results are told ([`runner`]), how they are published ([`folder`],
//! [`summary`]), and the command line of it ([`cli`]).
//! docs/benchmarks.md says what each figure means.

pub mod bare;
pub mod cli;
pub mod data;
mod execute;
pub mod folder;
pub mod measure;
pub mod peer;
pub mod product;
pub mod report;
pub mod runner;
pub mod stores;
pub mod summary;
pub mod system;
pub mod workloads;

use std::process::ExitCode;

/// The command line of the workloads, for Holdall and plain files, which are always there,
/// and the stores of `more`. Reads the process's arguments; also is what the processes it
/// starts of itself run, so `main` must do nothing before it.
pub fn run(more: Vec<Box<dyn peer::Maker>>) -> ExitCode {
    cli::main(more)
}
