//! What belongs to the store at work: no output goes there, no input comes from there.
//!
//! Owns: the refusals. Which files are the store's is decided by the open store. Only for the
//! standard streams, which are looked at before it is opened and before anything is printed, it is
//! decided here, in the same way: by device and inode.

use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use holdall::{FileId, Result, Store};
use rustix::fs::{FileType, Stat};

use crate::failure::{ERROR, Failure, Outcome};

/// The file that `stat` is of.
pub fn id(stat: &Stat) -> FileId {
    // Their types differ from system to system.
    FileId { device: stat.st_dev as _, inode: stat.st_ino as _ }
}

/// The directory in which `path` names a file.
pub fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| *dir != Path::new("")).unwrap_or(Path::new("."))
}

/// Refuses to go on if a file of the store at `path` is standard output or standard error.
/// Then nothing can be printed on standard error, and only the exit code is left.
pub fn refuse_streams(path: &Path) -> Outcome {
    let own = files(path);
    if own.is_empty() {
        return Ok(());
    }
    if is_among(&own, io::stderr()) {
        return Err(Failure::Reported(ERROR));
    }
    if is_among(&own, io::stdout()) {
        let what = format!("standard output is a file of the store {}", path.display());
        return Err(Failure::new(what, "send it elsewhere"));
    }
    Ok(())
}

/// Refuses an input that is a file of the store at `path`, which is not open yet.
pub fn refuse_input_early(path: &Path, input: &Metadata, label: &Path) -> Outcome {
    if files(path).contains(&FileId::from_metadata(input)) { Err(no_input(label)) } else { Ok(()) }
}

/// Refuses an input that is a file of `store`.
pub fn refuse_input(store: &Store, input: &Metadata, label: &Path) -> Outcome {
    if store.is_own_file(FileId::from_metadata(input))? { Err(no_input(label)) } else { Ok(()) }
}

/// Refuses to replace or write what lies, or would lie, at `path`.
pub fn refuse_output(store: &Store, path: &Path) -> Outcome {
    if let Ok(found) = fs::metadata(path) {
        refuse_written(store, &found, path)?;
    }
    if let Some(what) = place(store, path)? {
        let what = format!("{} is the place of the store's {what}", path.display());
        return Err(Failure::new(what, "give another file to write to"));
    }
    Ok(())
}

/// Refuses to write to the file that `found` is of.
pub fn refuse_written(store: &Store, found: &Metadata, label: &Path) -> Outcome {
    if store.is_own_file(FileId::from_metadata(found))? {
        let what = format!("{} belongs to the store", label.display());
        return Err(Failure::new(what, "give another file to write to"));
    }
    Ok(())
}

/// What the store has at `path`, or will have there.
pub fn place(store: &Store, path: &Path) -> Result<Option<&'static str>> {
    let (Some(name), Ok(dir)) = (path.file_name(), directory(path).metadata()) else {
        return Ok(None);
    };
    place_in(store, FileId::from_metadata(&dir), name)
}

/// As [`place`], by a directory and a name in it.
pub fn place_in(store: &Store, dir: FileId, name: &OsStr) -> Result<Option<&'static str>> {
    if store.is_log_place(dir, name)? {
        return Ok(Some("log"));
    }
    // The socket lies beside the log, and is named alike.
    let Some(stem) = name.as_bytes().strip_suffix(b"-control") else { return Ok(None) };
    let log = OsString::from_vec([stem, b"-log"].concat());
    Ok(store.is_log_place(dir, &log)?.then_some("control socket"))
}

fn no_input(label: &Path) -> Failure {
    let what = format!("{} belongs to the store", label.display());
    Failure::new(what, "give another file to read from, or a copy made before")
}

/// The files of the store at `path` that are there.
fn files(path: &Path) -> Vec<FileId> {
    let Some(volume) = real(path) else { return Vec::new() };
    let mut log = OsString::from(&volume);
    log.push("-log");
    let found = [fs::metadata(&volume), fs::symlink_metadata(log)];
    let regular = found.into_iter().filter_map(std::result::Result::ok).filter(Metadata::is_file);
    regular.map(|data| FileId::from_metadata(&data)).collect()
}

/// The path without links, also if nothing lies there yet.
fn real(path: &Path) -> Option<PathBuf> {
    let made = || Some(directory(path).canonicalize().ok()?.join(path.file_name()?));
    path.canonicalize().ok().or_else(made)
}

fn is_among(own: &[FileId], stream: impl AsFd) -> bool {
    let Ok(stat) = rustix::fs::fstat(stream) else { return false };
    FileType::from_raw_mode(stat.st_mode).is_file() && own.contains(&id(&stat))
}
