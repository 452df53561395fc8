//! Lines with marks, and bars.

use super::axis::Place;
use super::canvas::{CURVE, Canvas};
use super::layout::{Area, Layout};
use super::{Panel, palette};

/// Radius of a mark.
const RADIUS: f64 = 4.6;
/// Where points are nearer to each other than this, not each gets a mark: those between are on
/// the line only.
const APART: f64 = 16.0;
/// Distance of marks then.
const FAR_APART: f64 = 48.0;
/// Each series' marks then begin a little later than those before it, so that lines that run
/// over one another show whose they are.
const PHASES: usize = 6;

type Spot = (f64, f64);

/// Draws every series as a line. A point that cannot be placed breaks it.
pub(crate) fn lines(panel: &Panel, layout: &Layout, canvas: &mut Canvas) {
    let runs: Vec<Vec<Vec<Spot>>> = panel.series.iter().map(|s| runs(&s.points, layout)).collect();
    let reference = |index: usize| panel.series.get(index).is_some_and(|s| s.reference);
    for (index, runs) in runs.iter().enumerate().filter(|(index, _)| !reference(*index)) {
        for run in runs {
            for part in clip(run, layout.plot) {
                canvas.line(&part, palette::colour(index), CURVE);
            }
        }
    }
    // Marks over all lines, so that none is hidden by a later line.
    for (index, runs) in runs.iter().enumerate() {
        for spot in runs.iter().flat_map(|run| marked(run, index)) {
            if !inside(spot, layout.plot) {
                continue;
            }
            if reference(index) {
                canvas.reference(spot, panel.own_of(index));
            } else {
                canvas.mark(spot, RADIUS, index, palette::colour(index));
            }
        }
    }
}

/// The points of a run that get a mark.
fn marked(run: &[Spot], series: usize) -> Vec<Spot> {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return Vec::new() };
    let spacing = (last.0 - first.0).abs() / (run.len() - 1).max(1) as f64;
    if run.len() < PHASES || spacing >= APART {
        return run.to_vec();
    }
    let mut next = first.0 + FAR_APART * (series % PHASES) as f64 / PHASES as f64;
    let mut kept = Vec::new();
    for &spot in run {
        if spot.0 >= next {
            kept.push(spot);
            // The next of this series' own places, which are all FAR_APART from each other.
            next += FAR_APART * (1.0 + ((spot.0 - next) / FAR_APART).floor());
        }
    }
    if kept.is_empty() {
        kept.push(*first);
    }
    kept
}

/// Points with a place, as runs without a gap.
fn runs(points: &[(f64, f64)], layout: &Layout) -> Vec<Vec<Spot>> {
    let mut runs = vec![Vec::new()];
    for &(x, y) in points {
        match (layout.x.place(x), layout.y.place(y)) {
            (Place::At(x), Place::At(y)) => {
                if let Some(run) = runs.last_mut() {
                    run.push(spot(layout.plot, x, y));
                }
            }
            _ => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// The place of fractions `x` and `y` in the plot.
pub(crate) fn spot(plot: Area, x: f64, y: f64) -> Spot {
    let across = plot.left + x * (plot.right - plot.left);
    (across, plot.bottom - y * (plot.bottom - plot.top))
}

/// Within the plot, but for rounding.
pub(crate) fn inside((x, y): Spot, plot: Area) -> bool {
    (plot.left - 0.1..=plot.right + 0.1).contains(&x)
        && (plot.top - 0.1..=plot.bottom + 0.1).contains(&y)
}

/// The parts of a line within the plot (Liang and Barsky's way, piece by piece).
fn clip(run: &[Spot], plot: Area) -> Vec<Vec<Spot>> {
    let mut parts: Vec<Vec<Spot>> = Vec::new();
    for pair in run.windows(2) {
        let Some((from, to)) = clip_piece(pair[0], pair[1], plot) else { continue };
        match parts.last_mut() {
            Some(part) if part.last() == Some(&from) => part.push(to),
            _ => parts.push(vec![from, to]),
        }
    }
    parts
}

fn clip_piece(a: Spot, b: Spot, plot: Area) -> Option<(Spot, Spot)> {
    if inside(a, plot) && inside(b, plot) {
        return Some((a, b));
    }
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    let edges = [
        (-dx, a.0 - plot.left),
        (dx, plot.right - a.0),
        (-dy, a.1 - plot.top),
        (dy, plot.bottom - a.1),
    ];
    for (toward, room) in edges {
        if toward == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if toward < 0.0 {
            enter = enter.max(room / toward);
        } else {
            leave = leave.min(room / toward);
        }
    }
    let at = |t: f64| (a.0 + t * dx, a.1 + t * dy);
    (enter <= leave).then(|| (at(enter), at(leave)))
}

/// Draws the series' bars side by side at each x, each with its mark at its end, and numbers
/// from elsewhere as marks on the bars that they belong to, or in the middle of the group.
pub(crate) fn bars(panel: &Panel, layout: &Layout, canvas: &mut Canvas) {
    let plot = layout.plot;
    let slot = layout.x.slot() * (plot.right - plot.left);
    let ours: Vec<usize> =
        (0..panel.series.len()).filter(|i| !panel.series[*i].reference).collect();
    let width = slot * 0.8 / ours.len().max(1) as f64;
    let base = layout.y.base();
    let mut above = Vec::new();
    for (index, series) in panel.series.iter().enumerate() {
        let own = panel.own_of(index);
        let at = ours.iter().position(|i| *i == own);
        for &(x, y) in &series.points {
            let (Place::At(x), Place::At(y)) = (layout.x.place(x), layout.y.place(y)) else {
                continue;
            };
            if !(0.0..=1.0).contains(&x) {
                continue;
            }
            let (middle, end) = spot(plot, x, y.clamp(0.0, 1.0));
            let left = middle - slot * 0.4 + width * at.unwrap_or(0) as f64;
            if series.reference {
                above.push(((at.map_or(middle, |_| left + width / 2.0), end), own));
                continue;
            }
            let (_, foot) = spot(plot, x, base);
            let gap = (width * 0.08).min(1.0);
            let bar = Area {
                left: left + gap,
                right: left + width - gap,
                top: end.min(foot),
                bottom: end.max(foot),
            };
            canvas.rect(bar, palette::colour(index));
            if width >= RADIUS * 1.5 && ours.len() > 1 && y <= 1.0 {
                let radius = RADIUS.min(width * 0.3);
                let beyond = if end <= foot { -radius * 1.7 } else { radius * 1.7 };
                canvas.mark(
                    (left + width / 2.0, end + beyond),
                    radius,
                    index,
                    palette::colour(index),
                );
            }
        }
    }
    for (spot, own) in above {
        canvas.reference(spot, own);
    }
}
