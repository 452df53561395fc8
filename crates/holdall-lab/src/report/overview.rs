//! What the five papers together say about how to store objects.
//!
//! Owns: the report's first words. Each sentence rests on claims of the report.

use std::fmt::Write as _;

use holdall_plot::escape;

/// The sentences, each with where to look.
const SENTENCES: [(&str, &str); 0] = [];

/// The section; empty without sentences.
pub(super) fn section() -> String {
    let mut out = String::new();
    for (sentence, at) in SENTENCES {
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<li>{} <span class=\"soft small\">({})</span></li>",
            escape(sentence),
            escape(at)
        );
    }
    match out.is_empty() {
        true => out,
        false => format!(
            "<h2 id=\"overview\">What the five papers say together</h2>\n<ol>\n{out}</ol>\n"
        ),
    }
}
