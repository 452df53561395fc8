//! `holdall verify`: checks every page, object and byte of a store.

use std::path::PathBuf;

use holdall::{Problem, Store, VerifyOptions, VerifyReport};

use crate::failure::{DAMAGED, Failure, Outcome, complain};
use crate::name::escape;
use crate::open;
use crate::output::{self, Out};
use crate::progress::{Meter, Totals};

/// Check every page, object and byte; exit code 4 if something is wrong
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    /// Hold objects against the sums beside the store, which tests keep in STORE-sums
    #[arg(long)]
    sums: bool,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Reads the whole store; changes nothing.
pub fn run(args: &Args) -> Outcome {
    let store = if args.sums {
        open::check(&args.store, true)?;
        Store::builder().debug_sums(true).open_read_only(&args.store)?
    } else {
        open::held(&args.store)?
    };
    let totals = Totals::default();
    let mut meter = Meter::start(None, &totals);
    let report = store.verify_with(&VerifyOptions::default(), &mut |progress| {
        if progress.total > 0 {
            totals.set(0, progress.total);
        }
        meter.at(0, progress.done);
    })?;
    meter.finish();
    let said = if args.json {
        output::json(&holdall_report::json::verify(&report))
    } else {
        text(&report)
    };
    if report.problems.is_empty() {
        return said;
    }
    complain(&format!(
        "{} is damaged: restore it from a backup, or bring what is whole into a new store with `holdall salvage`",
        args.store.display()
    ));
    Err(Failure::Reported(DAMAGED))
}

fn text(report: &VerifyReport) -> Outcome {
    let mut out = Out::new();
    for Problem { place, detail, .. } in &report.problems {
        let line = format!("problem: {place}: {detail}");
        out.line(format_args!("{}", escape(line.as_bytes())))?;
    }
    if !report.notes.is_empty() {
        out.line(format_args!("some of it could lie better, no damage: see --json for the notes"))?;
    }
    let found = match report.problems.len() {
        0 => "sound".to_owned(),
        1 => "1 problem".to_owned(),
        n => format!("{n} problems"),
    };
    let sums = report.compared.map(|n| format!(", {n} objects held against sums"));
    out.line(format_args!(
        "{found}: {} pages, {} objects, {} bytes checked{}",
        report.pages,
        report.objects,
        report.bytes_checked,
        sums.unwrap_or_default()
    ))?;
    out.finish()
}
