//! Where nodes and segments live: the traits a store gives the tree.
//!
//! Owns: [`NodeRead`], [`Nodes`], [`SegmentRead`], [`Segments`], the bytes on their way
//! into a segment ([`Pieces`], [`Source`]) and the adapter [`Pair`]. Reading and writing
//! are apart, so that a snapshot needs to implement reading only.

use super::{Node, NodeRef, Slice, SliceKind};
use crate::{Error, PageNo, Result};
use std::collections::VecDeque;

/// Reads nodes of one consistent state.
pub trait NodeRead {
    /// The node `node`, expected at `level`. Cost: at most one page read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is damaged, [`Error::Io`]. The tree itself checks level
    /// and sum against what the parent says.
    fn read_node(&self, node: NodeRef, level: u8) -> Result<Node>;

    /// Most slices in a leaf, at least 4.
    fn leaf_fanout(&self) -> usize;

    /// Most children in an inner node, at least 4.
    fn inner_fanout(&self) -> usize;

    /// How nodes too full are cut.
    fn cut(&self) -> Cut {
        Cut::FillAtEnd
    }
}

/// How entries too many for a node are spread over several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Evenly; but at the object's end nodes are filled before others are opened, as suits
    /// objects that grow there.
    FillAtEnd,
    /// Evenly, wherever the node lies.
    Halves,
    /// As halves, but the left one has an entry more and the right one less, as long as that
    /// is half a node rounded down; the rest of the tree then needs no more either.
    LeftLarger,
}

/// Changes nodes; reads see the changes.
pub trait Nodes: NodeRead {
    /// Writes a node: a new one, or the new content of `old`. May return `old` (changed in
    /// place) or a new reference; the latter retires `old`. The reference returned replaces
    /// `old` in its parent in either case.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::TooLarge`], [`Error::Io`].
    fn write_node(&mut self, old: Option<NodeRef>, node: &Node) -> Result<NodeRef>;

    /// Tells that the new state does not use `node`. It may be read until the edit ends.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it was free already.
    fn retire_node(&mut self, node: NodeRef) -> Result<()>;
}

/// Reads bytes of segments.
pub trait SegmentRead {
    /// Bytes of a page. The tree asks nothing of it but that it is above 0 and below 2³².
    fn page_size(&self) -> usize;

    /// Fills `buf` with the bytes of `slice` from its byte `at`; they lie inside the slice.
    /// Only called for slices of kind [`SliceKind::Run`]. The slice need not be one of the
    /// tree: it may start anywhere in a page (`offset`).
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a checksum is wrong or the pages do not exist, [`Error::Io`].
    fn read_run(&self, slice: &Slice, at: u64, buf: &mut [u8]) -> Result<()>;
}

/// Tells a store which bytes will be read next; see [`super::prefetch`].
pub trait Prefetch {
    /// `len` bytes of `slice` from its byte `at` will be read soon. Returns whether telling of
    /// more may help; false if these are at hand already.
    fn will_read(&self, slice: &Slice, at: u64, len: u64) -> bool;
}

/// Writes and retires segments.
pub trait Segments: SegmentRead {
    /// Writes the next `len` bytes of `pieces` to new runs, each page whole and once; the
    /// last page is filled up with zeros. Pages right at `near` are preferred. As few runs
    /// as the space allows; all but the last hold whole pages; `offset` is 0 in all. The
    /// runs returned hold `len` bytes.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Io`], and whatever the pieces' sources return.
    fn write_runs(
        &mut self,
        pieces: &mut Pieces<'_>,
        len: u64,
        near: Option<PageNo>,
    ) -> Result<Vec<Slice>>;

    /// Tells that the new state does not use the pages that `slice` touches, from
    /// `reference` on, [`Slice::pages`] of them. It may also name pages written within the
    /// same edit or transaction.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if they were free already.
    fn retire_run(&mut self, slice: &Slice) -> Result<()>;

    /// Whether a write of `pages` pages near `at` would, as things stand, lie right there. A
    /// hint: an append then joins the last run and copies nothing (Biliris §2.3 would have
    /// it borrow from its neighbour otherwise).
    fn can_extend(&self, at: PageNo, pages: u64) -> bool {
        let _ = (at, pages);
        false
    }
}

/// What an edit needs: nodes and segments. Implemented by whatever has both.
pub trait Store: Nodes + Segments {}

impl<S: Nodes + Segments + ?Sized> Store for S {}

/// Bytes that come in order, once.
pub trait Source {
    /// Fills `buf` with the next bytes.
    ///
    /// # Errors
    /// The source's own; [`Error::Invalid`] if it ends too early.
    fn fill(&mut self, buf: &mut [u8]) -> Result<()>;
}

impl Source for &[u8] {
    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        let Some((head, rest)) = self.split_at_checked(buf.len()) else {
            return Err(Error::Invalid("the new bytes ended too early".into()));
        };
        buf.copy_from_slice(head);
        *self = rest;
        Ok(())
    }
}

