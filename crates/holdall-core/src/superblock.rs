//! The superblock: the only thing at a fixed place, twice.
//!
//! Owns: the 4 KiB slots at byte 0 and byte 65,536 (docs/format.md "Superblock"). The valid
//! slot with the higher sequence number counts. Pure: reading, checking, writing bytes.

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::mark::Mark;
use crate::space_dir::SpaceLayout;
use crate::{Error, Lsn, PageNo, Result, page};

/// Bytes of a slot.
pub const SLOT_BYTES: usize = 4096;
/// Byte addresses of the two slots: separate 64 KiB units, independent of the page size.
pub const SLOT_AT: [u64; 2] = [0, 65536];
/// First bytes of every store.
pub const MAGIC: [u8; 8] = *b"HOLDALL\n";
/// The format version this build writes.
pub const VERSION: u32 = 4;
/// The oldest that it reads: those before came before the first release.
pub const OLDEST: u32 = 3;
/// Incompatible features this build knows.
pub const KNOWN_INCOMPATIBLE: u64 = 0;
/// Read-only-compatible features this build knows.
pub const KNOWN_READ_ONLY: u64 = FEATURE_MARKS;
/// Feature: the root page has marks of backups, and directories note changes in place since.
const FEATURE_MARKS: u64 = 1;
/// Checksum kind 1: CRC-32C.
pub const CHECKSUM_CRC32C: u8 = 1;

/// LSNs and counters beyond this are impossible: they only grow, and would need centuries.
const MAX_COUNT: u64 = 1 << 62;

const CRC: usize = 8;
const BODY: usize = 12;
const AT_VERSION: usize = 12;
const COMPATIBLE: usize = 16;
const READ_ONLY: usize = 24;
const INCOMPATIBLE: usize = 32;
const STORE_ID: usize = 40;
const INCARNATION: usize = 56;
const EPOCH: usize = 64;
const CHECKSUM_KIND: usize = 68;
const PAGE_SIZE: usize = 72;
const SPACE_PAGES: usize = 76;
const SEQUENCE: usize = 80;
const REPLAY: usize = 88;
const IN_PLACE: usize = 96;
const LOG_BYTES: usize = 104;
const FLAGS: usize = 112;
const UNIQUE: usize = 120;
const VOLUME_PAGES: usize = 128;
const SPACES: usize = 136;
const STAMP: usize = 144;
const ROOTS: usize = 208;
const ROOT_COUNT: usize = 8;
const ROOT_BYTES: usize = 16;
const FLAG_LOG_REQUIRED: u32 = 1;
const FLAG_HOLES: u32 = 2;
const ROOT_PAGE: u32 = 1;

const _: () = assert!(ROOTS + ROOT_COUNT * ROOT_BYTES <= SLOT_BYTES);

/// What a backup's file says it is a backup of. The first write of the store takes it away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The mark that the store was given for it.
    pub mark: Mark,
    /// Milliseconds since 1970 UTC when it was taken.
    pub time: u64,
}

/// What a superblock says. Field meanings and widths: docs/format.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Drawn at creation; also in every log block.
    pub store_id: [u8; 16],
    /// Raised when a store is restored from a copy.
    pub incarnation: u64,
    /// Raised by every recovery.
    pub epoch: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages of a buddy space.
    pub space_pages: u32,
    /// Counts superblock writes; the higher valid slot counts.
    pub sequence: u64,
    /// Where replay begins: all before it is in place. A multiple of the log block size.
    pub replay: Lsn,
    /// No page in place is newer than this.
    pub in_place: Lsn,
    /// Size of the circular log in bytes.
    pub log_bytes: u64,
    /// The log file must exist: without it committed data would be missing.
    pub log_required: bool,
    /// Free runs may be holes of the file: they need blocks before they are used (rule 29).
    pub holes: bool,
    /// Every `unique` number below this may have been given out.
    pub unique_ceiling: u64,
    /// Pages the volume must have at least.
    pub volume_pages: u64,
    /// Buddy spaces in use.
    pub spaces: u32,
    /// Page of kind Root.
    pub root: PageNo,
    /// The root page may have marks of backups.
    pub marks: bool,
    /// The file is a backup, as it was written.
    pub stamp: Option<Stamp>,
}

