//! The experiments: every figure and table of Biliris 1992, and what lies beyond it.

mod assumptions;
mod build;
mod carey;
mod engine;
mod large;
mod mix;
mod mix_claims;
mod modern;
mod statements;
mod tables;

use holdall_instrument::draw::axis_in;
use holdall_instrument::experiment::{Experiment, Figure};
use holdall_instrument::picture::{Axis, Series};

/// All of them, in the paper's order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    let first = [tables::SHAPES, build::BUILD, build::SCAN];
    let tables =
        [tables::READS, tables::UPDATES, tables::SIZES, carey::CAREY, assumptions::ASSUMPTIONS];
    let beyond = [modern::MODERN, large::LARGE, large::SKEW];
    let engine = [engine::SIZE_INDEPENDENCE, engine::MIXED];
    Figure::list(&[&first[..], &mix::FIGURES, &tables, &beyond, &engine].concat())
}

/// An axis from zero to a little more than the largest value drawn.
fn from_zero(label: &str, series: &[Series]) -> Axis {
    let values = series.iter().flat_map(|s| &s.points).map(|p| p.1);
    axis_in(label, 0.0, 1.05 * values.fold(0.0, f64::max))
}
