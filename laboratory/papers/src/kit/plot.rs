//! Panels that say what they show, with an axis upwards that begins at 0. Owns nothing.

use holdall_instrument::draw::{axis_in, lines};
use holdall_instrument::picture::{Axis, Panel, Series};

/// What a panel is called and what there is to see in it.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// Of its files.
    pub id: &'a str,
    /// Above it.
    pub title: &'a str,
    /// Below it.
    pub caption: &'a str,
}

/// A panel of lines whose axis upwards, called `y`, begins at 0.
#[must_use]
pub fn from_zero(named: Named<'_>, x: Axis, y: &str, series: Vec<Series>) -> Panel {
    let points = series.iter().flat_map(|s| &s.points);
    let most = points.map(|p| p.1).filter(|y| y.is_finite()).fold(0.0, f64::max);
    let most = if most > 0.0 { most * 1.04 } else { 1.0 };
    captioned(named, x, axis_in(y, 0.0, most), series)
}

/// A panel of lines with both axes as given.
#[must_use]
pub fn captioned(named: Named<'_>, x: Axis, y: Axis, series: Vec<Series>) -> Panel {
    let caption = named.caption.to_owned();
    Panel { caption, ..lines(named.id, named.title, x, y, series) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_begins_at_zero_though_no_point_does() {
        let series = vec![holdall_instrument::draw::series("a", vec![(1.0, 95.0), (2.0, 100.0)])];
        let named = Named { id: "i", title: "t", caption: "c" };
        let panel = from_zero(named, holdall_instrument::draw::axis("x"), "y", series);
        assert_eq!((panel.y.range, panel.caption.as_str()), (Some((0.0, 104.0)), "c"));
    }
}
