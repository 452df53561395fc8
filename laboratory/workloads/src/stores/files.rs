//! Plain files: one for each object, in 256 directories.
//!
//! Each put is a safe write: a temporary file is written and synced, renamed over the old
//! one, and the directory is synced. A commit of several objects syncs each directory once,
//! after all renames; it is not atomic, as files have no way to be so. An edit writes the
//! whole file anew the same way: to rewrite the tail in place would not be safe.

use crate::peer::{Maker, Peer, Setup};
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Directories.
const SHARDS: u64 = 256;
/// Bytes of a write when an object comes as a stream.
const PIECE: usize = 1 << 20;

/// Opens a directory of files.
#[derive(Debug)]
pub struct Files;

impl Maker for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    fn settings(&self, _setup: &Setup) -> String {
        format!(
            "{SHARDS} directories; safe write by temporary, fsync, rename and directory fsync \
             (each directory once for a commit, which is not atomic); an edit writes the whole \
             file anew so; no cache but the system's"
        )
    }

    fn open(&self, dir: &Path, _setup: &Setup) -> Result<Box<dyn Peer>> {
        let shards = (0..SHARDS).map(|i| {
            let path = dir.join(format!("{i:02x}"));
            match fs::create_dir(&path) {
                Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
                _ => {}
            }
            Ok(Shard { handle: File::open(&path)?, path })
        });
        let shards = shards.collect::<io::Result<Vec<_>>>()?;
        // The directories' own names, or a crash could lose them with all in them.
        File::open(dir)?.sync_all()?;
        Ok(Box::new(Opened { shards, temporaries: AtomicU64::new(0) }))
    }
}

struct Shard {
    path: PathBuf,
    handle: File,
}

struct Opened {
    shards: Vec<Shard>,
    temporaries: AtomicU64,
}

impl Opened {
    /// Which directory a key's file is in: FNV-1a, so that neighbours are spread.
    fn shard(&self, key: &[u8]) -> usize {
        let step = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
        (key.iter().fold(0xcbf2_9ce4_8422_2325, step) % SHARDS) as usize
    }

    fn path(&self, key: &[u8]) -> PathBuf {
        let mut name = String::with_capacity(key.len() * 2);
        for b in key {
            // Writing to a string cannot fail.
            let _ = std::fmt::Write::write_fmt(&mut name, format_args!("{b:02x}"));
        }
        self.shards[self.shard(key)].path.join(name)
    }

    /// Writes and syncs a temporary beside where the key's file is.
    fn write(&self, key: &[u8], write: impl FnOnce(&mut File) -> Result<()>) -> Result<PathBuf> {
        let number = self.temporaries.fetch_add(1, Ordering::Relaxed);
        let path = self.shards[self.shard(key)].path.join(format!("temporary-{number}"));
        let mut file = File::create(&path)?;
        write(&mut file)?;
        file.sync_all()?;
        Ok(path)
    }

    fn sync(&self, shards: &BTreeSet<usize>) -> Result<()> {
        for shard in shards {
            self.shards[*shard].handle.sync_all()?;
        }
        Ok(())
    }

    fn safe_write(&self, key: &[u8], write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
        fs::rename(self.write(key, write)?, self.path(key))?;
        self.sync(&BTreeSet::from([self.shard(key)]))
    }
}

impl Peer for Opened {
    fn put(&self, items: &[(&[u8], &[u8])]) -> Result<()> {
        let mut written = Vec::with_capacity(items.len());
        for (key, bytes) in items {
            written.push(self.write(key, |file| Ok(file.write_all(bytes)?))?);
        }
        let mut shards = BTreeSet::new();
        for ((key, _), temporary) in items.iter().zip(written) {
            fs::rename(temporary, self.path(key))?;
            shards.insert(self.shard(key));
        }
        self.sync(&shards)
    }

    /// Files without a sync each; [`Peer::settle`] syncs all.
    fn preload(&self, items: &[(&[u8], &[u8])]) -> Result<()> {
        items.iter().try_for_each(|(key, bytes)| Ok(fs::write(self.path(key), bytes)?))
    }

    fn put_stream(&self, key: &[u8], size: u64, next: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        self.safe_write(key, |file| {
            let mut piece = vec![0; PIECE];
            let mut left = size;
            while left > 0 {
                let n = left.min(PIECE as u64) as usize;
                next(&mut piece[..n]);
                file.write_all(&piece[..n])?;
                left -= n as u64;
            }
            Ok(())
        })
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let file = match File::open(self.path(key)) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        out.resize(usize::try_from(file.metadata()?.len())?, 0);
        file.read_exact_at(out, 0)?;
        Ok(true)
    }

    fn get_range(&self, key: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
        Ok(File::open(self.path(key))?.read_exact_at(out, offset)?)
    }

    fn splice(&self, key: &[u8], offset: u64, delete: u64, insert: &[u8]) -> Result<()> {
        let mut old = File::open(self.path(key)).context("no object of this key")?;
        self.safe_write(key, |file| {
            let first = io::copy(&mut Read::by_ref(&mut old).take(offset), file)?;
            ensure!(first == offset, "the range is not in the object");
            file.write_all(insert)?;
            old.seek(SeekFrom::Start(offset + delete))?;
            io::copy(&mut old, file)?;
            Ok(())
        })
    }

    fn delete(&self, keys: &[&[u8]]) -> Result<()> {
        let mut shards = BTreeSet::new();
        for key in keys {
            fs::remove_file(self.path(key))?;
            shards.insert(self.shard(key));
        }
        self.sync(&shards)
    }

    fn settle(&self) -> Result<()> {
        Ok(rustix::fs::syncfs(&self.shards[0].handle)?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
