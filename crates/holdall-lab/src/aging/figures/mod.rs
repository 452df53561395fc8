//! Figures.
use crate::experiment::Experiment;
pub(super) fn experiments() -> Vec<Box<dyn Experiment>> { Vec::new() }
