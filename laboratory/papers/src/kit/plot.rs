//! Panels with an axis upwards that begins at 0, and heads of tables. Owns nothing.

use holdall_instrument::draw::{axis_in, lines};
use holdall_instrument::picture::{Axis, Panel, Series};

/// A panel of lines, called `id` in its files and `title` above it, whose axis upwards, called
/// `y`, begins at 0.
#[must_use]
pub fn from_zero([id, title]: [&str; 2], x: Axis, y: &str, series: Vec<Series>) -> Panel {
    lines(id, title, x, zero_axis(y, &series), series)
}

/// An axis upwards from 0 to a little more than the largest value drawn.
#[must_use]
pub fn zero_axis(label: &str, series: &[Series]) -> Axis {
    let points = series.iter().flat_map(|s| &s.points);
    let most = points.map(|p| p.1).filter(|y| y.is_finite()).fold(0.0, f64::max);
    axis_in(label, 0.0, if most > 0.0 { most * 1.04 } else { 1.0 })
}

/// The heads of a table's columns, written in one line with bars between.
#[must_use]
pub fn heads(line: &str) -> Vec<&str> {
    line.split('|').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_begins_at_zero_though_no_point_does() {
        let series = vec![holdall_instrument::draw::series("a", vec![(1.0, 95.0), (2.0, 100.0)])];
        let panel = from_zero(["i", "t"], holdall_instrument::draw::axis("x"), "y", series);
        assert_eq!(panel.y.range, Some((0.0, 104.0)));
    }
}
