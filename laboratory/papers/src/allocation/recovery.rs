//! Opening a file after a shutdown or a crash, finding its tail, coalescing, shutting down
//! (Iyengar §2.1 to §2.4.3).
//!
//! Owns the walks over headers and lists. After a shutdown the free blocks come from the area
//! that it wrote. After a crash TS walks over all headers, in an area many with one read; PL and
//! PFL follow their lists; all walk on from the tail pointer on disk, over blocks whose code bytes
//! repeat their tags. Freed blocks count as blocks there: were the tail put before one, blocks
//! behind it would be lost.
//! Threads: none.

use super::block::{Block, FileHeader, Header, Method, Params, SECTOR};
use super::pmflf::Pmflf;
use crate::kit::error::{Error, Result};
use crate::mutation::{Mutation, is};
use holdall_core::techniques::bytes::{u32_at, u64_at};
use holdall_io::Disk;
use std::collections::HashSet;
use std::sync::Arc;

/// What opening a file took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the file had been shut down.
    pub clean: bool,
    /// Headers of blocks read.
    pub headers: u64,
    /// Allocated blocks dropped from the heads of free lists (PFL).
    pub dropped: u64,
    /// Blocks found behind the tail pointer on disk.
    pub behind_tail: u64,
    /// Whether lists were made anew, because a crash came while they changed.
    pub rebuilt: bool,
}

/// Bytes of an area's headers that are read at once.
const WINDOW: u64 = 1 << 16;

/// Headers of an area that were read.
#[derive(Default)]
struct Window {
    from: u64,
    bytes: Vec<u8>,
}

impl Pmflf {
    /// Opens the file on `disk`. Grain, maxQL and method are those it was made with; the rest is
    /// as `params` says.
    pub fn open(disk: Arc<dyn Disk>, params: Params) -> Result<(Self, Recovery)> {
        let mut sector = [0; SECTOR];
        disk.read_at(0, &mut sector)?;
        let header = FileHeader::decode(&sector)?;
        let FileHeader { grain, max_ql, method, area, .. } = header;
        let params = Params { grain, max_ql, method, area, ..params };
        let mut this = Self::empty(disk, params, header.nonce)?;
        if header.tail < this.first() || header.tail > this.grown {
            let (tail, len) = (header.tail, this.grown);
            return Err(Error::Corrupt(format!(
                "the tail pointer is {tail}, the file's end {len}"
            )));
        }
        (this.root, this.requested, this.blocks) = (header.root, header.requested, header.blocks);
        (this.tail, this.most) = (header.tail, header.tail);
        this.read_heads()?;
        let mut found = Recovery { clean: header.clean, ..Recovery::default() };
        if header.clean {
            this.load(header.saved)?;
        } else {
            match method {
                Method::Ts | Method::Area => this.recover_all(&mut found)?,
                _ if !header.lists => {
                    this.recover_all(&mut found)?;
                    this.rebuild_lists()?;
                    found.rebuilt = true;
                }
                _ => this.recover_lists(&mut found)?,
            }
            this.most = this.tail;
        }
        let used = (this.tail - this.first()) / u64::from(grain);
        this.allocated = (used - this.lists.grains()) * u64::from(grain);
        // From here on the area that a shutdown wrote is not to be trusted.
        this.checkpoint()?;
        Ok((this, found))
    }

    fn read_heads(&mut self) -> Result<()> {
        if !self.p.method.has_lists() {
            return Ok(());
        }
        let mut bytes = vec![0; 8 * self.heads.len()];
        self.disk.read_at(SECTOR as u64, &mut bytes)?;
        for (head, bytes) in self.heads.iter_mut().zip(bytes.chunks_exact(8)) {
            *head = u64_at(bytes, 0);
        }
        Ok(())
    }

    /// Reads every header from the first block to the tail on disk and beyond.
    fn recover_all(&mut self, found: &mut Recovery) -> Result<()> {
        let mut blocks = self.walk(self.first())?;
        blocks.retain(|(block, _)| block.at < self.tail || !is(Mutation::TailWalk));
        found.headers += blocks.len() as u64;
        self.blocks = 0;
        let old_tail = self.tail;
        for &(block, header) in &blocks {
            found.behind_tail += u64::from(block.at >= old_tail);
            self.blocks += u64::from(header.allocated);
            if !header.allocated {
                self.lists.push(block);
            }
        }
        if let Some(&(last, _)) = blocks.last() {
            self.tail = last.at + self.bytes(last.grains);
        }
        Ok(())
    }

