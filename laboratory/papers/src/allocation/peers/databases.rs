//! The databases among the peers: SQLite in this process, PostgreSQL as a server, Holdall. Owns
//! their connections. Threads: none.

use super::peer::{Look, Peer};
use crate::kit::postgres::Server;
use anyhow::{Context, Result};
use holdall::{Durability, Options, Store, WriteTx};
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::{Client, Statement};
use rusqlite::{Connection, params};
use std::path::Path;

/// An empty table of SQLite.
pub(super) fn sqlite(dir: &Path, durable: bool) -> Result<Connection> {
    let db = Connection::open(dir.join("sqlite"))?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", if durable { "FULL" } else { "OFF" })?;
    db.execute_batch("CREATE TABLE o (k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID")?;
    Ok(db)
}

fn begun(db: &Connection) -> Result<()> {
    if db.is_autocommit() {
        db.prepare_cached("BEGIN")?.execute([])?;
    }
    Ok(())
}

impl Peer for Connection {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        begun(self)?;
        self.prepare_cached("INSERT OR REPLACE INTO o VALUES (?1, ?2)")?
            .execute(params![key, value])?;
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        begun(self)?;
        self.prepare_cached("DELETE FROM o WHERE k = ?1")?.execute([key])?;
        Ok(())
    }

    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()> {
        let mut statement = self.prepare_cached("SELECT v FROM o WHERE k = ?1")?;
        *out = statement.query_row([key], |row| row.get(0))?;
        Ok(())
    }

    fn look(&mut self, look: Look) -> Result<u64> {
        let sql = match look {
            Look::Keys => "SELECT k, x'' FROM o",
            Look::Values => "SELECT '', v FROM o",
            Look::Both => "SELECT k, v FROM o",
        };
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query([])?;
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            bytes += (row.get::<_, String>(0)?.len() + row.get::<_, Vec<u8>>(1)?.len()) as u64;
        }
        Ok(bytes)
    }

    fn commit(&mut self) -> Result<()> {
        if !self.is_autocommit() {
            self.prepare_cached("COMMIT")?.execute([])?;
        }
        Ok(())
    }
}

/// A table of a server, and a connection to it.
pub(super) struct Database {
    client: Client,
    put: Statement,
    remove: Statement,
    get: Statement,
    begun: bool,
    /// Whether each statement is a transaction.
    each: bool,
    /// Last, so that the connection is closed before the server.
    _server: Server,
}

impl Database {
    /// Values are kept as they are: others do not compress them either.
    pub(super) fn open(dir: &Path, durable: bool) -> Result<Self> {
        let server = Server::start(dir, &[])?;
        let mut client = server.connect("postgres")?;
        let wait = if durable { "on" } else { "off" };
        client.batch_execute(&format!(
            "SET synchronous_commit = {wait};
             CREATE TABLE o (k text PRIMARY KEY, v bytea NOT NULL);
             ALTER TABLE o ALTER v SET STORAGE EXTERNAL"
        ))?;
        let put = "INSERT INTO o VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v";
        Ok(Self {
            put: client.prepare(put)?,
            remove: client.prepare("DELETE FROM o WHERE k = $1")?,
            get: client.prepare("SELECT v FROM o WHERE k = $1")?,
            client,
            begun: false,
            each: false,
            _server: server,
        })
    }

    fn begin(&mut self) -> Result<()> {
        if !self.each && !std::mem::replace(&mut self.begun, true) {
            self.client.batch_execute("BEGIN")?;
        }
        Ok(())
    }
}

impl Peer for Database {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.begin()?;
        self.client.execute(&self.put, &[&key, &value])?;
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        self.begin()?;
        self.client.execute(&self.remove, &[&key])?;
        Ok(())
    }

    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()> {
        let row = self.client.query_one(&self.get, &[&key])?;
        out.clear();
        out.extend_from_slice(row.try_get(0)?);
        Ok(())
    }

    fn commit_each(&mut self) {
        self.each = true;
    }

    /// Row by row, as the server sends them.
    fn look(&mut self, look: Look) -> Result<u64> {
        let sql = match look {
            Look::Keys => "SELECT k, ''::bytea FROM o",
            Look::Values => "SELECT '', v FROM o",
            Look::Both => "SELECT k, v FROM o",
        };
        let mut rows = self.client.query_raw(sql, std::iter::empty::<&str>())?;
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            bytes += (row.try_get::<_, &str>(0)?.len() + row.try_get::<_, &[u8]>(1)?.len()) as u64;
        }
        Ok(bytes)
    }

    fn commit(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.begun, false) {
            self.client.batch_execute("COMMIT")?;
        }
        Ok(())
    }
}

/// This project's engine, and its open transaction.
pub(super) struct Engine {
    store: Store,
    durability: Durability,
    tx: Option<WriteTx>,
}

impl Engine {
    /// A commit of every item at once must fit in the log.
    pub(super) fn open(dir: &Path, durable: bool) -> Result<Self> {
        let options = Options::default().tuning(|t| t.log_bytes(256 << 20).dirty_pages(1 << 16));
        let store = options.create(dir.join("holdall"))?;
        let durability = if durable { Durability::Immediate } else { Durability::Deferred };
        Ok(Self { store, durability, tx: None })
    }

    fn tx(&mut self) -> Result<&mut WriteTx> {
        if self.tx.is_none() {
            let mut tx = self.store.begin_write()?;
            tx.set_durability(self.durability);
            self.tx = Some(tx);
        }
        self.tx.as_mut().context("no transaction")
    }
}

impl Peer for Engine {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.tx()?.put(key, value)?;
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        self.tx()?.remove(key)?;
        Ok(())
    }

    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()> {
        anyhow::ensure!(self.store.get_into(key, out)?, "no such object");
        Ok(())
    }

    fn look(&mut self, look: Look) -> Result<u64> {
        let reader = self.store.read_newest()?;
        let mut bytes = 0;
        for name in reader.names("") {
            let entry = name?;
            if look != Look::Values {
                bytes += entry.name.len() as u64;
            }
            if look != Look::Keys {
                bytes += reader.get(entry.oid)?.map_or(0, |value| value.len() as u64);
            }
        }
        Ok(bytes)
    }

    fn commit(&mut self) -> Result<()> {
        match self.tx.take() {
            Some(tx) => Ok(tx.commit()?),
            None => Ok(()),
        }
    }

    fn settle(&mut self) -> Result<()> {
        Ok(self.store.flush()?)
    }
}
