//! Tables of the lab's claims, from the newest run that `holdall-lab all --into` kept.
//!
//! Owns: their form, and which run counts: one of full size and of a commit that anybody can
//! check out. Which claims cannot hold today, [`reach`](super::reach) says. A marker asks for `lab` (how many claims of each paper hold), for `lab/PAPER` or for
//! `lab/NUMBER` (the rows of a paper, or of a claim), or for those of them that do not plainly hold,
//! with the reasons: `lab/PAPER failing`.

use super::block::Item;
use super::reach::List;
use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use std::fmt::Write as _;
use std::path::Path;

/// What the lab's command keeps.
const CLAIMS: &str = "claims.json";
/// What a marker calls the lab.
const LAB: &str = "lab";
/// Behind a paper or a number: only the rows that do not plainly hold.
const FAILING: &str = " failing";
/// Stands in place of a table until there is a run.
const NONE: &str = "\nNo run of full size is kept yet.\n\n";

/// A kept run.
#[derive(Debug, Deserialize)]
pub struct Run {
    date: String,
    commit: String,
    machine: String,
    quick: bool,
    seed: u64,
    papers: Vec<Paper>,
    claims: Vec<Claim>,
}

#[derive(Debug, Deserialize)]
struct Paper {
    name: String,
    citation: String,
}

#[derive(Debug, Deserialize)]
struct Claim {
    id: String,
    /// The name of its paper; empty if it is none's.
    of: String,
    section: String,
    text: String,
    paper: String,
    ours: String,
    allowed: String,
    verdict: String,
    because: String,
    /// Why it cannot hold today, by the lab's list; `None` for one that must.
    #[serde(skip)]
    out_of_reach: Option<String>,
}

/// The newest run below `folder` that counts, with the claims of `list` out of reach.
///
/// # Errors
/// A `claims.json` that cannot be read or is none of a run. A claim of the list that does not
/// fail there.
pub fn newest(folder: &Path, list: &List) -> Result<Option<Run>> {
    let mut found: Option<(String, Run)> = None;
    if !folder.exists() {
        return Ok(None);
    }
    for entry in std::fs::read_dir(folder).context("reading the folder of kept runs")? {
        let entry = entry?;
        let (path, name) = (entry.path().join(CLAIMS), entry.file_name());
        if !path.is_file() {
            continue;
        }
        let shown = path.display();
        let bytes = std::fs::read(&path).with_context(|| format!("reading {shown}"))?;
        let run: Run = serde_json::from_slice(&bytes)
            .with_context(|| format!("{shown} holds no claims of a run"))?;
        let counts = !run.quick && run.commit != "unknown" && !run.commit.ends_with("-dirty");
        // The folder's name tells runs of one day apart.
        let key = format!("{} {}", run.date, name.to_string_lossy());
        if counts && found.as_ref().is_none_or(|(newest, _)| *newest < key) {
            found = Some((key, run));
        }
    }
    let Some((_, mut run)) = found else { return Ok(None) };
    for id in list.claims() {
        let of: Vec<_> = run.claims.iter_mut().filter(|claim| claim.id == id).collect();
        let fails = !of.is_empty() && of.iter().all(|claim| claim.verdict == "fails");
        ensure!(fails, "'{id}' is listed as out of reach, but does not fail in the kept run");
        of.into_iter().for_each(|claim| claim.out_of_reach = list.reason(id));
    }
    Ok(Some(run))
}

