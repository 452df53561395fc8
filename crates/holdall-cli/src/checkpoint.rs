//! `holdall checkpoint`: brings all commits to their places in the file.

use std::path::PathBuf;

use crate::failure::Outcome;
use crate::wait::Waiting;
use crate::writer::{self, Writer};

/// Bring all commits to their places in the store's file, so that its log is needed no more
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    #[command(flatten)]
    waiting: Waiting,
}

/// Makes a checkpoint, here or in the process that has the store open.
pub fn run(args: &Args) -> Outcome {
    match writer::existing(&args.store, &args.waiting)? {
        Writer::Own(made) => {
            made.checkpoint()?;
            made.close("the checkpoint is made")
        }
        Writer::Other(mut other) => Ok(other.client.checkpoint()?),
    }
}
