//! Replays a long history of a text, version by version, on one object.

#[path = "../shared/command.rs"]
mod command;
mod replay;
#[path = "../shared/mod.rs"]
mod shared;

use clap::Parser;
use std::process::ExitCode;

/// Replay thousands of versions of a text on one object, one transaction each.
///
/// A model of an author makes the versions: words and lines come and go, lines move, paragraphs
/// are written anew. Each version is a list of splices against the one before; the object is
/// compared with the model after each. Snapshots of some versions stay open to the end and must
/// still show theirs.
#[derive(Parser)]
#[command(name = "version_history")]
struct Cli {
    #[command(flatten)]
    params: replay::Params,
    #[command(flatten)]
    place: command::Place,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    command::run("version_history", &cli.place, |folder| replay::run(&cli.params, folder))
}
