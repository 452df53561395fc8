//! `holdall import`: stores the regular files of a directory tree.
//!
//! Two threads walk the tree (`walk`) and read files ahead (`feed`), the main thread stores them in
//! batches (`batch`), and if the import takes longer than a second another thread counts
//! what there is to do. Files that are stored already are left alone (`compare`), so that an
//! import that was interrupted goes on where it stopped. A file is stored as it was at one moment
//! (`source`, `stream`, `settle`), or named. Objects below a directory learn of its new mode
//! (`refresh`). Into a bucket `to_bucket` brings them.

mod batch;
mod compare;
mod delete;
mod exclude;
mod feed;
mod refresh;
mod settle;
mod source;
mod stream;
mod to_bucket;
mod walk;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::thread;
use std::time::Duration;

use holdall::{Error, Store};
use holdall_bucket::blocking::BucketStore;
use serde_json::json;

use crate::at::{Place, StoreAt};
use crate::failure::{ERROR, Failure, NO_SPACE, Outcome, USAGE};
use crate::progress::{Meter, Totals, rate};
use crate::wait::Waiting;
use crate::{files, name, open, output, size};
use batch::{Importer, Tally};
use exclude::Excludes;
use feed::{Choices, Feed};
use walk::{Walk, What};

/// Imports shorter than this are over before a count of the files would be of use.
const COUNT_AFTER: Duration = Duration::from_secs(1);

/// Store the files of a directory tree; run again, it goes on where it stopped
///
/// A store's file is made if it is missing.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: StoreAt,
    /// The directory; names are paths relative to it
    dir: PathBuf,
    /// Leave out files and directories of this pattern: *, **, ?, [a-z]; a slash inside makes it
    /// one for paths, at the end one for directories. May be given again
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<OsString>,
    /// Leave out files of more than this many bytes, as 500M, 20G or 1T
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    max_size: Option<u64>,
    /// Compare the bytes of files, not their times, with what is stored
    #[arg(long, conflicts_with = "force")]
    checksum: bool,
    /// Store all files anew, whatever is stored
    #[arg(long)]
    force: bool,
    /// Remove objects whose files are gone from the directory, among names with the prefix only
    #[arg(long)]
    delete: bool,
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
    #[command(flatten)]
    waiting: Waiting,
}

/// Imports, then says what was done even if it ended early.
pub fn run(args: &Args) -> Outcome {
    args.at.check(false, &[])?;
    name::check_collection(args.collection.as_deref())?;
    let excludes = Excludes::parse(&args.exclude).map_err(|why| {
        Failure::Told(why, "correct it; docs/cli.md says what patterns are".into(), USAGE)
    })?;
    let path = match args.at.place(args.collection.as_deref())? {
        Place::File(path) => path,
        Place::Bucket(store) => return into_bucket(args, &excludes, &store),
    };
    let root = directory(&args.dir)?;
    let mut store = open::or_create(path, &args.waiting)?;
    store.listen();
    let totals = Totals::default();
    let mut importer = Importer {
        store: &store,
        collection: args.collection.as_deref(),
        meter: Meter::start(Some("files"), &totals),
        tally: Tally::default(),
        verbose: args.verbose,
        report_acks: args.report_acks,
        acknowledged: 0,
        root: root.clone(),
        prefix: name::bytes(&args.prefix).to_vec(),
        young: Vec::new(),
        refreshed: None,
    };
    let outcome = import(args, &root, &excludes, &mut importer, &totals);
    let Importer { meter, tally, .. } = importer;
    let time = meter.finish();
    if tally.batches == 0 && (outcome.is_err() || tally.failed > 0) {
        store.discard();
        summary(args, &tally, time)?;
        outcome?;
        let code = if tally.without_room > 0 { NO_SPACE } else { ERROR };
        return Err(Failure::Reported(code));
    }
    // After a failure the store closes as it is dropped, without asking it for more.
    let outcome = outcome.and_then(|()| store.close("the files are stored"));
    let said = summary(args, &tally, time);
    outcome?;
    match tally {
        Tally { without_room: 1.., .. } => Err(Failure::Reported(NO_SPACE)),
        Tally { failed: 1.., .. } => Err(Failure::Reported(ERROR)),
        _ => output::after("the files are stored", said),
    }
}

