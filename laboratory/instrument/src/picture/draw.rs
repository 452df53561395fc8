//! The drawing: what is painted on the canvas, and the tags around it.
//!
//! Dashes and the colours of dark screens are rules of a style sheet in the picture.

use std::fmt::Write as _;

use super::axis_label::Stand;
use super::canvas::{Anchor, CURVE, Canvas, Look, look};
use super::layout::{Area, Entry, LABEL, LEADING, Layout, REMARK, SAMPLE, TICK, TITLE, WIDTH};
use super::lines::spot;
use super::palette::{self, AXIS, GRID, GROUND, INK, hex};
use super::{Kind, Panel, dots, lines, table, text};

const THIN: f64 = 1.0;
/// Of the strokes that mark an axis without zero; no other stroke has it.
const CUT: f64 = 1.5;

impl Panel {
    /// The drawing as an SVG document, 760 points wide and as high as it needs; it stands as
    /// well inside an HTML page.
    ///
    /// It has a ground of its own, white or, on screens set to dark, nearly black. Points that
    /// cannot be drawn are left out and counted in a remark below; a panel without any point
    /// that can be drawn says so. Text is in the viewer's sans-serif font. Takes time and
    /// space in proportion to the points.
    #[must_use]
    pub fn svg(&self) -> String {
        self.svg_of(None).0
    }

    /// Width and height of [`Self::svg`], in points.
    #[must_use]
    pub fn size(&self) -> (u32, u32) {
        (WIDTH as u32, Layout::new(self, None).height.ceil() as u32)
    }

    /// The document and its height, which is `height` unless that is too little.
    pub(crate) fn svg_of(&self, height: Option<f64>) -> (String, f64) {
        let layout = Layout::new(self, height);
        let height = layout.height.ceil();
        let mut canvas = Canvas::default();
        paint_all(self, &layout, &mut canvas);
        (dress(self, &canvas.body(), height), height)
    }
}

/// Puts our first tag, a title for readers who cannot see, and the style sheet around `body`.
fn dress(panel: &Panel, body: &str, height: f64) -> String {
    let title = table::escape(&panel.title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"holdall-plot\" width=\"{WIDTH}\" \
         height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{title}\">\n\
         <title>{title}</title>\n<style>{}</style>\n{body}</svg>\n",
        style(panel.series.len())
    )
}

/// The style sheet for `series` series. Rules name the picture's class, so that many pictures
/// can stand in one page; equal colours mean equal rules in all of them.
fn style(series: usize) -> String {
    let mut css = String::new();
    for index in 0..series {
        if let Some(dash) = palette::dash(index) {
            let colour = hex(palette::colour(index));
            // Writing to a string cannot fail.
            let _ = write!(
                css,
                "\n.holdall-plot polyline[stroke=\"{colour}\"][stroke-width=\"{CURVE}\"]\
                 {{stroke-dasharray:{dash}}}"
            );
        }
    }
    let dark = [
        ("fill", hex(GROUND), "#161B22"),
        ("fill", hex(INK), "#E6EDF3"),
        ("stroke", hex(GRID), "#30363D"),
        ("stroke", hex(AXIS), "#8B949E"),
    ];
    css.push_str("\n@media screen and (prefers-color-scheme:dark){");
    for (part, light, dark) in dark {
        let _ = write!(css, "\n.holdall-plot [{part}=\"{light}\"]{{{part}:{dark}}}");
    }
    css + "}\n"
}

fn paint_all(panel: &Panel, layout: &Layout, canvas: &mut Canvas) {
    let whole = Area { left: 0.0, top: 0.0, right: WIDTH, bottom: layout.height.ceil() };
    canvas.rect(whole, GROUND);
    let title = Look { bold: true, ..look(TITLE, Anchor::Start) };
    let left = layout.legend.first().map_or(14.0, |entry| entry.x.min(14.0));
    for (row, line) in layout.title.iter().enumerate() {
        canvas.text(line, (left, 14.0 + (row as f64 + 0.5) * TITLE * LEADING), title);
    }
    paint_axes(layout, canvas);
    let before = layout.x.ticks.is_empty() || panel.series.iter().all(|s| !any_drawn(s, layout));
    if before {
        let middle = spot(layout.plot, 0.5, 0.5);
        canvas.text("Nothing to draw: no points with values.", middle, look(LABEL, Anchor::Middle));
    } else if panel.kind == Kind::Bars {
        lines::bars(panel, layout, canvas);
    } else if let Kind::Dots { large } = panel.kind {
        dots::dots(panel, large, layout, canvas);
    } else {
        lines::lines(panel, layout, canvas);
    }
    paint_legend(panel, layout, canvas);
    for (row, line) in layout.remarks.iter().enumerate() {
        let y = layout.remarks_at + (row as f64 + 0.5) * REMARK * LEADING;
        canvas.text(line, (14.0, y), look(REMARK, Anchor::Start));
    }
}

