//! Which OID each ordinal has: what an application keeps in its own objects.
//!
//! Invariant: an entry may be replaced while others read other entries; who reads an entry
//! that is just replaced may see halves of both, which Holdall answers with "dangling".

use anyhow::{Context as _, Result, ensure};
use holdall::Oid;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Entries of a chunk.
const CHUNK: u64 = 1 << 16;
/// Chunks: for ordinals below 2^30.
const CHUNKS: usize = 1 << 14;

/// Page and slot, plus one in front so that an entry is never zero; unique number.
type Entry = [AtomicU64; 2];

/// OIDs by ordinal. A lookup costs two loads.
pub struct Ids(Vec<OnceLock<Box<[Entry]>>>);

impl Ids {
    /// None known.
    pub fn new() -> Self {
        Self((0..CHUNKS).map(|_| OnceLock::new()).collect())
    }

    fn split(ordinal: u64) -> (usize, usize) {
        ((ordinal / CHUNK) as usize, (ordinal % CHUNK) as usize)
    }

    /// The object of this ordinal.
    pub fn get(&self, ordinal: u64) -> Option<Oid> {
        let (chunk, at) = Self::split(ordinal);
        let entry = &self.0.get(chunk)?.get()?[at];
        let place = entry[0].load(Ordering::Acquire);
        let unique = entry[1].load(Ordering::Relaxed) as u32;
        let (page, slot) = ((place >> 16) as u32, place as u16);
        (place != 0).then_some(Oid { site: 0, page, slot, unique })
    }

    /// Sets or, with none, removes it.
    pub fn set(&self, ordinal: u64, oid: Option<Oid>) -> Result<()> {
        let (chunk, at) = Self::split(ordinal);
        let chunk = self.0.get(chunk).context("an ordinal must be below 2^30")?;
        let new = || (0..CHUNK).map(|_| Entry::default()).collect();
        let entry = &chunk.get_or_init(new)[at];
        if let Some(oid) = oid {
            ensure!(oid.site == 0, "an OID of a store of one machine");
            entry[1].store(oid.unique.into(), Ordering::Relaxed);
        }
        let pack = |o: Oid| 1 << 48 | u64::from(o.page) << 16 | u64::from(o.slot);
        entry[0].store(oid.map_or(0, pack), Ordering::Release);
        Ok(())
    }

    /// Writes all to a file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut out = Vec::new();
        for (i, chunk) in self.0.iter().enumerate() {
            if chunk.get().is_none() {
                continue;
            }
            for at in 0..CHUNK {
                let ordinal = i as u64 * CHUNK + at;
                if let Some(oid) = self.get(ordinal) {
                    out.extend_from_slice(&ordinal.to_le_bytes());
                    out.extend_from_slice(&oid.to_bytes());
                }
            }
        }
        Ok(std::fs::write(path, out)?)
    }

    /// Reads what [`Ids::save`] wrote; nothing known if there is no file.
    pub fn load(path: &Path) -> Result<Self> {
        let ids = Self::new();
        if !path.exists() {
            return Ok(ids);
        }
        for entry in std::fs::read(path)?.chunks_exact(8 + Oid::BYTES) {
            let (ordinal, oid) = entry.split_at(8);
            ids.set(
                u64::from_le_bytes(ordinal.try_into()?),
                Some(Oid::from_bytes(oid.try_into()?)),
            )?;
        }
        Ok(ids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_and_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ids");
        let oid = |n: u32| Oid { site: 0, page: n, slot: 7, unique: u32::MAX - n };
        let ids = Ids::new();
        for i in [0, 1, 65_535, 65_536, 999_999] {
            ids.set(i, Some(oid(i as u32))).unwrap();
        }
        ids.set(1, None).unwrap();
        ids.save(&path).unwrap();
        let ids = Ids::load(&path).unwrap();
        assert_eq!(ids.get(0), Some(oid(0)), "page 0, slot and all: not taken for none");
        assert_eq!(ids.get(1), None);
        assert_eq!(ids.get(65_536), Some(oid(65_536)));
        assert_eq!(ids.get(u64::MAX), None);
        assert!(ids.set(1 << 30, None).is_err());
    }
}
