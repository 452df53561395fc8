//! redb: a copy-on-write B+-tree whose values lie in one run of pages each.
//!
//! It has no append: an object is collected in memory and written anew.

use std::path::Path;

use anyhow::Result;
use redb::{
    Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, Table, TableDefinition,
};

use super::face::{Ask, System, found};
use holdall_instrument::draw::number;

const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("objects");

/// An open database.
pub(super) struct Opened {
    db: Database,
}

impl Opened {
    /// The cache has 16 MiB, as its default of 1 GiB would hold the whole volume.
    pub(super) fn open(dir: &Path) -> Result<Self> {
        let db = Database::builder().set_cache_size(16 << 20).create(dir.join("objects.redb"))?;
        Ok(Self { db })
    }

    fn write(&self, change: impl FnOnce(&mut Table<'_, u64, &[u8]>) -> Result<()>) -> Result<()> {
        let tx = self.db.begin_write()?;
        change(&mut tx.open_table(TABLE)?)?;
        Ok(tx.commit()?)
    }
}

impl System for Opened {
    fn put(&mut self, key: u64, bytes: &[u8], _ask: Ask) -> Result<()> {
        self.write(|table| {
            table.insert(key, bytes)?;
            Ok(())
        })
    }

    fn append(&mut self, key: u64, bytes: &[u8], _expected: Option<u64>) -> Result<()> {
        self.write(|table| {
            let mut whole = table.get(key)?.map(|old| old.value().to_vec()).unwrap_or_default();
            whole.extend_from_slice(bytes);
            table.insert(key, whole.as_slice())?;
            Ok(())
        })
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<()> {
        let tx = self.db.begin_read()?;
        let value = tx.open_table(TABLE)?.get(key)?;
        out.clear();
        out.extend_from_slice(found(value, key)?.value());
        Ok(())
    }

    /// Its own count: a leaf of any length counts as one.
    fn account(&mut self, keys: &[u64]) -> Result<String> {
        let stats = self.db.begin_read()?.open_table(TABLE)?.stats()?;
        let pages = stats.leaf_pages() as f64 / keys.len() as f64;
        let (used, free) = (stats.stored_bytes() as f64, stats.fragmented_bytes() as f64);
        Ok(format!(
            "{} runs of pages an object, {:.0} % of them unused",
            number(pages),
            100.0 * free / (used + free)
        ))
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        self.write(|table| {
            table.remove(key)?;
            Ok(())
        })
    }
}
