//! The stores that the paper compares, one trait for all: blocks by PMFLF, the hash table, one
//! file per object, SQLite, PostgreSQL as a server, and Holdall. Owns their files in a directory
//! given. Threads: none.

mod databases;
mod peer;

use self::databases::{Database, Engine};
pub use self::peer::{Look, Peer};
use super::block::{Block, Params};
use super::htod::{Htod, Shape};
use super::pmflf::{Pmflf, Usage};
use anyhow::{Context, Result};
use holdall_io::{Disk, FileStorage, Storage};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Which stores there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// PMFLF, its blocks remembered by the caller.
    Blocks,
    /// The hash table on disk.
    Table,
    /// One file per object.
    Files,
    /// SQLite, with a write-ahead log.
    Sqlite,
    /// PostgreSQL, a server of its own.
    Postgres,
    /// This project's engine.
    Holdall,
}

impl Kind {
    /// What the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocks => "PMFLF",
            Self::Table => "HTOD",
            Self::Files => "files",
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Holdall => "Holdall",
        }
    }

    /// A new store in `dir`, which is empty.
    pub fn open(self, dir: &Path, durable: bool) -> Result<Box<dyn Peer>> {
        let params = Params { barriers: durable, ..Params::default() };
        let disk =
            || -> Result<Arc<dyn Disk>> { Ok(FileStorage::create(dir.join("blocks"))?.volume()) };
        Ok(match self {
            Self::Blocks => {
                let store = Pmflf::create(disk()?, params, 1)?;
                Box::new(Blocks { store, places: HashMap::new(), durable })
            }
            Self::Table => Box::new((Htod::create(disk()?, params, Shape::default(), 1)?, durable)),
            Self::Files => Box::new(Files { dir: dir.to_owned(), durable, written: Vec::new() }),
            Self::Sqlite => Box::new(databases::sqlite(dir, durable)?),
            Self::Postgres => Box::new(Database::open(dir, durable)?),
            Self::Holdall => Box::new(Engine::open(dir, durable)?),
        })
    }
}

/// Bytes of blocks that a directory and all in it take.
pub fn disk_used(dir: &Path) -> Result<u64> {
    let mut bytes = fs::metadata(dir)?.blocks() * 512;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let folder = entry.file_type()?.is_dir();
        bytes += if folder { disk_used(&entry.path())? } else { entry.metadata()?.blocks() * 512 };
    }
    Ok(bytes)
}

struct Blocks {
    store: Pmflf,
    places: HashMap<String, (Block, usize)>,
    durable: bool,
}

impl Peer for Blocks {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let block = self.store.put(value)?;
        if let Some((old, len)) = self.places.insert(key.to_owned(), (block, value.len())) {
            self.store.free(old, len)?;
        }
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        let (block, len) = self.places.remove(key).context("no such object")?;
        Ok(self.store.free(block, len)?)
    }

    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()> {
        let (block, len) = self.places.get(key).context("no such object")?;
        out.resize(*len, 0);
        Ok(self.store.read(block.at, 0, out)?)
    }

    fn look(&mut self, _: Look) -> Result<u64> {
        anyhow::bail!("blocks alone have no keys")
    }

    fn commit(&mut self) -> Result<()> {
        if self.durable { Ok(self.store.sync()?) } else { Ok(()) }
    }

    fn usage(&self) -> Option<Usage> {
        Some(self.store.usage())
    }
}

impl Peer for (Htod, bool) {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.0.put(key.as_bytes(), value)?;
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        self.0.remove(key.as_bytes())?;
        Ok(())
    }

    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()> {
        *out = self.0.get(key.as_bytes())?.context("no such object")?;
        Ok(())
    }

    fn look(&mut self, look: Look) -> Result<u64> {
        let mut bytes = 0;
        match look {
            Look::Keys => self.0.keys(|key| bytes += key.len() as u64)?,
            Look::Values => self.0.values(|value| bytes += value.len() as u64)?,
            Look::Both => self.0.entries(|key, value| {
                bytes += (key.len() + value.len()) as u64;
                ControlFlow::Continue(())
            })?,
        }
        Ok(bytes)
    }

    /// The barriers within each change order its writes; the last ones are synced here.
    fn commit(&mut self) -> Result<()> {
        if self.1 { Ok(self.0.sync()?) } else { Ok(()) }
    }
}

struct Files {
    dir: PathBuf,
    durable: bool,
    written: Vec<File>,
}

impl Peer for Files {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let mut file = File::create(self.dir.join(key))?;
        std::io::Write::write_all(&mut file, value)?;
        if self.durable {
            self.written.push(file);
        }
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        Ok(fs::remove_file(self.dir.join(key))?)
    }

    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        File::open(self.dir.join(key))?.read_to_end(out)?;
        Ok(())
    }

    fn look(&mut self, look: Look) -> Result<u64> {
        let (mut bytes, mut value) = (0, Vec::new());
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let key = name.to_str().context("a name that is not ours")?;
            if look != Look::Values {
                bytes += key.len() as u64;
            }
            if look != Look::Keys {
                self.get(key, &mut value)?;
                bytes += value.len() as u64;
            }
        }
        Ok(bytes)
    }

    fn commit(&mut self) -> Result<()> {
        for file in self.written.drain(..) {
            file.sync_all()?;
        }
        if self.durable { Ok(File::open(&self.dir)?.sync_all()?) } else { Ok(()) }
    }
}
