//! Cuts members out of a tar archive and puts others in, without writing it anew.

#[path = "../shared/command.rs"]
mod command;
mod cut;
#[path = "../shared/plain.rs"]
mod plain;
#[path = "../shared/mod.rs"]
mod shared;

use clap::Parser;
use std::process::ExitCode;

/// Cut members out of a tar archive in a store and insert others, in transactions.
///
/// The archive is then read through the object by a tar library, compared with a list of what
/// must be in it, exported, and listed by the system's tar.
#[derive(Parser)]
#[command(name = "tar_members")]
struct Cli {
    #[command(flatten)]
    params: cut::Params,
    #[command(flatten)]
    place: command::Place,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    command::run("tar_members", &cli.place, |folder| cut::run(&cli.params, folder))
}
