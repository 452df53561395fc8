//! The experiments: every figure and table of Biliris 1992, and what lies beyond it.

mod assumptions;
mod build;
mod carey;
mod engine;
mod large;
mod mix;
mod mix_claims;
mod modern;
mod statements;
mod tables;

use holdall_instrument::experiment::{Experiment, Figure, Needs};

const FIRST: [Figure; 3] = [
    Figure::new("biliris-shape", "Shapes of 10 and 100 MiB (§4.2)", tables::shapes),
    Figure::new("biliris-5", "Building 10 MiB by appends (figure 5)", build::building),
    Figure::new("biliris-6", "Scanning 10 MiB (figure 6)", build::scanning),
];
const TABLES: [Figure; 5] = [
    Figure::new("biliris-table2", "Read cost of Starburst (table 2)", tables::reads),
    Figure::new("biliris-table3", "Insert and delete cost of Starburst (table 3)", tables::updates),
    Figure::new("biliris-size", "Update cost by the object's size (§4.4.3)", tables::sizes),
    Figure::new("biliris-carey", "ESM beside Carey 1986 (§3.4, §4.5)", carey::carey),
    Figure::new("biliris-assumptions", "What Biliris leaves open, varied", assumptions::run),
];
const BEYOND: [Figure; 5] = [
    Figure::new("biliris-modern", "A disk of today, and the best T and page", modern::run)
        .needs(Needs::PRICE),
    Figure::new("biliris-large", "The mix of 10K on 100 MiB and 10 GiB", large::large)
        .needs(Needs::PRICE),
    Figure::new("biliris-skew", "Zipf places (0.99) and uniform ones", large::skew)
        .needs(Needs::PRICE),
    Figure::new("biliris-eos-size-independence", "Pages of an edit by size", engine::sizes),
    Figure::new("biliris-eos-mix", "EOS after 10,000 edits of 10 MiB", engine::mixed_edits),
];

/// All of them, in the paper's order.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Figure::list(&[&FIRST[..], &mix::FIGURES, &TABLES, &BEYOND].concat())
}
