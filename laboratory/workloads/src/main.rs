//! `holdall-bench`: measures Holdall against other stores, servers and the bare machine.
//!
//! What is measured and how to read it is in docs/benchmarks.md.

mod age;
mod http;

use anyhow::Result;
use clap::{Parser, Subcommand};
use holdall_bench::cli;
use std::process::ExitCode;

/// Measure Holdall against other stores, servers and the bare machine
#[derive(Parser)]
#[command(name = "holdall-bench", version)]
struct Cli {
    #[command(flatten)]
    common: cli::Common,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Contest(cli::Command),
    /// A bounded volume filled, churned, emptied, compacted
    Age(age::Age),
    Http(http::Http),
    HttpKill(http::kill::HttpKill),
    /// The bare handler of `http`
    #[command(hide = true)]
    BareServer(http::bare_server::BareServer),
}

fn main() -> Result<ExitCode> {
    let Cli { common, command } = Cli::parse();
    match &command {
        Command::Contest(contest) => return cli::execute(&common, contest, Vec::new()),
        Command::Age(args) => age::run(&common.dir, args)?,
        Command::Http(args) => return http::run(&common, args),
        Command::HttpKill(args) => return http::kill::run(&common, args),
        Command::BareServer(args) => http::bare_server::run(args)?,
    }
    Ok(ExitCode::SUCCESS)
}
