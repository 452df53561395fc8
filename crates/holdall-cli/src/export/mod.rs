//! `holdall export`: writes objects as files below a directory.
//!
//! Owns: what is written, and what becomes of an object that cannot be. `path` has the way from a
//! name to a path, `tree` the directories. Invariant: nothing is ever written outside the
//! directory: below it no link is followed, and a finished file takes its name at the end, which
//! replaces a link instead of following it.

mod claims;
mod path;
mod tree;

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdall::{Attributes, Entry, Error, Layout, Metadata, Oid, Reader, Store};
use serde_json::json;

use crate::failure::{DAMAGED, ERROR, Failure, NO_SPACE, Outcome, reason, too_large};
use crate::files::{self, CopyError, IN_MEMORY};
use crate::progress::{Meter, Totals, rate};
use crate::replacement::{Replacement, set_bits, set_rights};
use crate::{name, open, output, own, time};
use tree::Tree;

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
    let store = open::read_only(&args.store)?;
    refuse_directory(&store, &args.dir)?;
    let reader = open::reader(&store, args.collection.as_deref())?;
    let is_new = !args.dir.exists();
    fs::create_dir_all(&args.dir)
        .map_err(|e| open::path_failure("make directory", &args.dir, &e))?;
    let failed = |e: &io::Error| Failure::file("open", &args.dir, e);
    let root = args.dir.canonicalize().map_err(|e| failed(&e))?;
    let tree = Tree::new(&store, root.clone(), is_new).map_err(|e| failed(&e))?;
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
    };
    let outcome = export.run(prefix);
    export.tree.end();
    export.complain_of_directories();
    let time = export.meter.finish();
    let tally = export.tally;
    let said = summary(args, &tally, time);
    outcome?;
    match tally {
        Tally { damaged: 1.., .. } => Err(Failure::Reported(DAMAGED)),
        Tally { too_large: 1.., .. } => Err(Failure::Reported(NO_SPACE)),
        Tally { failed: 1.., .. } | Tally { incomplete: 1.., .. } => Err(Failure::Reported(ERROR)),
        _ => output::after("the files are written", said),
    }
}

