//! The picture: every row's ratio to its best other store.

use super::read::{Line, Results, Row};
use super::{BY_NAME, BY_OID, PICTURE};
use holdall_instrument::picture::{Axis, Kind, Panel, Scale, Series};

/// Ends of the axis. Ratios beyond stand at its ends: some stores are a million times slower in
/// some rows, and a longer axis would hide what is near one.
const LEAST: f64 = 0.01;
const MOST: f64 = 100.0;

/// Rows from the top down in the order of the workloads; only those that Holdall and another
/// store have.
pub(super) fn panel(results: &Results) -> Panel {
    let both =
        |row: &&Row| row.best_other().is_some() && row.of(BY_NAME).or(row.of(BY_OID)).is_some();
    let mut rows = Vec::new();
    for workload in &results.workloads {
        for row in workload.rows.iter().filter(both) {
            rows.push((workload.title(row), row));
        }
    }
    // An axis begins at the bottom.
    let place = |ratio: f64| ratio.clamp(LEAST, MOST);
    let height = |i: usize| -(i as f64);
    let mut series = Vec::new();
    for store in stores(&rows) {
        let of = |(i, (_, row)): (usize, &(String, &Row))| {
            Some((place(row.ratio(row.of(store)?)?), height(i)))
        };
        let points = rows.iter().enumerate().filter_map(of).collect();
        series.push(Series { name: store.into(), reference: false, points });
    }
    let ours = series.iter().filter(|s| s.name == BY_NAME || s.name == BY_OID).count();
    let ticks = rows.iter().enumerate().map(|(i, (name, _))| (height(i), name.clone())).collect();
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
fn stores<'a>(rows: &[(String, &'a Row)]) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    let ours = [BY_NAME, BY_OID];
    let own = |row: &&'a Row| ours.iter().filter_map(|s| row.of(s)).collect::<Vec<&Line>>();
    let lines = rows.iter().flat_map(|(_, row)| own(row));
    for line in lines.chain(rows.iter().flat_map(|(_, row)| row.others())) {
        if !all.contains(&&*line.store) {
            all.push(&line.store);
        }
    }
    all
}
