//! Tables for a graph: hash tables on disk, a file each. Owns the files. Threads: none.

use crate::allocation::block::Params;
use crate::allocation::htod::{FIXED, Htod, Shape};
use crate::allocation::pmflf::Usage;
use crate::allocation::recovery::Recovery;
use anyhow::{Context, Result};
use holdall_io::{Access, Disk, FileStorage, Storage};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// From this number on a table is a cache.
pub const LARGE: u32 = 1 << 30;

/// Gives the disk of a table; emptied if asked for.
pub type Disks = Box<dyn Fn(u32, bool) -> Result<Arc<dyn Disk>>>;

/// A file for each table in `dir`.
#[must_use]
pub fn files(dir: PathBuf) -> Disks {
    Box::new(move |table, fresh| {
        let path = dir.join(format!("table-{table}"));
        if fresh && path.exists() {
            fs::remove_file(&path)?;
        }
        let storage = if fresh {
            FileStorage::create(&path)?
        } else {
            FileStorage::open(&path, Access::ReadWrite)?
        };
        Ok(storage.volume())
    })
}

/// Tables by number.
pub struct Tables {
    disks: Disks,
    open: BTreeMap<u32, Htod>,
    /// What opening took.
    recovery: Recovery,
}

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tables").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

/// Nodes and caches get much room at once, edges little.
fn params(table: u32) -> Params {
    let large = table == 0 || table >= LARGE;
    Params { growth: if large { 4 << 20 } else { 64 << 10 }, ..Params::default() }
}

#[expect(clippy::missing_errors_doc, reason = "all of them are the disks'")]
impl Tables {
    /// No tables yet, on disks that `disks` gives.
    #[must_use]
    pub fn new(disks: Disks) -> Self {
        Self { disks, open: BTreeMap::new(), recovery: Recovery::default() }
    }

    /// What opening the tables took, in sum.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// What the files of some tables hold, in sum, and bytes of their files.
    pub fn usage(&self, of: impl Fn(u32) -> bool) -> Result<(Usage, u64)> {
        let (mut sum, mut bytes) = (Usage::default(), 0);
        for (_, table) in self.open.iter().filter(|(table, _)| of(**table)) {
            let one = table.store().usage();
            sum.blocks += one.blocks;
            sum.allocated += one.allocated;
            sum.requested += one.requested;
            sum.free_blocks += one.free_blocks;
            sum.free += one.free;
            sum.tail += one.tail;
            sum.most += one.most;
            bytes += table.store().file_bytes()?;
        }
        Ok((sum, bytes))
    }

    /// Bytes of each object of some tables: its links and lengths, key and value.
    pub fn sizes(&self, of: impl Fn(u32) -> bool) -> Result<Vec<usize>> {
        let mut sizes = Vec::new();
        for (_, table) in self.open.iter().filter(|(table, _)| of(**table)) {
            table.entries(|key, value| {
                sizes.push(FIXED + key.len() + value.len());
                ControlFlow::Continue(())
            })?;
        }
        Ok(sizes)
    }

    fn table(&mut self, table: u32) -> Result<&mut Htod> {
        self.open.get_mut(&table).with_context(|| format!("no table {table}"))
    }

    /// Makes an empty table; one of that number that a crash left goes.
    pub fn add(&mut self, table: u32) -> Result<()> {
        let disk = (self.disks)(table, true)?;
        let seed = u64::from(table) + 1;
        let made = Htod::create(disk, params(table), Shape::default(), seed)?;
        self.open.insert(table, made);
        Ok(())
    }

    /// Opens a table made before.
    pub fn open(&mut self, table: u32) -> Result<()> {
        let disk = (self.disks)(table, false)?;
        let (made, found) = Htod::open(disk, params(table), Shape::default().ratio)?;
        self.recovery.clean = found.clean;
        self.recovery.headers += found.headers;
        self.recovery.behind_tail += found.behind_tail;
        self.open.insert(table, made);
        Ok(())
    }

    /// Stores a value under a key.
    pub fn put(&mut self, table: u32, key: &[u8], value: &[u8]) -> Result<()> {
        self.table(table)?.put(key, value)?;
        Ok(())
    }

    /// The value of a key.
    pub fn get(&mut self, table: u32, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.table(table)?.get(key)?)
    }

    /// Every key.
    pub fn keys(&mut self, table: u32) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        self.table(table)?.keys(|key| all.push(key))?;
        Ok(all)
    }

    /// Brings everything to disk.
    pub fn checkpoint(&mut self) -> Result<()> {
        for table in self.open.values_mut() {
            table.checkpoint()?;
        }
        Ok(())
    }

    /// Shuts everything down.
    pub fn close(self) -> Result<()> {
        for (_, table) in self.open {
            table.close()?;
        }
        Ok(())
    }
}
