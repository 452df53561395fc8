//! Bytes of the redo log: blocks, groups, records.
//!
//! Owns: the 4 KiB block with its header, the cutting of a group's payload into blocks, and
//! the records inside a payload (docs/format.md "Log"). Pure; places in the file and syncs
//! are the engine's.
//!
//! Invariants: a group starts on a fresh block; every block names the group before it by
//! checksum, and how far the log was known durable when it was written (rules 1, 4).

use crate::bytes::{Reader, put_u16, put_u32, put_u64, u16_at, u32_at, u64_at};
use crate::{Error, Lsn, PageNo, Result, page};

mod composed;

pub use composed::{MAX_COMPOSED, Part, Parts, most_composed, push_composed};

/// Bytes of a log block.
pub const BLOCK: usize = 4096;
/// Bytes of a block's header.
pub const HEADER: usize = 72;
/// Payload bytes a block can carry.
pub const PAYLOAD: usize = BLOCK - HEADER;
const MAGIC: u32 = u32::from_le_bytes(*b"HDLG");
const FLAG_LAST: u16 = 1;

/// A block's header, apart from magic and checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// The store the block belongs to.
    pub store_id: [u8; 16],
    /// Recovery epoch it was written in.
    pub epoch: u32,
    /// Payload bytes in use.
    pub payload: u16,
    /// Whether this is the last block of its group.
    pub last: bool,
    /// Absolute LSN of the block's first byte.
    pub lsn: Lsn,
    /// LSN of the first block of the group.
    pub group: Lsn,
    /// All groups that end at or before this were durable when the block was written.
    pub durable: Lsn,
    /// Superblock sequence known durable when the block was written.
    pub checkpoint: u64,
    /// Checksum of the group before this one.
    pub previous: u32,
}

impl BlockHeader {
    fn put(&self, b: &mut [u8]) {
        put_u32(b, 4, MAGIC);
        b[8..24].copy_from_slice(&self.store_id);
        put_u32(b, 24, self.epoch);
        put_u16(b, 28, self.payload);
        put_u16(b, 30, if self.last { FLAG_LAST } else { 0 });
        put_u64(b, 32, self.lsn.0);
        put_u64(b, 40, self.group.0);
        put_u64(b, 48, self.durable.0);
        put_u64(b, 56, self.checkpoint);
        put_u32(b, 64, self.previous);
        put_u32(b, 68, 0);
    }

    /// Reads and checks a block: `None` if it is not a valid block of store and epoch.
    pub fn decode(b: &[u8], store_id: &[u8; 16], epoch: u32) -> Option<Self> {
        // Most blocks of a scan are not of this lap, which is seen before the checksum is computed.
        if b.len() != BLOCK || b[8..24] != store_id[..] || u32_at(b, 24) != epoch {
            return None;
        }
        Self::decode_any(b)
    }

    /// Reads and checks a block of any store and epoch.
    pub fn decode_any(b: &[u8]) -> Option<Self> {
        if b.len() != BLOCK
            || u32_at(b, 4) != MAGIC
            || crate::checksum::crc(&b[4..]) != u32_at(b, 0)
        {
            return None;
        }
        let mut store_id = [0; 16];
        store_id.copy_from_slice(&b[8..24]);
        let header = Self {
            store_id,
            epoch: u32_at(b, 24),
            payload: u16_at(b, 28),
            last: u16_at(b, 30) & FLAG_LAST != 0,
            lsn: Lsn(u64_at(b, 32)),
            group: Lsn(u64_at(b, 40)),
            durable: Lsn(u64_at(b, 48)),
            checkpoint: u64_at(b, 56),
            previous: u32_at(b, 64),
        };
        let sane = header.payload as usize <= PAYLOAD
            && header.lsn.0.is_multiple_of(BLOCK as u64)
            && header.group <= header.lsn;
        sane.then_some(header)
    }
}

/// Whether a log may have left these bytes: zeros if nothing was written, else the mark
/// of a block, however torn it is behind its first bytes.
pub fn may_be_block(b: &[u8]) -> bool {
    match b.get(..HEADER) {
        Some(head) => u32_at(head, 4) == MAGIC || head.iter().all(|b| *b == 0),
        None => false,
    }
}

