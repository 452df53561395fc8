//! How many claims of each paper hold, and which fail: what a reader wants to know first.
//!
//! Owns nothing. Every row of a claim counts; those beside the papers' lists count apart.

use std::fmt::Write as _;

use crate::experiment::{Claim, Verdict};
use crate::paper::{Library, OutOfReach, Paper};
use crate::picture::escape;

use super::Record;
use super::claims::{self, Count, source_name};
use super::figure::claim_anchor;

/// The counts of one source.
#[derive(Debug, Clone)]
pub struct Counted {
    /// Whose claims they are; nobody's if they stand beside the papers' lists.
    pub from: Option<&'static Paper>,
    /// Of the rows.
    pub rows: Count,
    /// Of the rows that fail: those that cannot hold today.
    pub out_of_reach: usize,
    /// Numbers of the list whose rows all hold, and numbers of which any row is judged.
    pub numbers: (usize, usize),
}

/// The counts of every source that has claims, in the report's order.
#[must_use]
pub fn by_source(library: &Library, records: &[Record]) -> Vec<Counted> {
    let mut out = Vec::new();
    for from in claims::sources(library) {
        let rows = claims::of_source(library, records, from);
        let all = || rows.iter().map(|row| row.2);
        if !rows.is_empty() {
            let out_of_reach = all().filter(|claim| obstacle(library, claim).is_some()).count();
            let (rows, numbers) = (Count::of(all()), claims::whole(all()));
            out.push(Counted { from, rows, out_of_reach, numbers });
        }
    }
    out
}

/// Why a claim that fails cannot hold today; `None` for one that must, or does.
fn obstacle(library: &Library, claim: &Claim) -> Option<&'static OutOfReach> {
    (library.out_of_reach)(&claim.id).filter(|_| claim.verdict == Verdict::Fails)
}

/// That and why a row is out of reach; empty if it is not.
fn out_of_reach(library: &Library, claim: &Claim) -> String {
    obstacle(library, claim).map_or(String::new(), |row| {
        let (words, because) = (row.obstacle.words(), escape(&row.because));
        format!("<b>Out of reach, {words}:</b> {because} ")
    })
}

/// `93 %`; nothing of nothing.
#[must_use]
pub fn share(part: usize, of: usize) -> String {
    if of == 0 { String::new() } else { format!("{:.0} %", 100.0 * part as f64 / of as f64) }
}

/// The table of counts by paper.
pub(super) fn table(library: &Library, records: &[Record]) -> String {
    let all = by_source(library, records);
    if all.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2 id=\"counts\">How many claims hold</h2>\n<div class=\"scroll\"><table class=\"counts\">\n<thead><tr>\
         <th>Claims of</th><th class=\"n\">rows</th><th class=\"n\">judged</th>\
         <th class=\"n\">hold</th><th class=\"n\">hold by assumption</th><th class=\"n\">fail</th>\
         <th class=\"n\">of these out of reach</th><th class=\"n\">notes</th>\
         <th class=\"n\">hold, of those judged</th><th class=\"n\">hold, of those in reach</th>\
         <th class=\"n\">numbers that hold in every row</th></tr></thead>\n<tbody>\n",
    );
    for Counted { from, rows, out_of_reach, numbers } in all {
        let link = from.map_or("beside".to_owned(), |paper| format!("paper-{}", paper.name));
        let whole = match numbers {
            (hold, all) if from.is_some() && all > 0 => format!("{hold} of {all}"),
            _ => String::new(),
        };
        // Writing to a string cannot fail, here and below.
        let _ = write!(out, "<tr><td><a href=\"#{link}\">{}</a></td>", source_name(from));
        let Count { hold, assumed, fail, notes } = rows;
        for count in [rows.all(), rows.judged(), hold, assumed, fail, out_of_reach, notes] {
            let _ = write!(out, "<td class=\"n\">{count}</td>");
        }
        let strict = share(hold, rows.judged());
        let in_reach = share(hold + assumed, rows.judged() - out_of_reach);
        for cell in [strict, in_reach, whole] {
            let _ = write!(out, "<td class=\"n\">{cell}</td>");
        }
        out.push_str("</tr>\n");
    }
    out + "</tbody>\n</table></div>\n<p class=\"soft small\">A row holds within what is allowed, \
           fixed before the run. It holds by assumption if the paper's words fail and another \
           reading of them, named there, holds; of those in reach it counts with those that hold. \
           A row is out of reach if it fails and cannot hold today: its paper contradicts itself or \
           omits what decides the figure, or the machine and its systems differ. A note is not \
           judged: it cannot fail.</p>\n"
}

/// The rows of a source that fail, each with its reason; a sentence if none does.
pub(super) fn failing(library: &Library, records: &[Record], from: Option<&Paper>) -> String {
    let mut rows = claims::of_source(library, records, from);
    let judged = Count::of(rows.iter().map(|row| row.2)).judged();
    rows.retain(|row| row.2.verdict == Verdict::Fails);
    match (rows.len(), judged) {
        (_, 0) => return "<p>No row is judged in this run.</p>\n".to_owned(),
        (0, _) => return "<p>No judged row fails.</p>\n".to_owned(),
        _ => {}
    }
    let fail = if rows.len() == 1 { "row fails" } else { "rows fail" };
    let mut out = format!("<p><b>{} of {judged} judged {fail}:</b></p>\n<ul>\n", rows.len());
    for (record, at, claim) in rows {
        let why = match claim.explanation.trim() {
            "" => "no reason is given",
            why => why,
        };
        let _ = writeln!(
            out,
            "<li><a href=\"#{}\">{}</a>: {}: <span class=\"fails\">{}</span> instead of {} \
             <span class=\"soft\">(allowed: {})</span>. {}{}</li>",
            claim_anchor(record, at),
            escape(&claim.id),
            escape(&claim.text),
            escape(&claim.ours),
            if claim.paper.is_empty() {
                "what is allowed".to_owned()
            } else {
                escape(&claim.paper)
            },
            escape(&claim.tolerance),
            out_of_reach(library, claim),
            escape(why)
        );
    }
    out + "</ul>\n"
}
