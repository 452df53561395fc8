//! The figures and tables of the paper. Owns the list of experiments; all share the runs of
//! [`runs`].

mod buffers;
mod growth;
mod modules;
mod physical;
mod runs;
mod tables;

use holdall_instrument::experiment::{Experiment, Figure};

const FIGURES: [Figure; 10] = [
    Figure::new("eickler-table1", "Size of the mapping", tables::sizes),
    Figure::new("eickler-7", "The Sequential workload", buffers::sequential),
    Figure::new("eickler-8", "The Random workload", buffers::random),
    Figure::new("eickler-9", "The Hot workload", buffers::hot),
    Figure::new("eickler-10", "Linear and matrix placement by module size", modules::run),
    Figure::new("eickler-table3", "Faults per new object", tables::created),
    Figure::new("eickler-direct", "Rules of direct mapping", tables::direct),
    Figure::new("eickler-load", "Linear hashing under load control", growth::load),
    Figure::new("eickler-reuse", "Slots of deleted objects", growth::reuse),
    Figure::new("eickler-physical", "Beside physical OIDs", physical::run),
];

/// All experiments of this paper, in the order of its figures.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Figure::list(&FIGURES)
}
