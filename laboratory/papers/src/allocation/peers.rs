//! The stores that the paper compares, one trait for all: blocks by PMFLF, the hash table, one
//! file per object, SQLite, PostgreSQL as a server, and Holdall. Owns their files in a directory given. Threads: none.

use super::block::{Block, Params};
use super::htod::{Htod, Shape};
use super::pmflf::{Pmflf, Usage};
use crate::kit::postgres::Server;
use anyhow::{Context, Result};
use holdall::{Durability, Options, Store, WriteTx};
use holdall_io::{Disk, FileStorage, Storage};
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::{Client, Statement};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a look through a whole store hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Every key.
    Keys,
    /// Every value.
    Values,
    /// Every key with its value.
    Both,
}

/// Objects under keys. Errors are those of the store.
pub trait Peer {
    /// Stores an object, new or instead of another.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()>;
    /// Removes an object.
    fn remove(&mut self, key: &str) -> Result<()>;
    /// Reads an object into `out`.
    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()>;
    /// Looks through everything; gives the bytes handed out.
    fn look(&mut self, look: Look) -> Result<u64>;
    /// Ends a transaction; if `durable` was asked for, what it did survives a power cut.
    fn commit(&mut self) -> Result<()>;
    /// Says that a commit will follow each change, so that each may end its own transaction.
    fn commit_each(&mut self) {}
    /// Lets reads see what was committed without waiting for it.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
    /// What its file of blocks holds, if it has one.
    fn usage(&self) -> Option<Usage> {
        None
    }
}

/// Which stores there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// PMFLF, its blocks remembered by the caller.
    Blocks,
    /// The hash table on disk.
    Table,
    /// One file per object.
    Files,
    /// SQLite, with a write-ahead log.
    Sqlite,
    /// PostgreSQL, a server of its own.
    Postgres,
    /// This project's engine.
    Holdall,
}

impl Kind {
    /// What the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blocks => "PMFLF",
            Self::Table => "HTOD",
            Self::Files => "files",
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
            Self::Holdall => "Holdall",
        }
    }

    /// A new store in `dir`, which is empty.
    pub fn open(self, dir: &Path, durable: bool) -> Result<Box<dyn Peer>> {
        let params = Params { barriers: durable, ..Params::default() };
        let disk =
            || -> Result<Arc<dyn Disk>> { Ok(FileStorage::create(dir.join("blocks"))?.volume()) };
        Ok(match self {
            Self::Blocks => {
                let store = Pmflf::create(disk()?, params, 1)?;
                Box::new(Blocks { store, places: HashMap::new(), durable })
            }
            Self::Table => Box::new((Htod::create(disk()?, params, Shape::default(), 1)?, durable)),
            Self::Files => Box::new(Files { dir: dir.to_owned(), durable, written: Vec::new() }),
            Self::Sqlite => {
                let db = Connection::open(dir.join("sqlite"))?;
                db.pragma_update(None, "journal_mode", "WAL")?;
                db.pragma_update(None, "synchronous", if durable { "FULL" } else { "OFF" })?;
                db.execute_batch("CREATE TABLE o (k TEXT PRIMARY KEY, v BLOB) WITHOUT ROWID")?;
                Box::new(db)
            }
            Self::Postgres => Box::new(Database::open(dir, durable)?),
            Self::Holdall => {
                // A commit of every item at once must fit in the log.
                let options =
                    Options::default().tuning(|t| t.log_bytes(256 << 20).dirty_pages(1 << 16));
                let store = options.create(dir.join("holdall"))?;
                let durability = if durable { Durability::Immediate } else { Durability::Deferred };
                Box::new(Engine { store, durability, tx: None })
            }
        })
    }
}

/// Bytes of blocks that a directory and all in it take.
pub fn disk_used(dir: &Path) -> Result<u64> {
    let mut bytes = fs::metadata(dir)?.blocks() * 512;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let folder = entry.file_type()?.is_dir();
        bytes += if folder { disk_used(&entry.path())? } else { entry.metadata()?.blocks() * 512 };
    }
    Ok(bytes)
}

struct Blocks {
    store: Pmflf,
    places: HashMap<String, (Block, usize)>,
    durable: bool,
}

impl Peer for Blocks {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let block = self.store.put(value)?;
        if let Some((old, len)) = self.places.insert(key.to_owned(), (block, value.len())) {
            self.store.free(old, len)?;
        }
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        let (block, len) = self.places.remove(key).context("no such object")?;
        Ok(self.store.free(block, len)?)
    }

    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()> {
        let (block, len) = self.places.get(key).context("no such object")?;
        out.resize(*len, 0);
        Ok(self.store.read(block.at, 0, out)?)
    }

    fn look(&mut self, _: Look) -> Result<u64> {
        anyhow::bail!("blocks alone have no keys")
    }

    fn commit(&mut self) -> Result<()> {
        if self.durable { Ok(self.store.sync()?) } else { Ok(()) }
    }

    fn usage(&self) -> Option<Usage> {
        Some(self.store.usage())
    }
}

impl Peer for (Htod, bool) {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.0.put(key.as_bytes(), value)?;
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        self.0.remove(key.as_bytes())?;
        Ok(())
    }

    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()> {
        *out = self.0.get(key.as_bytes())?.context("no such object")?;
        Ok(())
    }

    fn look(&mut self, look: Look) -> Result<u64> {
        let mut bytes = 0;
        match look {
            Look::Keys => self.0.keys(|key| bytes += key.len() as u64)?,
            Look::Values => self.0.values(|value| bytes += value.len() as u64)?,
            Look::Both => self.0.entries(|key, value| {
                bytes += (key.len() + value.len()) as u64;
                ControlFlow::Continue(())
            })?,
        }
        Ok(bytes)
    }

    /// The barriers within each change order its writes; the last ones are synced here.
    fn commit(&mut self) -> Result<()> {
        if self.1 { Ok(self.0.sync()?) } else { Ok(()) }
    }
}

struct Files {
    dir: PathBuf,
    durable: bool,
    written: Vec<File>,
}

impl Peer for Files {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let mut file = File::create(self.dir.join(key))?;
        std::io::Write::write_all(&mut file, value)?;
        if self.durable {
            self.written.push(file);
        }
        Ok(())
    }

    fn remove(&mut self, key: &str) -> Result<()> {
        Ok(fs::remove_file(self.dir.join(key))?)
    }

    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        File::open(self.dir.join(key))?.read_to_end(out)?;
        Ok(())
    }

    fn look(&mut self, look: Look) -> Result<u64> {
        let (mut bytes, mut value) = (0, Vec::new());
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let key = name.to_str().context("a name that is not ours")?;
            if look != Look::Values {
                bytes += key.len() as u64;
            }
            if look != Look::Keys {
                self.get(key, &mut value)?;
                bytes += value.len() as u64;
            }
        }
        Ok(bytes)
    }

    fn commit(&mut self) -> Result<()> {
        for file in self.written.drain(..) {
            file.sync_all()?;
        }
        if self.durable { Ok(File::open(&self.dir)?.sync_all()?) } else { Ok(()) }
    }
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
struct Database {
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
    fn open(dir: &Path, durable: bool) -> Result<Self> {
        let server = Server::start(dir)?;
        let mut client = server.connect()?;
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

struct Engine {
    store: Store,
    durability: Durability,
    tx: Option<WriteTx>,
}

impl Engine {
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
