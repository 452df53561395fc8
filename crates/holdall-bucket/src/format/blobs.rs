//! The blobs that a tree names, by small local numbers.
//!
//! The segment tree knows numbers only: a slice's reference is the blob's alias and a byte in it, a
//! node's reference is an alias. Which blob an alias means is known here, and is local to a program's
//! memory; records and nodes write operation and number.

use super::{BlobId, MAX_PAYLOAD};
use std::collections::HashMap;

/// A blob and the length of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobRef {
    /// Which.
    pub id: BlobId,
    /// Bytes of its payload, at least 1.
    pub len: u64,
}

/// The alias of the bytes that lie in the record itself.
pub const EMBEDDED: u64 = 0;
/// Bits of a reference that tell the byte: a blob has fewer bytes, so two are never neighbours.
const BYTE_BITS: u32 = 24;

const _: () = assert!(MAX_PAYLOAD < 1 << BYTE_BITS);

/// The reference of byte `byte` of what `alias` means.
pub fn reference(alias: u64, byte: u64) -> u64 {
    debug_assert!(byte < 1 << BYTE_BITS, "a byte of a blob");
    alias << BYTE_BITS | byte
}

/// The alias in a slice's reference.
pub fn alias_of(reference: u64) -> u64 {
    reference >> BYTE_BITS
}

/// The byte in a slice's reference.
pub fn byte_of(reference: u64) -> u64 {
    reference & ((1 << BYTE_BITS) - 1)
}

/// Aliases and what they mean. Only grows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Blobs {
    list: Vec<BlobRef>,
    rows: HashMap<BlobId, usize>,
}

impl Blobs {
    /// The alias of a blob, given to it now if it has none.
    pub fn alias(&mut self, blob: BlobRef) -> u64 {
        let row = *self.rows.entry(blob.id).or_insert_with(|| {
            self.list.push(blob);
            self.list.len() - 1
        });
        row as u64 + 1
    }

    /// What `alias` means; `None` for [`EMBEDDED`] and numbers that nobody gave out.
    pub fn get(&self, alias: u64) -> Option<BlobRef> {
        self.list.get(usize::try_from(alias.checked_sub(1)?).ok()?).copied()
    }

    /// A blob that has an alias.
    pub fn find(&self, id: BlobId) -> Option<BlobRef> {
        self.rows.get(&id).and_then(|row| self.list.get(*row)).copied()
    }

    /// Sets the length of a blob that had its alias before it was written.
    pub fn set_len(&mut self, alias: u64, len: u64) {
        let row = alias.checked_sub(1).and_then(|row| usize::try_from(row).ok());
        if let Some(blob) = row.and_then(|row| self.list.get_mut(row)) {
            blob.len = len;
        }
    }
}
