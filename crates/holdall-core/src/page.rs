//! The page header, common to every page of the volume but the superblocks and raw
//! segment pages.
//!
//! Owns: bytes 0..32 of a page (docs/format.md "Page header"): checksum, kind, format,
//! address, LSN, owner. Pure; a page that fails [`check`] is never looked into.

use crate::{Error, Lsn, PageNo, Result};

/// Bytes of the header; a page's body starts here.
pub const HEADER: usize = 32;
/// Smallest page size in bytes.
pub const MIN_PAGE_SIZE: usize = 4096;
/// Largest page size in bytes.
pub const MAX_PAGE_SIZE: usize = 65536;

const CHECKSUM: usize = 0;
const KIND: usize = 4;
const FORMAT: usize = 5;
const ADDRESS: usize = 8;
const LSN: usize = 16;
const OWNER: usize = 24;

/// What a page holds. The number is on disk and never reused for another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum PageKind {
    /// Directory of a buddy space: bitmap and stretches.
    SpaceDir = 1,
    /// Checksums and owners of a stretch of segment pages.
    SpaceInfo = 2,
    /// The root page: where everything else is found, apart from the spaces.
    Root = 3,
    /// A collection's own page: roots, counters, options.
    Collection = 4,
    /// Node of a page map (logical index to page).
    PageMap = 5,
    /// Handles: OID slot to record.
    Handle = 6,
    /// Slotted heap page of records.
    Heap = 7,
    /// Node of a names B+-tree.
    Names = 8,
    /// Node of a large object's positional tree.
    SegmentNode = 9,
    /// Node of the tree of images.
    Images = 10,
}

impl PageKind {
    /// All kinds; number n stands at place n - 1. What is to hold for each kind goes through these.
    pub const ALL: [Self; 10] = [
        Self::SpaceDir,
        Self::SpaceInfo,
        Self::Root,
        Self::Collection,
        Self::PageMap,
        Self::Handle,
        Self::Heap,
        Self::Names,
        Self::SegmentNode,
        Self::Images,
    ];

    /// Whether a version of such a page may lie elsewhere, found through the tree of images:
    /// of all but what leads to that tree and what says which pages are free.
    pub fn may_lie_elsewhere(self) -> bool {
        !matches!(self, Self::Root | Self::SpaceDir | Self::Images)
    }

    /// The kind with this number, if any.
    pub fn from_u8(n: u8) -> Option<Self> {
        Self::ALL.get(usize::from(n).checked_sub(1)?).copied()
    }
}

/// The format number written into a page of any kind today.
pub const FORMAT_NOW: u8 = 1;

/// Whether `n` can be a page size.
pub fn valid_page_size(n: usize) -> bool {
    n.is_power_of_two() && (MIN_PAGE_SIZE..=MAX_PAGE_SIZE).contains(&n)
}

/// Makes `page` an empty page: zeros, then kind, format, address and owner.
pub fn format(page: &mut [u8], kind: PageKind, address: PageNo, owner: u64) {
    page.fill(0);
    head(page, kind, address, owner);
}

/// As [`format()`], for a page that is zeros already.
pub fn head(page: &mut [u8], kind: PageKind, address: PageNo, owner: u64) {
    page[KIND] = kind as u8;
    page[FORMAT] = FORMAT_NOW;
    page[ADDRESS..ADDRESS + 8].copy_from_slice(&address.0.to_le_bytes());
    page[OWNER..OWNER + 8].copy_from_slice(&owner.to_le_bytes());
}

/// The page's kind, if known.
#[inline]
pub fn kind(page: &[u8]) -> Option<PageKind> {
    page.get(KIND).copied().and_then(PageKind::from_u8)
}

/// Checks that a page, found sound when it was read, is of kind `kind`.
///
/// # Errors
/// [`Error::Corrupt`] if it is of another.
#[inline]
pub fn of_kind(page: &[u8], address: PageNo, wanted: PageKind) -> Result<()> {
    if page.get(KIND) == Some(&(wanted as u8)) {
        return Ok(());
    }
    let found = kind(page);
    Err(Error::page(address, format!("is a page of kind {found:?}, not {wanted:?}")))
}

