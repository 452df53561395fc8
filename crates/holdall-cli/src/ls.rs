//! `holdall ls`: lists names in byte order.

use std::ffi::OsString;
use std::path::PathBuf;

use holdall::{Entry, Metadata, Oid, Reader};
use serde_json::{Map, Value};

use crate::failure::Outcome;
use crate::output::{self, Out};
use crate::{files, name, open, stat, time};

/// List names in byte order
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    /// Only names that begin with this
    #[arg(default_value = "", hide_default_value = true)]
    prefix: OsString,
    /// Show size, time of the last change and OID too
    #[arg(long, short)]
    long: bool,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
    /// The collection, "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
}

/// Prints as it reads: memory does not grow with the number of names.
pub fn run(args: &Args) -> Outcome {
    let store = open::read_only(&args.store)?;
    let reader = open::reader(&store, args.collection.as_deref())?;
    let mut out = Out::new();
    let mut first = true;
    for item in reader.names(name::bytes(&args.prefix)) {
        let Entry { name, oid } = item?;
        if args.json {
            out.text(if first { "[\n" } else { ",\n" })?;
            out.text(&output::json_text(&json(&reader, &name, oid)?))?;
        } else if args.long {
            out.line(format_args!("{}", long(&reader.metadata(oid)?, &name)))?;
        } else {
            out.line(format_args!("{}", name::escape(&name)))?;
        }
        first = false;
    }
    if args.json {
        out.text(if first { "[]\n" } else { "\n]\n" })?;
    }
    out.finish()
}

fn json(reader: &Reader, name: &[u8], oid: Oid) -> Outcome<Value> {
    let mut object = Map::new();
    name::to_json(&mut object, "name", name);
    stat::describe(&mut object, &reader.metadata(oid)?, &reader.segments(oid)?);
    Ok(Value::Object(object))
}

fn long(data: &Metadata, name: &[u8]) -> String {
    let mtime = data.attributes.get(files::MTIME).and_then(|text| time::parse(text));
    let date = mtime.map_or_else(|| "-".to_owned(), time::date);
    format!("{:>12} {date:>20} {:<20} {}", data.size, data.oid.to_string(), name::escape(name))
}
