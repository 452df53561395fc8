//! `PostgreSQL`: a column of bytes, and large objects, each on the volume as a tablespace.
//!
//! Owns: the two adapters. Log and catalogue lie on the scratch disk, as the paper gave SQL
//! Server a drive of its own for them. A new version is a new row, and what was deleted can be
//! used again after VACUUM: the adapter runs it whenever half as many bytes died as the volume has
//! free, where the server's own would wait a minute.

mod server;
mod wire;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use self::server::Server;
use self::wire::{Client, Value};
use super::{Ask, System, found};

/// What both adapters share: a database on the volume, and when to vacuum it.
struct Base {
    client: Client,
    tables: &'static str,
    dead: u64,
    dir: PathBuf,
}

/// Bytes that may be dead where more than twice as many are free.
const MOST_DEAD: u64 = 64 << 20;
/// The name of the database and its tablespace.
const NAME: &str = "aging";

impl Base {
    /// Connects to the server; on a fresh volume it first makes the tablespace and, by `make`,
    /// the tables. Large objects lie in their database's tablespace and so need `own` database
    /// there, whose catalogue takes 7 MB of the volume.
    fn open(
        server: &Server,
        dir: &Path,
        own: bool,
        make: &[&str],
        tables: &'static str,
    ) -> Result<Self> {
        let home = dir.join("postgres");
        let database = if own { NAME } else { "postgres" };
        if !home.exists() {
            server.give(&home)?;
            server.forget()?;
            let mut client = server.connect("postgres")?;
            let place = home.display();
            client.run(&format!("CREATE TABLESPACE {NAME} LOCATION '{place}'"), &[])?;
            if own {
                client.run(&format!("CREATE DATABASE {NAME} TABLESPACE {NAME}"), &[])?;
            }
            let mut client = server.connect(database)?;
            client.run(&format!("SET default_tablespace = {NAME}"), &[])?;
            for statement in make {
                client.run(statement, &[])?;
            }
        }
        let client = server.connect(database)?;
        Ok(Self { client, tables, dead: 0, dir: home })
    }

    /// Bytes of a version died.
    fn died(&mut self, bytes: u64) -> Result<()> {
        self.dead += bytes;
        let room = rustix::fs::statvfs(&self.dir)?;
        if self.dead < (room.f_bavail * room.f_frsize / 2).min(MOST_DEAD) {
            return Ok(());
        }
        self.dead = 0;
        self.client.run(&format!("VACUUM {}", self.tables), &[])?;
        Ok(())
    }

    fn settle(&mut self) -> Result<()> {
        self.client.run("CHECKPOINT", &[])?;
        // What the last statements wrote is on the volume now.
        Ok(rustix::fs::syncfs(std::fs::File::open(&self.dir)?)?)
    }
}

fn id(key: u64) -> Value<'static> {
    Value::Int8(key.cast_signed())
}

/// A column of bytes, kept out of the row and not compressed.
pub struct Bytea(Base);

impl Bytea {
    pub(super) fn open(server: &Server, dir: &Path) -> Result<Self> {
        let make = [
            "CREATE TABLE objects (id int8 PRIMARY KEY, data bytea NOT NULL)",
            "ALTER TABLE objects ALTER COLUMN data SET STORAGE EXTERNAL",
        ];
        Ok(Self(Base::open(server, dir, false, &make, "objects")?))
    }
}

impl System for Bytea {
    /// The protocol takes a value whole, so neither request nor hint can reach the server.
    fn put(&mut self, key: u64, bytes: &[u8], _ask: Ask) -> Result<()> {
        let sql = "INSERT INTO objects VALUES ($1, $2) \
                   ON CONFLICT (id) DO UPDATE SET data = excluded.data";
        self.0.client.run(sql, &[id(key), Value::Bytes(bytes)])?;
        self.0.died(bytes.len() as u64)
    }

    fn append(&mut self, key: u64, bytes: &[u8], _expected: Option<u64>) -> Result<()> {
        let sql = "INSERT INTO objects VALUES ($1, $2) \
                   ON CONFLICT (id) DO UPDATE SET data = objects.data || excluded.data \
                   RETURNING length(data)::int8";
        let answer = self.0.client.run(sql, &[id(key), Value::Bytes(bytes)])?;
        self.0.died(wire::int8(&answer)?.cast_unsigned())
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<()> {
        let answer = self.0.client.run("SELECT data FROM objects WHERE id = $1", &[id(key)])?;
        *out = found(answer, key)?;
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        let sql = "DELETE FROM objects WHERE id = $1 RETURNING length(data)::int8";
        let answer = self.0.client.run(sql, &[id(key)])?;
        self.0.died(wire::int8(&answer)?.cast_unsigned())
    }

    fn settle(&mut self) -> Result<()> {
        self.0.settle()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.client.close()
    }
}

/// Large objects, with a table from numbers to theirs.
pub struct LargeObjects(Base);

impl LargeObjects {
    pub(super) fn open(server: &Server, dir: &Path) -> Result<Self> {
        let make = ["CREATE TABLE objects (id int8 PRIMARY KEY, lo int8 NOT NULL, size int8)"];
        Ok(Self(Base::open(server, dir, true, &make, "pg_largeobject, objects")?))
    }

