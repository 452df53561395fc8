//! The picture: every row's ratio to its best other store.
//!
//! Owns: its form and the ends of its axis.

use super::PICTURE;
use super::read::{Line, Results, Row};
use crate::contest::is_ours;
use crate::picture::{Axis, Kind, Panel, Scale, Series};

/// Ends of the axis. Ratios beyond stand at its ends: some stores are a million times slower in
/// some rows, and a longer axis would hide what is near one.
const LEAST: f64 = 0.01;
const MOST: f64 = 100.0;

/// One row of the picture.
struct Shown<'a> {
    title: String,
    row: &'a Row,
    /// The ratio that it shows.
    ratio: fn(&Row, &Line) -> Option<f64>,
}

/// Rows of a run from the top down: those that Holdall and another store have, and for workloads
/// of `space` the space in the last such row.
fn rows<'a>(results: &'a Results, space: &[&str]) -> Vec<Shown<'a>> {
    let mut rows = Vec::new();
    for workload in &results.workloads {
        let mut all = workload.rows.iter().filter(|row| row.compares());
        let shown = |row| Shown { title: workload.title(row), row, ratio: Row::ratio };
        rows.extend(all.clone().map(shown));
        let has = |row: &&Row| row.ours().any(|line| row.space_ratio(line).is_some());
        if let Some(row) = all.rfind(has).filter(|_| space.contains(&&*workload.workload)) {
            let title = format!("{}: space", workload.title(row));
            rows.push(Shown { title, row, ratio: Row::space_ratio });
        }
    }
    rows
}

/// The whole picture.
pub(super) fn panel(results: &Results, space: &[&str]) -> Panel {
    let rows = rows(results, space);
    // An axis begins at the bottom.
    let place = |ratio: f64| ratio.clamp(LEAST, MOST);
    let height = |i: usize| -(i as f64);
    let mut series = Vec::new();
    for store in stores(&rows) {
        let of = |(i, shown): (usize, &Shown<'_>)| {
            Some((place((shown.ratio)(shown.row, shown.row.of(store)?)?), height(i)))
        };
        let points = rows.iter().enumerate().filter_map(of).collect();
        series.push(Series { name: store.into(), reference: false, points });
    }
    let ours = series.iter().filter(|s| is_ours(&s.name)).count();
    let ticks = rows.iter().enumerate().map(|(i, r)| (height(i), r.title.clone())).collect();
    let mut x = String::from("times as good as the best other store");
    if results.workloads.iter().any(|w| w.disturbed() > 0) {
        x.push_str(" († disturbed by other work)");
    }
    let given =
        [(LEAST, "≤ 0.01"), (0.1, "0.1"), (0.5, "0.5"), (1.0, "1"), (2.0, "2"), (10.0, "10")];
    let at = given.into_iter().chain([(MOST, "≥ 100")]).map(|(v, name)| (v, name.into())).collect();
    Panel {
        id: PICTURE.into(),
        title: format!("Holdall beside the best other store: {}", results.name()),
        caption: String::new(),
        kind: Kind::Dots { large: ours },
        x: Axis { label: x, scale: Scale::Log10, range: Some((LEAST, MOST)), ticks: at },
        y: Axis { label: String::new(), scale: Scale::Ordinal, range: None, ticks },
        series,
    }
}

/// Holdall's names first, then the other stores in the order they come.
fn stores<'a>(rows: &[Shown<'a>]) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    let ours = rows.iter().flat_map(|shown| shown.row.ours());
    for line in ours.chain(rows.iter().flat_map(|shown| shown.row.others())) {
        if !all.contains(&&*line.store) {
            all.push(&line.store);
        }
    }
    all
}
