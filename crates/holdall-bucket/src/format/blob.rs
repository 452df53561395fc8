//! Blobs: a header, then units of 16 KiB that each carry a checksum.
//!
//! The checksum of a unit also covers which blob and which unit it is, so any range is verified by
//! the bytes of one request: byte x of the payload lies at `40 + x + 4 * (x / 16384)`.

use super::rest::Rest;
use super::{BlobId, BlobRef, Id, damaged};
use bytes::Bytes;
use holdall::Result;
use holdall_core::bytes::{put_u32, put_u64, u32_at, u64_at};
use holdall_core::checksum::{crc, crc_of};
use std::ops::Range;

/// Bytes of a blob's header.
pub const HEADER: u64 = 40;
/// Payload bytes that share a checksum.
pub const UNIT: u64 = 16 * 1024;
/// Most payload bytes of a blob.
pub const MAX_PAYLOAD: u64 = 8 << 20;

const MAGIC: [u8; 4] = *b"HBlb";
const FORMAT: u8 = 1;
const SUM: u64 = 4;
const CRC_AT: usize = 36;

/// What a blob is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum BlobKind {
    /// Bytes of an object.
    Segment = 1,
    /// A node of a tree.
    Node = 2,
    /// A list of retired blobs.
    List = 3,
}

/// Bytes that a blob of `payload` bytes has in the bucket.
pub fn stored_len(payload: u64) -> u64 {
    HEADER + payload + SUM * payload.div_ceil(UNIT)
}

/// The stored form of a blob. Cost: one pass.
pub fn encode_blob(id: BlobId, kind: BlobKind, payload: &[u8]) -> Bytes {
    let mut draft = BlobDraft::new(id, kind, payload.len() as u64);
    draft.push(payload);
    draft.finish().1
}

/// The first room of a draft, in payload bytes: most that is put is not more.
const ROOM: u64 = 64 << 10;

/// A blob whose payload comes in parts. Each byte is copied once, to where it will be sent from.
#[derive(Debug)]
pub(crate) struct BlobDraft {
    id: BlobId,
    kind: BlobKind,
    /// Most payload bytes that come.
    most: u64,
    len: u64,
    stored: Vec<u8>,
}

impl BlobDraft {
    /// One of at most `most` payload bytes.
    pub(crate) fn new(id: BlobId, kind: BlobKind, most: u64) -> Self {
        let mut stored = Vec::with_capacity(stored_len(most.min(ROOM)) as usize);
        stored.resize(HEADER as usize, 0);
        Self { id, kind, most, len: 0, stored }
    }

    /// Payload bytes so far.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// How many more fit.
    pub(crate) fn room(&self) -> u64 {
        self.most - self.len
    }

    /// Puts bytes behind those before; as many as there is room for come.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let all = stored_len(self.len + bytes.len() as u64) as usize;
        if all > self.stored.capacity() {
            let most = stored_len(self.most) as usize;
            self.stored.reserve_exact(most.max(all) - self.stored.len());
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let left = UNIT - self.len % UNIT;
            let (first, later) = rest.split_at(rest.len().min(left as usize));
            self.stored.extend_from_slice(first);
            self.len += first.len() as u64;
            rest = later;
            if self.len.is_multiple_of(UNIT) {
                self.sum(UNIT);
            }
        }
    }

    /// Ends the last unit, which has `len` bytes.
    fn sum(&mut self, len: u64) {
        let unit = (self.len - 1) / UNIT;
        let bytes = &self.stored[self.stored.len() - len as usize..];
        let sum = unit_sum(self.id, unit, &[bytes]);
        self.stored.extend(sum.to_le_bytes());
    }

    /// The payload bytes so far.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let units = self.stored[HEADER as usize..].chunks((UNIT + SUM) as usize);
        let bytes = units.map(|unit| &unit[..unit.len().min(UNIT as usize)]);
        bytes.collect::<Vec<_>>().concat()
    }

    /// What it is, and its stored form.
    pub(crate) fn finish(mut self) -> (BlobRef, Bytes) {
        if !self.len.is_multiple_of(UNIT) {
            self.sum(self.len % UNIT);
        }
        let header = &mut self.stored[..HEADER as usize];
        header[..4].copy_from_slice(&MAGIC);
        (header[4], header[5]) = (FORMAT, self.kind as u8);
        header[8..24].copy_from_slice(&self.id.operation.0);
        put_u32(header, 24, self.id.number);
        put_u64(header, 28, self.len);
        let sum = crc(&header[..CRC_AT]);
        put_u32(header, CRC_AT, sum);
        (BlobRef { id: self.id, len: self.len }, self.stored.into())
    }
}

fn unit_sum(id: BlobId, unit: u64, bytes: &[&[u8]]) -> u32 {
    let mut place = [0; Id::BYTES + 12];
    place[..Id::BYTES].copy_from_slice(&id.operation.0);
    put_u32(&mut place, Id::BYTES, id.number);
    put_u64(&mut place, Id::BYTES + 4, unit);
    crc_of(&[&[&place[..]], bytes].concat())
}

