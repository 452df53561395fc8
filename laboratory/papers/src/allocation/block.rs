//! Blocks, their headers on disk and the file's own header (Iyengar §2, §2.1, §2.4.3).
//!
//! Owns the formats. A block begins at a multiple of the grain with its header: a tag of 32 bits,
//! which is its size in grains, positive while it is allocated and negative while it is free;
//! code bytes that repeat the tag, mixed with a number of the file; by PL and PFL also the
//! address of the next block of its list. Threads: none.

use crate::kit::error::{Error, Result};
use crate::mutation::{Mutation, is};
use holdall_core::techniques::bytes::{u32_at, u64_at};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// How free blocks are found again on disk (§2.1 to §2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Tagged size: the tag of every block, nothing else.
    Ts,
    /// The same, the tags in an area of their own before all blocks: one for each grain, of which
    /// those count where a block begins. The paper chains areas; here the first is large enough.
    Area,
    /// Persistent lists of free and allocated blocks.
    Pl,
    /// Persistent lists of free blocks.
    Pfl,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ts, Self::Area, Self::Pl, Self::Pfl];

    /// As the paper calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ts => "TS",
            Self::Area => "TS, area",
            Self::Pl => "PL",
            Self::Pfl => "PFL",
        }
    }

    /// Bytes of a block's header.
    pub fn header(self) -> usize {
        if self.has_lists() { 16 } else { 8 }
    }

    /// Bytes of it that lie in the block.
    pub fn within(self) -> usize {
        if self == Self::Area { 0 } else { self.header() }
    }

    /// Whether it keeps lists on disk.
    pub fn has_lists(self) -> bool {
        matches!(self, Self::Pl | Self::Pfl)
    }
}

/// The parameters of a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// Bytes of a grain g; a power of two of at least 128, so that no header crosses a sector.
    pub grain: u32,
    /// Grains of the largest small block.
    pub max_ql: u32,
    /// Bytes w by which a block may be larger than asked for before it is split.
    pub waste: u32,
    /// How free blocks are found again.
    pub method: Method,
    /// Grains for which an area of headers has room, if there is one; the file ends there.
    pub area: u64,
    /// Bytes the file may have; beyond it a request that no free block fits leads to coalescing.
    pub max_bytes: u64,
    /// Whether the tail ends with the file: a request that reaches beyond it looks through the
    /// lists of larger blocks, then has free blocks combined, and only then the file grows.
    pub bounded: bool,
    /// Free bytes ÷ bytes of the file above which free blocks are combined at once (footnote 3).
    pub serious: f64,
    /// Tail allocations and list changes between two writes of the tail pointer and list heads.
    pub checkpoint_every: u32,
    /// Bytes by which the file grows.
    pub growth: u64,
    /// Whether writes whose order matters are distinguished by a sync, so that the order survives a
    /// power cut and not only the end of the process.
    pub barriers: bool,
}

impl Default for Params {
    /// Table 4 of the paper: grain 512, maxQL 75, acceptable waste 2000; TS.
    fn default() -> Self {
        Self {
            grain: 512,
            max_ql: 75,
            waste: 2000,
            method: Method::Ts,
            area: 1 << 21,
            max_bytes: 1 << 50,
            bounded: false,
            serious: f64::INFINITY,
            checkpoint_every: 100,
            growth: 1 << 20,
            barriers: false,
        }
    }
}

impl Params {
    /// Acceptable waste in whole grains.
    pub fn waste_grains(&self) -> u32 {
        self.waste / self.grain
    }

    /// Grains of a block for `len` bytes of content.
    pub fn grains_for(&self, len: usize) -> Result<u32> {
        // Also content of no bytes has a block, by whose place it is known.
        let grains = (len + self.method.within()).div_ceil(self.grain as usize).max(1);
        match u32::try_from(grains) {
            Ok(grains) if grains <= i32::MAX as u32 => Ok(grains),
            _ => Err(Error::Misuse("a block has at most 2^31 - 1 grains")),
        }
    }
}

/// A block: where it lies and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block {
    /// Offset of its header, in bytes.
    pub at: u64,
    /// Size with the header, in grains.
    pub grains: u32,
}

/// A block's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Size in grains.
    pub grains: u32,
    /// Its allocation status.
    pub allocated: bool,
    /// The next block of its list; 0 for none. Not kept by TS.
    pub next: u64,
}

impl Header {
    /// Its bytes, of which the first [`Method::header`] are written.
    pub fn encode(self, nonce: u32) -> [u8; 16] {
        let size = self.grains as i32;
        let tag = if self.allocated { size } else { -size };
        let mut out = [0; 16];
        out[..4].copy_from_slice(&tag.to_le_bytes());
        out[4..8].copy_from_slice(&code(tag, nonce).to_le_bytes());
        out[8..].copy_from_slice(&self.next.to_le_bytes());
        out
    }

