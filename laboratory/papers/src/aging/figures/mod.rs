//! Figures 1 to 7 of the paper, and the two questions that it leaves open.
//!
//! Owns the list of experiments. What shows throughput has the machine for itself; what only
//! counts fragments does not need it. Figures of one workload share its runs by the parts kept, so
//! that all of them count as timed if one shows throughput.

mod clean;
mod curves;
mod open;
mod plan;
mod pools;

use holdall_instrument::experiment::{Experiment, Figure, Needs};

/// All experiments of this paper, in the order of its figures.
pub(super) fn experiments() -> Vec<Box<dyn Experiment>> {
    let counted = Figure::new;
    let timed = |id, title, make| Figure::new(id, title, make).needs(Needs::ALONE);
    Figure::list(&[
        timed("sears-1", "Throughput of a clean store by object size", clean::throughput),
        timed("sears-2", "Read throughput as the store ages, 256 KB to 1 MB", curves::reads),
        timed("sears-3", "Fragments as the store ages, 10 MB", curves::fragments_large),
        timed("sears-4", "Write throughput as the store ages, 1 and 10 MB", curves::writes),
        timed("sears-5", "Fragments as the store ages, 256 KB and 1 MB", curves::fragments_small),
        timed("sears-6", "Constant and uniform sizes, 10 MB", pools::sizes),
        counted("sears-7", "Occupancy and the pool of free objects", pools::occupancy),
        counted("sears-gaps", "A volume whose free space is in pieces, 1 MB", curves::gaps),
        counted("sears-requests", "Request size and size hint, 1 MB", open::requests),
        timed("sears-interleaved", "Interleaved appends to many objects, 1 MB", open::interleaved),
    ])
}