/// A [`Source`] over anything that can be read.
#[derive(Debug)]
pub struct ReadSource<R>(pub R);

impl<R: std::io::Read> Source for ReadSource<R> {
    fn fill(&mut self, buf: &mut [u8]) -> Result<()> {
        self.0.read_exact(buf).map_err(|e| Error::io("read the new bytes", e))
    }
}

/// Where some bytes on their way into a segment come from.
pub(super) enum Piece<'a> {
    /// The caller's memory, or the descriptor's tail.
    Bytes(&'a [u8]),
    /// This many bytes of a source.
    Stream(&'a mut dyn Source, u64),
    /// Bytes of an existing run, to be copied; or zeros.
    Copy(Slice),
}

impl Piece<'_> {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stream(_, len) => *len,
            Self::Copy(slice) => slice.len,
        }
    }

    /// Takes in `next`, the piece behind, if both are copies of neighbouring bytes: one
    /// read then brings what would take two.
    fn join(&mut self, next: &Self, page_size: u64) -> bool {
        let (Self::Copy(a), Self::Copy(b)) = (self, next) else { return false };
        let at = |s: &Slice| s.reference.checked_mul(page_size)?.checked_add(u64::from(s.offset));
        let behind = at(a).and_then(|start| start.checked_add(a.len));
        let follows = a.is_run() && b.is_run() && behind.is_some() && behind == at(b);
        if follows {
            a.len += b.len;
        }
        follows
    }
}

/// Where bytes on their way into a segment come from; see [`Pieces::origins`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// This many new bytes.
    New(u64),
    /// Bytes of these pages, from the slice's first byte on.
    Copy(Slice),
    /// This many zeros.
    Zeros(u64),
}

impl Origin {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::New(len) | Self::Zeros(len) => *len,
            Self::Copy(slice) => slice.len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Bytes on their way into segments: some new, some copied from runs that exist.
pub struct Pieces<'a> {
    queue: VecDeque<Piece<'a>>,
    remaining: u64,
}

impl<'a> Pieces<'a> {
    /// These pieces, in order; copies of bytes that are neighbours on disk become one.
    pub(super) fn new(pieces: Vec<Piece<'a>>, page_size: u64) -> Self {
        let remaining = pieces.iter().map(Piece::len).sum();
        let mut queue: VecDeque<Piece<'a>> = VecDeque::with_capacity(pieces.len());
        for piece in pieces {
            if !queue.back_mut().is_some_and(|last| last.join(&piece, page_size)) {
                queue.push_back(piece);
            }
        }
        Self { queue, remaining }
    }

    /// `len` bytes of `source`.
    pub fn from_source(source: &'a mut dyn Source, len: u64) -> Self {
        Self { queue: VecDeque::from([Piece::Stream(source, len)]), remaining: len }
    }

    /// Bytes not yet taken.
    pub fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Where the next `len` bytes come from, without taking them: a store whose old pages
    /// stay as they are for a while may note that instead of the bytes.
    pub fn origins(&self, len: u64, page_size: usize) -> Vec<Origin> {
        let (mut out, mut left) = (Vec::with_capacity(self.queue.len()), len);
        for piece in &self.queue {
            let n = piece.len().min(left);
            left -= n;
            match (piece, out.last_mut()) {
                _ if n == 0 => {}
                (Piece::Copy(slice), _) if slice.is_run() => {
                    out.push(Origin::Copy(slice.part(0, n, page_size as u64)));
                }
                (Piece::Copy(_), _) => out.push(Origin::Zeros(n)),
                (_, Some(Origin::New(len))) => *len += n,
                _ => out.push(Origin::New(n)),
            }
        }
        out
    }

    /// Fills `buf` with the next bytes; `store` reads those to be copied.
    ///
    /// # Errors
    /// [`Error::Invalid`] if fewer are left, and those of the sources and of `store`.
    pub fn fill<R: SegmentRead + ?Sized>(&mut self, store: &R, mut buf: &mut [u8]) -> Result<()> {
        let page = store.page_size() as u64;
        while !buf.is_empty() {
            let done = self.fill_around(store, buf)?;
            buf = &mut buf[done..];
            if buf.is_empty() {
                break;
            }
            let Some(piece) = self.queue.front_mut() else {
                return Err(Error::Invalid("the new bytes ended too early".into()));
            };
            let n = piece.len().min(buf.len() as u64);
            let (now, later) = buf.split_at_mut(n as usize);
            match piece {
                Piece::Bytes(bytes) => Source::fill(bytes, now)?,
                Piece::Stream(source, len) => {
                    source.fill(now)?;
                    *len -= n;
                }
                Piece::Copy(slice) => {
                    match slice.kind {
                        SliceKind::Run => store.read_run(slice, 0, now)?,
                        SliceKind::Zero => now.fill(0),
                        SliceKind::Reserved => return Err(super::find::reserved()),
                    }
                    *slice = slice.part(n, slice.len - n, page);
                }
            }
            if piece.len() == 0 {
                self.queue.pop_front();
            }
            self.remaining -= n;
            buf = later;
        }
        Ok(())
    }

