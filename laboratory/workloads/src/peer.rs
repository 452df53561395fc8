//! What a store is to the workloads: one trait that Holdall and every peer answers to.
//!
//! Owns: the trait and its errors. A store takes part in the workloads it has the calls for;
//! what it has no call of its own for, the trait does the way an application would have to.

use anyhow::{Result, ensure};
use std::path::Path;

/// What objects a store is opened for; peers choose their recommended settings by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// 100 to 300 bytes.
    Small,
    /// Some kilobytes.
    Web,
    /// Megabytes.
    Large,
}

/// What all stores are given alike.
#[derive(Debug, Clone, Copy)]
pub struct Setup {
    /// Bytes of cache the store may use for itself.
    pub cache_bytes: u64,
    /// What it will hold.
    pub load: Load,
}

/// Opens stores of one kind.
pub trait Maker: Send + Sync {
    /// What tables call it: `LMDB`, `RocksDB blobs`, `Holdall by OID`.
    fn name(&self) -> &'static str;
    /// Version and the settings that matter, for the report.
    fn settings(&self, setup: &Setup) -> String;
    /// Whether it takes part with such objects.
    fn takes(&self, _load: Load) -> bool {
        true
    }
    /// Opens the store in directory `dir`, which exists; makes it if the directory is empty.
    ///
    /// # Errors
    /// Whatever the store says.
    fn open(&self, dir: &Path, setup: &Setup) -> Result<Box<dyn Peer>>;

    /// As [`Maker::open`], for a store that shall not grow beyond `volume` bytes. Stores that
    /// cannot be held to a size are opened without a limit.
    ///
    /// # Errors
    /// As [`Maker::open`].
    fn open_within(&self, dir: &Path, setup: &Setup, _volume: u64) -> Result<Box<dyn Peer>> {
        self.open(dir, setup)
    }

    /// Whether its keys must be ordinals (eight bytes, big-endian, below 2^30) because the
    /// store gives out ids of its own and the adapter looks those up by ordinal. Such stores
    /// sit out if keys are random.
    fn by_ordinal(&self) -> bool {
        false
    }
}

/// An open store: a map from key to bytes. Shared by threads. Every call that changes
/// something is durable when it returns, and all or nothing if the store can do so.
pub trait Peer: Send + Sync {
    /// Puts all of `items` in one commit, each in place of what its key had.
    ///
    /// # Errors
    /// Whatever the store says; so for all calls below.
    fn put(&self, items: &[(&[u8], &[u8])]) -> Result<()>;

    /// As [`Peer::put`], for what must be there before a measurement begins: it need not be
    /// durable before [`Peer::settle`], and may be spread over commits.
    ///
    /// # Errors
    /// Whatever the store says.
    fn preload(&self, items: &[(&[u8], &[u8])]) -> Result<()> {
        self.put(items)
    }

    /// Puts one object of `size` bytes drawn from `next`, which fills the buffer it is given.
    /// Stores without streams collect the bytes first.
    fn put_stream(&self, key: &[u8], size: u64, next: &mut dyn FnMut(&mut [u8])) -> Result<()> {
        let mut all = vec![0; usize::try_from(size)?];
        next(&mut all);
        self.put(&[(key, &all)])
    }

    /// Makes `out` the object's bytes; false if there is none of that key.
    /// A transaction or snapshot of its own, if the store has such a thing: it sees the
    /// newest commit.
    fn get(&self, key: &[u8], out: &mut Vec<u8>) -> Result<bool>;

    /// Gets all of `keys`, each of which exists, in one read transaction or snapshot if the
    /// store has such a thing, and calls `seen` with each object in order. Without: one
    /// [`Peer::get`] after the other.
    ///
    /// # Errors
    /// Whatever the store says; a key without an object.
    fn get_many(&self, keys: &[&[u8]], seen: &mut dyn FnMut(&[u8])) -> Result<()> {
        let mut out = Vec::new();
        for key in keys {
            ensure!(self.get(key, &mut out)?, "no object {key:?}");
            seen(&out);
        }
        Ok(())
    }

    /// Looks at the object where it lies, if the store can do without a copy, else at a copy:
    /// calls `seen` with pieces of it in order.
    fn view(&self, key: &[u8], seen: &mut dyn FnMut(&[u8])) -> Result<bool> {
        let mut out = Vec::new();
        let found = self.get(key, &mut out)?;
        if found {
            seen(&out);
        }
        Ok(found)
    }

    /// Fills `out` from the object's byte `offset` on.
    fn get_range(&self, key: &[u8], offset: u64, out: &mut [u8]) -> Result<()>;

    /// Replaces the `delete` bytes at `offset` by `insert`.
    fn splice(&self, key: &[u8], offset: u64, delete: u64, insert: &[u8]) -> Result<()>;

    /// Removes all of `keys` in one commit.
    fn delete(&self, keys: &[&[u8]]) -> Result<()>;

    /// What a careful operator lets run before measuring space or a second phase: the
    /// store's own checkpoint or compaction if its documentation asks for one.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// Closes in order.
    fn close(self: Box<Self>) -> Result<()>;
}
