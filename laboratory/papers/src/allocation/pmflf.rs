//! Persistent multiple free list fit (Iyengar §2.4) over one file, by any of the three methods.
//!
//! Owns the free lists in memory, the tail and the order of writes. A file is its header, the
//! heads of the disk lists, then blocks without gaps up to the tail. Each operation writes so
//! that the file is whole after any of its writes: what is split off gets its header before the
//! block it comes from changes; a list on disk loses a block before the block is used; a tag
//! changes last. Recovery and coalescing are in `recovery.rs`. Threads: none.

use super::block::{Block, FileHeader, Header, Method, Params, SECTOR, fresh_nonce};
use super::lists::{FreeLists, Taken};
pub use super::usage::{Counts, Usage};
use crate::kit::error::{Error, Result};
use crate::mutation::{Mutation, is};
use holdall_io::Disk;
use std::sync::Arc;

/// Where a block came from, and what must be written for it.
struct Found {
    block: Block,
    next: u64,
    /// On the free list before it, which must forget it.
    above: Option<Block>,
    /// Split off behind it.
    rest: Option<Block>,
    /// Whether it was part of the tail.
    new: bool,
}

/// One file of blocks.
#[derive(Debug)]
pub struct Pmflf {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) p: Params,
    pub(super) nonce: u32,
    pub(super) lists: FreeLists,
    /// Heads of PL's lists in memory (MLH); PFL's are the heads of `lists`.
    pub(super) heads: Vec<u64>,
    pub(super) tail: u64,
    pub(super) most: u64,
    pub(super) root: u64,
    pub(super) requested: u64,
    pub(super) allocated: u64,
    pub(super) blocks: u64,
    pub(super) counts: Counts,
    /// Tail allocations and list changes since the last checkpoint.
    pending: u32,
    /// Bytes the disk was grown to.
    pub(super) grown: u64,
    /// Where the tail ends, if the file is bounded.
    bound: u64,
    /// Bytes freed since free blocks were last combined.
    pub(super) since: u64,
}

/// A bounded file grows by at least this share of itself.
const GROWTH_SHARE: u64 = 64;

impl Pmflf {
    /// Makes an empty file on an empty disk. `seed` makes its code bytes differ from those of
    /// other files.
    pub fn create(disk: Arc<dyn Disk>, params: Params, seed: u64) -> Result<Self> {
        let mut this = Self::empty(disk, params, fresh_nonce(seed))?;
        this.tail = this.first();
        this.most = this.tail;
        this.reserve(this.tail)?;
        this.write_header(false, true, (0, 0))?;
        this.barrier()?;
        Ok(this)
    }

    pub(super) fn empty(disk: Arc<dyn Disk>, p: Params, nonce: u32) -> Result<Self> {
        if !p.grain.is_power_of_two() || p.grain < 128 || p.max_ql == 0 || p.max_ql > 1 << 16 {
            return Err(Error::Misuse("a grain is a power of two from 128, maxQL 1 to 65536"));
        }
        let lists = FreeLists::new(p.max_ql);
        let grown = disk.len()?;
        Ok(Self {
            heads: vec![0; lists.count()],
            disk,
            p,
            nonce,
            lists,
            tail: 0,
            most: 0,
            root: 0,
            requested: 0,
            allocated: 0,
            blocks: 0,
            counts: Counts::default(),
            pending: 0,
            grown,
            bound: grown,
            since: 0,
        })
    }

    /// Where the first block begins: behind the header and the heads of the disk lists.
    pub(super) fn first(&self) -> u64 {
        let area = if self.p.method == Method::Area { self.p.area } else { 0 };
        let bytes = (SECTOR + 8 * self.lists.count()) as u64 + 8 * area;
        bytes.next_multiple_of(u64::from(self.p.grain).max(SECTOR as u64))
    }

