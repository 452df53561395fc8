//! `holdall export`: writes objects as files below a directory.
//!
//! Owns: the way from a name to a path. Invariant: nothing is ever written outside the
//! directory. A name becomes a path only if each of its parts is a plain file name; below
//! the directory no link is followed, and files are written under a temporary name and
//! renamed, which replaces a link instead of following it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use holdall::{Entry, Error, FileId, Layout, Metadata, Oid, Reader, Store};
use rustix::fs::{AtFlags, FileType};
use serde_json::json;

use crate::failure::{DAMAGED, ERROR, Failure, Outcome, reason};
use crate::files::{self, CopyError, IN_MEMORY, Replacement};
use crate::progress::{Meter, Totals, rate};
use crate::{name, open, output, own};

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
    fs::create_dir_all(&args.dir).map_err(|e| Failure::file("make directory", &args.dir, &e))?;
    let failed = |e: &io::Error| Failure::file("open", &args.dir, e);
    let root = args.dir.canonicalize().map_err(|e| failed(&e))?;
    let opened = files::open_directory(&root).and_then(Dir::of).map_err(|e| failed(&e))?;
    let totals = Totals::default();
    let prefix = name::bytes(&args.prefix);
    if prefix.is_empty() {
        set_totals(&store, args.collection.as_deref(), &totals);
    }
    let mut export = Exporter {
        store: &store,
        reader: &reader,
        parent: (PathBuf::new(), opened.clone()),
        root: (root, opened),
        meter: Meter::start(Some("files"), &totals),
        tally: Tally::default(),
    };
    let outcome = export.run(prefix);
    let time = export.meter.finish();
    let tally = export.tally;
    let said = summary(args, &tally, time);
    outcome?;
    match tally {
        Tally { damaged: 1.., .. } => Err(Failure::Reported(DAMAGED)),
        Tally { failed: 1.., .. } => Err(Failure::Reported(ERROR)),
        _ => said,
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
}

/// An open directory.
#[derive(Clone)]
struct Dir {
    fd: Rc<OwnedFd>,
    id: FileId,
}

impl Dir {
    fn of(fd: OwnedFd) -> io::Result<Self> {
        let id = own::id(&rustix::fs::fstat(&fd)?);
        Ok(Self { fd: Rc::new(fd), id })
    }
}

struct Exporter<'a> {
    store: &'a Store,
    reader: &'a Reader,
    root: (PathBuf, Dir),
    /// The directory of the last file, below the root, reached without a link.
    parent: (PathBuf, Dir),
    meter: Meter<'a>,
    tally: Tally,
}

/// Why one object was not exported.
enum Problem {
    /// The others can go on.
    This(String),
    /// Its bytes are damaged; the others can go on.
    Damaged(String),
    /// No other would fare better.
    All(Failure),
}

impl Problem {
    fn system(error: &io::Error, path: &Path) -> Self {
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Self::All(Failure::file("write", path, error))
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
        let below = relative(name).map_err(|why| Problem::This(why.into()))?;
        let path = self.root.0.join(&below);
        let dir = self.enter(below.parent().unwrap_or(Path::new("")))?;
        let name = below.file_name().unwrap_or_default();
        self.refuse_own(&dir, name)?;
        if kind(&dir.fd, name).is_some_and(FileType::is_dir) {
            return Err(Problem::This("there is a directory of that name".into()));
        }
        let data = self.reader.metadata(oid)?;
        let failed = |e: &io::Error| Problem::system(e, &path);
        // Read before a file is made: a damaged object leaves nothing behind.
        let small = data.size <= IN_MEMORY && !self.has_holes(oid, &data)?;
        let whole = if small { self.reader.get(oid)? } else { None };
        let mut file = Replacement::begin(dir.fd, name).map_err(|e| failed(&e))?;
        match whole {
            Some(bytes) => {
                file.file().and_then(|f| f.write_all(&bytes)).map_err(|e| failed(&e))?;
                self.tally.bytes = self.tally.bytes.saturating_add(bytes.len() as u64);
            }
            None => self.stream(oid, file.file().map_err(|e| failed(&e))?, &path)?,
        }
        let attributes = &data.attributes;
        file.file().and_then(|f| files::restore(f, attributes)).map_err(|e| failed(&e))?;
        file.finish().map_err(|e| failed(&e))
    }

