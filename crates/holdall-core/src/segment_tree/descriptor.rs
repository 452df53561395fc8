//! The descriptor of a large object, as it lies in the object's heap record.
//!
//! Owns: [`Descriptor`] and its bytes (docs/format.md "Object descriptor"): a version, then
//! variable-length numbers, so that an object of one segment takes about 12 bytes.

use super::node::{kind_of, sum};
use super::{MAX_HEIGHT, MAX_OBJECT, NodeRef, Slice, Top, Tree};
use crate::bytes::{Reader, push_varint};
use crate::{Error, Result};

/// Bit of [`Descriptor::flags`]: some run may belong to other objects too.
pub const MAY_HOLD_SHARED_RUNS: u8 = 1;
/// Bit of [`Descriptor::flags`]: the object mostly grows at its end (a hint).
pub const APPEND_MOSTLY: u8 = 2;

const VERSION: u8 = 1;
const INLINE: u8 = 0;
const ROOT: u8 = 1;
/// Bits of a slice's first byte above its kind.
const KIND_BITS: u8 = 0x03;
const HAS_FLAGS: u8 = 0x04;
const HAS_OFFSET: u8 = 0x08;
const MIN_SLICE: usize = 3;

/// All that is kept about a large object's bytes: the tree's top and the last few bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Descriptor {
    /// [`MAY_HOLD_SHARED_RUNS`], [`APPEND_MOSTLY`]; other bits are kept as they are.
    pub flags: u8,
    /// Segment size threshold T in pages (Biliris §2.3); 0 for the store's default.
    pub threshold: u16,
    /// The segments.
    pub tree: Tree,
    /// The object's last bytes, behind those in segments.
    pub tail: Vec<u8>,
}

impl Descriptor {
    /// Size of the object in bytes.
    pub fn size(&self) -> u64 {
        self.tree.size + self.tail.len() as u64
    }

    /// Appends the stored form. Cost: its length.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend([VERSION, self.flags]);
        push_varint(out, u64::from(self.threshold));
        push_varint(out, self.tree.size);
        match &self.tree.top {
            Top::Inline(slices) => {
                out.push(INLINE);
                push_varint(out, slices.len() as u64);
                slices.iter().for_each(|s| push_slice(out, s));
            }
            Top::Root { node, height } => {
                out.extend([ROOT, *height]);
                push_varint(out, node.0);
            }
        }
        push_varint(out, self.tail.len() as u64);
        out.extend_from_slice(&self.tail);
    }

    /// Reads a descriptor that takes all of `bytes`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for anything that cannot be; [`Error::Unsupported`] for a newer
    /// version or a reserved kind of slice.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let descriptor = Self::decode_from(&mut reader)?;
        if reader.rest().is_empty() { Ok(descriptor) } else { Err(bad("bytes left over")) }
    }

    /// Takes a descriptor off the front of `reader`.
    ///
    /// # Errors
    /// As [`Descriptor::decode`].
    pub fn decode_from(reader: &mut Reader<'_>) -> Result<Self> {
        match reader.u8() {
            Some(VERSION) => {}
            Some(n) => {
                let detail = format!("object descriptor of version {n}, newest known {VERSION}");
                return Err(Error::Unsupported { detail });
            }
            None => return Err(bad("empty")),
        }
        let flags = reader.u8().ok_or_else(short)?;
        let threshold = reader.varint().ok_or_else(short)?;
        let threshold = u16::try_from(threshold).map_err(|_| bad("threshold out of range"))?;
        let size = reader.varint().ok_or_else(short)?;
        let top = match reader.u8().ok_or_else(short)? {
            INLINE => Top::Inline(inline(reader, size)?),
            ROOT => {
                let height = reader.u8().ok_or_else(short)?;
                let node = NodeRef(reader.varint().ok_or_else(short)?);
                if height > MAX_HEIGHT || size == 0 {
                    return Err(bad("impossible tree"));
                }
                Top::Root { node, height }
            }
            n => return Err(bad(&format!("unknown form {n} of a tree"))),
        };
        let len = reader.varint().ok_or_else(short)?;
        if size.checked_add(len).is_none_or(|n| n > MAX_OBJECT) {
            return Err(bad("size out of range"));
        }
        let len = usize::try_from(len).map_err(|_| short())?;
        let tail = reader.take(len).ok_or_else(short)?.to_vec();
        Ok(Self { flags, threshold, tree: Tree { size, top }, tail })
    }
}

fn bad(detail: &str) -> Error {
    Error::corrupt("object descriptor", detail)
}

fn short() -> Error {
    bad("ends too early")
}

fn inline(reader: &mut Reader<'_>, size: u64) -> Result<Vec<Slice>> {
    let count = reader.varint().ok_or_else(short)?;
    let count = usize::try_from(count).map_err(|_| short())?;
    // Bounds the allocation by what is really there.
    if count > reader.rest().len() / MIN_SLICE {
        return Err(short());
    }
    let mut slices = Vec::with_capacity(count);
    for _ in 0..count {
        slices.push(take_slice(reader)?);
    }
    if sum(slices.iter().map(|s| s.len)) != Some(size) {
        return Err(bad("slices do not add up"));
    }
    Ok(slices)
}

fn push_slice(out: &mut Vec<u8>, s: &Slice) {
    let flags = if s.flags == 0 { 0 } else { HAS_FLAGS };
    let offset = if s.offset == 0 { 0 } else { HAS_OFFSET };
    out.push(s.kind as u8 | flags | offset);
    if s.flags != 0 {
        out.push(s.flags);
    }
    if s.offset != 0 {
        push_varint(out, u64::from(s.offset));
    }
    push_varint(out, s.reference);
    push_varint(out, s.len);
}

fn take_slice(reader: &mut Reader<'_>) -> Result<Slice> {
    let head = reader.u8().ok_or_else(short)?;
    let kind = kind_of(head & KIND_BITS).ok_or_else(|| bad("slice of unknown kind"))?;
    if head & !(KIND_BITS | HAS_FLAGS | HAS_OFFSET) != 0 {
        return Err(bad("slice with unknown bits"));
    }
    let flags = if head & HAS_FLAGS == 0 { 0 } else { reader.u8().ok_or_else(short)? };
    let offset = if head & HAS_OFFSET == 0 { 0 } else { reader.varint().ok_or_else(short)? };
    let offset = u32::try_from(offset).map_err(|_| bad("slice offset out of range"))?;
    let reference = reader.varint().ok_or_else(short)?;
    let len = reader.varint().ok_or_else(short)?;
    let slice = Slice { kind, flags, offset, reference, len };
    slice.validate(&|| "object descriptor".into())?;
    Ok(slice)
}