    /// Every block from `at` on: all up to the tail, and those behind it whose code bytes say
    /// that they were written.
    pub(super) fn walk(&self, mut at: u64) -> Result<Vec<(Block, Header)>> {
        let (mut blocks, mut window) = (Vec::new(), Window::default());
        while let Some(header) = self.header_in(&mut window, at)? {
            let block = Block { at, grains: header.grains };
            let end = at + self.bytes(header.grains);
            // The file grows before a block is written: what reaches past its end was lost in
            // a power cut, and nobody was told of it.
            if end > self.most_bytes().min(self.grown) {
                break;
            }
            // One may reach over the tail on disk: free blocks on both sides were combined.
            blocks.push((block, header));
            at = end;
        }
        if at < self.tail {
            return Err(Error::Corrupt(format!("no block at {at}, before the tail")));
        }
        Ok(blocks)
    }

    /// The header of the block at `at`. Those of an area are read many at once (§2.1).
    fn header_in(&self, window: &mut Window, at: u64) -> Result<Option<Header>> {
        let end = self.grown.min(self.most_bytes());
        if self.p.method != Method::Area || at >= end || is(Mutation::AreaWhole) {
            return self.header_at(at);
        }
        let place = self.header_place(at);
        let there = |w: &Window| place >= w.from && place + 8 <= w.from + w.bytes.len() as u64;
        if !there(window) {
            let len = WINDOW.min(self.first() - place) as usize;
            *window = Window { from: place, bytes: vec![0; len] };
            self.disk.read_at(place, &mut window.bytes)?;
        }
        Ok(Header::decode(&window.bytes[(place - window.from) as usize..][..8], self.nonce))
    }

    /// Follows the disk lists, then takes in what was made since the last checkpoint.
    fn recover_lists(&mut self, found: &mut Recovery) -> Result<()> {
        let mut seen = HashSet::new();
        for class in 0..self.heads.len() {
            let free = self.follow(class, &mut seen, found)?;
            for &block in free.iter().rev() {
                self.lists.push(block);
            }
        }
        let old_tail = self.tail;
        for (block, header) in self.walk(old_tail)? {
            found.headers += 1;
            found.behind_tail += 1;
            self.tail = block.at + self.bytes(block.grains);
            self.blocks += u64::from(header.allocated);
            if seen.insert(block.at) {
                self.adopt(block, header.allocated)?;
            }
        }
        Ok(())
    }

    /// The free blocks of one disk list, head first. Of PL's, all; of PFL's, those behind the
    /// blocks that were allocated since the last checkpoint, which are at its head. A list is
    /// left if a split has made a block of another list of its blocks.
    fn follow(
        &self,
        class: usize,
        seen: &mut HashSet<u64>,
        found: &mut Recovery,
    ) -> Result<Vec<Block>> {
        let mut free = Vec::new();
        let mut at = self.heads[class];
        while at != 0 {
            found.headers += 1;
            let Some(header) = self.header_at(at)? else { break };
            let block = Block { at, grains: header.grains };
            if self.p.method == Method::Pfl {
                let other = self.lists.class(header.grains) != class;
                if header.allocated && free.is_empty() && !is(Mutation::PflDrop) {
                    found.dropped += 1;
                } else if header.allocated || other || !seen.insert(at) {
                    break;
                } else {
                    free.push(block);
                }
            } else if !seen.insert(at) {
                break;
            } else if !header.allocated {
                free.push(block);
            }
            at = header.next;
        }
        if let Some(&last) = free.last().filter(|_| at != 0 && self.p.method == Method::Pfl) {
            // What it led to may become part of another block.
            self.write_block(last, false, 0, &[])?;
        }
        Ok(free)
    }

    /// Puts a block on its disk list that no list leads to, and a free one on its free list.
    fn adopt(&mut self, block: Block, allocated: bool) -> Result<()> {
        let class = self.lists.class(block.grains);
        let next = match self.p.method {
            Method::Pl => std::mem::replace(&mut self.heads[class], block.at),
            _ => self.lists.head(class).map_or(0, |b| b.at),
        };
        if self.p.method == Method::Pl || (self.p.method == Method::Pfl && !allocated) {
            self.write_block(block, allocated, next, &[])?;
        }
        if !allocated {
            self.lists.push(block);
        }
        Ok(())
    }

    /// Finds free blocks that no list leads to, by the scan of all headers that the paper leaves
    /// to administrative times (§2.2). Gives their number.
    pub fn reclaim(&mut self) -> Result<u64> {
        let known: HashSet<u64> = self.lists.iter().map(|b| b.at).collect();
        let mut lost = 0;
        for (block, header) in self.walk(self.first())? {
            if block.at < self.tail && !header.allocated && !known.contains(&block.at) {
                self.adopt(block, false)?;
                self.allocated -= self.bytes(block.grains);
                lost += 1;
            }
        }
        self.checkpoint()?;
        Ok(lost)
    }

