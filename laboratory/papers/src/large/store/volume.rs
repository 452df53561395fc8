//! Two areas under one pool, and the rules of reading and writing segments.
//!
//! Owns: [`Volume`]. A read of up to [`Config::pool_segment`] pages goes through the pool in
//! one access; a larger one goes straight to its target, in three if its ends do not meet
//! page borders (Biliris §3.2). Segments are written straight to the disk; a page of theirs
//! that is in the pool follows. After an error the volume is not to be used.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use holdall_core::techniques::segment_tree::{Cut, Node, NodeRef};
use holdall_core::techniques::{Error, Result};
use holdall_io::Disk;
use holdall_testkit::{CostModel, DiskStats};

use super::{Area, Format, Key, Pool, Which};
use crate::mutation::{Mutation, is};

/// What the paper fixes (its Table 1), and what it leaves open.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// Costs of accesses, and the page size.
    pub model: CostModel,
    /// Frames of the pool.
    pub pool_pages: usize,
    /// Pages of the largest segment read into the pool in one access.
    pub pool_segment: usize,
    /// 8-byte counts and pointers, for objects beyond 4 GiB.
    pub wide: bool,
    /// Open in the paper: whether pages of segments stay in the pool once written.
    pub keep_written: bool,
    /// Open in the paper: whether a read that goes on in another segment takes the last page
    /// of the one before in the same access: what it brings too much lies in the client's
    /// buffer and is overwritten by what follows.
    pub spill: bool,
    /// Open in the paper: whether reads that an update makes for itself use the three steps
    /// too, although they have no target that must not be overwritten.
    pub steps_in_updates: bool,
    /// Open in the paper: how full index pages are cut. With halves the number of index pages
    /// of an ESM object depends on the size of appends, which the paper says it does not.
    pub cut: Cut,
    /// Bytes of the memory that Starburst copies segments through (§3.5).
    pub copy_buffer: usize,
    /// Pages of a leaf that are read and written together: 1 here, a leaf of ESM's in Carey 1986
    /// (§3.4), at most [`Self::pool_segment`].
    pub unit: u64,
    /// Whether useful bytes are never overwritten (§3.3).
    pub shadow: bool,
}

impl Default for Config {
    /// The paper's values, and our assumptions.
    fn default() -> Self {
        Self {
            model: CostModel::default(),
            pool_pages: 12,
            pool_segment: 4,
            wide: false,
            keep_written: false,
            spill: true,
            steps_in_updates: false,
            cut: Cut::LeftLarger,
            copy_buffer: 512 * 1024,
            unit: 1,
            shadow: true,
        }
    }
}

impl Config {
    /// The same for objects beyond 4 GiB.
    pub fn wide() -> Self {
        Self { wide: true, ..Self::default() }
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.model.page_size as usize
    }
}

/// What a read is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The client's buffer: not a byte beside the range may be touched.
    Client,
    /// The same, up to the segment's last byte; see [`Config::spill`].
    ClientToEnd,
    /// An update's own memory, if whole pages can go.
    Update,
}

/// The areas, the pool, and the pages new in the operation under way.
#[derive(Debug)]
pub struct Volume {
    pub(super) leaf: Area,
    pub(super) index: Area,
    pub(super) pool: RefCell<Pool>,
    pub(super) config: Config,
    fresh: HashSet<u64>,
    retired: Vec<u64>,
}

impl Volume {
    /// An empty volume over two disks.
    /// Errors: [`Error::Invalid`] for a page or a pool too small.
    pub fn new(config: Config, leaf: Arc<dyn Disk>, index: Arc<dyn Disk>) -> Result<Self> {
        if config.page_size() < 128 || config.pool_pages < 3 {
            return Err(Error::Invalid("pages of 128 bytes and 3 of them are the least".into()));
        }
        Ok(Self {
            leaf: Area::new(leaf, config.model),
            index: Area::new(index, config.model),
            pool: RefCell::new(Pool::new(config.pool_pages)),
            config,
            fresh: HashSet::new(),
            retired: Vec::new(),
        })
    }

    /// The parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Bytes of a page.
    pub fn page(&self) -> usize {
        self.config.page_size()
    }

    /// How index pages are written.
    pub fn format(&self) -> Format {
        Format { page_size: self.page(), wide: self.config.wide }
    }

    /// The area of leaf segments.
    pub fn leaf(&mut self) -> &mut Area {
        &mut self.leaf
    }

    /// Accesses to both areas so far.
    pub fn stats(&self) -> DiskStats {
        self.leaf.stats() + self.index.stats()
    }

    /// Accesses to the area of index pages so far.
    pub fn index_stats(&self) -> DiskStats {
        self.index.stats()
    }

