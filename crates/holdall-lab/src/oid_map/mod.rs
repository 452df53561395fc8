//! Eickler 1995: mapping logical object ids.

use crate::experiment::Experiment;
use crate::papers::Paper;

/// The paper.
pub static PAPER: Paper = Paper {
    name: "eickler",
    letter: 'E',
    citation: "Eickler 1995",
    about: "mapping logical object ids",
    question: "",
    bearing: "",
    experiments,
};

/// Every experiment, in the order of the paper's figures.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Vec::new()
}
