//! What a transaction notes of its objects' bytes for [`Options::debug_sums`](crate::Options).
//!
//! Owns: [`Noted`]. Whole objects are summed from the bytes the caller gives, as they pass; so
//! damage between there and the commit shows later. What an edit leaves is read back at the
//! commit. Since that would take damage for right bytes, an object is held against its sum
//! before it is edited, and so is one that parts are copied from.
//!
//! An object that cannot be read is not compared and gets no sum: a read of the bytes meets
//! the error, and no transaction fails that would not fail without the option.

use super::ObjectsMut;
use crate::engine::sums::Entry;
use holdall_core::checksum::{Sum, Summing};
use holdall_core::{Error, Oid, Result};
use std::collections::BTreeMap;

/// Objects changed, and the sum of their bytes; `None` to read them at the commit.
pub(super) type Noted = BTreeMap<Oid, Option<Sum>>;

/// Longer objects are not read to be summed: they may be zeros that take no space.
const MOST_READ: u64 = 1 << 30;
/// Bytes read at once.
const BYTES_PER_READ: u64 = 1 << 20;

impl ObjectsMut {
    /// Notes that the object's bytes are `bytes` now.
    #[inline]
    pub(super) fn note_bytes(&mut self, oid: Oid, bytes: &[u8]) {
        if let Some(noted) = &mut self.sums {
            noted.insert(oid, Some(Sum::compute(bytes)));
        }
    }

    /// Notes that the object has another version now, and its bytes' sum if that is known.
    #[inline]
    pub(super) fn note_sum(&mut self, oid: Oid, sum: Option<Sum>) {
        if let Some(noted) = &mut self.sums {
            noted.insert(oid, sum);
        }
    }

    /// The sum that the object's bytes must have now, if it is known.
    pub(super) fn known_sum(&mut self, oid: Oid) -> Option<Sum> {
        if let Some(noted) = self.sums.as_ref()?.get(&oid) {
            return *noted;
        }
        let (_, change) = self.place_of(oid, |record| Ok(record.change)).ok()?;
        self.inner.sums.as_ref()?.get(oid, change)
    }

    /// Holds an object that is about to be edited, or copied in part, against its sum.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it has other bytes, with nothing changed.
    pub(super) fn check_sum(&mut self, oid: Oid) -> Result<()> {
        let Some(expected) = self.known_sum(oid) else { return Ok(()) };
        match self.read_sum(oid) {
            Some(found) if found != expected => {
                let detail = format!("has {found}, but {expected} were put");
                Err(Error::corrupt(format!("object {oid}"), detail))
            }
            _ => Ok(()),
        }
    }

    /// The sum of the object's bytes as they are stored, if they can be read.
    fn read_sum(&mut self, oid: Oid) -> Option<Sum> {
        let whole = self.open_whole(oid).ok().filter(|whole| whole.size() <= MOST_READ)?;
        let (mut at, mut summing) = (0, Summing::new());
        let mut buffer = vec![0; whole.size().min(BYTES_PER_READ) as usize];
        while at < whole.size() {
            let piece = &mut buffer[..(whole.size() - at).min(BYTES_PER_READ) as usize];
            self.read_whole(&whole, oid, at, piece).ok()?;
            summing.update(piece);
            at += piece.len() as u64;
        }
        Some(summing.sum())
    }

    /// The entries of all objects that the transaction changed and that are still there.
    pub(super) fn take_sums(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (oid, sum) in self.sums.take().map(|noted| *noted).unwrap_or_default() {
            let Ok((_, change)) = self.place_of(oid, |record| Ok(record.change)) else { continue };
            let Some(sum) = sum.or_else(|| self.read_sum(oid)) else { continue };
            entries.push(Entry { oid, change, sum });
        }
        entries
    }
}