    /// Where the header of the block at `at` lies.
    pub(super) fn header_place(&self, at: u64) -> u64 {
        if self.p.method != Method::Area {
            return at;
        }
        let grain = at.saturating_sub(self.first()) / u64::from(self.p.grain);
        (SECTOR + 8 * self.lists.count()) as u64 + 8 * grain
    }

    /// The parameters.
    pub fn params(&self) -> &Params {
        &self.p
    }

    /// What was done so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What the file holds.
    pub fn usage(&self) -> Usage {
        Usage {
            blocks: self.blocks,
            allocated: self.allocated,
            requested: self.requested,
            free_blocks: self.lists.blocks() as u64,
            free: self.lists.grains() * u64::from(self.p.grain),
            tail: self.tail - self.first(),
            most: self.most - self.first(),
        }
    }

    /// The free lists in memory.
    pub fn lists(&self) -> &FreeLists {
        &self.lists
    }

    /// Bytes of a block's content.
    pub fn room(&self, block: Block) -> u64 {
        self.bytes(block.grains) - self.p.method.within() as u64
    }

    /// Grains in bytes.
    pub(super) fn bytes(&self, grains: u32) -> u64 {
        u64::from(grains) * u64::from(self.p.grain)
    }

    /// Allocates a block for `len` bytes; nothing but its tag is written. One access if
    /// nothing is split.
    pub fn allocate(&mut self, len: usize) -> Result<Block> {
        self.place(len, &[])
    }

    /// Allocates a block for `content` and writes both with one access.
    pub fn put(&mut self, content: &[u8]) -> Result<Block> {
        self.place(content.len(), content)
    }

    /// Allocates a block for `len` bytes and writes the first of them with the tag.
    pub fn allocate_with(&mut self, len: usize, first: &[u8]) -> Result<Block> {
        if first.len() > len {
            return Err(Error::Misuse("more content than the block is for"));
        }
        self.place(len, first)
    }

    fn place(&mut self, len: usize, content: &[u8]) -> Result<Block> {
        let grains = self.p.grains_for(len)?;
        if self.is_serious() {
            self.coalesce()?;
        }
        let mut found = self.find(grains)?;
        // Deferred coalescing: only when a request cannot be satisfied.
        if found.is_none() {
            if !is(Mutation::GrowsLast) {
                self.coalesce()?;
                found = self.find(grains)?;
            }
            if found.is_none() && self.extend(grains) {
                found = self.find(grains)?;
            }
        }
        let found = found.ok_or(Error::Full)?;
        self.seal(&found, content)?;
        self.requested += len as u64;
        self.allocated += self.bytes(found.block.grains);
        self.blocks += 1;
        Ok(found.block)
    }

    /// Whether free blocks have more of the file than footnote 3 allows, and a hundredth of it
    /// was freed since they were last combined.
    fn is_serious(&self) -> bool {
        let (used, free) = (self.tail - self.first(), self.usage().free);
        let many = free as f64 > self.p.serious * used as f64 && !is(Mutation::Serious);
        many && self.since > used / 100
    }

    /// Where the file must end: its area of headers reaches no further.
    pub(super) fn most_bytes(&self) -> u64 {
        let area = self.first() + self.p.area * u64::from(self.p.grain);
        if self.p.method == Method::Area { self.p.max_bytes.min(area) } else { self.p.max_bytes }
    }

    /// Lets a bounded file grow, so that its tail has room for `grains`.
    fn extend(&mut self, grains: u32) -> bool {
        let end = self.tail + self.bytes(grains);
        let more = end.max(self.bound + self.bound / GROWTH_SHARE);
        self.bound = more.next_multiple_of(self.p.growth.max(1)).min(self.most_bytes());
        self.p.bounded && end <= self.bound
    }

