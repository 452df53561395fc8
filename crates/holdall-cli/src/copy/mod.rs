//! `holdall copy`: all objects of a store, or some, into another; each may be a file or a bucket.
//!
//! Owns: what is copied, and what is printed about it. `ends` reads both stores, `work` copies.

mod ends;
mod work;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdall::{DEFAULT_COLLECTION, Error, Reader, Store};
use holdall_bucket::blocking::BucketStore;
use serde_json::json;

use crate::bucket::{Reach, is_in_bucket};
use crate::failure::{Failure, Outcome};
use crate::open::{self, Made};
use crate::progress::{Meter, Totals, rate};
use crate::wait::Waiting;
use crate::{name, output, own};
use ends::End;
use work::{Copy, Into, Tally};

/// Copy the named objects of a store into another; run again, it goes on where it stopped
///
/// Each may be a store's file or s3://BUCKET/PREFIX. A file is made if it is missing; a store in a
/// bucket is made with `holdall bucket create`. Objects are taken for copied that are there with the
/// same size and attributes, and no older.
#[derive(clap::Args)]
pub struct Args {
    /// Copy from here
    from: PathBuf,
    /// To here; what has other names stays
    to: PathBuf,
    /// Only names that begin with this
    #[arg(long, value_name = "P", default_value = "", hide_default_value = true)]
    prefix: OsString,
    /// This collection alone; all are copied if it is not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
    /// Compare the bytes of what is there, not times
    #[arg(long)]
    checksum: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    to_reach: ToReach,
    #[command(flatten)]
    waiting: Waiting,
}

/// How the other bucket is reached, where both are buckets and the second needs something else.
#[derive(clap::Args)]
struct ToReach {
    /// Address of the server that is copied to, if it is another
    #[arg(long, value_name = "URL")]
    to_endpoint: Option<String>,
    /// Region of the bucket that is copied to
    #[arg(long, value_name = "NAME")]
    to_region: Option<String>,
    /// Profile of aws-cli for the bucket that is copied to
    #[arg(long, value_name = "NAME")]
    to_profile: Option<String>,
    /// Remote of rclone for the bucket that is copied to
    #[arg(long, value_name = "NAME", conflicts_with = "to_profile")]
    to_remote: Option<String>,
}

impl ToReach {
    fn given(&self) -> [Option<String>; 4] {
        [&self.to_endpoint, &self.to_region, &self.to_profile, &self.to_remote].map(Clone::clone)
    }
}

/// What is copied from.
enum Source {
    File(Store),
    Bucket(BucketStore),
}

/// What is copied to.
enum Sink<'p> {
    File(Box<Made<'p>>),
    Bucket(BucketStore),
}

/// Copies what can be copied; names the rest and ends with an error then.
pub fn run(args: &Args) -> Outcome {
    name::check_collection(args.collection.as_deref())?;
    check(args)?;
    let source = match is_in_bucket(&args.from) {
        true => Source::Bucket(args.reach.store(&args.from)?),
        false => Source::File(open::held(&args.from)?),
    };
    refuse_same_file(&source, &args.to)?;
    let sink = match is_in_bucket(&args.to) {
        true => Sink::Bucket(args.reach.with(args.to_reach.given()).store(&args.to)?),
        false => {
            let mut made = open::or_create(&args.to, &args.waiting)?;
            made.listen();
            Sink::File(Box::new(made))
        }
    };
    refuse_same_bucket(&source, &sink)?;
    let (totals, mut tally) = (Totals::default(), Tally::default());
    let mut meter = Meter::start(Some("objects"), &totals);
    let outcome = all(args, &source, &sink, &totals, &mut tally, &mut meter);
    let time = meter.finish();
    let outcome = match sink {
        Sink::File(made)
            if tally.objects + tally.same == 0 && (outcome.is_err() || tally.failed > 0) =>
        {
            made.discard();
            outcome
        }
        Sink::File(made) => outcome.and_then(|unnamed| {
            made.close("the objects are copied")?;
            Ok(unnamed)
        }),
        Sink::Bucket(_) => outcome,
    };
    let said = summary(args, &tally, outcome.as_ref().copied().unwrap_or(0), time);
    outcome?;
    match tally.failed {
        0 => output::after("the objects are copied", said),
        _ => Err(Failure::Reported(tally.code)),
    }
}

/// Says what is wrong with the arguments before anything is opened.
fn check(args: &Args) -> Outcome {
    let (from, to) = (is_in_bucket(&args.from), is_in_bucket(&args.to));
    if !from && !to {
        args.reach.must_be_unused()?;
    }
    if !to && args.to_reach.given().iter().any(Option::is_some) {
        let what = "--to-endpoint and the like are of use with a bucket to copy to only";
        return Err(Failure::new(what, "name a place as s3://BUCKET/PREFIX"));
    }
    if !from {
        open::check(&args.from, true)?;
    }
    if !to {
        open::check(&args.to, false)?;
    }
    Ok(())
}

fn refuse_same_file(source: &Source, to: &Path) -> Outcome {
    match source {
        Source::File(store) if !is_in_bucket(to) => own::refuse_output(store, to),
        _ => Ok(()),
    }
}

