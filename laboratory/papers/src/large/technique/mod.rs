//! The family of techniques for large objects, behind one trait.
//!
//! Owns: [`LargeObject`] and [`Shape`]. Each technique stores and returns bytes and is held
//! against bytes in memory by one suite (`tests::conformance`). An object has a volume of its own,
//! as in Biliris' simulation. After an error an object is not to be used.

mod eos;
mod esm;
mod growth;
mod relayout;
mod starburst;

use std::sync::Arc;

use anyhow::Result;
use holdall_io::Disk;
use holdall_testkit::DiskStats;

pub use eos::{Bytes, Eos};
pub use esm::{Esm, InsertRule};
pub use starburst::Starburst;

use super::store::{Config, Volume};

/// What an object's structure looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Bytes of the object.
    pub size: u64,
    /// Leaf segments.
    pub segments: u64,
    /// Pages of leaf segments, used or not.
    pub leaf_pages: u64,
    /// Index pages but the root.
    pub index_pages: u64,
    /// Levels above the leaves: 1 for a root right above them.
    pub level: u8,
}

impl Shape {
    /// Storage utilization (Biliris §4.4.1): bytes of the object over the bytes of all its
    /// pages, index pages and the root too.
    pub fn utilization(&self, page_size: usize) -> f64 {
        let pages = self.leaf_pages + self.index_pages + 1;
        self.size as f64 / (pages as f64 * page_size as f64)
    }
}

/// One large object.
pub trait LargeObject {
    /// Its bytes.
    fn size(&self) -> u64;

    /// Puts `bytes` behind the last byte. Space may be taken ahead of need.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Gives back what was taken ahead; any other update does so too.
    fn finish(&mut self) -> Result<()>;

    /// Makes an empty object one of `len` bytes that are zeros, its size known beforehand,
    /// without writing its leaves: for objects too large to hold.
    fn create_zeros(&mut self, len: u64) -> Result<()>;

    /// Fills `buf` with the bytes from `at`.
    fn read(&mut self, at: u64, buf: &mut [u8]) -> Result<()>;

    /// Puts `bytes` in place of as many from `at`.
    fn replace(&mut self, at: u64, bytes: &[u8]) -> Result<()>;

    /// Puts `bytes` before byte `at`.
    fn insert(&mut self, at: u64, bytes: &[u8]) -> Result<()>;

    /// Takes out `len` bytes from `at`.
    fn delete(&mut self, at: u64, len: u64) -> Result<()>;

    /// What it looks like; costs no counted access.
    fn shape(&self) -> Result<Shape>;

    /// Holds the structure against its rules and against the pages taken.
    fn check(&self) -> Result<()>;

    /// What it stands on.
    fn volume(&self) -> &Volume;

    /// Accesses so far.
    fn stats(&self) -> DiskStats {
        self.volume().stats()
    }
}

/// A technique with its parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Technique {
    /// EXODUS storage manager: fixed leaves of this many pages, improved insert.
    Esm(u16),
    /// The same with the basic insert.
    EsmBasic(u16),
    /// The same with both neighbours if neither serves alone.
    EsmBoth(u16),
    /// Starburst long fields.
    Starburst,
    /// EOS with segment size threshold T in pages.
    Eos(u16),
    /// The same as the engine does it, without byte reshuffling.
    EosEngine(u16),
}

impl Technique {
    /// As legends call it.
    pub fn name(self) -> String {
        match self {
            Self::Esm(pages) => format!("ESM, {pages}-page leaves"),
            Self::EsmBasic(pages) => format!("ESM basic, {pages}-page leaves"),
            Self::EsmBoth(pages) => format!("ESM both neighbours, {pages}-page leaves"),
            Self::Starburst => "Starburst".into(),
            Self::Eos(threshold) => format!("EOS, T = {threshold}"),
            Self::EosEngine(threshold) => format!("EOS as in the engine, T = {threshold}"),
        }
    }

    /// An empty object over two disks.
    pub fn create(
        self,
        config: Config,
        leaf: Arc<dyn Disk>,
        index: Arc<dyn Disk>,
    ) -> Result<Box<dyn LargeObject>> {
        let volume = Volume::new(config, leaf, index)?;
        Ok(match self {
            Self::Esm(pages) => Box::new(Esm::new(volume, pages, InsertRule::Improved)?),
            Self::EsmBasic(pages) => Box::new(Esm::new(volume, pages, InsertRule::Basic)?),
            Self::EsmBoth(pages) => Box::new(Esm::new(volume, pages, InsertRule::ImprovedBoth)?),
            Self::Starburst => Box::new(Starburst::new(volume)),
            Self::Eos(threshold) => Box::new(Eos::new(volume, threshold, Bytes::Shuffled)),
            Self::EosEngine(threshold) => Box::new(Eos::new(volume, threshold, Bytes::Stay)),
        })
    }
}

/// The error of a range that is not in the object.
fn check_range(at: u64, len: u64, size: u64) -> Result<()> {
    let end = at.checked_add(len).filter(|end| *end <= size);
    anyhow::ensure!(end.is_some(), "{len} bytes at {at} of an object of {size}");
    Ok(())
}