/// Whether a marker asks for claims of the lab.
pub fn is_asked(items: &[Item<'_>]) -> bool {
    items.iter().any(|item| item.workload == LAB)
}

/// The table of `items`, with an empty line around it.
///
/// # Errors
/// Items of a workload among them, or one that the run has no claims of.
pub fn of(items: &[Item<'_>], run: Option<&Run>) -> Result<String> {
    ensure!(items.iter().all(|i| i.workload == LAB), "a table is of the lab or of workloads");
    let counts = items.iter().any(|item| item.row.is_empty());
    ensure!(!counts || items.len() == 1, "the counts of the lab are a table of their own");
    let Some(run) = run else { return Ok(NONE.to_owned()) };
    let mut out = format!(
        "\nCommit {} of {}, seed {}, on {}.\n\n",
        run.commit, run.date, run.seed, run.machine
    );
    if counts {
        out.push_str(&counted(run));
        return Ok(out + "\n");
    }
    let (mut rows, mut failing) = (Vec::new(), Vec::new());
    for Item { row, .. } in items {
        let name = row.strip_suffix(FAILING).unwrap_or(row);
        let mut of = run.claims.iter().filter(|c| c.of == name || c.number() == name).peekable();
        ensure!(of.peek().is_some(), "the lab's kept run has no claims of {name}");
        if name.len() < row.len() {
            failing.extend(of.filter(|c| c.needs_reason()));
        } else {
            rows.extend(of);
        }
    }
    ensure!(rows.is_empty() || failing.is_empty(), "failing rows are a table of their own");
    out.push_str(&if rows.is_empty() { reasons(&failing) } else { claims(&rows) });
    Ok(out + "\n")
}

impl Claim {
    /// Of the list of claims: the first word of its name.
    fn number(&self) -> &str {
        self.id.split_whitespace().next().unwrap_or_default()
    }

    /// Whether a reader must learn why it does not plainly hold.
    fn needs_reason(&self) -> bool {
        self.verdict == "fails" || self.verdict == "holds by assumption"
    }
}

/// How many claims of each paper hold.
fn counted(run: &Run) -> String {
    let mut out = String::from(
        "| claims of | rows | judged | hold | by assumption | fail | of these out of reach | notes \
         | hold, of those judged | of those in reach |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let papers = run.papers.iter().map(|p| (p.name.as_str(), p.citation.as_str()));
    for (name, citation) in papers.chain([("", "ours, beside them")]) {
        let of = || run.claims.iter().filter(|c| c.of == name);
        let count = |verdict: &str| of().filter(|c| c.verdict == verdict).count();
        let [hold, assumed, fail] = ["holds", "holds by assumption", "fails"].map(count);
        let judged = hold + assumed + fail;
        if of().next().is_none() {
            continue;
        }
        let out_of_reach = of().filter(|c| c.out_of_reach.is_some()).count();
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            out,
            "| {citation} | {} | {judged} | {hold} | {assumed} | {fail} | {out_of_reach} | {} | {} \
             | {} |",
            of().count(),
            count("note"),
            share(hold, judged),
            share(hold + assumed, judged - out_of_reach)
        );
    }
    out
}

/// `93 %`; nothing of nothing.
fn share(part: usize, of: usize) -> String {
    if of == 0 { String::new() } else { format!("{:.0} %", 100.0 * part as f64 / of as f64) }
}

/// The rows as a table, and below it why those that do not hold plainly do not.
fn claims(rows: &[&Claim]) -> String {
    let mut out = String::from(
        "| claim | where | what the paper says | paper | ours | allowed | verdict |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let Claim { id, section, text, paper, ours, allowed, verdict, .. } = row;
        let cells = [id, section, text, paper, ours, allowed].map(|text| cell(text));
        let verdict = if verdict == "fails" { "**fails**" } else { verdict };
        let _ = writeln!(out, "| {} | {verdict} |", cells.join(" | "));
    }
    let failing: Vec<&Claim> = rows.iter().copied().filter(|c| c.needs_reason()).collect();
    let in_reach = |c: &&&Claim| c.out_of_reach.is_none() && !c.because.trim().is_empty();
    for row in failing.iter().filter(in_reach) {
        let _ = write!(out, "\n- **{}** {}: {}", cell(&row.id), row.verdict, cell(&row.because));
    }
    if !out.ends_with('\n') {
        out.push('\n');
    }
    out + &out_of_reach(&failing)
}

/// The rows that cannot hold today, once below each reason, with their figures.
fn out_of_reach(rows: &[&Claim]) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for row in rows {
        let Some(reason) = &row.out_of_reach else { continue };
        let paper = if row.paper.is_empty() { &row.allowed } else { &row.paper };
        let [id, ours, paper] = [&row.id, &row.ours, paper].map(|text| cell(text));
        let line = format!("**{id}** ({ours}; paper: {paper})");
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, lines)) => lines.push(line),
            None => reasons.push((reason, vec![line])),
        }
    }
    let list = reasons.iter().map(|(why, lines)| format!("- {why} {}.\n", lines.join(", ")));
    let list: String = list.collect();
    if list.is_empty() { list } else { format!("\nOut of reach today:\n\n{list}") }
}

/// Rows that do not plainly hold, each with its reason.
fn reasons(rows: &[&Claim]) -> String {
    let mut out = String::from(
        "| claim | where | paper | ours | verdict | why |\n|---|---|---|---|---|---|\n",
    );
    for row in rows.iter().filter(|row| row.out_of_reach.is_none()) {
        let Claim { id, section, paper, ours, verdict, because, .. } = row;
        let cells = [id, section, paper, ours, verdict, because].map(|text| cell(text));
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out + &out_of_reach(rows)
}

/// As it must stand in a cell: one line without markup.
fn cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace('*', "\\*")
}