fn refuse_same_bucket(source: &Source, sink: &Sink<'_>) -> Outcome {
    match (source, sink) {
        (Source::Bucket(from), Sink::Bucket(to)) if from.id() == to.id() => {
            let what = format!("{} is what is copied from", to.name());
            Err(Failure::new(what, "name another store to copy to"))
        }
        _ => Ok(()),
    }
}

/// Copies all collections; returns how many objects without a name were left out.
fn all(
    args: &Args,
    source: &Source,
    sink: &Sink<'_>,
    totals: &Totals,
    tally: &mut Tally,
    meter: &mut Meter<'_>,
) -> Outcome<u64> {
    let mut unnamed = 0;
    let prefix = name::bytes(&args.prefix);
    let state = match source {
        Source::File(store) => Some(store.read()?),
        Source::Bucket(_) => None,
    };
    if let (Some(_), Source::File(store)) = (&state, source) {
        unnamed = measure(store, args, totals)?;
    }
    let there = match sink {
        Sink::File(made) => Some(made.read()?),
        Sink::Bucket(_) => None,
    };
    for collection in collections(args, source, state.as_ref())? {
        let copy = Copy {
            from: end(source_bucket(source), state.as_ref(), &collection)?,
            there: end(sink_bucket(sink), there.as_ref(), &collection)?,
            into: match sink {
                Sink::File(made) => Into::File(made, &collection),
                Sink::Bucket(store) => Into::Bucket(store.collection(&collection)?),
            },
            prefix,
            checksum: args.checksum,
        };
        if let Some(failure) = work::run(&copy, tally, meter) {
            return Err(failure);
        }
    }
    Ok(unnamed)
}

fn source_bucket(source: &Source) -> Option<&BucketStore> {
    match source {
        Source::Bucket(store) => Some(store),
        Source::File(_) => None,
    }
}

fn sink_bucket<'s>(sink: &'s Sink<'_>) -> Option<&'s BucketStore> {
    match sink {
        Sink::Bucket(store) => Some(store),
        Sink::File(_) => None,
    }
}

fn end(bucket: Option<&BucketStore>, state: Option<&Reader>, collection: &str) -> Outcome<End> {
    if let Some(store) = bucket {
        return Ok(End::Bucket(store.collection(collection)?));
    }
    Ok(End::File(match state.map(|state| state.collection(collection)) {
        Some(Ok(reader)) => Some(reader),
        None | Some(Err(Error::NotFound(_))) => None,
        Some(Err(error)) => return Err(error.into()),
    }))
}

fn collections(args: &Args, source: &Source, state: Option<&Reader>) -> Outcome<BTreeSet<String>> {
    let all: BTreeSet<String> = match (source, state) {
        (Source::Bucket(store), _) => store.collections()?.into_iter().collect(),
        (_, Some(state)) => state.collections()?.into_iter().collect(),
        (_, None) => BTreeSet::new(),
    };
    let Some(wanted) = &args.collection else { return Ok(all) };
    if !all.contains(wanted) && wanted != DEFAULT_COLLECTION {
        return Err(Error::NotFound(format!("collection {wanted:?}")).into());
    }
    Ok(BTreeSet::from([wanted.clone()]))
}

/// Sets the totals, if no prefix leaves them open, and counts the objects without a name.
fn measure(store: &Store, args: &Args, totals: &Totals) -> Outcome<u64> {
    let stat = store.stat()?;
    let state = store.read()?;
    let (mut objects, mut bytes, mut unnamed) = (0, 0, 0);
    for found in stat.collections {
        if args.collection.as_ref().is_some_and(|wanted| *wanted != found.name) {
            continue;
        }
        (objects, bytes) = (objects + found.objects, bytes + found.logical_bytes);
        let named = match state.collection(&found.name) {
            Ok(reader) => reader.count_names()?,
            Err(Error::NotFound(_)) => found.objects,
            Err(error) => return Err(error.into()),
        };
        unnamed += found.objects.saturating_sub(named);
    }
    if args.prefix.is_empty() {
        totals.set(objects - unnamed.min(objects), bytes);
    }
    Ok(unnamed)
}

fn summary(args: &Args, t: &Tally, unnamed: u64, time: Duration) -> Outcome {
    let (seconds, speed) = (time.as_secs_f64(), rate(t.bytes, time));
    if args.json {
        return output::json(&json!({
            "objects": t.objects, "bytes": t.bytes, "replaced": t.replaced,
            "already_there": t.same, "already_there_bytes": t.same_bytes, "failed": t.failed,
            "without_name": unnamed, "seconds": seconds, "mb_per_s": speed,
        }));
    }
    let left_out = match unnamed {
        0 => String::new(),
        count => format!("; {count} without a name left out"),
    };
    output::say(format_args!(
        "copied {} objects, {} bytes in {seconds:.2} s, {speed:.1} MB/s; {} of them replaced; {} \
         already there; {} failed{left_out}",
        t.objects, t.bytes, t.replaced, t.same, t.failed
    ))
}
