//! `holdall bucket`: makes a store of objects in a bucket, probes servers, and sees to such a store.
//!
//! A command about such a store as a whole goes here: an entry of [`What`], and a function.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use holdall_bucket::blocking::{self, BucketStore};
use holdall_bucket::store::Held;
use holdall_bucket::{
    BucketProblem, Check, CollectOptions, Collected, Compacted, ProbeReport, Verified,
};
use serde_json::{Value, json};

use crate::bucket::{Reach, address, failed};
use crate::failure::Outcome;
use crate::name;
use crate::output::{self, Out};
use crate::progress::{Meter, Totals};
use crate::time;

/// Make or keep a store of objects in a bucket, which many processes may use at once
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Probe the server, and make an empty store there
    Create(At),
    /// Ask a server all that a store relies on, some 900 requests, and make nothing
    Probe(Probe),
    /// Delete what no object names any more, and no writer will: one cycle
    Gc(Gc),
    /// Read everything, and verify each checksum
    Verify(At),
    /// Write again what is left of blobs that are mostly dead
    Compact(At),
    /// What the store holds
    Stat(At),
    /// Which versions of objects somebody holds while he reads them
    Holds(Holds),
}

/// Where, and how to say what was done.
#[derive(clap::Args)]
struct At {
    /// s3://BUCKET/PREFIX
    place: PathBuf,
    #[command(flatten)]
    reach: Reach,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
struct Probe {
    #[command(flatten)]
    at: At,
    /// Then race with another machine that runs the same command with this name
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
}

#[derive(clap::Args)]
struct Gc {
    #[command(flatten)]
    at: At,
    /// Look for leaks too: everything is listed and every record read
    #[arg(long)]
    full: bool,
    /// Nobody else uses the store: remove the last traces of deleted objects
    #[arg(long)]
    alone: bool,
}

#[derive(clap::Args)]
struct Holds {
    #[command(flatten)]
    at: At,
    /// End the hold of this id, of a reader that died
    #[arg(long, value_name = "ID")]
    release: Option<String>,
}

/// Does one of them.
pub fn run(args: &Args) -> Outcome {
    match &args.what {
        What::Create(at) => create(at),
        What::Probe(args) => probe(args),
        What::Gc(gc) => collect(gc),
        What::Verify(at) => verify(at),
        What::Compact(at) => compact(at),
        What::Stat(at) => stat(at),
        What::Holds(args) => holds(args),
    }
}

fn create(at: &At) -> Outcome {
    let place = address(&at.place)?;
    let mut told = Told::new(at.json);
    let made = BucketStore::create_at(place, &at.reach.access(), &mut |check| told.check(check));
    let (store, report) = made.map_err(failed)?;
    let done = format!("the store {} is made", store.id());
    let said = told.end(
        report,
        |report| json!({ "id": store.id(), "probe": report }),
        || format!("made the store {}", store.id()),
    );
    output::after(&done, said)
}

fn probe(args: &Probe) -> Outcome {
    let (at, peer) = (&args.at, args.peer.as_deref());
    let place = address(&at.place)?;
    let mut told = Told::new(at.json);
    let access = at.reach.access();
    let report = blocking::probe_at(place, &access, peer, &mut |check| told.check(check));
    let report = report.map_err(failed)?;
    let words = format!(
        "the server passes: {} requests in {:.1} s",
        report.requests,
        report.took.as_secs_f64()
    );
    told.end(report, |report| report, || words)
}

/// Says what a probe finds, as it finds it.
struct Told {
    json: bool,
    out: Out,
    said: Outcome,
}

impl Told {
    fn new(json: bool) -> Self {
        Self { json, out: Out::new(), said: Ok(()) }
    }

    fn check(&mut self, check: &Check) {
        if self.json || self.said.is_err() {
            return;
        }
        let Check { what, found, requests, took } = check;
        let found = found.as_ref().map_or_else(String::new, |found| format!(": {found}"));
        let seconds = took.as_secs_f64();
        let line =
            self.out.line(format_args!("{what}{found} ({requests} requests, {seconds:.1} s)"));
        self.said = line.and_then(|()| self.out.flush());
    }

