//! The figures of the paper and the experiments beyond it (McAuliffe §5, appendix A).
//!
//! Owns the list of experiments. Figures of one workload share its runs
//! (`runs`), and each can be run alone. No threads.

mod appendix;
mod assumptions;
mod assumptions_rows;
mod churn;
mod concurrent;
mod cost;
mod fill;
mod modern;
mod parts;
mod runs;
mod skew;
mod sweep;

use crate::experiment::{Experiment, Outcome, Paper, Settings};
use anyhow::Result;

/// A figure: its names and what makes it.
struct Figure {
    id: &'static str,
    title: &'static str,
    make: fn(&Settings<'_>) -> Result<Outcome>,
}

impl Experiment for Figure {
    fn id(&self) -> &'static str {
        self.id
    }

    fn paper(&self) -> Paper {
        Paper::McAuliffe
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn uses_disk(&self) -> bool {
        ["mcauliffe-modern", "mcauliffe-skew"].contains(&self.id)
    }

    fn run(&self, settings: &Settings<'_>) -> Result<Outcome> {
        (self.make)(settings)
    }
}

type Row = (&'static str, &'static str, fn(&Settings<'_>) -> Result<Outcome>);

const FIGURES: [Row; 17] = [
    ("mcauliffe-4", "Uniform Create: throughput", fill::throughput_uniform),
    ("mcauliffe-5", "Uniform Create: throughput of FF", fill::throughput_ff),
    ("mcauliffe-6", "Uniform Create: space utilization", fill::utilization_uniform),
    ("mcauliffe-7", "Mixed Create: throughput", fill::throughput_mixed),
    ("mcauliffe-8", "Mixed Create: FSIP entries examined per object", fill::entries_mixed),
    ("mcauliffe-9", "Mixed Create: space utilization", fill::utilization_mixed),
    ("mcauliffe-10", "Create-Delete: throughput", churn::throughput),
    ("mcauliffe-11", "Create-Delete: space utilization", churn::utilization),
    ("mcauliffe-12", "Create-Delete: delete reads", churn::delete_reads),
    ("mcauliffe-13", "Create-Delete: create reads", churn::create_reads),
    ("mcauliffe-14", "Concurrent Create-Delete: throughput", concurrent::throughput),
    ("mcauliffe-15", "Concurrent Create-Delete: space utilization", concurrent::utilization),
    ("mcauliffe-16", "Concurrent Create-Delete: reserved-space collisions", concurrent::collisions),
    ("mcauliffe-appendix", "Append-only tends to a utilization of 1/H_k", appendix::run),
    ("mcauliffe-assumptions", "What the paper leaves open, and its effect", assumptions::run),
    ("mcauliffe-modern", "Object placement on a disk of today", modern::run),
    ("mcauliffe-skew", "Object placement under skewed deletions", skew::run),
];

/// All experiments of this paper, in the order of its figures.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    let figure =
        |(id, title, make): Row| Box::new(Figure { id, title, make }) as Box<dyn Experiment>;
    FIGURES.into_iter().map(figure).collect()
}
