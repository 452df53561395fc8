//! `holdall inspect`: shows what lies in a store, for those who look for a fault.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;
use holdall::{PageNo, inspect};

use crate::failure::Outcome;
use crate::output::Out;
use crate::{name, open};

/// Show the inside of a store: a page, a space, the volume, the log, an object, the tree of names
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// A page: its header and what its kind says about the rest
    Page {
        /// Page number
        number: u64,
    },
    /// A buddy space: which runs are used and free; without a number a list of all
    Space {
        /// Space number, from 0
        number: Option<u32>,
    },
    /// Both superblocks, the holes of the file, what maintenance has left to do
    Volume,
    /// The log beside the store: its blocks and records
    Log,
    /// An object: where it lies and how
    Object {
        /// Name or OID
        name: OsString,
        /// The collection, "default" if not given
        #[arg(long, value_name = "C")]
        collection: Option<String>,
    },
    /// The names of a collection, with OIDs
    Names {
        /// Only names that begin with this
        #[arg(default_value = "", hide_default_value = true)]
        prefix: OsString,
        /// The collection, "default" if not given
        #[arg(long, value_name = "C")]
        collection: Option<String>,
    },
}

/// Prints the engine's own description.
pub fn run(args: &Args) -> Outcome {
    let text = match &args.what {
        What::Log => {
            open::check(&args.store, true)?;
            inspect::log(&args.store)?
        }
        What::Page { number } => inspect::page(&open::read_only(&args.store)?, PageNo(*number))?,
        What::Space { number } => {
            let store = open::read_only(&args.store)?;
            number.map_or_else(|| inspect::spaces(&store), |n| inspect::space(&store, n))?
        }
        What::Volume => inspect::volume(&open::read_only(&args.store)?)?,
        What::Object { name, collection } => {
            let store = open::read_only(&args.store)?;
            inspect::object(&store, collection.as_deref().unwrap_or("default"), name::key(name))?
        }
        What::Names { prefix, collection } => {
            let store = open::read_only(&args.store)?;
            let collection = collection.as_deref().unwrap_or("default");
            inspect::names(&store, collection, name::bytes(prefix))?
        }
    };
    let mut out = Out::new();
    out.text(&text)?;
    if !text.ends_with('\n') {
        out.text("\n")?;
    }
    out.finish()
}
