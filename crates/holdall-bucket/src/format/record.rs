//! Records: all that is kept of an object beside its blobs.
//!
//! A record is replaced whole, by conditional writes. Its length modulo 8 tells its class, so that a
//! listing tells which records collecting has to read.

use super::header::{
    CRC_AT, MAX_ATTRIBUTES, MAX_RECENT, RecordHeader, is_record, is_whole, push_bytes, sum_of,
    take_bytes,
};
use super::part::{Retired, Table};
use super::slices::{read_alias, read_slices, write_slices};
use super::{Blobs, Id, damaged, or_short};
use bytes::Bytes;
use holdall::{Attributes, Error, Result};
use holdall_core::bytes::{Reader, push_varint, put_u32};
use holdall_core::segment_tree::{MAX_HEIGHT, NodeRef, Top, Tree};

/// Retired blobs that a record lists itself.
pub const MAX_RETIRED: usize = 256;
/// Slices that a record lists itself.
pub const MAX_SLICES: usize = 4096;
/// Most bytes that lie in the record itself.
pub const MAX_EMBEDDED: u64 = 1 << 20;
/// Most bytes of a record: what is longer is read by nobody.
pub const MAX_RECORD: u64 = 4 << 20;

const SLICES: u8 = 0;
const ROOT: u8 = 1;
const CLASSES: usize = 8;

/// What a record's length tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// An object without blobs.
    Small = 0,
    /// An object with blobs, none of them retired.
    Blobs = 1,
    /// An object with retired blobs, none of them shared.
    Retired = 2,
    /// An object that may share blobs with others.
    Shared = 3,
    /// No object any more.
    Gone = 4,
    /// No object any more, but retired blobs.
    GoneRetired = 5,
}

impl Class {
    /// The class of records of this length.
    pub fn of_len(len: u64) -> Option<Self> {
        [Self::Small, Self::Blobs, Self::Retired, Self::Shared, Self::Gone, Self::GoneRetired]
            .into_iter()
            .find(|class| *class as u64 == len % CLASSES as u64)
    }

    /// Whether there is an object.
    pub fn is_object(self) -> bool {
        !matches!(self, Self::Gone | Self::GoneRetired)
    }
}

/// All that is kept of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// Whether there is no object any more.
    pub gone: bool,
    /// Whether other objects may name its blobs, retired ones too.
    pub shared: bool,
    /// Drawn for each write, so that no two records are the same bytes.
    pub nonce: Id,
    /// The operation that changed it last.
    pub operation: Id,
    /// Drawn when the name was first written.
    pub incarnation: Id,
    /// Changes since then.
    pub change: u64,
    /// When the object was created, in nanoseconds since 1970 UTC.
    pub created: u64,
    /// When it was last changed.
    pub modified: u64,
    /// The last operations, the newest last, by [`Id::short`].
    pub recent: Vec<u64>,
    /// Its collection.
    pub collection: String,
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub attributes: Attributes,
    /// Where its bytes are.
    pub tree: Tree,
    /// What the tree's aliases mean.
    pub blobs: Blobs,
    /// The bytes that lie here.
    pub embedded: Bytes,
    /// What it named once and may not name any more.
    pub retired: Vec<Retired>,
}

impl Record {
    /// Its class.
    pub fn class(&self) -> Class {
        match (self.gone, self.retired.is_empty()) {
            (true, true) => Class::Gone,
            (true, false) => Class::GoneRetired,
            (false, _) if self.shared => Class::Shared,
            (false, false) => Class::Retired,
            (false, true) if self.names_blobs() => Class::Blobs,
            (false, true) => Class::Small,
        }
    }

    /// Whether the tree names blobs.
    pub fn names_blobs(&self) -> bool {
        match &self.tree.top {
            Top::Root { .. } => true,
            Top::Inline(slices) => {
                slices.iter().any(|s| s.is_run() && super::alias_of(s.reference) != super::EMBEDDED)
            }
        }
    }

    /// How many slices it lists.
    pub fn slices(&self) -> usize {
        match &self.tree.top {
            Top::Inline(slices) => slices.len(),
            Top::Root { .. } => 0,
        }
    }

    /// Whether it has neither bytes nor attributes.
    fn is_bare(&self) -> bool {
        self.tree == Tree::empty() && self.attributes.is_empty() && self.embedded.is_empty()
    }

    /// Whether `operation` is among those that it remembers.
    pub fn remembers(&self, operation: Id) -> bool {
        self.recent.contains(&operation.short())
    }

    /// Notes that `operation` changed it.
    pub fn changed_by(&mut self, operation: Id) {
        self.operation = operation;
        self.change += 1;
        self.recent.push(operation.short());
        if self.recent.len() > MAX_RECENT {
            self.recent.remove(0);
        }
    }

    /// The stored form. Cost: its length.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if there is too much for a record.
    pub fn encode(&self) -> Result<Bytes> {
        self.check_counts()?;
        let mut out = Vec::with_capacity(512 + self.embedded.len());
        RecordHeader::from(self).write(&mut out);
        self.encode_tree(&mut out)?;
        push_bytes(&mut out, &self.embedded);
        while out.len() % CLASSES != self.class() as usize {
            out.push(0);
        }
        if out.len() as u64 > MAX_RECORD {
            let text = format!("a record of {} bytes, at most {MAX_RECORD}", out.len());
            return Err(Error::TooLarge(text));
        }
        let sum = sum_of(&out);
        put_u32(&mut out, CRC_AT, sum);
        Ok(out.into())
    }

