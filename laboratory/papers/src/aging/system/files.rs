//! One file for each object, in one directory (Sears §2.2, §4.2).
//!
//! A safe write is a temporary file, its sync, a rename and a sync of the directory.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::FallocateFlags;

use super::super::places::{extents, runs};
use super::face::{Ask, System};
use holdall_instrument::draw::number;

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

    /// Extents of files, and of one of 1 MiB written by requests of 4 KiB before and after its
    /// sync: what had no place then is placed at once.
    fn account(&mut self, keys: &[u64]) -> Result<String> {
        let mut all = 0;
        for &key in keys {
            all += runs(&extents(&self.path(key))?);
        }
        let mut text = format!("{} extents a file", number(all as f64 / keys.len() as f64));
        let probe = self.dir.join("temporary");
        let mut file = File::create(&probe)?;
        // If the volume is full there is no room for it.
        if (0..256).all(|_| file.write_all(&[1; 4096]).is_ok()) {
            let before = runs(&extents(&probe)?);
            file.sync_all()?;
            let after = runs(&extents(&probe)?);
            let _ = write!(
                text,
                "; of 256 requests of 4 KB {before} extents before the sync, {after} after it"
            );
        }
        fs::remove_file(&probe)?;
        Ok(text)
    }
}
