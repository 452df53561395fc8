//! Sears 2006: large objects in files and databases as a store ages.

use crate::experiment::Experiment;
use crate::papers::Paper;

/// The paper.
pub static PAPER: Paper = Paper {
    name: "sears",
    letter: 'S',
    citation: "Sears 2006",
    about: "large objects in files and databases as a store ages",
    question: "",
    bearing: "",
    experiments,
};

/// Every experiment, in the order of the paper's figures.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Vec::new()
}
