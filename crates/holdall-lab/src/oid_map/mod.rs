//! Mapping of logical OIDs (Eickler, Gerlhof and Kossmann, *A Performance Evaluation of OID
//! Mapping Techniques*, 1995).
//!
//! Owns linear hashing ([`hash`]) and a B+-tree ([`btree`]) behind one interface ([`mapping`]), as
//! files of pages on any [`holdall_io::Disk`], with page faults counted ([`pages`]). Threads:
//! none.

pub mod btree;
pub mod hash;
pub mod mapping;
pub mod oid;
pub mod pages;
#[cfg(test)]
mod tests;

/// Bytes of an entry of a bucket, and of a leaf without compression: OID, handle, and 19 bytes
/// that the paper does not name. They follow from its 80 entries of a bucket; that a leaf then
/// holds about 100, as the paper says, is no further assumption.
pub const ENTRY: usize = 51;
