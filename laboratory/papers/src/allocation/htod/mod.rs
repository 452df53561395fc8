//! The hash table on disk (Iyengar §3): keys and values in blocks of a file, found by an index of
//! chains that doubles.
//!
//! Owns the file. The index of bucket heads is a block of its own, cached in memory; an item is
//! one block with its links, key and value. Every change becomes visible by one write of 8
//! bytes: an item is written whole before its bucket leads to it, and an item replaced or
//! removed is given back after nothing leads to it. A crash between leaves at most a block
//! allocated that nothing leads to, which [`Htod::sweep`] gives back. Each item has a link for
//! either generation of the index, so that doubling never changes what is in use; it is in
//! `doubling.rs`. Threads: none.

mod doubling;
mod item;
mod iterate;
mod root;
#[cfg(test)]
mod tests;

use super::block::{Block, Params};
use super::pmflf::Pmflf;
use super::recovery::Recovery;
use crate::kit::error::{Error, Result};
use crate::mutation::{Mutation, is};
use holdall_io::Disk;
pub use item::FIXED;
use item::{Item, hash};
use root::{INDEX, Root};
use std::sync::Arc;

/// Buckets of a new table, and keys per bucket from which on it doubles; the paper names none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// Buckets at first; a power of two.
    pub buckets: u64,
    /// Keys per bucket that lead to doubling.
    pub ratio: f64,
}

impl Default for Shape {
    fn default() -> Self {
        Self { buckets: 64, ratio: 1.0 }
    }
}

/// A table in a file.
#[derive(Debug)]
pub struct Htod {
    store: Pmflf,
    root_block: Block,
    root: Root,
    /// Bucket heads: a copy of the index on disk.
    heads: Vec<u64>,
    ratio: f64,
    keys: u64,
}

/// An item found in its chain: where the link to it is, and what it says.
struct Place {
    link: Link,
    item: Item,
}

/// Where a link is.
#[derive(Clone, Copy)]
enum Link {
    Bucket(u64),
    Item(u64),
}

impl Htod {
    /// Makes a table in a new file on an empty disk.
    pub fn create(disk: Arc<dyn Disk>, params: Params, shape: Shape, seed: u64) -> Result<Self> {
        if !shape.buckets.is_power_of_two() || shape.ratio.is_nan() || shape.ratio <= 0.0 {
            return Err(Error::Misuse("buckets are a power of two, the ratio is positive"));
        }
        let mut store = Pmflf::create(disk, params, seed)?;
        let index = store.put(&vec![0; shape.buckets as usize * 8])?;
        let root = Root { index, buckets: shape.buckets, ..Root::default() };
        let root_block = store.put(&root.encode())?;
        store.barrier()?;
        store.set_root(root_block.at)?;
        let heads = vec![0; shape.buckets as usize];
        Ok(Self { store, root_block, root, heads, ratio: shape.ratio, keys: 0 })
    }

    /// Opens the table in the file on `disk`; finishes what a crash has left half done.
    pub fn open(disk: Arc<dyn Disk>, params: Params, ratio: f64) -> Result<(Self, Recovery)> {
        let (store, found) = Pmflf::open(disk, params)?;
        if store.root() == 0 {
            return Err(Error::Corrupt("the file has no table".into()));
        }
        let root_block = store.block_at(store.root())?;
        let mut bytes = [0; root::BYTES];
        store.read(root_block.at, 0, &mut bytes)?;
        let root = Root::decode(&bytes)?;
        let heads = read_index(&store, root.index, root.buckets)?;
        let mut this = Self { store, root_block, root, heads, ratio, keys: 0 };
        this.finish_doubling()?;
        // All blocks but the root and the index are items, and what crashes left.
        this.keys = this.store.usage().blocks.saturating_sub(2);
        Ok((this, found))
    }

    /// Shuts the table down: see [`Pmflf::close`].
    pub fn close(self) -> Result<()> {
        self.store.close()
    }

    /// The file under it.
    pub fn store(&self) -> &Pmflf {
        &self.store
    }

    /// Number of keys. After a crash blocks that it left without use count too, and by PFL it
    /// is as of the last checkpoint.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Number of buckets.
    #[cfg(test)]
    pub fn buckets(&self) -> u64 {
        self.root.buckets
    }