/// The page's owner: what it means depends on the kind.
#[inline]
pub fn owner(page: &[u8]) -> u64 {
    crate::bytes::u64_at(page, OWNER)
}

/// Sets the page's owner.
pub fn set_owner(page: &mut [u8], owner: u64) {
    page[OWNER..OWNER + 8].copy_from_slice(&owner.to_le_bytes());
}

/// The page's own number.
#[inline]
pub fn address(page: &[u8]) -> PageNo {
    PageNo(crate::bytes::u64_at(page, ADDRESS))
}

/// The commit that made this version of the page.
#[inline]
pub fn lsn(page: &[u8]) -> Lsn {
    Lsn(crate::bytes::u64_at(page, LSN))
}

/// The checksum stored in the page.
pub fn stored_checksum(page: &[u8]) -> u32 {
    crate::bytes::u32_at(page, CHECKSUM)
}

/// Stamps LSN and checksum; the page is then as it goes to disk. Returns the checksum.
/// Cost: one CRC-32C over the page.
pub fn seal(page: &mut [u8], lsn: Lsn) -> u32 {
    page[LSN..LSN + 8].copy_from_slice(&lsn.0.to_le_bytes());
    let sum = crate::checksum::crc(&page[KIND..]);
    page[CHECKSUM..CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
    sum
}

/// Turns the checksum of a sealed page over, so that nobody takes it for the page; a second time,
/// back.
pub fn mask(page: &mut [u8]) {
    page[CHECKSUM..CHECKSUM + 4].iter_mut().for_each(|byte| *byte = !*byte);
}

/// Checks a page read from `address`: checksum, then address, kind and format.
///
/// # Errors
/// [`Error::Corrupt`] naming the page, [`Error::Unsupported`] for a newer format.
pub fn check(page: &[u8], address: PageNo) -> Result<PageKind> {
    let (stored, real) = (stored_checksum(page), crate::checksum::crc(&page[KIND..]));
    if stored != real {
        let detail = format!("checksum is {real:08x}, stored {stored:08x}");
        return Err(Error::page(address, detail));
    }
    let own = crate::bytes::u64_at(page, ADDRESS);
    if own != address.0 {
        return Err(Error::page(address, format!("holds page {own}: written to a wrong place")));
    }
    let Some(kind) = kind(page) else {
        return Err(Error::page(address, format!("unknown page kind {}", page[KIND])));
    };
    if page[FORMAT] > FORMAT_NOW {
        let detail = format!("page {address} has format {}, newest known 1", page[FORMAT]);
        return Err(Error::Unsupported { detail });
    }
    Ok(kind)
}

/// The byte ranges that a difference between two versions may name: all but the checksum
/// and the LSN, which [`seal`] makes anew.
pub const LOGGED: [(usize, Option<usize>); 2] = [(KIND, Some(LSN)), (OWNER, None)];

const _: () = assert!(OWNER + 8 == HEADER);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_kinds_stand_at_their_numbers() {
        for (i, kind) in PageKind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, PageKind::from_u8(kind as u8)), (i + 1, Some(kind)));
        }
        assert_eq!((PageKind::from_u8(0), PageKind::from_u8(11)), (None, None));
    }

    #[test]
    fn a_sealed_page_checks_and_any_flip_is_found() {
        let mut page = vec![0; 4096];
        format(&mut page, PageKind::Heap, PageNo(9), 3);
        seal(&mut page, Lsn(77));
        assert_eq!(check(&page, PageNo(9)).unwrap(), PageKind::Heap);
        assert_eq!((lsn(&page), owner(&page)), (Lsn(77), 3));
        assert!(check(&page, PageNo(8)).is_err());
        for i in (0..4096).step_by(7).chain(0..HEADER) {
            page[i] ^= 0x10;
            assert!(check(&page, PageNo(9)).is_err(), "byte {i}");
            page[i] ^= 0x10;
        }
    }
}
