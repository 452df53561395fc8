//! Marks without lines.

use super::Panel;
use super::axis::Place;
use super::canvas::Canvas;
use super::layout::Layout;
use super::lines::{inside, spot};
use super::palette::{self, AXIS, FAINT};

/// Radius of the marks that stand out.
const LARGE: f64 = 5.6;
/// Radius of the others.
const SMALL: f64 = 3.0;

/// Draws every point as a mark; those that stand out come last, so that none hides them.
pub(crate) fn dots(panel: &Panel, large: usize, layout: &Layout, canvas: &mut Canvas) {
    let plot = layout.plot;
    if let Place::At(x) = layout.x.place(1.0)
        && (0.0..=1.0).contains(&x)
    {
        canvas.line(&[spot(plot, x, 0.0), spot(plot, x, 1.0)], AXIS, 1.6);
    }
    for (index, series) in panel.series.iter().enumerate().rev() {
        for &(x, y) in &series.points {
            if let (Place::At(x), Place::At(y)) = (layout.x.place(x), layout.y.place(y)) {
                let at = spot(plot, x, y);
                if inside(at, plot) {
                    dot(at, index, large, canvas);
                }
            }
        }
    }
}

/// The mark of the series at `index`.
pub(crate) fn dot(at: (f64, f64), index: usize, large: usize, canvas: &mut Canvas) {
    if index < large {
        canvas.mark(at, LARGE, index, palette::colour(index))
    } else {
        canvas.mark(at, SMALL, index, FAINT)
    }
}

#[cfg(test)]
mod tests {
    use crate::picture::{Axis, Kind, Panel, Scale, Series};

    #[test]
    fn every_row_has_its_height_and_ours_stand_out() {
        let axis = |scale| Axis { label: "x".into(), scale, range: None, ticks: Vec::new() };
        let series = |name: &str, from: u32| Series {
            name: name.into(),
            reference: false,
            points: (0..40).map(|i| (f64::from(from + i), -f64::from(i))).collect(),
        };
        let panel = Panel {
            id: "p".into(),
            title: "p".into(),
            caption: String::new(),
            kind: Kind::Dots { large: 1 },
            x: axis(Scale::Log10),
            y: axis(Scale::Ordinal),
            series: vec![series("ours", 1), series("other", 3)],
        };
        assert!(panel.size().1 > 40 * 18);
        let svg = panel.svg();
        // Forty points and the legend's sample.
        assert_eq!(svg.matches("<circle").count(), 41);
        assert_eq!(svg.matches("fill=\"#8A929B\"").count(), 41);
        assert!(!svg.contains("Not drawn"));
    }
}
