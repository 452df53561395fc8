//! The experiments: every figure and table of Biliris 1992, and what lies beyond it.

pub mod assumptions;
pub mod build;
pub mod engine;
pub mod large;
pub mod mix;
mod mix_claims;
pub mod modern;
mod statements;
pub mod tables;

use crate::experiment::Experiment;

/// All of them, in the paper's order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    let mut all: Vec<Box<dyn Experiment>> =
        vec![Box::new(tables::Shapes), Box::new(build::Build), Box::new(build::Scan)];
    for figure in mix::figures() {
        all.push(Box::new(figure));
    }
    all.push(Box::new(mix::Deletes));
    all.push(Box::new(tables::Reads));
    all.push(Box::new(tables::Updates));
    all.push(Box::new(tables::Sizes));
    all.push(Box::new(assumptions::Assumptions));
    all.push(Box::new(modern::Modern));
    all.push(Box::new(large::Large));
    all.push(Box::new(large::Skew));
    all.push(Box::new(engine::SizeIndependence));
    all.push(Box::new(engine::Mixed));
    all
}