    /// Every allocated block, from the headers; their number is exact then.
    pub fn allocated_blocks(&mut self) -> Result<Vec<Block>> {
        let mut blocks = self.walk(self.first())?;
        blocks.retain(|(block, header)| block.at < self.tail && header.allocated);
        self.blocks = blocks.len() as u64;
        Ok(blocks.into_iter().map(|(block, _)| block).collect())
    }

    /// Combines all free blocks that lie side by side; those before the tail go to it. One
    /// write for each block that grows; PL and PFL write their lists anew.
    pub fn coalesce(&mut self) -> Result<()> {
        self.counts.coalesced += 1;
        self.since = 0;
        let mut free = self.lists.drain();
        free.sort_unstable();
        let mut runs: Vec<(Block, usize)> = Vec::new();
        for block in free {
            match runs.last_mut() {
                Some((run, parts))
                    if run.at + self.bytes(run.grains) == block.at
                        && u64::from(run.grains) + u64::from(block.grains) <= i32::MAX as u64 =>
                {
                    run.grains += block.grains;
                    *parts += 1;
                }
                _ => runs.push((block, 1)),
            }
        }
        let lists = self.p.method.has_lists();
        if lists {
            // Heads that lead into combined blocks must not be followed after a crash.
            self.barrier()?;
            self.write_header(false, false, (0, 0))?;
            self.barrier()?;
        }
        while let Some(&(last, _)) = runs.last()
            && last.at + self.bytes(last.grains) == self.tail
        {
            self.tail = last.at;
            runs.pop();
        }
        for &(run, parts) in &runs {
            if parts > 1 && !lists {
                self.write_block(run, false, 0, &[])?;
            }
            self.lists.push(run);
        }
        if lists {
            for &(run, _) in runs.iter().filter(|(_, parts)| *parts > 1) {
                self.write_block(run, false, 0, &[])?;
            }
            self.barrier()?;
            return self.rebuild_lists();
        }
        self.checkpoint()
    }

    /// Writes all disk lists anew: by PFL those of the free blocks, by PL those of all blocks.
    fn rebuild_lists(&mut self) -> Result<()> {
        self.heads.fill(0);
        if self.p.method == Method::Pl {
            for (block, header) in self.walk(self.first())? {
                if block.at < self.tail {
                    let class = self.lists.class(block.grains);
                    let next = std::mem::replace(&mut self.heads[class], block.at);
                    self.write_block(block, header.allocated, next, &[])?;
                }
            }
        } else {
            for class in 0..self.lists.count() {
                let mut next = 0;
                for &block in self.lists.list(class) {
                    self.write_block(block, false, next, &[])?;
                    next = block.at;
                }
                self.heads[class] = next;
            }
        }
        // The heads must be there before the header says that they can be trusted.
        let heads: Vec<u8> = self.heads.iter().flat_map(|head| head.to_le_bytes()).collect();
        self.disk.write_at(SECTOR as u64, &heads)?;
        self.checkpoint()
    }

    /// Shuts the file down: the free blocks go to a contiguous area behind the tail, then the
    /// header says so. The next open takes three accesses (§2.1).
    pub fn close(mut self) -> Result<()> {
        let mut area = Vec::with_capacity(self.lists.blocks() * 12);
        for block in self.lists.iter() {
            area.extend(block.at.to_le_bytes());
            area.extend(block.grains.to_le_bytes());
        }
        let at = self.tail + u64::from(self.p.grain);
        self.reserve(at + area.len() as u64)?;
        if !area.is_empty() {
            self.disk.write_at(at, &area)?;
        }
        self.disk.sync()?;
        self.write_header(true, true, (at, self.lists.blocks() as u64))?;
        Ok(self.disk.sync()?)
    }

    fn load(&mut self, (at, blocks): (u64, u64)) -> Result<()> {
        let room = self.grown.saturating_sub(at) / 12;
        if blocks > room {
            return Err(Error::Corrupt("the saved free lists reach past the file's end".into()));
        }
        let mut area = vec![0; blocks as usize * 12];
        self.disk.read_at(at, &mut area)?;
        for bytes in area.chunks_exact(12) {
            let block = Block { at: u64_at(bytes, 0), grains: u32_at(bytes, 8) };
            if block.grains == 0 || block.at + self.bytes(block.grains) > self.tail {
                return Err(Error::Corrupt("the saved free lists name what is no block".into()));
            }
            self.lists.push(block);
        }
        Ok(())
    }
}
