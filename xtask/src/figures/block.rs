//! Where tables of figures stand in a document, and which rows they have.
//!
//! Owns: the markers. `<!-- figures` begins one, each item is a line of its own or stands between
//! semicolons, `-->` ends the marker, and `<!-- end -->` the table. An item is
//! `WORKLOAD`, `WORKLOAD/ROW`, or these with ` = LABEL` behind; `lab` stands for a workload, too.

use anyhow::{Context as _, Result, ensure};

/// Begins a marker.
const BEGIN: &str = "<!-- figures";
/// Ends what it asks for.
pub const END: &str = "<!-- end -->";

/// A part of a document.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Stays as it is.
    Text(&'a str),
    /// Is made anew.
    Block {
        /// From its first to its last character, without the line's end.
        marker: &'a str,
        /// The rows it asks for.
        items: Vec<Item<'a>>,
        /// Where it begins, from 1 on.
        line: usize,
    },
}

/// Rows of one workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// `w2`.
    pub workload: &'a str,
    /// How the row's name begins; all rows if it is empty.
    pub row: &'a str,
    /// What the document calls it, if not as the run does.
    pub label: Option<&'a str>,
}

/// A document in its parts. Fenced blocks are examples, and stay.
///
/// # Errors
/// A marker that does not end, that asks for nothing, or whose table does not end.
pub fn pieces(text: &str) -> Result<Vec<Piece<'_>>> {
    let (mut out, mut from, mut at, mut fenced) = (Vec::new(), 0, 0, false);
    while let Some(line) = text[at..].split_inclusive('\n').next() {
        fenced ^= line.trim_start().starts_with("```");
        let is_marker = line.trim_end() == BEGIN || line.starts_with(&format!("{BEGIN}:"));
        if fenced || !is_marker {
            at += line.len();
            continue;
        }
        let number = text[..at].matches('\n').count() + 1;
        let close = text[at..].find("-->").map(|n| at + n + "-->".len());
        let close = close.with_context(|| format!("line {number}: the marker does not end"))?;
        let marker = &text[at..close];
        ensure!(
            !marker[BEGIN.len()..].contains("<!--") && text[close..].starts_with('\n'),
            "line {number}: a marker stands alone on its lines and ends with -->"
        );
        let ending = format!("\n{END}\n");
        let end = text[close..].find(&ending).map(|n| close + n + ending.len());
        let end = end.with_context(|| format!("line {number}: no line {END} follows"))?;
        ensure!(
            !text[close..end].contains(BEGIN),
            "line {number}: no line {END} before the next marker"
        );
        out.push(Piece::Text(&text[from..at]));
        let items = items(marker).with_context(|| format!("line {number}"))?;
        out.push(Piece::Block { marker, items, line: number });
        (from, at) = (end, end);
    }
    out.push(Piece::Text(&text[from..]));
    Ok(out)
}

fn items(marker: &str) -> Result<Vec<Item<'_>>> {
    let inside = marker.trim_start_matches(BEGIN).trim_end_matches("-->");
    let inside = inside.trim_start_matches(':');
    let parts = inside.split(['\n', ';']).map(str::trim).filter(|part| !part.is_empty());
    let items: Vec<Item<'_>> = parts.map(item).collect();
    ensure!(!items.is_empty(), "the marker asks for no row");
    Ok(items)
}

fn item(text: &str) -> Item<'_> {
    let (what, label) = match text.split_once(" = ") {
        Some((what, label)) => (what.trim(), Some(label.trim())),
        None => (text, None),
    };
    let (workload, row) = what.split_once('/').unwrap_or((what, ""));
    Item { workload: workload.trim(), row: row.trim(), label }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_and_read() {
        let text = "a\n<!-- figures: w1; w2/8 threads = eight -->\nold\n<!-- end -->\nb\n\
                    <!-- figures\nw4/replace\n-->\n<!-- end -->\n```\n<!-- figures: w9 -->\n```\n";
        let found = pieces(text).unwrap();
        let item = |workload, row, label| Item { workload, row, label };
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!(found[0], Piece::Text("a\n"));
        let Piece::Block { marker, items, line } = &found[1] else { panic!("{found:?}") };
        assert_eq!((*line, *marker), (2, "<!-- figures: w1; w2/8 threads = eight -->"));
        assert_eq!(items, &[item("w1", "", None), item("w2", "8 threads", Some("eight"))]);
        assert_eq!(found[2], Piece::Text("b\n"));
        let Piece::Block { items, .. } = &found[3] else { panic!("{found:?}") };
        assert_eq!(items, &[item("w4", "replace", None)]);
    }

    #[test]
    fn markers_without_an_end_are_refused() {
        for text in [
            "<!-- figures: w1",
            "<!-- figures: w1 -->\n",
            "<!-- figures: w1 -->\n<!-- end -->",
            "<!-- figures: w1 --> x\n<!-- end -->\n",
            "<!-- figures: -->\n<!-- end -->\n",
            "<!-- figures: w1 -->\n<!-- figures: w2 -->\n<!-- end -->\n",
        ] {
            assert!(pieces(text).is_err(), "{text}");
        }
    }
}
