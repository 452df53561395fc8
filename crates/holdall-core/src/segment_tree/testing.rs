//! Two stores in memory to prove the tree on: one changes nodes in place, one renames all.
//!
//! Owns: [`InPlace`], the engine's way of working, and [`Immutable`], objects in a bucket
//! behind a manifest that is swapped by compare-and-swap, which fails by seed. Both count
//! accesses, refuse to read or retire what is not there, and keep nodes as bytes, so that
//! the node codec is part of every test. Deterministic.

use super::{Descriptor, Node, NodeRead, NodeRef, Nodes, Pieces, SegmentRead, Segments, Slice};
use crate::{Error, PageNo, Result};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// Sizes of a store in memory.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Bytes of a page; any number above 0.
    pub page_size: usize,
    /// Most slices in a leaf, at least 4.
    pub leaf_fanout: usize,
    /// Most children in an inner node, at least 4.
    pub inner_fanout: usize,
    /// Longest run the space gives, in pages: a small one makes a fragmented space.
    pub max_run: u64,
    /// Whether pages are used again as soon as they are retired.
    pub reuse: bool,
}

/// Accesses since the store was made.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Nodes read.
    pub nodes_read: Cell<u64>,
    /// Nodes written.
    pub nodes_written: u64,
    /// Pages touched by reads of runs.
    pub pages_read: Cell<u64>,
    /// Reads of runs.
    pub runs_read: Cell<u64>,
    /// Pages written.
    pub pages_written: u64,
    /// Runs written.
    pub runs_written: u64,
}

/// Nodes and pages by number.
#[derive(Debug, Clone)]
struct Memory {
    shape: Shape,
    nodes: BTreeMap<NodeRef, Vec<u8>>,
    pages: BTreeMap<u64, Vec<u8>>,
    next_node: u64,
    next_page: u64,
    counts: Counts,
}

impl Memory {
    fn new(shape: Shape) -> Self {
        Self {
            shape,
            nodes: BTreeMap::new(),
            pages: BTreeMap::new(),
            next_node: 1,
            next_page: 1,
            counts: Counts::default(),
        }
    }

    fn read_node(&self, node: NodeRef) -> Result<Node> {
        self.counts.nodes_read.set(self.counts.nodes_read.get() + 1);
        let place = || format!("node {node}");
        let body = self.nodes.get(&node).ok_or_else(|| Error::corrupt(place(), "not there"))?;
        Node::decode(body, self.shape.page_size, &place)
    }

    fn put_node(&mut self, old: Option<NodeRef>, node: &Node) -> Result<NodeRef> {
        let most = if node.level() == 0 { self.shape.leaf_fanout } else { self.shape.inner_fanout };
        if node.count() > most {
            return Err(Error::Invalid(format!("node of {} entries", node.count())));
        }
        self.counts.nodes_written += 1;
        let mut body = vec![0; 16 + most * Slice::BYTES];
        node.encode_into(&mut body)?;
        let at = old.unwrap_or(NodeRef(self.next_node));
        self.next_node = self.next_node.max(at.0 + 1);
        self.nodes.insert(at, body);
        Ok(at)
    }

    fn read_run(&self, slice: &Slice, at: u64, buf: &mut [u8]) -> Result<()> {
        let page_size = self.shape.page_size as u64;
        if at + buf.len() as u64 > slice.len || !slice.is_run() {
            return Err(Error::Invalid(format!("{} bytes at {at} of {slice:?}", buf.len())));
        }
        let part = slice.part(at, buf.len() as u64, page_size);
        self.counts.runs_read.set(self.counts.runs_read.get() + 1);
        self.counts.pages_read.set(self.counts.pages_read.get() + part.pages(page_size));
        let (mut page, mut from, mut rest) = (part.reference, part.offset as usize, buf);
        while !rest.is_empty() {
            let bytes = self.pages.get(&page);
            let bytes = bytes.ok_or_else(|| Error::page(PageNo(page), "read but not there"))?;
            let n = rest.len().min(bytes.len() - from);
            let (now, later) = rest.split_at_mut(n);
            now.copy_from_slice(&bytes[from..from + n]);
            (page, from, rest) = (page + 1, 0, later);
        }
        Ok(())
    }

    fn is_free(&self, at: u64, pages: u64) -> bool {
        at > 0 && self.pages.range(at..at + pages).next().is_none()
    }

