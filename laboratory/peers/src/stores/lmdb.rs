//! LMDB through heed: a copy-on-write B+-tree read through a memory map.
//!
//! Owns: the adapter. One write transaction at a time; each get begins and ends a read
//! transaction, whose reader slot LMDB keeps for the thread. A value lies in one piece in
//! the map, so views and ranges need no copy of the whole. A read transaction is not kept
//! open from get to get: it would hold back the reuse of freed pages.

use super::{copy_range, copy_whole, locked, spliced};
use anyhow::{Context, Result};
use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvOpenOptions, PutFlags, RwTxn};
use holdall_bench::peer::{Maker, Peer, Setup};
use std::io::Write;
use std::path::Path;

/// Address space for the map; the file grows only as data comes.
const MAP_BYTES: usize = 256 << 30;

/// Bytes a stream is handed over in.
const CHUNK: usize = 256 << 10;

type Objects = Database<'static, Bytes, Bytes>;

/// Opens LMDB environments.
pub struct Lmdb;

struct Store {
    env: Env,
    objects: Objects,
}

impl Maker for Lmdb {
    fn name(&self) -> &'static str {
        "LMDB"
    }

    fn settings(&self, _setup: &Setup) -> String {
        let version = heed::lmdb_version();
        format!(
            "LMDB {}.{}.{} (heed {}): durable commits (no MDB_NOSYNC, MDB_NOMETASYNC or \
             MDB_MAPASYNC); no MDB_WRITEMAP (its documentation names loss of protection \
             against stray writes, and it is not the default); map of {} GiB of address \
             space; no cache of its own: it reads from the page cache, which the cache budget \
             does not bound; keys above the highest present go in with MDB_APPEND, as \
             recommended for ordered loads; one read transaction for each get, reader slots \
             by thread",
            version.major,
            version.minor,
            version.patch,
            locked("heed"),
            MAP_BYTES >> 30,
        )
    }

    fn open(&self, dir: &Path, _setup: &Setup) -> Result<Box<dyn Peer>> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_readers(126);
        #[expect(unsafe_code, reason = "heed asks the caller that nobody else changes the file")]
        // SAFETY: the directory belongs to this run, and no other process opens it.
        let env = unsafe { options.open(dir)? };
        let objects = env
            .create_databases_and_commit(env.write_txn()?, |opener, txn| {
                let objects = opener.create_database::<Bytes, Bytes>(txn, None)?;
                heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(objects))
            })?
            .commit()
            .context("LMDB did not open its database")?;
        Ok(Box::new(Store { env, objects }))
    }
}

impl Store {
    /// Runs `change` in one durable transaction.
    fn write(&self, change: impl FnOnce(&mut RwTxn<'_>) -> Result<()>) -> Result<()> {
        let mut txn = self.env.write_txn()?;
        change(&mut txn)?;
        Ok(txn.commit()?)
    }

    /// Gives the value to `seen` in the map; `None` if there is none.
    fn read<R>(&self, key: &[u8], seen: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let txn = self.env.read_txn()?;
        Ok(self.objects.get(&txn, key)?.map(seen))
    }
}

impl Peer for Store {
    fn put(&self, items: &[(&[u8], &[u8])]) -> Result<()> {
        self.write(|txn| {
            let highest = self.objects.last(txn)?.map(|(key, _)| key.to_vec());
            let mut highest = highest.as_deref();
            for &(key, value) in items {
                if highest.is_none_or(|highest| key > highest) {
                    self.objects.put_with_flags(txn, PutFlags::APPEND, key, value)?;
                    highest = Some(key);
                } else {
                    self.objects.put(txn, key, value)?;
                }
            }
            Ok(())
        })
    }

    fn put_stream(&self, key: &[u8], size: u64, next: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let size = usize::try_from(size)?;
        self.write(|txn| {
            Ok(self.objects.put_reserved(txn, key, size, |space| {
                let mut chunk = vec![0; CHUNK.min(size)];
                while space.remaining() > 0 {
                    let length = chunk.len().min(space.remaining());
                    next(&mut chunk[..length]);
                    space.write_all(&chunk[..length])?;
                }
                Ok(())
            })?)
        })
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        Ok(self.read(key, |value| copy_whole(value, out))?.is_some())
    }

    fn get_many(&self, keys: &[&[u8]], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        let txn = self.env.read_txn()?;
        for key in keys {
            seen(self.objects.get(&txn, key)?.context("no such object")?);
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
        self.write(|txn| {
            let old = self.objects.get(txn, key)?.context("no such object")?;
            let new = spliced(old, offset, delete, insert)?;
            Ok(self.objects.put(txn, key, &new)?)
        })
    }

    fn delete(&self, keys: &[&[u8]]) -> Result<()> {
        self.write(|txn| {
            for key in keys {
                self.objects.delete(txn, key)?;
            }
            Ok(())
        })
    }

    fn close(self: Box<Self>) -> Result<()> {
        let closing = self.env.prepare_for_closing();
        closing.wait();
        Ok(())
    }
}
