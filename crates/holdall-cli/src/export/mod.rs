//! `holdall export`: writes objects as files below a directory.
//!
//! Owns: what is written, and what becomes of an object that cannot be. `path` has the way from a
//! name to a path, `tree` the directories; `from_bucket` reads a bucket. Invariant: nothing is ever written outside the
//! directory: below it no link is followed, and a finished file takes its name at the end, which
//! replaces a link instead of following it. However it ends, directories get their modes.

mod claims;
mod dir;
mod from_bucket;
mod path;
mod restore;
mod tree;
mod unset;

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdall::{Attributes, Entry, Error, Layout, Metadata, Reader, Store};
use holdall_io::lacks_inodes_at;
use serde_json::json;

use crate::at::{Place, StoreAt};
use crate::dirs::Dirs;
use crate::failure::{DAMAGED, ERROR, Failure, NO_SPACE, Outcome, reason, too_large};
use crate::files::{self, CopyError, IN_MEMORY};
use crate::progress::{Meter, Totals, rate};
use crate::replacement::Replacement;
use crate::{name, open, output, own, sparse, stop};
use restore::Missing;
use tree::Tree;
use unset::{Part, Unset};

/// If there is no room for so few bytes, there is none for anything.
const SMALLEST: u64 = 4096;

/// Write objects as files below a directory, with their times and permissions
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    at: StoreAt,
    /// The directory, made if it is missing
    dir: PathBuf,
    /// Only names that begin with this; it is left out of the paths
    #[arg(long, value_name = "P", default_value = "", hide_default_value = true)]
    prefix: OsString,
    /// The collection, "default" if not given
    #[arg(long, value_name = "C")]
    collection: Option<String>,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Exports what can be exported; names the rest and ends with an error then.
pub fn run(args: &Args) -> Outcome {
    args.at.check(true, &[])?;
    let prefix = name::bytes(&args.prefix);
    match args.at.place(args.collection.as_deref())? {
        Place::Bucket(store) => {
            into_directory(args, None, |export| from_bucket::run(export, &store, prefix))
        }
        Place::File(path) => {
            let store = open::held(path)?;
            refuse_directory(&store, &args.dir)?;
            let reader = open::reader(&store, args.collection.as_deref())?;
            into_directory(args, Some(&store), |export| export.run(&reader, prefix))
        }
    }
}

/// Prepares the directory, has `work` done, and says what came of it. A `store` is in a file.
fn into_directory(
    args: &Args,
    store: Option<&Store>,
    work: impl FnOnce(&mut Exporter<'_>) -> Outcome,
) -> Outcome {
    // Rights of directories are changed from here on.
    stop::watch();
    let is_new =
        make(&args.dir).map_err(|e| open::path_failure("make directory", &args.dir, &e))?;
    let root = args.dir.clone();
    let tree =
        Tree::new(store, root.clone(), is_new).map_err(|e| Failure::file("open", &args.dir, &e))?;
    let totals = Totals::default();
    if let Some(store) = store
        && args.prefix.is_empty()
    {
        set_totals(store, args.collection.as_deref(), &totals);
    }
    let mut export = Exporter {
        root,
        tree,
        meter: Meter::start(Some("files"), &totals),
        tally: Tally::default(),
        unset: Unset::default(),
    };
    let outcome = work(&mut export);
    export.tree.end();
    export.note_directories();
    for line in export.unset.lines() {
        export.meter.complain(&line);
    }
    export.tally.incomplete = export.unset.count();
    let time = export.meter.finish();
    let tally = export.tally;
    let said = summary(args, &tally, time);
    outcome?;
    match tally {
        Tally { damaged: 1.., .. } => Err(Failure::Reported(DAMAGED)),
        Tally { without_room: 1.., .. } => Err(Failure::Reported(NO_SPACE)),
        Tally { failed: 1.., .. } | Tally { incomplete: 1.., .. } => Err(Failure::Reported(ERROR)),
        _ => output::after("the files are written", said),
    }
}

/// Makes the directory, for its owner only until it has its mode, unless it is there.
fn make(dir: &Path) -> io::Result<bool> {
    // Without a dot at its end, which no directory can be made of.
    let plain: PathBuf = dir.components().collect();
    if dir.is_dir() {
        return Ok(false);
    }
    if let Some(above) = plain.parent().filter(|above| *above != Path::new("")) {
        fs::create_dir_all(above)?;
    }
    fs::DirBuilder::new().mode(0o700).create(&plain)?;
    Ok(true)
}

/// The store's log, or its socket, could not be made where a directory is.
fn refuse_directory(store: &Store, dir: &Path) -> Outcome {
    for part in dir.ancestors() {
        if let Some(what) = own::place(store, part)? {
            let what = format!("{} is the place of the store's {what}", part.display());
            return Err(Failure::new(what, "give another directory"));
        }
    }
    Ok(())
}

/// Totals are for the display only: without them the time left is not shown.
fn set_totals(store: &Store, collection: Option<&str>, totals: &Totals) {
    let wanted = collection.unwrap_or("default");
    let Ok(stat) = store.stat() else { return };
    if let Some(found) = stat.collections.iter().find(|c| c.name == wanted) {
        totals.set(found.objects, found.logical_bytes);
    }
}

#[derive(Default)]
struct Tally {
    files: u64,
    bytes: u64,
    failed: u64,
    /// Those of `failed` that the store could not read.
    damaged: u64,
    /// Those of `failed` that there was no room for.
    without_room: u64,
    /// Objects behind the one that the export ended at.
    not_tried: u64,
    /// Files left alone: there already, of the size and time.
    same: u64,
    /// Modes and times of what was exported that could not be set.
    incomplete: u64,
}

struct Exporter<'a> {
    root: PathBuf,
    tree: Tree<'a>,
    meter: Meter<'a>,
    tally: Tally,
    unset: Unset,
}

