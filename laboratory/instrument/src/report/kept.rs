//! Claims as data: the file that a published run is kept as, and the table beside the report.
//!
//! Owns: the form of `claims.json`, from which documents take their tables of claims
//! (`cargo xtask figures`). It has claims only: what was drawn stays with the records.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::files::replace;
use crate::folder;
use crate::paper::Library;
use crate::picture::Table;

use super::Record;
use super::claims::{self, word};

/// The file of a published run.
const CLAIMS: &str = "claims.json";

/// A published run of all experiments.
#[derive(Serialize)]
struct Run<'a> {
    date: &'a str,
    commit: &'a str,
    machine: &'a str,
    program: &'a str,
    quick: bool,
    seed: u64,
    papers: Vec<Paper>,
    claims: Vec<Kept<'a>>,
}

#[derive(Serialize)]
struct Paper {
    name: &'static str,
    citation: &'static str,
    reference: &'static str,
}

/// A claim; `of` is its paper, or empty if it is ours beside the papers' lists.
#[derive(Serialize)]
struct Kept<'a> {
    id: &'a str,
    of: &'static str,
    experiment: &'a str,
    section: &'a str,
    text: &'a str,
    paper: &'a str,
    ours: &'a str,
    allowed: &'a str,
    verdict: &'static str,
    because: &'a str,
}

/// Every claim in the report's order.
fn all<'a>(library: &Library, records: &'a [Record]) -> Vec<Kept<'a>> {
    let mut out = Vec::new();
    for from in claims::sources(library) {
        let rows = claims::of_source(library, records, from).into_iter();
        out.extend(rows.map(|(record, _, claim)| Kept {
            id: &claim.id,
            of: from.map_or("", |paper| paper.name),
            experiment: &record.id,
            section: &claim.section,
            text: &claim.text,
            paper: &claim.paper,
            ours: &claim.ours,
            allowed: &claim.tolerance,
            verdict: word(claim.verdict),
            because: &claim.explanation,
        }));
    }
    out
}

/// Every claim as CSV.
pub(super) fn claims_csv(library: &Library, records: &[Record]) -> String {
    let head = [
        "claim",
        "of",
        "experiment",
        "section",
        "text",
        "paper",
        "ours",
        "allowed",
        "verdict",
        "because",
    ];
    let row = |k: Kept<'_>| {
        let cells = [
            k.id,
            k.of,
            k.experiment,
            k.section,
            k.text,
            k.paper,
            k.ours,
            k.allowed,
            k.verdict,
            k.because,
        ];
        cells.map(str::to_owned).to_vec()
    };
    let rows = all(library, records).into_iter().map(row).collect();
    let (id, title) = ("claims".to_owned(), "Claims".to_owned());
    Table { id, title, head: head.map(str::to_owned).to_vec(), rows }.csv()
}

/// Keeps the claims of `records`, which are of one build with one seed and size, in a new folder
/// below `into`, named by the day and the commit on which the first of them ran. Gives the folder.
///
/// # Errors
/// There is no record, or the folder cannot be written.
pub fn publish(library: &Library, records: &[Record], into: &Path) -> Result<PathBuf> {
    let first = records.first().context("there is no record to keep")?;
    let origin = records.iter().map(|r| &r.origin).min().unwrap_or(&first.origin);
    let papers = library.papers.iter();
    let run = Run {
        date: &origin.date,
        commit: &origin.commit,
        machine: &origin.machine,
        program: &first.parameters.version,
        quick: first.parameters.quick,
        seed: first.parameters.seed,
        papers: papers
            .map(|p| Paper { name: p.name, citation: p.citation, reference: p.reference })
            .collect(),
        claims: all(library, records),
    };
    let folder = folder::make(into, run.date, run.commit, "lab")?;
    let json = serde_json::to_vec_pretty(&run).context("writing the claims as JSON")?;
    replace(&folder.join(CLAIMS), &json)?;
    Ok(folder)
}
