//! `holdall create`: makes an empty store.

use std::path::PathBuf;

use crate::bucket::is_in_bucket;
use crate::failure::{Failure, Outcome};
use crate::open;
use crate::wait::Waiting;

/// Make an empty store; a file that is there already is left alone
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    /// Bytes of a page, a power of two; fixed for the store's life
    #[arg(long, value_name = "N")]
    page_size: Option<usize>,
    #[command(flatten)]
    waiting: Waiting,
}

/// Creates the store and closes it.
pub fn run(args: &Args) -> Outcome {
    if is_in_bucket(&args.store) {
        let what = format!("{} is in a bucket", args.store.display());
        return Err(Failure::new(what, "make it with `holdall bucket create`"));
    }
    open::check(&args.store, false)?;
    let mut options = args.waiting.options();
    if let Some(bytes) = args.page_size {
        options = options.page_size(bytes);
    }
    open::close(options.create(&args.store)?, "the store is made")
}
