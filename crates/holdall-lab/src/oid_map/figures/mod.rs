//! The figures and tables of the paper. Owns the list of experiments.

use crate::experiment::{Experiment, Figure};

const FIGURES: [Figure; 0] = [];

/// All experiments of this paper.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Figure::list(&FIGURES)
}
