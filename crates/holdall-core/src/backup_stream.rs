//! Backups as a stream: the frames that they are made of.
//!
//! Owns: the bytes of a stream (docs/format.md "Backup stream"): a head, frames of pages, an end that
//! holds the superblock of the state. Of two frames with one page the later counts. Pure.

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::checksum::crc;
use crate::mark::Mark;
use crate::superblock::{SLOT_BYTES, Superblock};
use crate::{Error, Lsn, PageNo, Result, page};

/// First bytes of a stream.
pub const MAGIC: [u8; 8] = *b"HOLDBAK\n";
/// The version of the format.
const VERSION: u32 = 1;
/// Bytes of the head.
pub const HEAD_BYTES: usize = 96;
/// Bytes before the pages of a frame.
pub const FRAME_BYTES: usize = 32;
/// Most bytes of pages in a frame.
pub const MOST_BYTES: usize = 1 << 20;

const PAGES: u8 = 1;
const END: u8 = 2;

/// What a stream begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The store it is of.
    pub store_id: [u8; 16],
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages of a space.
    pub space_pages: u32,
    /// The mark whose state it builds on; `None`: it has all pages.
    pub base: Option<Mark>,
    /// The mark that the store was given for it; `None`: nothing can build on it.
    pub mark: Option<Mark>,
    /// Milliseconds since 1970 UTC when it was taken.
    pub time: u64,
}

impl Head {
    /// Its bytes.
    pub fn encode(&self) -> [u8; HEAD_BYTES] {
        let mut b = [0; HEAD_BYTES];
        b[..8].copy_from_slice(&MAGIC);
        put_u32(&mut b, 8, VERSION);
        put_u32(&mut b, 12, self.page_size);
        put_u32(&mut b, 16, self.space_pages);
        b[20..36].copy_from_slice(&self.store_id);
        for (at, mark) in [(36, self.base), (60, self.mark)] {
            if let Some(mark) = mark {
                mark.encode(&mut b[at..]);
            }
        }
        put_u64(&mut b, 84, self.time);
        let sum = crc(&b[..92]);
        put_u32(&mut b, 92, sum);
        b
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is none; [`Error::Unsupported`] for another version;
    /// [`Error::Corrupt`].
    pub fn decode(b: &[u8; HEAD_BYTES]) -> Result<Self> {
        if b[..8] != MAGIC {
            return Err(Error::Invalid("it does not begin as a backup".into()));
        }
        let bad = |what: &str| Err(Error::corrupt("head of the backup", what));
        if crc(&b[..92]) != u32_at(b, 92) {
            return bad("its checksum is wrong");
        }
        let version = u32_at(b, 8);
        if version != VERSION {
            let detail = format!("the backup has version {version}, this build knows {VERSION}");
            return Err(Error::Unsupported { detail });
        }
        let mut store_id = [0; 16];
        store_id.copy_from_slice(&b[20..36]);
        let head = Self {
            store_id,
            page_size: u32_at(b, 12),
            space_pages: u32_at(b, 16),
            base: Mark::decode(&b[36..60]),
            mark: Mark::decode(&b[60..84]),
            time: u64_at(b, 84),
        };
        if !page::valid_page_size(head.page_size as usize) {
            return bad("impossible page size");
        }
        Ok(head)
    }
}

/// What a frame announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Pages, from the first on.
    Pages {
        /// The first.
        first: PageNo,
        /// Their number.
        count: u32,
        /// CRC-32C of their bytes.
        sum: u32,
    },
    /// The end: a superblock follows.
    End {
        /// Pages of all frames.
        pages: u64,
        /// CRC-32C of the superblock.
        sum: u32,
    },
}

impl Frame {
    /// A frame of these pages, which follow it.
    pub fn of_pages(first: PageNo, bytes: &[u8], page_size: usize) -> Self {
        Self::Pages { first, count: (bytes.len() / page_size) as u32, sum: crc(bytes) }
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; FRAME_BYTES] {
        let mut b = [0; FRAME_BYTES];
        let (kind, number, count, sum) = match *self {
            Self::Pages { first, count, sum } => (PAGES, first.0, count, sum),
            Self::End { pages, sum } => (END, pages, 0, sum),
        };
        b[0] = kind;
        put_u32(&mut b, 4, count);
        put_u64(&mut b, 8, number);
        put_u32(&mut b, 16, sum);
        let own = crc(&b[..28]);
        put_u32(&mut b, 28, own);
        b
    }

