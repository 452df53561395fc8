//! Large objects over the pager: where the positional tree's nodes and segments live.
//!
//! Owns: pages of kind SegmentNode, as the store below the pure tree of
//! `holdall_core::segment_tree`. A node is changed in place (its page is logged); segments
//! are staged to free runs.

use crate::sharing::Sharing;
use crate::space::{SpaceTx, Stager};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::segment_tree::{
    Node, NodeRead, NodeRef, Nodes, Options, Pieces, SegmentRead, Segments, Slice, inner_fanout_of,
    leaf_fanout_of,
};
use holdall_core::space_dir::SpaceLayout;
use holdall_core::{Error, PageNo, PageRead, PageRun, PageWrite, Result};

pub mod ahead;
mod lower;

/// Slices kept inline in a descriptor.
pub const MAX_INLINE: usize = 8;
/// Threshold T if neither object nor collection names one (docs/design.md).
pub const DEFAULT_THRESHOLD: u16 = 8;

/// Limits of the tree for a store of this geometry.
pub fn tree_options(layout: &SpaceLayout, max_tail: usize, threshold: u16) -> Options {
    Options {
        threshold: if threshold == 0 { DEFAULT_THRESHOLD } else { threshold },
        max_tail,
        max_inline: MAX_INLINE,
        shuffle_bytes: false,
        max_segment_pages: u64::from(layout.space_pages()),
    }
}

/// Pages of one state together with the segment data they describe.
pub trait DataRead: PageRead {
    /// The volume's geometry.
    fn layout(&self) -> &SpaceLayout;

    /// Fills `buf` from `offset` bytes behind the start of segment page `start`.
    ///
    /// # Errors
    /// As [`read_segment`](crate::space::read_segment).
    fn read_data(&self, start: PageNo, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Says that `len` bytes from `offset` bytes behind the start of segment page `start` on
    /// will be read soon, in reads of up to `at_once` bytes. A hint; returns whether it may
    /// help.
    fn will_need(&self, start: PageNo, offset: u64, len: u64, at_once: u64) -> bool {
        let _ = (start, offset, len, at_once);
        false
    }

    /// Whether these bytes, read at once, would come from the device past the page cache:
    /// nobody else brings them meanwhile.
    fn is_new(&self, start: PageNo, offset: u64, len: u64) -> bool {
        let _ = (start, offset, len);
        false
    }
}

impl DataRead for SpaceTx {
    fn layout(&self) -> &SpaceLayout {
        self.alloc().layout()
    }

    fn read_data(&self, start: PageNo, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.read_segment(start, offset, buf)
    }
}

/// The tree's store for reading.
#[derive(Debug)]
pub struct TreeRead<'a, D: ?Sized>(pub &'a D);

fn node_at<P: PageRead + ?Sized>(pages: &P, node: NodeRef) -> Result<Node> {
    let no = PageNo(node.0);
    if node.0 > PageNo::MAX.0 || no.is_none() {
        return Err(Error::corrupt(format!("tree node {node}"), "impossible page number"));
    }
    let bytes = pages.page(no, PageKind::SegmentNode)?;
    Node::decode(&bytes[page::HEADER..], pages.page_size(), &|| format!("page {no}"))
}

/// The first page of a run.
///
/// # Errors
/// [`Error::Corrupt`] if it can be none.
pub fn run_start(slice: &Slice) -> Result<PageNo> {
    match slice.reference {
        1..=0xffff_ffff_ffff => Ok(PageNo(slice.reference)),
        n => Err(Error::corrupt(format!("segment at page {n}"), "impossible page number")),
    }
}

impl<D: DataRead + ?Sized> NodeRead for TreeRead<'_, D> {
    fn read_node(&self, node: NodeRef, _level: u8) -> Result<Node> {
        node_at(self.0, node)
    }

    fn leaf_fanout(&self) -> usize {
        leaf_fanout_of(self.0.page_size())
    }

    fn inner_fanout(&self) -> usize {
        inner_fanout_of(self.0.page_size())
    }
}

impl<D: DataRead + ?Sized> SegmentRead for TreeRead<'_, D> {
    fn page_size(&self) -> usize {
        self.0.page_size()
    }

    fn read_run(&self, slice: &Slice, at: u64, buf: &mut [u8]) -> Result<()> {
        self.0.read_data(run_start(slice)?, u64::from(slice.offset) + at, buf)
    }
}

