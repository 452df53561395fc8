//! Figures as data, and their drawings.
//!
//! Owns: the description of a figure (panels, axes, series, tables) that the lab and the
//! benchmarks fill, its numbers as CSV, and its drawing as SVG and PNG. Everything here is a
//! pure function of the description: no files, no system fonts, no threads.

mod axis;
mod axis_label;
mod canvas;
mod csv;
mod dots;
mod draw;
mod layout;
mod lines;
mod marks;
pub mod number;
mod numbers;
mod palette;
mod png;
mod table;
mod text;

pub use table::escape;

use serde::{Deserialize, Serialize};

/// What the legend calls numbers of the paper, before the series that they belong to.
pub const PAPER: &str = "paper";

/// How an axis is scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scale {
    /// Even steps.
    Linear,
    /// Powers of ten.
    Log10,
    /// Powers of two.
    Log2,
    /// Even steps over the points' own values, each with its label.
    Ordinal,
}

/// An axis: what it shows, in which unit.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// How it is scaled.
    pub scale: Scale,
    /// First and last value; taken from the points if there is none.
    pub range: Option<(f64, f64)>,
    /// Values that get a labelled tick; if there are none, the scale chooses them. An
    /// [`Scale::Ordinal`] axis labels every value: those not named here by their number.
    pub ticks: Vec<(f64, String)>,
}

/// One line of a panel.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// Numbers from elsewhere, beside ours: hollow marks with a dot, without a line.
    #[serde(default)]
    pub reference: bool,
    /// Points in order of x. One that is not finite is left out of the drawing, which breaks
    /// the line there and says so; JSON keeps it as `null`.
    #[serde(with = "numbers")]
    pub points: Vec<(f64, f64)>,
}

/// How a panel's series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Lines with marks at the points.
    Lines,
    /// Bars side by side at each x; the x axis is drawn as [`Scale::Ordinal`] whatever it says.
    Bars,
    /// Marks alone, for ratios: the first `large` series large and in colour, the others small
    /// and grey. A y axis of [`Scale::Ordinal`] gives each row its own height; a line shows
    /// if x is one.
    Dots {
        /// Series that stand out.
        large: usize,
    },
}

/// One drawing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Panel {
    /// Part of the file name: lower case, digits, dashes.
    pub id: String,
    /// Above the drawing.
    pub title: String,
    /// Below the drawing: what to see in it. Empty if there is nothing to say.
    #[serde(default)]
    pub caption: String,
    /// How series are drawn.
    pub kind: Kind,
    /// The axis to the right.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
}

impl Panel {
    /// Which of the panel's series the numbers from elsewhere at `index` belong to: the one of
    /// ours that bears their name without `paper: `, up to a comma if need be. Itself, if there
    /// is none.
    pub(crate) fn own_of(&self, index: usize) -> usize {
        let name = self.series.get(index).map_or("", |s| s.name.as_str());
        let Some(own) = name.strip_prefix(PAPER).and_then(|rest| rest.strip_prefix(": ")) else {
            return index;
        };
        let named = |name: &str| self.series.iter().position(|s| !s.reference && s.name == name);
        let before = own.split_once(", ").map_or(own, |(name, _)| name);
        named(own).or_else(|| named(before)).unwrap_or(index)
    }
}

/// Numbers without a drawing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Table {
    /// Part of the file name: lower case, digits, dashes.
    pub id: String,
    /// Above the table.
    pub title: String,
    /// Names of the columns.
    pub head: Vec<String>,
    /// Cells, row by row; as many in each as the head has.
    pub rows: Vec<Vec<String>>,
}
