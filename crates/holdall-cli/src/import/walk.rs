//! The files to import, in the order of their names, handed out in numbered chunks.
//!
//! Owns: [`Walk`]. Used by several threads behind a lock; looks at directories only, never
//! into files. Links are not followed, also not one that takes a directory's place meanwhile: all
//! paths lead from the open directory on (`below`), and a directory is read that was opened.
//!
//! Invariant: names come in byte order, as a store lists them: a directory is sorted by its name
//! with a slash behind it. So two walks, or a walk and a listing, can be compared as they go, and
//! names that come in order fill the pages of the store's tree.
//!
//! Memory: for that order a directory has to be read whole: its names and 11 bytes for each, of
//! the directories from the root to the one at work.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FileType};

use super::exclude::Excludes;
use crate::leftovers::is_temporary;
use crate::{below, dirs, files};

/// Files in a chunk: enough that handing one out costs little against reading it.
const CHUNK_FILES: usize = 32;
/// Bytes that the attributes beside `dirs` take, and its key.
pub const OTHERS: usize = 80;

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
    /// A directory, before what lies in it: its nine permission bits. Its name ends with a slash,
    /// but for the root's.
    Directory(u32),
    /// Neither a file nor a directory, or left out as the user wants: what it is.
    Skipped(&'static str),
    /// A directory that could not be read: why.
    Unread(String),
}

/// Where a file lies.
#[derive(Clone)]
pub struct Place {
    /// The imported directory.
    pub root: Arc<OwnedFd>,
    /// Its path from there on.
    pub below: PathBuf,
    /// The attribute `dirs`.
    pub dirs: Option<Arc<[u8]>>,
}

impl Place {
    /// Opens the file that was met here.
    ///
    /// # Errors
    /// Those of [`below::open_regular`].
    pub fn open(&self) -> io::Result<(File, Metadata)> {
        below::open_regular(&self.root, &self.below)
    }

    /// What lies here now.
    ///
    /// # Errors
    /// Those of the system.
    pub fn data(&self) -> io::Result<Metadata> {
        below::data(&self.root, &self.below)
    }
}

/// A walk through one directory tree.
pub struct Walk<'e> {
    root: Arc<OwnedFd>,
    prefix: Vec<u8>,
    excludes: &'e Excludes,
    /// Bytes that the attribute `dirs` may take.
    most: usize,
    /// The directories that were entered, from the root on.
    way: Vec<Listing>,
    started: bool,
    next: u64,
}

/// What is left of a directory.
struct Listing {
    /// Path below the root; with a slash behind it but for the root itself.
    below: Vec<u8>,
    /// Of the directories from the root on.
    modes: Vec<Option<u32>>,
    dirs: Option<Arc<[u8]>>,
    /// For each entry its kind (1 byte), the length of its name (2), the name.
    bytes: Vec<u8>,
    /// Where entries begin, the next one last.
    starts: Vec<usize>,
    /// What ended the reading of it.
    broken: Option<io::Error>,
}

/// The note on a symbolic link.
pub const LINK: &str = "link";
/// The note on what `--exclude` leaves out.
pub const EXCLUDED: &str = "excluded";
/// The note on what an export or `get` has begun.
pub const TEMPORARY: &str = "a temporary file of holdall";

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Link,
    Special,
}

impl Kind {
    fn from_type(found: FileType) -> Self {
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
    /// A walk through `root`; an object's attributes may take `most` bytes.
    pub fn new(root: &Arc<OwnedFd>, prefix: &[u8], excludes: &'e Excludes, most: usize) -> Self {
        let (root, prefix, most) = (root.clone(), prefix.into(), most.saturating_sub(OTHERS));
        Self { root, prefix, excludes, most, way: Vec::new(), started: false, next: 0 }
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

    fn enter(&mut self, below: Vec<u8>) -> Found {
        let what = match self.read(&below) {
            Ok(mut listing) => {
                let bits = listing.modes.last().copied().flatten().unwrap_or(dirs::COMMON);
                // Before the entries: some below it may be missing among them.
                let broken = listing.broken.take();
                self.way.push(listing);
                broken.map_or(What::Directory(bits), |error| What::Unread(error.to_string()))
            }
            Err(error) => What::Unread(error.to_string()),
        };
        self.report(&below, what)
    }

    fn read(&self, below: &[u8]) -> io::Result<Listing> {
        let path = files::os_string(below).unwrap_or_default();
        let dir = below::open_listing(&self.root, path.as_ref())?;
        let mut modes = self.way.last().map_or_else(Vec::new, |dir| dir.modes.clone());
        modes.push(Some(files::mode(&dir.metadata()?) & 0o777));
        // With directories in the prefix nobody could tell which of them was the imported one.
        let is_common = modes.iter().all(|mode| *mode == Some(dirs::COMMON));
        let is_told = !is_common || self.prefix.contains(&b'/');
        let dirs = is_told.then(|| dirs::short(&modes, self.most)).flatten().map(Into::into);
        Ok(Listing::read(&dir, below, modes, dirs))
    }

    fn report(&self, below: &[u8], what: What) -> Found {
        Found { name: [&self.prefix, below].concat(), what }
    }

    /// What an entry is; a directory is entered.
    fn visit(&mut self, kind: Kind, below: Vec<u8>, dirs: Option<Arc<[u8]>>) -> Found {
        let is_dir = kind == Kind::Directory;
        let plain = below.strip_suffix(b"/").unwrap_or(&below);
        if self.excludes.leave_out(plain, is_dir) {
            return self.report(&below, What::Skipped(EXCLUDED));
        }
        let last = plain.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let what = match kind {
            Kind::Link => What::Skipped(LINK),
            Kind::Special => What::Skipped("special file"),
            _ if is_temporary(last) => What::Skipped(TEMPORARY),
            Kind::Directory => return self.enter(below),
            Kind::File => {
                let path = files::os_string(&below).unwrap_or_default().into();
                What::File(Place { root: self.root.clone(), below: path, dirs })
            }
        };
        self.report(&below, what)
    }
}

impl Iterator for Walk<'_> {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if !self.started {
            self.started = true;
            return Some(self.enter(Vec::new()));
        }
        loop {
            let dir = self.way.last_mut()?;
            let Some((kind, below)) = dir.pop() else {
                self.way.pop();
                continue;
            };
            let dirs = dir.dirs.clone();
            return Some(self.visit(kind, below, dirs));
        }
    }
}

impl Listing {
    fn read(dir: &File, below: &[u8], modes: Vec<Option<u32>>, dirs: Option<Arc<[u8]>>) -> Self {
        let (bytes, starts) = (Vec::new(), Vec::new());
        let mut listing = Self { below: below.into(), modes, dirs, bytes, starts, broken: None };
        listing.broken = listing.fill(dir).err();
        let bytes = &listing.bytes;
        listing.starts.sort_unstable_by(|a, b| entry(bytes, *b).1.cmp(entry(bytes, *a).1));
        listing
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
            let kind = Kind::from_type(kind);
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

/// What lies under `name`; a file if that is not known, which is named when it cannot be opened.
fn kind_of(dir: &File, name: &[u8]) -> FileType {
    let name = files::os_string(name).unwrap_or_default();
    let found = rustix::fs::statat(dir, AsRef::<OsStr>::as_ref(&name), AtFlags::SYMLINK_NOFOLLOW);
    found.map_or(FileType::RegularFile, |found| FileType::from_raw_mode(found.st_mode))
}
