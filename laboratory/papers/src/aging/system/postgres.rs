//! `PostgreSQL`: a column of bytes, or large objects, on the volume as a tablespace.
//!
//! Owns: the adapter. Log and catalogue lie on the scratch disk, as the paper gave SQL Server a
//! drive of its own for them. A new version is a new row, and what was deleted can be used again
//! after VACUUM: the adapter runs it whenever half as many bytes died as the volume has free,
//! if the server's own would wait a minute.

use std::path::{Path, PathBuf};

use anyhow::Result;
use postgres::types::{ToSql, Type};
use postgres::{Client, Transaction};

use super::face::{Ask, System, found};
use crate::kit::postgres::Server;
use holdall_instrument::draw::number;

/// The name of the tablespace, and of large objects' database.
const NAME: &str = "aging";
/// The cache is as small as the others'; VACUUM runs when the adapter says.
pub const SETTINGS: [&str; 2] = ["shared_buffers=16MB", "autovacuum=off"];
/// Bytes that may be dead if more than twice as many are free.
const MOST_DEAD: u64 = 64 << 20;

/// Values of a statement with their types, by which it needs one turn only.
type Values<'a, const N: usize> = [(&'a (dyn ToSql + Sync), Type); N];

/// A connection, and when to vacuum.
pub(super) struct Opened {
    client: Client,
    /// Large objects, with a table from numbers to theirs; else a column of bytes.
    large: bool,
    dead: u64,
    dir: PathBuf,
}

impl Opened {
    /// Connects to the server; on a fresh volume it first makes the tablespace and the table.
    /// Large objects lie in their database's tablespace and so need a database of their own
    /// there, whose catalogue takes 7 MB of the volume. A column of bytes is kept out of the row
    /// and not compressed.
    pub(super) fn open(server: &Server, dir: &Path, large: bool) -> Result<Self> {
        let home = dir.join("postgres");
        let database = if large { NAME } else { "postgres" };
        if !home.exists() {
            server.give(&home)?;
            forget(server)?;
            let mut client = server.connect("postgres")?;
            let place = home.display();
            client.batch_execute(&format!("CREATE TABLESPACE {NAME} LOCATION '{place}'"))?;
            let columns = if large { "lo oid NOT NULL, size int8" } else { "data bytea NOT NULL" };
            if large {
                client.batch_execute(&format!("CREATE DATABASE {NAME} TABLESPACE {NAME}"))?;
                client = server.connect(database)?;
            }
            client.batch_execute(&format!("SET default_tablespace = {NAME}"))?;
            client
                .batch_execute(&format!("CREATE TABLE objects (id int8 PRIMARY KEY, {columns})"))?;
            if !large {
                let sql = "ALTER TABLE objects ALTER COLUMN data SET STORAGE EXTERNAL";
                client.batch_execute(sql)?;
            }
        }
        Ok(Self { client: server.connect(database)?, large, dead: 0, dir: home })
    }

    /// Bytes of a version died.
    fn died(&mut self, bytes: u64) -> Result<()> {
        self.dead += bytes;
        let room = rustix::fs::statvfs(&self.dir)?;
        if self.dead < (room.f_bavail * room.f_frsize / 2).min(MOST_DEAD) {
            return Ok(());
        }
        self.dead = 0;
        let tables = if self.large { "pg_largeobject, objects" } else { "objects" };
        self.client.batch_execute(&format!("VACUUM {tables}"))?;
        Ok(())
    }

    /// Runs a statement on the row of bytes `key` that answers with the length of what died.
    fn replace(&mut self, sql: &str, key: u64, bytes: Option<&[u8]>) -> Result<()> {
        let id = key.cast_signed();
        let row = match bytes {
            None => self.client.query_typed_one(sql, &[(&id, Type::INT8)])?,
            Some(bytes) => {
                let values: Values<'_, 2> = [(&id, Type::INT8), (&bytes, Type::BYTEA)];
                self.client.query_typed_one(sql, &values)?
            }
        };
        self.died(row.try_get::<_, i64>(0)?.cast_unsigned())
    }

    /// The number of the large object and its size.
    fn place(&mut self, key: u64) -> Result<Option<(u32, i64)>> {
        let sql = "SELECT lo, size FROM objects WHERE id = $1";
        let row = self.client.query_typed_opt(sql, &[(&key.cast_signed(), Type::INT8)])?;
        row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
    }

