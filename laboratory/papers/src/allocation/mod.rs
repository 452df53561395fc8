//! Allocation of persistent storage (Iyengar 2003).
//!
//! Owns files of blocks on any [`holdall_io::Disk`]: the allocator PMFLF over the three methods
//! that keep free blocks on disk, batch allocation, the hash table on disk, the object dependence
//! graph ([`odg`]) and one experiment for each figure, with the claims checked. From the bottom
//! up: `block`, `lists`, `pmflf` with `recovery`, `oba`, `htod`, `odg`, `workload`, figures.
//! Errors are those of the disk unless stated otherwise. Threads: none but a mutex around
//! runs that figures share.

mod block;
mod figures;
mod htod;
mod lists;
mod oba;
pub mod odg;
mod peers;
mod pmflf;
mod recovery;
mod usage;
mod workload;

use holdall_instrument::paper::Paper;

/// The paper.
pub static PAPER: Paper = Paper {
    name: "iyengar",
    letter: 'I',
    citation: "Iyengar 2003",
    reference: "A. Iyengar, S. Jin, J. Challenger: Techniques for efficiently allocating persistent storage. \
                The Journal of Systems and Software 68 (2003), pp. 85–102.",
    about: "allocating persistent storage",
    question: "How can many objects of a few kilobytes be kept in one file so that allocating and \
               giving back a block takes one access, and every block is found again after a \
               crash? The paper describes free lists in memory over tags or lists on disk, tries \
               them on sizes drawn from a truncated Pareto distribution, and compares a hash table \
               built on them with one file per object and with a database.",
    bearing: "The engine allocates for a whole transaction at once and writes in the order of \
              addresses, as batch allocation does; what it keeps of each block is a bit in a \
              buddy space instead of a tag. See iyengar-19 to iyengar-21 and iyengar-throughput.",
    experiments: figures::experiments,
};

#[cfg(test)]
mod tests;
