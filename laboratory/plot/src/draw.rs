//! The drawing: a canvas over plotters' SVG backend, and what is painted on it.
//!
//! plotters places by whole units, so the canvas has ten of them per point; the picture's size
//! is set in its first tag. Dashes and the colours of dark screens are rules of a style sheet in
//! the picture, which finds what it is for by its colour.

use std::fmt::Write as _;

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, DrawingArea, DrawingAreaErrorKind, IntoDrawingArea, IntoFont, PathElement, Polygon,
    RGBColor, Rectangle, SVGBackend, Text,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, FontStyle, FontTransform, ShapeStyle, TextStyle};

use crate::axis_label::Stand;
use crate::layout::{Area, Entry, LABEL, LEADING, Layout, REMARK, SAMPLE, TICK, TITLE, WIDTH};
use crate::lines::spot;
use crate::marks::{self, Outline};
use crate::palette::{self, AXIS, GRID, GROUND, INK, hex};
use crate::{Kind, Panel, dots, lines, table, text};

/// Whether a stroke succeeded. Painting into a string does not fail in practice.
pub(crate) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Units per point.
const UNIT: f64 = 10.0;
/// plotters' font sizes are of a whole line; the SVG gets their 1.24th part.
const FONT_LINE: f64 = 1.24;
/// Width of a series' line; no other stroke has it.
pub(crate) const CURVE: f64 = 2.0;
/// Radius of the marks of numbers from elsewhere.
const REFERENCE: f64 = 6.2;
const THIN: f64 = 1.0;

type Rgb = (u8, u8, u8);

/// What is painted on; places and sizes are in points.
pub(crate) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

impl Canvas<'_> {
    pub(crate) fn line(&self, spots: &[(f64, f64)], colour: Rgb, width: f64) -> Drawn {
        let style = paint(colour).stroke_width(units(width).unsigned_abs());
        self.area.draw(&PathElement::new(spots.iter().map(|&s| at(s)).collect::<Vec<_>>(), style))
    }

    pub(crate) fn rect(&self, area: Area, colour: Rgb) -> Drawn {
        let corners = [at((area.left, area.top)), at((area.right, area.bottom))];
        self.area.draw(&Rectangle::new(corners, paint(colour).filled()))
    }

    /// The mark of the series at `index`.
    pub(crate) fn mark(&self, at: (f64, f64), radius: f64, index: usize, colour: Rgb) -> Drawn {
        let (outline, open) = marks::outline(palette::mark(index));
        self.shape(at, radius, &outline, colour)?;
        if open { self.shape(at, radius * 0.52, &outline, GROUND) } else { Ok(()) }
    }

    /// The mark of numbers from elsewhere: the series' shape in ink, its middle open.
    pub(crate) fn reference(&self, at: (f64, f64), index: usize) -> Drawn {
        let (outline, _) = marks::outline(palette::mark(index));
        self.shape(at, REFERENCE, &outline, INK)?;
        self.shape(at, REFERENCE * 0.6, &outline, GROUND)
    }

    fn shape(&self, (x, y): (f64, f64), radius: f64, outline: &Outline, colour: Rgb) -> Drawn {
        let style = paint(colour).filled();
        match outline {
            Outline::Circle(size) => {
                self.area.draw(&Circle::new(at((x, y)), units(radius * size), style))
            }
            Outline::Corners(corners) => {
                let corners = corners.iter().map(|c| at((x + c.0 * radius, y + c.1 * radius)));
                self.area.draw(&Polygon::new(corners.collect::<Vec<_>>(), style))
            }
        }
    }

    fn text(&self, text: &str, place: (f64, f64), look: Look) -> Drawn {
        let weight = if look.bold { FontStyle::Bold } else { FontStyle::Normal };
        let mut font = (FontFamily::SansSerif, look.size * UNIT * FONT_LINE, weight).into_font();
        if look.upright {
            font = font.transform(FontTransform::Rotate270);
        }
        let ink = rgb(INK);
        let style = TextStyle::from(font).color(&ink).pos(Pos::new(look.across, VPos::Center));
        self.area.draw(&Text::new(text.to_string(), at(place), style))
    }
}

