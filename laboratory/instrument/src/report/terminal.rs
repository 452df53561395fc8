//! The short table of claims for a terminal.

use crate::experiment::Claim;

use super::claims::word;

/// Widest cell; a longer one is cut.
const WIDEST: usize = 34;

/// A row per claim: name, verdict, our figure, the paper's, tolerance. Empty without claims.
pub fn table<'c>(claims: impl IntoIterator<Item = &'c Claim>) -> String {
    let row =
        |c: &Claim| [c.id.as_str(), word(c.verdict), &c.ours, &c.paper, &c.tolerance].map(cut);
    let mut rows = vec![["claim", "", "ours", "paper", "tolerance"].map(String::from)];
    rows.extend(claims.into_iter().map(row));
    if rows.len() == 1 {
        return String::new();
    }
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    let line = |row: &[String; 5]| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn cut(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= WIDEST {
        return text;
    }
    text.chars().take(WIDEST - 1).chain(['…']).collect()
}
