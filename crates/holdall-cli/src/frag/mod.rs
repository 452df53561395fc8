//! `holdall frag`: how fragmented a store is, as text, JSON, a drawing or a page.
//!
//! Owns: what is printed and where it goes. Wording, JSON and drawings are
//! those of `holdall_report`.

mod text;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use holdall_report::{draw, json, page};

use crate::failure::{Failure, Outcome};
use crate::files::Replacement;
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
    let target = args.svg.as_deref().or(args.html.as_deref());
    let store = open::read_only(&args.store)?;
    if let Some(target) = target {
        refuse(target, &args.store)?;
    }
    let totals = Totals::default();
    let mut meter = Meter::start(None, &totals);
    let report = store.frag(&mut |done, total| {
        totals.set(0, total);
        meter.at(0, done);
    })?;
    meter.finish();
    let title = args.store.display().to_string();
    match (&args.svg, &args.html) {
        (Some(path), _) => write(path, &draw::document(&report, &title))?,
        (None, Some(path)) => write(path, &page::document(&report, &title))?,
        (None, None) => {}
    }
    if args.json { output::json(&json::frag(&report)) } else { text::print(&report) }
}

/// The store's own files are not drawn over.
fn refuse(target: &Path, store: &Path) -> Outcome {
    if target.is_dir() {
        let what = format!("{} is a directory", target.display());
        return Err(Failure::told(what, "give a file to write to"));
    }
    let (Ok(target_is), Ok(store_is)) = (target.canonicalize(), store.canonicalize()) else {
        return Ok(());
    };
    let mut log = OsString::from(&store_is);
    log.push("-log");
    if target_is == store_is || target_is == Path::new(&log) {
        let what = format!("{} belongs to the store", target.display());
        return Err(Failure::told(what, "give another file to write to"));
    }
    Ok(())
}

/// Replaces a file, keeping its permissions; a device or pipe is written to as it is.
fn write(path: &Path, text: &str) -> Outcome {
    let failed = |e: &std::io::Error| Failure::file("write", path, e);
    let before = fs::metadata(path).ok();
    if before.as_ref().is_some_and(|data| !data.is_file()) {
        let file = fs::OpenOptions::new().write(true).open(path);
        return file.and_then(|mut f| f.write_all(text.as_bytes())).map_err(|e| failed(&e));
    }
    // A link keeps pointing to its file; the file is what is replaced.
    let target = if before.is_some() { path.canonicalize() } else { Ok(path.into()) };
    let mut new = target.and_then(|path| Replacement::beside(&path)).map_err(|e| failed(&e))?;
    let file = new.file().map_err(|e| failed(&e))?;
    file.write_all(text.as_bytes()).map_err(|e| failed(&e))?;
    if let Some(data) = before {
        file.set_permissions(data.permissions()).map_err(|e| failed(&e))?;
    }
    new.finish().map_err(|e| failed(&e))
}