/// Why one object was not exported.
enum Problem {
    /// The others can go on.
    This(String),
    /// Its bytes are damaged; the others can go on.
    Damaged(String),
    /// There is no room for it; smaller ones may have some.
    NoRoom(String),
    /// No other would fare better.
    All(Failure),
}

impl Problem {
    fn system(error: &io::Error, path: &Path) -> Self {
        let why = format!("write {}: {error}", path.display());
        match error.kind() {
            // No file at all can be made.
            ErrorKind::StorageFull if lacks_inodes_at(path) => {
                Self::All(Failure::file("write", path, error))
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Self::NoRoom(why),
            ErrorKind::FileTooLarge => Self::NoRoom(format!("{why}: {}", too_large())),
            _ => Self::This(why),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        if error.is_corrupt() { Self::Damaged(reason(&error)) } else { Self::All(error.into()) }
    }
}

/// Writes an object's bytes into a new file; returns how many.
type Fill<'f> = Box<dyn FnOnce(&fs::File, sparse::Moved<'_>) -> Result<u64, CopyError> + 'f>;

/// Writes bytes that are in memory.
fn whole<'f>(bytes: impl AsRef<[u8]> + 'f) -> Fill<'f> {
    Box::new(move |to, _| {
        let bytes = bytes.as_ref();
        sparse::write(to, bytes).map_err(CopyError::Write)?;
        Ok(bytes.len() as u64)
    })
}

/// What writes an object of a file.
fn fill<'r>(reader: &'r Reader, data: &Metadata) -> Result<Fill<'r>, Problem> {
    let large = matches!(data.layout, Layout::Large { .. });
    let has_holes = large && reader.open(data.oid)?.hole(0..data.size)?.is_some();
    // Read before a file is made: a damaged object leaves nothing behind.
    if data.size <= IN_MEMORY
        && !has_holes
        && let Some(bytes) = reader.get(data.oid)?
    {
        return Ok(whole(bytes));
    }
    let object = reader.open(data.oid)?;
    Ok(Box::new(move |to, moved| sparse::copy(&object, 0..object.size(), to, moved)))
}

