//! The files to import, in the order of their names, handed out in numbered chunks.
//!
//! Owns: [`Walk`]. Used by several threads behind a lock; looks at directories only, never
//! into files. Links are not followed.
//!
//! Invariant: names come in byte order, as a store lists them: a directory is sorted by its name
//! with a slash behind it. So two walks, or a walk and a listing, can be compared as they go, and
//! names that come in order fill the pages of the store's tree.
//!
//! Memory: for that order a directory has to be read whole: its names and 11 bytes for each, of
//! the directories from the root to the one at work.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::exclude::Excludes;
use crate::files::{self, COMMON_DIR};

/// Files in a chunk: enough that handing one out costs little against reading it.
const CHUNK_FILES: usize = 32;

/// What the walk met.
pub struct Found {
    /// Name of its object.
    pub name: Vec<u8>,
    /// What it is.
    pub what: What,
}

/// What lies under a name.
pub enum What {
    /// A regular file.
    File(Place),
    /// Neither a file nor a directory, or left out as the user wants: what it is.
    Skipped(&'static str),
    /// A directory that could not be read: why.
    Unread(String),
}

/// Where a file lies.
#[derive(Clone)]
pub struct Place {
    /// Its path.
    pub path: PathBuf,
    /// The attribute `dirs`.
    pub dirs: Option<Arc<[u8]>>,
}

/// A walk through one directory tree.
pub struct Walk<'e> {
    root: PathBuf,
    prefix: Vec<u8>,
    excludes: &'e Excludes,
    /// The directories that were entered, from the root on.
    way: Vec<Listing>,
    started: bool,
    next: u64,
}

/// What is left of a directory.
struct Listing {
    /// Path below the root; with a slash behind it but for the root itself.
    below: Vec<u8>,
    modes: Vec<u32>,
    dirs: Option<Arc<[u8]>>,
    /// For each entry its kind (1 byte), the length of its name (2), the name.
    bytes: Vec<u8>,
    /// Where entries begin, the next one last.
    starts: Vec<usize>,
    /// What ended the reading of it.
    broken: Option<io::Error>,
}

/// What is said of a symbolic link.
pub const LINK: &str = "link";
/// What is said of what `--exclude` leaves out.
pub const EXCLUDED: &str = "excluded";

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Link,
    Special,
}

impl Kind {
    fn of(found: FileType) -> Self {
        match found {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }

    fn from_byte(byte: u8) -> Self {
        let all = [Self::File, Self::Directory, Self::Link];
        all.into_iter().find(|kind| *kind as u8 == byte).unwrap_or(Self::Special)
    }
}

impl<'e> Walk<'e> {
    /// A walk through `root`.
    pub fn new(root: &Path, prefix: &[u8], excludes: &'e Excludes) -> Self {
        let (root, prefix) = (root.into(), prefix.into());
        Self { root, prefix, excludes, way: Vec::new(), started: false, next: 0 }
    }

    /// The next chunk and its number, counted from 0; `None` at the end.
    pub fn next_chunk(&mut self) -> Option<(u64, Vec<Found>)> {
        let chunk: Vec<Found> = self.by_ref().take(CHUNK_FILES).collect();
        if chunk.is_empty() {
            return None;
        }
        let number = self.next;
        self.next += 1;
        Some((number, chunk))
    }

    fn enter(&mut self, below: Vec<u8>) -> Option<Found> {
        let modes = self.way.last().map_or(&[][..], |dir| &dir.modes);
        match Listing::read(&self.path(&below), &below, modes) {
            Ok(mut listing) => {
                // Before the entries: some below it may be missing among them.
                let broken = listing.broken.take();
                self.way.push(listing);
                broken.map(|error| self.found(&below, What::Unread(error.to_string())))
            }
            Err(error) => Some(self.found(&below, What::Unread(error.to_string()))),
        }
    }

    fn path(&self, below: &[u8]) -> PathBuf {
        files::os_string(below).map_or_else(|| self.root.clone(), |below| self.root.join(below))
    }

