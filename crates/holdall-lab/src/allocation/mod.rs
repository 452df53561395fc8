//! Iyengar 2003: allocating persistent storage.

use crate::experiment::Experiment;
use crate::papers::Paper;

/// The paper.
pub static PAPER: Paper = Paper {
    name: "iyengar",
    letter: 'I',
    citation: "Iyengar 2003",
    about: "allocating persistent storage",
    question: "",
    bearing: "",
    experiments,
};

/// Every experiment, in the order of the paper's figures.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Vec::new()
}
