//! redb: a copy-on-write B+-tree with its own page cache.
//!
//! Owns: the adapter. One write transaction at a time; reads take a snapshot each. A value
//! lies in one run of pages, so a view of it needs no copy.

use super::{copy_range, copy_whole, locked, mib, spliced};
use anyhow::{Context, Result};
use holdall_bench::peer::{Maker, Peer, Setup};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, Table, TableDefinition};
use std::path::Path;

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("objects");

/// Opens redb stores.
pub struct Redb;

struct Store {
    db: Database,
}

impl Maker for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn settings(&self, setup: &Setup) -> String {
        format!(
            "redb {}: one table of bytes to bytes; cache_size {} MiB; Durability::Immediate, \
             one-phase commit with checksums (both defaults: every commit is durable when it \
             returns); page size and quick-repair as by default",
            locked("redb"),
            mib(setup.cache_bytes),
        )
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Peer>> {
        let mut builder = Database::builder();
        builder.set_cache_size(usize::try_from(setup.cache_bytes)?);
        let file = dir.join("objects.redb");
        let existed = file.exists();
        let store = Store { db: builder.create(file)? };
        if !existed {
            // Opening a table for writing makes it; readers need it to exist.
            store.write(|_| Ok(()))?;
        }
        Ok(Box::new(store))
    }
}

impl Store {
    /// Runs `change` in one durable transaction.
    fn write<R>(&self, change: impl FnOnce(&mut Table<&[u8], &[u8]>) -> Result<R>) -> Result<R> {
        let mut txn = self.db.begin_write()?;
        txn.set_durability(Durability::Immediate)?;
        let done = change(&mut txn.open_table(TABLE)?)?;
        txn.commit()?;
        Ok(done)
    }

    /// Gives the value to `seen` where it lies; `None` if there is none.
    fn read<R>(&self, key: &[u8], seen: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let txn = self.db.begin_read()?;
        let table = txn.open_table(TABLE)?;
        Ok(table.get(key)?.map(|value| seen(value.value())))
    }
}

impl Peer for Store {
    fn put(&self, items: &[(&[u8], &[u8])]) -> Result<()> {
        self.write(|table| {
            for (key, value) in items {
                table.insert(key, value)?;
            }
            Ok(())
        })
    }

    fn put_stream(&self, key: &[u8], size: u64, next: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let size = usize::try_from(size)?;
        self.write(|table| {
            // The pages are reserved and filled in place: no buffer of the whole object.
            next(table.insert_reserve(key, size)?.as_mut());
            Ok(())
        })
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        Ok(self.read(key, |value| copy_whole(value, out))?.is_some())
    }

    fn get_many(&self, keys: &[&[u8]], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        let txn = self.db.begin_read()?;
        let table = txn.open_table(TABLE)?;
        for &key in keys {
            seen(table.get(key)?.context("no such object")?.value());
        }
        Ok(())
    }

    fn view(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.read(key, seen)?.is_some())
    }

    fn get_range(&self, key: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
        self.read(key, |value| copy_range(value, offset, out))?.context("no such object")?
    }

    fn splice(&self, key: &[u8], offset: u64, delete: u64, insert: &[u8]) -> Result<()> {
        self.write(|table| {
            let old = table.get(key)?.context("no such object")?;
            let new = spliced(old.value(), offset, delete, insert)?;
            drop(old);
            table.insert(key, new.as_slice())?;
            Ok(())
        })
    }

    fn delete(&self, keys: &[&[u8]]) -> Result<()> {
        self.write(|table| {
            for key in keys {
                table.remove(key)?;
            }
            Ok(())
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        // Dropping the database is its orderly close: it writes the allocator state.
        drop(self);
        Ok(())
    }
}
