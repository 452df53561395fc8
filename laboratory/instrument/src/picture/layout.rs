//! Where everything of a drawing goes: title, plot, labels, legend and remarks, one above the
//! other, none over another.

use super::axis::{Mapped, Place, Use};
use super::axis_label::{self, Labels};
use super::{Axis, Kind, Panel, Scale, text};

/// Width of a drawing.
pub(crate) const WIDTH: f64 = 760.0;
/// Height of the plot itself if nothing else is asked for.
const PLOT: f64 = 330.0;
/// Height of a row of an ordinal axis upwards.
const ROW: f64 = 18.0;
/// The plot is never lower than this.
const LEAST_PLOT: f64 = 120.0;
/// Around everything.
const EDGE: f64 = 14.0;

pub(crate) const TITLE: f64 = 16.0;
pub(crate) const LABEL: f64 = 13.0;
pub(crate) const TICK: f64 = 12.0;
pub(crate) const REMARK: f64 = 11.5;
/// From one line of text to the next, in font sizes.
pub(crate) const LEADING: f64 = 1.35;
/// Of the sample of a line in the legend, with the space behind it.
pub(crate) const SAMPLE: f64 = 44.0;
const LEGEND_ROW: f64 = 22.0;

/// A rectangle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) right: f64,
    pub(crate) bottom: f64,
}

/// An entry of the legend: which series, where, what is written.
pub(crate) struct Entry {
    pub(crate) series: usize,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) name: String,
}

/// A drawing's places.
pub(crate) struct Layout {
    pub(crate) height: f64,
    pub(crate) title: Vec<String>,
    pub(crate) plot: Area,
    pub(crate) x: Mapped,
    pub(crate) y: Mapped,
    pub(crate) x_labels: Labels,
    pub(crate) x_name: Vec<String>,
    pub(crate) y_name: Vec<String>,
    pub(crate) legend: Vec<Entry>,
    pub(crate) remarks: Vec<String>,
    /// Top of the remarks.
    pub(crate) remarks_at: f64,
}

impl Layout {
    /// Sets `panel`, `height` high if that is enough; by itself as high as reads well.
    pub(crate) fn new(panel: &Panel, height: Option<f64>) -> Self {
        let across = Axis { scale: x_scale(panel), ..panel.x.clone() };
        let xs: Vec<f64> = drawable(panel, |p| p.0).collect();
        let mut ys: Vec<f64> = drawable(panel, |p| p.1).collect();
        if panel.kind == Kind::Bars {
            // On an axis of powers, whose beginning is arbitrary, the least bar is seen too.
            ys.extend(ys.iter().copied().filter(|y| *y > 0.0).reduce(f64::min).map(|y| y / 2.0));
        }
        let up = if panel.kind == Kind::Bars { Use::UpBars } else { Use::Up };
        let y = Mapped::new(&panel.y, &ys, up, 6);

        let title = text::wrap(&panel.title, TITLE, true, WIDTH - 2.0 * EDGE);
        let top = EDGE + title.len() as f64 * TITLE * LEADING + 12.0;
        let y_name = text::wrap(&panel.y.label, LABEL, false, PLOT);
        let widest = y.ticks.iter().map(|t| text::width(&t.1, TICK, false)).fold(0.0, f64::max);
        let left = EDGE + y_name.len() as f64 * LABEL * LEADING + 4.0 + widest + 10.0;
        // Half of a label may stand out beyond the axis' end.
        let right = WIDTH - EDGE - 14.0;
        let (x, x_labels) = fit_x(&across, &xs, right - left);

        let x_name = text::wrap(&panel.x.label, LABEL, false, right - left);
        let mut legend = legend(panel);
        let rows = legend.last().map_or(0.0, |e| e.y + LEGEND_ROW);
        let below_all = [&panel.caption].into_iter().filter(|c| !c.is_empty()).cloned();
        let remarks: Vec<String> = below_all
            .chain(axes(&x, &y))
            .chain(hidden(panel, &x, &y))
            .chain(remarks(panel, &x, &y))
            .collect::<Vec<_>>()
            .iter()
            .flat_map(|r| text::wrap(r, REMARK, false, WIDTH - 2.0 * EDGE))
            .collect();
        let remarks_height = remarks.len() as f64 * REMARK * LEADING;
        let below = 8.0
            + x_labels.height
            + 4.0
            + x_name.len() as f64 * LABEL * LEADING
            + if rows > 0.0 { rows + 8.0 } else { 0.0 }
            + if remarks.is_empty() { 0.0 } else { remarks_height + 6.0 }
            + EDGE;
        let rows_of_y = if panel.y.scale == Scale::Ordinal { y.ticks.len() } else { 0 };
        let tall =
            height.map_or(PLOT.max(ROW * rows_of_y as f64), |h| (h - top - below).max(LEAST_PLOT));
        let bottom = top + tall;
        let height = bottom + below;
        let legend_at =
            height - EDGE - remarks_height - rows - if remarks.is_empty() { 0.0 } else { 6.0 };
        for entry in &mut legend {
            entry.y += legend_at + LEGEND_ROW / 2.0;
        }
        Self {
            height,
            title,
            plot: Area { left, top, right, bottom },
            x,
            y,
            x_labels,
            x_name,
            y_name,
            legend,
            remarks,
            remarks_at: height - EDGE - remarks_height,
        }
    }
}

fn x_scale(panel: &Panel) -> Scale {
    if panel.kind == Kind::Bars { Scale::Ordinal } else { panel.x.scale }
}

