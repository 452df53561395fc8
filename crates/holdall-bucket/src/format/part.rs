//! What a record or an intent says of blobs beside the tree: those retired, those shared.
//!
//! Owns: [`Named`], [`Retired`], and the tables of operations and blobs that records, nodes and
//! intents begin with.

use super::{BlobId, BlobRef, Id, MAX_PAYLOAD, damaged, or_short};
use holdall::Result;
use holdall_core::bytes::{Reader, push_varint};
use holdall_core::segment_tree::MAX_HEIGHT;
use std::collections::{HashMap, HashSet};

/// How much a named blob stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A segment.
    Segment,
    /// A node, and nothing below it.
    Node,
    /// A node of this level, and all below it.
    Tree(u8),
    /// A list of retired blobs, and all that it names.
    List,
}

/// A blob that something names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named {
    /// Which.
    pub blob: BlobRef,
    /// What it stands for.
    pub part: Part,
}

/// What an object named once and may not name any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Retired {
    /// What.
    pub named: Named,
    /// When, in seconds since 1970 UTC.
    pub seconds: u64,
}

/// Smallest entries, which bound what a count makes a parser allocate.
const MIN_BLOB: usize = 3;
const MIN_NAMED: usize = 3;

/// The operations and blobs that something names, in the order of first use.
#[derive(Debug, Default)]
pub(super) struct Table {
    operations: Vec<Id>,
    of_operation: HashMap<Id, u64>,
    blobs: Vec<BlobRef>,
    of_blob: HashMap<BlobId, u64>,
}

impl Table {
    /// The row of a blob.
    pub(super) fn row(&mut self, blob: BlobRef) -> u64 {
        if let Some(row) = self.of_blob.get(&blob.id) {
            return *row;
        }
        let operation = blob.id.operation;
        if !self.of_operation.contains_key(&operation) {
            self.of_operation.insert(operation, self.operations.len() as u64);
            self.operations.push(operation);
        }
        let row = self.blobs.len() as u64;
        self.of_blob.insert(blob.id, row);
        self.blobs.push(blob);
        row
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        push_varint(out, self.operations.len() as u64);
        self.operations.iter().for_each(|o| out.extend(o.0));
        push_varint(out, self.blobs.len() as u64);
        for blob in &self.blobs {
            push_varint(out, self.of_operation.get(&blob.id.operation).copied().unwrap_or(0));
            push_varint(out, u64::from(blob.id.number));
            push_varint(out, blob.len);
        }
    }

    /// Reads a table of at most `most` blobs. None is named twice: two rows could say of one blob that
    /// it has two lengths.
    pub(super) fn read(r: &mut Reader<'_>, most: usize, place: &str) -> Result<Vec<BlobRef>> {
        let count = counted(r, Id::BYTES, most, place)?;
        let mut operations = Vec::with_capacity(count);
        for _ in 0..count {
            operations.push(take_id(r, place)?);
        }
        let count = counted(r, MIN_BLOB, most, place)?;
        let (mut blobs, mut seen) = (Vec::with_capacity(count), HashSet::with_capacity(count));
        for _ in 0..count {
            let at = or_short(r.varint(), place)?;
            let operation = usize::try_from(at).ok().and_then(|at| operations.get(at).copied());
            let operation = or_short(operation, place)?;
            let number = or_short(r.varint().and_then(|n| u32::try_from(n).ok()), place)?;
            let len = or_short(r.varint(), place)?;
            if len == 0 || len > MAX_PAYLOAD {
                return Err(damaged(place, format!("names a blob of {len} bytes")));
            }
            let id = BlobId { operation, number };
            if !seen.insert(id) {
                return Err(damaged(place, format!("names blob {id} in two rows")));
            }
            blobs.push(BlobRef { id, len });
        }
        Ok(blobs)
    }
}

/// A count of things that take `least` bytes each, and of which there are `most` at most: what a
/// parser allocates for them is bounded by both.
pub(super) fn counted(r: &mut Reader<'_>, least: usize, most: usize, place: &str) -> Result<usize> {
    let count = or_short(r.varint(), place)?;
    let bound = most.min(r.rest().len() / least.max(1));
    or_short(usize::try_from(count).ok().filter(|n| *n <= bound), place)
}

pub(super) fn take_id(r: &mut Reader<'_>, place: &str) -> Result<Id> {
    let bytes = or_short(r.take(Id::BYTES), place)?;
    or_short(bytes.try_into().ok().map(Id), place)
}

/// The row of a table that comes next.
pub(super) fn take_row(r: &mut Reader<'_>, blobs: &[BlobRef], place: &str) -> Result<BlobRef> {
    let row = or_short(r.varint(), place)?;
    let found = usize::try_from(row).ok().and_then(|row| blobs.get(row).copied());
    found.ok_or_else(|| damaged(place, format!("names row {row} of {} blobs", blobs.len())))
}

impl Named {
    pub(super) fn write(&self, table: &mut Table, out: &mut Vec<u8>) {
        push_varint(out, table.row(self.blob));
        let (kind, level) = match self.part {
            Part::Segment => (1, 0),
            Part::Node => (2, 0),
            Part::Tree(level) => (3, level),
            Part::List => (4, 0),
        };
        out.extend([kind, level]);
    }

    pub(super) fn read(r: &mut Reader<'_>, blobs: &[BlobRef], place: &str) -> Result<Self> {
        let blob = take_row(r, blobs, place)?;
        let (kind, level) = (or_short(r.u8(), place)?, or_short(r.u8(), place)?);
        let part = match (kind, level) {
            (1, 0) => Part::Segment,
            (2, 0) => Part::Node,
            (3, level) if level <= MAX_HEIGHT => Part::Tree(level),
            (4, 0) => Part::List,
            _ => return Err(damaged(place, format!("names a blob as kind {kind}, level {level}"))),
        };
        Ok(Self { blob, part })
    }

    pub(super) fn read_all(
        r: &mut Reader<'_>,
        blobs: &[BlobRef],
        place: &str,
    ) -> Result<Vec<Self>> {
        let count = counted(r, MIN_NAMED, usize::MAX, place)?;
        (0..count).map(|_| Self::read(r, blobs, place)).collect()
    }
}

impl Retired {
    pub(super) fn write(&self, table: &mut Table, out: &mut Vec<u8>) {
        self.named.write(table, out);
        push_varint(out, self.seconds);
    }

    pub(super) fn read_all(
        r: &mut Reader<'_>,
        blobs: &[BlobRef],
        most: usize,
        place: &str,
    ) -> Result<Vec<Self>> {
        let count = counted(r, MIN_NAMED + 1, most, place)?;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let named = Named::read(r, blobs, place)?;
            all.push(Self { named, seconds: or_short(r.varint(), place)? });
        }
        Ok(all)
    }
}
