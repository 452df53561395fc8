//! Tables for a graph: hash tables on disk, a file each, or Holdall, one file for all.
//!
//! Owns the files. Threads: none.

use crate::allocation::block::Params;
use crate::allocation::htod::{FIXED, Htod, Shape};
use crate::allocation::pmflf::Usage;
use crate::allocation::recovery::Recovery;
use anyhow::{Context, Result};
use holdall::{Durability, Store, WriteTx};
use holdall_io::{Access, Disk, FileStorage, Storage};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// Tables by number. Errors are those of the store.
#[expect(clippy::missing_errors_doc, reason = "all of them are the store's")]
pub trait Tables {
    /// Makes an empty table; one of that number that a crash left goes.
    fn add(&mut self, table: u32) -> Result<()>;
    /// Opens a table made before.
    fn open(&mut self, table: u32) -> Result<()>;
    /// Stores a value under a key.
    fn put(&mut self, table: u32, key: &[u8], value: &[u8]) -> Result<()>;
    /// The value of a key.
    fn get(&mut self, table: u32, key: &[u8]) -> Result<Option<Vec<u8>>>;
    /// Every key.
    fn keys(&mut self, table: u32) -> Result<Vec<Vec<u8>>>;
    /// Brings everything to disk.
    fn checkpoint(&mut self) -> Result<()>;
    /// Shuts everything down.
    fn close(self) -> Result<()>;
}

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

/// Hash tables on disk.
pub struct HtodTables {
    disks: Disks,
    open: BTreeMap<u32, Htod>,
    /// What opening took.
    recovery: Recovery,
}

impl std::fmt::Debug for HtodTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HtodTables").field("open", &self.open.len()).finish_non_exhaustive()
    }
}

/// From this number on a table is a cache.
pub const LARGE: u32 = 1 << 30;

/// Nodes and caches get much room at once, edges little.
fn params(table: u32) -> Params {
    let large = table == 0 || table >= LARGE;
    Params { growth: if large { 4 << 20 } else { 64 << 10 }, ..Params::default() }
}

impl HtodTables {
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
    ///
    /// # Errors
    /// Those of the disks.
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
    ///
    /// # Errors
    /// Those of the disks.
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
}

impl Tables for HtodTables {
    fn add(&mut self, table: u32) -> Result<()> {
        let disk = (self.disks)(table, true)?;
        let seed = u64::from(table) + 1;
        let made = Htod::create(disk, params(table), Shape::default(), seed)?;
        self.open.insert(table, made);
        Ok(())
    }

    fn open(&mut self, table: u32) -> Result<()> {
        let disk = (self.disks)(table, false)?;
        let (made, found) = Htod::open(disk, params(table), Shape::default().ratio)?;
        self.recovery.clean = found.clean;
        self.recovery.headers += found.headers;
        self.recovery.behind_tail += found.behind_tail;
        self.open.insert(table, made);
        Ok(())
    }

    fn put(&mut self, table: u32, key: &[u8], value: &[u8]) -> Result<()> {
        self.table(table)?.put(key, value)?;
        Ok(())
    }

    fn get(&mut self, table: u32, key: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(self.table(table)?.get(key)?)
    }

    fn keys(&mut self, table: u32) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::new();
        self.table(table)?.keys(|key| all.push(key))?;
        Ok(all)
    }

    fn checkpoint(&mut self) -> Result<()> {
        for table in self.open.values_mut() {
            table.checkpoint()?;
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        for (_, table) in self.open {
            table.close()?;
        }
        Ok(())
    }
}

/// Tables in one store of Holdall: names of the table's number and the key. Changes since the
/// last checkpoint are one transaction.
#[derive(Debug)]
pub struct HoldallTables {
    store: Store,
    tx: Option<WriteTx>,
}

impl HoldallTables {
    /// Tables in `store`.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store, tx: None }
    }

    fn commit(&mut self) -> Result<()> {
        if let Some(tx) = self.tx.take() {
            tx.commit()?;
            self.store.flush()?;
        }
        Ok(())
    }

    fn name(table: u32, key: &[u8]) -> Vec<u8> {
        [&table.to_be_bytes(), key].concat()
    }
}

impl Tables for HoldallTables {
    fn add(&mut self, table: u32) -> Result<()> {
        for key in self.keys(table)? {
            self.store.write(|tx| tx.remove(Self::name(table, &key)))?;
        }
        Ok(())
    }

    fn open(&mut self, _: u32) -> Result<()> {
        Ok(())
    }

    fn put(&mut self, table: u32, key: &[u8], value: &[u8]) -> Result<()> {
        if self.tx.is_none() {
            let mut tx = self.store.begin_write()?;
            tx.set_durability(Durability::Deferred);
            self.tx = Some(tx);
        }
        let tx = self.tx.as_mut().context("no transaction")?;
        tx.put(Self::name(table, key), value)?;
        Ok(())
    }

    fn get(&mut self, table: u32, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let name = Self::name(table, key);
        match &mut self.tx {
            Some(tx) => Ok(tx.get(&name)?),
            None => {
                let mut value = Vec::new();
                Ok(self.store.get_into(&name, &mut value)?.then_some(value))
            }
        }
    }

    fn keys(&mut self, table: u32) -> Result<Vec<Vec<u8>>> {
        self.commit()?;
        let mut keys = Vec::new();
        for entry in self.store.read()?.names(table.to_be_bytes()) {
            keys.push(entry?.name.split_off(4));
        }
        Ok(keys)
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.commit()?;
        Ok(self.store.checkpoint()?)
    }

    fn close(mut self) -> Result<()> {
        self.commit()?;
        Ok(self.store.close()?)
    }
}