    /// Visits to space directories so far; see [`Area::visits`].
    pub fn visits(&self) -> u64 {
        self.leaf.visits() + self.index.visits()
    }

    /// Spaces of both areas, and the most that an allocation visited; see [`Area::most_visits`].
    pub fn spaces(&self) -> (usize, u64) {
        let most = self.leaf.most_visits().max(self.index.most_visits());
        (self.leaf.spaces() + self.index.spaces(), most)
    }

    /// Pages taken of the leaf area and of the index area.
    pub fn used_pages(&self) -> (u64, u64) {
        (self.leaf.used_pages(), self.index.used_pages())
    }

    fn area(&self, which: Which) -> &Area {
        match which {
            Which::Leaf => &self.leaf,
            Which::Index => &self.index,
        }
    }

    fn make_room(&self, pool: &mut Pool, pages: usize) -> Result<()> {
        while let Some(frame) = pool.evict(pages) {
            if frame.dirty {
                self.area(frame.key.0).write(frame.key.1, &frame.bytes)?;
            }
        }
        Ok(())
    }

    /// Brings pages into the pool, those that lack in one access.
    fn load(&self, which: Which, first: u64, pages: u64) -> Result<()> {
        let mut pool = self.pool.borrow_mut();
        let keys = first..first + pages;
        let lacks: Vec<u64> = keys.clone().filter(|p| pool.get((which, *p)).is_none()).collect();
        let (Some(from), Some(to)) = (lacks.first(), lacks.last()) else { return Ok(()) };
        let page = self.page();
        let mut bytes = vec![0; (to - from + 1) as usize * page];
        self.area(which).read(*from, &mut bytes)?;
        self.make_room(&mut pool, lacks.len())?;
        for (number, content) in (*from..).zip(bytes.chunks_exact(page)) {
            if !pool.has((which, number)) {
                pool.put((which, number), content.to_vec(), false);
            }
        }
        Ok(())
    }

    /// The bytes of a page through the pool.
    fn with_page<T>(&self, key: Key, look: impl FnOnce(&[u8]) -> T) -> Result<T> {
        self.load(key.0, key.1, 1)?;
        let mut pool = self.pool.borrow_mut();
        let bytes = pool.get(key).ok_or_else(|| Error::Invalid("a page left the pool".into()))?;
        Ok(look(bytes))
    }

    /// Fills `buf` with the bytes from byte `at` of the run that starts at page `first`.
    pub fn read_leaf(&self, first: u64, at: u64, buf: &mut [u8], purpose: Purpose) -> Result<()> {
        if buf.is_empty() {
            return Ok(());
        }
        let page = self.page() as u64;
        let (from, offset) = (first + at / page, (at % page) as usize);
        let pages = (offset as u64 + buf.len() as u64).div_ceil(page);
        if self.config.unit > 1 {
            self.load(Which::Leaf, first, self.config.unit)?;
        }
        let short = pages as usize <= self.config.pool_segment || is(Mutation::ReadPooled);
        let fits = short && self.pool.borrow().can_hold(pages as usize);
        if fits {
            return self.read_pooled(from, offset, buf);
        }
        let steps = purpose != Purpose::Update || self.config.steps_in_updates;
        if !steps || is(Mutation::ReadSteps) {
            return self.read_whole(from, offset, buf);
        }
        self.read_in_steps(from, offset, buf, purpose == Purpose::ClientToEnd && self.config.spill)
    }

    fn read_pooled(&self, from: u64, offset: usize, buf: &mut [u8]) -> Result<()> {
        let page = self.page();
        if !is(Mutation::ReadSegment) {
            self.load(Which::Leaf, from, (offset + buf.len()).div_ceil(page) as u64)?;
        }
        let (mut number, mut offset, mut rest) = (from, offset, buf);
        while !rest.is_empty() {
            let n = rest.len().min(page - offset);
            let (now, later) = rest.split_at_mut(n);
            self.with_page((Which::Leaf, number), |b| now.copy_from_slice(&b[offset..offset + n]))?;
            (number, offset, rest) = (number + 1, 0, later);
        }
        Ok(())
    }

    /// One access to whole pages, into memory of our own.
    fn read_whole(&self, from: u64, offset: usize, buf: &mut [u8]) -> Result<()> {
        let page = self.page();
        if buf.is_empty() {
            return Ok(());
        }
        if offset == 0 && buf.len().is_multiple_of(page) {
            return self.leaf.read(from, buf);
        }
        let mut bytes = vec![0; (offset + buf.len()).next_multiple_of(page)];
        self.leaf.read(from, &mut bytes)?;
        buf.copy_from_slice(&bytes[offset..offset + buf.len()]);
        Ok(())
    }

