//! `holdall ls`: lists names in byte order.

use std::ffi::OsString;
use std::ops::Bound;

use holdall::{Entry, Error, Metadata, Oid, Reader};
use holdall_bucket::blocking::BucketStore;
use holdall_bucket::store::{ListNames, ObjectInfo};
use serde_json::{Map, Value};

use crate::at::{Place, StoreAt};
use crate::bucket;
use crate::failure::{ERROR, Failure, Outcome, complain};
use crate::output::{self, Out};
use crate::{files, name, open, stat, time};

/// List names in byte order
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: StoreAt,
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

/// How often in a row a state may be lost before a name of it is listed.
const MOST_TRIES: u32 = 20;

/// Prints as it reads: memory does not grow with the number of names. If the checkpoints of another
/// process pass the state, it goes on behind the last name with a newer one.
pub fn run(args: &Args) -> Outcome {
    args.at.check(true, &[])?;
    let prefix = name::bytes(&args.prefix);
    let mut list = List { args, out: Out::new(), listed: 0, left_out: 0 };
    let path = match args.at.place(args.collection.as_deref())? {
        Place::File(path) => path,
        Place::Bucket(store) => {
            list.bucket(&store, prefix)?;
            return list.finish();
        }
    };
    let store = open::read_only(path)?;
    let (mut last, mut tries) = (None, 0);
    loop {
        let reader = open::reader(&store, args.collection.as_deref())?;
        let before = list.listed;
        match list.rest(&reader, prefix, &mut last) {
            Err(Failure::Store(Error::SnapshotTooOld { .. })) if tries < MOST_TRIES => {
                tries = if list.listed > before { 0 } else { tries + 1 };
            }
            result => {
                result?;
                return list.finish();
            }
        }
    }
}

/// A listing under way.
struct List<'a> {
    args: &'a Args,
    out: Out,
    listed: u64,
    left_out: u64,
}

impl List<'_> {
    /// Lists what comes behind `last`, which follows.
    fn rest(&mut self, reader: &Reader, prefix: &[u8], last: &mut Option<Vec<u8>>) -> Outcome {
        let from = match last {
            Some(last) => Bound::Excluded(last.clone()),
            None => Bound::Included(prefix.to_vec()),
        };
        for item in reader.range((from, Bound::Unbounded)) {
            let entry = item?;
            if !entry.name.starts_with(prefix) {
                break;
            }
            let Entry { name, oid } = entry;
            let long = || Ok(long(&reader.metadata(oid)?));
            self.entry(&name, long, || json(reader, &name, oid))?;
            *last = Some(name);
        }
        Ok(())
    }

    /// Lists what is in a bucket, in the order of its keys.
    fn bucket(&mut self, store: &BucketStore, prefix: &[u8]) -> Outcome {
        let prefix = std::str::from_utf8(prefix).map_err(|_| bucket::not_text(prefix))?;
        let mut what = ListNames { prefix: prefix.into(), ..ListNames::default() };
        loop {
            what.after = if self.args.long || self.args.json {
                let page = store.list_infos(&what)?;
                for info in &page.objects {
                    let long = || Ok(long_in_bucket(info));
                    self.entry(info.name.as_bytes(), long, || Ok(json_in_bucket(info)))?;
                }
                page.next
            } else {
                let page = store.list(&what)?;
                for name in &page.names {
                    self.entry(name.as_bytes(), || Ok(String::new()), || Ok(Value::Null))?;
                }
                page.next
            };
            if what.after.is_none() {
                break;
            }
        }
        let collection = store.inner().collection_name();
        if self.listed == 0
            && self.args.collection.is_some()
            && !store.collections()?.iter().any(|known| known == collection)
        {
            return Err(Error::NotFound(format!("collection {collection:?}")).into());
        }
        Ok(())
    }

    /// Lists one name, with what these say of it.
    fn entry(
        &mut self,
        name: &[u8],
        long: impl FnOnce() -> Outcome<String>,
        json: impl FnOnce() -> Outcome<Value>,
    ) -> Outcome {
        let escape = if self.args.ascii { name::escape_ascii } else { name::escape };
        let out = &mut self.out;
        if self.args.json {
            let text = output::json_text(&json()?);
            out.text(if self.listed == 0 { "[\n" } else { ",\n" })?;
            out.text(&text)?;
        } else if self.args.null {
            if name.contains(&0) {
                self.left_out += 1;
                complain(&format!("not listed: {}: its name holds a NUL byte", escape(name)));
                return Ok(());
            }
            out.bytes(name)?;
            out.bytes(b"\0")?;
        } else if self.args.long {
            let line = long()?;
            out.line(format_args!("{line} {}", escape(name)))?;
        } else {
            out.line(format_args!("{}", escape(name)))?;
        }
        self.listed += 1;
        Ok(())
    }

    fn finish(mut self) -> Outcome {
        if self.args.json {
            self.out.text(if self.listed == 0 { "[]\n" } else { "\n]\n" })?;
        }
        self.out.finish()?;
        if self.left_out > 0 { Err(Failure::Reported(ERROR)) } else { Ok(()) }
    }
}

fn json(reader: &Reader, name: &[u8], oid: Oid) -> Outcome<Value> {
    let mut object = Map::new();
    name::to_json(&mut object, "name", name);
    stat::describe(&mut object, &reader.metadata(oid)?, &reader.segments(oid)?);
    Ok(Value::Object(object))
}

fn long(data: &Metadata) -> String {
    let date = data.last_modified().map(|at| time::date(time::to_nanos(at)));
    columns(data.size, date, &data.oid.to_string())
}

fn columns(size: u64, date: Option<String>, oid: &str) -> String {
    let date = date.unwrap_or_else(|| "-".to_owned());
    format!("{size:>12} {date:>20} {oid:<20}")
}

fn json_in_bucket(info: &ObjectInfo) -> Value {
    let mut object = Map::new();
    stat::describe_in_bucket(&mut object, info);
    Value::Object(object)
}

/// An object in a bucket has no OID.
fn long_in_bucket(info: &ObjectInfo) -> String {
    let own = info.attributes.get(files::MTIME).and_then(|text| time::parse(text));
    let nanos = own.unwrap_or_else(|| time::to_nanos(info.modified));
    columns(info.size, Some(time::date(nanos)), "-")
}
