//! The engine's segment tree on a [`Volume`].
//!
//! Owns: the tree's traits for the volume, with the paper's fan-outs, and [`NoSegments`], which
//! stands in where a technique moves its segments' bytes itself and lets the tree only keep
//! the index (ESM).

use holdall_core::techniques::segment_tree::{
    Cut, Node, NodeRead, NodeRef, Nodes, Pieces, SegmentRead, Segments, Slice,
};
use holdall_core::techniques::{Error, PageNo, Result};

use super::{MAX_SEGMENT_PAGES, Purpose, Volume};

impl NodeRead for Volume {
    fn read_node(&self, node: NodeRef, _level: u8) -> Result<Node> {
        self.load_node(node)
    }

    fn leaf_fanout(&self) -> usize {
        self.format().fanout()
    }

    fn inner_fanout(&self) -> usize {
        self.format().fanout()
    }

    fn cut(&self) -> Cut {
        self.config().cut
    }
}

impl Nodes for Volume {
    fn write_node(&mut self, old: Option<NodeRef>, node: &Node) -> Result<NodeRef> {
        self.save_node(old, node)
    }

    fn retire_node(&mut self, node: NodeRef) -> Result<()> {
        self.drop_node(node);
        Ok(())
    }
}

impl SegmentRead for Volume {
    fn page_size(&self) -> usize {
        self.page()
    }

    fn read_run(&self, slice: &Slice, at: u64, buf: &mut [u8]) -> Result<()> {
        let to_end = at + buf.len() as u64 == slice.len;
        let purpose = if to_end { Purpose::ClientToEnd } else { Purpose::Client };
        self.read_leaf(slice.reference, u64::from(slice.offset) + at, buf, purpose)
    }
}

/// Reading what an edit copies.
struct Copying<'v>(&'v Volume);

impl SegmentRead for Copying<'_> {
    fn page_size(&self) -> usize {
        self.0.page()
    }

    fn read_run(&self, slice: &Slice, at: u64, buf: &mut [u8]) -> Result<()> {
        let at = u64::from(slice.offset) + at;
        self.0.read_leaf(slice.reference, at, buf, Purpose::Update)
    }
}

impl Segments for Volume {
    fn write_runs(
        &mut self,
        pieces: &mut Pieces<'_>,
        mut len: u64,
        mut near: Option<PageNo>,
    ) -> Result<Vec<Slice>> {
        let page = self.page() as u64;
        let mut runs = Vec::new();
        while len > 0 {
            let now = len.min(MAX_SEGMENT_PAGES * page);
            let pages = now.div_ceil(page);
            let near = near.take().filter(|at| self.leaf.take_at(at.0, pages));
            let first = match near {
                Some(at) => at.0,
                None => self.leaf.take(pages)?,
            };
            let mut bytes = vec![0; now as usize];
            pieces.fill(&Copying(self), &mut bytes)?;
            self.write_leaf(first, bytes)?;
            runs.push(Slice::run(first, now));
            len -= now;
        }
        Ok(runs)
    }

    fn retire_run(&mut self, slice: &Slice) -> Result<()> {
        self.free_leaf(slice.reference, slice.pages(self.page() as u64));
        Ok(())
    }

    fn can_extend(&self, at: PageNo, pages: u64) -> bool {
        self.leaf.is_free(at.0, pages)
    }
}

/// Reading nodes outside the count, for shapes and checks.
pub struct Peek<'v>(pub &'v Volume);

impl NodeRead for Peek<'_> {
    fn read_node(&self, node: NodeRef, _level: u8) -> Result<Node> {
        self.0.peek_node(node)
    }

    fn leaf_fanout(&self) -> usize {
        self.0.leaf_fanout()
    }

    fn inner_fanout(&self) -> usize {
        self.0.inner_fanout()
    }

    fn cut(&self) -> Cut {
        self.0.cut()
    }
}

/// Segments for edits that put in segments written before and take out whole ones: nothing
/// is read, written or freed by the tree.
#[derive(Debug, Clone, Copy)]
pub struct NoSegments {
    /// Bytes of a page.
    pub page_size: usize,
}

impl NoSegments {
    fn refuse<T>() -> Result<T> {
        Err(Error::Invalid("the tree moved bytes of a segment that is not its own".into()))
    }
}

impl SegmentRead for NoSegments {
    fn page_size(&self) -> usize {
        self.page_size
    }

    fn read_run(&self, _slice: &Slice, _at: u64, _buf: &mut [u8]) -> Result<()> {
        Self::refuse()
    }
}

impl Segments for NoSegments {
    fn write_runs(
        &mut self,
        _pieces: &mut Pieces<'_>,
        _len: u64,
        _near: Option<PageNo>,
    ) -> Result<Vec<Slice>> {
        Self::refuse()
    }

    fn retire_run(&mut self, _slice: &Slice) -> Result<()> {
        Ok(())
    }
}