    /// The first page of `pages` free ones.
    fn place(&self, pages: u64, near: Option<PageNo>) -> u64 {
        if let Some(PageNo(at)) = near
            && (self.shape.reuse || at >= self.next_page)
            && self.is_free(at, pages)
        {
            return at;
        }
        let mut at = 1;
        if self.shape.reuse {
            for page in self.pages.keys() {
                if page - at >= pages {
                    return at;
                }
                at = page + 1;
            }
        }
        // A page is left out, so that runs are not neighbours by chance.
        self.next_page.max(at) + 1
    }

    fn write_runs(
        &mut self,
        pieces: &mut Pieces<'_>,
        mut len: u64,
        mut near: Option<PageNo>,
    ) -> Result<Vec<Slice>> {
        let page_size = self.shape.page_size as u64;
        let mut runs = Vec::new();
        while len > 0 {
            let now = len.min(self.shape.max_run.saturating_mul(page_size));
            let pages = now.div_ceil(page_size);
            let first = self.place(pages, near.take());
            let mut bytes = vec![0; (pages * page_size) as usize];
            pieces.fill(&Reading(self), &mut bytes[..now as usize])?;
            let filled = bytes.chunks_exact(self.shape.page_size).map(<[u8]>::to_vec);
            self.pages.extend((first..).zip(filled));
            self.next_page = self.next_page.max(first + pages);
            self.counts.pages_written += pages;
            self.counts.runs_written += 1;
            runs.push(Slice::run(first, now));
            len -= now;
        }
        Ok(runs)
    }

    fn pages_of(&self, slice: &Slice) -> std::ops::Range<u64> {
        slice.reference..slice.end_page(self.shape.page_size as u64)
    }
}

struct Reading<'m>(&'m Memory);

impl SegmentRead for Reading<'_> {
    fn page_size(&self) -> usize {
        self.0.shape.page_size
    }

    fn read_run(&self, slice: &Slice, at: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read_run(slice, at, buf)
    }
}

/// A store that changes nodes where they are and drops what is retired at once.
#[derive(Debug, Clone)]
pub struct InPlace {
    memory: Memory,
}

impl InPlace {
    /// An empty store.
    pub fn new(shape: Shape) -> Self {
        Self { memory: Memory::new(shape) }
    }

    /// Pages that hold something.
    pub fn pages(&self) -> BTreeSet<u64> {
        self.memory.pages.keys().copied().collect()
    }

    /// Nodes there are.
    pub fn nodes(&self) -> BTreeSet<NodeRef> {
        self.memory.nodes.keys().copied().collect()
    }

    /// Accesses so far.
    pub fn counts(&self) -> &Counts {
        &self.memory.counts
    }

    /// Puts bytes in place of a node's, to see damage found.
    pub fn damage_node(&mut self, node: NodeRef, change: impl FnOnce(&mut [u8])) {
        if let Some(body) = self.memory.nodes.get_mut(&node) {
            change(body);
        }
    }
}

/// A store whose nodes and pages are never changed: every write makes a new one, and what
/// is retired goes only once the manifest has been swapped.
#[derive(Debug, Clone)]
pub struct Immutable {
    memory: Memory,
    manifest: Vec<u8>,
    old_pages: BTreeSet<u64>,
    old_nodes: BTreeSet<NodeRef>,
    retired_pages: BTreeSet<u64>,
    retired_nodes: BTreeSet<NodeRef>,
    seed: u64,
    lose_one_in: u64,
}

impl Immutable {
    /// An empty store that holds an empty object and whose swap fails once in `lose_one_in`
    /// times, by `seed`.
    pub fn new(shape: Shape, seed: u64, lose_one_in: u64) -> Self {
        let mut manifest = Vec::new();
        Descriptor::default().encode(&mut manifest);
        let (old_pages, old_nodes) = Default::default();
        let (retired_pages, retired_nodes) = Default::default();
        // References are never used twice in a bucket.
        let memory = Memory::new(Shape { reuse: false, ..shape });
        Self {
            memory,
            manifest,
            old_pages,
            old_nodes,
            retired_pages,
            retired_nodes,
            seed,
            lose_one_in,
        }
    }

    /// The object as the manifest has it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the manifest was not written by this store.
    pub fn descriptor(&self) -> Result<Descriptor> {
        Descriptor::decode(&self.manifest)
    }