impl Exporter<'_> {
    fn run(&mut self, reader: &Reader, prefix: &[u8]) -> Outcome {
        let mut names = reader.names(prefix);
        while let Some(item) = names.next() {
            let Entry { name, oid } = item?;
            stop::check()?;
            let rest = name.get(prefix.len()..).unwrap_or_default();
            let data = reader.metadata(oid)?;
            let exported = self.export(rest, &data.attributes, || fill(reader, &data));
            if self.is_over(&name, data.size, exported)? {
                let left = names.take_while(Result::is_ok).count();
                self.tally.not_tried = left as u64;
                self.meter.complain(&format!(
                    "the export ends here, {left} objects were not tried: free room and run it again"
                ));
                return Err(Failure::Reported(NO_SPACE));
            }
        }
        Ok(())
    }

    /// Counts what came of an object of `size` bytes. Whether there is no room for any other.
    fn is_over(&mut self, name: &[u8], size: u64, exported: Result<(), Problem>) -> Outcome<bool> {
        let mut is_over = false;
        let why = match exported {
            Ok(()) => {
                self.tally.files += 1;
                self.meter.at(self.tally.files, self.tally.bytes);
                return Ok(false);
            }
            Err(Problem::All(failure)) => return Err(failure),
            Err(Problem::This(why)) => {
                // A file was given up because of it.
                stop::check()?;
                why
            }
            Err(Problem::Damaged(why)) => {
                self.tally.damaged += 1;
                why
            }
            Err(Problem::NoRoom(why)) => {
                self.tally.without_room += 1;
                is_over = size <= SMALLEST;
                why
            }
        };
        self.tally.failed += 1;
        self.meter.complain(&format!("not exported: {}: {why}", name::escape(name)));
        Ok(is_over)
    }

    fn export<'f>(
        &mut self,
        name: &[u8],
        attributes: &Attributes,
        fill: impl FnOnce() -> Result<Fill<'f>, Problem>,
    ) -> Result<(), Problem> {
        let below = path::relative(name).map_err(|why| Problem::This(why.into()))?;
        let path = self.root.join(&below);
        let modes = Dirs::from_attributes(attributes);
        let entered = self.tree.enter(below.parent().unwrap_or(Path::new("")), &modes);
        self.note_directories();
        entered?;
        let file_name = below.file_name().unwrap_or_default();
        self.tree.refuse(file_name, &path)?;
        match fill().and_then(|fill| self.write(attributes, &path, fill)) {
            Ok(missing) => {
                for (part, error) in missing {
                    self.unset.note(part, name::escape(name), &error);
                }
                Ok(())
            }
            Err(problem) => {
                self.tree.dir()?.give_back(file_name);
                Err(problem)
            }
        }
    }

    /// Writes an object to `path` in the directory that was entered; says what could not be set.
    fn write(
        &mut self,
        attributes: &Attributes,
        path: &Path,
        fill: Fill<'_>,
    ) -> Result<Missing, Problem> {
        let failed = |e: &io::Error| Problem::system(e, path);
        let fd = self.tree.fd()?;
        let name = path.file_name().unwrap_or_default();
        let mut file = Replacement::begin(fd.clone(), name).map_err(|e| failed(&e))?;
        let to = file.file().map_err(|e| failed(&e))?;
        self.fill(to, path, fill)?;
        let mode = restore::mode(to, attributes).err();
        let time = restore::time(to, attributes).err();
        file.finish().map_err(|e| failed(&e))?;
        let time = time.or_else(|| restore::check_time(&fd, name, attributes).err());
        let missing = [(Part::Mode, mode), (Part::Time, time)];
        Ok(missing.into_iter().filter_map(|(part, e)| Some((part, e?))).collect())
    }

    fn note_directories(&mut self) {
        for (path, error) in std::mem::take(&mut self.tree.unset) {
            let name = name::escape(name::bytes(path.as_os_str()));
            let name = if name.is_empty() { "." } else { &name };
            self.unset.note(Part::Mode, format!("{name}/"), &error);
        }
    }

    fn fill(&mut self, to: &fs::File, path: &Path, fill: Fill<'_>) -> Result<(), Problem> {
        let (count, before) = (self.tally.files, self.tally.bytes);
        let mut moved = before;
        // The sizes of objects full of holes add up to more than any file system holds.
        let meter = &mut self.meter;
        let mut show = |bytes| {
            moved = moved.saturating_add(bytes);
            meter.at(count, moved);
            stop::check_io()
        };
        let size = fill(to, &mut show).map_err(|error| match error {
            CopyError::Read(error) => files::store_error(error).into(),
            CopyError::Write(error) => Problem::system(&error, path),
        })?;
        self.tally.bytes = before.saturating_add(size);
        Ok(())
    }
}

fn summary(args: &Args, t: &Tally, time: Duration) -> Outcome {
    let seconds = time.as_secs_f64();
    let speed = rate(t.bytes, time);
    if args.json {
        return output::json(&json!({
            "files": t.files, "bytes": t.bytes, "failed": t.failed, "damaged": t.damaged,
            "without_room": t.without_room, "not_tried": t.not_tried,
            "incomplete": t.incomplete, "already_there": t.same,
            "seconds": seconds, "mb_per_s": speed,
        }));
    }
    let mut more = String::new();
    for (count, what) in [
        (t.same, "already there"),
        (t.not_tried, "not tried"),
        (t.incomplete, "modes and times not set"),
    ] {
        if count > 0 {
            more += &format!("; {count} {what}");
        }
    }
    output::say(format_args!(
        "exported {} files, {} bytes in {seconds:.2} s, {speed:.1} MB/s; {} failed{more}",
        t.files, t.bytes, t.failed
    ))
}