/// Whether these bytes, which are no whole block, begin like one of store `store_id`.
pub fn is_torn_block_of(b: &[u8], store_id: &[u8; 16]) -> bool {
    b.get(..24).is_some_and(|head| u32_at(head, 4) == MAGIC && head[8..24] == store_id[..])
}

/// The payload bytes of a block that [`BlockHeader::decode`] accepted.
pub fn payload<'a>(block: &'a [u8], header: &BlockHeader) -> &'a [u8] {
    block.get(HEADER..HEADER + header.payload as usize).unwrap_or(&[])
}

/// The checksum stored in a block.
pub fn block_sum(block: &[u8]) -> u32 {
    u32_at(block, 0)
}

/// Continues a group's checksum with a block's.
pub fn group_sum(sum: u32, block: &[u8]) -> u32 {
    crate::checksum::crc_append(sum, &block[..4])
}

/// Blocks that a payload of `len` bytes takes.
pub fn blocks_for(len: usize) -> usize {
    len.div_ceil(PAYLOAD).max(1)
}

/// As [`build_group_into`], into fresh memory: the blocks' bytes and the group's checksum.
pub fn build_group(first: &BlockHeader, bytes: &[u8]) -> (Vec<u8>, u32) {
    let mut out = vec![0; blocks_for(bytes.len()) * BLOCK];
    let sum = build_group_into(first, bytes, &mut out);
    (out, sum)
}

/// Cuts a group's payload into blocks; `first` gives the fields common to all. Puts the
/// blocks' bytes into `out`, which has [`blocks_for`] them room, in place of what it held, and
/// returns the group's checksum. Cost: one copy and one CRC of the payload.
pub fn build_group_into(first: &BlockHeader, bytes: &[u8], out: &mut [u8]) -> u32 {
    let count = blocks_for(bytes.len());
    debug_assert_eq!(out.len(), count * BLOCK, "room for the blocks");
    let mut sum = 0;
    for (i, block) in out.chunks_exact_mut(BLOCK).enumerate() {
        let part = &bytes[i * PAYLOAD..bytes.len().min((i + 1) * PAYLOAD)];
        let header = BlockHeader {
            payload: part.len() as u16,
            last: i + 1 == count,
            lsn: Lsn(first.lsn.0 + (i * BLOCK) as u64),
            group: first.lsn,
            ..*first
        };
        header.put(block);
        block[HEADER..HEADER + part.len()].copy_from_slice(part);
        block[HEADER + part.len()..].fill(0);
        let crc = crate::checksum::crc(&block[4..]);
        put_u32(block, 0, crc);
        sum = group_sum(sum, block);
    }
    sum
}

const RECORD_HEADER: usize = 8;
const SKIPPABLE: u8 = 1;

/// A record of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<'a> {
    /// New bytes of a page.
    Page {
        /// The page.
        page: PageNo,
        /// The page starts as zeros: it was allocated by this commit and is not read.
        new: bool,
        /// Checksum of the whole page afterwards, sealed with the commit's LSN.
        checksum: u32,
        /// What changed.
        ranges: Ranges<'a>,
    },
    /// New bytes of a page whose version before lay elsewhere, as an image.
    FromImage {
        /// The page.
        page: PageNo,
        /// Where its image lies; freed by this commit, so that it stays until a checkpoint.
        image: PageNo,
        /// Checksum of the image.
        before: u32,
        /// Checksum of the whole page afterwards, sealed with the commit's LSN.
        checksum: u32,
        /// What changed.
        ranges: Ranges<'a>,
    },
    /// Whole pages of segment data, which are also in place, unsynced.
    Segment {
        /// First page.
        page: PageNo,
        /// The bytes, whole pages.
        bytes: &'a [u8],
    },
    /// Whole pages of segment data, which are also in place, unsynced, put together of new
    /// bytes and of bytes that lie elsewhere in the volume.
    Composed {
        /// First page.
        page: PageNo,
        /// Checksum of all the bytes.
        checksum: u32,
        /// What they are put together of.
        parts: Parts<'a>,
    },
    /// Pages written in place before the group, to be synced together with it. Where the group is
    /// the last one, it counts only if they are there.
    InPlace {
        /// First page.
        page: PageNo,
        /// How many.
        count: u64,
        /// What the checksum is of.
        kind: InPlaceKind,
        /// Continued over checksums (4 bytes, little-endian) in order of place.
        checksum: u32,
    },
    /// The records since the last such record are one commit.
    Commit {
        /// Its LSN.
        lsn: Lsn,
    },
    /// A record this build does not know and may pass over.
    Skipped,
}

