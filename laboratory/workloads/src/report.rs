//! What was measured: figures with their spread, and how they are printed.
//!
//! Owns: the statistics (median, least, most of the repetitions) and both output forms.

use serde_json::{Value, json};
use std::fmt::Write;

/// Median, least and most of some repetitions.
#[derive(Debug, Clone, Copy)]
pub struct Stats {
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// Repetitions.
    pub count: usize,
}

impl Stats {
    /// Statistics of `values`; zeros for none.
    pub fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let at = |i: usize| sorted.get(i).copied().unwrap_or(0.0);
        let median =
            if n % 2 == 1 { at(n / 2) } else { (at(n / 2) + at((n / 2).max(1) - 1)) / 2.0 };
        Self { median, min: at(0), max: at(n.saturating_sub(1)), count: n }
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        json!({ "median": self.median, "min": self.min, "max": self.max, "count": self.count })
    }
}

/// What a figure should be.
#[derive(Debug, Clone, Copy)]
pub enum Goal {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

impl Goal {
    fn met(self, value: f64) -> bool {
        match self {
            Goal::AtLeast(goal) => value >= goal,
            Goal::AtMost(goal) => value <= goal,
        }
    }

    fn text(self) -> String {
        match self {
            Goal::AtLeast(goal) => format!("≥ {goal}"),
            Goal::AtMost(goal) => format!("≤ {goal}"),
        }
    }
}

/// One line of a table. Its goal is for the ratio where there is one, else for the figure.
#[derive(Debug, Clone)]
pub struct Row {
    what: String,
    unit: &'static str,
    ours: Stats,
    bare: Option<Stats>,
    ratio: Option<Stats>,
    goal: Option<Goal>,
}

impl Row {
    /// A figure of ours against its counterpart measured beside it. Ratios are taken between
    /// neighbours in time, so that noise of the machine that lasts cancels out.
    pub fn against(
        what: impl Into<String>,
        unit: &'static str,
        ours: &[f64],
        bare: &[f64],
    ) -> Self {
        let ratios: Vec<f64> = ours.iter().zip(bare).map(|(o, b)| o / b).collect();
        Self {
            what: what.into(),
            unit,
            ours: Stats::of(ours),
            bare: Some(Stats::of(bare)),
            ratio: Some(Stats::of(&ratios)),
            goal: None,
        }
    }

    /// A figure that stands for itself.
    pub fn alone(what: impl Into<String>, unit: &'static str, ours: &[f64]) -> Self {
        let ours = Stats::of(ours);
        Self { what: what.into(), unit, ours, bare: None, ratio: None, goal: None }
    }

    /// Sets what the ratio, or the figure that stands for itself, should be.
    pub fn goal(mut self, goal: Goal) -> Self {
        self.goal = Some(goal);
        self
    }

    fn judged(&self) -> f64 {
        self.ratio.as_ref().unwrap_or(&self.ours).median
    }

    fn verdict(&self) -> String {
        match self.goal {
            Some(goal) if goal.met(self.judged()) => format!("{} met", goal.text()),
            Some(goal) => format!("{} **missed**", goal.text()),
            None => String::new(),
        }
    }

    fn markdown(&self) -> String {
        let cell = |s: &Option<Stats>| s.as_ref().map_or(String::new(), show);
        let (bare, ratio) = (cell(&self.bare), cell(&self.ratio));
        let Self { what, unit, .. } = self;
        format!(
            "| {what} | {unit} | {} | {bare} | {ratio} | {} |",
            show(&self.ours),
            self.verdict()
        )
    }

    fn json(&self) -> Value {
        json!({
            "what": self.what,
            "unit": self.unit,
            "ours": self.ours.json(),
            "bare": self.bare.as_ref().map(Stats::json),
            "ratio": self.ratio.as_ref().map(Stats::json),
            "goal": self.goal.map(Goal::text),
            "met": self.goal.map(|g| g.met(self.judged())),
        })
    }
}

/// Median, and least and most where there were several.
pub fn show(s: &Stats) -> String {
    if s.count > 1 {
        format!("{} ({}–{})", number(s.median), number(s.min), number(s.max))
    } else {
        number(s.median)
    }
}

/// Three digits that matter, thousands set apart.
pub fn number(value: f64) -> String {
    let places = match value.abs() {
        v if v >= 100.0 || v == 0.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.places$}");
    let (whole, rest) = text.split_once('.').map_or((&*text, ""), |(w, r)| (w, r));
    let mut out = String::new();
    for (i, c) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 && !out.ends_with('-') {
            out.push(',');
        }
        out.push(c);
    }
    if !rest.is_empty() {
        out.push('.');
        out.push_str(rest);
    }
    out
}

/// A table under a title, with remarks.
#[derive(Debug, Clone, Default)]
pub struct Section {
    title: String,
    rows: Vec<Row>,
    remarks: Vec<String>,
}

impl Section {
    /// An empty table.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Adds a line.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds a remark under the table.
    pub fn remark(&mut self, text: impl Into<String>) {
        self.remarks.push(text.into());
    }

    /// As a Markdown table.
    pub fn markdown(&self) -> String {
        let mut out = format!("## {}\n\n", self.title);
        out.push_str(
            "| what | unit | Holdall | against | ratio | goal |\n|---|---|---|---|---|---|\n",
        );
        for row in &self.rows {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{}", row.markdown());
        }
        for remark in &self.remarks {
            let _ = write!(out, "\n{remark}\n");
        }
        out
    }

    /// As JSON.
    pub fn json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
        json!({ "title": self.title, "rows": rows, "remarks": self.remarks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios() {
        let s = Stats::of(&[3.0, 1.0, 2.0]);
        assert_eq!((s.median, s.min, s.max, s.count), (2.0, 1.0, 3.0, 3));
        assert_eq!(Stats::of(&[4.0, 1.0]).median, 2.5);
        assert_eq!(Stats::of(&[]).median, 0.0);
        // Each against its neighbour, not median against median.
        let row = Row::against("x", "s", &[1.0, 10.0, 100.0], &[2.0, 10.0, 50.0]);
        assert_eq!(row.judged(), 1.0);
        assert!(row.clone().goal(Goal::AtLeast(1.0)).verdict().ends_with("met"));
        assert!(row.goal(Goal::AtMost(0.9)).verdict().contains("missed"));
    }

    #[test]
    fn numbers_are_readable() {
        let shown = [0.0, 0.12345, 1.2345, 12.345, 123.45, 12_345.6, -1_234_567.0].map(number);
        assert_eq!(shown, ["0", "0.123", "1.23", "12.3", "123", "12,346", "-1,234,567"]);
    }
}
