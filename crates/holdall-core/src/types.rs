//! The small numbers everything is named by: page numbers, LSNs, OIDs.
//!
//! Owns: the types and their text form. No I/O, no threads.

use std::fmt;
use std::str::FromStr;

/// Number of a page in the volume: byte address divided by the page size. 48 bits on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PageNo(pub u64);

impl PageNo {
    /// Page 0 holds a superblock, so 0 serves as "none" in every reference.
    pub const NONE: Self = Self(0);
    /// The largest page number a reference can hold.
    pub const MAX: Self = Self((1 << 48) - 1);

    /// Whether this is [`PageNo::NONE`].
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for PageNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Log sequence number: a place in the endless log. Also a commit's, a snapshot's and a
/// page version's number (docs/design.md, "Decisions"). Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A run of neighbouring pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageRun {
    /// First page.
    pub start: PageNo,
    /// Number of pages, at least 1.
    pub len: u64,
}

impl PageRun {
    /// A run of `len` pages from `start`.
    pub fn new(start: PageNo, len: u64) -> Self {
        Self { start, len }
    }

    /// One past the last page.
    pub fn end(self) -> u64 {
        self.start.0 + self.len
    }
}

/// Logical object id of 12 bytes (Eickler §2): stable wherever the object lies.
///
/// `unique` comes from a store-wide counter that never goes back, so an OID whose slot was
/// reused is distinguished from the new owner's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid {
    /// The site (store) number; 0 in a store of one machine.
    pub site: u16,
    /// Logical index of the handle page.
    pub page: u32,
    /// Slot in the handle page.
    pub slot: u16,
    /// Tells former owners of the slot apart.
    pub unique: u32,
}

impl Oid {
    /// Bytes of an OID on disk.
    pub const BYTES: usize = 12;

    /// The OID as stored: site, page, slot, unique, little-endian.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut b = [0; Self::BYTES];
        b[0..2].copy_from_slice(&self.site.to_le_bytes());
        b[2..6].copy_from_slice(&self.page.to_le_bytes());
        b[6..8].copy_from_slice(&self.slot.to_le_bytes());
        b[8..12].copy_from_slice(&self.unique.to_le_bytes());
        b
    }

    /// Reads an OID back from its stored form.
    pub fn from_bytes(b: [u8; Self::BYTES]) -> Self {
        Self {
            site: u16::from_le_bytes([b[0], b[1]]),
            page: u32::from_le_bytes([b[2], b[3], b[4], b[5]]),
            slot: u16::from_le_bytes([b[6], b[7]]),
            unique: u32::from_le_bytes([b[8], b[9], b[10], b[11]]),
        }
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oid:{:x}.{:x}.{:x}.{:x}", self.site, self.page, self.slot, self.unique)
    }
}

impl FromStr for Oid {
    type Err = crate::Error;

    /// Reads `oid:SITE.PAGE.SLOT.UNIQUE`, each in hexadecimal, as printed.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        let bad = || {
            crate::Error::Invalid(format!("{s:?} is not an OID; write oid:SITE.PAGE.SLOT.UNIQUE"))
        };
        let rest = s.strip_prefix("oid:").ok_or_else(bad)?;
        let mut parts = rest.split('.');
        let mut next = || u32::from_str_radix(parts.next()?, 16).ok();
        let (site, page, slot, unique) = (next(), next(), next(), next());
        let narrow = |n: Option<u32>| n.and_then(|n| u16::try_from(n).ok()).ok_or_else(bad);
        let oid = Self {
            site: narrow(site)?,
            page: page.ok_or_else(bad)?,
            slot: narrow(slot)?,
            unique: unique.ok_or_else(bad)?,
        };
        if parts.next().is_some() { Err(bad()) } else { Ok(oid) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oid_text_and_bytes_round_trip() {
        let oid = Oid { site: 1, page: 0xdead_beef, slot: 77, unique: u32::MAX };
        assert_eq!(oid.to_string().parse::<Oid>().unwrap(), oid);
        assert_eq!(Oid::from_bytes(oid.to_bytes()), oid);
        for bad in ["", "oid:", "oid:1.2.3", "oid:1.2.3.4.5", "oid:10000.0.0.0", "0.0.0.0"] {
            assert!(bad.parse::<Oid>().is_err(), "{bad}");
        }
    }
}
