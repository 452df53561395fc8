//! A file or stream that an option names for output.
//!
//! Owns: [`Outlet`], where it leads, and [`Outflow`], what is written to. A regular file is
//! replaced whole or not at all, and keeps its owner and permissions. A link to one keeps pointing
//! to it.
//! A stream that is open, a device or a pipe is written to as it is, never replaced.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use holdall::Store;

use crate::failure::{Failure, Outcome};
use crate::place::{self, Place, Use};
use crate::replacement::{Replacement, set_rights};
use crate::{open, own};

/// Where output goes.
pub struct Outlet<'p> {
    /// As it was given.
    label: &'p Path,
    place: Place,
}

/// An outlet that is open.
pub enum Outflow {
    /// A stream.
    Stream(File),
    /// A new file, and what was known of the one it replaces.
    New(Replacement, Option<Box<Metadata>>),
}

impl<'p> Outlet<'p> {
    /// Finds where `path` leads; `-` is standard output. To be called before the store is opened.
    pub fn find(path: &'p Path) -> Outcome<Self> {
        let path = if path == Path::new("-") { Path::new("/dev/stdout") } else { path };
        let place = place::find(path, Use::Write).map_err(|e| Failure::file("write", path, &e))?;
        if let Place::Path(found) = &place
            && (found.is_dir() || names_directory(found) || names_directory(path))
        {
            let what = format!("{} is a directory", path.display());
            return Err(Failure::new(what, "give a file to write to"));
        }
        Ok(Self { label: path, place })
    }

    /// Refuses what belongs to the store.
    pub fn refuse_own(&self, store: &Store) -> Outcome {
        match &self.place {
            Place::Descriptor(file) => {
                let found = file.metadata().map_err(|e| self.failed(&e))?;
                own::refuse_written(store, &found, self.label)
            }
            Place::Path(path) => {
                own::refuse_output(store, self.label)?;
                own::refuse_output(store, path)
            }
        }
    }

    /// Whether it is the file that standard output goes to.
    pub fn is_stdout(&self) -> bool {
        let Place::Descriptor(file) = &self.place else { return false };
        let (Ok(one), Ok(other)) = (rustix::fs::fstat(file), rustix::fs::fstat(io::stdout()))
        else {
            return false;
        };
        own::id(&one) == own::id(&other)
    }

    /// Opens it; a pipe is waited for.
    pub fn open(&self) -> Outcome<Outflow> {
        self.opened().map_err(|e| self.failed(&e))
    }

    fn opened(&self) -> io::Result<Outflow> {
        let path = match &self.place {
            Place::Descriptor(file) => return file.try_clone().map(Outflow::Stream),
            Place::Path(path) => path,
        };
        let before = fs::metadata(path).ok();
        match before {
            Some(data) if !data.is_file() => {
                OpenOptions::new().write(true).open(path).map(Outflow::Stream)
            }
            before => Ok(Outflow::New(Replacement::beside(path)?, before.map(Box::new))),
        }
    }

    /// The failure of writing to it; a stream that nobody reads any more is no error.
    pub fn failed(&self, error: &io::Error) -> Failure {
        match &self.place {
            Place::Descriptor(_) if error.kind() == io::ErrorKind::BrokenPipe => Failure::Pipe,
            _ => open::path_failure("write", self.label, error),
        }
    }
}

/// Whether only a directory can have this name: `a/` and `a/.`, of which the last part is `a`.
fn names_directory(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.")
}

impl Outflow {
    /// The file to write to.
    pub fn file(&mut self) -> io::Result<&mut File> {
        match self {
            Self::Stream(file) => Ok(file),
            Self::New(new, _) => new.file(),
        }
    }

    /// Puts a new file in its place; `mode` is that of what was written, if it has one.
    pub fn finish(self, mode: Option<u32>) -> io::Result<()> {
        match self {
            Self::Stream(_) => Ok(()),
            Self::New(mut new, replaced) => {
                set_rights(new.file()?, replaced.as_deref(), mode)?;
                new.finish()
            }
        }
    }
}
