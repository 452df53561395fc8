//! The papers: one table, from which the command line, the report and the tests take them.
//!
//! Owns: [`PAPERS`]. A new paper is a module with a static of its own and one row here.

use crate::experiment::Experiment;
use crate::{aging, allocation, free_space, large, oid_map};

/// A paper that the lab repeats.
#[derive(Debug)]
pub struct Paper {
    /// What the command line calls it; its experiments are named `NAME-..`.
    pub name: &'static str,
    /// Its claims are named by this letter and a number.
    pub letter: char,
    /// First author and year.
    pub citation: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// What it asked, and how it went about it.
    pub question: &'static str,
    /// What of it the engine uses, and the figures that speak for it.
    pub bearing: &'static str,
    /// Its experiments, in the order of its figures.
    pub experiments: fn() -> Vec<Box<dyn Experiment>>,
}

/// All of them, in the report's order.
pub static PAPERS: [&Paper; 5] =
    [&large::PAPER, &free_space::PAPER, &allocation::PAPER, &oid_map::PAPER, &aging::PAPER];

/// The paper called `name`.
#[must_use]
pub fn named(name: &str) -> Option<&'static Paper> {
    PAPERS.into_iter().find(|p| p.name == name)
}

/// Whose experiment `id` is.
#[must_use]
pub fn of(id: &str) -> Option<&'static Paper> {
    named(id.split('-').next().unwrap_or_default())
}

/// Every experiment, in the report's order.
#[must_use]
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    PAPERS.into_iter().flat_map(|p| (p.experiments)()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_is_named_after_its_paper() {
        for paper in PAPERS {
            for experiment in (paper.experiments)() {
                let found = of(experiment.id()).map(|p| p.name);
                assert_eq!(found, Some(paper.name), "{}", experiment.id());
            }
        }
    }

    #[test]
    fn letters_and_names_differ() {
        for (i, a) in PAPERS.iter().enumerate() {
            for b in &PAPERS[..i] {
                assert!(a.letter != b.letter && a.name != b.name, "{} {}", a.name, b.name);
            }
        }
    }
}