#[derive(Clone, Copy)]
struct Look {
    size: f64,
    bold: bool,
    upright: bool,
    across: HPos,
}

const fn look(size: f64, across: HPos) -> Look {
    Look { size, bold: false, upright: false, across }
}

fn units(points: f64) -> i32 {
    (points * UNIT).round() as i32
}

fn at((x, y): (f64, f64)) -> (i32, i32) {
    (units(x), units(y))
}

fn rgb((r, g, b): Rgb) -> RGBColor {
    RGBColor(r, g, b)
}

fn paint(colour: Rgb) -> ShapeStyle {
    ShapeStyle::from(rgb(colour))
}

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
        let mut body = String::new();
        {
            let size = (units(WIDTH).unsigned_abs(), units(height).unsigned_abs());
            let area = SVGBackend::with_string(&mut body, size).into_drawing_area();
            let canvas = Canvas { area };
            let done = paint_all(self, &layout, &canvas).and_then(|()| canvas.area.present());
            if let Err(error) = done {
                // Not reached by painting into a string; a picture that says so is better than
                // half of one.
                let text = table::escape(&format!("This drawing failed: {error}"));
                let svg = format!(
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"40\">\
                     <text x=\"10\" y=\"25\">{text}</text></svg>\n"
                );
                return (svg, 40.0);
            }
        }
        (dress(self, &body, height), height)
    }
}

/// Puts our first tag, a title for readers who cannot see, and the style sheet around `body`.
fn dress(panel: &Panel, body: &str, height: f64) -> String {
    let inner = body.split_once('>').map_or("", |(_, rest)| rest).trim_start();
    let title = table::escape(&panel.title);
    let (w, h) = (units(WIDTH), units(height));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"holdall-plot\" width=\"{WIDTH}\" \
         height=\"{height}\" viewBox=\"0 0 {w} {h}\" role=\"img\" aria-label=\"{title}\">\n\
         <title>{title}</title>\n<style>{}</style>\n{inner}",
        style(panel.series.len())
    )
}