    /// Refuses what leads to a file of the store, and the place of its log.
    fn refuse_own(&self, dir: &Dir, name: &OsStr) -> Result<(), Problem> {
        self.refuse_log_place(dir, name)?;
        let Ok(found) = rustix::fs::statat(&dir.fd, name, AtFlags::empty()) else { return Ok(()) };
        if self.store.is_own_file(own::id(&found))? {
            let why = "a file of the store has that name: export into another directory";
            return Err(Problem::This(why.into()));
        }
        Ok(())
    }

    fn refuse_log_place(&self, dir: &Dir, name: &OsStr) -> Result<(), Problem> {
        if self.store.is_log_place(dir.id, name)? {
            let why = "the store's log belongs there: export into another directory";
            return Err(Problem::This(why.into()));
        }
        Ok(())
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

    /// Opens the directory `below` the root, made where it is missing; none on the way may be
    /// a link.
    fn enter(&mut self, below: &Path) -> Result<Dir, Problem> {
        if below == self.parent.0 {
            return Ok(self.parent.1.clone());
        }
        let (mut path, mut dir) = self.root.clone();
        for part in below.components() {
            let part = part.as_os_str();
            path.push(part);
            self.refuse_log_place(&dir, part)?;
            let inner = files::enter_directory(&dir.fd, part).map_err(|e| {
                let what = match kind(&dir.fd, part) {
                    Some(FileType::Symlink) => "a link",
                    Some(found) if found != FileType::Directory => "a file",
                    _ => return Problem::system(&e, &path),
                };
                let path = path.display();
                Problem::This(format!("{path} is {what} where a directory is needed"))
            })?;
            dir = Dir::of(inner).map_err(|e| Problem::system(&e, &path))?;
        }
        self.parent = (below.into(), dir.clone());
        Ok(dir)
    }
}

/// What lies under `name` in `dir`, if anything.
fn kind(dir: &OwnedFd, name: &OsStr) -> Option<FileType> {
    let found = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

/// The path of a name below the directory, or why it has none.
fn relative(name: &[u8]) -> Result<PathBuf, &'static str> {
    if name.is_empty() {
        return Err("nothing of its name is left for a path");
    }
    if name.starts_with(b"/") {
        return Err("its name is an absolute path");
    }
    if name.contains(&0) {
        return Err("its name holds a NUL byte");
    }
    let mut path = PathBuf::new();
    for part in name.split(|&byte| byte == b'/') {
        match part {
            b"" => return Err("its name has an empty part"),
            b"." | b".." => return Err("its name has a part . or .."),
            _ => {}
        }
        let part = os_string(part).ok_or("its name is not UTF-8, which this system needs")?;
        // Whatever else the system takes for more than a plain name (drives, backslashes).
        let mut parts = Path::new(&part).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(only)), None) if only == part => path.push(&part),
            _ => return Err("its name has a part that is no plain file name here"),
        }
    }
    Ok(path)
}

#[cfg(unix)]
fn os_string(part: &[u8]) -> Option<OsString> {
    use std::os::unix::ffi::OsStrExt;
    Some(OsStr::from_bytes(part).to_owned())
}

#[cfg(not(unix))]
fn os_string(part: &[u8]) -> Option<OsString> {
    std::str::from_utf8(part).ok().map(|text| OsStr::new(text).to_owned())
}

fn summary(args: &Args, t: &Tally, time: Duration) -> Outcome {
    let seconds = time.as_secs_f64();
    let speed = rate(t.bytes, time);
    if args.json {
        return output::json(&json!({
            "files": t.files, "bytes": t.bytes, "failed": t.failed, "damaged": t.damaged,
            "seconds": seconds, "mb_per_s": speed,
        }));
    }
    output::say(format_args!(
        "exported {} files, {} bytes in {seconds:.2} s, {speed:.1} MB/s; {} failed",
        t.files, t.bytes, t.failed
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_relative_names_become_paths() {
        assert_eq!(relative(b"a/b c/..d").unwrap(), Path::new("a/b c/..d"));
        assert_eq!(relative(b"-x").unwrap(), Path::new("-x"));
        let bad: [&[u8]; 12] = [
            b"",
            b"/",
            b"/etc/passwd",
            b"..",
            b"../a",
            b"a/../b",
            b"a/..",
            b"a//b",
            b"a/",
            b".",
            b"a/./b",
            b"a\0b",
        ];
        for name in bad {
            assert!(relative(name).is_err(), "{}", name::escape(name));
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_keep_their_bytes() {
        assert_eq!(name::bytes(relative(b"a\xff/b").unwrap().as_os_str()), b"a\xff/b");
    }
}
