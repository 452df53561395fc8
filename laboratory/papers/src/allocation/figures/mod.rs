//! The figures and tables of the paper (Iyengar §3, §4). Owns the list of experiments.

mod accesses;
mod batch;
mod odg;
mod scale;
mod shape;
mod site;
mod sizes;
mod space;
mod survival;
mod throughput;
mod timed;
mod web;

use holdall_instrument::draw::{axis, axis_in, axis_of, lines, table};
use holdall_instrument::experiment::{Experiment, Figure, Needs};
use holdall_instrument::picture::{Axis, Panel, Scale, Series, Table};

const FIGURES: &[Figure] = &[
    Figure::new("iyengar-accesses", "Accesses of an allocation and a deallocation", accesses::run),
    Figure::new("iyengar-crashes", "What a crash leaves, by TS, PL and PFL", survival::run),
    Figure::new("iyengar-9", "Web objects: a hash table, files and databases", web::run)
        .needs(Needs::ALONE),
    Figure::new("iyengar-throughput", "Replacements, reads and space", throughput::run)
        .needs(Needs::ALONE),
    Figure::new("iyengar-12", "Web objects: space as they are written again", space::run),
    Figure::new("iyengar-13", "Sizes of the DEC proxy log", sizes::run),
    Figure::new("iyengar-14", "External fragmentation, by α and C", shape::external),
    Figure::new("iyengar-15", "Internal fragmentation, by α and C", shape::internal),
    Figure::new("iyengar-16", "Total fragmentation, by α and C", shape::total),
    Figure::new("iyengar-17", "External fragmentation, by the number of objects", scale::external),
    Figure::new("iyengar-18", "Total fragmentation, by the number of objects", scale::total),
    Figure::new("iyengar-19", "Batch allocation: throughput", batch::throughput),
    Figure::new("iyengar-20", "Batch allocation: external fragmentation", batch::external),
    Figure::new("iyengar-21", "Batch allocation: total fragmentation", batch::total),
    Figure::new("iyengar-odg", "The site's files, tables 5 and 6, figures 22 to 25", odg::run)
        .needs(Needs::ALONE),
];

/// All experiments of this paper, in the order of its figures.
pub fn experiments() -> Vec<Box<dyn Experiment>> {
    Figure::list(FIGURES)
}

/// The head of a column, and what it says of a row.
type Column<T> = (&'static str, fn(&T) -> String);

/// A table with a row for each of `rows`.
fn columns<T>(id: &str, title: &str, rows: &[T], columns: &[Column<T>]) -> Table {
    let head: Vec<&str> = columns.iter().map(|column| column.0).collect();
    let cells = |row: &T| columns.iter().map(|column| (column.1)(row)).collect();
    table(id, title, &head, rows.iter().map(cells).collect())
}

/// An axis of names in the order given, at 0, 1, 2 ..
fn ranks<S: ToString>(label: &str, names: impl IntoIterator<Item = S>) -> Axis {
    let ticks = names.into_iter().enumerate().map(|(i, name)| (i as f64, name.to_string()));
    Axis { ticks: ticks.collect(), ..axis_of(label, Scale::Ordinal) }
}

/// A panel of fragmentation, whose axis begins at 1: none.
fn fragmentation([id, title, what]: [&str; 3], x: Axis, series: Vec<Series>) -> Panel {
    let values = series.iter().flat_map(|s| &s.points).map(|p| p.1);
    let most = values.filter(|v| v.is_finite()).fold(1.05, f64::max);
    let y = axis_in(&format!("{what} (from 1, none)"), 1.0, most + (most - 1.0) * 0.05);
    lines(id, title, x, y, series)
}

/// Fragmentation by the number of replacements.
fn curves(id: &str, title: &str, what: &str, series: Vec<Series>) -> Panel {
    fragmentation([id, title, what], axis("replacements"), series)
}