    /// Runs `change` as one transaction.
    fn write(&mut self, change: impl FnOnce(&mut Transaction<'_>) -> Result<()>) -> Result<()> {
        let mut tx = self.client.transaction()?;
        change(&mut tx)?;
        Ok(tx.commit()?)
    }
}

/// Drops tables, database and tablespace of a volume, before it is unmounted.
pub fn forget(server: &Server) -> Result<()> {
    let mut client = server.connect("postgres")?;
    client.batch_execute("DROP TABLE IF EXISTS objects")?;
    client.batch_execute(&format!("DROP DATABASE IF EXISTS {NAME} WITH (FORCE)"))?;
    client.batch_execute(&format!("DROP TABLESPACE IF EXISTS {NAME}"))?;
    // Files that the checkpointer has open would keep the volume mounted.
    client.batch_execute("CHECKPOINT")?;
    Ok(client.close()?)
}

fn unlink(tx: &mut Transaction<'_>, lo: u32) -> Result<()> {
    tx.query_typed_one("SELECT lo_unlink($1)", &[(&lo, Type::OID)])?;
    Ok(())
}

/// Adds `bytes` by requests at the end of the large object `old` of some size, or of a new one.
fn fill(
    tx: &mut Transaction<'_>,
    key: u64,
    old: Option<(u32, i64)>,
    bytes: &[u8],
    request: usize,
) -> Result<()> {
    let (lo, mut end) = match old {
        Some(old) => old,
        None => (tx.query_typed_one("SELECT lo_create(0)", &[])?.try_get(0)?, 0),
    };
    for part in bytes.chunks(request) {
        let values: Values<'_, 3> = [(&lo, Type::OID), (&end, Type::INT8), (&part, Type::BYTEA)];
        tx.query_typed_one("SELECT lo_put($1, $2, $3)", &values)?;
        end += i64::try_from(part.len())?;
    }
    let sql = "INSERT INTO objects VALUES ($1, $2, $3) \
               ON CONFLICT (id) DO UPDATE SET lo = excluded.lo, size = excluded.size";
    let id = key.cast_signed();
    tx.execute_typed(sql, &[(&id, Type::INT8), (&lo, Type::OID), (&end, Type::INT8)])?;
    Ok(())
}

impl System for Opened {
    /// The protocol takes a column's value whole, so neither request nor hint reaches the server.
    fn put(&mut self, key: u64, bytes: &[u8], ask: Ask) -> Result<()> {
        if !self.large {
            let sql = "INSERT INTO objects VALUES ($1, $2) \
                       ON CONFLICT (id) DO UPDATE SET data = excluded.data \
                       RETURNING length(data)::int8";
            return self.replace(sql, key, Some(bytes));
        }
        let old = self.place(key)?;
        self.write(|tx| {
            fill(tx, key, None, bytes, ask.request)?;
            old.map_or(Ok(()), |(lo, _)| unlink(tx, lo))
        })?;
        self.died(old.map_or(0, |(_, size)| size.cast_unsigned()))
    }

    fn append(&mut self, key: u64, bytes: &[u8], _expected: Option<u64>) -> Result<()> {
        if !self.large {
            let sql = "INSERT INTO objects VALUES ($1, $2) \
                       ON CONFLICT (id) DO UPDATE SET data = objects.data || excluded.data \
                       RETURNING length(data)::int8";
            return self.replace(sql, key, Some(bytes));
        }
        let old = self.place(key)?;
        self.write(|tx| fill(tx, key, old, bytes, bytes.len().max(1)))
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<()> {
        let what = if self.large { "lo_get(lo)" } else { "data" };
        let sql = format!("SELECT {what} FROM objects WHERE id = $1");
        let row = self.client.query_typed_opt(&sql, &[(&key.cast_signed(), Type::INT8)])?;
        out.clear();
        out.extend_from_slice(found(row, key)?.try_get(0)?);
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        if !self.large {
            let sql = "DELETE FROM objects WHERE id = $1 RETURNING length(data)::int8";
            return self.replace(sql, key, None);
        }
        let (lo, size) = found(self.place(key)?, key)?;
        self.write(|tx| {
            unlink(tx, lo)?;
            let sql = "DELETE FROM objects WHERE id = $1";
            tx.execute_typed(sql, &[(&key.cast_signed(), Type::INT8)])?;
            Ok(())
        })?;
        self.died(size.cast_unsigned())
    }

    fn settle(&mut self) -> Result<()> {
        self.client.batch_execute("CHECKPOINT")?;
        // What the last statements wrote is on the volume now.
        Ok(rustix::fs::syncfs(std::fs::File::open(&self.dir)?)?)
    }

    /// Pages of the table that holds the bytes.
    fn account(&mut self, keys: &[u64]) -> Result<String> {
        let table = if self.large { "pg_largeobject" } else { "objects" };
        let sql = format!("SELECT pg_total_relation_size('{table}')::int8 / 8192");
        let pages: i64 = self.client.query_typed_one(&sql, &[])?.try_get(0)?;
        let pages = pages as f64;
        Ok(format!(
            "table and index have {} pages, {} an object",
            number(pages),
            number(pages / keys.len() as f64)
        ))
    }

    fn close(self: Box<Self>) -> Result<()> {
        Ok(self.client.close()?)
    }
}
