//! RocksDB: a log-structured merge tree, with or without blob files (BlobDB).
//!
//! Owns: the adapter. Writes are batches with a synced log, grouped by RocksDB when several
//! threads commit at once; flushing and compaction run in its own threads.

use super::{copy_range, copy_whole, locked, mib, spliced};
use anyhow::{Context, Result};
use holdall_bench::peer::{Load, Maker, Peer, Setup};
use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, DBPinnableSlice, DataBlockIndexType, Options,
    WaitForCompactOptions, WriteBatch, WriteOptions,
};
use std::path::Path;

/// From this size on a value goes to a blob file; the same as fjall's default.
const MIN_BLOB: u64 = 1 << 10;

/// The column family every database has.
const DEFAULT_FAMILY: &str = "default";

/// Opens RocksDB databases.
pub struct RocksDb {
    blobs: bool,
}

struct Store {
    db: DB,
}

impl RocksDb {
    /// Values in the tree.
    pub fn plain() -> Self {
        Self { blobs: false }
    }

    /// Values of 1 KiB and more in blob files: web and large objects.
    pub fn blobs() -> Self {
        Self { blobs: true }
    }

    fn options(&self, setup: &Setup) -> Result<Options> {
        // Charge 0: the cache fits itself to the sizes it meets, as its documentation advises.
        let cache = Cache::new_hyper_clock_cache(usize::try_from(setup.cache_bytes)?, 0);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&table(&cache, setup.load));
        options.set_level_compaction_dynamic_level_bytes(true);
        options.set_bytes_per_sync(1 << 20);
        options.set_max_background_jobs(6);
        options.set_compression_type(DBCompressionType::None);
        options.set_bottommost_compression_type(DBCompressionType::None);
        if self.blobs {
            options.set_enable_blob_files(true);
            options.set_min_blob_size(MIN_BLOB);
            options.set_blob_compression_type(DBCompressionType::None);
            options.set_enable_blob_gc(true);
            options.set_blob_cache(&cache);
        }
        Ok(options)
    }
}

fn table(cache: &Cache, load: Load) -> BlockBasedOptions {
    let mut table = BlockBasedOptions::default();
    table.set_block_cache(cache);
    table.set_block_size(block_bytes(load));
    table.set_bloom_filter(10.0, false);
    table.set_optimize_filters_for_memory(true);
    table.set_cache_index_and_filter_blocks(true);
    table.set_pin_l0_filter_and_index_blocks_in_cache(true);
    table.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    table
}

/// The tuning guide's 16 KiB, but RocksDB's default of 4 KiB for small objects, if a get
/// searches the whole block.
fn block_bytes(load: Load) -> usize {
    match load {
        Load::Small => 4 << 10,
        Load::Web | Load::Large => 16 << 10,
    }
}

impl Maker for RocksDb {
    fn name(&self) -> &'static str {
        if self.blobs { "RocksDB blobs" } else { "RocksDB" }
    }

    fn settings(&self, setup: &Setup) -> String {
        let blobs = if self.blobs {
            "values from 1 KiB on in blob files, their garbage collection on, blobs in the \
             block cache"
        } else {
            "values in the tree"
        };
        format!(
            "RocksDB (rust-rocksdb {}, librocksdb-sys {}): {blobs}; sync=true for every write \
             (WAL, fdatasync); HyperClockCache {} MiB holding data, index and filter blocks; \
             blocks of {} KiB with hash index; full Bloom filters of 10 bits for a key; leveled \
             compaction with dynamic level sizes, 6 background jobs, bytes_per_sync 1 MiB (its \
             tuning guide); memtable 64 MiB (default); no compression, for random bytes",
            locked("rocksdb"),
            locked("librocksdb-sys"),
            mib(setup.cache_bytes),
            block_bytes(setup.load) >> 10,
        )
    }

    fn takes(&self, load: Load) -> bool {
        !self.blobs || load != Load::Small
    }

    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Peer>> {
        let options = self.options(setup)?;
        // Named, because MultiGet in batches takes a column family's handle.
        let families = [(DEFAULT_FAMILY, options.clone())];
        Ok(Box::new(Store { db: DB::open_cf_with_opts(&options, dir, families)? }))
    }
}

impl Store {
    /// Runs `fill` on a batch and commits it with a synced log.
    fn write(&self, fill: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        let mut batch = WriteBatch::default();
        fill(&mut batch);
        let mut options = WriteOptions::default();
        options.set_sync(true);
        Ok(self.db.write_opt(batch, &options)?)
    }

    fn value(&self, key: &[u8]) -> Result<DBPinnableSlice<'_>> {
        self.db.get_pinned(key)?.context("no such object")
    }
}

impl Peer for Store {
    fn put(&self, items: &[(&[u8], &[u8])]) -> Result<()> {
        self.write(|batch| {
            for (key, value) in items {
                batch.put(key, value);
            }
        })
    }

    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        let value = self.db.get_pinned(key)?;
        Ok(value.map(|value| copy_whole(&value, out)).is_some())
    }

    /// By MultiGet, which RocksDB advises for several keys: it looks them up in batches, all
    /// from one snapshot.
    fn get_many(&self, keys: &[&[u8]], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        let family = self.db.cf_handle(DEFAULT_FAMILY).context("no default column family")?;
        for value in self.db.batched_multi_get_cf(family, keys.iter().copied(), false) {
            seen(&value?.context("no such object")?);
        }
        Ok(())
    }

    fn view(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        Ok(self.db.get_pinned(key)?.map(|value| seen(&value)).is_some())
    }

    fn get_range(&self, key: &[u8], offset: u64, out: &mut [u8]) -> Result<()> {
        copy_range(&self.value(key)?, offset, out)
    }

    fn splice(&self, key: &[u8], offset: u64, delete: u64, insert: &[u8]) -> Result<()> {
        let new = spliced(&self.value(key)?, offset, delete, insert)?;
        self.write(|batch| batch.put(key, new))
    }

    fn delete(&self, keys: &[&[u8]]) -> Result<()> {
        self.write(|batch| {
            for key in keys {
                batch.delete(key);
            }
        })
    }

    /// Flushes the memtable and waits for the automatic compactions.
    fn settle(&self) -> Result<()> {
        let mut options = WaitForCompactOptions::default();
        options.set_flush(true);
        Ok(self.db.wait_for_compact(&options)?)
    }

    fn close(self: Box<Self>) -> Result<()> {
        // Without this, dropping waits for the compactions in progress anyway, but a queued
        // one could still start.
        self.db.cancel_all_background_work(true);
        drop(self);
        Ok(())
    }
}
