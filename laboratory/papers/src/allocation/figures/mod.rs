//! The figures and tables of the paper (Iyengar §3, §4). Owns the list of experiments.

mod accesses;
mod batch;
mod odg;
mod scale;
mod shape;
mod survival;
mod throughput;
mod timed;
mod web;

use holdall_instrument::draw::table;
use holdall_instrument::experiment::{Experiment, Figure, Needs};
use holdall_instrument::picture::Table;

const FIGURES: &[Figure] = &[
    Figure::new("iyengar-accesses", "Accesses of an allocation and a deallocation", accesses::run),
    Figure::new("iyengar-crashes", "What a crash leaves, by TS, PL and PFL", survival::run),
    Figure::new("iyengar-9", "Web objects: a hash table, files and databases", web::run)
        .needs(Needs::ALONE),
    Figure::new(
        "iyengar-throughput",
        "Replacements, reads and space beside files",
        throughput::run,
    )
    .needs(Needs::ALONE),
    Figure::new("iyengar-12", "Web objects: space as they are written again", web::space),
    Figure::new("iyengar-14", "External fragmentation, by α and C", shape::external),
    Figure::new("iyengar-15", "Internal fragmentation, by α and C", shape::internal),
    Figure::new("iyengar-16", "Total fragmentation, by α and C", shape::total),
    Figure::new("iyengar-17", "External fragmentation, by the number of objects", scale::external),
    Figure::new("iyengar-18", "Total fragmentation, by the number of objects", scale::total),
    Figure::new("iyengar-19", "Batch allocation: throughput", batch::throughput),
    Figure::new("iyengar-20", "Batch allocation: external fragmentation", batch::external),
    Figure::new("iyengar-21", "Batch allocation: total fragmentation", batch::total),
    Figure::new("iyengar-odg", "The object dependence graph, tables 5 and 6", odg::run)
        .needs(Needs::ALONE),
];

/// All experiments of this paper, in the order of its figures.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Figure::list(FIGURES)
}

/// What all runs have in common, for the notes.
fn parameters() -> String {
    "Grain 512 bytes, maxQL 75, acceptable waste 2000 bytes (the paper's table 4); headers lie in \
     the blocks. Sizes from the truncated Pareto distribution with k = 512 bytes. The file may \
     grow without limit, so that a small request without a free block of its size goes to the \
     tail, as §2.4.1 says."
        .to_owned()
}

/// The head of a column, and what it says of a row.
type Column<T> = (&'static str, fn(&T) -> String);

/// A table with a row for each of `rows`.
fn columns<T>(id: &str, title: &str, rows: &[T], columns: &[Column<T>]) -> Table {
    let head: Vec<&str> = columns.iter().map(|column| column.0).collect();
    let cells = |row: &T| columns.iter().map(|column| (column.1)(row)).collect();
    table(id, title, &head, rows.iter().map(cells).collect())
}
