//! `holdall bucket`: makes a store of objects in a bucket, probes servers, collects garbage.
//!
//! A command about such a store as a whole goes here: an entry of [`What`], and a function.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use holdall_bucket::blocking::{self, BucketStore};
use holdall_bucket::{Check, CollectOptions, Collected, ProbeReport};
use serde_json::{Value, json};

use crate::bucket::{Reach, address};
use crate::failure::Outcome;
use crate::output::{self, Out};
use crate::progress::{Meter, Totals};

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
    Probe(At),
    /// Delete what no object names any more, and no writer will: one cycle
    Gc(Gc),
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

/// Does one of them.
pub fn run(args: &Args) -> Outcome {
    match &args.what {
        What::Create(at) => create(at),
        What::Probe(at) => probe(at),
        What::Gc(gc) => collect(gc),
    }
}

fn create(at: &At) -> Outcome {
    let place = address(&at.place)?;
    let mut told = Told::new(at.json);
    let (store, report) =
        BucketStore::create_at(place, &at.reach.access(), &mut |check| told.check(check))?;
    let done = format!("the store {} is made", store.id());
    let said = told.end(
        report,
        |report| json!({ "id": store.id(), "probe": report }),
        || format!("made the store {}", store.id()),
    );
    output::after(&done, said)
}

fn probe(at: &At) -> Outcome {
    let place = address(&at.place)?;
    let mut told = Told::new(at.json);
    let report = blocking::probe_at(place, &at.reach.access(), &mut |check| told.check(check))?;
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
