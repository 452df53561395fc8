//! Mapping of logical OIDs (Eickler 1995).
//!
//! Owns linear hashing ([`hash`]), a B+-tree ([`btree`]) and direct mapping ([`direct`]) behind
//! one interface ([`mapping`]), as files of pages on any [`holdall_io::Disk`], with page faults
//! counted ([`pages`]); data pages found by physical OIDs, beside them ([`physical`]); the paper's
//! object bases and workloads, and its figures.
//! Threads: none but the mutex around runs that figures share.

pub mod btree;
pub mod direct;
mod figures;
pub mod hash;
pub mod mapping;
pub mod oid;
pub mod pages;
pub mod physical;
#[cfg(test)]
mod tests;
mod workload;

use holdall_instrument::paper::Paper;

/// Bytes of an entry of a bucket, and of a leaf without compression: OID, handle, and 19 bytes
/// that the paper does not name. They follow from its 80 entries of a bucket; that a leaf then
/// holds about 100, as the paper says, is no further assumption.
pub const ENTRY: usize = 51;

/// The paper.
pub static PAPER: Paper = Paper {
    name: "eickler",
    letter: 'E',
    citation: "Eickler 1995",
    reference: "A. Eickler, C. A. Gerlhof, D. Kossmann: A Performance Evaluation of OID Mapping Techniques. \
                Proc. 21st VLDB Conference, Zurich, 1995.",
    about: "mapping logical object ids",
    question: "How does a server find the place of an object from an id that stays when the \
               object moves, with few page faults and in little space? Linear hashing, a \
               B+-tree and an array that the id points into (direct mapping) are filled with up \
               to five million objects and asked by three workloads.",
    bearing: "Holdall's handle table is a direct mapping with a unique \
              field per slot. It is the smallest of the three, needs one page at most to map an \
              id, and always detects an id whose object is gone (E1, E4, E9, E10).",
    experiments: figures::experiments,
};
