//! Tables of figures in documents, written from the kept runs of the workloads and of the lab.
//!
//! Owns: which documents have such tables, `cargo xtask figures`, which writes them, and the
//! check that text and runs agree. A table stands between `<!-- figures` and `<!-- end -->`; the first
//! comment names its rows ([`block`]), `bench-results/*/results.json` has the figures
//! ([`run`]), and `claims.json` the claims of the papers ([`lab`]). Nobody writes such a table by hand, so none can be older than its run says.

pub mod block;
mod lab;
mod outside;
mod reach;
mod run;
mod table;

use crate::source::File;
use anyhow::{Context as _, Result, ensure};
use run::Run;
use std::path::Path;

/// Where kept runs are.
const RUNS: &str = "bench-results";

/// All that documents take their tables from.
struct Kept {
    runs: Vec<Run>,
    lab: Option<lab::Run>,
}

impl Kept {
    /// The runs in `folder`, by the list of claims out of reach at `list`.
    fn read(folder: &Path, list: &Path) -> Result<Self> {
        let list = reach::List::read(list)?;
        Ok(Self { runs: run::all(folder)?, lab: lab::newest(folder, &list)? })
    }
}

/// Documents that show figures: files, and folders with a slash.
const DOCUMENTS: [&str; 6] = [
    "README.md",
    "docs/benchmarks.md",
    "docs/serve.md",
    "docs/webdav.md",
    "docs/python.md",
    "docs/lab/",
];

fn has_figures(path: &str) -> bool {
    DOCUMENTS.iter().any(|d| path == *d || (d.ends_with('/') && path.starts_with(d)))
}

/// What is wrong with the figures of documents: text that differs from its run, rows that no
/// run has, tables of figures that no run made.
///
/// # Errors
/// Runs that cannot be read.
pub fn problems(root: &Path, documents: &[File]) -> Result<Vec<String>> {
    let kept = Kept::read(&root.join(RUNS), &root.join(reach::LIST))?;
    let mut out = Vec::new();
    for document in documents {
        let File { path, text } = document;
        match written(text, &kept) {
            Ok(right) if right != *text => {
                let same = right.lines().zip(text.lines()).take_while(|(a, b)| a == b).count();
                out.push(format!(
                    "{path}:{}: the figures are not those of {RUNS}; run `cargo xtask figures`",
                    same + 1
                ));
            }
            Ok(_) => {}
            Err(e) => out.push(format!("{path}: {e:#}")),
        }
    }
    let shown: Vec<&File> = documents.iter().filter(|d| has_figures(&d.path)).collect();
    out.extend(outside::problems(&shown));
    Ok(out)
}

/// Writes the figures of all documents. Returns the paths of those that changed.
///
/// # Errors
/// Files that cannot be read or written; a table that no run has the rows of. No document is
/// changed then.
pub fn write(root: &Path, documents: &[File]) -> Result<Vec<String>> {
    let kept = Kept::read(&root.join(RUNS), &root.join(reach::LIST))?;
    let mut changed = Vec::new();
    for File { path, text } in documents {
        let right = written(text, &kept).with_context(|| path.clone())?;
        if right != *text {
            changed.push((path, right));
        }
    }
    for (path, right) in &changed {
        // A document that was changed in between is nobody's to overwrite.
        let place = root.join(path);
        let now = std::fs::read_to_string(&place).with_context(|| format!("reading {path}"))?;
        let known = documents.iter().any(|d| d.path == **path && d.text == now);
        ensure!(known, "{path} was changed while its figures were made; start again");
        std::fs::write(&place, right).with_context(|| format!("writing {path}"))?;
    }
    Ok(changed.into_iter().map(|(path, _)| path.clone()).collect())
}

/// A document's text with the tables that its markers ask for.
fn written(text: &str, kept: &Kept) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    for piece in block::pieces(text)? {
        match piece {
            block::Piece::Text(text) => out.push_str(text),
            block::Piece::Block { marker, items, line } => {
                let table = if lab::is_asked(&items) {
                    lab::of(&items, kept.lab.as_ref())
                } else {
                    table::of(&items, &kept.runs)
                };
                let table = table.with_context(|| format!("figures in line {line}"))?;
                out.push_str(&format!("{marker}\n{table}{}\n", block::END));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
