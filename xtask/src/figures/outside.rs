//! Tables of figures that no kept run made.
//!
//! Owns: how such a table is told from others, and how many of them each document still has: until
//! a run is kept that has their rows. The number may fall and never rise.

use super::block::{Piece, pieces};
use crate::source::File;

/// Documents whose tables of figures are of runs that kept no `results.json`. Those of the lab
/// are of its own records.
const LEFT: [(&str, usize); 0] = [];

/// Documents with more such tables than they may have, or with fewer than this list says.
pub fn problems(documents: &[&File]) -> Vec<String> {
    let mut out = Vec::new();
    for File { path, text } in documents {
        let left = LEFT.iter().find(|(name, _)| name == path).map_or(0, |(_, left)| *left);
        let found = lines(text);
        let (count, last) = (found.len(), found.last().copied().unwrap_or_default());
        if count > left {
            out.push(format!(
                "{path}:{last}: a table of figures outside of markers ({count}, {left} are left): name \
                 its rows in `<!-- figures`, and `cargo xtask figures` writes it"
            ));
        } else if count < left {
            out.push(format!(
                "{path} has {count} tables of figures outside of markers: lower its {left}"
            ));
        }
    }
    out
}

/// Lines, from 1 on, in which tables of figures outside of markers begin.
fn lines(text: &str) -> Vec<usize> {
    // Markers that are wrong are told elsewhere.
    let Ok(pieces) = pieces(text) else { return Vec::new() };
    let mut out = Vec::new();
    for piece in pieces {
        let Piece::Text(part) = piece else { continue };
        let before = part.as_ptr() as usize - text.as_ptr() as usize;
        let first = text[..before].matches('\n').count() + 1;
        let all: Vec<&str> = part.lines().collect();
        let mut at = 0;
        while at < all.len() {
            let rows = all[at..].iter().take_while(|line| line.starts_with('|')).count();
            if rows > 2 && is_of_figures(&all[at..at + rows]) {
                out.push(first + at);
            }
            at += rows.max(1);
        }
    }
    out
}

/// Whether most cells beside the first column are numbers. A measured number has a unit at most;
/// a number in a sentence is no figure.
fn is_of_figures(table: &[&str]) -> bool {
    let cells = |line: &&str| {
        let cells = line.trim().trim_matches('|').split('|').map(str::trim).map(str::to_owned);
        cells.skip(1).filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
    };
    let all: Vec<String> = table.iter().skip(2).flat_map(cells).collect();
    let numbers = all.iter().filter(|cell| is_figure(cell)).count();
    all.len() >= 3 && numbers * 2 > all.len()
}

fn is_figure(cell: &str) -> bool {
    let plain = cell.trim_start_matches(['*', '≤', '≥', '<', '>', '−', '+', '-', ' ']);
    plain.starts_with(|c: char| c.is_ascii_digit()) && plain.split_whitespace().count() <= 9
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIGURES: &str =
        "| | a | b |\n|---|---|---|\n| put | 1,2 k | LMDB 3 |\n| get | 5.0 | **0.7** |\n";

    #[test]
    fn tables_of_figures_are_told_from_others() {
        let text = format!("a\n\n{FIGURES}\nb\n");
        assert_eq!(lines(&text), [3]);
        assert!(lines(&format!("<!-- figures: w1 -->\n{FIGURES}<!-- end -->\n")).is_empty());
        assert_eq!(lines(&format!("<!-- figures: w1 -->\nx\n<!-- end -->\n{FIGURES}")), [4]);
        let words = "| option | meaning |\n|---|---|\n| `--a` | 5 of them |\n| `--b` | the rest |\n| `--c` | no |\n";
        assert!(lines(words).is_empty());
        let file = File { path: "README.md".into(), text };
        assert_eq!(problems(&[&file]).len(), 1);
    }
}
