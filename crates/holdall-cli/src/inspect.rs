//! `holdall inspect`: shows what lies in a store, for those who look for a fault.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Subcommand;
use holdall::inspect::{self, LogDump, LogPart, Spaces};
use holdall::{DEFAULT_COLLECTION, PageNo};
use holdall_report::inspect::{self as words, json};
use serde_json::{Value, json};

use crate::failure::Outcome;
use crate::output::{self, Out};
use crate::{name, open};

/// Show the inside of a store: a page, a space, the volume, the log, an object, the tree of names
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    /// Print one JSON value: an array for `log`, `names` and `space` without a number
    #[arg(long, global = true)]
    json: bool,
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
    /// The pages that copies share, and how often
    Sharing,
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

/// Prints what the engine found, in words or as JSON.
pub fn run(args: &Args) -> Outcome {
    let mut show = Show { out: Out::new(), json: args.json, list: false, first: true };
    if matches!(args.what, What::Log) {
        open::check(&args.store, true)?;
        log(&mut show, inspect::log(&args.store)?)?;
        return show.finish();
    }
    let store = open::read_only(&args.store)?;
    match &args.what {
        What::Log => {}
        What::Page { number } => {
            show.one(&inspect::page(&store, PageNo(*number))?, words::page, json::page)?;
        }
        What::Space { number: Some(number) } => {
            show.one(&inspect::space(&store, *number)?, words::space, json::space)?;
        }
        What::Space { number: None } => spaces(&mut show, inspect::spaces(&store)?)?,
        What::Volume => {
            let found = (inspect::superblocks(&store)?, store.frag(&mut |_, _| ())?);
            show.one(&found, |f| words::volume(&f.0, &f.1), |f| json::volume(&f.0, &f.1))?;
        }
        What::Sharing => show.one(&inspect::sharing(&store)?, words::sharing, json::sharing)?,
        What::Object { name, collection } => {
            let collection = collection.as_deref().unwrap_or(DEFAULT_COLLECTION);
            let found = inspect::object(&store, collection, name::key(name))?;
            show.one(&found, words::object, json::object)?;
        }
        What::Names { prefix, collection } => {
            let collection = collection.as_deref().unwrap_or(DEFAULT_COLLECTION);
            let tree = inspect::names(&store, collection, name::bytes(prefix))?;
            show.list = true;
            show.one(&tree, words::names, json::names)?;
            for stop in tree {
                show.one(&stop?, words::names_stop, json::names_stop)?;
            }
        }
    }
    show.finish()
}

fn log(show: &mut Show, log: LogDump) -> Outcome {
    show.list = true;
    show.one(&log, words::log, json::log)?;
    for part in log {
        let part = part?;
        show.one(&part, words::log_part, json::log_part)?;
        if let LogPart::Group(group) = &part {
            for record in group.records() {
                show.one(&record, words::record, json::record)?;
            }
        }
    }
    Ok(())
}

fn spaces(show: &mut Show, mut spaces: Spaces<'_>) -> Outcome {
    show.list = true;
    for (number, found) in &mut spaces {
        show.one(&found, |f| words::listed(number, f), |f| json::listed(number, f))?;
    }
    match words::named_too_many(&spaces) {
        Some(line) => show.one(&line, String::clone, |line| json!({ "error": line.trim_end() })),
        None => Ok(()),
    }
}

/// Standard output with one thing after another, in words or as JSON.
struct Show {
    out: Out,
    json: bool,
    /// Whether the JSON is an array of all things; else it is one of them.
    list: bool,
    first: bool,
}

impl Show {
    fn one<T>(
        &mut self,
        thing: &T,
        words: impl Fn(&T) -> String,
        json: impl Fn(&T) -> Value,
    ) -> Outcome {
        if !self.json {
            return self.out.text(&words(thing));
        }
        if self.list {
            self.out.text(if self.first { "[\n" } else { ",\n" })?;
        }
        self.first = false;
        self.out.text(&output::json_text(&json(thing)))
    }

    fn finish(mut self) -> Outcome {
        if self.json {
            self.out.text(match (self.list, self.first) {
                (true, true) => "[]\n",
                (true, false) => "\n]\n",
                (false, _) => "\n",
            })?;
        }
        self.out.finish()
    }
}
