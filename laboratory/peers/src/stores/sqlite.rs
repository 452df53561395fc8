//! SQLite: a B-tree with a write-ahead log, through rusqlite.
//!
//! Owns: the adapter. One connection writes, behind a lock (SQLite has one writer at a time,
//! and its busy handler sleeps); each reading thread has a connection of its own from a pool
//! that grows to as many as read at once. Small objects lie in a table clustered by key;
//! larger ones in a rowid table with an index on the key, read and overwritten in place by
//! incremental BLOB I/O.

use super::{copy_range, copy_whole, locked, mib, spliced};
use anyhow::{Context, Result, ensure};
use holdall_bench::peer::{Load, Maker, Peer, Setup};
use parking_lot::Mutex;
use rusqlite::blob::{Blob, ZeroBlob};
use rusqlite::{Connection, MAIN_DB, OpenFlags, OptionalExtension, Transaction, params};
use std::path::{Path, PathBuf};

/// Bytes the log may reach before a commit checkpoints it; also what it is cut back to after
/// a greater transaction. As much as the memtables of the log-structured stores.
const LOG_BYTES: i64 = 64 << 20;

/// Bytes a stream is handed over in.
const CHUNK: usize = 256 << 10;

/// Opens SQLite databases.
pub struct Sqlite;

struct Store {
    writer: Mutex<Connection>,
    /// Connections no thread reads with at the moment, the last used on top.
    readers: Mutex<Vec<Connection>>,
    file: PathBuf,
    setup: Setup,
    sql: &'static Sql,
}

/// The statements of one kind of table.
struct Sql {
    create: &'static str,
    put: &'static str,
    get: &'static str,
    delete: &'static str,
    /// Finds the row for incremental BLOB I/O, if the table has rowids.
    find: Option<&'static str>,
}

const CLUSTERED: Sql = Sql {
    create: "CREATE TABLE IF NOT EXISTS objects \
             (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    put: "INSERT INTO objects (key, value) VALUES (?1, ?2) \
          ON CONFLICT (key) DO UPDATE SET value = excluded.value",
    get: "SELECT value FROM objects WHERE key = ?1",
    delete: "DELETE FROM objects WHERE key = ?1",
    find: None,
};

const WITH_ROWID: Sql = Sql {
    create: "CREATE TABLE IF NOT EXISTS objects \
             (id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, value BLOB NOT NULL)",
    find: Some("SELECT id FROM objects WHERE key = ?1"),
    ..CLUSTERED
};

impl Maker for Sqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn settings(&self, setup: &Setup) -> String {
        let table = match setup.load {
            Load::Small => "one table WITHOUT ROWID, as advised for small rows",
            Load::Web => "one rowid table with a unique index, as advised for larger rows",
            Load::Large => {
                "one rowid table with a unique index, incremental BLOB I/O for whole gets, \
                 ranges, streams and overwriting"
            }
        };
        format!(
            "SQLite {} (rusqlite {}, bundled): {table}; journal_mode WAL, synchronous FULL \
             (durable at every commit); page_size {}; cache_size {} MiB for the writing \
             connection; readers one connection a thread with mmap_size of 2 GiB (pages come \
             from the map, so their own caches stay at the default 2 MiB); wal_autocheckpoint \
             and journal_size_limit {} MiB; cached prepared statements",
            rusqlite::version(),
            locked("rusqlite"),
            page_bytes(setup.load),
            mib(setup.cache_bytes),
            LOG_BYTES >> 20,
        )
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Peer>> {
        let sql = if setup.load == Load::Small { &CLUSTERED } else { &WITH_ROWID };
        let file = dir.join("objects.sqlite");
        let writer = Connection::open_with_flags(
            &file,
            OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?;
        let page = page_bytes(setup.load);
        writer.pragma_update(None, "page_size", page)?;
        writer.pragma_update(None, "journal_mode", "WAL")?;
        writer.pragma_update(None, "synchronous", "FULL")?;
        writer.pragma_update(None, "cache_size", -i64::try_from(setup.cache_bytes >> 10)?)?;
        writer.pragma_update(None, "wal_autocheckpoint", LOG_BYTES / page)?;
        writer.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
        writer.execute_batch(sql.create)?;
        let (writer, readers) = (Mutex::new(writer), Mutex::default());
        Ok(Box::new(Store { writer, readers, file, setup: *setup, sql }))
    }
}

/// SQLite's documentation measures pages of 8 or 16 KiB as the best for large BLOBs, and
/// keeps 4 KiB as the default.
fn page_bytes(load: Load) -> i64 {
    match load {
        Load::Small => 4 << 10,
        Load::Web => 8 << 10,
        Load::Large => 16 << 10,
    }
}

impl Store {
    /// Runs `change` in one durable transaction.
    fn write(&self, change: impl FnOnce(&Transaction<'_>) -> Result<()>) -> Result<()> {
        let mut writer = self.writer.lock();
        let txn = writer.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        change(&txn)?;
        Ok(txn.commit()?)
    }

    /// Runs `look` with a connection no other thread has.
    fn read<R>(&self, look: impl FnOnce(&Connection) -> Result<R>) -> Result<R> {
        let idle = self.readers.lock().pop();
        let reader = match idle {
            Some(reader) => reader,
            None => self.new_reader()?,
        };
        let seen = look(&reader);
        self.readers.lock().push(reader);
        seen
    }

    fn new_reader(&self) -> Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(&self.file, flags)?;
        reader.pragma_update(None, "mmap_size", i64::from(i32::MAX))?;
        Ok(reader)
    }