    /// Reads one, of a stream of pages of `page_size` bytes.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn decode(b: &[u8; FRAME_BYTES], page_size: usize) -> Result<Self> {
        let bad = |what: &str| Err(Error::corrupt("frame of the backup", what));
        if crc(&b[..28]) != u32_at(b, 28) {
            return bad("its checksum is wrong");
        }
        let (count, number, sum) = (u32_at(b, 4), u64_at(b, 8), u32_at(b, 16));
        match b[0] {
            PAGES if count == 0 || count as usize > MOST_BYTES / page_size => {
                bad("impossible number of pages")
            }
            PAGES if number > PageNo::MAX.0 - u64::from(count) => bad("impossible page number"),
            PAGES => Ok(Self::Pages { first: PageNo(number), count, sum }),
            END => Ok(Self::End { pages: number, sum }),
            kind => bad(&format!("unknown kind {kind}")),
        }
    }

    /// Bytes that follow it.
    pub fn body_bytes(&self, page_size: usize) -> usize {
        match self {
            Self::Pages { count, .. } => *count as usize * page_size,
            Self::End { .. } => SLOT_BYTES,
        }
    }

    /// Holds what follows it against its checksum.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn check(&self, body: &[u8]) -> Result<()> {
        let (sum, place) = match self {
            Self::Pages { first, sum, .. } => (*sum, format!("pages from {first} of the backup")),
            Self::End { sum, .. } => (*sum, "end of the backup".to_owned()),
        };
        let found = crc(body);
        if found == sum {
            return Ok(());
        }
        Err(Error::corrupt(place, format!("checksum is {found:08x}, stored {sum:08x}")))
    }
}

/// Reads the superblock that follows the end, and holds it against the head.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Unsupported`].
pub fn superblock(head: &Head, body: &[u8]) -> Result<Superblock> {
    let bad = |what: &str| Error::corrupt("end of the backup", what);
    let sb = Superblock::decode(body)?.ok_or_else(|| bad("holds no superblock"))?;
    let same = sb.store_id == head.store_id
        && (sb.page_size, sb.space_pages) == (head.page_size, head.space_pages)
        && sb.stamp.map(|stamp| stamp.mark) == head.mark;
    if same { Ok(sb) } else { Err(bad("is of another backup than its head")) }
}

/// Whether a page changed since the state at `since`.
pub fn is_newer(page: &[u8], since: Option<Lsn>) -> bool {
    since.is_none_or(|since| page::lsn(page) > since)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let mark = |n| Mark { id: [n; 16], lsn: Lsn(u64::from(n) << 12) };
        Head {
            store_id: [9; 16],
            page_size: 8192,
            space_pages: 64,
            base: Some(mark(1)),
            mark: Some(mark(2)),
            time: 5,
        }
    }

    #[test]
    fn every_flipped_byte_is_found() {
        let bytes = head().encode();
        assert_eq!(Head::decode(&bytes).unwrap(), head());
        for at in 0..HEAD_BYTES {
            let mut other = bytes;
            other[at] ^= 4;
            assert!(Head::decode(&other).is_err(), "byte {at}");
        }
        let pages = vec![3; 2 * 8192];
        let frames = [Frame::of_pages(PageNo(7), &pages, 8192), Frame::End { pages: 2, sum: 1 }];
        for frame in frames {
            let bytes = frame.encode();
            assert_eq!(Frame::decode(&bytes, 8192).unwrap(), frame);
            for at in 0..FRAME_BYTES {
                let mut other = bytes;
                other[at] ^= 4;
                assert!(Frame::decode(&other, 8192).is_err(), "byte {at}");
            }
        }
        assert!(frames[0].check(&pages).is_ok() && frames[0].check(&pages[1..]).is_err());
    }
}
