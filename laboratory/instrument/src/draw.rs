//! Panels, axes, series and tables, made with few words. Owns nothing.

use crate::picture::number::NO_VALUE;
use crate::picture::{Axis, Kind, PAPER, Panel, Scale, Series, Table};

/// An even axis that starts where its points do.
#[must_use]
pub fn axis(label: &str) -> Axis {
    axis_of(label, Scale::Linear)
}

/// An even axis from one value to another.
#[must_use]
pub fn axis_in(label: &str, from: f64, to: f64) -> Axis {
    Axis { range: Some((from, to)), ..axis(label) }
}

/// An axis of powers of ten.
#[must_use]
pub fn log_axis(label: &str) -> Axis {
    axis_of(label, Scale::Log10)
}

/// An axis of the scale given.
#[must_use]
pub fn axis_of(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale, range: None, ticks: Vec::new() }
}

/// A panel of lines.
#[must_use]
pub fn lines(id: &str, title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Panel {
    panel(id, title, Kind::Lines, x, y, series)
}

/// A panel of bars.
#[must_use]
pub fn bars(id: &str, title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Panel {
    panel(id, title, Kind::Bars, x, y, series)
}

fn panel(id: &str, title: &str, kind: Kind, x: Axis, y: Axis, series: Vec<Series>) -> Panel {
    let (id, title, caption) = (id.to_owned(), title.to_owned(), String::new());
    Panel { id, title, caption, kind, x, y, series }
}

/// A line of our own numbers.
#[must_use]
pub fn series(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.into(), points, reference: false }
}

/// The paper's own numbers, read from its text or tables, beside the series `of` ours: marks
/// without a line, in the shape of that series. The legend calls them `paper: of`, or `paper` if
/// `of` is empty because they stand beside all series.
#[must_use]
pub fn paper_points(of: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
    let name = match of.into() {
        of if of.is_empty() => PAPER.to_owned(),
        of if of.starts_with(PAPER) => of,
        of => format!("{PAPER}: {of}"),
    };
    Series { reference: true, ..series(name, points) }
}

/// A table.
#[must_use]
pub fn table(id: &str, title: &str, head: &[&str], rows: Vec<Vec<String>>) -> Table {
    let head = head.iter().map(|&h| h.to_owned()).collect();
    Table { id: id.to_owned(), title: title.to_owned(), head, rows }
}

/// A number with three figures or so; [`NO_VALUE`] if it is none.
#[must_use]
pub fn number(n: f64) -> String {
    match n.abs() {
        a if !a.is_finite() => NO_VALUE.to_owned(),
        a if a >= 1000.0 || a == 0.0 || (a - a.round()).abs() < 1e-9 => format!("{n:.0}"),
        a if a >= 100.0 => format!("{n:.1}"),
        a if a >= 1.0 => format!("{n:.2}"),
        a if a >= 0.1 => format!("{n:.3}"),
        _ => format!("{n:.2e}"),
    }
}

/// A share as percent: 0.1234 is `12.3 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    if share.is_finite() { format!("{:.1} %", share * 100.0) } else { NO_VALUE.to_owned() }
}