    fn found(&self, below: &[u8], what: What) -> Found {
        Found { name: [&self.prefix, below].concat(), what }
    }

    /// What an entry is; `None` for a directory, which is entered.
    fn look(&mut self, kind: Kind, below: Vec<u8>, dirs: Option<Arc<[u8]>>) -> Option<Found> {
        let is_dir = kind == Kind::Directory;
        let plain = below.strip_suffix(b"/").unwrap_or(&below);
        if self.excludes.leave_out(plain, is_dir) {
            return Some(self.found(&below, What::Skipped(EXCLUDED)));
        }
        let what = match kind {
            Kind::File => What::File(Place { path: self.path(&below), dirs }),
            Kind::Directory => return self.enter(below),
            Kind::Link => What::Skipped(LINK),
            Kind::Special => What::Skipped("special file"),
        };
        Some(self.found(&below, what))
    }
}

impl Iterator for Walk<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if !self.started {
            self.started = true;
            if let Some(unread) = self.enter(Vec::new()) {
                return Some(unread);
            }
        }
        loop {
            let dir = self.way.last_mut()?;
            let Some((kind, below)) = dir.pop() else {
                self.way.pop();
                continue;
            };
            let dirs = dir.dirs.clone();
            if let Some(found) = self.look(kind, below, dirs) {
                return Some(found);
            }
        }
    }
}

impl Listing {
    fn read(path: &Path, below: &[u8], above: &[u32]) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let mut modes = above.to_vec();
        modes.push(files::mode(&dir.metadata()?) & 0o777);
        let dirs = modes.iter().any(|mode| *mode != COMMON_DIR).then(|| {
            let modes: Vec<String> = modes.iter().map(|mode| format!("{mode:o}")).collect();
            modes.join("/").into_bytes().into()
        });
        let (bytes, starts) = (Vec::new(), Vec::new());
        let mut listing = Self { below: below.into(), modes, dirs, bytes, starts, broken: None };
        listing.broken = listing.fill(&dir).err();
        let bytes = &listing.bytes;
        listing.starts.sort_unstable_by(|a, b| entry(bytes, *b).1.cmp(entry(bytes, *a).1));
        Ok(listing)
    }

    fn fill(&mut self, dir: &File) -> io::Result<()> {
        for entry in Dir::read_from(dir)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => kind_of(dir, name),
                kind => kind,
            };
            let kind = Kind::of(kind);
            let slash: &[u8] = if kind == Kind::Directory { b"/" } else { b"" };
            let len = u16::try_from(name.len() + slash.len()).map_err(io::Error::other)?;
            self.starts.push(self.bytes.len());
            self.bytes.push(kind as u8);
            self.bytes.extend_from_slice(&len.to_le_bytes());
            self.bytes.extend_from_slice(name);
            self.bytes.extend_from_slice(slash);
        }
        Ok(())
    }

    /// The next entry: its kind and path below the root.
    fn pop(&mut self) -> Option<(Kind, Vec<u8>)> {
        let (kind, name) = entry(&self.bytes, self.starts.pop()?);
        Some((kind, [&self.below, name].concat()))
    }
}

/// Kind and name of the entry that begins at `start`.
fn entry(bytes: &[u8], start: usize) -> (Kind, &[u8]) {
    let Some(&[kind, low, high]) = bytes.get(start..start + 3) else { return (Kind::Special, &[]) };
    let len = usize::from(u16::from_le_bytes([low, high]));
    (Kind::from_byte(kind), bytes.get(start + 3..start + 3 + len).unwrap_or_default())
}

/// What lies under `name`; a file if that cannot be told, which is named when it cannot be opened.
fn kind_of(dir: &File, name: &[u8]) -> FileType {
    let name = files::os_string(name).unwrap_or_default();
    let found = rustix::fs::statat(dir, AsRef::<OsStr>::as_ref(&name), AtFlags::SYMLINK_NOFOLLOW);
    found.map_or(FileType::RegularFile, |found| FileType::from_raw_mode(found.st_mode))
}
