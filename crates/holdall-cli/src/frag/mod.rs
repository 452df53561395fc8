//! `holdall frag`: how fragmented a store is, as text, JSON, a drawing or a page.
//!
//! Owns: what is printed and where it goes. Wording, JSON and drawings are
//! those of `holdall_report`.

mod text;

use std::io::Write;
use std::path::PathBuf;

use holdall_report::{draw, json, page};

use crate::failure::Outcome;
use crate::outlet::Outlet;
use crate::progress::{Meter, Totals};
use crate::{open, output};

/// Show how fragmented a store is, what that costs and what helps
#[derive(clap::Args)]
pub struct Args {
    /// The store's file
    store: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Draw the volume's map and histograms into this file, which is replaced
    #[arg(long, value_name = "FILE", conflicts_with = "html")]
    svg: Option<PathBuf>,
    /// Write all of the report as a page into this file, which is replaced
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Prints the report.
pub fn run(args: &Args) -> Outcome {
    open::check(&args.store, true)?;
    let target = args.svg.as_deref().or(args.html.as_deref());
    let outlet = target.map(Outlet::find).transpose()?;
    let store = open::held(&args.store)?;
    if let Some(outlet) = &outlet {
        outlet.refuse_own(&store)?;
    }
    let totals = Totals::default();
    let mut meter = Meter::start(None, &totals);
    let report = store.frag(&mut |done, total| {
        totals.set(0, total);
        meter.at(0, done);
    })?;
    meter.finish();
    let title = args.store.display().to_string();
    if let Some(outlet) = &outlet {
        let as_page = args.html.is_some();
        let draw = if as_page { page::document } else { draw::document };
        write(outlet, &draw(&report, &title))?;
        // The report behind it would spoil it.
        if outlet.is_stdout() && !args.json {
            return Ok(());
        }
    }
    if args.json { output::json(&json::frag(&report)) } else { text::print(&report) }
}

fn write(outlet: &Outlet, text: &str) -> Outcome {
    let failed = |e: &std::io::Error| outlet.failed(e);
    let mut to = outlet.open()?;
    to.file().and_then(|file| file.write_all(text.as_bytes())).map_err(|e| failed(&e))?;
    to.finish(None).map_err(|e| failed(&e))
}
