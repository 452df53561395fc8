//! What every mapping technique does: [`Mapping`]. Owns no state.

use anyhow::Result;

use super::oid::{Handle, Oid};
use super::pages::Pages;

/// Where the handle of a new object had best lie (Eickler §4.1); a technique takes what it can
/// make use of.
#[derive(Debug, Clone, Copy, Default)]
pub struct Place {
    /// An object that will be used together with the new one.
    pub near: Option<Oid>,
    /// The new object's slot in its data page, which chooses the file of a matrix.
    pub slot: u16,
}

/// A persistent map from logical OIDs to handles. An OID is given out once: that of a deleted
/// object never names another one. All of it fails if the disk does, and on damaged pages.
pub trait Mapping: Send {
    /// Records a new object and gives its OID.
    fn create(&mut self, place: Place, handle: Handle) -> Result<Oid>;

    /// The handle of an object; `None` if it was deleted or never was.
    fn lookup(&mut self, oid: Oid) -> Result<Option<Handle>>;

    /// Records that an object moved; `false` if there is none.
    fn update(&mut self, oid: Oid, handle: Handle) -> Result<bool>;

    /// Forgets a deleted object; `false` if there is none.
    fn remove(&mut self, oid: Oid) -> Result<bool>;

    /// Writes everything to the disk and syncs it; what opens it later finds it.
    fn flush(&mut self) -> Result<()>;

    /// Its pages with their buffer, and the counts of page faults.
    fn pages(&mut self) -> &mut Pages;

    /// Pages of the mapping file that are in use, all kinds together.
    fn used(&self) -> u64;
}
