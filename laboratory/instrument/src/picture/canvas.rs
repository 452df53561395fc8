//! A canvas of SVG: lines, areas, marks and text, written as they come.
//!
//! Owns: the text of the picture's body. Places and sizes are in points. A picture's style sheet
//! finds what it is for by its colour and the width of its stroke, so both are attributes.

use std::fmt::Write as _;

use super::axis_label::Stand;
use super::layout::{Area, TICK};
use super::marks::{self, Outline};
use super::palette::{self, GROUND, INK, hex};

/// Width of a series' line; no other stroke has it.
pub(crate) const CURVE: f64 = 2.0;
/// Radius of the marks of numbers from elsewhere.
const REFERENCE: f64 = 6.2;

type Rgb = (u8, u8, u8);

/// What is painted on.
#[derive(Default)]
pub(crate) struct Canvas {
    body: String,
}

/// Where a text stands from its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// To the right of it.
    Start,
    /// Around it.
    Middle,
    /// To the left of it.
    End,
}

/// How a text looks.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) size: f64,
    pub(crate) bold: bool,
    /// Turned by a quarter, from the bottom up.
    pub(crate) upright: bool,
    pub(crate) anchor: Anchor,
}

/// A plain text.
pub(crate) const fn look(size: f64, anchor: Anchor) -> Look {
    Look { size, bold: false, upright: false, anchor }
}

impl Look {
    /// That of a label under the axis to the right.
    pub(crate) fn under_axis(stand: Stand) -> Self {
        match stand {
            Stand::Rows(_) => look(TICK, Anchor::Middle),
            Stand::Upright => Self { upright: true, ..look(TICK, Anchor::End) },
        }
    }
}

impl Canvas {
    /// All that was painted.
    pub(crate) fn body(self) -> String {
        self.body
    }

    // Writing to a string cannot fail, here and below.
    pub(crate) fn line(&mut self, spots: &[(f64, f64)], colour: Rgb, width: f64) {
        let (colour, width, points) = (hex(colour), short(width), points(spots.iter().copied()));
        let _ = writeln!(
            self.body,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" points=\"{points}\"/>"
        );
    }

    pub(crate) fn rect(&mut self, area: Area, colour: Rgb) {
        let (width, height) = (area.right - area.left, area.bottom - area.top);
        let [x, y, width, height] = [area.left, area.top, width, height].map(short);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>",
            hex(colour)
        );
    }

    /// The mark of the series at `index`.
    pub(crate) fn mark(&mut self, at: (f64, f64), radius: f64, index: usize, colour: Rgb) {
        let (outline, open) = marks::outline(palette::mark(index));
        self.shape(at, radius, &outline, colour);
        if open {
            self.shape(at, radius * 0.52, &outline, GROUND);
        }
    }

    /// The mark of numbers from elsewhere: the series' shape in ink, its middle open with a dot,
    /// which no mark of ours has.
    pub(crate) fn reference(&mut self, at: (f64, f64), index: usize) {
        let (outline, _) = marks::outline(palette::mark(index));
        self.shape(at, REFERENCE, &outline, INK);
        self.shape(at, REFERENCE * 0.7, &outline, GROUND);
        self.shape(at, REFERENCE * 0.25, &Outline::Circle(1.0), INK);
    }

    fn shape(&mut self, (x, y): (f64, f64), radius: f64, outline: &Outline, colour: Rgb) {
        let fill = hex(colour);
        let _ = match outline {
            Outline::Circle(size) => {
                let [x, y, r] = [x, y, radius * size].map(short);
                writeln!(self.body, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" fill=\"{fill}\"/>")
            }
            Outline::Corners(corners) => {
                let corners = corners.iter().map(|c| (x + c.0 * radius, y + c.1 * radius));
                let points = points(corners);
                writeln!(self.body, "<polygon points=\"{points}\" fill=\"{fill}\"/>")
            }
        };
    }

    /// Writes `text`, its middle at the height of the place, in the viewer's sans-serif font.
    pub(crate) fn text(&mut self, text: &str, (x, y): (f64, f64), look: Look) {
        let anchor = match look.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let [x, y, size] = [x, y, look.size].map(short);
        let weight = if look.bold { " font-weight=\"bold\"" } else { "" };
        let turn = if look.upright {
            format!(" transform=\"rotate(270 {x} {y})\"")
        } else {
            String::new()
        };
        let (ink, text) = (hex(INK), super::escape(text));
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" dy=\"0.5ex\" text-anchor=\"{anchor}\" \
             font-family=\"sans-serif\" font-size=\"{size}\"{weight}{turn} fill=\"{ink}\">{text}</text>"
        );
    }
}

fn points(spots: impl Iterator<Item = (f64, f64)>) -> String {
    spots.map(|(x, y)| format!("{},{}", short(x), short(y))).collect::<Vec<_>>().join(" ")
}

/// With one digit behind the point at most: a tenth of a point is less than the eye sees.
fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    let plain = text.strip_suffix(".0").unwrap_or(&text);
    if plain == "-0" { "0".to_owned() } else { plain.to_owned() }
}