/// The style sheet for `series` series. Rules name the picture's class, so that many pictures
/// can stand in one page; equal colours mean equal rules in all of them.
fn style(series: usize) -> String {
    let mut css = String::new();
    let curve = units(CURVE);
    for index in 0..series {
        if let Some(dash) = palette::dash(index) {
            let colour = hex(palette::colour(index));
            // Writing to a string cannot fail.
            let _ = write!(
                css,
                "\n.holdall-plot polyline[stroke=\"{colour}\"][stroke-width=\"{curve}\"]\
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

fn paint_all(panel: &Panel, layout: &Layout, canvas: &Canvas<'_>) -> Drawn {
    let whole = Area { left: 0.0, top: 0.0, right: WIDTH, bottom: layout.height.ceil() };
    canvas.rect(whole, GROUND)?;
    let title = Look { bold: true, ..look(TITLE, HPos::Left) };
    let left = layout.legend.first().map_or(14.0, |entry| entry.x.min(14.0));
    for (row, line) in layout.title.iter().enumerate() {
        canvas.text(line, (left, 14.0 + (row as f64 + 0.5) * TITLE * LEADING), title)?;
    }
    paint_axes(layout, canvas)?;
    let before = layout.x.ticks.is_empty() || panel.series.iter().all(|s| !any_drawn(s, layout));
    if before {
        let middle = spot(layout.plot, 0.5, 0.5);
        canvas.text(
            "Nothing to draw: no points with values.",
            middle,
            look(LABEL, HPos::Center),
        )?;
    } else if panel.kind == Kind::Bars {
        lines::bars(panel, layout, canvas)?;
    } else if let Kind::Dots { large } = panel.kind {
        dots::dots(panel, large, layout, canvas)?;
    } else {
        lines::lines(panel, layout, canvas)?;
    }
    paint_legend(panel, layout, canvas)?;
    for (row, line) in layout.remarks.iter().enumerate() {
        let y = layout.remarks_at + (row as f64 + 0.5) * REMARK * LEADING;
        canvas.text(line, (14.0, y), look(REMARK, HPos::Left))?;
    }
    Ok(())
}

fn any_drawn(series: &crate::Series, layout: &Layout) -> bool {
    use crate::axis::Place::At;
    let placed =
        |p: &(f64, f64)| matches!((layout.x.place(p.0), layout.y.place(p.1)), (At(_), At(_)));
    series.points.iter().any(placed)
}

fn paint_axes(layout: &Layout, canvas: &Canvas<'_>) -> Drawn {
    let plot = layout.plot;
    for (place, label) in &layout.y.ticks {
        let (_, y) = spot(plot, 0.0, *place);
        canvas.line(&[(plot.left, y), (plot.right, y)], GRID, THIN)?;
        canvas.text(&text::clean(label), (plot.left - 8.0, y), look(TICK, HPos::Right))?;
    }
    for (place, _) in &layout.x_labels.items {
        let (x, _) = spot(plot, *place, 0.0);
        canvas.line(&[(x, plot.top), (x, plot.bottom)], GRID, THIN)?;
        canvas.line(&[(x, plot.bottom), (x, plot.bottom + 5.0)], AXIS, THIN)?;
    }
    let ends = [(plot.left, plot.top), (plot.left, plot.bottom), (plot.right, plot.bottom)];
    canvas.line(&ends, AXIS, THIN)?;
    for (index, (place, label)) in layout.x_labels.items.iter().enumerate() {
        let (x, _) = spot(plot, *place, 0.0);
        let (row, upright) = match layout.x_labels.stand {
            Stand::Rows(rows) => (index % rows, false),
            Stand::Upright => (0, true),
        };
        let (y, across) = if upright {
            (plot.bottom + 9.0, HPos::Right)
        } else {
            (plot.bottom + 8.0 + (row as f64 + 0.5) * TICK * LEADING, HPos::Center)
        };
        canvas.text(label, (x, y), Look { upright, ..look(TICK, across) })?;
    }
    let middle = spot(plot, 0.5, 0.5);
    let below = plot.bottom + 12.0 + layout.x_labels.height;
    for (row, line) in layout.x_name.iter().enumerate() {
        let y = below + (row as f64 + 0.5) * LABEL * LEADING;
        canvas.text(line, (middle.0, y), look(LABEL, HPos::Center))?;
    }
    for (row, line) in layout.y_name.iter().enumerate() {
        let x = 14.0 + (row as f64 + 0.5) * LABEL * LEADING;
        canvas.text(line, (x, middle.1), Look { upright: true, ..look(LABEL, HPos::Center) })?;
    }
    Ok(())
}

fn paint_legend(panel: &Panel, layout: &Layout, canvas: &Canvas<'_>) -> Drawn {
    for Entry { series, x, y, name } in &layout.legend {
        let end = x + SAMPLE - 10.0;
        let colour = palette::colour(*series);
        if panel.kind == Kind::Lines {
            let middle = ((x + end) / 2.0, *y);
            if panel.series.get(*series).is_some_and(|s| s.reference) {
                canvas.reference(middle, *series)?;
            } else {
                canvas.line(&[(*x, *y), (end, *y)], colour, CURVE)?;
                canvas.mark(middle, 4.6, *series, colour)?;
            }
        } else if let Kind::Dots { large } = panel.kind {
            dots::dot((end - 6.0, *y), *series, large, canvas)?;
        } else {
            let sample = Area { left: *x, top: y - 6.0, right: x + 14.0, bottom: y + 6.0 };
            canvas.rect(sample, colour)?;
            if panel.series.len() > 1 {
                canvas.mark((x + 25.0, *y), 4.6, *series, colour)?;
            }
        }
        canvas.text(name, (x + SAMPLE - 2.0, *y), look(TICK, HPos::Left))?;
    }
    Ok(())
}