    /// The search of §2.4.1.
    fn find(&mut self, grains: u32) -> Result<Option<Found>> {
        let class = self.lists.class(grains);
        if self.lists.is_small(grains) {
            if !is(Mutation::QuickExact)
                && let Some(taken) = self.lists.pop(class)
            {
                self.counts.quick += 1;
                return Ok(Some(self.fitted(taken, grains)));
            }
        } else if let Some(found) = self.fit_misc(class, grains) {
            return Ok(Some(found));
        }
        if is(Mutation::TailFirst)
            && let Some(found) = self.fit_larger(class, grains)
        {
            return Ok(Some(found));
        }
        match self.fit_tail(grains)? {
            None => Ok(self.fit_larger(class, grains)),
            found => Ok(found),
        }
    }

    /// Step 3 for small blocks, step 5 for large ones.
    fn fit_larger(&mut self, class: usize, grains: u32) -> Option<Found> {
        for larger in class + 1..self.lists.count() {
            let found = if self.lists.range(larger).0 == self.lists.range(larger).1 {
                self.lists.pop(larger).map(|taken| self.fitted(taken, grains))
            } else {
                self.fit_misc(larger, grains)
            };
            if found.is_some() {
                self.counts.larger += 1;
                return found;
            }
        }
        None
    }

    /// Steps 2 and 3 for large blocks, on one list.
    fn fit_misc(&mut self, class: usize, grains: u32) -> Option<Found> {
        let most = grains.saturating_add(self.p.waste_grains());
        let first = self.lists.first_fit(class, grains, most);
        let taken = first.or_else(|| self.lists.smallest(class, grains))?;
        self.counts.misc += u64::from(taken.block.grains <= most);
        Some(self.fitted(taken, grains))
    }

    /// Splits what is larger than the waste allows.
    fn fitted(&mut self, taken: Taken, grains: u32) -> Found {
        let Taken { mut block, above, below } = taken;
        let mut rest = None;
        let waste = if is(Mutation::Waste) { 0 } else { self.p.waste_grains() };
        if block.grains > grains.saturating_add(waste) {
            let at = block.at + self.bytes(grains);
            rest = Some(Block { at, grains: block.grains - grains });
            block.grains = grains;
            self.counts.splits += 1;
        }
        Found { block, next: below, above, rest, new: false }
    }

    fn fit_tail(&mut self, grains: u32) -> Result<Option<Found>> {
        let end = self.tail + self.bytes(grains);
        let most = if self.p.bounded { self.bound } else { self.most_bytes() };
        if end > most {
            return Ok(None);
        }
        self.reserve(end)?;
        let block = Block { at: self.tail, grains };
        self.tail = end;
        self.most = self.most.max(end);
        self.counts.tail += 1;
        self.pending += 1;
        if is(Mutation::TailPointer) {
            self.checkpoint()?;
        }
        let next = self.join(block);
        Ok(Some(Found { block, next, above: None, rest: None, new: true }))
    }

    /// Grows the disk to hold `end` bytes and the header that may follow.
    pub(super) fn reserve(&mut self, end: u64) -> Result<()> {
        let wanted = end + self.p.method.header() as u64;
        if wanted > self.grown {
            self.grown = wanted.next_multiple_of(self.p.growth.max(1));
            self.disk.grow(self.grown)?;
        }
        Ok(())
    }

    /// By PL puts a new block at the head of its list; gives the block it then leads to.
    fn join(&mut self, block: Block) -> u64 {
        if self.p.method != Method::Pl {
            return 0;
        }
        self.pending += 1;
        let class = self.lists.class(block.grains);
        std::mem::replace(&mut self.heads[class], block.at)
    }

    /// Writes what a found block needs, its own header last and with its content.
    fn seal(&mut self, found: &Found, content: &[u8]) -> Result<()> {
        let pfl = self.p.method == Method::Pfl;
        if let Some(above) = found.above.filter(|_| pfl) {
            self.write_block(above, false, found.next, &[])?;
            self.counts.unlinks += 1;
            self.barrier()?;
        }
        if let Some(rest) = found.rest {
            let next = if pfl { self.head_of(rest.grains) } else { self.join(rest) };
            if !is(Mutation::SplitHeader) {
                self.write_block(rest, false, next, &[])?;
            }
            self.lists.push(rest);
            self.barrier()?;
        }
        match self.p.method {
            // A block of PL stays where it is on its list: the link behind its tag must too.
            Method::Pl if !found.new && content.is_empty() => self.write_tag(found.block, true)?,
            Method::Pl if !found.new => {
                let next = self.next_on_disk(found.block.at)?;
                self.write_block(found.block, true, next, content)?;
            }
            _ => self.write_block(found.block, true, found.next, content)?,
        }
        self.pending += u32::from(pfl);
        self.checkpoint_if_due()
    }

