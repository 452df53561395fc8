//! Panels, tables and claims, made with few words.
//!
//! Owns: nothing; shapes results into the types of the report.

use holdall_plot::{Axis, Kind, Panel, Scale, Series, Table};

use crate::experiment::{Claim, Outcome, Verdict};

/// An axis that starts where its points do.
pub fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.into(), scale, range: None, ticks: Vec::new() }
}

/// A panel of lines.
pub fn lines(id: &str, title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Panel {
    Panel { id: id.into(), title: title.into(), kind: Kind::Lines, x, y, series }
}

/// A line.
pub fn series(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
    Series { name: name.into(), points }
}

/// A table.
pub fn table(id: &str, title: &str, head: &[&str], rows: Vec<Vec<String>>) -> Table {
    let head = head.iter().map(|h| (*h).to_owned()).collect();
    Table { id: id.into(), title: title.into(), head, rows }
}

/// A claim of two numbers whose ratio must be within `tolerance` of 1.
pub fn ratio(id: &str, text: &str, paper: f64, ours: f64, unit: &str, tolerance: f64) -> Claim {
    let ratio = ours / paper;
    let tolerance = tolerance + 1e-9;
    Claim {
        id: id.into(),
        text: text.into(),
        paper: format!("{} {unit}", number(paper)),
        ours: format!("{} {unit}", number(ours)),
        ratio: Some(ratio),
        tolerance: if tolerance < 1e-6 {
            "=".into()
        } else {
            format!("{:.0} %", tolerance * 100.0)
        },
        verdict: verdict((ratio - 1.0).abs() <= tolerance),
        explanation: String::new(),
    }
}

/// A claim that a number lies between two.
pub fn between(
    id: &str,
    text: &str,
    paper: &str,
    ours: f64,
    unit: &str,
    least: f64,
    most: f64,
) -> Claim {
    Claim {
        id: id.into(),
        text: text.into(),
        paper: paper.into(),
        ours: format!("{} {unit}", number(ours)),
        ratio: None,
        tolerance: format!("{}–{} {unit}", number(least), number(most)),
        verdict: verdict((least..=most).contains(&ours)),
        explanation: String::new(),
    }
}

/// A claim that something is so.
pub fn holds(id: &str, text: &str, paper: &str, ours: String, tolerance: &str, so: bool) -> Claim {
    Claim {
        id: id.into(),
        text: text.into(),
        paper: paper.into(),
        ours,
        ratio: None,
        tolerance: tolerance.into(),
        verdict: verdict(so),
        explanation: String::new(),
    }
}

fn verdict(so: bool) -> Verdict {
    if so { Verdict::Holds } else { Verdict::Fails }
}

/// What looking into a failure found; kept only where the claim fails.
pub trait Because {
    /// Adds it.
    #[must_use]
    fn because(self, why: &str) -> Self;
}

impl Because for Claim {
    fn because(mut self, why: &str) -> Self {
        if self.verdict == Verdict::Fails {
            self.explanation = why.into();
        }
        self
    }
}

/// Makes claims observations where a run was too small to judge them.
pub fn finished(mut outcome: Outcome, quick: bool) -> Outcome {
    if quick {
        for claim in &mut outcome.claims {
            claim.verdict = Verdict::Note;
        }
        outcome.notes.push("A quick run: shorter than the paper's, claims are not judged.".into());
    }
    outcome
}

/// A number with three figures or so.
pub fn number(n: f64) -> String {
    match n.abs() {
        a if a >= 1000.0 || a == 0.0 || (a - a.round()).abs() < 1e-9 => format!("{n:.0}"),
        a if a >= 100.0 => format!("{n:.1}"),
        a if a >= 1.0 => format!("{n:.2}"),
        _ => format!("{n:.3}"),
    }
}

/// A share as percent.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