    /// What a reader would refuse must not be written.
    fn check_counts(&self) -> Result<()> {
        let attributes: usize =
            self.attributes.iter().map(|(key, value)| key.len() + value.len()).sum();
        let fits = self.recent.len() <= MAX_RECENT
            && self.slices() <= MAX_SLICES
            && self.retired.len() <= MAX_RETIRED
            && attributes <= MAX_ATTRIBUTES
            && self.embedded.len() as u64 <= MAX_EMBEDDED
            && (!self.gone || self.is_bare());
        if fits {
            return Ok(());
        }
        let (slices, retired) = (self.slices(), self.retired.len());
        Err(Error::TooLarge(format!(
            "a record of {slices} slices, {retired} retired blobs, {attributes} bytes of attributes and {} embedded",
            self.embedded.len()
        )))
    }

    fn encode_tree(&self, out: &mut Vec<u8>) -> Result<()> {
        let (mut table, mut body) = (Table::default(), Vec::new());
        match &self.tree.top {
            Top::Inline(slices) => {
                body.push(SLICES);
                write_slices(slices, &self.blobs, &mut table, &mut body)?;
            }
            Top::Root { node, height } => {
                let blob = self.blobs.get(node.0);
                let blob = blob.ok_or_else(|| damaged("a tree", "names no root"))?;
                body.extend([ROOT, *height]);
                push_varint(&mut body, table.row(blob));
            }
        }
        push_varint(&mut body, self.retired.len() as u64);
        self.retired.iter().for_each(|entry| entry.write(&mut table, &mut body));
        table.write(out);
        out.extend(body);
        Ok(())
    }

    /// Reads a record; `place` names its key in errors.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for anything that cannot be; [`Error::Unsupported`] for a newer format.
    pub fn decode(stored: &[u8], place: &str) -> Result<Self> {
        let bad = |detail: &str| damaged(place, detail);
        if !is_record(stored) || stored.len() as u64 > MAX_RECORD {
            return Err(bad("no record of an object"));
        }
        if !is_whole(stored) {
            return Err(bad("its checksum is wrong"));
        }
        let (header, mut r) = RecordHeader::read(stored, place)?;
        let mut record = Self::from(header);
        record.take_tree(&mut r, place)?;
        let padding = r.rest();
        let class = Class::of_len(stored.len() as u64);
        if padding.len() >= CLASSES
            || padding.iter().any(|b| *b != 0)
            || class != Some(record.class())
        {
            return Err(bad("its length is not that of its class"));
        }
        if record.gone && !record.is_bare() {
            return Err(bad("it is gone and has bytes"));
        }
        Ok(record)
    }

    fn take_tree(&mut self, r: &mut Reader<'_>, place: &str) -> Result<()> {
        let table = Table::read(r, MAX_SLICES + MAX_RETIRED, place)?;
        // The embedded bytes come behind the slices that name them.
        let mut ahead = r.clone();
        let mut scratch = Blobs::default();
        take_top(&mut ahead, &table, &mut scratch, Some(MAX_EMBEDDED), place)?;
        Retired::read_all(&mut ahead, &table, MAX_RETIRED, place)?;
        self.embedded = Bytes::copy_from_slice(take_bytes(&mut ahead, place)?);
        let embedded = self.embedded.len() as u64;
        self.tree.top = take_top(r, &table, &mut self.blobs, Some(embedded), place)?;
        self.retired = Retired::read_all(r, &table, MAX_RETIRED, place)?;
        *r = ahead;
        let size = self.tree.size;
        let sum = match &self.tree.top {
            Top::Inline(slices) => slices.iter().map(|s| s.len).sum(),
            Top::Root { .. } => size,
        };
        let root = matches!(self.tree.top, Top::Root { .. });
        if sum != size || embedded > MAX_EMBEDDED || (root && size == 0) {
            return Err(damaged(place, format!("{size} bytes, of which slices have {sum}")));
        }
        Ok(())
    }
}

impl From<&Record> for RecordHeader {
    fn from(record: &Record) -> Self {
        Self {
            gone: record.gone,
            shared: record.shared,
            nonce: record.nonce,
            operation: record.operation,
            incarnation: record.incarnation,
            change: record.change,
            created: record.created,
            modified: record.modified,
            size: record.tree.size,
            recent: record.recent.clone(),
            collection: record.collection.clone(),
            name: record.name.clone(),
            attributes: record.attributes.clone(),
        }
    }
}

impl From<RecordHeader> for Record {
    /// The record without a tree, but for its size, and without bytes.
    fn from(header: RecordHeader) -> Self {
        Self {
            gone: header.gone,
            shared: header.shared,
            nonce: header.nonce,
            operation: header.operation,
            incarnation: header.incarnation,
            change: header.change,
            created: header.created,
            modified: header.modified,
            recent: header.recent,
            collection: header.collection,
            name: header.name,
            attributes: header.attributes,
            tree: Tree { size: header.size, ..Tree::empty() },
            ..Self::default()
        }
    }
}

fn take_top(
    r: &mut Reader<'_>,
    table: &[super::BlobRef],
    blobs: &mut Blobs,
    embedded: Option<u64>,
    place: &str,
) -> Result<Top> {
    match or_short(r.u8(), place)? {
        SLICES => Ok(Top::Inline(read_slices(r, table, blobs, (MAX_SLICES, embedded), place)?)),
        ROOT => {
            let height = or_short(r.u8().filter(|height| *height <= MAX_HEIGHT), place)?;
            let node = NodeRef(read_alias(r, table, blobs, place)?);
            Ok(Top::Root { node, height })
        }
        form => Err(damaged(place, format!("a tree of form {form}"))),
    }
}
