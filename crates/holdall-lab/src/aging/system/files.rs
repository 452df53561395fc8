//! One file for each object, in one directory (Sears §2.2, §4.2).
//!
//! A safe write is a temporary file, its sync, a rename and a sync of the directory.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::FallocateFlags;

use super::{Ask, System};

/// An open directory.
pub(super) struct Opened {
    dir: PathBuf,
    handle: File,
}

impl Opened {
    pub(super) fn open(dir: &Path) -> Result<Self> {
        Ok(Self { dir: dir.to_owned(), handle: File::open(dir)? })
    }

    fn path(&self, key: u64) -> PathBuf {
        self.dir.join(key.to_string())
    }
}

impl System for Opened {
    fn put(&mut self, key: u64, bytes: &[u8], ask: Ask) -> Result<()> {
        let temporary = self.dir.join("temporary");
        let write = || -> Result<()> {
            let mut file = File::create(&temporary)?;
            if ask.hint && !bytes.is_empty() {
                rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes.len() as u64)?;
            }
            for request in bytes.chunks(ask.request) {
                file.write_all(request)?;
            }
            Ok(file.sync_all()?)
        };
        if let Err(error) = write() {
            // The old version stays; what was begun must not take its room.
            fs::remove_file(&temporary)?;
            return Err(error);
        }
        fs::rename(&temporary, self.path(key))?;
        Ok(self.handle.sync_all()?)
    }

    /// Told the size, it reserves the blocks with the first append.
    fn append(&mut self, key: u64, bytes: &[u8], expected: Option<u64>) -> Result<()> {
        let path = self.path(key);
        let (mut file, new) = match OpenOptions::new().append(true).open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => (File::create(&path)?, true),
            file => (file?, false),
        };
        if let Some(size) = expected.filter(|_| new) {
            rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, size)?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        if new {
            self.handle.sync_all()?;
        }
        Ok(())
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<()> {
        let mut file = File::open(self.path(key)).with_context(|| format!("object {key}"))?;
        out.clear();
        file.read_to_end(out)?;
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        fs::remove_file(self.path(key))?;
        Ok(self.handle.sync_all()?)
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
