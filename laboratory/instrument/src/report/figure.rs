//! One experiment's section of the report.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::picture::{Table, escape};

use super::Record;
use super::claims::Count;
use crate::experiment::Claim;
use crate::paper::Library;

/// Tables that stand in the report already, by their cells: where.
#[derive(Default)]
pub(super) struct Shown(HashMap<String, String>);

impl Shown {
    /// The table, or where the same cells stand already.
    fn table(&mut self, table: &Table, record: &Record, name: &str) -> String {
        let cells = std::iter::once(&table.head).chain(&table.rows);
        let key = cells.map(|row| row.join("\u{1f}")).collect::<Vec<_>>().join("\u{1e}");
        if let Some(first) = self.0.get(&key) {
            return format!("<p class=\"small\">The same as {first}.</p>\n");
        }
        let (id, title) = (escape(&record.id), escape(&table.title));
        let anchor = format!("table-{id}-{name}");
        self.0.insert(key, format!("<a href=\"#{anchor}\">{title}</a> of <code>{id}</code>"));
        let file = format!("{}/{name}", record.id);
        format!("<div id=\"{anchor}\">{}</div>\n", numbers(table, &file, "Table", true))
    }
}

/// The section: parameters, plots beside their numbers, tables, notes. Its claims stand in the
/// table of all claims, to which it points, and a table that stands in the report already is
/// not repeated.
pub(super) fn section(library: &Library, record: &Record, shown: &mut Shown) -> String {
    let mut out = String::new();
    let id = escape(&record.id);
    let outcome = &record.outcome;
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        out,
        "<section id=\"fig-{id}\">\n<h2>{}</h2>\n<p class=\"soft small\"><code>{id}</code> · {} · \
         {} · {}</p>",
        escape(&record.title),
        library.named(&record.paper).map_or("", |p| p.citation),
        parameters(record),
        Count::of(&outcome.claims).words(),
    );
    if !outcome.claims.is_empty() {
        let link = |(at, claim): (usize, &Claim)| {
            format!("<a href=\"#{}\">{}</a>", claim_anchor(record, at), escape(&claim.id))
        };
        let links: Vec<String> = outcome.claims.iter().enumerate().map(link).collect();
        let _ = writeln!(out, "<p class=\"small\">Claims: {}</p>", links.join(", "));
    }
    let (panels, tables) = record.names();
    for (panel, name) in outcome.panels.iter().zip(&panels) {
        let _ = writeln!(
            out,
            "<figure>\n<div class=\"plot scroll\">{}</div>\n{}</figure>",
            panel.svg(),
            numbers(&panel.table(), &format!("{}/{name}", record.id), "Numbers", false)
        );
    }
    for (table, name) in outcome.tables.iter().zip(&tables) {
        let _ = writeln!(out, "<h3>{}</h3>", escape(&table.title));
        out += &shown.table(table, record, name);
    }
    if !outcome.notes.is_empty() {
        out += "<h3>Notes and assumptions</h3>\n<ul class=\"notes small\">\n";
        for note in &outcome.notes {
            let _ = writeln!(out, "<li>{}</li>", escape(note));
        }
        out += "</ul>\n";
    }
    out + "</section>\n"
}

fn numbers(table: &Table, file: &str, what: &str, open: bool) -> String {
    let rows = match table.rows.len() {
        1 => "1 row".to_string(),
        n => format!("{n} rows"),
    };
    // A long table is shut on the screen; on paper only the numbers of long curves are left out.
    let open = match (table.rows.len() <= 40, open) {
        (true, true) => " open",
        (false, false) => " class=\"long\"",
        _ => "",
    };
    format!(
        "<details{open}><summary>{what} ({rows})</summary>\n<div class=\"scroll\">{}</div>\n\
         <p class=\"soft small\">All digits: <code>{}.csv</code></p></details>\n",
        table.html(),
        escape(file)
    )
}

/// `full size, seed 1, 3.2 s, version 0.1.0`.
pub(super) fn parameters(record: &Record) -> String {
    let size = if record.parameters.quick { "quick" } else { "full size" };
    format!(
        "{size}, seed {}, ran {}, version {}",
        record.parameters.seed,
        duration(record.seconds),
        escape(&record.parameters.version)
    )
}

/// `0.3 s`, `2 min 5 s`.
pub(super) fn duration(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    format!("{} min {} s", whole / 60, whole % 60)
}

/// Where the table of all claims has the claim at a place in its record. Two claims may have
/// one name, so the place names the anchor.
pub(super) fn claim_anchor(record: &Record, at: usize) -> String {
    format!("claim-{}-{at}", escape(&record.id))
}
