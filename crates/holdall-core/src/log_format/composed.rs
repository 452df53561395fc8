//! Records of segment data that is put together of new bytes and of bytes that lie elsewhere.
//!
//! Owns: the encoding of their parts. Pure.

use super::{COMPOSED, RECORD_HEADER, record_header};
use crate::bytes::{Reader, push_varint, put_u32};
use crate::{Error, PageNo, Result};

/// Bytes of a [`Record::Composed`](super::Record::Composed), in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// New bytes.
    Bytes(&'a [u8]),
    /// Bytes that lie in the volume from this byte on: pages that were alive at the last
    /// checkpoint, or were written by a commit before this one.
    Copy {
        /// Their first byte's address.
        from: u64,
        /// How many.
        len: u64,
    },
    /// This many zeros.
    Zeros(u64),
}

impl Part<'_> {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Copy { len, .. } | Self::Zeros(len) => *len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Those of them that the log does not hold.
    pub fn unlogged(&self) -> u64 {
        match self {
            Self::Bytes(_) => 0,
            Self::Copy { len, .. } | Self::Zeros(len) => *len,
        }
    }
}

/// The parts of a composed record, encoded: kind, length (varint), then the bytes of new
/// ones and the address (varint) of copies; repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts<'a>(&'a [u8]);

/// Most bytes a composed record may stand for.
pub const MAX_COMPOSED: u64 = 64 << 20;

/// Most bytes not in the log that all composed records of a log of `capacity` bytes may stand
/// for: a record of a few bytes stands for megabytes, and replay makes them.
pub const fn most_composed(capacity: u64) -> u64 {
    let least = 256 << 20;
    if capacity.saturating_mul(2) > least { capacity.saturating_mul(2) } else { least }
}

const PART_BYTES: u8 = 0;
const PART_COPY: u8 = 1;
const PART_ZEROS: u8 = 2;

impl<'a> Parts<'a> {
    /// Parts from their encoded form.
    pub fn new(encoded: &'a [u8]) -> Self {
        Self(encoded)
    }

    /// The encoded form.
    pub fn encoded(&self) -> &'a [u8] {
        self.0
    }

    /// The parts, one at a time: of two bytes each, together they may take much more memory
    /// than the record.
    ///
    /// # Errors
    /// [`Error::Corrupt`], once, for bytes that are no parts or stand for too much.
    pub fn iter(&self) -> impl Iterator<Item = Result<Part<'a>>> + use<'a> {
        let (mut r, mut all, mut failed) = (Reader::new(self.0), 0_u64, false);
        std::iter::from_fn(move || {
            if failed || r.rest().is_empty() {
                return None;
            }
            let part = next_part(&mut r, &mut all);
            failed = part.is_none();
            let bad = || Error::corrupt("log record", "composed data cannot be read");
            Some(part.ok_or_else(bad))
        })
    }
}

fn next_part<'a>(r: &mut Reader<'a>, all: &mut u64) -> Option<Part<'a>> {
    let (kind, len) = r.u8().zip(r.varint())?;
    *all = all.saturating_add(len);
    if len == 0 || *all > MAX_COMPOSED {
        return None;
    }
    Some(match kind {
        PART_BYTES => Part::Bytes(r.take(len as usize)?),
        PART_COPY => Part::Copy { from: r.varint()?, len },
        PART_ZEROS => Part::Zeros(len),
        _ => return None,
    })
}

/// Appends a record of segment data from `page` on, put together of `parts`, whole pages and
/// [`MAX_COMPOSED`] bytes at most in all, with this checksum.
pub fn push_composed(out: &mut Vec<u8>, page: PageNo, checksum: u32, parts: &[Part<'_>]) {
    let start = out.len();
    record_header(out, COMPOSED, 0);
    out.extend_from_slice(&page.0.to_le_bytes());
    out.extend_from_slice(&checksum.to_le_bytes());
    for part in parts.iter().filter(|p| !p.is_empty()) {
        let kind = match part {
            Part::Bytes(_) => PART_BYTES,
            Part::Copy { .. } => PART_COPY,
            Part::Zeros(_) => PART_ZEROS,
        };
        out.push(kind);
        push_varint(out, part.len());
        match part {
            Part::Bytes(bytes) => out.extend_from_slice(bytes),
            Part::Copy { from, .. } => push_varint(out, *from),
            Part::Zeros(_) => {}
        }
    }
    let len = (out.len() - start - RECORD_HEADER) as u32;
    put_u32(out, start + 4, len);
}
