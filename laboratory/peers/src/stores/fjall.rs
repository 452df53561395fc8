//! fjall: a log-structured merge tree in Rust, with or without separation of large values.
//!
//! Owns: the adapter. Writes are batches, made durable before they return; flushing and
//! compaction run in fjall's own threads.

use super::{copy_range, copy_whole, locked, mib, spliced};
use anyhow::{Context, Result};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, OwnedWriteBatch};
use fjall::{PersistMode, Readable, UserValue};
use holdall_bench::peer::{Load, Maker, Peer, Setup};
use std::path::Path;
use std::time::Duration;

/// Opens fjall databases.
pub struct Fjall {
    blobs: bool,
}

struct Store {
    db: Database,
    objects: Keyspace,
}

impl Fjall {
    /// Values in the tree: small and web objects.
    pub fn plain() -> Self {
        Self { blobs: false }
    }

    /// Values of 1 KiB and more in blob files: web and large objects.
    pub fn blobs() -> Self {
        Self { blobs: true }
    }
}

impl Maker for Fjall {
    fn name(&self) -> &'static str {
        if self.blobs { "fjall blobs" } else { "fjall" }
    }

    fn settings(&self, setup: &Setup) -> String {
        let separation = if self.blobs {
            "key-value separation with its defaults (values from 1 KiB on in blob files of \
             64 MiB, collected from 25 % staleness on)"
        } else {
            "values in the tree"
        };
        format!(
            "fjall {} (lsm-tree {}): {separation}; block cache {} MiB; memtable 64 MiB, journal \
             512 MiB, blocks of 4 KiB, leveled compaction, Bloom filters (defaults); each \
             batch PersistMode::SyncData (fdatasync, as the other stores do; its \
             documentation names it for durable commits); built without LZ4, for random bytes",
            locked("fjall"),
            locked("lsm-tree"),
            mib(setup.cache_bytes),
        )
    }

    fn takes(&self, load: Load) -> bool {
        match load {
            Load::Small => !self.blobs,
            Load::Web => true,
            Load::Large => self.blobs,
        }
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Peer>> {
        let db = Database::builder(dir.join("fjall")).cache_size(setup.cache_bytes).open()?;
        let separation = self.blobs.then(KvSeparationOptions::default);
        let options = || KeyspaceCreateOptions::default().with_kv_separation(separation);
        let objects = db.keyspace("objects", options)?;
        Ok(Box::new(Store { db, objects }))
    }
}

impl Store {
    /// Runs `fill` on a batch and commits it durably.
    fn write(&self, fill: impl FnOnce(&mut OwnedWriteBatch)) -> Result<()> {
        let mut batch = self.db.batch().durability(Some(PersistMode::SyncData));
        fill(&mut batch);
        Ok(batch.commit()?)
    }

    fn value(&self, key: &[u8]) -> Result<UserValue> {
        self.objects.get(key)?.context("no such object")
    }
}

impl Peer for Store {
    fn put(&self, items: &[(&[u8], &[u8])]) -> Result<()> {
        self.write(|batch| {
            for &(key, value) in items {
                batch.insert(&self.objects, key, value);
            }
        })
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let value = self.objects.get(key)?;
        Ok(value.map(|value| copy_whole(&value, out)).is_some())
    }

    fn get_many(&self, keys: &[&[u8]], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        let snapshot = self.db.snapshot();
        for key in keys {
            seen(&snapshot.get(&self.objects, key)?.context("no such object")?);
        }
        Ok(())
    }

    fn view(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.objects.get(key)?.map(|value| seen(&value)).is_some())
    }

    fn get_range(&self, key: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
        copy_range(&self.value(key)?, offset, out)
    }

    fn splice(&self, key: &[u8], offset: u64, delete: u64, insert: &[u8]) -> Result<()> {
        let new = spliced(&self.value(key)?, offset, delete, insert)?;
        self.write(|batch| batch.insert(&self.objects, key, new))
    }

    fn delete(&self, keys: &[&[u8]]) -> Result<()> {
        self.write(|batch| {
            for &key in keys {
                batch.remove(&self.objects, key);
            }
        })
    }

    /// Flushes the memtable and lets the automatic compactions come to rest; fjall's
    /// documentation asks for no other maintenance.
    fn settle(&self) -> Result<()> {
        self.objects.rotate_memtable_and_wait()?;
        // A compaction may start another: three quiet looks in a row count as rest.
        let mut quiet = 0;
        while quiet < 3 {
            std::thread::sleep(Duration::from_millis(20));
            let busy = self.db.active_compactions() > 0 || self.db.outstanding_flushes() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
        }
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.db.persist(PersistMode::SyncAll)?;
        // Dropping the last handles stops the worker threads.
        drop(self);
        Ok(())
    }
}
