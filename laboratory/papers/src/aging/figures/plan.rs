//! The cases that figures are made of, and what figures share.
//!
//! Owns: sizes of volumes, ages and limits, full and quick, and the assumptions that every
//! figure notes.

use std::fmt::Display;

use anyhow::Result;
use holdall_instrument::picture::{Panel, Scale};

use crate::aging::bench::Bench;
use crate::aging::case::{Case, Point, Run, Sizes};
use crate::aging::system::{Ask, Kind};
use crate::aging::volume::FileSystem;
use crate::kit::{claims, notes, plot::zero_axis};
use holdall_instrument::draw::{axis, axis_of, lines, number, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

pub(super) const KB: usize = 1 << 10;
pub(super) const MB: usize = 1 << 20;
/// One file for each object, if it is measured in any case.
pub(super) const FILES: Kind = Kind::Files(FileSystem::Ext4);
/// Of most panels; one system has a hundred times the fragments of the others.
const FRAGMENTS: &str = "fragments per object, powers of two from 1";

/// The case that others vary: safe writes of 64 KB requests without a hint on a volume half
/// full, to age 10.
pub(super) fn base(kind: Kind, sizes: Sizes, settings: &Settings<'_>) -> Case {
    let (Sizes::Constant(mean) | Sizes::Uniform(mean)) = sizes;
    // Of 256 KB 320 objects, of 512 KB 200, of 1 MB 100, of 10 MB 24.
    let full = (640 * mean).min(if mean > MB { 500 * MB } else { 200 * MB }) as u64;
    let (volume, ages, limit) = if settings.quick {
        let volume = (if mean < 4 * MB { 32 * MB } else { 8 * mean }) as u64;
        (volume, vec![1, 2], 1)
    } else {
        (least(kind, full), vec![1, 2, 3, 4, 5, 6, 8, 10], 180)
    };
    let ask = Ask { request: 64 * KB, hint: false };
    let (occupancy, together, in_gaps) = (0.5, 1, false);
    Case { kind, sizes, volume, occupancy, ask, together, in_gaps, ages, limit }
}

/// `volume` bytes, or the smallest volume that the file system takes.
pub(super) fn least(kind: Kind, volume: u64) -> u64 {
    volume.max(kind.file_system().facts().3)
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
    fn panel(&self, what: &str, unit: &str, value: fn(&Point) -> f64) -> Panel {
        let points = |run: &Run| run.points.iter().map(|p| (p.age, value(p))).collect();
        let all: Vec<_> = self.ran().map(|r| series(r.system.clone(), points(r))).collect();
        let title = format!("{what}: {}", self.label);
        let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty());
        let id = words.collect::<Vec<_>>().join("-").to_lowercase();
        let x = axis("storage age, safe writes per object");
        let log = unit == FRAGMENTS;
        let y = if log { axis_of(unit, Scale::Log2) } else { zero_axis(unit, &all) };
        lines(&id, &title, x, y, all)
    }
}

/// Fragments by age, a panel for each group.
pub(super) fn fragment_panels(groups: &[Group]) -> Vec<Panel> {
    groups.iter().map(|g| g.panel("Fragments", FRAGMENTS, |p| p.fragments)).collect()
}

/// Throughput by age, a panel for each group.
pub(super) fn rate_panels(groups: &[Group], what: &str, value: fn(&Point) -> f64) -> Vec<Panel> {
    groups.iter().map(|g| g.panel(what, "MB per second", value)).collect()
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

/// A claim of the fragments of two runs, at the last age that both reached.
pub(super) fn against(
    name: &str,
    words: &[&dyn Display],
    (own, other): (&Run, &Run),
    so: impl Fn(f64, f64) -> bool,
) -> Option<Claim> {
    let (a, b) = own.beside(other)?;
    let who = if own.system == other.system { "" } else { &format!("{} ", other.system) };
    let claim = claims::says(name, words, format!("{a:.3} against {who}{b:.3}"), so(a, b));
    Some(claim.because(format!("{}; against {}", counted(own), counted(other))))
}

/// An outcome with the notes called `of_it`, those that all figures have, and each run's remarks.
pub(super) fn outcome(
    groups: &[Group],
    panels: Vec<Panel>,
    claims: Vec<Claim>,
    of_it: &str,
) -> Outcome {
    let mut notes = [notes::of(of_it, &[]), notes::of("sears", &[])].concat();
    for Group { label, runs } in groups {
        for run in runs {
            let line = |remark: &String| format!("{}, {label}: {remark}", run.system);
            notes.extend(run.remarks.iter().map(line));
        }
    }
    Outcome { panels, tables: Vec::new(), claims, notes }
}
