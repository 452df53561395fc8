//! Optimized batch allocation (Iyengar §2.5, figure 8): new objects wait in memory and get their
//! blocks together.
//!
//! Owns the objects of the batch. Requests are placed from the largest to the smallest into the
//! best fitting free block of at least T; what a block has left stays in the list for the rest
//! of the batch. Blocks are written in the order of their addresses, those that follow each
//! other with one write. The paper does not say what follows a request that fails: here the
//! tail, as for a single request (§2.4.1). A block that is split must keep its own header until
//! all behind it is written: its first part then needs a write of its own. Threads: none.

use super::block::{Block, Header, Method};
use super::pmflf::Pmflf;
use crate::kit::error::{Error, Result};
use crate::mutation::{Mutation, is};
use std::collections::BTreeSet;

/// A batch in the making.
#[derive(Debug)]
pub struct Batch {
    threshold: u32,
    objects: Vec<Vec<u8>>,
}

impl Batch {
    /// An empty batch that uses no free block below `threshold` grains (T).
    pub fn new(threshold: u32) -> Self {
        Self { threshold, objects: Vec::new() }
    }

    /// Keeps an object in memory; gives its number in the batch.
    pub fn add(&mut self, object: Vec<u8>) -> usize {
        self.objects.push(object);
        self.objects.len() - 1
    }

    /// Number of objects that wait.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Allocates and writes all of them; gives their blocks by number. The batch is empty then.
    pub fn write(&mut self, store: &mut Pmflf) -> Result<Vec<Block>> {
        if store.p.method != Method::Ts {
            return Err(Error::Misuse("batch allocation is for files of TS"));
        }
        let objects = std::mem::take(&mut self.objects);
        let mut order: Vec<(u32, usize)> = Vec::with_capacity(objects.len());
        for (i, object) in objects.iter().enumerate() {
            order.push((store.p.grains_for(object.len())?, i));
        }
        order.sort_unstable_by(|a, b| b.cmp(a));
        if is(Mutation::ObaLargest) {
            order.reverse();
        }
        let mut space = Space::of(store, self.threshold);
        let mut blocks = vec![Block { at: 0, grains: 0 }; objects.len()];
        for (grains, i) in order {
            blocks[i] = space.take(store, grains)?;
        }
        let mut written: Vec<(Block, &[u8])> =
            blocks.iter().zip(&objects).map(|(&block, object)| (block, &object[..])).collect();
        if !is(Mutation::ObaAddress) {
            written.sort_unstable_by_key(|(block, _)| block.at);
        }
        space.write(store, &written)?;
        for (block, object) in &written {
            store.requested += object.len() as u64;
            store.allocated += store.bytes(block.grains);
            store.blocks += 1;
        }
        store.checkpoint()?;
        Ok(blocks)
    }
}

/// The free blocks of one batch.
struct Space {
    /// By size, then address.
    free: BTreeSet<(u32, u64)>,
    /// Where blocks begin that were free when the batch began.
    begun: BTreeSet<u64>,
    /// Where the tail was then.
    tail: u64,
}

impl Space {
    /// Takes the blocks of at least T out of the free lists.
    fn of(store: &mut Pmflf, threshold: u32) -> Self {
        let mut this = Self { free: BTreeSet::new(), begun: BTreeSet::new(), tail: store.tail };
        for block in store.lists.drain() {
            if block.grains < threshold && !is(Mutation::ObaSmall) {
                store.lists.push(block);
            } else {
                this.free.insert((block.grains, block.at));
                this.begun.insert(block.at);
            }
        }
        this
    }

    /// The best fit for a request, or a part of the tail.
    fn take(&mut self, store: &mut Pmflf, grains: u32) -> Result<Block> {
        if let Some(block) = self.best_fit(store, grains) {
            return Ok(block);
        }
        let end = store.tail + store.bytes(grains);
        if end > store.p.max_bytes {
            return Err(Error::Full);
        }
        store.reserve(end)?;
        let block = Block { at: store.tail, grains };
        store.tail = end;
        store.most = store.most.max(end);
        store.counts.tail += 1;
        Ok(block)
    }

    fn best_fit(&mut self, store: &mut Pmflf, grains: u32) -> Option<Block> {
        let mut fit = self.free.range((grains, 0)..);
        let &(size, at) = if is(Mutation::ObaBest) { fit.next_back() } else { fit.next() }?;
        self.free.remove(&(size, at));
        if size > grains {
            self.free.insert((size - grains, at + store.bytes(grains)));
            store.counts.splits += 1;
        }
        Some(Block { at, grains })
    }

    /// Writes the objects, and headers of what is left of split blocks; gives the rest back.
    fn write(self, store: &mut Pmflf, written: &[(Block, &[u8])]) -> Result<()> {
        let rest: BTreeSet<(u64, u32)> = self.free.iter().map(|&(g, at)| (at, g)).collect();
        let mut from = 0;
        while from < written.len() {
            let first = written[from].0;
            let mut end = first.at + store.bytes(first.grains);
            let mut to = from + 1;
            // Up to where another block begins that is whole on disk.
            while let Some((next, _)) = written.get(to)
                && next.at == end
                && !self.begun.contains(&end)
                && end != self.tail
            {
                end += store.bytes(next.grains);
                to += 1;
            }
            let left = rest.range((end, 0)..=(end, u32::MAX)).next().copied();
            let left = left.filter(|(at, _)| !self.begun.contains(at));
            let run = encode(store, &written[from..to], left);
            // The tail's first header may come first: walks end where the code bytes do.
            let whole = run.len() == 1 || first.at >= self.tail;
            write_run(store, first.at, &run, whole)?;
            from = to;
        }
        for (grains, at) in self.free {
            store.lists.push(Block { at, grains });
        }
        Ok(())
    }
}

/// The bytes of blocks that follow each other, block by block; of the last one and of the free
/// one behind them only what is used.
fn encode(store: &Pmflf, run: &[(Block, &[u8])], left: Option<(u64, u32)>) -> Vec<Vec<u8>> {
    let mut parts = Vec::with_capacity(run.len() + 1);
    for (i, (block, object)) in run.iter().enumerate() {
        let header = Header { grains: block.grains, allocated: true, next: 0 };
        let mut part = header.encode(store.nonce)[..8].to_vec();
        part.extend_from_slice(object);
        if i + 1 < run.len() || left.is_some() {
            part.resize(store.bytes(block.grains) as usize, 0);
        }
        parts.push(part);
    }
    if let Some((_, grains)) = left {
        let header = Header { grains, allocated: false, next: 0 };
        parts.push(header.encode(store.nonce)[..8].to_vec());
    }
    parts
}

fn write_run(store: &Pmflf, at: u64, parts: &[Vec<u8>], whole: bool) -> Result<()> {
    if whole {
        return Ok(store.disk.write_at(at, &parts.concat())?);
    }
    store.disk.write_at(at + parts[0].len() as u64, &parts[1..].concat())?;
    store.barrier()?;
    Ok(store.disk.write_at(at, &parts[0])?)
}
