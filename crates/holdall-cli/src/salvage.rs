//! `holdall salvage`: brings what is whole of a damaged store into a new one.

use std::path::PathBuf;

use holdall::{LostObject, Oid, Salvage, SalvageReport};

use crate::failure::{DAMAGED, Failure, Outcome, complain};
use crate::name::escape;
use crate::open;
use crate::output::{self, Out};
use crate::progress::{Meter, Totals};
use crate::stop;

/// Bring what is whole of a damaged store into a new one; exit code 4 if something is lost
#[derive(clap::Args)]
pub struct Args {
    /// The damaged store's file, which is only read; its log lies beside it, if there is any
    damaged: PathBuf,
    /// The new store's file
    new: PathBuf,
    /// Bring objects of which bytes are lost too, with zeros in their place
    #[arg(long)]
    partial: bool,
    /// Print what was brought and what is lost as one JSON object
    #[arg(long)]
    json: bool,
}

/// Makes the new store, and tells what is not in it.
pub fn run(args: &Args) -> Outcome {
    open::check(&args.damaged, true)?;
    stop::watch();
    let totals = Totals::default();
    let mut meter = Meter::start(None, &totals);
    let mut tell = |progress: holdall::Progress| {
        totals.set(0, progress.total);
        meter.at(0, progress.done);
        stop::unless_ended()
    };
    let salvage = Salvage::new().partial(args.partial);
    let report = salvage.to_file(&args.damaged, &args.new, &mut tell);
    meter.finish();
    let report = stop::unless_stopped(report)?;
    if args.json {
        output::json(&holdall_report::json::salvage(&report))?;
    } else {
        text(&report)?;
    }
    if report.is_whole() {
        return Ok(());
    }
    complain(&format!("{} was damaged: see what is lost or doubtful", args.damaged.display()));
    Err(Failure::Reported(DAMAGED))
}

fn text(report: &SalvageReport) -> Outcome {
    let mut out = Out::new();
    let mut line = |what: &str, text: &str| out.line(format_args!("{what}: {text}"));
    for note in &report.notes {
        line("damaged", note)?;
    }
    if report.unreadable > 0 {
        line("damaged", &format!("{} bytes cannot be read from the device", report.unreadable))?;
    }
    for object in &report.lost {
        let what = if object.brought { "zeros" } else { "lost" };
        let shown = show(object.collection.as_deref(), object.name.as_deref(), object.oid);
        line(what, &format!("{shown}{}: {}", ranges(object), escape(object.why.as_bytes())))?;
    }
    for object in &report.doubtful {
        let shown = show(Some(&object.collection), object.name.as_deref(), object.oid);
        line("doubtful", &format!("{shown}: {}", escape(object.why.as_bytes())))?;
    }
    let lost = report.lost.iter().filter(|lost| !lost.brought).count();
    let SalvageReport { objects, bytes, collections, .. } = report;
    out.line(format_args!(
        "{objects} objects of {collections} collections brought, {bytes} bytes; {lost} lost"
    ))?;
    out.finish()
}

/// Collection, and name or id, of an object.
fn show(collection: Option<&str>, name: Option<&[u8]>, oid: Oid) -> String {
    let own = name.map_or_else(|| oid.to_string(), escape);
    match collection {
        Some(collection) => format!("{}: {own}", escape(collection.as_bytes())),
        None => own,
    }
}

/// The bytes of an object that are lost.
fn ranges(object: &LostObject) -> String {
    let shown: Vec<_> = object.ranges.iter().map(|r| format!("{}:{}", r.start, r.end)).collect();
    match object.size {
        Some(size) if !shown.is_empty() => format!(", bytes {} of {size}", shown.join(", ")),
        _ => String::new(),
    }
}
