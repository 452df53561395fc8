//! The header of a record: what is known of an object without its tree and its bytes.
//!
//! Owns: [`RecordHeader`], the checksums of records. The header has a checksum of its own, so that a listing with
//! sizes reads the first bytes of each record only.

use super::part::take_id;
use super::{Id, damaged, or_short};
use holdall::{Attributes, Error, Result};
use holdall_core::bytes::{Reader, push_varint, put_u32, u32_at};
use holdall_core::checksum::crc_of;
use holdall_core::segment_tree::MAX_OBJECT;

/// Bytes in which nearly every header lies: only attributes and names of some 700 bytes make one longer.
pub const HEADER_READ: u64 = 1024;

/// Operations that a record remembers.
pub const MAX_RECENT: usize = 16;
/// Most bytes of attributes, with their keys.
pub const MAX_ATTRIBUTES: usize = 4096;
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RecordHeader {
    /// Whether there is no object any more.
    pub gone: bool,
    /// Whether other objects may name its blobs.
    pub shared: bool,
    /// Drawn for each write.
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
    /// The object's size in bytes.
    pub size: u64,
    /// The last operations, the newest last, by [`Id::short`].
    pub recent: Vec<u64>,
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
        let (header, _) = is_record(first).then(|| Self::read(first, "a header").ok())??;
        Some(header)
    }

    /// Writes it, but for the checksum of the whole record.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        let kind = if self.gone { GONE } else { OBJECT };
        out.extend([FORMAT, kind, u8::from(self.shared) * SHARED, 0]);
        out.extend([0; 4]);
        [self.nonce, self.operation, self.incarnation].iter().for_each(|id| out.extend(id.0));
        for number in [self.change, self.created, self.modified, self.size] {
            out.extend(number.to_le_bytes());
        }
        out.push(self.recent.len() as u8);
        self.recent.iter().for_each(|short| out.extend(short.to_le_bytes()));
        push_bytes(out, self.collection.as_bytes());
        push_bytes(out, self.name.as_bytes());
        push_varint(out, self.attributes.len() as u64);
        for (key, value) in &self.attributes {
            push_bytes(out, key.as_bytes());
            push_bytes(out, value);
        }
        out.extend(sum_of(out).to_le_bytes());
    }

    /// The header of a record that begins with `stored`, and what follows.
    pub(super) fn read<'a>(stored: &'a [u8], place: &str) -> Result<(Self, Reader<'a>)> {
        let (header, mut r) = Self::read_unchecked(stored, place)?;
        let len = stored.len() - r.rest().len();
        if or_short(r.u32(), place)? != sum_of(&stored[..len]) {
            return Err(damaged(place, "the checksum of its header is wrong"));
        }
        Ok((header, r))
    }

    /// As [`RecordHeader::read`], up to the checksum.
    fn read_unchecked<'a>(stored: &'a [u8], place: &str) -> Result<(Self, Reader<'a>)> {
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
        let (gone, shared) = (kind == GONE, flags & SHARED != 0);
        let mut header = Self { gone, shared, ..Self::default() };
        header.take_fixed(&mut r, place)?;
        header.take_names(&mut r, place)?;
        Ok((header, r))
    }

    fn take_fixed(&mut self, r: &mut Reader<'_>, place: &str) -> Result<()> {
        for id in [&mut self.nonce, &mut self.operation, &mut self.incarnation] {
            *id = take_id(r, place)?;
        }
        for number in [&mut self.change, &mut self.created, &mut self.modified, &mut self.size] {
            *number = or_short(r.u64(), place)?;
        }
        if self.size > MAX_OBJECT {
            return Err(damaged(place, format!("has {} bytes", self.size)));
        }
        // One more must be counted still.
        if self.change > MAX_CHANGE {
            return Err(damaged(place, format!("was changed {} times", self.change)));
        }
        let count = or_short(r.u8().filter(|n| usize::from(*n) <= MAX_RECENT), place)?;
        for _ in 0..count {
            self.recent.push(or_short(r.u64(), place)?);
        }
        Ok(())
    }

    fn take_names(&mut self, r: &mut Reader<'_>, place: &str) -> Result<()> {
        self.collection = take_text(r, place)?;
        self.name = take_text(r, place)?;
        let count = or_short(r.varint().filter(|n| *n <= MAX_ATTRIBUTES as u64), place)?;
        let mut all = 0;
        for _ in 0..count {
            let (key, value) = (take_text(r, place)?, take_bytes(r, place)?);
            all += key.len() + value.len();
            if self.attributes.insert(key, value.to_vec()).is_some() || all > MAX_ATTRIBUTES {
                return Err(damaged(place, "its attributes are twice the same, or too long"));
            }
        }
        Ok(())
    }
}

/// Whether `stored` begins as a record does, and is long enough for one.
pub(super) fn is_record(stored: &[u8]) -> bool {
    stored.len() >= FIXED && stored[..4] == MAGIC
}

/// Sets the checksums of a record or an intent that was made by hand; for tests.
pub fn seal(stored: &mut [u8]) {
    if is_record(stored)
        && let Ok((_, r)) = RecordHeader::read_unchecked(stored, "")
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

pub(super) fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub(super) fn take_bytes<'a>(r: &mut Reader<'a>, place: &str) -> Result<&'a [u8]> {
    let len = or_short(r.varint().and_then(|n| usize::try_from(n).ok()), place)?;
    or_short(r.take(len), place)
}

pub(super) fn take_text(r: &mut Reader<'_>, place: &str) -> Result<String> {
    let bytes = take_bytes(r, place)?.to_vec();
    String::from_utf8(bytes).map_err(|_| damaged(place, "holds a text that is not UTF-8"))
}
