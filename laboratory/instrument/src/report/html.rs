//! The report: one HTML page that needs no other file, no script and no network.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::picture::escape;
use anyhow::Result;

use crate::experiment::Claim;
use crate::paper::{Library, Paper};

use super::claims::{self, Count, source_name};
use super::counts;
use super::figure::{Shown, claim_anchor, duration, parameters, section};
use super::style::STYLE;
use super::{Origin, Record};
use super::{kept, overview};
use crate::files::replace;

/// The report's name in the output directory.
pub const FILE: &str = "report.html";
/// Beside it: every claim as CSV. The numbers of plots and tables lie in the experiments' folders.
pub const CLAIMS: &str = "claims.csv";

/// Makes the report under `dir` of all records there; `order` says which come first. Gives
/// its path.
///
/// # Errors
/// The directory cannot be listed or the report not written.
pub fn write(library: &Library, dir: &Path, order: &[&str]) -> Result<PathBuf> {
    let records = Record::read_all(dir, order)?;
    let path = dir.join(FILE);
    replace(&path, page(library, &records).as_bytes())?;
    replace(&dir.join(CLAIMS), kept::claims_csv(library, &records).as_bytes())?;
    Ok(path)
}

/// The page for `records`.
fn page(library: &Library, records: &[Record]) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Holdall lab report</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Holdall lab report</h1>\n"
    );
    let seconds: f64 = records.iter().map(|r| r.seconds).sum();
    let quick = records.iter().filter(|r| r.parameters.quick).count();
    let _ = writeln!(
        out,
        "<p class=\"soft\">Experiments: {} ({} of them quick), {} in all. Claims of the papers are \
         held against what the code of this project does; a claim that fails says why.</p>",
        records.len(),
        quick,
        duration(seconds)
    );
    if quick > 0 {
        out += "<p><b>Quick runs are smaller than the papers' and rougher.</b> Where the size \
                matters to a claim, it is a note there and not judged.</p>\n";
    }
    out += &origins(records);
    out += &counts::table(library, records);
    out += &overview::section(library, records);
    out += &contents(library, records);
    let mut shown = Shown::default();
    for &paper in library.papers {
        out += &paper_part(library, records, paper, &mut shown);
    }
    let beside = claims_table(library, records, None);
    if !beside.is_empty() {
        let failing = counts::failing(library, records, None);
        let _ = writeln!(out, "<h2 id=\"beside\">{}</h2>\n{failing}{beside}", source_name(None));
    }
    out + "</body>\n</html>\n"
}

/// A paper: what it asked, what its claims came to, its figures. Empty if nothing of it ran.
fn paper_part(
    library: &Library,
    records: &[Record],
    paper: &'static Paper,
    shown: &mut Shown,
) -> String {
    let own = || records.iter().filter(|r| r.paper == paper.name);
    if own().next().is_none() {
        return String::new();
    }
    let mut out = format!(
        "<h2 class=\"paper\" id=\"paper-{}\">{}: {}</h2>\n",
        paper.name, paper.citation, paper.about
    );
    let _ = writeln!(out, "<p class=\"reference\">{}</p>", escape(paper.reference));
    out += &counts::failing(library, records, Some(paper));
    for text in [paper.question, paper.bearing].into_iter().filter(|t| !t.is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", escape(text));
    }
    let claims = claims_table(library, records, Some(paper));
    if !claims.is_empty() {
        let _ = writeln!(out, "<h3 id=\"claims-{}\">Claims</h3>\n{claims}", paper.name);
    }
    for record in own() {
        out += &section(library, record, shown);
    }
    out
}

/// When, where and of what the experiments ran, once each.
fn origins(records: &[Record]) -> String {
    let mut by_origin: BTreeMap<(&Origin, &str), usize> = BTreeMap::new();
    for record in records {
        *by_origin.entry((&record.origin, &record.parameters.version)).or_default() += 1;
    }
    let one = |((origin, version), count): (&(&Origin, &str), &usize)| {
        let which = if by_origin.len() == 1 { String::new() } else { format!("{count} of them: ") };
        format!(
            "<p class=\"soft\">{which}{}, commit <code>{}</code>, on {}; program {}.</p>\n",
            escape(&origin.date),
            escape(&origin.commit),
            escape(&origin.machine),
            escape(version)
        )
    };
    by_origin.iter().map(one).collect()
}

fn contents(library: &Library, records: &[Record]) -> String {
    let mut out = String::from("<nav><h2 id=\"contents\">Contents</h2>\n");
    for &paper in library.papers {
        let own: Vec<&Record> = records.iter().filter(|r| r.paper == paper.name).collect();
        if own.is_empty() {
            continue;
        }
        let _ = writeln!(
            out,
            "<p><a href=\"#paper-{}\"><b>{}</b></a>: {}</p>\n<ul>",
            paper.name, paper.citation, paper.about
        );
        for record in own {
            let _ = writeln!(
                out,
                "<li><a href=\"#fig-{id}\">{}</a> <span class=\"soft small\">{id}, {}</span></li>",
                escape(&record.title),
                Count::of(&record.outcome.claims).words(),
                id = escape(&record.id),
            );
        }
        out += "</ul>\n";
    }
    out + "</nav>\n"
}

/// The claims of a source; empty without any.
fn claims_table(library: &Library, records: &[Record], from: Option<&Paper>) -> String {
    let rows = claims::of_source(library, records, from);
    if rows.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<div class=\"scroll\"><table class=\"claims\">\n<thead><tr><th>Claim</th><th>What the \
         paper says</th><th>Where</th><th>Paper</th><th>Ours</th><th>Ratio</th><th>Allowed</th>\
         <th>Verdict</th><th>Figure</th></tr></thead>\n<tbody>\n",
    );
    for (record, at, claim) in rows {
        out += &claim_row(record, at, claim);
    }
    out + "</tbody>\n</table></div>\n"
}

fn claim_row(record: &Record, at: usize, claim: &Claim) -> String {
    let why = match claim.explanation.trim() {
        "" => String::new(),
        why => format!(
            "<tr class=\"why small\"><td></td><td colspan=\"8\">{}</td></tr>\n",
            escape(why)
        ),
    };
    let ratio = claim.ratio.filter(|r| r.is_finite()).map_or(String::new(), ratio);
    let word = claims::word(claim.verdict);
    let class = word.split(' ').next_back().unwrap_or_default();
    format!(
        "<tr id=\"{anchor}\"><td class=\"id\">{}</td><td>{}</td>\
         <td class=\"where\" data-l=\"where\">{}</td><td data-l=\"paper\">{}</td>\
         <td data-l=\"ours\">{}</td><td class=\"n\" data-l=\"ratio\">{ratio}</td>\
         <td data-l=\"allowed\">{}</td><td><span class=\"{class}\">{word}</span></td>\
         <td class=\"figure\" data-l=\"figure\"><a href=\"#fig-{id}\" title=\"{}\">{id}</a></td></tr>\n{why}",
        escape(&claim.id),
        escape(&claim.text),
        escape(&claim.section),
        escape(&claim.paper),
        escape(&claim.ours),
        escape(&claim.tolerance),
        parameters(record),
        anchor = claim_anchor(record, at),
        id = escape(&record.id),
    )
}

/// Three digits, which is what tolerances need; more only for ratios of thousands.
fn ratio(value: f64) -> String {
    if value == 0.0 || (0.1..10.0).contains(&value.abs()) {
        format!("{value:.3}")
    } else if value.abs() >= 10.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.2e}")
    }
}
