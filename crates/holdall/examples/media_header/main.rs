//! Grows the header at the front of a media file of hundreds of megabytes, in place.

#[path = "../shared/command.rs"]
mod command;
mod edit;
#[path = "../shared/plain.rs"]
mod plain;
#[path = "../shared/mod.rs"]
mod shared;

use clap::Parser;
use std::process::ExitCode;

/// Grow the header of a large MP4 file inside a store, and compare with rewriting the file.
///
/// Makes an MP4 file whose moov box lies in front of the data, imports it, then adds tags to the
/// moov box one transaction at a time: bytes inserted at the front, chunk offsets and box sizes
/// replaced. The result is parsed box by box and every sample found through the new offsets.
#[derive(Parser)]
#[command(name = "media_header")]
struct Cli {
    #[command(flatten)]
    params: edit::Params,
    #[command(flatten)]
    place: command::Place,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    command::run("media_header", &cli.place, |folder| edit::run(&cli.params, folder))
}
