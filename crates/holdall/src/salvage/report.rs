//! What a salvage says.
//!
//! Owns: [`SalvageReport`].

use holdall_core::Oid;
use std::ops::Range;

/// What came of a [`Salvage`](super::Salvage).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SalvageReport {
    /// Objects in the new store.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Collections in the new store.
    pub collections: u64,
    /// Objects that are known and not whole.
    pub lost: Vec<LostObject>,
    /// Objects in the new store that may be of an earlier state, or removed since.
    pub doubtful: Vec<DoubtfulObject>,
    /// What was lost beside objects: superblocks, log, names of collections.
    pub notes: Vec<String>,
    /// Bytes that the device could not read.
    pub unreadable: u64,
}

/// An object of which bytes are lost.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostObject {
    /// Its collection, if that is known.
    pub collection: Option<String>,
    /// Its name, if it has one and that is known.
    pub name: Option<Vec<u8>>,
    /// Its id.
    pub oid: Oid,
    /// Its size in bytes, if that is known.
    pub size: Option<u64>,
    /// The bytes that are lost; none if all are.
    pub ranges: Vec<Range<u64>>,
    /// Why.
    pub why: String,
    /// The new store has it with zeros in place of what is lost.
    pub brought: bool,
}

/// An object that was brought and may not be what the store had last.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DoubtfulObject {
    /// Its collection in the new store.
    pub collection: String,
    /// Its name there, if it has one.
    pub name: Option<Vec<u8>>,
    /// Its id.
    pub oid: Oid,
    /// Why.
    pub why: String,
}

impl SalvageReport {
    /// Whether all that the store had last is in the new one.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.lost.is_empty() && self.doubtful.is_empty() && self.notes.is_empty()
    }
}
