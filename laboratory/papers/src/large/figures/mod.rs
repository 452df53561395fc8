//! The experiments: every figure and table of Biliris 1992, and what lies beyond it.

mod assumptions;
mod build;
mod engine;
mod large;
mod mix;
mod mix_claims;
mod modern;
mod statements;
mod tables;

use holdall_instrument::experiment::{Experiment, Figure};

/// All of them, in the paper's order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    let first = [tables::SHAPES, build::BUILD, build::SCAN];
    let tables = [tables::READS, tables::UPDATES, tables::SIZES, assumptions::ASSUMPTIONS];
    let beyond = [modern::MODERN, large::LARGE, large::SKEW];
    let engine = [engine::SIZE_INDEPENDENCE, engine::MIXED];
    Figure::list(&[&first[..], &mix::FIGURES, &tables, &beyond, &engine].concat())
}