    /// The number of the large object and its size.
    fn place(&mut self, key: u64) -> Result<Option<(i64, u64)>> {
        let sql = "SELECT int8send(lo) || int8send(size) FROM objects WHERE id = $1";
        let Some(raw) = self.0.client.run(sql, &[id(key)])? else { return Ok(None) };
        let (lo, size) = raw.split_at_checked(8).context("a short answer")?;
        let int = |raw: &[u8]| wire::int8(&Some(raw.to_vec()));
        Ok(Some((int(lo)?, int(size)?.cast_unsigned())))
    }

    /// Runs `change` as one transaction.
    fn write(&mut self, change: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.0.client.run("BEGIN", &[])?;
        if let Err(error) = change(self) {
            self.0.client.run("ROLLBACK", &[])?;
            return Err(error);
        }
        self.0.client.run("COMMIT", &[])?;
        Ok(())
    }

    /// Writes `bytes` at `from` of large object `lo`, by requests.
    fn fill(&mut self, lo: i64, from: usize, bytes: &[u8], request: usize) -> Result<()> {
        for (number, part) in bytes.chunks(request).enumerate() {
            let at = Value::Int8(i64::try_from(from + number * request)?);
            let sql = "SELECT lo_put($1::oid, $2, $3)";
            self.0.client.run(sql, &[Value::Int8(lo), at, Value::Bytes(part)])?;
        }
        Ok(())
    }

    fn create(&mut self) -> Result<i64> {
        wire::int8(&self.0.client.run("SELECT lo_create(0)::int8", &[])?)
    }

    fn unlink(&mut self, lo: i64) -> Result<()> {
        self.0.client.run("SELECT lo_unlink($1::oid)", &[Value::Int8(lo)])?;
        Ok(())
    }

    fn keep(&mut self, key: u64, lo: i64, size: usize) -> Result<()> {
        let sql = "INSERT INTO objects VALUES ($1, $2, $3) \
                   ON CONFLICT (id) DO UPDATE SET lo = excluded.lo, size = excluded.size";
        self.0.client.run(sql, &[id(key), Value::Int8(lo), Value::Int8(i64::try_from(size)?)])?;
        Ok(())
    }
}

impl System for LargeObjects {
    fn put(&mut self, key: u64, bytes: &[u8], ask: Ask) -> Result<()> {
        let old = self.place(key)?;
        self.write(|own| {
            let new = own.create()?;
            own.fill(new, 0, bytes, ask.request)?;
            own.keep(key, new, bytes.len())?;
            old.map_or(Ok(()), |(old, _)| own.unlink(old))
        })?;
        self.0.died(old.map_or(0, |(_, size)| size))
    }

    fn append(&mut self, key: u64, bytes: &[u8], _expected: Option<u64>) -> Result<()> {
        let old = self.place(key)?;
        self.write(|own| {
            let (lo, size) = match old {
                Some((lo, size)) => (lo, usize::try_from(size)?),
                None => (own.create()?, 0),
            };
            own.fill(lo, size, bytes, bytes.len().max(1))?;
            own.keep(key, lo, size + bytes.len())
        })
    }

    fn read(&mut self, key: u64, out: &mut Vec<u8>) -> Result<()> {
        let sql = "SELECT lo_get(lo::oid) FROM objects WHERE id = $1";
        let answer = self.0.client.run(sql, &[id(key)])?;
        *out = found(answer, key)?;
        Ok(())
    }

    fn delete(&mut self, key: u64) -> Result<()> {
        let (lo, size) = found(self.place(key)?, key)?;
        self.write(|own| {
            own.unlink(lo)?;
            own.0.client.run("DELETE FROM objects WHERE id = $1", &[id(key)])?;
            Ok(())
        })?;
        self.0.died(size)
    }

    fn settle(&mut self) -> Result<()> {
        self.0.settle()
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.0.client.close()
    }
}