    /// The header in `bytes`; nothing if the code bytes do not repeat the tag.
    pub fn decode(bytes: &[u8], nonce: u32) -> Option<Self> {
        let tag = u32_at(bytes, 0) as i32;
        let known = u32_at(bytes, 4) == code(tag, nonce) || is(Mutation::CodeBytes);
        if tag == 0 || tag == i32::MIN || !known {
            return None;
        }
        let next = if bytes.len() >= 16 { u64_at(bytes, 8) } else { 0 };
        Some(Self { grains: tag.unsigned_abs(), allocated: tag > 0, next })
    }
}

/// The code bytes of a tag: a mix that bytes of somebody else's hardly ever have.
fn code(tag: i32, nonce: u32) -> u32 {
    (tag as u32).wrapping_mul(0x9E37_79B1).rotate_left(13) ^ nonce
}

/// The file's number for its code bytes: another for each file, so that blocks of an earlier
/// file in the same place are not taken for its own.
pub(super) fn fresh_nonce(seed: u64) -> u32 {
    SmallRng::seed_from_u64(seed ^ 0x504D_464C).random::<u32>() | 1
}

/// What the file's first sector holds; the heads of the disk lists are in the sectors after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHeader {
    pub grain: u32,
    pub max_ql: u32,
    pub method: Method,
    /// Written by a shutdown and by nothing since.
    pub clean: bool,
    /// Whether the heads of the disk lists can be trusted; not while coalescing.
    pub lists: bool,
    pub nonce: u32,
    pub tail: u64,
    pub root: u64,
    pub requested: u64,
    pub blocks: u64,
    pub area: u64,
    /// Where a shutdown wrote the free blocks, and how many.
    pub saved: (u64, u64),
}

const MAGIC: [u8; 8] = *b"PMFLF\0\0\x01";
/// Bytes of the first sector.
pub(super) const SECTOR: usize = 512;

impl FileHeader {
    pub fn encode(&self) -> [u8; SECTOR] {
        let mut out = [0; SECTOR];
        out[..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&self.grain.to_le_bytes());
        out[12..16].copy_from_slice(&self.max_ql.to_le_bytes());
        out[16] = self.method as u8;
        out[17] = u8::from(self.clean);
        out[18] = u8::from(self.lists);
        out[20..24].copy_from_slice(&self.nonce.to_le_bytes());
        let saved = self.saved;
        let words =
            [self.tail, self.root, self.requested, self.blocks, saved.0, saved.1, self.area];
        for (i, word) in words.into_iter().enumerate() {
            out[24 + 8 * i..32 + 8 * i].copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let corrupt = |what: &str| Error::Corrupt(format!("the file's header: {what}"));
        if bytes[..8] != MAGIC {
            return Err(corrupt("not a file of this store"));
        }
        let method = match bytes[16] {
            0 => Method::Ts,
            1 => Method::Area,
            2 => Method::Pl,
            3 => Method::Pfl,
            _ => return Err(corrupt("unknown method")),
        };
        let word = |i: usize| u64_at(bytes, 24 + 8 * i);
        let (grain, max_ql) = (u32_at(bytes, 8), u32_at(bytes, 12));
        Ok(Self {
            grain,
            max_ql,
            method,
            clean: bytes[17] == 1,
            lists: bytes[18] == 1,
            nonce: u32_at(bytes, 20),
            tail: word(0),
            root: word(1),
            requested: word(2),
            blocks: word(3),
            saved: (word(4), word(5)),
            area: word(6),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_known_by_its_code_bytes() {
        let nonce = fresh_nonce(7);
        for header in [
            Header { grains: 1, allocated: true, next: 0 },
            Header { grains: 70_000, allocated: false, next: 4096 },
        ] {
            let mut bytes = header.encode(nonce);
            assert_eq!(Header::decode(&bytes, nonce), Some(header));
            assert_eq!(Header::decode(&bytes, fresh_nonce(8)), None, "another file's block");
            bytes[5] ^= 1;
            assert_eq!(Header::decode(&bytes, nonce), None);
        }
        assert_eq!(Header::decode(&[0; 16], nonce), None, "bytes never written");
        // Positive sizes are allocated blocks, negative ones free blocks.
        let sign = |allocated| Header { grains: 3, allocated, next: 0 }.encode(nonce)[3] >> 7;
        assert_eq!((sign(true), sign(false)), (0, 1));
    }

    #[test]
    fn sizes_in_grains_count_the_header() {
        let ts = Params::default();
        let of = |p: &Params, len| p.grains_for(len).unwrap();
        assert_eq!((of(&ts, 0), of(&ts, 504), of(&ts, 505)), (1, 1, 2));
        let area = Params { method: Method::Area, ..ts };
        assert_eq!((of(&area, 0), of(&area, 512), of(&area, 513)), (1, 1, 2));
        let pl = Params { method: Method::Pl, ..ts };
        assert_eq!((of(&pl, 496), of(&pl, 497)), (1, 2));
        assert_eq!(ts.waste_grains(), 3);
        assert!(ts.grains_for(usize::MAX / 2).is_err());
    }
}
