//! Numbers of collections as keys, and what the catalog says of a collection.
//!
//! Owns: [`NumberKey`] and [`Entry`] (docs/format.md "Catalog"). Pure.

use crate::bytes::{Reader, push_varint};
use crate::{Error, PageNo, Result};
use std::ops::Deref;

/// Owner of the pages that small collections share.
pub const SMALL_OWNER: u64 = u64::MAX - 2;
/// Owner of the tree of entries.
pub const ENTRIES_OWNER: u64 = u64::MAX - 3;
/// Owner of the drop list's tree.
pub const DROPS_OWNER: u64 = u64::MAX - 4;
/// The first number that no collection gets: owners of the engine's own trees are above.
pub const END: u64 = u64::MAX - 1024;

/// Numbers below have one byte.
const ONE: u8 = 248;
/// Bytes of the longest number.
pub const MAX_NUMBER: usize = 9;

/// A number in the bytes that sort as numbers do; none begins another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NumberKey {
    bytes: [u8; MAX_NUMBER],
    len: u8,
}

impl NumberKey {
    /// The bytes of `number`: one if it is below 248, else how many follow and these, the most
    /// significant first.
    pub fn new(number: u64) -> Self {
        let mut bytes = [0; MAX_NUMBER];
        if number < u64::from(ONE) {
            bytes[0] = number as u8;
            return Self { bytes, len: 1 };
        }
        let skip = number.leading_zeros() as usize / 8;
        let rest = &number.to_be_bytes()[skip..];
        bytes[0] = ONE - 1 + rest.len() as u8;
        bytes[1..=rest.len()].copy_from_slice(rest);
        Self { bytes, len: 1 + rest.len() as u8 }
    }

    /// The number that `key` begins with, and what follows it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it begins with none, or with one in more bytes than it needs.
    pub fn split(key: &[u8]) -> Result<(u64, &[u8])> {
        let bad = || Error::corrupt("catalog", "a key begins with no number");
        let (first, rest) = key.split_first().ok_or_else(bad)?;
        let Some(len) = first.checked_sub(ONE - 1).filter(|len| *len > 0) else {
            return Ok((u64::from(*first), rest));
        };
        let (bytes, rest) = rest.split_at_checked(len.into()).ok_or_else(bad)?;
        let number = bytes.iter().fold(0, |n: u64, byte| n << 8 | u64::from(*byte));
        if *Self::new(number) != key[..=usize::from(len)] {
            return Err(bad());
        }
        Ok((number, rest))
    }

    /// The number followed by `name`.
    pub fn with(&self, name: &[u8]) -> Vec<u8> {
        [&**self, name].concat()
    }
}

impl Deref for NumberKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// What the catalog says of a collection, beside its number and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// Records and names lie in pages of its own, of which this is the first.
    Large(PageNo),
    /// Its names and records lie in pages that small collections share.
    Small(Counts),
}

/// What is known of a small collection without its objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Objects, all of which have names.
    pub objects: u64,
    /// Sum of their sizes in bytes.
    pub logical_bytes: u64,
    /// Bytes of their records.
    pub record_bytes: u64,
    /// Segment threshold T in pages for new objects; 0 means the built-in default.
    pub threshold: u16,
    /// Descriptor flags of new large objects.
    pub flags: u8,
}

const LARGE: u8 = 1;
const SMALL: u8 = 2;

impl Entry {
    /// The entry's bytes, at most [`crate::names_node::MAX_VALUE`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        match self {
            Self::Large(page) => {
                out.push(LARGE);
                push_varint(&mut out, page.0);
            }
            Self::Small(c) => {
                out.push(SMALL);
                out.push(c.flags);
                for n in [c.threshold.into(), c.objects, c.record_bytes, c.logical_bytes] {
                    push_varint(&mut out, n);
                }
            }
        }
        out
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; [`Error::Unsupported`] for a kind of a newer build.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes);
        let entry = match r.u8() {
            Some(LARGE) => r.varint().map(|page| Self::Large(PageNo(page))),
            Some(SMALL) => Self::small(&mut r),
            Some(kind) => {
                let detail = format!("a catalog entry is of kind {kind}");
                return Err(Error::Unsupported { detail });
            }
            None => None,
        };
        let bad = || Error::corrupt("catalog", "an entry is cut short, or too long");
        entry.filter(|_| r.rest().is_empty()).ok_or_else(bad)
    }

    fn small(r: &mut Reader<'_>) -> Option<Self> {
        let (flags, threshold) = (r.u8()?, r.varint()?.try_into().ok()?);
        let (objects, record_bytes, logical_bytes) = (r.varint()?, r.varint()?, r.varint()?);
        Some(Self::Small(Counts { objects, logical_bytes, record_bytes, threshold, flags }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names_node::MAX_VALUE;
    use proptest::prelude::*;

    #[test]
    fn numbers_have_few_bytes_and_sort() {
        let mut all: Vec<u64> = vec![0, 1, 247, 248, 255, 256, 65_535, 65_536, u64::MAX];
        all.extend((0..64).map(|bit| 1_u64 << bit));
        all.sort_unstable();
        all.dedup();
        let keys: Vec<Vec<u8>> = all.iter().map(|n| NumberKey::new(*n).to_vec()).collect();
        assert!(keys.windows(2).all(|pair| pair[0] < pair[1]), "{keys:?}");
        for (n, key) in all.iter().zip(&keys) {
            let key = [&key[..], b"name"].concat();
            assert_eq!(NumberKey::split(&key).unwrap(), (*n, &b"name"[..]));
        }
        assert_eq!(keys.last().unwrap().len(), MAX_NUMBER);
        // More bytes than needed, too few, none.
        for bad in [&[248, 5][..], &[249, 0, 255], &[249, 1], &[]] {
            assert!(NumberKey::split(bad).is_err(), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn entries_round_trip(objects in any::<u64>(), logical_bytes in any::<u64>(),
            record_bytes in any::<u64>(), threshold in any::<u16>(), flags in any::<u8>()) {
            let counts = Counts { objects, logical_bytes, record_bytes, threshold, flags };
            for entry in [Entry::Small(counts), Entry::Large(PageNo(objects))] {
                let bytes = entry.encode();
                prop_assert!(bytes.len() <= MAX_VALUE);
                prop_assert_eq!(Entry::decode(&bytes).unwrap(), entry);
                prop_assert!(Entry::decode(&bytes[..bytes.len() - 1]).is_err());
                prop_assert!(Entry::decode(&[&bytes[..], &[0]].concat()).is_err());
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = (Entry::decode(&bytes), NumberKey::split(&bytes));
        }
    }
}
