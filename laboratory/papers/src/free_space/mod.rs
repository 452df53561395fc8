//! Free-space management: object placement in heap files (McAuliffe 1996).
//!
//! Owns a heap file of slotted pages on any [`holdall_io::Disk`] ([`heap_file`]), the paper's
//! placement algorithms and some more ([`algorithm`]), its workloads (`workload`) and one
//! experiment for each of its figures, with the claims checked. Objects are real bytes: each one
//! deleted or read is compared with what was stored. From the bottom up: [`buckets`], `nibbles`,
//! [`page`], [`volume`], [`algorithm`], [`heap_file`], `workload`, figures. Threads:
//! none but a mutex around runs that figures share. Errors are those of the disk if nothing
//! else is said.

pub mod algorithm;
pub mod buckets;
mod figures;
pub mod heap_file;
mod nibbles;
pub mod page;
pub mod volume;
mod workload;

use holdall_instrument::paper::Paper;

/// The paper.
pub static PAPER: Paper = Paper {
    name: "mcauliffe",
    letter: 'M',
    citation: "McAuliffe 1996",
    reference: "M. L. McAuliffe, M. J. Carey, M. H. Solomon: Towards Effective and Efficient Free Space \
                Management. Proc. ACM SIGMOD Conference, Montreal, 1996.",
    about: "free space and the placement of small objects",
    question: "On which page of a heap file should a new small object go, so that pages stay full, \
               the search is short and concurrent transactions do not meet? The paper fills and \
               churns a file under each placement rule and counts entries searched, pages read and \
               space used.",
    bearing: "The engine places small objects as HY does: a few pages with known room first, then a \
              search of the free-space inventory only while the file is less full than asked for.",
    experiments: figures::experiments,
};

#[cfg(test)]
mod tests;