    /// The link of a block of PL, to be written again between its tag and its content.
    fn next_on_disk(&self, at: u64) -> Result<u64> {
        let mut link = [0; 8];
        self.disk.read_at(at + 8, &mut link)?;
        Ok(u64::from_le_bytes(link))
    }

    fn head_of(&self, grains: u32) -> u64 {
        self.lists.head(self.lists.class(grains)).map_or(0, |b| b.at)
    }

    /// Writes a block's header, and its content behind it.
    pub(super) fn write_block(
        &self,
        block: Block,
        allocated: bool,
        next: u64,
        content: &[u8],
    ) -> Result<()> {
        let header = Header { grains: block.grains, allocated, next }.encode(self.nonce);
        let header = &header[..self.p.method.header()];
        if self.p.method == Method::Area && !content.is_empty() {
            // The tag last: it leads to what is there.
            self.disk.write_at(block.at, content)?;
            self.barrier()?;
        }
        if content.is_empty() || self.p.method == Method::Area {
            return Ok(self.disk.write_at(self.header_place(block.at), header)?);
        }
        let mut all = Vec::with_capacity(header.len() + content.len());
        all.extend_from_slice(header);
        all.extend_from_slice(content);
        Ok(self.disk.write_at(block.at, &all)?)
    }

    fn write_tag(&self, block: Block, allocated: bool) -> Result<()> {
        let header = Header { grains: block.grains, allocated, next: 0 };
        Ok(self.disk.write_at(block.at, &header.encode(self.nonce)[..8])?)
    }

    /// Gives back a block that was allocated for `len` bytes. One access.
    pub fn free(&mut self, block: Block, len: usize) -> Result<()> {
        match self.p.method {
            Method::Ts | Method::Area => self.write_block(block, false, 0, &[])?,
            // The link behind the tag stays as it is.
            Method::Pl => self.write_tag(block, false)?,
            Method::Pfl => {
                let next = if is(Mutation::PflLink) { 0 } else { self.head_of(block.grains) };
                self.write_block(block, false, next, &[])?;
                self.pending += 1;
            }
        }
        self.lists.push(block);
        self.counts.freed += 1;
        self.since += self.bytes(block.grains);
        self.requested = self.requested.saturating_sub(len as u64);
        self.allocated -= self.bytes(block.grains);
        self.blocks = self.blocks.saturating_sub(1);
        if is(Mutation::Deferred) {
            self.coalesce()?;
        }
        self.checkpoint_if_due()
    }

    /// The allocated block at `at`. One read, as before it is given back by address (§2.1,
    /// footnote 2).
    pub fn block_at(&self, at: u64) -> Result<Block> {
        match self.header_at(at)? {
            Some(Header { grains, allocated: true, .. }) => Ok(Block { at, grains }),
            _ => Err(Error::Misuse("no allocated block is there")),
        }
    }

    pub(super) fn header_at(&self, at: u64) -> Result<Option<Header>> {
        let mut bytes = [0; 16];
        let header = &mut bytes[..self.p.method.header()];
        let end = self.grown.min(self.most_bytes());
        if at < self.first() || at + header.len() as u64 > end {
            return Ok(None);
        }
        self.disk.read_at(self.header_place(at), header)?;
        Ok(Header::decode(header, self.nonce))
    }

