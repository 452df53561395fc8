//! The stores that every run has: Holdall, by name and by OID, and plain files.

mod files;
mod holdall;
mod ids;

pub use files::Files;
pub use holdall::Holdall;

use crate::peer::Maker;

/// Makers of these stores.
pub fn own() -> Vec<Box<dyn Maker>> {
    vec![Box::new(Holdall { by_oid: false }), Box::new(Holdall { by_oid: true }), Box::new(Files)]
}