fn any_drawn(series: &super::Series, layout: &Layout) -> bool {
    use super::axis::Place::At;
    let placed =
        |p: &(f64, f64)| matches!((layout.x.place(p.0), layout.y.place(p.1)), (At(_), At(_)));
    series.points.iter().any(placed)
}

fn paint_axes(layout: &Layout, canvas: &mut Canvas) {
    let plot = layout.plot;
    for (place, label) in &layout.y.ticks {
        let (_, y) = spot(plot, 0.0, *place);
        canvas.line(&[(plot.left, y), (plot.right, y)], GRID, THIN);
        canvas.text(&text::clean(label), (plot.left - 8.0, y), look(TICK, Anchor::End));
    }
    for (place, _) in &layout.x_labels.items {
        let (x, _) = spot(plot, *place, 0.0);
        canvas.line(&[(x, plot.top), (x, plot.bottom)], GRID, THIN);
        canvas.line(&[(x, plot.bottom), (x, plot.bottom + 5.0)], AXIS, THIN);
    }
    let ends = [(plot.left, plot.top), (plot.left, plot.bottom), (plot.right, plot.bottom)];
    canvas.line(&ends, AXIS, THIN);
    paint_cuts(layout, canvas);
    for (index, (place, label)) in layout.x_labels.items.iter().enumerate() {
        let (x, _) = spot(plot, *place, 0.0);
        let y = match layout.x_labels.stand {
            Stand::Rows(rows) => plot.bottom + 8.0 + ((index % rows) as f64 + 0.5) * TICK * LEADING,
            Stand::Upright => plot.bottom + 9.0,
        };
        canvas.text(label, (x, y), Look::under_axis(layout.x_labels.stand));
    }
    let middle = spot(plot, 0.5, 0.5);
    let below = plot.bottom + 12.0 + layout.x_labels.height;
    for (row, line) in layout.x_name.iter().enumerate() {
        let y = below + (row as f64 + 0.5) * LABEL * LEADING;
        canvas.text(line, (middle.0, y), look(LABEL, Anchor::Middle));
    }
    for (row, line) in layout.y_name.iter().enumerate() {
        let x = 14.0 + (row as f64 + 0.5) * LABEL * LEADING;
        canvas.text(line, (x, middle.1), Look { upright: true, ..look(LABEL, Anchor::Middle) });
    }
}

/// Two strokes across the beginning of an axis on which zero is not.
fn paint_cuts(layout: &Layout, canvas: &mut Canvas) {
    let (left, bottom) = (layout.plot.left, layout.plot.bottom);
    for step in [8.0, 12.0] {
        if layout.y.is_cut() {
            let y = bottom - step;
            canvas.line(&[(left - 5.0, y + 2.5), (left + 5.0, y - 2.5)], AXIS, CUT);
        }
        if layout.x.is_cut() {
            let x = left + step;
            canvas.line(&[(x - 2.5, bottom + 5.0), (x + 2.5, bottom - 5.0)], AXIS, CUT);
        }
    }
}

fn paint_legend(panel: &Panel, layout: &Layout, canvas: &mut Canvas) {
    for Entry { series, x, y, name } in &layout.legend {
        let end = x + SAMPLE - 10.0;
        let colour = palette::colour(*series);
        let middle = ((x + end) / 2.0, *y);
        if panel.series.get(*series).is_some_and(|s| s.reference) {
            canvas.reference(middle, panel.own_of(*series));
        } else if panel.kind == Kind::Lines {
            canvas.line(&[(*x, *y), (end, *y)], colour, CURVE);
            canvas.mark(middle, 4.6, *series, colour);
        } else if let Kind::Dots { large } = panel.kind {
            dots::dot((end - 6.0, *y), *series, large, canvas);
        } else {
            let sample = Area { left: *x, top: y - 6.0, right: x + 14.0, bottom: y + 6.0 };
            canvas.rect(sample, colour);
            if panel.series.len() > 1 {
                canvas.mark((x + 25.0, *y), 4.6, *series, colour);
            }
        }
        canvas.text(name, (x + SAMPLE - 2.0, *y), look(TICK, Anchor::Start));
    }
}
