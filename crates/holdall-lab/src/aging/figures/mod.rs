//! Figures 1 to 7 of the paper, and the two questions that it leaves open.
//!
//! Owns the list of experiments. All time what they do, so nothing else runs beside them;
//! figures of one workload share its runs by the parts kept.

mod clean;
mod curves;
mod open;
mod plan;
mod pools;

use crate::experiment::{Experiment, Figure, Needs};

const FIGURES: [Figure; 9] = [
    timed("sears-1", "Throughput of a clean store by object size", clean::throughput),
    timed("sears-2", "Read throughput as the store ages, 256 KB and 1 MB", curves::reads),
    timed("sears-3", "Fragments as the store ages, 10 MB", curves::fragments_large),
    timed("sears-4", "Write throughput as the store ages, 1 MB", curves::writes),
    timed("sears-5", "Fragments as the store ages, 256 KB and 1 MB", curves::fragments_small),
    timed("sears-6", "Constant and uniform sizes, 10 MB", pools::sizes),
    timed("sears-7", "Occupancy and the pool of free objects, 256 KB", pools::occupancy),
    timed("sears-requests", "Request size and size hint, 1 MB", open::requests),
    timed("sears-interleaved", "Interleaved appends to many objects, 1 MB", open::interleaved),
];

const fn timed(
    id: &'static str,
    title: &'static str,
    make: fn(&crate::experiment::Settings<'_>) -> anyhow::Result<crate::experiment::Outcome>,
) -> Figure {
    Figure::new(id, title, make).needs(Needs::ALONE)
}

/// All experiments of this paper, in the order of its figures.
pub(super) fn experiments() -> Vec<Box<dyn Experiment>> {
    Figure::list(&FIGURES)
}