/// As [`run`], into a bucket.
fn into_bucket(args: &Args, excludes: &Excludes, store: &BucketStore) -> Outcome {
    for (given, option) in [
        (args.checksum, "--checksum"),
        (args.delete, "--delete"),
        (args.report_acks, "--report-acks"),
    ] {
        if given {
            let what = format!("{option} is of use with a store's file only");
            return Err(Failure::new(what, "leave it out"));
        }
    }
    let root = directory(&args.dir)?;
    let choices = Choices { force: args.force, max_size: args.max_size, ..Choices::default() };
    let prefix = name::bytes(&args.prefix);
    let walk = Walk::new(&root, prefix, excludes, to_bucket::MAX_ATTRIBUTES);
    let (tally, time, broken) = to_bucket::run(store, walk, &choices, args.verbose);
    let said = summary(args, &tally, time);
    match (broken, tally.failed) {
        (Some(failure), _) => Err(failure),
        (None, 0) => output::after("the files are stored", said),
        (None, _) => Err(Failure::Reported(ERROR)),
    }
}

/// Opens the directory, to which all paths are relative from here on.
fn directory(dir: &Path) -> Outcome<Arc<OwnedFd>> {
    let root = files::open_directory(dir).map_err(|e| match e.kind() {
        ErrorKind::NotADirectory if dir.exists() => {
            let what = format!("{} is not a directory", dir.display());
            Failure::new(what, "give a directory, or store a file with `holdall put`")
        }
        _ => open::path_failure("open", dir, &e),
    })?;
    Ok(Arc::new(root))
}

fn import(
    args: &Args,
    root: &Arc<OwnedFd>,
    excludes: &Excludes,
    importer: &mut Importer<'_, '_>,
    totals: &Totals,
) -> Outcome {
    let store = importer.store;
    let prefix = name::bytes(&args.prefix);
    let collection = args.collection.as_deref();
    let known = has_names(store, collection, prefix)?.then_some((store, collection));
    let choices = Choices { force: args.force, checksum: args.checksum, max_size: args.max_size };
    let most = store.attribute_bytes();
    let walk = || Walk::new(root, prefix, excludes, most);
    let feed = Feed::new(walk(), store, known, &choices);
    let (over, is_over) = mpsc::channel();
    thread::scope(|scope| {
        let readers: Vec<_> = (0..feed::READERS).map(|_| scope.spawn(|| feed.read())).collect();
        let counter = scope.spawn(move || count(walk(), totals, &is_over));
        let stop = feed.stop_on_drop();
        let outcome = importer.run(&feed);
        drop((stop, over));
        // A thread that panicked has already printed so; the import is not complete then.
        let lost = readers.into_iter().filter_map(|reader| reader.join().err()).count();
        let _ = counter.join();
        match outcome {
            Ok(()) if lost > 0 => Err(Failure::new(
                "a reader thread ended early, files may be missing",
                "run the import again and report the fault",
            )),
            other => other,
        }
    })?;
    if !args.delete {
        return Ok(());
    }
    if importer.tally.unread_dirs > 0 {
        importer.meter.complain(delete::STOPPED);
        return Ok(());
    }
    delete::gone(importer, walk(), excludes, prefix)
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
fn count(mut walk: Walk<'_>, totals: &Totals, is_over: &Receiver<()>) {
    if is_over.recv_timeout(COUNT_AFTER) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let (mut files, mut bytes) = (0, 0u64);
    while let Some((_, chunk)) = walk.next_chunk() {
        if is_over.try_recv() == Err(TryRecvError::Disconnected) {
            return;
        }
        for found in chunk {
            if let What::File(place) = found.what {
                files += 1;
                let size = place.data().map_or(0, |data| data.len());
                bytes = bytes.saturating_add(size);
            }
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
            "skipped_own": t.own, "skipped_large": t.large, "excluded": t.excluded,
            "updated": t.updated, "deleted": t.deleted, "failed": t.failed,
            "batches": t.batches, "seconds": seconds, "mb_per_s": speed,
        }));
    }
    let mut others = String::new();
    for (count, what) in [
        (t.own, "files of the store itself"),
        (t.large, "larger than --max-size"),
        (t.excluded, "excluded"),
    ] {
        if count > 0 {
            others += &format!(", {count} {what}");
        }
    }
    let mut also = String::new();
    for (count, what) in [(t.updated, "modes and times stored anew"), (t.deleted, "deleted")] {
        if count > 0 {
            also += &format!("{count} {what}; ");
        }
    }
    output::say(format_args!(
        "imported {} files, {} bytes in {seconds:.2} s, {speed:.1} MB/s; {} of them replaced; \
         {} already there; {also}skipped {} links, {} special files{others}; {} failed; {} \
         batches acknowledged",
        t.files, t.bytes, t.replaced, t.same, t.links, t.special, t.failed, t.batches
    ))
}
