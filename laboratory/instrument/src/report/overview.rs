//! What the papers together say: the report's first words.
//!
//! Owns nothing. Each sentence names the claims it rests on; the report says beside it how many
//! of their rows hold.

use std::fmt::Write as _;

use crate::picture::escape;

use super::Record;
use super::claims::{self, Count};
use super::figure::claim_anchor;
use crate::paper::{Library, Sentence};

/// The section, with the sentences of whose claims some were judged; empty without any.
pub(super) fn section(library: &Library, records: &[Record]) -> String {
    let mut out = String::new();
    for Sentence { text, claims } in (library.together)() {
        let rests: Vec<_> =
            claims.iter().filter_map(|number| rows(library, records, number)).collect();
        if !rests.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "<li>{} <span class=\"soft small\">({})</span></li>",
                escape(&text),
                rests.join("; ")
            );
        }
    }
    match out.is_empty() {
        true => out,
        false => {
            format!("<h2 id=\"overview\">What the papers say together</h2>\n<ol>\n{out}</ol>\n")
        }
    }
}

/// How many rows of a claim hold, with a link to the first; `None` if none was judged.
fn rows(library: &Library, records: &[Record], number: &str) -> Option<String> {
    let mut all = claims::of_source(library, records, library.claiming(number));
    all.retain(|(_, _, claim)| claim.id.split_whitespace().next() == Some(number));
    let count = Count::of(all.iter().map(|row| row.2));
    let judged = count.hold + count.assumed + count.fail;
    let (record, at, _) = all.first().filter(|_| judged > 0)?;
    let anchor = claim_anchor(record, *at);
    Some(format!("<a href=\"#{anchor}\">{number}</a>: {} of {judged} hold", count.hold))
}
