//! `holdall ls`: lists names in byte order.

use std::ffi::OsString;
use std::path::PathBuf;

use holdall::{Entry, Metadata, Oid, Reader};
use serde_json::{Map, Value};

use crate::failure::{ERROR, Failure, Outcome, complain};
use crate::output::{self, Out};
use crate::{name, open, stat, time};

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
    /// Escape all that is not ASCII: letters of other scripts can look alike
    #[arg(long)]
    ascii: bool,
    /// Print names as they are, each with a NUL byte behind it
    #[arg(long, short = '0', conflicts_with_all = ["json", "long", "ascii"])]
    null: bool,
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
    let mut left_out = 0;
    let escape = if args.ascii { name::escape_ascii } else { name::escape };
    for item in reader.names(name::bytes(&args.prefix)) {
        let Entry { name, oid } = item?;
        if args.json {
            out.text(if first { "[\n" } else { ",\n" })?;
            out.text(&output::json_text(&json(&reader, &name, oid)?))?;
        } else if args.null {
            if name.contains(&0) {
                left_out += 1;
                complain(&format!("not listed: {}: its name holds a NUL byte", escape(&name)));
                continue;
            }
            out.bytes(&name)?;
            out.bytes(b"\0")?;
        } else if args.long {
            out.line(format_args!("{} {}", long(&reader.metadata(oid)?), escape(&name)))?;
        } else {
            out.line(format_args!("{}", escape(&name)))?;
        }
        first = false;
    }
    if args.json {
        out.text(if first { "[]\n" } else { "\n]\n" })?;
    }
    out.finish()?;
    if left_out > 0 { Err(Failure::Reported(ERROR)) } else { Ok(()) }
}

fn json(reader: &Reader, name: &[u8], oid: Oid) -> Outcome<Value> {
    let mut object = Map::new();
    name::to_json(&mut object, "name", name);
    stat::describe(&mut object, &reader.metadata(oid)?, &reader.segments(oid)?);
    Ok(Value::Object(object))
}

fn long(data: &Metadata) -> String {
    let date = data.last_modified().map(|at| time::date(time::to_nanos(at)));
    let date = date.unwrap_or_else(|| "-".to_owned());
    format!("{:>12} {date:>20} {:<20}", data.size, data.oid.to_string())
}