/// The tree's store inside a write transaction; `owner` is noted with pages and runs.
#[derive(Debug)]
pub struct TreeWrite<'a> {
    /// The transaction.
    pub tx: &'a mut SpaceTx,
    /// Whose pages they are: the object's handle as a number.
    pub owner: u64,
    /// Whether runs may belong to other slices too (the descriptor's flag): only then is
    /// the tree of shared pages asked when one is retired.
    pub shared: bool,
    /// The object is appended to: pages behind what is written are kept for it.
    pub grows: bool,
}

impl NodeRead for TreeWrite<'_> {
    fn read_node(&self, node: NodeRef, _level: u8) -> Result<Node> {
        node_at(self.tx, node)
    }

    fn leaf_fanout(&self) -> usize {
        leaf_fanout_of(PageRead::page_size(self.tx))
    }

    fn inner_fanout(&self) -> usize {
        inner_fanout_of(PageRead::page_size(self.tx))
    }
}

impl Nodes for TreeWrite<'_> {
    fn write_node(&mut self, old: Option<NodeRef>, node: &Node) -> Result<NodeRef> {
        let no = match old {
            Some(old) => PageNo(old.0),
            None => self.tx.new_page(PageKind::SegmentNode, self.owner, None)?,
        };
        let bytes = self.tx.page_mut(no, PageKind::SegmentNode)?;
        node.encode_into(&mut bytes[page::HEADER..])?;
        Ok(NodeRef(no.0))
    }

    fn retire_node(&mut self, node: NodeRef) -> Result<()> {
        self.tx.free_page(PageNo(node.0))
    }
}

impl SegmentRead for TreeWrite<'_> {
    fn page_size(&self) -> usize {
        PageRead::page_size(self.tx)
    }

    fn read_run(&self, slice: &Slice, at: u64, buf: &mut [u8]) -> Result<()> {
        self.tx.read_segment(run_start(slice)?, u64::from(slice.offset) + at, buf)
    }
}

/// Bytes moved at a time between a tree's pieces and the stager.
const BYTES_PER_MOVE: usize = 256 << 10;

impl Segments for TreeWrite<'_> {
    fn write_runs(
        &mut self,
        pieces: &mut Pieces<'_>,
        len: u64,
        near: Option<PageNo>,
    ) -> Result<Vec<Slice>> {
        let alloc = self.tx.alloc().clone();
        let origins = pieces.origins(len, PageRead::page_size(self.tx));
        let stager =
            Stager::new(&alloc, self.tx.pager(), Some(len)).near(near).class(self.tx.class());
        let mut stager = stager.origins(origins).grows(self.grows);
        let mut left = len;
        let mut chunk = vec![0; BYTES_PER_MOVE.min(len as usize)];
        while left > 0 {
            let n = chunk.len().min(left as usize);
            pieces.fill(self, &mut chunk[..n])?;
            stager.write(&chunk[..n])?;
            left -= n as u64;
        }
        let staged = stager.finish(0)?;
        let size = PageRead::page_size(self.tx) as u64;
        let runs = self.tx.adopt(staged, self.owner)?;
        Ok(slices_of(&runs, len, size))
    }

    fn can_extend(&self, at: PageNo, pages: u64) -> bool {
        self.tx.alloc().is_free_at(at, pages)
    }

    fn retire_run(&mut self, slice: &Slice) -> Result<()> {
        let size = PageRead::page_size(self.tx) as u64;
        let run = PageRun::new(run_start(slice)?, slice.pages(size));
        if !self.shared || mutation::is(Mutation::R24Shared) {
            return self.tx.free_segment(run);
        }
        let root = self.tx.root();
        let mut sharing = Sharing::load(self.tx, root)?;
        let unused = sharing.release(self.tx, run)?;
        sharing.store(self.tx, root)?;
        unused.into_iter().try_for_each(|run| self.tx.free_segment(run))
    }
}

/// The slices of `len` bytes that lie in `runs` in order.
pub fn slices_of(runs: &[PageRun], len: u64, page_size: u64) -> Vec<Slice> {
    let mut left = len;
    let slice = |run: &PageRun| {
        let bytes = left.min(run.len * page_size);
        left -= bytes;
        Slice::run(run.start.0, bytes)
    };
    runs.iter().map(slice).collect()
}
