//! The parts of a backup's stream.
//!
//! Owns: their names, which say what they cover. So the parts alone show what there is of a backup that
//! was broken off.

use holdall::{BackupId, Reached};

/// The folder of parts.
pub(crate) const FOLDER: &str = "parts";
/// What the name of the part ends with that has the stream's end.
pub(crate) const LAST: &str = "-end";
/// What a part covers, as its name says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Covers {
    /// Its place among the parts.
    pub(crate) place: usize,
    /// How far the stream had come before it, and after it.
    pub(crate) from: Reached,
    pub(crate) to: Reached,
    /// Pages in it.
    pub(crate) pages: u64,
    /// CRC-32C of its bytes.
    pub(crate) crc32c: u32,
}

impl Covers {
    pub(crate) fn name(&self) -> String {
        let Self { place, from, to, pages, crc32c } = self;
        let (a, b, c, d) = (from.space, from.granule, to.space, to.granule);
        format!("{place:06}-{a}.{b}-{c}.{d}-{pages}-{crc32c:08x}")
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        let place = parts.next()?.parse().ok()?;
        let mut reached = || {
            let (space, granule) = parts.next()?.split_once('.')?;
            Some(Reached { space: space.parse().ok()?, granule: granule.parse().ok()? })
        };
        let (from, to) = (reached()?, reached()?);
        let pages = parts.next()?.parse().ok()?;
        let crc32c = u32::from_str_radix(parts.next()?, 16).ok()?;
        let known = Self { place, from, to, pages, crc32c };
        (parts.next().is_none() && known.name() == name).then_some(known)
    }
}

/// The name of a part of a backup in its place.
pub(crate) fn name(id: BackupId, part: &str) -> String {
    format!("{FOLDER}/{id}/{part}")
}

/// CRC-32C.
pub(crate) fn crc_of(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}
