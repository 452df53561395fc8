//! A short table and one picture of a published run, made from its `results.json` alone.
//!
//! Owns: which row speaks for each workload, and the files `summary.md`, `ratios.svg` and
//! `ratios.png`. Ratios are told so that above one Holdall is better, also for times.

mod picture;
mod read;

use anyhow::{Context as _, Result};
use holdall_instrument::files::replace;
use holdall_instrument::folder::RESULTS;
use holdall_instrument::picture::number::plain as number;
use read::{Line, Results, Row, Workload};
use std::fmt::Write as _;
use std::path::Path;

/// The table.
const SUMMARY: &str = "summary.md";
/// The picture's files, without their extensions.
const PICTURE: &str = "ratios";
const BY_NAME: &str = "Holdall by name";
const BY_OID: &str = "Holdall by OID";

/// The row that speaks for a workload.
struct Headline {
    workload: &'static str,
    /// How its name begins; of several rows the last one counts. Sizes differ with `--quick`,
    /// so where no row begins with the first of these, the next one counts.
    begins: &'static [&'static str],
    /// Whether disk ÷ logical stands beside the speed.
    disk: bool,
}

const HEADLINES: [Headline; 10] = [
    Headline { workload: "w1", begins: &["ordered keys"], disk: false },
    Headline { workload: "w2", begins: &["8 threads"], disk: false },
    Headline { workload: "w3", begins: &["hot, a snapshot each, 1 thread"], disk: false },
    Headline { workload: "w4", begins: &["replace"], disk: true },
    Headline { workload: "w5", begins: &["1 MiB: durable put"], disk: false },
    Headline { workload: "w6", begins: &["1 MiB: write at age"], disk: true },
    Headline { workload: "w7", begins: &["100 B in 100 MiB", "100 B in"], disk: false },
    Headline { workload: "w8", begins: &["open after a clean close"], disk: false },
    Headline { workload: "w9", begins: &["puts, beside the stream"], disk: false },
    Headline { workload: "w10", begins: &["refill"], disk: true },
];

/// Writes the summary of the run in `folder` into it. Returns the table.
///
/// # Errors
/// There is no `results.json` of such a run; those of the file system and of drawing.
pub fn write(folder: &Path) -> Result<String> {
    let path = folder.join(RESULTS);
    let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let results: Results = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} holds no results of a run", path.display()))?;
    let table = table(&results);
    replace(&folder.join(SUMMARY), table.as_bytes())?;
    let panel = picture::panel(&results);
    replace(&folder.join(format!("{PICTURE}.svg")), panel.svg().as_bytes())?;
    let (width, height) = panel.size();
    let png = panel.png(width * 2, height * 2)?;
    replace(&folder.join(format!("{PICTURE}.png")), &png)?;
    Ok(table)
}

/// The whole summary as Markdown.
fn table(results: &Results) -> String {
    let mut out = format!("# Summary of {}\n\n{}.", results.name(), results.machine);
    let part = if results.complete { "" } else { " The run is not complete." };
    let size = if results.quick { " Small sizes (--quick)." } else { "" };
    let rounds = if results.rounds == 1 { "round" } else { "rounds" };
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "{part}{size} Medians of {} {rounds}; the ratio is the median of the rounds' ratios to the \
         round's best other store, and above 1 Holdall is better, also for times. \
         Disk ÷ logical is of the same row.\n\n\
         | row | Holdall by name / by OID | best other store | ratio | disk ÷ logical: Holdall; \
         other |\n|---|---|---|---|---|\n",
        results.rounds
    );
    for headline in &HEADLINES {
        let workload = results.workloads.iter().find(|w| w.workload == headline.workload);
        if let Some((workload, row)) = workload.and_then(|w| Some((w, headline.row(w)?))) {
            line(&mut out, headline, workload, row);
        }
    }
    out.push_str(&quiet(results));
    let _ = write!(out, "\n![Every row's ratio to the best other store]({PICTURE}.svg)\n");
    out
}

impl Headline {
    fn row<'a>(&self, workload: &'a Workload) -> Option<&'a Row> {
        let ours = |row: &&Row| row.of(BY_NAME).or(row.of(BY_OID)).is_some();
        let begins = |begin: &&str| {
            workload.rows.iter().filter(ours).rfind(|row| row.row.starts_with(begin))
        };
        self.begins.iter().find_map(begins)
    }
}

fn line(out: &mut String, headline: &Headline, workload: &Workload, row: &Row) {
    let pair = |of: &dyn Fn(&Line) -> Option<f64>| {
        let shown = |store| row.of(store).and_then(of).map_or("–".into(), number);
        format!("{} / {}", shown(BY_NAME), shown(BY_OID))
    };
    let values = pair(&|line| Some(line.value.median));
    let best = row.best_other();
    let other = best.map_or("–".into(), |b| format!("{} {}", b.store, number(b.value.median)));
    let ratio = if best.is_some() { pair(&|line| row.ratio(line)) } else { String::new() };
    let disk = |line: &Line| line.disk_per_logical.map(|d| d.median);
    let space = if headline.disk {
        let other = best.and_then(disk).map_or(String::new(), |d| format!("; {}", number(d)));
        pair(&disk) + &other
    } else {
        String::new()
    };
    let (title, unit) = (workload.title(row), &row.unit);
    let _ = writeln!(out, "| {title}, {unit} | {values} | {other} | {ratio} | {space} |");
}

/// What the probes said.
fn quiet(results: &Results) -> String {
    let disturbed = results.workloads.iter().filter(|w| w.disturbed() > 0);
    let all: Vec<String> = disturbed
        .map(|w| {
            format!(
                "{} in {} of {} rounds",
                w.workload.to_uppercase(),
                w.disturbed(),
                w.probes.len()
            )
        })
        .collect();
    if !all.is_empty() {
        return format!("\n† Disturbed by other work on the machine: {}.\n", all.join(", "));
    }
    let probes = results.workloads.iter().flat_map(|w| &w.probes);
    let text = if probes.clone().all(|p| p.quiet == Some(true)) {
        "The machine was quiet in all rounds."
    } else if probes.clone().all(|p| p.quiet.is_none()) {
        "The machine was not probed for other work."
    } else {
        "The machine was quiet in all rounds that were probed; some were not."
    };
    format!("\n{text}\n")
}

#[cfg(test)]
mod tests;
