//! An item of the table: two links, hash, lengths, key, value. Owns the format.

use super::super::pmflf::Pmflf;
use crate::kit::error::{Error, Result};
use holdall_core::techniques::bytes::{u32_at, u64_at};

/// Bytes before the key.
pub const FIXED: usize = 32;
/// Bytes of the first read: most items need no second one.
const FIRST: usize = 4096;

/// An item as its first read found it.
pub(super) struct Item {
    pub at: u64,
    pub grains: u32,
    pub next: [u64; 2],
    pub hash: u64,
    pub key_len: usize,
    pub value_len: usize,
    bytes: Vec<u8>,
}

impl Item {
    /// Reads the item at `at`, up to the first 4 KiB.
    pub fn read(store: &Pmflf, at: u64) -> Result<Self> {
        Self::read_some(store, at, FIRST)
    }

    /// Reads its links and hash only.
    pub fn read_links(store: &Pmflf, at: u64) -> Result<Self> {
        Self::read_some(store, at, FIXED)
    }

    fn read_some(store: &Pmflf, at: u64, some: usize) -> Result<Self> {
        // The header of the block comes with the same read.
        let header = store.params().method.within();
        let mut bytes = vec![0; header + some];
        let tag = store.read_with_header(at, &mut bytes)?;
        bytes.drain(..header);
        let next = [u64_at(&bytes, 0), u64_at(&bytes, 8)];
        let (key_len, value_len) = (u32_at(&bytes, 24) as usize, u32_at(&bytes, 28) as usize);
        let room = u64::from(tag) * u64::from(store.params().grain);
        if (header + FIXED + key_len + value_len) as u64 > room {
            return Err(Error::Corrupt(format!("the item at {at} is longer than its block")));
        }
        let hash = u64_at(&bytes, 16);
        Ok(Self { at, grains: tag, next, hash, key_len, value_len, bytes })
    }

    /// Its key.
    pub fn key(&self, store: &Pmflf) -> Result<Vec<u8>> {
        self.part(store, FIXED, self.key_len)
    }

    /// Its value.
    pub fn value(&self, store: &Pmflf) -> Result<Vec<u8>> {
        self.part(store, FIXED + self.key_len, self.value_len)
    }

    fn part(&self, store: &Pmflf, from: usize, len: usize) -> Result<Vec<u8>> {
        let mut out = vec![0; len];
        let there = self.bytes.len().saturating_sub(from).min(len);
        if there > 0 {
            out[..there].copy_from_slice(&self.bytes[from..from + there]);
        }
        if there < len {
            store.read(self.at, (from + there) as u64, &mut out[there..])?;
        }
        Ok(out)
    }
}

/// The bytes of a new item.
pub(super) fn encode(next: [u64; 2], key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
    let length = |bytes: &[u8]| {
        u32::try_from(bytes.len()).map_err(|_| Error::Misuse("keys and values are below 4 GiB"))
    };
    let mut out = Vec::with_capacity(FIXED + key.len() + value.len());
    for word in [next[0], next[1], hash(key)] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&length(key)?.to_le_bytes());
    out.extend_from_slice(&length(value)?.to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(value);
    Ok(out)
}

/// FNV-1a, mixed once more so that its low bits choose buckets evenly. It is part of the format.
pub(super) fn hash(key: &[u8]) -> u64 {
    let fnv = |h: u64, &b: &u8| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3);
    let mut h = key.iter().fold(0xCBF2_9CE4_8422_2325, fnv);
    h = (h ^ (h >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    h ^ (h >> 32)
}
