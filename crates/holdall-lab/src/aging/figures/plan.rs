//! The cases that figures are made of, and what figures share.
//!
//! Owns: sizes of volumes, ages and limits, full and quick, and the assumptions that every
//! figure notes.

use anyhow::Result;
use holdall_plot::{Panel, Series, Table};

use crate::aging::system::{Ask, Kind};
use crate::aging::volume::FileSystem;
use crate::aging::workload::{Bench, Case, Point, Run, Sizes};
use crate::experiment::{Claim, Outcome, Settings};
use crate::kit::claim::finish;
use crate::kit::draw::{axis, lines, number, series, table};

/// 1 KB.
pub(super) const KB: usize = 1 << 10;
/// 1 MB.
pub(super) const MB: usize = 1 << 20;
/// One file for each object, where it is measured in any case.
pub(super) const FILES: Kind = Kind::Files(FileSystem::Ext4);

/// The case that others vary: safe writes of 64 KB requests without a hint on a volume half
/// full, to age 10.
pub(super) fn base(kind: Kind, sizes: Sizes, settings: &Settings<'_>) -> Case {
    let (Sizes::Constant(mean) | Sizes::Uniform(mean)) = sizes;
    // 320, 200 and 40 objects.
    let full = if mean < MB { 640 * mean } else { (400 * mean).min(800 * MB) } as u64;
    let (volume, ages, limit) = if settings.quick {
        let volume = (if mean < 4 * MB { 32 * MB } else { 8 * mean }) as u64;
        (volume, vec![1, 2], 1)
    } else {
        // XFS takes no smaller volume.
        let volume = if kind == Kind::Files(FileSystem::Xfs) { full.max(300 << 20) } else { full };
        (volume, vec![1, 2, 3, 4, 5, 6, 8, 10], 45)
    };
    let ask = Ask { request: 64 * KB, hint: false };
    Case { kind, sizes, volume, occupancy: 0.5, ask, together: 1, ages, limit }
}

/// Runs the cases; progress is told after each.
pub(super) fn run_all(settings: &Settings<'_>, cases: &[Case]) -> Result<Vec<Run>> {
    let bench = Bench::new(settings)?;
    let total = cases.len() as u64;
    let mut runs = Vec::new();
    for (done, case) in (0..).zip(cases) {
        (settings.progress)(done, total);
        runs.push(bench.run(case)?);
    }
    (settings.progress)(total, total);
    Ok(runs)
}

/// What Holdall is called where its writer is told the size, as a put of bytes in memory tells.
pub(super) const HINTED: &str = "Holdall, size known";

/// Every system in the base case, and Holdall a second time with the size known.
pub(super) fn base_runs(settings: &Settings<'_>, sizes: Sizes) -> Result<Vec<Run>> {
    let mut cases: Vec<Case> = Kind::ALL.iter().map(|&k| base(k, sizes, settings)).collect();
    let own = base(Kind::Holdall, sizes, settings);
    cases.push(Case { ask: Ask { hint: true, ..own.ask }, ..own });
    let mut runs = run_all(settings, &cases)?;
    if let Some(hinted) = runs.last_mut() {
        HINTED.clone_into(&mut hinted.system);
    }
    Ok(runs)
}

/// The runs that have points.
pub(super) fn ran(runs: &[Run]) -> impl Iterator<Item = &Run> {
    runs.iter().filter(|run| !run.points.is_empty())
}

/// The run of a system, if it has points.
pub(super) fn of(runs: &[Run], kind: Kind) -> Option<&Run> {
    ran(runs).find(|run| run.system == kind.name())
}

/// One figure of a point, by age.
pub(super) fn curve(run: &Run, value: fn(&Point) -> f64) -> Vec<(f64, f64)> {
    run.points.iter().map(|p| (p.age, value(p))).collect()
}

