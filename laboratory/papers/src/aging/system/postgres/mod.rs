//! `PostgreSQL`: a column of bytes, or large objects, on the volume as a tablespace.
//!
//! Owns: the adapter. Log and catalogue lie on the scratch disk, as the paper gave SQL Server a
//! drive of its own for them. A new version is a new row, and what was deleted can be used again
//! after VACUUM: the adapter runs it whenever half as many bytes died as the volume has free,
//! where the server's own would wait a minute.

mod server;
mod wire;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use self::server::NAME;
pub use self::server::Server;
use self::wire::{Client, int8};
use super::{Ask, System, found};
use holdall_instrument::draw::number;

/// Bytes that may be dead where more than twice as many are free.
const MOST_DEAD: u64 = 64 << 20;

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
            server.forget()?;
            let mut client = server.connect("postgres")?;
            let place = home.display();
            client.run(&format!("CREATE TABLESPACE {NAME} LOCATION '{place}'"), &[])?;
            let columns = if large { "lo int8 NOT NULL, size int8" } else { "data bytea NOT NULL" };
            if large {
                client.run(&format!("CREATE DATABASE {NAME} TABLESPACE {NAME}"), &[])?;
                client = server.connect(database)?;
            }
            client.run(&format!("SET default_tablespace = {NAME}"), &[])?;
            client.run(&format!("CREATE TABLE objects (id int8 PRIMARY KEY, {columns})"), &[])?;
            if !large {
                let sql = "ALTER TABLE objects ALTER COLUMN data SET STORAGE EXTERNAL";
                client.run(sql, &[])?;
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
        self.client.run(&format!("VACUUM {tables}"), &[])?;
        Ok(())
    }

    /// Runs a statement on rows of bytes that answers with the length of what died.
    fn replace(&mut self, sql: &str, values: &[&[u8]]) -> Result<()> {
        let answer = self.client.run(sql, values)?;
        self.died(int8(&answer)?.cast_unsigned())
    }

    /// The number of the large object and its size.
    fn place(&mut self, key: u64) -> Result<Option<(i64, u64)>> {
        let sql = "SELECT int8send(lo) || int8send(size) FROM objects WHERE id = $1";
        let Some(raw) = self.client.run(sql, &[&key.to_be_bytes()])? else { return Ok(None) };
        let (lo, size) = raw.split_at_checked(8).context("a short answer")?;
        let int = |raw: &[u8]| int8(&Some(raw.to_vec()));
        Ok(Some((int(lo)?, int(size)?.cast_unsigned())))
    }

    /// Runs `change` as one transaction.
    fn write(&mut self, change: impl FnOnce(&mut Client) -> Result<()>) -> Result<()> {
        self.client.run("BEGIN", &[])?;
        let changed = change(&mut self.client);
        self.client.run(if changed.is_ok() { "COMMIT" } else { "ROLLBACK" }, &[])?;
        changed
    }
}

fn unlink(client: &mut Client, lo: i64) -> Result<()> {
    client.run("SELECT lo_unlink($1::int8::oid)", &[&lo.to_be_bytes()]).map(drop)
}

/// Adds `bytes` by requests at the end of the large object `old` of some size, or of a new one.
fn fill(
    client: &mut Client,
    key: u64,
    old: Option<(i64, u64)>,
    bytes: &[u8],
    request: usize,
) -> Result<()> {
    let (lo, mut end) = match old {
        Some((lo, size)) => (lo, size.cast_signed()),
        None => (int8(&client.run("SELECT lo_create(0)::int8", &[])?)?, 0),
    };
    for part in bytes.chunks(request) {
        let values: [&[u8]; 3] = [&lo.to_be_bytes(), &end.to_be_bytes(), part];
        client.run("SELECT lo_put($1::int8::oid, $2, $3)", &values)?;
        end += i64::try_from(part.len())?;
    }
    let sql = "INSERT INTO objects VALUES ($1, $2, $3) \
               ON CONFLICT (id) DO UPDATE SET lo = excluded.lo, size = excluded.size";
    let values: [&[u8]; 3] = [&key.to_be_bytes(), &lo.to_be_bytes(), &end.to_be_bytes()];
    client.run(sql, &values).map(drop)
}

impl System for Opened {
    /// The protocol takes a column's value whole, so neither request nor hint reaches the server.
    fn put(&mut self, key: u64, bytes: &[u8], ask: Ask) -> Result<()> {
        if !self.large {
            let sql = "INSERT INTO objects VALUES ($1, $2) \
                       ON CONFLICT (id) DO UPDATE SET data = excluded.data \
                       RETURNING length(data)::int8";
            return self.replace(sql, &[&key.to_be_bytes(), bytes]);
        }
        let old = self.place(key)?;
        self.write(|client| {
            fill(client, key, None, bytes, ask.request)?;
            old.map_or(Ok(()), |(lo, _)| unlink(client, lo))
        })?;
        self.died(old.map_or(0, |(_, size)| size))
    }

    fn append(&mut self, key: u64, bytes: &[u8], _expected: Option<u64>) -> Result<()> {
        if !self.large {
            let sql = "INSERT INTO objects VALUES ($1, $2) \
                       ON CONFLICT (id) DO UPDATE SET data = objects.data || excluded.data \
                       RETURNING length(data)::int8";
            return self.replace(sql, &[&key.to_be_bytes(), bytes]);
        }
        let old = self.place(key)?;
        self.write(|client| fill(client, key, old, bytes, bytes.len().max(1)))
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<()> {
        let what = if self.large { "lo_get(lo::oid)" } else { "data" };
        let sql = format!("SELECT {what} FROM objects WHERE id = $1");
        *out = found(self.client.run(&sql, &[&key.to_be_bytes()])?, key)?;
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        if !self.large {
            let sql = "DELETE FROM objects WHERE id = $1 RETURNING length(data)::int8";
            return self.replace(sql, &[&key.to_be_bytes()]);
        }
        let (lo, size) = found(self.place(key)?, key)?;
        self.write(|client| {
            unlink(client, lo)?;
            client.run("DELETE FROM objects WHERE id = $1", &[&key.to_be_bytes()]).map(drop)
        })?;
        self.died(size)
    }

    fn settle(&mut self) -> Result<()> {
        self.client.run("CHECKPOINT", &[])?;
        // What the last statements wrote is on the volume now.
        Ok(rustix::fs::syncfs(std::fs::File::open(&self.dir)?)?)
    }

    /// Pages of the table that holds the bytes.
    fn account(&mut self, keys: &[u64]) -> Result<String> {
        let table = if self.large { "pg_largeobject" } else { "objects" };
        let sql = format!("SELECT pg_total_relation_size('{table}')::int8 / 8192");
        let pages = int8(&self.client.run(&sql, &[])?)? as f64;
        Ok(format!(
            "its table and index have {} pages, {} to an object",
            number(pages),
            number(pages / keys.len() as f64)
        ))
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.client.close()
    }
}
