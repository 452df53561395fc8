//! `holdall backup` and `holdall restore`.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use holdall::{
    Backup, BackupInfo, BackupPart, BackupReport, BackupSource, Progress, RestoreReport,
};
use holdall_control::Elsewhere;
use serde_json::json;

use crate::failure::{Failure, Outcome};
use crate::open;
use crate::output::{self, Out};
use crate::progress::{Meter, Totals};
use crate::streams;
use crate::wait::Waiting;

/// Back a store up while it may be written: whole, or what changed since an earlier backup
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    /// The new file; `-` for standard output
    dest: PathBuf,
    /// Take only what changed since the backup in this file
    #[arg(long, value_name = "EARLIER")]
    base: Option<PathBuf>,
    /// Do not read the backup once more to verify it
    #[arg(long)]
    no_verify: bool,
    /// Print what was done as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    waiting: Waiting,
}

/// Make a store of a backup and the increments that follow it
#[derive(clap::Args)]
pub struct RestoreArgs {
    /// The new store's file
    dest: PathBuf,
    /// A whole backup, and increments in any order; `-` for standard input
    #[arg(required = true, value_name = "BACKUP")]
    parts: Vec<PathBuf>,
    /// Print what was done as one JSON object
    #[arg(long)]
    json: bool,
}

/// Takes a backup.
pub fn run(args: &Args) -> Outcome {
    let mut backup = Backup::new().verify(!args.no_verify);
    if let Some(earlier) = &args.base {
        let base = BackupInfo::read(earlier)?.id;
        let base = base.ok_or_else(|| {
            let text = format!("{} is a backup that nothing can build on", earlier.display());
            Failure::new(text, "take a whole one")
        })?;
        backup = backup.base(base);
    }
    open::check(&args.store, true)?;
    // What keeps from asking matters only if the store is in use, and the opening says that.
    if let Ok(Some(mut other)) = Elsewhere::connect(&args.store) {
        return take(args, backup, &mut other);
    }
    let made = open::existing(&args.store, &args.waiting)?;
    let mut store = made.clone();
    let taken = take(args, backup, &mut store);
    drop(store);
    made.end(taken, |()| "the backup is made".to_owned())
}

fn take(args: &Args, backup: Backup, source: &mut dyn BackupSource) -> Outcome {
    let totals = Totals::default();
    let mut meter = Meter::start(None, &totals);
    let mut tell = |progress: Progress| {
        totals.set(0, progress.total);
        meter.at(0, progress.done);
        ControlFlow::Continue(())
    };
    let to_output = args.dest == Path::new("-");
    let report = if to_output {
        backup.to_stream(source, io::stdout().lock(), &mut tell)
    } else {
        backup.to_file(source, &args.dest, &mut tell)
    };
    let report = report?;
    let took = meter.finish();
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
        ControlFlow::Continue(())
    };
    if args.parts.iter().filter(|part| *part == Path::new("-")).count() > 1 {
        let what = "standard input can be read once only";
        return Err(Failure::new(what, "name files for the other parts"));
    }
    let mut parts = Vec::new();
    for part in &args.parts {
        parts.push(if part == Path::new("-") {
            streams::need_input()?;
            BackupPart::Stream(Box::new(io::stdin()), "standard input".into())
        } else {
            BackupPart::File(part.clone())
        });
    }
    let report = holdall::restore(&args.dest, parts, &mut tell)?;
    let took = meter.finish();
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
