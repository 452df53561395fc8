//! `holdall backup` and `holdall restore`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use holdall::{
    Backup, BackupInfo, BackupPart, BackupReport, BackupSource, Progress, RestoreReport,
};
use holdall_bucket::{Bucket, Keep, Which};
use holdall_control::Elsewhere;
use serde_json::json;

use crate::backup_bucket::Wanted;
use crate::bucket::Reach;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Out};
use crate::progress::{Meter, Totals};
use crate::wait::{Waiting, duration};
use crate::{backup_bucket, open, stop, streams};

/// Back a store up while it may be written: whole, or what changed since an earlier backup
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    /// The new file, `-` for standard output, or a place in a bucket: `s3://BUCKET/PREFIX`
    dest: PathBuf,
    /// Take only what changed since the backup in this file, or the newest of the same place
    #[arg(long, value_name = "EARLIER")]
    base: Option<PathBuf>,
    /// Go on: add what changed to the bucket every so often (as 500ms, 10s, 5m, 1h)
    #[arg(long, value_name = "DURATION", value_parser = duration, conflicts_with = "base")]
    follow: Option<Duration>,
    /// Afterwards remove from the bucket what need not stay, as last=10,daily=7,weekly=4
    #[arg(long, value_name = "RULES")]
    keep: Option<Keep>,
    /// Copy at most this many million bytes a second
    #[arg(long, value_name = "MB/s", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    /// Pack the new file as small as it gets; it is a store of its own then, and no base
    #[arg(long, conflicts_with_all = ["base", "follow", "keep"])]
    compact: bool,
    /// Do not read the backup once more to verify it
    #[arg(long)]
    no_verify: bool,
    /// Print what was done as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
    #[command(flatten)]
    waiting: Waiting,
}

/// Make a store of a backup and the increments that follow it
#[derive(clap::Args)]
pub struct RestoreArgs {
    /// The new store's file
    dest: PathBuf,
    /// A whole backup, and increments in any order; `-` for standard input; or a place in a bucket
    #[arg(required = true, value_name = "BACKUP")]
    parts: Vec<PathBuf>,
    /// Which backup of the bucket: its number, or the newest of a time as 2026-11-27T08:00:00Z
    #[arg(long, value_name = "BACKUP|TIME")]
    at: Option<Which>,
    /// Print what was done as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Args {
    fn rate(&self) -> Option<u64> {
        self.rate.map(|rate| rate.saturating_mul(1_000_000))
    }
}

/// Takes a backup.
pub fn run(args: &Args) -> Outcome {
    open::check(&args.store, true)?;
    if let Some(place) = args.reach.place(&args.dest)? {
        if args.compact {
            let hint = "name a file";
            return Err(Failure::new("a backup in a bucket cannot be compact", hint));
        }
        let increment = in_same_place(args, &place)?;
        stop::watch();
        let wanted = Wanted {
            store: args.store.clone(),
            options: args.waiting.options(),
            verify: !args.no_verify,
            rate: args.rate(),
            keep: args.keep,
            json: args.json,
        };
        return match args.follow {
            Some(every) => backup_bucket::follow(&wanted, &place, every),
            None => {
                with_source(args, |source| backup_bucket::take(&wanted, &place, increment, source))
            }
        };
    }
    args.reach.must_be_unused()?;
    stop::watch();
    if args.follow.is_some() || args.keep.is_some() {
        let option = if args.follow.is_some() { "--follow" } else { "--keep" };
        let what = format!("{option} is of use with a bucket only");
        return Err(Failure::new(what, "name a place as s3://BUCKET/PREFIX"));
    }
    let mut backup = Backup::new().verify(!args.no_verify).compact(args.compact);
    if let Some(rate) = args.rate() {
        backup = backup.rate(rate);
    }
    if let Some(earlier) = &args.base {
        let base = BackupInfo::read(earlier)?.id;
        let base = base.ok_or_else(|| {
            let text = format!("{} is a backup that nothing can build on", earlier.display());
            Failure::new(text, "take a whole one")
        })?;
        backup = backup.base(base);
    }
    with_source(args, |source| take(args, backup, source))
}

