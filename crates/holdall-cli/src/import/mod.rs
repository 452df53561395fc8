//! `holdall import`: stores the regular files of a directory tree.
//!
//! Two threads walk the tree and read files ahead (`feed`), the main thread stores them in
//! batches (`batch`), and where the import takes longer than a second another thread counts
//! what there is to do. Files that are stored already with the same size and time are left
//! alone, so that an import that was interrupted goes on where it stopped.

mod batch;
mod feed;
mod walk;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::Duration;

use holdall::{Error, Store};
use serde_json::json;

use crate::failure::{ERROR, Failure, Outcome};
use crate::progress::{Meter, Totals, rate};
use crate::{name, open, output};
use batch::{Importer, Tally};
use feed::Feed;
use walk::Walk;

/// Imports shorter than this are over before a count of the files would be of use.
const COUNT_AFTER: Duration = Duration::from_secs(1);

/// Store the files of a directory tree; run again, it goes on where it stopped
#[derive(clap::Args)]
pub struct Args {
    /// The store's file, made if it is missing
    store: PathBuf,
    /// The directory; names are paths relative to it
    dir: PathBuf,
    /// Put this before every name, as it is
    #[arg(long, value_name = "P", default_value = "", hide_default_value = true)]
    prefix: OsString,
    /// The collection, made if it is missing; "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    /// Name links and special files left out, and say how many files each batch acknowledged
    #[arg(long, short)]
    verbose: bool,
    /// Print "ack NAME" on standard output once NAME and all names before it are durable
    #[arg(long, conflicts_with = "json")]
    report_acks: bool,
}

/// Imports, then says what was done even if it ended early.
pub fn run(args: &Args) -> Outcome {
    open::check(&args.store, false)?;
    let root = directory(&args.dir)?;
    let store = open::or_create(&args.store)?;
    let totals = Totals::default();
    let mut importer = Importer {
        store: &store,
        collection: args.collection.as_deref(),
        meter: Meter::start(Some("files"), &totals),
        tally: Tally::default(),
        verbose: args.verbose,
        report_acks: args.report_acks,
    };
    let outcome = import(args, &root, &store, &totals, &mut importer);
    let Importer { meter, tally, .. } = importer;
    // After a failure the store closes as it is dropped, without asking it for more.
    let outcome = outcome.and_then(|()| Ok(store.close()?));
    let said = summary(args, &tally, meter.finish());
    outcome?;
    if tally.failed > 0 { Err(Failure::Reported(ERROR)) } else { said }
}

fn directory(dir: &Path) -> Outcome<PathBuf> {
    let root = dir.canonicalize().map_err(|e| Failure::file("open", dir, &e))?;
    if !root.is_dir() {
        let what = format!("{} is not a directory", dir.display());
        return Err(Failure::told(what, "give a directory, or store a file with `holdall put`"));
    }
    Ok(root)
}

fn import(
    args: &Args,
    root: &Path,
    store: &Store,
    totals: &Totals,
    importer: &mut Importer<'_, '_>,
) -> Outcome {
    let prefix = name::bytes(&args.prefix);
    let collection = args.collection.as_deref();
    let known = has_names(store, collection, prefix)?.then_some((store, collection));
    let feed = Feed::new(Walk::new(root, prefix), store, known);
    let (over, is_over) = mpsc::channel();
    thread::scope(|scope| {
        let readers: Vec<_> = (0..feed::READERS).map(|_| scope.spawn(|| feed.read())).collect();
        let counter = scope.spawn(move || count(root, totals, &is_over));
        let stop = feed.stop_on_drop();
        let outcome = importer.run(&feed);
        drop((stop, over));
        // A thread that panicked has already said so; the import is not complete then.
        let lost = readers.into_iter().filter_map(|reader| reader.join().err()).count();
        let _ = counter.join();
        match outcome {
            Ok(()) if lost > 0 => Err(Failure::told(
                "a reader thread ended early, files may be missing",
                "run the import again and report the fault",
            )),
            other => other,
        }
    })
}

/// Whether any name of this prefix is there: if none is, no file needs to be looked up.
fn has_names(store: &Store, collection: Option<&str>, prefix: &[u8]) -> Outcome<bool> {
    match open::reader(store, collection) {
        Ok(reader) => Ok(reader.names(prefix).next().transpose()?.is_some()),
        Err(Error::NotFound(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Counts files and bytes for the time left, unless the import is over before.
fn count(root: &Path, totals: &Totals, is_over: &Receiver<()>) {
    if is_over.recv_timeout(COUNT_AFTER) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let (mut files, mut bytes) = (0, 0);
    for entry in walk::tree(root).into_iter().filter_map(Result::ok) {
        if is_over.try_recv() == Err(TryRecvError::Disconnected) {
            return;
        }
        if entry.file_type().is_file() {
            files += 1;
            bytes += entry.metadata().map_or(0, |data| data.len());
        }
    }
    totals.set(files, bytes);
}

fn summary(args: &Args, t: &Tally, time: Duration) -> Outcome {
    let seconds = time.as_secs_f64();
    let speed = rate(t.bytes, time);
    if args.json {
        return output::json(&json!({
            "files": t.files, "bytes": t.bytes, "replaced": t.replaced,
            "already_there": t.same, "already_there_bytes": t.same_bytes,
            "skipped_links": t.links, "skipped_special": t.special,
            "skipped_own": t.own, "failed": t.failed,
            "batches": t.batches, "seconds": seconds, "mb_per_s": speed,
        }));
    }
    let own = match t.own {
        0 => String::new(),
        n => format!(", {n} files of the store itself"),
    };
    output::say(format_args!(
        "imported {} files, {} bytes in {seconds:.2} s, {speed:.1} MB/s; {} of them replaced; \
         {} already there; skipped {} links, {} special files{own}; {} failed; {} batches acknowledged",
        t.files, t.bytes, t.replaced, t.same, t.links, t.special, t.failed, t.batches
    ))
}