/// What the checksum of a [`Record::InPlace`] goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InPlaceKind {
    /// The checksums of units of 4 KiB of segment data.
    Units,
    /// The checksums in the headers of pages.
    Pages,
}

/// Changed ranges of a page: offset u16, length − 1 u16, bytes; repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranges<'a>(&'a [u8]);

impl<'a> Ranges<'a> {
    /// Writes the ranges over `page`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a range does not fit the page; the page is then unusable.
    pub fn apply(&self, page: &mut [u8]) -> Result<()> {
        let mut r = Reader::new(self.0);
        while !r.rest().is_empty() {
            let range = (|| {
                let at = r.u16()? as usize;
                let len = r.u16()? as usize + 1;
                Some((at, r.take(len)?))
            })();
            let target = range.and_then(|(at, b)| Some((page.get_mut(at..at + b.len())?, b)));
            let Some((to, from)) = target else {
                return Err(Error::corrupt("log record", "a changed range does not fit its page"));
            };
            to.copy_from_slice(from);
        }
        Ok(())
    }

    /// The ranges as (offset, bytes), for inspection; stops at the first malformed one.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a> {
        let mut r = Reader::new(self.0);
        std::iter::from_fn(move || {
            let at = r.u16()? as usize;
            let len = r.u16()? as usize + 1;
            Some((at, r.take(len)?))
        })
    }
}

const PAGE_DIFF: u8 = 1;
const PAGE_NEW: u8 = 2;
const SEGMENT: u8 = 3;
const COMMIT: u8 = 4;
const COMPOSED: u8 = 5;
const IN_PLACE_UNITS: u8 = 6;
const IN_PLACE_PAGES: u8 = 7;
const FROM_IMAGE: u8 = 8;
/// Bytes of a record pushed by [`push_in_place`].
pub const IN_PLACE_RECORD_BYTES: usize = RECORD_HEADER + 20;

fn record_header(out: &mut Vec<u8>, kind: u8, len: usize) {
    out.extend_from_slice(&[kind, 0, 0, 0]);
    out.extend_from_slice(&(len as u32).to_le_bytes());
}

/// Appends a page record: what differs between `old` (zeros if `None`) and `new`, a page
/// already sealed. Returns where its checksum lies. Cost: one pass over the page.
pub fn push_page(out: &mut Vec<u8>, number: PageNo, old: Option<&[u8]>, new: &[u8]) -> usize {
    let kind = if old.is_some() { PAGE_DIFF } else { PAGE_NEW };
    let start = out.len();
    record_header(out, kind, 0);
    out.extend_from_slice(&number.0.to_le_bytes());
    let checksum_at = out.len();
    out.extend_from_slice(&page::stored_checksum(new).to_le_bytes());
    for (from, to) in page::LOGGED {
        push_ranges(out, old, new, from, to.unwrap_or(new.len()));
    }
    let len = (out.len() - start - RECORD_HEADER) as u32;
    put_u32(out, start + 4, len);
    checksum_at
}

