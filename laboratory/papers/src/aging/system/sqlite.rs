//! SQLite with its defaults: rollback journal, pages of 4 KB, full synchronisation.
//!
//! A safe write inserts a row and deletes the old one in one transaction, as §2.2 of the paper
//! has it. The journal holds old pages only, so an object's bytes are written once. A value is
//! bound whole, and SQLite has no append: an object is collected in memory and written anew.

use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::{Connection, MAIN_DB, OptionalExtension, params};

use super::face::{Ask, System, found};
use holdall_instrument::draw::number;

/// An open database.
pub(super) struct Opened {
    db: Connection,
}

impl Opened {
    pub(super) fn open(dir: &Path) -> Result<Self> {
        let db = Connection::open(dir.join("objects.sqlite"))?;
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS objects (id INTEGER PRIMARY KEY, key INTEGER NOT NULL, \
             data BLOB NOT NULL); \
             CREATE INDEX IF NOT EXISTS by_key ON objects (key)",
        )?;
        Ok(Self { db })
    }
}

fn row(db: &Connection, key: i64) -> Result<Option<i64>> {
    let mut find = db.prepare_cached("SELECT id FROM objects WHERE key = ?1")?;
    Ok(find.query_row([key], |row| row.get(0)).optional()?)
}

impl System for Opened {
    fn put(&mut self, key: u64, bytes: &[u8], _ask: Ask) -> Result<()> {
        let key = key.cast_signed();
        let tx = self.db.transaction()?;
        let old = row(&tx, key)?;
        tx.prepare_cached("INSERT INTO objects (key, data) VALUES (?1, ?2)")?
            .execute(params![key, bytes])?;
        if let Some(old) = old {
            tx.prepare_cached("DELETE FROM objects WHERE id = ?1")?.execute([old])?;
        }
        Ok(tx.commit()?)
    }

    fn append(&mut self, key: u64, bytes: &[u8], _expected: Option<u64>) -> Result<()> {
        let mut whole = Vec::new();
        if row(&self.db, key.cast_signed())?.is_some() {
            self.read(key, &mut whole)?;
        }
        whole.extend_from_slice(bytes);
        self.put(key, &whole, Ask { request: whole.len().max(1), hint: false })
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<()> {
        let id = found(row(&self.db, key.cast_signed())?, key)?;
        let blob = self.db.blob_open(MAIN_DB, c"objects", c"data", id, true)?;
        out.resize(blob.len(), 0);
        blob.read_at_exact(out, 0).with_context(|| format!("object {key}"))
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        self.db
            .prepare_cached("DELETE FROM objects WHERE key = ?1")?
            .execute([key.cast_signed()])?;
        Ok(())
    }

    fn account(&mut self, keys: &[u64]) -> Result<String> {
        let pragma = |name: &str| self.db.query_row(name, [], |row| row.get::<_, i64>(0));
        let (free, all) = (pragma("PRAGMA freelist_count")?, pragma("PRAGMA page_count")?);
        let each = number((all - free) as f64 / keys.len() as f64);
        Ok(format!(
            "{free} of {all} pages are free, an object takes {each}, single ones that earlier \
             versions gave back"
        ))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.db.close().map_err(|(_, error)| error)?)
    }
}
