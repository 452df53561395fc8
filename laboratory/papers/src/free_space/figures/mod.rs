//! The figures of the paper and the experiments beyond it (McAuliffe §5, appendix A).
//!
//! Owns the list of experiments. Figures of one workload share its runs
//! (`runs`), and each can be run alone. No threads.

mod appendix;
mod assumptions;
mod churn;
mod cost;
mod fill;
mod modern;
mod parts;
mod runs;
mod threads;

use holdall_instrument::experiment::{Experiment, Figure, Needs};

const FIGURES: [Figure; 17] = [
    Figure::new("mcauliffe-4", "Uniform Create: throughput", fill::throughput_uniform),
    Figure::new("mcauliffe-5", "Uniform Create: throughput of FF", fill::throughput_ff),
    Figure::new("mcauliffe-6", "Uniform Create: space utilization", fill::utilization_uniform),
    Figure::new("mcauliffe-7", "Mixed Create: throughput", fill::throughput_mixed),
    Figure::new("mcauliffe-8", "Mixed Create: FSIP entries looked at", fill::entries_mixed),
    Figure::new("mcauliffe-9", "Mixed Create: space utilization", fill::utilization_mixed),
    Figure::new("mcauliffe-10", "Create-Delete: throughput", churn::throughput),
    Figure::new("mcauliffe-11", "Create-Delete: space utilization", churn::utilization),
    Figure::new("mcauliffe-12", "Create-Delete: delete reads", churn::delete_reads),
    Figure::new("mcauliffe-13", "Create-Delete: create reads", churn::create_reads),
    Figure::new("mcauliffe-14", "Four streams: throughput", churn::throughput_of_four),
    Figure::new("mcauliffe-15", "Four streams: space utilization", churn::utilization_of_four),
    Figure::new("mcauliffe-16", "Four streams: collisions with reserved space", churn::collisions),
    Figure::new("mcauliffe-threads", "Four real threads", threads::run).needs(Needs::ALONE),
    Figure::new("mcauliffe-appendix", "Append-only tends to a utilization of 1/H_k", appendix::run),
    Figure::new("mcauliffe-assumptions", "What the paper leaves open", assumptions::run),
    Figure::new("mcauliffe-modern", "Object placement on a disk of today", modern::run)
        .needs(Needs::PRICE),
];

/// All experiments of this paper, in the order of its figures.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Figure::list(&FIGURES)
}