/// Appends the record of a page whose version before, `old`, lies at `image`: what differs, and
/// where replay begins. Returns where the checksum goes that the page has once it is sealed.
/// Cost: one pass over the page.
pub fn push_from_image(
    out: &mut Vec<u8>,
    number: PageNo,
    (image, old): (PageNo, &[u8]),
    new: &[u8],
) -> usize {
    let start = out.len();
    record_header(out, FROM_IMAGE, 0);
    out.extend_from_slice(&number.0.to_le_bytes());
    out.extend_from_slice(&image.0.to_le_bytes());
    out.extend_from_slice(&page::stored_checksum(old).to_le_bytes());
    let checksum_at = out.len();
    out.extend_from_slice(&page::stored_checksum(new).to_le_bytes());
    for (from, to) in page::LOGGED {
        push_ranges(out, Some(old), new, from, to.unwrap_or(new.len()));
    }
    let len = (out.len() - start - RECORD_HEADER) as u32;
    put_u32(out, start + 4, len);
    checksum_at
}

/// Differences closer than this are logged as one range: a range costs 4 bytes.
const JOIN: usize = 8;
/// Equal stretches are skipped in steps of these sizes: long ones by one comparison each.
const STEPS: [usize; 3] = [2048, 256, 32];
static ZEROS: [u8; page::MAX_PAGE_SIZE] = [0; page::MAX_PAGE_SIZE];

fn push_ranges(out: &mut Vec<u8>, old: Option<&[u8]>, new: &[u8], from: usize, to: usize) {
    let old = old.unwrap_or(&ZEROS[..new.len()]);
    let mut at = from;
    while let Some(start) = first_difference(old, new, at, to) {
        let end = end_of_difference(&old[start..to], &new[start..to]) + start;
        out.extend_from_slice(&(start as u16).to_le_bytes());
        out.extend_from_slice(&((end - start - 1) as u16).to_le_bytes());
        out.extend_from_slice(&new[start..end]);
        at = end;
    }
}

fn first_difference(old: &[u8], new: &[u8], mut at: usize, to: usize) -> Option<usize> {
    for step in STEPS {
        while at + step <= to && old[at..at + step] == new[at..at + step] {
            at += step;
        }
    }
    for (a, b) in words(&old[at..to], &new[at..to]) {
        if a != b {
            return Some(at + (a ^ b).trailing_zeros() as usize / 8);
        }
        at += JOIN;
    }
    (at..to).find(|&i| old[i] != new[i])
}

/// Where a difference that begins at 0 ends: behind its last byte before equal bytes.
fn end_of_difference(old: &[u8], new: &[u8]) -> usize {
    let skipped = different_halves(old, new);
    // Nothing is skipped of which the last byte may be equal, but for these four.
    let (mut end, mut at) = (0, 0);
    if skipped > 0 {
        at = skipped;
        let last = skipped - HALF..skipped;
        let equal = last.clone().rev().take_while(|&i| old[i] == new[i]).count();
        end = skipped - equal;
    }
    for (a, b) in words(&old[skipped..], &new[skipped..]) {
        // Equal bytes since the last difference, up to the first one in this word.
        let same = at - end + (a ^ b).trailing_zeros() as usize / 8;
        if same >= JOIN {
            return end;
        }
        at += JOIN;
        end = at - (a ^ b).leading_zeros() as usize / 8;
    }
    while at < new.len() && at - end < JOIN {
        if old[at] != new[at] {
            end = at + 1;
        }
        at += 1;
    }
    end
}

/// Bytes in which equal ones are looked for at once: some are in every equal stretch of
/// [`JOIN`] bytes, wherever it begins.
const HALF: usize = JOIN / 2;

/// Bytes from the start on in which no stretch of [`JOIN`] equal bytes ends: as long as every
/// half word has a difference. Content written anew mostly has one in all.
fn different_halves(old: &[u8], new: &[u8]) -> usize {
    const STEP: usize = 8 * HALF;
    let (a, b) = (old.as_chunks::<STEP>().0, new.as_chunks::<STEP>().0);
    let all_differ = |(a, b): &(&[u8; STEP], &[u8; STEP])| {
        let halves = a.as_chunks::<HALF>().0.iter().zip(b.as_chunks::<HALF>().0);
        halves.fold(true, |all, (a, b)| all & (u32::from_le_bytes(*a) != u32::from_le_bytes(*b)))
    };
    a.iter().zip(b).take_while(all_differ).count() * STEP
}