    /// The value of a key. One access for each item of the chain up to it, one more if it is
    /// longer than 4 KiB.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.find(key)? {
            Some(place) => Ok(Some(place.item.value(&self.store)?)),
            None => Ok(None),
        }
    }

    /// Stores a value under a key: one access for each item of its chain, one to write the
    /// item, one for the bucket, and one to give back an item it replaces. Says whether there
    /// was one.
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<bool> {
        let found = self.find(key)?;
        let generation = self.root.generation();
        let link = found.as_ref().map_or(Link::Bucket(self.bucket(hash(key))), |p| p.link);
        let next = match (&found, link) {
            (Some(place), _) => place.item.next[generation],
            (None, Link::Bucket(i)) => self.heads[i as usize],
            (None, Link::Item(_)) => 0,
        };
        let mut links = [0; 2];
        links[generation] = next;
        let block = self.store.put(&item::encode(links, key, value)?)?;
        self.store.barrier()?;
        if let Some(place) = found.as_ref().filter(|_| is(Mutation::HtodGiveBack)) {
            self.give_back(&place.item)?;
        }
        self.set_link(link, block.at)?;
        self.store.barrier()?;
        if let Some(place) = &found {
            if !is(Mutation::HtodGiveBack) {
                self.give_back(&place.item)?;
            }
        } else {
            self.keys += 1;
            let full = self.keys as f64 > self.ratio * self.root.buckets as f64;
            if full && !is(Mutation::HtodDouble) {
                self.double()?;
            }
        }
        Ok(found.is_some())
    }

    /// Removes a key: one access for each item of its chain, two to change the link and give
    /// the item back. Says whether it was there.
    pub fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let Some(place) = self.find(key)? else { return Ok(false) };
        self.set_link(place.link, place.item.next[self.root.generation()])?;
        self.store.barrier()?;
        self.give_back(&place.item)?;
        self.keys -= 1;
        Ok(true)
    }

    /// Makes all changes durable.
    pub fn sync(&self) -> Result<()> {
        self.store.sync()
    }

    /// Copies the tail pointer and list heads to disk, and makes all changes durable.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.store.checkpoint()?;
        self.store.sync()
    }

    fn bucket(&self, hash: u64) -> u64 {
        hash & (self.root.buckets - 1)
    }

    fn find(&self, key: &[u8]) -> Result<Option<Place>> {
        let hash = hash(key);
        let bucket = self.bucket(hash);
        let mut link = Link::Bucket(bucket);
        let mut at = self.heads[bucket as usize];
        while at != 0 {
            let item = Item::read(&self.store, at)?;
            if item.hash == hash && item.key(&self.store)? == key {
                return Ok(Some(Place { link, item }));
            }
            (link, at) = (Link::Item(at), item.next[self.root.generation()]);
        }
        Ok(None)
    }

    fn set_link(&mut self, link: Link, to: u64) -> Result<()> {
        match link {
            Link::Bucket(i) => {
                self.store.write(self.root.index, i * 8, &to.to_le_bytes())?;
                self.heads[i as usize] = to;
                Ok(())
            }
            Link::Item(at) => self.set_next(at, self.root.generation(), to),
        }
    }

    /// Writes one link of the item at `at`.
    fn set_next(&self, at: u64, generation: usize, to: u64) -> Result<()> {
        // The block is known to hold an item: its size does not matter.
        let item = Block { at, grains: 1 };
        self.store.write(item, 8 * generation as u64, &to.to_le_bytes())
    }

    fn give_back(&mut self, item: &Item) -> Result<()> {
        let len = FIXED + item.key_len + item.value_len;
        let block = Block { at: item.at, grains: item.grains };
        self.store.free(block, len)
    }

    fn write_root(&mut self) -> Result<()> {
        self.store.barrier()?;
        self.store.write(self.root_block, 0, &self.root.encode())?;
        self.store.barrier()
    }
}

fn read_index(store: &Pmflf, index: Block, buckets: u64) -> Result<Vec<u64>> {
    if buckets * 8 > store.room(index) {
        return Err(Error::Corrupt("the table's index is longer than its block".into()));
    }
    let mut bytes = vec![0; buckets as usize * INDEX];
    store.read(index.at, 0, &mut bytes)?;
    Ok(bytes.chunks_exact(INDEX).map(|b| holdall_core::techniques::bytes::u64_at(b, 0)).collect())
}