    /// Where the next bytes are two copies on neighbouring pages with at most one other piece
    /// between, as around an insert that borrows from the left: fills `buf` with all of them by
    /// one read, if they fit, and returns their number; else 0.
    fn fill_around<R: SegmentRead + ?Sized>(&mut self, store: &R, buf: &mut [u8]) -> Result<usize> {
        let Some((last, both)) = self.around(buf.len() as u64, store.page_size() as u64) else {
            return Ok(0);
        };
        let mut read = vec![0; both.len as usize];
        store.read_run(&both, 0, &mut read)?;
        let mut at = 0;
        for turn in 0..=last {
            let Some(mut piece) = self.queue.pop_front() else { break };
            let len = piece.len();
            let now = &mut buf[at..at + len as usize];
            match &mut piece {
                _ if turn == 0 => now.copy_from_slice(&read[..now.len()]),
                _ if turn == last => now.copy_from_slice(&read[read.len() - now.len()..]),
                Piece::Bytes(bytes) => Source::fill(bytes, now)?,
                Piece::Stream(source, _) => source.fill(now)?,
                Piece::Copy(_) => now.fill(0),
            }
            at += len as usize;
            self.remaining -= len;
        }
        Ok(at)
    }

    /// The second of two such copies in the queue, and the bytes from the first to its end;
    /// `None` if the pieces up to it have more than `most` bytes.
    fn around(&self, most: u64, page_size: u64) -> Option<(usize, Slice)> {
        let run = |at: usize| match self.queue.get(at)? {
            Piece::Copy(slice) if slice.is_run() => Some(slice),
            _ => None,
        };
        let first = run(0)?;
        let last = match self.queue.get(1)? {
            Piece::Copy(Slice { kind: SliceKind::Run, .. }) => 1,
            Piece::Copy(Slice { kind: SliceKind::Reserved, .. }) => return None,
            _ => 2,
        };
        let second = run(last)?;
        let len = self.queue.range(..=last).try_fold(0u64, |n, p| n.checked_add(p.len()))?;
        let start = u64::from(first.offset);
        let ends = start + first.len;
        let begins = second.reference.checked_sub(first.reference)?;
        let begins = begins.checked_mul(page_size)?.checked_add(u64::from(second.offset))?;
        // No page between that neither has.
        let near = begins >= ends && begins / page_size <= ends.div_ceil(page_size);
        let len_of_both = begins.checked_add(second.len)? - start;
        (near && len <= most).then_some((last, Slice { len: len_of_both, ..*first }))
    }
}

/// One store made of a node store and a segment store.
#[derive(Debug)]
pub struct Pair<'a, N: ?Sized, S: ?Sized> {
    /// The nodes.
    pub nodes: &'a mut N,
    /// The segments.
    pub segments: &'a mut S,
}

impl<N: NodeRead + ?Sized, S: ?Sized> NodeRead for Pair<'_, N, S> {
    fn read_node(&self, node: NodeRef, level: u8) -> Result<Node> {
        self.nodes.read_node(node, level)
    }

    fn leaf_fanout(&self) -> usize {
        self.nodes.leaf_fanout()
    }

    fn inner_fanout(&self) -> usize {
        self.nodes.inner_fanout()
    }

    fn cut(&self) -> Cut {
        self.nodes.cut()
    }
}

impl<N: Nodes + ?Sized, S: ?Sized> Nodes for Pair<'_, N, S> {
    fn write_node(&mut self, old: Option<NodeRef>, node: &Node) -> Result<NodeRef> {
        self.nodes.write_node(old, node)
    }

    fn retire_node(&mut self, node: NodeRef) -> Result<()> {
        self.nodes.retire_node(node)
    }
}

impl<N: ?Sized, S: SegmentRead + ?Sized> SegmentRead for Pair<'_, N, S> {
    fn page_size(&self) -> usize {
        self.segments.page_size()
    }

    fn read_run(&self, slice: &Slice, at: u64, buf: &mut [u8]) -> Result<()> {
        self.segments.read_run(slice, at, buf)
    }
}

impl<N: ?Sized, S: Segments + ?Sized> Segments for Pair<'_, N, S> {
    fn write_runs(
        &mut self,
        pieces: &mut Pieces<'_>,
        len: u64,
        near: Option<PageNo>,
    ) -> Result<Vec<Slice>> {
        self.segments.write_runs(pieces, len, near)
    }

    fn retire_run(&mut self, slice: &Slice) -> Result<()> {
        self.segments.retire_run(slice)
    }

    fn can_extend(&self, at: PageNo, pages: u64) -> bool {
        self.segments.can_extend(at, pages)
    }
}