    /// The row of `key`, which must exist, in tables that have rowids.
    fn find(&self, db: &Connection, key: &[u8]) -> Result<Option<i64>> {
        let Some(find) = self.sql.find else { return Ok(None) };
        let id = db.prepare_cached(find)?.query_row([key], |row| row.get(0)).optional()?;
        Ok(Some(id.context("no such object")?))
    }

    fn get_value<R>(&self, key: &[u8], seen: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.read(|db| {
            let mut statement = db.prepare_cached(self.sql.get)?;
            let mut rows = statement.query([key])?;
            let Some(row) = rows.next()? else { return Ok(None) };
            Ok(Some(seen(row.get_ref(0)?.as_blob()?)))
        })
    }

    /// Reads by incremental BLOB I/O, straight into `out` instead of by way of a value that
    /// SQLite collects first.
    fn get_blob(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let Some(find) = self.sql.find else { return Ok(false) };
        self.read(|db| {
            let id: Option<i64> =
                db.prepare_cached(find)?.query_row([key], |row| row.get(0)).optional()?;
            let Some(id) = id else { return Ok(false) };
            let blob = blob(db, id, true)?;
            out.resize(blob.len(), 0);
            blob.read_at_exact(out, 0)?;
            Ok(true)
        })
    }
}

/// Opens the value of row `id`.
fn blob(db: &Connection, id: i64, read_only: bool) -> Result<Blob<'_>> {
    Ok(db.blob_open(MAIN_DB, c"objects", c"value", id, read_only)?)
}

impl Peer for Store {
    fn put(&self, items: &[(&[u8], &[u8])]) -> Result<()> {
        self.write(|txn| {
            let mut put = txn.prepare_cached(self.sql.put)?;
            for (key, value) in items {
                put.execute(params![key, value])?;
            }
            Ok(())
        })
    }

    fn put_stream(&self, key: &[u8], size: u64, next: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        if self.sql.find.is_none() {
            let mut all = vec![0; usize::try_from(size)?];
            next(&mut all);
            return self.put(&[(key, &all)]);
        }
        self.write(|txn| {
            txn.prepare_cached(self.sql.put)?.execute(params![key, ZeroBlob(size)])?;
            let id = self.find(txn, key)?.context("no such object")?;
            let mut blob = blob(txn, id, false)?;
            let mut chunk = vec![0; CHUNK];
            for start in (0..blob.len()).step_by(CHUNK) {
                let length = CHUNK.min(blob.len() - start);
                next(&mut chunk[..length]);
                blob.write_all_at(&chunk[..length], start)?;
            }
            Ok(blob.close()?)
        })
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        if self.setup.load == Load::Large {
            return self.get_blob(key, out);
        }
        Ok(self.get_value(key, |value| copy_whole(value, out))?.is_some())
    }

    fn get_many(&self, keys: &[&[u8]], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.read(|db| {
            let txn = db.unchecked_transaction()?;
            let mut statement = db.prepare_cached(self.sql.get)?;
            for key in keys {
                let mut rows = statement.query([key])?;
                let row = rows.next()?.context("no such object")?;
                seen(row.get_ref(0)?.as_blob()?);
            }
            Ok(txn.finish()?)
        })
    }

    fn view(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.get_value(key, seen)?.is_some())
    }

    fn get_range(&self, key: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
        if self.sql.find.is_none() {
            let copy = |value: &[u8]| copy_range(value, offset, out);
            return self.get_value(key, copy)?.context("no such object")?;
        }
        self.read(|db| {
            let id = self.find(db, key)?.context("no such object")?;
            Ok(blob(db, id, true)?.read_at_exact(out, usize::try_from(offset)?)?)
        })
    }

    fn splice(&self, key: &[u8], offset: u64, delete: u64, insert: &[u8]) -> Result<()> {
        self.write(|txn| {
            let in_place = delete == insert.len() as u64;
            if in_place && let Some(id) = self.find(txn, key)? {
                let mut blob = blob(txn, id, false)?;
                blob.write_all_at(insert, usize::try_from(offset)?)?;
                return Ok(blob.close()?);
            }
            let new = {
                let mut statement = txn.prepare_cached(self.sql.get)?;
                let mut rows = statement.query([key])?;
                let row = rows.next()?.context("no such object")?;
                spliced(row.get_ref(0)?.as_blob()?, offset, delete, insert)?
            };
            txn.prepare_cached(self.sql.put)?.execute(params![key, new])?;
            Ok(())
        })
    }

    fn delete(&self, keys: &[&[u8]]) -> Result<()> {
        self.write(|txn| {
            let mut delete = txn.prepare_cached(self.sql.delete)?;
            for key in keys {
                delete.execute([key])?;
            }
            Ok(())
        })
    }

    /// Brings the log into the database and cuts it to nothing.
    fn settle(&self) -> Result<()> {
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = self.writer.lock().query_row(checkpoint, [], |row| row.get(0))?;
        ensure!(busy == 0, "a reader kept SQLite from its checkpoint");
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        // The last connection to close checkpoints and removes the log: the writer.
        for reader in self.readers.into_inner() {
            reader.close().map_err(|(_, error)| error)?;
        }
        Ok(self.writer.into_inner().close().map_err(|(_, error)| error)?)
    }
}