/// The coordinates of points that both axes can hold, so that a point left out widens neither.
fn drawable(panel: &Panel, part: fn(&(f64, f64)) -> f64) -> impl Iterator<Item = f64> {
    let log = |scale| matches!(scale, Scale::Log10 | Scale::Log2);
    let (log_x, log_y) = (log(x_scale(panel)), log(panel.y.scale));
    let bars = panel.kind == Kind::Bars;
    let within = move |v: f64, log: bool| v.is_finite() && (!log || v > 0.0);
    let points = panel.series.iter().flat_map(|s| &s.points);
    points.filter(move |p| within(p.0, log_x) && (bars || within(p.1, log_y))).map(part)
}

/// As many ticks as leave their labels in one row, for scales that choose their ticks.
fn fit_x(axis: &Axis, values: &[f64], width: f64) -> (Mapped, Labels) {
    for wanted in (3..=9).rev() {
        let mapped = Mapped::new(axis, values, Use::Across, wanted);
        let labels = axis_label::set(&mapped.ticks, width, TICK);
        if labels.stand == axis_label::Stand::Rows(1) {
            return (mapped, labels);
        }
    }
    let mapped = Mapped::new(axis, values, Use::Across, 9);
    let labels = axis_label::set(&mapped.ticks, width, TICK);
    (mapped, labels)
}

/// Entries in columns as wide as the longest name; `y` counts from the legend's top. A lone
/// series without a name needs none.
fn legend(panel: &Panel) -> Vec<Entry> {
    if panel.series.iter().all(|s| s.name.trim().is_empty()) {
        return Vec::new();
    }
    let limit = WIDTH - 2.0 * EDGE;
    let names: Vec<String> = panel
        .series
        .iter()
        .map(|s| text::cut(&text::clean(&s.name), TICK, false, limit - SAMPLE))
        .collect();
    let widest = names.iter().map(|n| text::width(n, TICK, false)).fold(0.0, f64::max);
    let column = SAMPLE + widest + 22.0;
    let columns = (((limit + 22.0) / column) as usize).clamp(1, names.len().max(1));
    let rows = names.len().div_ceil(columns);
    let columns = names.len().div_ceil(rows.max(1));
    let entry = |(series, name)| Entry {
        series,
        x: EDGE + (series / rows) as f64 * (limit / columns as f64).min(column),
        y: (series % rows) as f64 * LEGEND_ROW,
        name,
    };
    let mut entries: Vec<Entry> = names.into_iter().enumerate().map(entry).collect();
    // The caller takes the height from the last entry.
    entries.sort_by(|a, b| a.y.total_cmp(&b.y));
    entries
}

/// Which axes do not count evenly from zero.
fn axes(x: &Mapped, y: &Mapped) -> Option<String> {
    let part = |name: &str, axis: &Mapped| axis.oddity().map(|odd| format!("{name} {odd}"));
    let parts: Vec<String> =
        [part("across", x), part("upwards", y)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("Axes: {}.", parts.join("; ")))
}

/// Lines that can hardly be distinguished: nearly all points of the later within three units of
/// the drawing of those of an earlier one.
fn hidden(panel: &Panel, x: &Mapped, y: &Mapped) -> Vec<String> {
    let place = |p: &(f64, f64)| match (x.place(p.0), y.place(p.1)) {
        (Place::At(x), Place::At(y)) => Some((x * WIDTH, y * PLOT)),
        _ => None,
    };
    let near = |a: Option<(f64, f64)>, b: Option<(f64, f64)>| match (a, b) {
        (Some(a), Some(b)) => (a.0 - b.0).abs() < 3.0 && (a.1 - b.1).abs() < 3.0,
        _ => false,
    };
    let ours = |s: &&super::Series| !s.reference && s.points.len() > 1;
    let lies_on = |upper: &super::Series, lower: &super::Series| {
        let pairs = upper.points.iter().zip(&lower.points);
        let same = pairs.filter(|(a, b)| near(place(a), place(b))).count();
        upper.points.len() == lower.points.len() && 10 * same >= 9 * upper.points.len()
    };
    let mut out = Vec::new();
    if panel.kind != Kind::Lines {
        return out;
    }
    for (at, upper) in panel.series.iter().enumerate().filter(|(_, s)| ours(s)) {
        let under = panel.series[..at].iter().filter(ours).find(|lower| lies_on(upper, lower));
        out.extend(under.map(|lower| format!("{} lies on {}.", upper.name, lower.name)));
    }
    out
}

/// What was left out of the drawing, and why.
fn remarks(panel: &Panel, x: &Mapped, y: &Mapped) -> Vec<String> {
    let (mut odd, mut low, mut outside) = (0u64, 0u64, 0u64);
    let bars = panel.kind == Kind::Bars;
    for &(px, py) in panel.series.iter().flat_map(|s| &s.points) {
        match (x.place(px), y.place(py)) {
            (Place::NotFinite, _) | (_, Place::NotFinite) => odd += 1,
            (Place::NotPositive, _) | (_, Place::NotPositive) => low += 1,
            (Place::At(ax), Place::At(ay)) => {
                let inside = |at: f64| (-1e-6..=1.0 + 1e-6).contains(&at);
                outside += u64::from(!inside(ax) || !(inside(ay) || bars && ay < 0.0));
            }
        }
    }
    let say = |count: u64, why: &str| {
        let points = if count == 1 { "point" } else { "points" };
        (count > 0).then(|| format!("Not drawn: {count} {points} {why}."))
    };
    let found = [
        say(odd, "without a finite value"),
        say(low, "of zero or less, which a logarithmic axis cannot show"),
        say(outside, "outside of the axes"),
    ];
    found.into_iter().flatten().collect()
}
