//! The map of the volume and the histograms as SVG.
//!
//! Owns: sizes and colours. A drawing has no scripts and no fonts of its own; colours are rules
//! of a style sheet, so that screens set to dark and paper each have theirs.

use std::fmt::Write as _;

use holdall::frag::{Cell, FragReport};

use crate::words::{self, Bar, KINDS, bytes};

/// Width of every drawing.
const WIDTH: f64 = 680.0;
const MARGIN: f64 = 10.0;
/// Height of a line of text, and of a bar.
const LINE: f64 = 20.0;

/// Colours of the drawings, for a page or a document.
pub const STYLE: &str = "\
.frag{font:13px system-ui,sans-serif}.frag .ground{fill:#fff}\
.frag text{fill:#24292f}.frag .title{font-weight:600;font-size:15px}.frag .end{text-anchor:end}\
.frag .segment{fill:#4c93cc}.frag .heap{fill:#1f9d74}.frag .metadata{fill:#8a63d2}\
.frag .waiting{fill:#d08a00}.frag .free{fill:#d5dae0}\
.frag .hole{fill:#fff;stroke:#b4bcc5;stroke-width:.6}.frag .cut{fill:#0d2a47}.frag .bar{fill:#4c93cc}
@media screen and (prefers-color-scheme:dark){.frag .ground{fill:#161b22}\
.frag text{fill:#e6edf3}.frag .free{fill:#444c56}.frag .hole{fill:#161b22;stroke:#484f58}\
.frag .cut{fill:#fff}}
";

/// A part of a drawing.
pub struct Part {
    body: String,
    height: f64,
    title: &'static str,
}

/// A drawing of its own for one part, as wide as what it stands in.
pub fn inline(part: &Part) -> String {
    let (title, height) = (part.title, part.height);
    format!(
        "<svg class=\"frag\" viewBox=\"{MARGIN} 0 {} {height}\" \
         preserveAspectRatio=\"xMinYMin\" role=\"img\" aria-label=\"{title}\">\n{}</svg>\n",
        WIDTH - 2.0 * MARGIN,
        part.body
    )
}

/// Map and histograms as one document.
pub fn document(report: &FragReport, title: &str) -> String {
    let (mut body, mut y) = (String::new(), LINE + MARGIN);
    for part in parts(report) {
        let height = part.height;
        // Writing to a String does not fail.
        let _ = write!(
            body,
            "<text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{}</text>\n\
             <g transform=\"translate(0 {})\">\n{}</g>\n",
            y + LINE,
            part.title,
            y + LINE + MARGIN,
            part.body
        );
        y += height + LINE + 2.0 * MARGIN;
    }
    let title = escape(&format!("{title}: score {:.3} of 1", report.score.value));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"frag\" width=\"{WIDTH}\" \
         height=\"{y}\" viewBox=\"0 0 {WIDTH} {y}\" role=\"img\" aria-label=\"{title}\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"ground\" width=\"{WIDTH}\" height=\"{y}\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{title}</text>\n{body}</svg>\n",
        LINE + 2.0
    )
}

/// The map and the histograms.
pub fn parts(report: &FragReport) -> [Part; 3] {
    let free = bars("Free runs by length, bars by bytes", &words::free_bars(report));
    let pieces = bars("Large objects by number of pieces", &words::piece_bars(report));
    [map(report), free, pieces]
}

fn map(report: &FragReport) -> Part {
    let cells = &report.map.cells;
    let columns = ((cells.len() as f64 * 2.0).sqrt().ceil() as usize).clamp(16, 64);
    let side = (WIDTH - 2.0 * MARGIN) / columns as f64;
    let mut paths = KINDS.map(|_| String::new());
    let mut cut = String::new();
    for (at, cell) in cells.iter().enumerate() {
        let x = MARGIN + (at % columns) as f64 * side;
        let y = (at / columns) as f64 * side;
        fill(&mut paths, cell, report.map.pages_per_cell, (x, y, side * 0.92));
        if cell.cut {
            let (y, width, height) = (y + side * 0.72, side * 0.92, side * 0.2);
            // Writing to a String does not fail.
            let _ = write!(cut, "M{x:.1} {y:.1}h{width:.1}v{height:.1}h-{width:.1}z");
        }
    }
    let mut body = String::new();
    for ((class, ..), path) in KINDS.iter().zip(&paths).filter(|(_, path)| !path.is_empty()) {
        let _ = writeln!(body, "<path class=\"{class}\" d=\"{path}\"/>");
    }
    if !cut.is_empty() {
        let _ = writeln!(body, "<path class=\"cut\" d=\"{cut}\"/>");
    }
    let y = cells.len().div_ceil(columns) as f64 * side + MARGIN;
    let lines = legend(report, y, &mut body);
    Part { body, height: y + lines * LINE + MARGIN, title: "The volume from its start to its end" }
}

/// Paints one cell: its kinds side by side, each as wide as its share.
fn fill(paths: &mut [String; 6], cell: &Cell, all: u64, (x, y, side): (f64, f64, f64)) {
    let mut from = x;
    for (path, (.., pages)) in paths.iter_mut().zip(KINDS) {
        let width = side * pages(cell) as f64 / all.max(1) as f64;
        if width > 0.05 {
            // Writing to a String does not fail.
            let _ = write!(path, "M{from:.1} {y:.1}h{width:.1}v{side:.1}h-{width:.1}z");
        }
        from += width;
    }
}

/// What the colours mean, with the bytes of each; returns its lines.
fn legend(report: &FragReport, top: f64, body: &mut String) -> f64 {
    let size = report.geometry.page_size;
    let sum = |pages: fn(&Cell) -> u64| report.map.cells.iter().map(pages).sum::<u64>() * size;
    let mut entries: Vec<(&str, String)> =
        KINDS.map(|(class, name, pages)| (class, format!("{name}, {}", bytes(sum(pages))))).into();
    let cell = bytes(report.map.pages_per_cell * size);
    entries.push(("cut", format!("in a cut object; a cell is {cell}")));
    let width = (WIDTH - 2.0 * MARGIN) / 3.0;
    for (at, (class, text)) in entries.iter().enumerate() {
        let (x, y) = (MARGIN + (at % 3) as f64 * width, top + (at / 3) as f64 * LINE);
        let shape = if *class == "cut" { "m0 8h12v4h-12z" } else { "h12v12h-12z" };
        // Writing to a String does not fail.
        let _ = writeln!(
            body,
            "<path class=\"{class}\" d=\"M{x:.1} {y:.1}{shape}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{text}</text>",
            x + 18.0,
            y + 11.0
        );
    }
    entries.len().div_ceil(3) as f64
}

fn bars(title: &'static str, bars: &[Bar]) -> Part {
    /// Where bars begin and the longest ends.
    const FROM: f64 = 90.0;
    const LONGEST: f64 = 400.0;
    let most = bars.iter().map(|(_, value, _)| *value).fold(1.0, f64::max);
    let mut body = String::new();
    for (at, (label, value, text)) in bars.iter().enumerate() {
        let (y, width) = (at as f64 * LINE, (LONGEST * value / most).max(1.0));
        // Writing to a String does not fail.
        let _ = writeln!(
            body,
            "<text class=\"end\" x=\"{:.1}\" y=\"{:.1}\">{}</text>\
             <rect class=\"bar\" x=\"{FROM}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"14\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            FROM - 8.0,
            y + 14.0,
            escape(label),
            y + 3.0,
            FROM + width + 8.0,
            y + 14.0,
            escape(text)
        );
    }
    if bars.is_empty() {
        let _ = writeln!(body, "<text x=\"{MARGIN}\" y=\"14\">none</text>");
    }
    Part { body, height: bars.len().max(1) as f64 * LINE + 4.0, title }
}

/// Text as SVG and HTML want it.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

impl Part {
    /// What it shows.
    pub fn title(&self) -> &'static str {
        self.title
    }
}