impl Superblock {
    /// The slot that sequence number `sequence` goes to.
    pub fn slot_of(sequence: u64) -> usize {
        (sequence % 2) as usize
    }

    /// The slot's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut b = vec![0; SLOT_BYTES];
        b[..8].copy_from_slice(&MAGIC);
        put_u32(&mut b, AT_VERSION, VERSION);
        put_u64(&mut b, READ_ONLY, if self.marks { FEATURE_MARKS } else { 0 });
        b[STORE_ID..STORE_ID + 16].copy_from_slice(&self.store_id);
        put_u64(&mut b, INCARNATION, self.incarnation);
        put_u32(&mut b, EPOCH, self.epoch);
        b[CHECKSUM_KIND] = CHECKSUM_CRC32C;
        put_u32(&mut b, PAGE_SIZE, self.page_size);
        put_u32(&mut b, SPACE_PAGES, self.space_pages);
        put_u64(&mut b, SEQUENCE, self.sequence);
        put_u64(&mut b, REPLAY, self.replay.0);
        put_u64(&mut b, IN_PLACE, self.in_place.0);
        put_u64(&mut b, LOG_BYTES, self.log_bytes);
        let required = if self.log_required { FLAG_LOG_REQUIRED } else { 0 };
        put_u32(&mut b, FLAGS, required | if self.holes { FLAG_HOLES } else { 0 });
        put_u64(&mut b, UNIQUE, self.unique_ceiling);
        put_u64(&mut b, VOLUME_PAGES, self.volume_pages);
        put_u32(&mut b, SPACES, self.spaces);
        if let Some(Stamp { mark, time }) = &self.stamp {
            mark.encode(&mut b[STAMP..STAMP + Mark::BYTES]);
            put_u64(&mut b, STAMP + Mark::BYTES, *time);
        }
        put_u32(&mut b, ROOTS, ROOT_PAGE);
        put_u64(&mut b, ROOTS + 8, self.root.0);
        let crc = crate::checksum::crc(&b[BODY..]);
        put_u32(&mut b, CRC, crc);
        b
    }

    /// Reads one slot: `Ok(None)` if it holds no valid superblock.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if a valid slot needs a newer build, [`Error::Corrupt`]
    /// if a valid checksum covers impossible values.
    pub fn decode(b: &[u8]) -> Result<Option<Self>> {
        if b.len() < SLOT_BYTES || b[..8] != MAGIC {
            return Ok(None);
        }
        let b = &b[..SLOT_BYTES];
        if crate::checksum::crc(&b[BODY..]) != u32_at(b, CRC) {
            return Ok(None);
        }
        Self::refuse_unknown(b)?;
        let mut store_id = [0; 16];
        store_id.copy_from_slice(&b[STORE_ID..STORE_ID + 16]);
        let sb = Self {
            store_id,
            incarnation: u64_at(b, INCARNATION),
            epoch: u32_at(b, EPOCH),
            page_size: u32_at(b, PAGE_SIZE),
            space_pages: u32_at(b, SPACE_PAGES),
            sequence: u64_at(b, SEQUENCE),
            replay: Lsn(u64_at(b, REPLAY)),
            in_place: Lsn(u64_at(b, IN_PLACE)),
            log_bytes: u64_at(b, LOG_BYTES),
            log_required: u32_at(b, FLAGS) & FLAG_LOG_REQUIRED != 0,
            holes: u32_at(b, FLAGS) & FLAG_HOLES != 0,
            unique_ceiling: u64_at(b, UNIQUE),
            volume_pages: u64_at(b, VOLUME_PAGES),
            spaces: u32_at(b, SPACES),
            root: PageNo(u64_at(b, ROOTS + 8)),
            marks: u64_at(b, READ_ONLY) & FEATURE_MARKS != 0,
            stamp: Mark::decode(&b[STAMP..STAMP + Mark::BYTES])
                .map(|mark| Stamp { mark, time: u64_at(b, STAMP + Mark::BYTES) }),
        };
        sb.check()?;
        Ok(Some(sb))
    }

    fn refuse_unknown(b: &[u8]) -> Result<()> {
        let version = u32_at(b, AT_VERSION);
        if !(OLDEST..=VERSION).contains(&version) {
            let detail = match version > VERSION {
                true => {
                    format!("the store has format version {version}, this build knows {VERSION}")
                }
                false => format!(
                    "the store has format version {version}, of before the first release; export \
                     it with the build that made it"
                ),
            };
            return Err(Error::Unsupported { detail });
        }
        let incompatible = u64_at(b, INCOMPATIBLE) & !KNOWN_INCOMPATIBLE;
        if incompatible != 0 || b[CHECKSUM_KIND] != CHECKSUM_CRC32C {
            let sum = b[CHECKSUM_KIND];
            let detail = format!("the store uses features {incompatible:#x}, checksum kind {sum}");
            return Err(Error::Unsupported { detail });
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let bad = |what: &str| Err(Error::corrupt("superblock", what));
        if !page::valid_page_size(self.page_size as usize) {
            return bad("impossible page size");
        }
        if SpaceLayout::new(self.page_size as usize, self.space_pages).is_err() {
            return bad("impossible space size");
        }
        if !self.log_bytes.is_multiple_of(crate::log_format::BLOCK as u64)
            || !self.replay.0.is_multiple_of(crate::log_format::BLOCK as u64)
            || self.log_bytes < 2 * crate::log_format::BLOCK as u64
            || self.log_bytes > 1 << 40
            || self.replay.0.max(self.in_place.0) > MAX_COUNT
        {
            return bad("impossible log geometry");
        }
        if self.sequence.max(self.unique_ceiling) > MAX_COUNT || self.epoch == u32::MAX {
            return bad("impossible counters");
        }
        // Far above what a life can reach, so that counting on cannot overflow.
        let most = 1 << 62;
        if self.replay.0 > most || self.in_place.0 > most || self.sequence > most {
            return bad("impossible LSN or sequence number");
        }
        if self.epoch > u32::MAX - 2 || self.unique_ceiling > most || self.unique_ceiling == 0 {
            return bad("impossible epoch or unique number");
        }
        if self.volume_pages > PageNo::MAX.0 || self.root.0 >= self.volume_pages {
            return bad("impossible volume length or root");
        }
        Ok(())
    }

    /// Whether the slot asks for a feature that this build may read but not write.
    pub fn read_only_features(b: &[u8]) -> bool {
        b.len() >= SLOT_BYTES && u64_at(b, READ_ONLY) & !KNOWN_READ_ONLY != 0
    }

    /// Compatible features set in the slot; unknown ones are kept out of the way.
    pub fn compatible_features(b: &[u8]) -> u64 {
        if b.len() >= SLOT_BYTES { u64_at(b, COMPATIBLE) } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Superblock {
        Superblock {
            store_id: [7; 16],
            incarnation: 1,
            epoch: 3,
            page_size: 8192,
            space_pages: 32768,
            sequence: 41,
            replay: Lsn(8192),
            in_place: Lsn(8000),
            log_bytes: 1 << 20,
            log_required: true,
            holes: true,
            unique_ceiling: 99,
            volume_pages: 20,
            spaces: 1,
            root: PageNo(4),
            marks: true,
            stamp: Some(Stamp { mark: Mark { id: [5; 16], lsn: Lsn(77) }, time: 1 }),
        }
    }

    #[test]
    fn round_trip_and_every_flipped_byte_is_found() {
        let sb = sample();
        let mut bytes = sb.encode();
        assert_eq!(Superblock::decode(&bytes).unwrap(), Some(sb));
        for i in 0..SLOT_BYTES {
            bytes[i] ^= 1;
            assert_eq!(Superblock::decode(&bytes).unwrap(), None, "byte {i}");
            bytes[i] ^= 1;
        }
    }

    #[test]
    fn other_versions_are_refused_by_name() {
        let mut bytes = sample().encode();
        for version in [VERSION + 1, OLDEST - 1, 0] {
            put_u32(&mut bytes, AT_VERSION, version);
            let crc = crate::checksum::crc(&bytes[BODY..]);
            put_u32(&mut bytes, CRC, crc);
            assert!(matches!(Superblock::decode(&bytes), Err(Error::Unsupported { .. })));
        }
    }
}