    /// The first and the last page through the pool if the range has only part of them,
    /// what lies between straight into `buf` (Biliris §3.2, Figure 4).
    fn read_in_steps(
        &self,
        mut from: u64,
        offset: usize,
        mut buf: &mut [u8],
        spill: bool,
    ) -> Result<()> {
        let page = self.page();
        if offset > 0 {
            let n = buf.len().min(page - offset);
            let (head, rest) = buf.split_at_mut(n);
            self.read_pooled(from, offset, head)?;
            (from, buf) = (from + 1, rest);
        }
        if spill {
            return self.read_whole(from, 0, buf);
        }
        let whole = buf.len() / page;
        let (middle, tail) = buf.split_at_mut(whole * page);
        if whole > 0 {
            self.leaf.read(from, middle)?;
        }
        if tail.is_empty() { Ok(()) } else { self.read_pooled(from + whole as u64, 0, tail) }
    }

    /// Writes `bytes` to whole pages from `first` on, in one access, the last filled up with
    /// zeros.
    pub fn write_leaf(&self, first: u64, mut bytes: Vec<u8>) -> Result<()> {
        let page = self.page();
        bytes.resize(bytes.len().next_multiple_of(page), 0);
        self.leaf.write(first, &bytes)?;
        let mut pool = self.pool.borrow_mut();
        for (number, content) in (first..).zip(bytes.chunks_exact(page)) {
            let key = (Which::Leaf, number);
            if !pool.update(key, content) && self.config.keep_written {
                self.make_room(&mut pool, 1)?;
                pool.put(key, content.to_vec(), false);
            }
        }
        Ok(())
    }

    /// Frees pages of a leaf segment once the operation ends.
    pub fn free_leaf(&mut self, first: u64, pages: u64) {
        self.pool.get_mut().drop_pages(Which::Leaf, first, pages);
        self.leaf.free_later(first, pages);
    }

    /// An index page, through the pool.
    pub(super) fn load_node(&self, node: NodeRef) -> Result<Node> {
        let format = self.format();
        self.with_page((Which::Index, node.0), |bytes| format.decode(bytes, node.0))?
    }

    /// An index page outside the count and the pool's order.
    pub(super) fn peek_node(&self, node: NodeRef) -> Result<Node> {
        if let Some(bytes) = self.pool.borrow().look((Which::Index, node.0)) {
            return self.format().decode(bytes, node.0);
        }
        let mut bytes = vec![0; self.page()];
        self.index.peek(node.0, &mut bytes)?;
        self.format().decode(&bytes, node.0)
    }

    /// Puts a node into the pool, on a page of its own unless `old` is new in this operation.
    pub(super) fn save_node(&mut self, old: Option<NodeRef>, node: &Node) -> Result<NodeRef> {
        let bytes = self.format().encode(node)?;
        let at = match old {
            Some(old) if self.fresh.contains(&old.0) || is(Mutation::IndexShadow) => old.0,
            _ => {
                if let Some(old) = old {
                    self.drop_node(old);
                }
                let page = self.index.take(1)?;
                self.fresh.insert(page);
                page
            }
        };
        let key = (Which::Index, at);
        let mut pool = self.pool.borrow_mut();
        if !pool.has(key) {
            self.make_room(&mut pool, 1)?;
        }
        pool.put(key, bytes, true);
        drop(pool);
        Ok(NodeRef(at))
    }

    /// Notes that a node is free once the operation ends.
    pub(super) fn drop_node(&mut self, node: NodeRef) {
        self.pool.get_mut().expire((Which::Index, node.0));
        self.retired.push(node.0);
    }

    /// Ends an operation: frees what it freed, and flushes the index pages it wrote but the
    /// root, each in one access (§3.3).
    pub fn end_operation(&mut self, root: Option<NodeRef>) -> Result<()> {
        for page in std::mem::take(&mut self.retired) {
            self.pool.get_mut().drop_pages(Which::Index, page, 1);
            self.index.free_later(page, 1);
        }
        self.fresh.clear();
        self.pool.get_mut().set_root(root.map(|r| r.0));
        for (key, bytes) in self.pool.get_mut().take_dirty() {
            self.area(key.0).write(key.1, &bytes)?;
        }
        // A root that came from below may not be there yet; the pool holds the root always.
        if let Some(root) = root {
            self.load(Which::Index, root.0, 1)?;
        }
        let mut pool = self.pool.borrow_mut();
        self.make_room(&mut pool, 0)?;
        drop(pool);
        self.leaf.commit()?;
        self.index.commit()
    }
}