/// Whether an increment was asked for, which builds on what is in the same place.
fn in_same_place(args: &Args, place: &Bucket) -> Outcome<bool> {
    let Some(base) = &args.base else { return Ok(false) };
    let same = |text: &str| text.trim_end_matches('/') == place.name().trim_end_matches('/');
    if base.to_str().is_some_and(same) {
        return Ok(true);
    }
    let what = format!("{} is not {}", base.display(), place.name());
    Err(Failure::new(what, "an increment lies where its base lies: name that place as the base"))
}

/// Does `work` with the store, here or with the process that has it open.
fn with_source(args: &Args, work: impl FnOnce(&mut dyn BackupSource) -> Outcome) -> Outcome {
    // What keeps from asking matters only if the store is in use, and the opening says that.
    if let Ok(Some(mut other)) = Elsewhere::connect(&args.store) {
        return work(&mut other);
    }
    let made = open::existing(&args.store, &args.waiting)?;
    let mut store = made.clone();
    let taken = work(&mut store);
    drop(store);
    made.end(taken, |()| "the backup is made".to_owned())
}

fn take(args: &Args, backup: Backup, source: &mut dyn BackupSource) -> Outcome {
    let totals = Totals::default();
    let mut meter = Meter::start(None, &totals);
    let mut tell = |progress: Progress| {
        totals.set(0, progress.total);
        meter.at(0, progress.done);
        stop::unless_ended()
    };
    let to_output = args.dest == Path::new("-");
    let report = if to_output {
        backup.to_stream(source, io::stdout().lock(), &mut tell)
    } else {
        backup.to_file(source, &args.dest, &mut tell)
    };
    let took = meter.finish();
    let report = stop::unless_stopped(report)?;
    if to_output {
        return Ok(());
    }
    if args.json {
        return output::json(&json!({
            "id": report.id.map(|id| id.to_string()),
            "in_use_bytes": report.in_use,
            "copied_bytes": report.copied,
            "verified": report.verified.is_some() || !args.no_verify,
            "seconds": took.as_secs_f64(),
        }));
    }
    said(args, &report)
}

fn said(args: &Args, report: &BackupReport) -> Outcome {
    let mut out = Out::new();
    let id = report.id.map_or_else(String::new, |id| format!(" {id}"));
    let checked = if args.no_verify { "" } else { ", verified" };
    let (copied, all) = (report.copied, report.in_use);
    out.line(format_args!("backup{id}: {copied} of {all} bytes in use copied{checked}"))?;
    out.finish()
}

/// Restores a store.
pub fn restore(args: &RestoreArgs) -> Outcome {
    let totals = Totals::default();
    let mut meter = Meter::start(None, &totals);
    let mut tell = |progress: Progress| {
        meter.at(0, progress.done);
        stop::unless_ended()
    };
    stop::watch();
    let report = holdall::restore(&args.dest, parts(args)?, &mut tell);
    let took = meter.finish();
    let report = stop::unless_stopped(report)?;
    let RestoreReport { id, time, written, verified, .. } = &report;
    if args.json {
        return output::json(&json!({
            "id": id.map(|id| id.to_string()),
            "time": time,
            "written_bytes": written,
            "objects": verified.objects,
            "seconds": took.as_secs_f64(),
        }));
    }
    let mut out = Out::new();
    let id = id.map_or_else(String::new, |id| format!(" from backup {id}"));
    out.line(format_args!("restored{id}: {} objects, verified", verified.objects))?;
    out.finish()
}

/// What the store is made of.
fn parts(args: &RestoreArgs) -> Outcome<Vec<BackupPart>> {
    if args.parts.iter().filter(|part| *part == Path::new("-")).count() > 1 {
        let what = "standard input can be read once only";
        return Err(Failure::new(what, "name files for the other parts"));
    }
    let (mut parts, mut asked) = (Vec::new(), false);
    for part in &args.parts {
        if let Some(place) = args.reach.place(part)? {
            asked = true;
            parts.extend(Arc::clone(&place).parts(args.at.unwrap_or_default())?);
        } else if part == Path::new("-") {
            streams::need_input()?;
            parts.push(BackupPart::Stream(Box::new(io::stdin()), "standard input".into()));
        } else {
            parts.push(BackupPart::File(part.clone()));
        }
    }
    if !asked {
        args.reach.must_be_unused()?;
        if args.at.is_some() {
            let what = "--at is of use with a bucket only";
            return Err(Failure::new(what, "name the parts that lead to the state wanted"));
        }
    }
    Ok(parts)
}
