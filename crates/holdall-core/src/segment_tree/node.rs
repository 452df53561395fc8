//! Nodes of the tree and their bytes in a page.
//!
//! Owns: [`Node`], [`Child`] and the body of a page of kind `SegmentNode`
//! (docs/format.md "Segment node"). Decoding checks everything a node can be asked alone;
//! what its parent says about it is checked where it is read.

use super::{MAX_HEIGHT, MAX_OBJECT, NodeRef, Slice, SliceKind};
use crate::bytes::{put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::page::HEADER;
use crate::{Error, Result};

/// Bytes of a node's body before its entries.
const PREFIX: usize = 16;
const LEVEL: usize = 0;
const FORMAT: usize = 1;
const COUNT: usize = 2;
const SPARE: usize = 4;
const BYTES: usize = 8;
/// Format number of the body.
const FORMAT_NOW: u8 = 1;

/// An inner entry: a subtree and the bytes below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Child {
    /// Bytes of the object in the subtree, at least 1.
    pub bytes: u64,
    /// Its uppermost node.
    pub node: NodeRef,
}

impl Child {
    /// Bytes of a child in a node.
    pub const BYTES: usize = 16;
}

/// A node of the tree; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Level 0: slices in the object's order.
    Leaf(Vec<Slice>),
    /// Levels above: children in the object's order.
    Inner {
        /// 1 above the leaves, and so on.
        level: u8,
        /// The subtrees.
        children: Vec<Child>,
    },
}

impl Node {
    /// The node's level, 0 for a leaf.
    pub fn level(&self) -> u8 {
        match self {
            Self::Leaf(_) => 0,
            Self::Inner { level, .. } => *level,
        }
    }

    /// Number of entries.
    pub fn count(&self) -> usize {
        match self {
            Self::Leaf(slices) => slices.len(),
            Self::Inner { children, .. } => children.len(),
        }
    }

    /// Bytes below the node; `None` if they are more than an object can have.
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Self::Leaf(slices) => sum(slices.iter().map(|s| s.len)),
            Self::Inner { children, .. } => sum(children.iter().map(|c| c.bytes)),
        }
    }

    /// Writes the node into the body of a page (all behind the page header).
    ///
    /// # Errors
    /// [`Error::Invalid`] if the node is empty or does not fit: the fan-out was wrong.
    pub fn encode_into(&self, body: &mut [u8]) -> Result<()> {
        let width = if self.level() == 0 { Slice::BYTES } else { Child::BYTES };
        let need = PREFIX + self.count() * width;
        let (Ok(count), Some(bytes)) = (u16::try_from(self.count()), self.bytes()) else {
            return Err(Error::Invalid("segment node with too many entries".into()));
        };
        if need > body.len() || count == 0 {
            let detail = format!("segment node of {need} bytes for a body of {}", body.len());
            return Err(Error::Invalid(detail));
        }
        body.fill(0);
        body[LEVEL] = self.level();
        body[FORMAT] = FORMAT_NOW;
        put_u16(body, COUNT, count);
        put_u64(body, BYTES, bytes);
        let entries = body[PREFIX..need].chunks_exact_mut(width);
        match self {
            Self::Leaf(slices) => entries.zip(slices).for_each(|(b, s)| put_slice(b, s)),
            Self::Inner { children, .. } => entries.zip(children).for_each(|(b, c)| {
                put_u64(b, 0, c.bytes);
                put_u64(b, 8, c.node.0);
            }),
        }
        Ok(())
    }

    /// Reads a node from the body of a page. `page_size` bounds the slices' offsets and
    /// `place` names the node in errors. Cost: one pass over the entries.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if level, count, lengths, kinds, offsets or the sum are
    /// impossible; [`Error::Unsupported`] for a newer format or a reserved kind.
    pub fn decode(body: &[u8], page_size: usize, place: &dyn Fn() -> String) -> Result<Self> {
        let bad = |detail: String| Err(Error::corrupt(place(), detail));
        if body.len() < PREFIX {
            return bad("segment node too short".into());
        }
        if body[FORMAT] != FORMAT_NOW {
            let detail = format!("{} has segment node format {}", place(), body[FORMAT]);
            return Err(Error::Unsupported { detail });
        }
        let (level, count) = (body[LEVEL], usize::from(u16_at(body, COUNT)));
        let width = if level == 0 { Slice::BYTES } else { Child::BYTES };
        let need = PREFIX + count * width;
        if level > MAX_HEIGHT || count == 0 || need > body.len() || u32_at(body, SPARE) != 0 {
            return bad(format!("segment node of level {level} with {count} entries"));
        }
        let entries = body[PREFIX..need].chunks_exact(width);
        let node = if level == 0 {
            let read = entries.map(|b| slice_at(b, page_size, place));
            Self::Leaf(read.collect::<Result<_>>()?)
        } else {
            let child = |b| Child { bytes: u64_at(b, 0), node: NodeRef(u64_at(b, 8)) };
            Self::Inner { level, children: entries.map(child).collect() }
        };
        if let Self::Inner { children, .. } = &node
            && children.iter().any(|c| c.bytes == 0)
        {
            return bad("segment node with an empty child".into());
        }
        match node.bytes() {
            Some(sum) if sum == u64_at(body, BYTES) => Ok(node),
            _ => bad("segment node whose entries do not add up".into()),
        }
    }
}

/// Slices that fit in a leaf on a page of `page_size` bytes (168 for 4096).
pub const fn leaf_fanout_of(page_size: usize) -> usize {
    (page_size - HEADER - PREFIX) / Slice::BYTES
}

/// Children that fit in an inner node on a page of `page_size` bytes (253 for 4096).
pub const fn inner_fanout_of(page_size: usize) -> usize {
    (page_size - HEADER - PREFIX) / Child::BYTES
}

/// Adds lengths; `None` beyond [`MAX_OBJECT`].
pub(super) fn sum(mut lens: impl Iterator<Item = u64>) -> Option<u64> {
    lens.try_fold(0u64, |all, n| all.checked_add(n)).filter(|n| *n <= MAX_OBJECT)
}

fn put_slice(b: &mut [u8], s: &Slice) {
    b[0] = s.kind as u8;
    b[1] = s.flags;
    put_u32(b, 4, s.offset);
    put_u64(b, 8, s.reference);
    put_u64(b, 16, s.len);
}

fn slice_at(b: &[u8], page_size: usize, place: &dyn Fn() -> String) -> Result<Slice> {
    let Some(kind) = kind_of(b[0]) else {
        return Err(Error::corrupt(place(), format!("slice of unknown kind {}", b[0])));
    };
    let offset = u32_at(b, 4);
    let slice = Slice { kind, flags: b[1], offset, reference: u64_at(b, 8), len: u64_at(b, 16) };
    if u16_at(b, 2) != 0 || offset as usize >= page_size {
        return Err(Error::corrupt(place(), format!("slice {slice:?} out of range")));
    }
    slice.validate(place)?;
    Ok(slice)
}

/// The kind with this number.
pub(super) fn kind_of(n: u8) -> Option<SliceKind> {
    Some(match n {
        1 => SliceKind::Run,
        2 => SliceKind::Zero,
        3 => SliceKind::Reserved,
        _ => return None,
    })
}

const _: () = assert!(leaf_fanout_of(4096) == 168 && inner_fanout_of(4096) == 253);