    /// Writes `bytes` within a block's content.
    pub fn write(&self, block: Block, offset: u64, bytes: &[u8]) -> Result<()> {
        if offset + bytes.len() as u64 > self.room(block) {
            return Err(Error::Misuse("a write past the end of its block"));
        }
        Ok(self.disk.write_at(block.at + self.p.method.within() as u64 + offset, bytes)?)
    }

    /// Reads from the content of the block at `at`, which the caller knows to be there; what
    /// lies behind it fills the rest of `buf`, or zeros at the file's end.
    pub fn read(&self, at: u64, offset: u64, buf: &mut [u8]) -> Result<()> {
        let from = at + self.p.method.within() as u64 + offset;
        let there = self.grown.saturating_sub(from).min(buf.len() as u64) as usize;
        buf[there..].fill(0);
        Ok(self.disk.read_at(from, &mut buf[..there])?)
    }

    /// Reads the block at `at` with its header into `buf`; gives its grains.
    pub(super) fn read_with_header(&self, at: u64, buf: &mut [u8]) -> Result<u32> {
        let there = self.grown.saturating_sub(at).min(buf.len() as u64) as usize;
        buf[there..].fill(0);
        self.disk.read_at(at, &mut buf[..there])?;
        let header = match self.p.method {
            Method::Area => self.header_at(at)?,
            method => Header::decode(&buf[..method.header()], self.nonce),
        };
        match header {
            Some(Header { grains, allocated: true, .. }) => Ok(grains),
            _ => Err(Error::Corrupt(format!("no allocated block at {at}"))),
        }
    }

    /// Bytes of the file as the disk has it.
    pub fn file_bytes(&self) -> Result<u64> {
        Ok(self.disk.len()?)
    }

    /// The address the user keeps in the file's header; 0 before it is set.
    pub fn root(&self) -> u64 {
        self.root
    }

    /// Sets it, and writes the header.
    pub fn set_root(&mut self, at: u64) -> Result<()> {
        self.root = at;
        self.checkpoint()
    }

    /// Tells the writes before apart from those behind, if the parameters ask for it.
    pub fn barrier(&self) -> Result<()> {
        if self.p.barriers {
            self.disk.sync()?;
        }
        Ok(())
    }

    /// Makes all writes durable.
    pub fn sync(&self) -> Result<()> {
        Ok(self.disk.sync()?)
    }

    fn checkpoint_if_due(&mut self) -> Result<()> {
        if self.pending >= self.p.checkpoint_every { self.checkpoint() } else { Ok(()) }
    }

    /// Copies the tail pointer and the list heads from memory to disk: one access.
    pub fn checkpoint(&mut self) -> Result<()> {
        // A tail on disk must not be ahead of the blocks before it.
        self.barrier()?;
        self.write_header(false, true, (0, 0))?;
        self.barrier()
    }

    pub(super) fn write_header(
        &mut self,
        clean: bool,
        lists: bool,
        saved: (u64, u64),
    ) -> Result<()> {
        let header = FileHeader {
            grain: self.p.grain,
            max_ql: self.p.max_ql,
            method: self.p.method,
            clean,
            lists,
            nonce: self.nonce,
            tail: self.tail,
            root: self.root,
            requested: self.requested,
            blocks: self.blocks,
            area: self.p.area,
            saved,
        };
        let mut bytes = header.encode().to_vec();
        if self.p.method == Method::Pfl {
            let heads = (0..self.lists.count()).map(|c| self.lists.head(c).map_or(0, |b| b.at));
            self.heads = heads.collect();
        }
        if self.p.method.has_lists() {
            bytes.extend(self.heads.iter().flat_map(|head| head.to_le_bytes()));
        }
        self.pending = 0;
        self.counts.checkpoints += 1;
        Ok(self.disk.write_at(0, &bytes)?)
    }

    /// A header that looks like one of another file.
    #[cfg(test)]
    pub(super) fn stray_header(seed: u64) -> [u8; 16] {
        Header { grains: 1, allocated: true, next: 0 }.encode(fresh_nonce(seed))
    }
}