/// A panel of one figure by storage age, a line for each system.
pub(super) fn by_age(
    id: &str,
    title: &str,
    unit: &str,
    runs: &[Run],
    value: fn(&Point) -> f64,
    paper: Option<Series>,
) -> Panel {
    let mut all: Vec<Series> =
        ran(runs).map(|run| series(run.system.clone(), curve(run, value))).collect();
    all.extend(paper);
    lines(id, title, axis("storage age, safe writes per object"), axis(unit), all)
}

/// The numbers of all runs; `labels` says what tells runs of one system apart.
pub(super) fn numbers(id: &str, title: &str, runs: &[(String, &Run)]) -> Table {
    let row = |label: &str, run: &Run, p: &Point| {
        let cells = [p.age, p.fragments, f64::from(p.most), p.read, p.write];
        let cells = cells.iter().map(|n| number((n * 100.0).round() / 100.0));
        [run.system.clone(), label.to_owned(), run.objects.to_string()]
            .into_iter()
            .chain(cells)
            .collect()
    };
    let rows = runs.iter().flat_map(|(label, run)| run.points.iter().map(|p| row(label, run, p)));
    let head = ["system", "case", "objects", "age", "fragments", "most", "read MB/s", "write MB/s"];
    table(id, title, &head, rows.collect())
}

/// With the same label.
pub(super) fn labelled<'r>(label: &str, runs: &'r [Run]) -> Vec<(String, &'r Run)> {
    runs.iter().map(|run| (label.to_owned(), run)).collect()
}

/// `files, ext4 1.2, SQLite 3.4`.
pub(super) fn each(runs: &[Run], value: impl Fn(&Run) -> Option<f64>) -> String {
    let one = |run: &Run| Some(format!("{} {}", run.system, number(value(run)?)));
    ran(runs).filter_map(one).collect::<Vec<_>>().join(", ")
}

/// Whether `kind` is among the runs, with points.
fn of_labelled(runs: &[(String, &Run)], kind: Kind) -> bool {
    runs.iter().any(|(_, run)| run.system == kind.name() && !run.points.is_empty())
}

/// An outcome with the notes that all have, and each run's remarks.
pub(super) fn outcome(
    panels: Vec<Panel>,
    tables: Vec<Table>,
    claims: Vec<Claim>,
    runs: &[(String, &Run)],
    settings: &Settings<'_>,
) -> Outcome {
    let mut notes = vec![
        "Every run has a fresh volume: an ext4 image (or XFS, Btrfs) behind a loop device without \
         cache of its own. PostgreSQL has its log and catalogue on another disk, as the paper's \
         database had. All keep their defaults, but redb and PostgreSQL have caches of 16 MB, and \
         PostgreSQL is vacuumed by the adapter."
            .to_owned(),
        "A fragment ends where an object's next marker lies in another region of the disk, or more \
         than 4 KB back or 16 KB ahead. Reads come from the disk: the store is closed, its pages \
         are dropped from the page cache, and it is opened again."
            .to_owned(),
        "Assumed: the paper does not say how full the volumes of figures 1 to 6 were; here half."
            .to_owned(),
    ];
    if of_labelled(runs, Kind::Redb) {
        notes.push(
            "redb is filled with two fifths of the bytes of the others: a value with its header \
             takes a power of two of pages, so that objects of these sizes take twice their bytes."
                .to_owned(),
        );
    }
    // One line for all cases of a system that say the same.
    let mut remarks: Vec<(String, Vec<&str>)> = Vec::new();
    for (label, run) in runs {
        for remark in &run.remarks {
            let text = format!("{}: {remark}", run.system);
            match remarks.iter_mut().find(|(known, _)| *known == text) {
                Some((_, labels)) => labels.push(label),
                None => remarks.push((text, vec![label])),
            }
        }
    }
    let one = |(text, labels): (String, Vec<&str>)| format!("{text} ({})", labels.join("; "));
    notes.extend(remarks.into_iter().map(one));
    finish(Outcome { panels, tables, claims, notes }, settings.quick)
}
