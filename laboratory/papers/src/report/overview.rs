//! What the five papers together say about how to store objects, and what the engine does.
//!
//! Owns: the report's first words. Each sentence names the claims it rests on; the report says
//! beside it how many of their rows hold.

use std::fmt::Write as _;

use holdall_plot::escape;

use super::Record;
use super::claims::{self, Count};
use super::figure::claim_anchor;
use crate::papers::PAPERS;

/// The sentences, each with the numbers of the claims it rests on.
const SENTENCES: [(&str, &[&str]); 10] = [
    (
        "A large object is read fastest from few long segments, since seeks are what a read pays \
         for; the engine takes segments of any length from buddy spaces.",
        &["B8", "B13", "B18"],
    ),
    (
        "Bytes are inserted and deleted through a tree of byte counts, at a cost that hardly \
         depends on the object's size, while copying what lies behind them takes seconds for \
         10 MB; the engine's large objects are such trees.",
        &["B14", "B21", "B22"],
    ),
    (
        "Segments that edits make short are joined with their neighbours: small thresholds cost \
         nothing and keep pages full; the engine joins below eight pages.",
        &["B12", "B20"],
    ),
    (
        "A new small object needs no search for its page: a few pages known to have room keep a \
         file nearly full and take next to no memory; the engine places records that way.",
        &["M2", "M4", "M8"],
    ),
    (
        "A file to which objects are only appended grows on while they come and go; the engine \
         fills holes before its file grows.",
        &["M1", "M4"],
    ),
    (
        "Free space is kept in memory, where an allocation costs one access at most, and can be \
         found again from the disk after a crash; the engine derives buddy trees from bitmaps that \
         its log protects.",
        &["I1", "I2", "I3"],
    ),
    (
        "Space for many objects allocated at once lies together and is written as one stream; the \
         engine allocates for a whole transaction when it commits.",
        &["I7", "I8"],
    ),
    (
        "A logical id points straight into a table of places: the smallest of all mappings, and one \
         page at most to look at; the engine's handle table is one.",
        &["E1", "E2", "E4", "E9"],
    ),
    (
        "A number in each slot that is never given out twice tells an id whose object is gone from \
         one that lives; every OID of the engine carries it.",
        &["E10"],
    ),
    (
        "Stores age by the way they give out freed space: pages given out one by one leave an object \
         in half as many pieces as pages, runs leave it in few, and a large one in fewer yet where \
         its size is known before; the engine gives out runs and takes the size as a hint.",
        &["S2", "S3", "S5"],
    ),
];

/// The section, with the sentences of whose claims some were judged; empty without any.
pub(super) fn section(records: &[Record]) -> String {
    let mut out = String::new();
    for (sentence, numbers) in SENTENCES {
        let rests: Vec<_> = numbers.iter().filter_map(|number| rows(records, number)).collect();
        if !rests.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "<li>{} <span class=\"soft small\">({})</span></li>",
                escape(sentence),
                rests.join("; ")
            );
        }
    }
    match out.is_empty() {
        true => out,
        false => format!(
            "<h2 id=\"overview\">What the five papers say together</h2>\n<ol>\n{out}</ol>\n"
        ),
    }
}

/// How many rows of a claim hold, with a link to the first; `None` where none was judged.
fn rows(records: &[Record], number: &str) -> Option<String> {
    let paper = PAPERS.into_iter().find(|paper| number.starts_with(paper.letter));
    let mut all = claims::of_source(records, paper);
    all.retain(|(_, _, claim)| claim.id.split_whitespace().next() == Some(number));
    let count = Count::of(all.iter().map(|row| row.2));
    let judged = count.hold + count.assumed + count.fail;
    let (record, at, _) = all.first().filter(|_| judged > 0)?;
    let anchor = claim_anchor(record, *at);
    Some(format!("<a href=\"#{anchor}\">{number}</a>: {} of {judged} hold", count.hold))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sentence_rests_on_claims_of_papers() {
        for (sentence, numbers) in SENTENCES {
            assert!(!numbers.is_empty(), "{sentence}");
            for number in numbers {
                let paper = PAPERS.into_iter().find(|p| number.starts_with(p.letter));
                assert!(paper.is_some(), "{number}");
                assert!(number[1..].parse::<u32>().is_ok(), "{number}");
            }
        }
        assert!(section(&[]).is_empty());
    }
}
