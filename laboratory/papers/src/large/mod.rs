//! The large-object half of the lab: ESM, Starburst and EOS (Biliris 1992), and every
//! experiment on them.
//!
//! Owns: nothing itself. `store` is what lies beneath (areas, pool, index pages), `technique`
//! the family, `workload` and `runs` what is done to objects, `figures` the experiments.
//! Objects are used by one thread; the cache of results is shared. Errors are those of the disk
//! and of ranges outside the object unless stated otherwise.

mod figures;
mod runs;
mod store;
mod technique;
#[cfg(test)]
mod tests;
mod workload;

use holdall_instrument::paper::Paper;

/// The paper.
pub static PAPER: Paper = Paper {
    name: "biliris",
    letter: 'B',
    citation: "Biliris 1992",
    reference: "A. Biliris: The Performance of Three Database Storage Structures for Managing Large Objects. \
                Proc. ACM SIGMOD Conference, 1992, p. 276.",
    about: "storage of large objects",
    question: "Which structure stores an object of many pages best when any byte range of it is \
               read, inserted or deleted: fixed leaves under a count tree (ESM), growing segments \
               copied whole (Starburst), or segments of any length under a count tree (EOS)? The \
               paper counts seeks and pages on a simulated disk.",
    bearing: "The engine keeps large objects as EOS does: segments of any length from buddy \
              spaces, found through a tree of byte counts, so that an edit costs the same at any \
              size and a scan reads few long runs.",
    experiments: figures::experiments,
};