/// The store's log could not be made where a directory is.
fn refuse_directory(store: &Store, dir: &Path) -> Outcome {
    for part in dir.ancestors() {
        if own::is_log_place(store, part)? {
            let what = format!("{} is the place of the store's log", part.display());
            return Err(Failure::told(what, "give another directory"));
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
    /// Those of `failed` that are larger than a file may be.
    too_large: u64,
    /// Modes and times of what was exported that could not be set.
    incomplete: u64,
}

struct Exporter<'a> {
    reader: &'a Reader,
    root: PathBuf,
    tree: Tree<'a>,
    meter: Meter<'a>,
    tally: Tally,
}

/// Why one object was not exported.
enum Problem {
    /// The others can go on.
    This(String),
    /// Its bytes are damaged; the others can go on.
    Damaged(String),
    /// No file may be as large; the others can go on.
    Large(String),
    /// No other would fare better.
    All(Failure),
}

impl Problem {
    fn system(error: &io::Error, path: &Path) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Self::All(Failure::file("write", path, error))
            }
            ErrorKind::FileTooLarge => {
                Self::Large(format!("write {}: {error}: {}", path.display(), too_large()))
            }
            _ => Self::This(format!("write {}: {error}", path.display())),
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
        for item in self.reader.names(prefix) {
            let Entry { name, oid } = item?;
            let rest = name.get(prefix.len()..).unwrap_or_default();
            let why = match self.export(rest, oid) {
                Ok(()) => {
                    self.tally.files += 1;
                    self.meter.at(self.tally.files, self.tally.bytes);
                    continue;
                }
                Err(Problem::All(failure)) => return Err(failure),
                Err(Problem::This(why)) => why,
                Err(Problem::Large(why)) => {
                    self.tally.too_large += 1;
                    why
                }
                Err(Problem::Damaged(why)) => {
                    self.tally.damaged += 1;
                    why
                }
            };
            self.tally.failed += 1;
            self.meter.complain(&format!("not exported: {}: {why}", name::escape(&name)));
        }
        Ok(())
    }

    fn export(&mut self, name: &[u8], oid: Oid) -> Result<(), Problem> {
        let below = path::relative(name).map_err(|why| Problem::This(why.into()))?;
        let path = self.root.join(&below);
        let data = self.reader.metadata(oid)?;
        let modes = files::stored_dirs(&data.attributes);
        let entered = self.tree.enter(below.parent().unwrap_or(Path::new("")), &modes);
        self.complain_of_directories();
        entered?;
        let file_name = below.file_name().unwrap_or_default();
        self.tree.refuse(file_name, &path)?;
        match self.write(oid, &data, &path) {
            Ok(unset) => {
                for why in unset {
                    self.incomplete(&name::escape(name), &why);
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
    fn write(&mut self, oid: Oid, data: &Metadata, path: &Path) -> Result<Vec<String>, Problem> {
        let failed = |e: &io::Error| Problem::system(e, path);
        // Read before a file is made: a damaged object leaves nothing behind.
        let small = data.size <= IN_MEMORY && !self.has_holes(oid, data)?;
        let whole = if small { self.reader.get(oid)? } else { None };
        let fd = self.tree.dir()?.fd.clone();
        let name = path.file_name().unwrap_or_default();
        let mut file = Replacement::begin(fd, name).map_err(|e| failed(&e))?;
        match whole {
            Some(bytes) => {
                file.file().and_then(|f| f.write_all(&bytes)).map_err(|e| failed(&e))?;
                self.tally.bytes = self.tally.bytes.saturating_add(bytes.len() as u64);
            }
            None => self.stream(oid, file.file().map_err(|e| failed(&e))?, path)?,
        }
        let unset = file.file().map(|f| restore(f, &data.attributes)).map_err(|e| failed(&e))?;
        file.finish().map_err(|e| failed(&e))?;
        Ok(unset)
    }

    /// Names what was exported without all that belongs to it.
    fn incomplete(&mut self, name: &str, why: &str) {
        self.tally.incomplete += 1;
        self.meter.complain(&format!("exported all the same: {name}: {why}"));
    }

    fn complain_of_directories(&mut self) {
        for (path, error) in std::mem::take(&mut self.tree.unset) {
            let name = name::escape(name::bytes(path.as_os_str()));
            let name = if name.is_empty() { "." } else { &name };
            self.incomplete(&format!("{name}/"), &format!("its mode cannot be set: {error}"));
        }
    }

    fn has_holes(&self, oid: Oid, data: &Metadata) -> Result<bool, Problem> {
        let large = matches!(data.layout, Layout::Large { .. });
        Ok(large && self.reader.open(oid)?.hole(0..data.size)?.is_some())
    }

    fn stream(&mut self, oid: Oid, to: &mut fs::File, path: &Path) -> Result<(), Problem> {
        let mut object = self.reader.open(oid)?;
        let all = 0..object.size();
        let (count, before) = (self.tally.files, self.tally.bytes);
        let mut moved = before;
        // The sizes of objects full of holes add up to more than any file system holds.
        let meter = &mut self.meter;
        let mut show = |bytes| {
            moved = moved.saturating_add(bytes);
            meter.at(count, moved);
        };
        let size =
            files::copy_with_holes(&mut object, all, to, &mut show).map_err(
                |error| match error {
                    CopyError::Read(error) => files::store_error(error).into(),
                    CopyError::Write(error) => Problem::system(&error, path),
                },
            )?;
        self.tally.bytes = before.saturating_add(size);
        Ok(())
    }
}

/// Gives `file` the permission bits and the time among `attributes`, bits as a new file has them
/// if there are none; says what could not be set.
///
/// Only the nine permission bits are restored: a store from elsewhere must not be able to
/// make a program that runs as another user.
fn restore(file: &fs::File, attributes: &Attributes) -> Vec<String> {
    let mut unset = Vec::new();
    let fits = match files::stored_mode(attributes) {
        Some(mode) => set_bits(file, mode & 0o777, 0),
        None => set_rights(file, None, None),
    };
    if let Err(e) = fits {
        unset.push(format!("its mode cannot be set: {e}"));
    }
    let Some(nanos) = attributes.get(files::MTIME).and_then(|text| time::parse(text)) else {
        return unset;
    };
    match time::from_nanos(nanos).map(|time| file.set_modified(time)) {
        None => unset.push("its time cannot be set: the system has no such time".to_owned()),
        Some(Err(e)) => unset.push(format!("its time cannot be set: {e}")),
        Some(Ok(())) => {}
    }
    unset
}

fn summary(args: &Args, t: &Tally, time: Duration) -> Outcome {
    let seconds = time.as_secs_f64();
    let speed = rate(t.bytes, time);
    if args.json {
        return output::json(&json!({
            "files": t.files, "bytes": t.bytes, "failed": t.failed, "damaged": t.damaged,
            "incomplete": t.incomplete,
            "seconds": seconds, "mb_per_s": speed,
        }));
    }
    let incomplete = match t.incomplete {
        0 => String::new(),
        n => format!("; {n} modes and times not set"),
    };
    output::say(format_args!(
        "exported {} files, {} bytes in {seconds:.2} s, {speed:.1} MB/s; {} failed{incomplete}",
        t.files, t.bytes, t.failed
    ))
}
