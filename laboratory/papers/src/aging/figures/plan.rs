//! The cases that figures are made of, and what figures share.
//!
//! Owns: sizes of volumes, ages and limits, full and quick, and the assumptions that every
//! figure notes.

use anyhow::Result;
use holdall_instrument::picture::{Panel, Scale, Series, Table};

use crate::aging::bench::Bench;
use crate::aging::case::{Case, Point, Run, Sizes};
use crate::aging::system::{Ask, Kind};
use crate::aging::volume::FileSystem;
use holdall_instrument::draw::{axis, axis_of, lines, number, series, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

pub(super) const KB: usize = 1 << 10;
pub(super) const MB: usize = 1 << 20;
/// One file for each object, if it is measured in any case.
pub(super) const FILES: Kind = Kind::Files(FileSystem::Ext4);
/// Of most panels.
pub(super) const FRAGMENTS: &str = "fragments per object";

/// The case that others vary: safe writes of 64 KB requests without a hint on a volume half
/// full, to age 10.
pub(super) fn base(kind: Kind, sizes: Sizes, settings: &Settings<'_>) -> Case {
    let (Sizes::Constant(mean) | Sizes::Uniform(mean)) = sizes;
    // 320, 100 and 24 objects.
    let full = if mean < MB { 640 * mean } else { (200 * mean).min(500 * MB) } as u64;
    let (volume, ages, limit) = if settings.quick {
        let volume = (if mean < 4 * MB { 32 * MB } else { 8 * mean }) as u64;
        (volume, vec![1, 2], 1)
    } else {
        // XFS takes no smaller volume.
        let volume = if kind == Kind::Files(FileSystem::Xfs) { full.max(300 << 20) } else { full };
        (volume, vec![1, 2, 3, 4, 5, 6, 8, 10], 180)
    };
    let ask = Ask { request: 64 * KB, hint: false };
    Case { kind, sizes, volume, occupancy: 0.5, ask, together: 1, ages, limit }
}

/// Cases that are shown together: of one size, one volume or one way to write.
pub(super) type Set = (String, Vec<Case>);

/// Every system in the base case, and Holdall a second time with the size known, as a put of
/// bytes in memory tells it.
pub(super) fn base_set(label: &str, sizes: Sizes, settings: &Settings<'_>) -> Set {
    let mut cases: Vec<Case> = Kind::ALL.iter().map(|&k| base(k, sizes, settings)).collect();
    cases.push(hinted(base(Kind::Holdall, sizes, settings)));
    (label.to_owned(), cases)
}

/// The same with the size known.
pub(super) fn hinted(case: Case) -> Case {
    Case { ask: Ask { hint: true, ..case.ask }, ..case }
}

/// The runs of a set.
pub(super) struct Group {
    pub(super) label: String,
    pub(super) runs: Vec<Run>,
}

/// Runs the sets; progress is reported before each case.
pub(super) fn run(settings: &Settings<'_>, sets: &[Set]) -> Result<Vec<Group>> {
    let bench = Bench::new(settings)?;
    let total = sets.iter().map(|(_, cases)| cases.len() as u64).sum();
    let mut done = 0;
    let mut one = |case: &Case| {
        (settings.progress)(done, total);
        done += 1;
        bench.run(case)
    };
    let mut group = |(label, cases): &Set| {
        let runs = cases.iter().map(&mut one).collect::<Result<_>>()?;
        Ok(Group { label: label.clone(), runs })
    };
    sets.iter().map(&mut group).collect()
}

impl Group {
    /// The runs that have points.
    pub(super) fn ran(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| !run.points.is_empty())
    }

    /// The run called `system`, if it has points.
    pub(super) fn named(&self, system: &str) -> Option<&Run> {
        self.ran().find(|run| run.system == system)
    }

    /// The run of a system without a hint, if it has points.
    pub(super) fn of(&self, kind: Kind) -> Option<&Run> {
        self.named(kind.name())
    }

    /// Those of databases.
    pub(super) fn databases(&self) -> impl Iterator<Item = &Run> {
        Kind::ALL.into_iter().filter(|k| k.is_database()).filter_map(|k| self.of(k))
    }

    /// `files, ext4 1.2; SQLite 3.4`.
    pub(super) fn each(&self, value: impl Fn(&Run) -> Option<f64>) -> String {
        let one = |run: &Run| Some(format!("{} {}", run.system, number(value(run)?)));
        self.ran().filter_map(one).collect::<Vec<_>>().join("; ")
    }

    /// One figure of all its points by storage age, a line for each system.
    pub(super) fn panel(
        &self,
        what: &str,
        unit: &str,
        value: fn(&Point) -> f64,
        paper: Option<Series>,
    ) -> Panel {
        let points = |run: &Run| run.points.iter().map(|p| (p.age, value(p))).collect();
        let mut all: Vec<_> = self.ran().map(|r| series(r.system.clone(), points(r))).collect();
        all.extend(paper);
        let title = format!("{what}: {}", self.label);
        let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
        let id = words.collect::<Vec<_>>().join("-").to_lowercase();
        // One system has a hundred times the fragments of the others.
        let y = if unit == FRAGMENTS { axis_of(unit, Scale::Log2) } else { axis(unit) };
        lines(&id, &title, axis("storage age, safe writes per object"), y, all)
    }
}

