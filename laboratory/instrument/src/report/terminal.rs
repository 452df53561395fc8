//! The short table of claims for a terminal.

use crate::experiment::Claim;

use super::claims::word;
use super::order::natural;

/// Widest cell; a longer one goes on in the next line.
const WIDEST: usize = 34;

/// A row per claim: name, verdict, our figure, the paper's, tolerance, in the natural order of
/// names. Empty without claims.
pub fn table<'c>(claims: impl IntoIterator<Item = &'c Claim>) -> String {
    let row =
        |c: &Claim| [c.id.as_str(), word(c.verdict), &c.ours, &c.paper, &c.tolerance].map(wrapped);
    let mut claims: Vec<&Claim> = claims.into_iter().collect();
    if claims.is_empty() {
        return String::new();
    }
    claims.sort_by(|a, b| natural(&a.id, &b.id));
    let mut rows = vec![["claim", "", "ours", "paper", "tolerance"].map(wrapped)];
    rows.extend(claims.into_iter().map(row));
    let width = |c: usize| {
        rows.iter().flat_map(|r| &r[c]).map(|line| line.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..5).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        for at in 0..row.iter().map(Vec::len).max().unwrap_or(0) {
            let cells = row.iter().zip(&widths).map(|(cell, &width)| {
                let text = cell.get(at).map_or("", String::as_str);
                format!("{text:<width$}")
            });
            out += cells.collect::<Vec<_>>().join("  ").trim_end();
            out.push('\n');
        }
    }
    out
}

/// The lines of a cell: broken at spaces, a longer word whole.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= WIDEST => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::holds;

    #[test]
    fn rows_are_in_order_and_whole() {
        let long = "a figure of ours that is far too long for one line of a cell";
        let claims =
            ["S1 1 MB", "S1 16 KB", "S1 4 KB"].map(|id| holds(id, "", "1", long, "=", true));
        let text = table(&claims);
        let at = |text_of: &str| text.find(text_of).unwrap();
        assert!(at("S1 4 KB") < at("S1 16 KB") && at("S1 16 KB") < at("S1 1 MB"), "{text}");
        assert!(!text.contains('…'));
        // Cells go on below: all their words are there.
        let below = text.split_whitespace().filter(|word| *word == "cell").count();
        assert_eq!(below, 3, "{text}");
        assert!(table([]).is_empty());
    }
}
