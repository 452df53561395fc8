//! The report: one HTML page that needs no other file, no script and no network.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use holdall_plot::escape;

use crate::experiment::{Claim, Paper};

use super::Record;
use super::claims::{self, Count};
use super::figure::{claim_anchor, duration, parameters, section};
use super::record::replace;
use super::style::STYLE;

/// The report's name in the output directory.
pub const FILE: &str = "report.html";

/// Makes the report under `dir` of all records there; `order` says which come first. Gives
/// its path.
///
/// # Errors
/// The directory cannot be listed or the report not written.
pub fn write(dir: &Path, order: &[&str]) -> Result<PathBuf> {
    let records = Record::read_all(dir, order)?;
    let path = dir.join(FILE);
    replace(&path, page(&records).as_bytes())?;
    Ok(path)
}

/// The page for `records`.
fn page(records: &[Record]) -> String {
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
    out += &counts(records);
    out += &contents(records);
    out += &claims_table(records);
    for record in records {
        out += &section(record);
    }
    out + "</body>\n</html>\n"
}

fn counts(records: &[Record]) -> String {
    let mut out = String::from("<ul class=\"counts\">\n");
    for from in [Some(Paper::Biliris), Some(Paper::McAuliffe), None] {
        let all = || {
            let all = records.iter().flat_map(|r| r.outcome.claims.iter().map(move |c| (r, c)));
            all.filter(|(r, c)| claims::source(r, c) == from).map(|(_, c)| c)
        };
        if all().next().is_none() {
            continue;
        }
        let (exact, others): (Vec<&Claim>, Vec<&Claim>) = all().partition(|c| claims::is_exact(c));
        let _ = writeln!(
            out,
            "<li><b>{}: {}</b>{}To be hit exactly (=): {}<br>With a tolerance or a shape: {}</li>",
            claims::source_name(from),
            Count::of(all()).words(),
            from.map_or_else(String::new, |_| numbered(all())),
            Count::of(exact).words(),
            Count::of(others).words()
        );
    }
    out + "</ul>\n"
}

/// The rows above by the numbers of the list of claims.
fn numbered<'c>(rows: impl Iterator<Item = &'c Claim>) -> String {
    match claims::whole(rows) {
        (_, 0) => String::new(),
        (hold, all) => format!("By their numbers, {hold} of {all} hold in every row<br>"),
    }
}

fn contents(records: &[Record]) -> String {
    let mut out = String::from("<nav><h2 id=\"contents\">Contents</h2>\n<ul>\n");
    out += "<li><a href=\"#claims\">All claims</a></li>\n";
    for record in records {
        let _ = writeln!(
            out,
            "<li><a href=\"#fig-{id}\">{}</a> <span class=\"soft small\">{id}, {}</span></li>",
            escape(&record.title),
            Count::of(&record.outcome.claims).words(),
            id = escape(&record.id),
        );
    }
    out + "</ul></nav>\n"
}

fn claims_table(records: &[Record]) -> String {
    let mut out = String::from("<h2 id=\"claims\">All claims</h2>\n");
    let all = claims::in_order(records);
    if all.is_empty() {
        return out + "<p>None checked yet.</p>\n";
    }
    out += "<div class=\"scroll\"><table class=\"claims\">\n<thead><tr><th>Claim</th><th>What the \
            paper says</th><th>Paper</th><th>Ours</th><th>Ratio</th><th>Tolerance</th>\
            <th>Verdict</th><th>Figure</th></tr></thead>\n<tbody>\n";
    for (record, claim) in all {
        out += &claim_row(record, claim);
    }
    out + "</tbody>\n</table></div>\n"
}

fn claim_row(record: &Record, claim: &Claim) -> String {
    let why = match claim.explanation.trim() {
        "" => String::new(),
        why => format!(
            "<tr class=\"why small\"><td></td><td colspan=\"7\">{}</td></tr>\n",
            escape(why)
        ),
    };
    let ratio = claim.ratio.filter(|r| r.is_finite()).map_or(String::new(), ratio);
    let word = claims::word(claim.verdict);
    format!(
        "<tr id=\"{anchor}\"><td class=\"id\">{}</td><td>{}</td><td data-l=\"paper\">{}</td>\
         <td data-l=\"ours\">{}</td><td class=\"n\" data-l=\"ratio\">{ratio}</td>\
         <td data-l=\"tolerance\">{}</td><td><span class=\"{word}\">{word}</span></td>\
         <td class=\"figure\" data-l=\"figure\"><a href=\"#fig-{id}\" title=\"{}\">{id}</a></td></tr>\n{why}",
        escape(&claim.id),
        escape(&claim.text),
        escape(&claim.paper),
        escape(&claim.ours),
        escape(&claim.tolerance),
        parameters(record),
        anchor = escape(&claim_anchor(record, &claim.id)),
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
