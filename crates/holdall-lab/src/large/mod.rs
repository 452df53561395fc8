//! The large-object half of the lab: ESM, Starburst and EOS (Biliris 1992), and every
//! experiment on them.
//!
//! Owns: nothing itself. `store` is what lies beneath (areas, pool, index pages), `technique`
//! the family, `workload` and `runs` what is done to objects, `figures` the experiments.
//! Objects are used by one thread; the cache of results is shared.

mod figures;
pub mod runs;
pub mod store;
pub mod technique;
#[cfg(test)]
mod tests;
pub mod workload;

use crate::papers::Paper;

/// The paper.
pub static PAPER: Paper = Paper {
    name: "biliris",
    letter: 'B',
    citation: "Biliris 1992",
    about: "storage of large objects",
    question: "",
    bearing: "",
    experiments: figures::experiments,
};