    /// Tries to make `new` the manifest. If it fails, all that was written since the last
    /// swap is dropped and all retired since is kept; if not, the other way round.
    pub fn swap(&mut self, new: &Descriptor) -> bool {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.seed;
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let won = !(n ^ (n >> 31)).is_multiple_of(self.lose_one_in.max(1));
        let (retired_pages, retired_nodes) =
            (std::mem::take(&mut self.retired_pages), std::mem::take(&mut self.retired_nodes));
        if won {
            self.memory.pages.retain(|page, _| !retired_pages.contains(page));
            self.memory.nodes.retain(|node, _| !retired_nodes.contains(node));
            self.manifest.clear();
            new.encode(&mut self.manifest);
        } else {
            self.memory.pages.retain(|page, _| self.old_pages.contains(page));
            self.memory.nodes.retain(|node, _| self.old_nodes.contains(node));
        }
        self.old_pages = self.memory.pages.keys().copied().collect();
        self.old_nodes = self.memory.nodes.keys().copied().collect();
        won
    }

    /// Pages in the bucket.
    pub fn pages(&self) -> BTreeSet<u64> {
        self.memory.pages.keys().copied().collect()
    }

    /// Nodes in the bucket.
    pub fn nodes(&self) -> BTreeSet<NodeRef> {
        self.memory.nodes.keys().copied().collect()
    }

    /// Accesses so far.
    pub fn counts(&self) -> &Counts {
        &self.memory.counts
    }
}

impl Nodes for InPlace {
    fn write_node(&mut self, old: Option<NodeRef>, node: &Node) -> Result<NodeRef> {
        if let Some(old) = old.filter(|old| !self.memory.nodes.contains_key(old)) {
            return Err(Error::corrupt(format!("node {old}"), "changed but not there"));
        }
        self.memory.put_node(old, node)
    }

    fn retire_node(&mut self, node: NodeRef) -> Result<()> {
        match self.memory.nodes.remove(&node) {
            Some(_) => Ok(()),
            None => Err(Error::corrupt(format!("node {node}"), "retired but not there")),
        }
    }
}

impl Segments for InPlace {
    fn write_runs(
        &mut self,
        pieces: &mut Pieces<'_>,
        len: u64,
        near: Option<PageNo>,
    ) -> Result<Vec<Slice>> {
        self.memory.write_runs(pieces, len, near)
    }

    fn retire_run(&mut self, slice: &Slice) -> Result<()> {
        for page in self.memory.pages_of(slice) {
            if self.memory.pages.remove(&page).is_none() {
                return Err(Error::page(PageNo(page), "retired but not there"));
            }
        }
        Ok(())
    }

    fn can_extend(&self, at: PageNo, pages: u64) -> bool {
        let Memory { shape, next_page, .. } = &self.memory;
        pages <= shape.max_run
            && (shape.reuse || at.0 >= *next_page)
            && self.memory.is_free(at.0, pages)
    }
}

impl Nodes for Immutable {
    fn write_node(&mut self, old: Option<NodeRef>, node: &Node) -> Result<NodeRef> {
        old.map_or(Ok(()), |old| self.retire_node(old))?;
        self.memory.put_node(None, node)
    }

    fn retire_node(&mut self, node: NodeRef) -> Result<()> {
        if self.memory.nodes.contains_key(&node) && self.retired_nodes.insert(node) {
            return Ok(());
        }
        Err(Error::corrupt(format!("node {node}"), "retired twice or not there"))
    }
}

impl Segments for Immutable {
    fn write_runs(
        &mut self,
        pieces: &mut Pieces<'_>,
        len: u64,
        _near: Option<PageNo>,
    ) -> Result<Vec<Slice>> {
        self.memory.write_runs(pieces, len, None)
    }

    fn retire_run(&mut self, slice: &Slice) -> Result<()> {
        for page in self.memory.pages_of(slice) {
            if !self.memory.pages.contains_key(&page) || !self.retired_pages.insert(page) {
                return Err(Error::page(PageNo(page), "retired twice or not there"));
            }
        }
        Ok(())
    }
}

/// Both stores read the same way.
macro_rules! reads {
    ($store:ty) => {
        impl NodeRead for $store {
            fn read_node(&self, node: NodeRef, _level: u8) -> Result<Node> {
                self.memory.read_node(node)
            }

            fn leaf_fanout(&self) -> usize {
                self.memory.shape.leaf_fanout
            }

            fn inner_fanout(&self) -> usize {
                self.memory.shape.inner_fanout
            }
        }

        impl SegmentRead for $store {
            fn page_size(&self) -> usize {
                self.memory.shape.page_size
            }

            fn read_run(&self, slice: &Slice, at: u64, buf: &mut [u8]) -> Result<()> {
                self.memory.read_run(slice, at, buf)
            }
        }
    };
}

reads!(InPlace);
reads!(Immutable);