/// A stretch of a blob that one request reads: whole units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    blob: BlobRef,
    first: u64,
    end: u64,
}

impl Stretch {
    /// The units of `blob` that hold the payload bytes `range`, which lie inside it.
    pub fn around(blob: BlobRef, range: Range<u64>) -> Self {
        let units = blob.len.div_ceil(UNIT);
        let end = range.end.div_ceil(UNIT).min(units);
        Self { blob, first: (range.start / UNIT).min(end), end }
    }

    /// All of a blob.
    pub fn whole(blob: BlobRef) -> Self {
        Self::around(blob, 0..blob.len)
    }

    /// The blob that it is of.
    pub fn blob(&self) -> BlobRef {
        self.blob
    }

    /// The bytes to ask the server for.
    pub fn stored(&self) -> Range<u64> {
        let place = |unit: u64| (HEADER + unit * (UNIT + SUM)).min(stored_len(self.blob.len));
        place(self.first)..place(self.end)
    }

    /// The payload bytes that it holds.
    pub fn payload(&self) -> Range<u64> {
        (self.first * UNIT).min(self.blob.len)..(self.end * UNIT).min(self.blob.len)
    }

    /// Verifies what the server gave, and returns the payload bytes without checksums.
    ///
    /// # Errors
    /// As [`Stretch::append`].
    pub fn verify(&self, stored: &[u8]) -> Result<Vec<u8>> {
        let payload = self.payload();
        let mut out = Vec::with_capacity(stored.len());
        self.append(&[stored], payload, &mut out)?;
        Ok(out)
    }

    /// Appends the payload bytes `range`, which lie in the stretch, to `out`. Each unit that has some of
    /// them is verified while it is at hand for the copy.
    ///
    /// # Errors
    /// [`holdall::Error::Corrupt`] if what the server gave is of another length, or a checksum is
    /// wrong.
    pub fn append<P: AsRef<[u8]>>(
        &self,
        stored: &[P],
        range: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let (asked, place) = (self.stored(), || format!("blob {}", self.blob.id));
        let len: u64 = stored.iter().map(|part| part.as_ref().len() as u64).sum();
        if len != asked.end - asked.start {
            return Err(damaged(&place(), format!("{len} bytes at {asked:?}")));
        }
        let (first, mut rest) = (range.start / UNIT, Rest::of(stored));
        rest.take(((first - self.first) * (UNIT + SUM)) as usize);
        for unit in first..range.end.div_ceil(UNIT) {
            let start = unit * UNIT;
            let holds = (self.blob.len - start).min(UNIT);
            let (bytes, sum) = (rest.take(holds as usize), rest.take(SUM as usize).concat());
            if unit_sum(self.blob.id, unit, &bytes) != u32_at(&sum, 0) {
                return Err(damaged(&place(), format!("unit {unit} has a wrong checksum")));
            }
            let wanted = range.start.max(start) - start..range.end.min(start + holds) - start;
            let mut bytes = Rest::of(&bytes);
            bytes.take(wanted.start as usize);
            let wanted = bytes.take((wanted.end - wanted.start) as usize);
            wanted.into_iter().for_each(|part| out.extend_from_slice(part));
        }
        Ok(())
    }
}

/// The header of a stored blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) blob: BlobRef,
    pub(crate) kind: u8,
}

impl Header {
    /// Reads the header, which says the same as its key and its length.
    ///
    /// # Errors
    /// [`holdall::Error::Corrupt`] if it does not.
    pub(crate) fn read(id: BlobId, stored: &[u8]) -> Result<Self> {
        let place = format!("blob {id}");
        let header = stored.get(..HEADER as usize).ok_or_else(|| damaged(&place, "too short"))?;
        if header[..4] != MAGIC || crc(&header[..CRC_AT]) != u32_at(header, CRC_AT) {
            return Err(damaged(&place, "no header of a blob"));
        }
        if header[4] != FORMAT || header[6..8] != [0; 2] {
            return Err(holdall::Error::Unsupported {
                detail: format!("{place} is of format {}", header[4]),
            });
        }
        let len = u64_at(header, 28);
        let same = header[8..24] == id.operation.0 && u32_at(header, 24) == id.number;
        if !same || len == 0 || len > MAX_PAYLOAD || stored_len(len) != stored.len() as u64 {
            return Err(damaged(&place, "its header is of another blob, or of another length"));
        }
        Ok(Self { blob: BlobRef { id, len }, kind: header[5] })
    }
}

/// The payload of a whole stored blob of this kind. Cost: one pass.
///
/// # Errors
/// [`holdall::Error::Corrupt`] if header, kind, length or a checksum is wrong.
pub fn decode_stored(id: BlobId, kind: BlobKind, stored: &[u8]) -> Result<Vec<u8>> {
    let header = Header::read(id, stored)?;
    if header.kind != kind as u8 {
        return Err(damaged(&format!("blob {id}"), format!("is of kind {}", header.kind)));
    }
    Stretch::whole(header.blob).verify(stored.get(HEADER as usize..).unwrap_or_default())
}
