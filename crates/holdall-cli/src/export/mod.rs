//! `holdall export`: writes objects as files below a directory.
//!
//! Owns: what is written, and what becomes of an object that cannot be. `path` has the way from a
//! name to a path, `tree` the directories. Invariant: nothing is ever written outside the
//! directory: below it no link is followed, and a finished file takes its name at the end, which
//! replaces a link instead of following it. However it ends, directories get their modes.

mod claims;
mod dir;
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

use holdall::{Entry, Error, Layout, Metadata, Oid, Reader, Store};
use holdall_io::lacks_inodes_at;
use serde_json::json;

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
    /// The store's file
    store: PathBuf,
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
    let store = open::held(&args.store)?;
    refuse_directory(&store, &args.dir)?;
    let reader = open::reader(&store, args.collection.as_deref())?;
    // Rights of directories are changed from here on.
    stop::watch();
    let is_new =
        make(&args.dir).map_err(|e| open::path_failure("make directory", &args.dir, &e))?;
    let root = args.dir.clone();
    let tree = Tree::new(&store, root.clone(), is_new)
        .map_err(|e| Failure::file("open", &args.dir, &e))?;
    let totals = Totals::default();
    let prefix = name::bytes(&args.prefix);
    if prefix.is_empty() {
        set_totals(&store, args.collection.as_deref(), &totals);
    }
    let mut export = Exporter {
        reader: &reader,
        root,
        tree,
        meter: Meter::start(Some("files"), &totals),
        tally: Tally::default(),
        unset: Unset::default(),
    };
    let outcome = export.run(prefix);
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
    /// Modes and times of what was exported that could not be set.
    incomplete: u64,
}

struct Exporter<'a> {
    reader: &'a Reader,
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

impl Exporter<'_> {
    fn run(&mut self, prefix: &[u8]) -> Outcome {
        let mut names = self.reader.names(prefix);
        while let Some(item) = names.next() {
            let Entry { name, oid } = item?;
            stop::check()?;
            let rest = name.get(prefix.len()..).unwrap_or_default();
            let data = self.reader.metadata(oid)?;
            let mut is_over = false;
            let why = match self.export(rest, &data) {
                Ok(()) => {
                    self.tally.files += 1;
                    self.meter.at(self.tally.files, self.tally.bytes);
                    continue;
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
                    is_over = data.size <= SMALLEST;
                    why
                }
            };
            self.tally.failed += 1;
            self.meter.complain(&format!("not exported: {}: {why}", name::escape(&name)));
            if is_over {
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

    fn export(&mut self, name: &[u8], data: &Metadata) -> Result<(), Problem> {
        let below = path::relative(name).map_err(|why| Problem::This(why.into()))?;
        let path = self.root.join(&below);
        let modes = Dirs::from_attributes(&data.attributes);
        let entered = self.tree.enter(below.parent().unwrap_or(Path::new("")), &modes);
        self.note_directories();
        entered?;
        let file_name = below.file_name().unwrap_or_default();
        self.tree.refuse(file_name, &path)?;
        match self.write(data, &path) {
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
    fn write(&mut self, data: &Metadata, path: &Path) -> Result<Missing, Problem> {
        let oid = data.oid;
        let failed = |e: &io::Error| Problem::system(e, path);
        // Read before a file is made: a damaged object leaves nothing behind.
        let small = data.size <= IN_MEMORY && !self.has_holes(oid, data)?;
        let whole = if small { self.reader.get(oid)? } else { None };
        let fd = self.tree.fd()?;
        let name = path.file_name().unwrap_or_default();
        let mut file = Replacement::begin(fd.clone(), name).map_err(|e| failed(&e))?;
        match whole {
            Some(bytes) => {
                file.file().and_then(|f| sparse::write(f, &bytes)).map_err(|e| failed(&e))?;
                self.tally.bytes = self.tally.bytes.saturating_add(bytes.len() as u64);
            }
            None => self.stream(oid, file.file().map_err(|e| failed(&e))?, path)?,
        }
        let to = file.file().map_err(|e| failed(&e))?;
        let mode = restore::mode(to, &data.attributes).err();
        let time = restore::time(to, &data.attributes).err();
        file.finish().map_err(|e| failed(&e))?;
        let time = time.or_else(|| restore::check_time(&fd, name, &data.attributes).err());
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

    fn has_holes(&self, oid: Oid, data: &Metadata) -> Result<bool, Problem> {
        let large = matches!(data.layout, Layout::Large { .. });
        Ok(large && self.reader.open(oid)?.hole(0..data.size)?.is_some())
    }

    fn stream(&mut self, oid: Oid, to: &fs::File, path: &Path) -> Result<(), Problem> {
        let object = self.reader.open(oid)?;
        let all = 0..object.size();
        let (count, before) = (self.tally.files, self.tally.bytes);
        let mut moved = before;
        // The sizes of objects full of holes add up to more than any file system holds.
        let meter = &mut self.meter;
        let mut show = |bytes| {
            moved = moved.saturating_add(bytes);
            meter.at(count, moved);
            stop::check_io()
        };
        let copied = sparse::copy(&object, all, to, &mut show);
        let size = copied.map_err(|error| match error {
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
            "incomplete": t.incomplete,
            "seconds": seconds, "mb_per_s": speed,
        }));
    }
    let mut more = String::new();
    for (count, what) in [(t.not_tried, "not tried"), (t.incomplete, "modes and times not set")] {
        if count > 0 {
            more += &format!("; {count} {what}");
        }
    }
    output::say(format_args!(
        "exported {} files, {} bytes in {seconds:.2} s, {speed:.1} MB/s; {} failed{more}",
        t.files, t.bytes, t.failed
    ))
}