/// The bytes of both in words, without the last ones that fill none.
fn words<'a>(old: &'a [u8], new: &'a [u8]) -> impl Iterator<Item = (u64, u64)> + use<'a> {
    let (old, new) = (old.as_chunks::<JOIN>().0, new.as_chunks::<JOIN>().0);
    old.iter().zip(new).map(|(a, b)| (u64::from_le_bytes(*a), u64::from_le_bytes(*b)))
}

/// Appends a segment record: `bytes` are whole pages from `page` on.
pub fn push_segment(out: &mut Vec<u8>, page: PageNo, bytes: &[u8]) {
    record_header(out, SEGMENT, 8 + bytes.len());
    out.extend_from_slice(&page.0.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a record of `count` pages from `page` on that lie in place, unsynced.
pub fn push_in_place(
    out: &mut Vec<u8>,
    page: PageNo,
    count: u64,
    kind: InPlaceKind,
    checksum: u32,
) {
    let kind = match kind {
        InPlaceKind::Units => IN_PLACE_UNITS,
        InPlaceKind::Pages => IN_PLACE_PAGES,
    };
    record_header(out, kind, IN_PLACE_RECORD_BYTES - RECORD_HEADER);
    out.extend_from_slice(&page.0.to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&checksum.to_le_bytes());
}

/// Appends the record that ends a commit.
pub fn push_commit(out: &mut Vec<u8>, lsn: Lsn) {
    record_header(out, COMMIT, 8);
    out.extend_from_slice(&lsn.0.to_le_bytes());
}

/// Takes the next record off a payload; `None` at its end.
///
/// # Errors
/// [`Error::Corrupt`] if the bytes are no record, [`Error::Unsupported`] for an unknown
/// record that may not be skipped.
pub fn next_record<'a>(r: &mut Reader<'a>) -> Result<Option<Record<'a>>> {
    if r.rest().is_empty() {
        return Ok(None);
    }
    let torn = || Error::corrupt("log record", "ends before its length");
    let kind = r.u8().ok_or_else(torn)?;
    let flags = r.u8().ok_or_else(torn)?;
    r.u16().ok_or_else(torn)?;
    let len = r.u32().ok_or_else(torn)? as usize;
    let mut body = Reader::new(r.take(len).ok_or_else(torn)?);
    let record = match kind {
        PAGE_DIFF | PAGE_NEW => Record::Page {
            page: PageNo(body.u64().ok_or_else(torn)?),
            new: kind == PAGE_NEW,
            checksum: body.u32().ok_or_else(torn)?,
            ranges: Ranges(body.rest()),
        },
        FROM_IMAGE => Record::FromImage {
            page: PageNo(body.u64().ok_or_else(torn)?),
            image: PageNo(body.u64().ok_or_else(torn)?),
            before: body.u32().ok_or_else(torn)?,
            checksum: body.u32().ok_or_else(torn)?,
            ranges: Ranges(body.rest()),
        },
        SEGMENT => {
            Record::Segment { page: PageNo(body.u64().ok_or_else(torn)?), bytes: body.rest() }
        }
        COMPOSED => Record::Composed {
            page: PageNo(body.u64().ok_or_else(torn)?),
            checksum: body.u32().ok_or_else(torn)?,
            parts: Parts::new(body.rest()),
        },
        IN_PLACE_UNITS | IN_PLACE_PAGES => Record::InPlace {
            page: PageNo(body.u64().ok_or_else(torn)?),
            count: body.u64().ok_or_else(torn)?,
            kind: if kind == IN_PLACE_UNITS { InPlaceKind::Units } else { InPlaceKind::Pages },
            checksum: body.u32().ok_or_else(torn)?,
        },
        COMMIT => Record::Commit { lsn: Lsn(body.u64().ok_or_else(torn)?) },
        _ if flags & SKIPPABLE != 0 => Record::Skipped,
        _ => {
            return Err(Error::Unsupported {
                detail: format!("the log holds a record of unknown type {kind}"),
            });
        }
    };
    Ok(Some(record))
}

#[cfg(test)]
mod tests;
