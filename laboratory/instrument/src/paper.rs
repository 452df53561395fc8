//! Papers that a program repeats, and what they say together.
//!
//! Owns: what a paper is. Which papers there are, the program says.

use crate::experiment::Experiment;
use serde::Deserialize;

/// A paper that is repeated.
#[derive(Debug)]
pub struct Paper {
    /// What the command line calls it; its experiments are named `NAME-..`.
    pub name: &'static str,
    /// Its claims are named by this letter and a number.
    pub letter: char,
    /// First author and year.
    pub citation: &'static str,
    /// Authors, title, venue and year, as a bibliography has them.
    pub reference: &'static str,
    /// What it is about, in a few words.
    pub about: &'static str,
    /// What it asked, and how it went about it.
    pub question: &'static str,
    /// What of it the engine uses, and the figures that speak for it.
    pub bearing: &'static str,
    /// Its experiments, in the order of its figures.
    pub experiments: fn() -> Vec<Box<dyn Experiment>>,
}

/// What several papers say together.
#[derive(Debug, Deserialize)]
pub struct Sentence {
    /// The sentence.
    pub text: String,
    /// The numbers of the claims it rests on.
    pub claims: Vec<String>,
}

/// Why rows cannot hold today, whatever the code does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Obstacle {
    /// Words or figures of the paper exclude each other.
    Contradiction,
    /// The paper does not print what decides the figure.
    Omission,
    /// The machine, or the systems on it, are not the paper's.
    Today,
}

impl Obstacle {
    /// What the report says.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Contradiction => "the paper contradicts itself",
            Self::Omission => "the paper omits what decides it",
            Self::Today => "the machine or its systems differ",
        }
    }
}

/// Rows that cannot hold today. They are judged as all others; the report counts those that fail
/// apart.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutOfReach {
    /// Their names.
    pub claims: Vec<String>,
    /// Of what kind the reason is.
    pub obstacle: Obstacle,
    /// What shows it, in a sentence.
    pub because: String,
}

/// The papers of a program.
#[derive(Debug)]
pub struct Library {
    /// In the report's order.
    pub papers: &'static [&'static Paper],
    /// What they say together.
    pub together: fn() -> Vec<Sentence>,
    /// What is to be seen in a plot, by the names of its experiment and its panel; for plots
    /// without a caption of their own.
    pub caption: fn(&str, &str) -> Option<String>,
    /// Why the claim of a name cannot hold today; `None` for one that must.
    pub out_of_reach: fn(&str) -> Option<&'static OutOfReach>,
}

impl Library {
    /// The paper called `name`.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&'static Paper> {
        self.papers.iter().copied().find(|p| p.name == name)
    }

    /// Whose experiment `id` is.
    #[must_use]
    pub fn of(&self, id: &str) -> Option<&'static Paper> {
        self.named(id.split('-').next().unwrap_or_default())
    }

    /// The paper whose claims have numbers such as `number`.
    #[must_use]
    pub fn claiming(&self, number: &str) -> Option<&'static Paper> {
        self.papers.iter().copied().find(|p| number.starts_with(p.letter))
    }

    /// Every experiment, in the report's order.
    #[must_use]
    pub fn experiments(&self) -> Vec<Box<dyn Experiment>> {
        self.papers.iter().flat_map(|p| (p.experiments)()).collect()
    }
}
