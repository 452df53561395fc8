//! Tables of figures that no kept run made.
//!
//! Owns: which tables count as such, and how many of them each document still has: until
//! a run is kept that has their rows. The number may fall and never rise.

use super::block::{Piece, pieces};
use crate::source::File;

/// Documents whose tables of figures are of runs that kept no `results.json`. Those of the lab
/// are of its own records, of which only the claims are kept.
const LEFT: [(&str, usize); 1] = [("docs/lab/free-space.md", 1)];

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
    // Markers that are wrong are reported with the text that they should hold.
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

/// Whether most cells beside the first column are numbers. Columns of HTTP's error codes have no
/// figures.
fn is_of_figures(table: &[&str]) -> bool {
    let rows: Vec<Vec<&str>> = table.iter().skip(2).map(|line| cells(line)).collect();
    let (mut all, mut numbers) = (0, 0);
    for column in 1..rows.iter().map(Vec::len).max().unwrap_or(0) {
        let there = rows.iter().filter_map(|row| row.get(column).copied());
        let there: Vec<&str> = there.filter(|cell| !cell.is_empty()).collect();
        let figures: Vec<&str> = there.iter().copied().filter(|cell| is_figure(cell)).collect();
        all += there.len();
        numbers += if figures.iter().all(|cell| is_error_code(cell)) { 0 } else { figures.len() };
    }
    all >= 3 && numbers * 2 > all
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_start_matches('|').trim_end_matches('|').split('|').map(str::trim).collect()
}

/// `501`, `400: why`.
fn is_error_code(cell: &str) -> bool {
    let code = cell.split([':', ';', ' ']).next().unwrap_or_default();
    code.len() == 3 && code.parse::<u16>().is_ok_and(|code| (400..600).contains(&code))
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
        let codes = "| header | answer |\n|---|---|\n| a | 400: why |\n| b | 501 |\n| c | 413 |\n";
        assert!(lines(codes).is_empty());
        let file = File { path: "docs/lab/none.md".into(), text };
        assert_eq!(problems(&[&file]).len(), 1);
        let file = File { path: "docs/lab/free-space.md".into(), text: String::new() };
        assert!(problems(&[&file])[0].contains("lower its 1"), "the list follows the documents");
    }
}
