//! The header of a record: what is known of an object without its tree and its bytes.
//!
//! Owns: [`RecordHeader`], the checksums of records. The header has a checksum of its own, so that a listing with
//! sizes reads the first bytes of each record only.

use super::part::take_id;
use super::record::{MAX_ATTRIBUTES, MAX_RECENT, Record, push_bytes, take_bytes, take_text};
use super::{Id, damaged, or_short};
use holdall::{Attributes, Error, Result};
use holdall_core::bytes::{Reader, push_varint, put_u32, u32_at};
use holdall_core::checksum::crc_of;
use holdall_core::segment_tree::MAX_OBJECT;

/// Bytes in which nearly every header lies: only attributes and names of some 700 bytes make one longer.
pub const HEADER_READ: u64 = 1024;

/// Most changes that a name has had.
const MAX_CHANGE: u64 = 1 << 62;

const MAGIC: [u8; 4] = *b"HRec";
const FORMAT: u8 = 1;
/// Where the checksum of a record, or of an intent, lies.
pub(super) const CRC_AT: usize = 8;
/// Bytes before the operations.
const FIXED: usize = 12 + 3 * Id::BYTES + 4 * 8;
const OBJECT: u8 = 1;
const GONE: u8 = 2;
const SHARED: u8 = 1;

/// What a record says before its tree.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordHeader {
    /// Whether there is no object any more.
    pub gone: bool,
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
    /// The object's size in bytes.
    pub size: u64,
    /// Its collection.
    pub collection: String,
    /// Its name.
    pub name: String,
    /// Its attributes.
    pub attributes: Attributes,
}

impl RecordHeader {
    /// That of a record whose first bytes these are; `None` if it is longer, damaged or of another format,
    /// which the whole record tells.
    #[must_use]
    pub fn decode(first: &[u8]) -> Option<Self> {
        let (record, _) = is_record(first).then(|| read(first, "a header").ok())??;
        Some((&record).into())
    }
}

impl From<&Record> for RecordHeader {
    fn from(record: &Record) -> Self {
        Self {
            gone: record.gone,
            operation: record.operation,
            incarnation: record.incarnation,
            change: record.change,
            created: record.created,
            modified: record.modified,
            size: record.tree.size,
            collection: record.collection.clone(),
            name: record.name.clone(),
            attributes: record.attributes.clone(),
        }
    }
}

/// Whether `stored` begins as a record does, and is long enough for one.
pub(super) fn is_record(stored: &[u8]) -> bool {
    stored.len() >= FIXED && stored[..4] == MAGIC
}

/// Writes the header of `record`, but for the checksum of the whole record.
pub(super) fn write(record: &Record, out: &mut Vec<u8>) {
    out.extend(MAGIC);
    let kind = if record.gone { GONE } else { OBJECT };
    out.extend([FORMAT, kind, u8::from(record.shared) * SHARED, 0]);
    out.extend([0; 4]);
    [record.nonce, record.operation, record.incarnation].iter().for_each(|id| out.extend(id.0));
    for number in [record.change, record.created, record.modified, record.tree.size] {
        out.extend(number.to_le_bytes());
    }
    out.push(record.recent.len() as u8);
    record.recent.iter().for_each(|short| out.extend(short.to_le_bytes()));
    push_bytes(out, record.collection.as_bytes());
    push_bytes(out, record.name.as_bytes());
    push_varint(out, record.attributes.len() as u64);
    for (key, value) in &record.attributes {
        push_bytes(out, key.as_bytes());
        push_bytes(out, value);
    }
    out.extend(sum_of(out).to_le_bytes());
}

/// Reads the header of a record that begins with `stored`; returns it without a tree, and what follows.
pub(super) fn read<'a>(stored: &'a [u8], place: &str) -> Result<(Record, Reader<'a>)> {
    let (record, mut r) = read_unchecked(stored, place)?;
    let len = stored.len() - r.rest().len();
    if or_short(r.u32(), place)? != sum_of(&stored[..len]) {
        return Err(damaged(place, "the checksum of its header is wrong"));
    }
    Ok((record, r))
}

/// As [`read`], up to the checksum.
fn read_unchecked<'a>(stored: &'a [u8], place: &str) -> Result<(Record, Reader<'a>)> {
    let (kind, flags) = (stored[5], stored[6]);
    if stored[4] != FORMAT
        || !matches!(kind, OBJECT | GONE)
        || flags & !SHARED != 0
        || stored[7] != 0
    {
        let detail =
            format!("{place} is a record of format {}, kind {kind}, flags {flags}", stored[4]);
        return Err(Error::Unsupported { detail });
    }
    let mut r = Reader::new(&stored[CRC_AT + 4..]);
    let mut record =
        Record { gone: kind == GONE, shared: flags & SHARED != 0, ..Record::default() };
    take_fixed(&mut record, &mut r, place)?;
    take_names(&mut record, &mut r, place)?;
    Ok((record, r))
}

fn take_fixed(record: &mut Record, r: &mut Reader<'_>, place: &str) -> Result<()> {
    for id in [&mut record.nonce, &mut record.operation, &mut record.incarnation] {
        *id = take_id(r, place)?;
    }
    let Record { change, created, modified, tree, .. } = record;
    for number in [change, created, modified, &mut tree.size] {
        *number = or_short(r.u64(), place)?;
    }
    if record.tree.size > MAX_OBJECT {
        return Err(damaged(place, format!("has {} bytes", record.tree.size)));
    }
    // One more must be counted still.
    if record.change > MAX_CHANGE {
        return Err(damaged(place, format!("was changed {} times", record.change)));
    }
    let count = or_short(r.u8().filter(|n| usize::from(*n) <= MAX_RECENT), place)?;
    for _ in 0..count {
        record.recent.push(or_short(r.u64(), place)?);
    }
    Ok(())
}

fn take_names(record: &mut Record, r: &mut Reader<'_>, place: &str) -> Result<()> {
    record.collection = take_text(r, place)?;
    record.name = take_text(r, place)?;
    let count = or_short(r.varint().filter(|n| *n <= MAX_ATTRIBUTES as u64), place)?;
    let mut all = 0;
    for _ in 0..count {
        let (key, value) = (take_text(r, place)?, take_bytes(r, place)?);
        all += key.len() + value.len();
        if record.attributes.insert(key, value.to_vec()).is_some() || all > MAX_ATTRIBUTES {
            return Err(damaged(place, "its attributes are twice the same, or too long"));
        }
    }
    Ok(())
}

/// Sets the checksums of a record or an intent that was made by hand; for tests.
pub fn seal(stored: &mut [u8]) {
    if is_record(stored)
        && let Ok((_, r)) = read_unchecked(stored, "")
        && let len = stored.len() - r.rest().len()
        && len + 4 <= stored.len()
    {
        let sum = sum_of(&stored[..len]);
        put_u32(stored, len, sum);
    }
    if stored.len() >= CRC_AT + 4 {
        let sum = sum_of(stored);
        put_u32(stored, CRC_AT, sum);
    }
}

/// The checksum of a record, its header or an intent: of all but the four bytes at [`CRC_AT`].
pub(super) fn sum_of(stored: &[u8]) -> u32 {
    crc_of(&[&stored[..CRC_AT], &stored[CRC_AT + 4..]])
}

/// Whether the checksum of all of a record or an intent is right.
pub(super) fn is_whole(stored: &[u8]) -> bool {
    u32_at(stored, CRC_AT) == sum_of(stored)
}
