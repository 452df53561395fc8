//! `holdall defrag` and `holdall compact`: put a store in order, make its file small.

use std::ops::ControlFlow;
use std::path::PathBuf;

use holdall::{DefragOptions, DefragReport, Moved};

use crate::failure::Outcome;
use crate::output::{self, Out};
use crate::progress::{Meter, Totals};
use crate::wait::Waiting;
use crate::writer::{self, Writer};

/// Join the pieces of objects, empty sparse pages, give free space back
#[derive(clap::Args)]
pub struct Defrag {
    /// The store's file
    store: PathBuf,
    /// Move at most this many million bytes a second
    #[arg(long, value_name = "MB/s", value_parser = clap::value_parser!(u64).range(1..))]
    rate: Option<u64>,
    #[command(flatten)]
    waiting: Waiting,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Make the file as small as its content allows
#[derive(clap::Args)]
pub struct Compact {
    /// The store's file
    store: PathBuf,
    #[command(flatten)]
    waiting: Waiting,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `defrag`.
pub fn defrag(args: &Defrag) -> Outcome {
    let rate = args.rate.map(|rate| rate.saturating_mul(1_000_000));
    let options = DefragOptions { rate, ..DefragOptions::default() };
    work((&args.store, &args.waiting), &options, args.json)
}

/// Runs `compact`.
pub fn compact(args: &Compact) -> Outcome {
    let options = DefragOptions { join: false, ..DefragOptions::default() };
    work((&args.store, &args.waiting), &options, args.json)
}

fn work(
    (path, waiting): (&std::path::Path, &Waiting),
    options: &DefragOptions,
    json: bool,
) -> Outcome {
    let mut writer = writer::existing(path, waiting)?;
    writer.listen();
    let totals = Totals::default();
    let mut meter = Meter::start(None, &totals);
    let mut progress = |moved: &Moved| {
        meter.at(0, moved.bytes());
        ControlFlow::Continue(())
    };
    let mut report = match writer {
        Writer::Own(made) => {
            let report = made.defrag(options, &mut progress)?;
            made.close("the store is in order")?;
            report
        }
        Writer::Other(other) => other.client.defrag(options, &mut progress)?,
    };
    meter.finish();
    // Closing cuts the file once more.
    report.blocks_after = waiting.options().open_read_only(path)?.stat()?.file_bytes;
    let said = if json {
        output::json(&holdall_report::json::defrag(&report))
    } else {
        print_text(&report)
    };
    output::after("the store is in order", said)
}

fn print_text(report: &DefragReport) -> Outcome {
    let (moved, mut out) = (&report.moved, Out::new());
    out.line(format_args!(
        "file: {} bytes before, {} now; {} bytes moved",
        report.blocks_before,
        report.blocks_after,
        moved.bytes()
    ))?;
    out.line(format_args!(
        "{} heap pages emptied, {} pieces of {} objects joined",
        moved.heap_pages, moved.pieces, moved.objects
    ))?;
    if report.shared > 0 {
        out.line(format_args!(
            "{} objects stay in pieces because copies share them",
            report.shared
        ))?;
    }
    if report.no_room > 0 {
        out.line(format_args!(
            "{} runs of pieces stay: no free run is as long; delete something or raise the limit, \
             then run it again",
            report.no_room
        ))?;
    }
    if report.given_up > 0 {
        out.line(format_args!(
            "{} moves given up: writers needed the space; run it again",
            report.given_up
        ))?;
    }
    if report.gave_back.cannot_punch {
        out.line(format_args!("{CANNOT_PUNCH}"))?;
    }
    if let Some(why) = &report.gave_back.failure {
        let (bytes, runs) = (report.gave_back.failed_bytes, report.gave_back.failed_runs);
        out.line(format_args!(
            "{bytes} free bytes in {runs} runs were not given back: {why}; run it again"
        ))?;
    }
    out.finish()
}

const CANNOT_PUNCH: &str = "the file system cannot punch holes: what could be moved was moved down, and the free end of \
     the file cut off";
