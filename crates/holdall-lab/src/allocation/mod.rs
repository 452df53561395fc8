//! Allocation of persistent storage (Iyengar, Jin and Challenger, *Techniques for efficiently
//! allocating persistent storage*, 2003).
//!
//! Owns files of blocks on any [`holdall_io::Disk`]: the allocator PMFLF ([`pmflf`]) over the
//! three methods that keep free blocks on disk ([`block::Method`]), batch allocation ([`oba`]),
//! the hash table on disk ([`htod`]) and one experiment for each figure, with the claims checked.
//! From the bottom up: [`block`], [`lists`], [`pmflf`] with its recovery, [`oba`], [`htod`],
//! [`odg`], [`workload`], figures. Threads: none but a mutex around runs that figures share.

pub mod block;
pub mod error;
pub mod htod;
pub mod lists;
pub mod oba;
pub mod pmflf;
pub mod recovery;

#[cfg(test)]
mod tests;