    fn end(
        mut self,
        report: ProbeReport,
        value: impl FnOnce(Value) -> Value,
        words: impl FnOnce() -> String,
    ) -> Outcome {
        self.said?;
        match self.json {
            true => {
                self.out.line(format_args!("{}", output::json_text(&value(as_json(&report)))))?
            }
            false => self.out.line(format_args!("{}", words()))?,
        }
        self.out.finish()
    }
}

fn as_json(report: &ProbeReport) -> Value {
    let check = |check: &Check| {
        json!({
            "what": check.what,
            "found": check.found,
            "requests": check.requests,
            "seconds": check.took.as_secs_f64(),
        })
    };
    json!({
        "checks": report.checks.iter().map(check).collect::<Vec<_>>(),
        "deletes_by_tag": report.delete_if,
        "requests": report.requests,
        "seconds": report.took.as_secs_f64(),
    })
}

fn collect(args: &Gc) -> Outcome {
    let store = args.at.reach.store(&args.at.place)?;
    BucketStore::probe_daily(address(&args.at.place)?, &args.at.reach.access(), &mut |_| ())?;
    let options = CollectOptions { alone: args.alone, full: args.full };
    let totals = Totals::default();
    let mut meter = Meter::start(Some("names"), &totals);
    let collected = store.collect(options, &mut |report| meter.at(report.records, report.bytes));
    let took = meter.finish();
    let collected = collected?;
    let done = format!("cycle {} is done", collected.cycle);
    output::after(&done, say_collected(args, &collected, took))
}

fn say_collected(args: &Gc, collected: &Collected, took: Duration) -> Outcome {
    let Collected { cycle, records, read, intents, closed, blobs, bytes, gone, overtaken, .. } =
        *collected;
    if args.at.json {
        return output::json(&json!({
            "cycle": cycle, "records": records, "records_read": read, "intents": intents,
            "operations_closed": closed, "blobs_deleted": blobs, "bytes_deleted": bytes,
            "gone_records_deleted": gone, "overtaken": overtaken, "seconds": took.as_secs_f64(),
        }));
    }
    let left = match overtaken {
        true => "; another cycle began meanwhile, which does the rest",
        false => "",
    };
    output::say(format_args!(
        "cycle {cycle}: deleted {blobs} blobs, {bytes} bytes, and {gone} traces of deleted objects; \
         closed {closed} operations; saw {records} names{left}"
    ))
}

fn verify(at: &At) -> Outcome {
    let store = at.reach.store(&at.place)?;
    let totals = Totals::default();
    let mut meter = Meter::start(Some("objects"), &totals);
    let found = store.verify(&mut |report| meter.at(report.objects, report.bytes));
    let took = meter.finish();
    let found = found?;
    let (objects, blobs, bytes) = (found.objects, found.blobs, found.bytes);
    let problem = |problem: &BucketProblem| {
        let (collection, name) = problem.object.clone().unzip();
        json!({ "collection": collection, "name": name, "detail": problem.detail })
    };
    let said = match at.json {
        true => output::json(&json!({
            "objects": objects, "blobs": blobs, "bytes": bytes, "unnamed_blobs": found.unnamed,
            "unnamed_bytes": found.unnamed_bytes, "seconds": took.as_secs_f64(),
            "problems": found.problems.iter().map(problem).collect::<Vec<_>>(),
        })),
        false => say_verified(&found),
    };
    if let Some(first) = found.problems.first() {
        said?;
        let what = format!("{} things are damaged, first {}", found.problems.len(), first.detail);
        return Err(holdall::Error::corrupt(format!("the store in {}", store.name()), what).into());
    }
    output::after("everything was read", said)
}

fn say_verified(found: &Verified) -> Outcome {
    let mut out = Out::new();
    for BucketProblem { object, detail } in &found.problems {
        let name = object.as_ref().map_or_else(String::new, |(c, name)| format!("{c}: {name}: "));
        out.line(format_args!("damaged: {name}{detail}"))?;
    }
    let Verified { objects, blobs, bytes, unnamed, unnamed_bytes, .. } = found;
    out.line(format_args!(
        "verified {objects} objects, {blobs} blobs, {bytes} bytes; {unnamed} blobs, \
         {unnamed_bytes} bytes, are named by nothing"
    ))?;
    out.finish()
}

fn compact(at: &At) -> Outcome {
    let store = at.reach.store(&at.place)?;
    let totals = Totals::default();
    let mut meter = Meter::start(Some("objects"), &totals);
    let done = store.compact(&mut |report| meter.at(report.objects, report.bytes));
    let took = meter.finish();
    let Compacted { objects, rewritten, bytes, shared, changed, .. } = done?;
    let said = match at.json {
        true => output::json(&json!({
            "objects": objects, "rewritten": rewritten, "bytes": bytes, "shared": shared,
            "changed_meanwhile": changed, "seconds": took.as_secs_f64(),
        })),
        false => output::say(format_args!(
            "wrote {bytes} bytes of {rewritten} objects again; left {shared} alone that share, and \
             {changed} that were changed meanwhile"
        )),
    };
    output::after("what was sparse is written again", said)
}

fn stat(at: &At) -> Outcome {
    let store = at.reach.store(&at.place)?;
    let totals = Totals::default();
    let mut meter = Meter::start(Some("keys"), &totals);
    let found =
        store.stat(&mut |stat| meter.at(stat.objects + stat.gone + stat.blobs, stat.blob_bytes));
    meter.finish();
    let stat = found?;
    if at.json {
        return output::json(&json!({
            "id": store.id(), "collections": stat.collections, "objects": stat.objects,
            "shared": stat.shared, "gone": stat.gone, "retiring": stat.retiring,
            "record_bytes": stat.record_bytes, "blobs": stat.blobs,
            "blob_bytes": stat.blob_bytes, "intents": stat.intents, "holds": stat.holds,
        }));
    }
    let mut out = Out::new();
    out.line(format_args!("store       {}", store.id()))?;
    out.line(format_args!("objects     {}, {} of them may share", stat.objects, stat.shared))?;
    for (collection, objects) in stat.collections.iter().filter(|_| stat.collections.len() > 1) {
        out.line(format_args!("  {collection}: {objects}"))?;
    }
    out.line(format_args!(
        "gone        {} records; {} have retired blobs",
        stat.gone, stat.retiring
    ))?;
    out.line(format_args!("in records  {} bytes", stat.record_bytes))?;
    out.line(format_args!("in blobs    {} bytes, {} blobs", stat.blob_bytes, stat.blobs))?;
    out.line(format_args!("under way   {} operations, {} holds", stat.intents, stat.holds))?;
    out.finish()
}

fn holds(args: &Holds) -> Outcome {
    let store = args.at.reach.store(&args.at.place)?;
    if let Some(id) = &args.release {
        let ended = store.release_hold(id)?;
        let said = match (args.at.json, ended) {
            (true, _) => output::json(&json!({ "ended": ended })),
            (false, true) => output::say(format_args!("ended the hold {id}")),
            (false, false) => output::say(format_args!("the hold {id} has ended before")),
        };
        return output::after("the hold is ended", said);
    }
    let mut out = Out::new();
    for Held { id, collection, name, ends, .. } in store.holds()? {
        match args.at.json {
            true => {
                let ends = i64::try_from(time::to_nanos(ends) / 1_000_000).ok();
                let held =
                    json!({ "id": id, "collection": collection, "name": name, "ends": ends });
                out.line(format_args!("{}", output::json_text(&held)))?;
            }
            false => out.line(format_args!(
                "{id}  until {}  {}: {}",
                time::date(time::to_nanos(ends)),
                name::escape(collection.as_bytes()),
                name::escape(name.as_bytes())
            ))?,
        }
    }
    out.finish()
}