/// The run of which `value` is highest, and that value.
pub(super) fn highest<'r>(
    runs: impl Iterator<Item = &'r Run>,
    value: impl Fn(&Run) -> Option<f64>,
) -> Option<(f64, &'r Run)> {
    runs.filter_map(|run| Some((value(run)?, run))).max_by(|a, b| a.0.total_cmp(&b.0))
}

/// What a run counted, for an explanation.
pub(super) fn counted(run: &Run) -> String {
    let ends = run.points.first().zip(run.points.last());
    let Some((first, last)) = ends else { return format!("{} did not run", run.system) };
    format!(
        "{}: {} fragments when filled, {} at age {}, at most {}; {}",
        run.system,
        number(first.fragments),
        number(last.fragments),
        number((last.age * 10.0).round() / 10.0),
        last.most,
        run.account.trim_start_matches("; ").trim_end_matches("; "),
    )
}

/// The numbers of all runs.
fn numbers(groups: &[Group], timed: bool) -> Table {
    let row = |label: &str, run: &Run, p: &Point| {
        let rates = if timed { vec![p.read, p.write] } else { Vec::new() };
        let cells = [p.age, p.fragments, f64::from(p.most)].into_iter().chain(rates);
        let cells = cells.map(|n| number((n * 100.0).round() / 100.0));
        let names = [run.system.clone(), label.to_owned(), run.objects.to_string()];
        names.into_iter().chain(cells).collect()
    };
    let runs = groups.iter().flat_map(|g| g.runs.iter().map(move |run| (&g.label, run)));
    let rows = runs.flat_map(|(l, run)| run.points.iter().map(move |p| row(l, run, p)));
    let head = ["system", "case", "objects", "age", "fragments", "most", "read MB/s", "write MB/s"];
    table("numbers", "Numbers", &head[..if timed { 8 } else { 6 }], rows.collect())
}

/// An outcome with the numbers of all groups, the notes that all figures have, what the paper's
/// text tells of this one, and each run's remarks.
pub(super) fn outcome(
    groups: &[Group],
    timed: bool,
    panels: Vec<Panel>,
    claims: Vec<Claim>,
    paper: &str,
) -> Outcome {
    let mut notes: Vec<String> = [
        paper,
        "Every run has a fresh volume: an ext4 image (or XFS, Btrfs) behind a loop device without \
         cache of its own. PostgreSQL has its log and catalogue on another disk, as the paper's \
         database had. All keep their defaults, but redb and PostgreSQL have caches of 16 MB, and \
         PostgreSQL is vacuumed by the adapter.",
        "A fragment ends where an object's next marker lies in another region of the disk, or more \
         than 4 KB back or 16 KB ahead. Reads come from the disk: the store is closed, its pages \
         are dropped from the page cache, and it is opened again.",
        "Assumed: the paper does not say how full the volumes of figures 1 to 6 were; here half. \
         redb holds two fifths of the others' bytes: a value with its header takes a power of two \
         of pages, so that objects of these sizes take twice their bytes.",
    ]
    .map(str::to_owned)
    .to_vec();
    // One line for all cases of a system that say the same.
    let mut remarks: Vec<(String, Vec<&str>)> = Vec::new();
    for (label, run) in groups.iter().flat_map(|g| g.runs.iter().map(|run| (&g.label, run))) {
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
    let tables = vec![numbers(groups, timed)];
    Outcome { panels, tables, claims, notes }
}
