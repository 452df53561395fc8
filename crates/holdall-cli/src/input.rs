//! The file or stream that an object's bytes come from.
//!
//! Owns: [`Input`]. Standard input and other streams that are open are read on from where they
//! are, not from their beginning. A file of the store at work is no input.

use std::fs::{File, Metadata};
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use holdall::Store;

use crate::failure::{Failure, Outcome};
use crate::place::{self, Place, Use};
use crate::{files, open, own, streams};

/// Bytes to be read.
pub struct Input {
    /// What to read from.
    pub file: File,
    /// For messages.
    pub label: PathBuf,
    /// The bytes that are left, of a regular file.
    pub left: Option<u64>,
    /// Whether it was open before.
    pub is_stream: bool,
    /// What it is.
    pub data: Metadata,
}

impl Input {
    /// Opens `path`, or standard input if it is absent or `-`, for the store at `store`. Of a
    /// directory `hint` says what to give instead.
    pub fn open(path: Option<&Path>, store: &Path, hint: &str) -> Outcome<Self> {
        let (file, label, is_stream) = match path.filter(|path| *path != Path::new("-")) {
            None => {
                streams::need_input()?;
                let label = PathBuf::from("standard input");
                let file = io::stdin().as_fd().try_clone_to_owned();
                (file.map_err(|e| Failure::file("open", &label, &e))?.into(), label, true)
            }
            Some(path) => {
                let failed = |e| open::path_failure("open", path, &e);
                match place::find(path, Use::Read).map_err(failed)? {
                    Place::Descriptor(file) => (file, path.into(), true),
                    Place::Path(_) => (File::open(path).map_err(failed)?, path.into(), false),
                }
            }
        };
        Self::of(file, label, is_stream, store, hint)
    }

    fn of(
        mut file: File,
        label: PathBuf,
        is_stream: bool,
        store: &Path,
        hint: &str,
    ) -> Outcome<Self> {
        let failed = |e| Failure::file("look at", &label, &e);
        let data = file.metadata().map_err(failed)?;
        if data.is_dir() {
            let what = format!("{} is a directory", label.display());
            return Err(Failure::new(what, hint));
        }
        own::refuse_input_early(store, &data, &label)?;
        // Only a regular file's size says how much there is to read.
        let left = match data.is_file() {
            true => Some(data.len().saturating_sub(file.stream_position().map_err(failed)?)),
            false => None,
        };
        Ok(Self { file, label, left, is_stream, data })
    }

    /// Refuses a regular file that is not as it was when it was opened: what was read of it may
    /// be partly old.
    pub fn refuse_changed(&self) -> io::Result<()> {
        let now = self.file.metadata()?;
        let times = |data: &Metadata| (data.len(), files::mtime(data), files::ctime(data));
        if self.data.is_file() && times(&now) != times(&self.data) {
            return Err(io::Error::other("it changed while it was read, nothing was stored"));
        }
        Ok(())
    }

    /// Refuses what belongs to the open store.
    pub fn refuse_own(&self, store: &Store) -> Outcome {
        own::refuse_input(store, &self.data, &self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_that_was_written_to_is_refused() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let input = Input::open(Some(file.path()), Path::new("none"), "").unwrap();
        input.refuse_changed().unwrap();
        file.write_all(b"more").unwrap();
        assert!(input.refuse_changed().is_err());
    }
}
