//! Figure 1: throughput right after the bulk load, by object size (Sears §5.1).

use anyhow::Result;

use super::plan::{FILES, KB, MB, base, numbers, outcome, run_all};
use crate::aging::system::Kind;
use crate::aging::workload::{Case, Point, Run, Sizes};
use crate::experiment::{Claim, Outcome, Settings};
use crate::kit::claim::{holds, note, ratio};
use crate::kit::draw::{axis_of, lines, log_axis, number, paper_points, series};
use holdall_plot::{Panel, Scale};

/// Object sizes in bytes.
const SIZES: [usize; 9] =
    [4 * KB, 16 * KB, 64 * KB, 256 * KB, 512 * KB, MB, 4 * MB, 16 * MB, 64 * MB];

/// Those of a quick run.
const QUICK: [usize; 4] = [4 * KB, 64 * KB, 256 * KB, 512 * KB];

type Curve = Vec<(f64, f64)>;

/// A system's throughput by size in KB.
struct Clean {
    kind: Kind,
    read: Curve,
    write: Curve,
}

fn case(kind: Kind, size: usize, settings: &Settings<'_>) -> Case {
    let (count, most, volume) =
        if settings.quick { (16, 8 * MB, 32 * MB) } else { (200, 192 * MB, 400 * MB) };
    let bytes = (size * count).min(most) + size / 2;
    let occupancy = bytes as f64 / volume as f64;
    let ages = Vec::new();
    Case { volume: volume as u64, occupancy, ages, ..base(kind, Sizes::Constant(size), settings) }
}

/// Figure 1.
pub(super) fn throughput(settings: &Settings<'_>) -> Result<Outcome> {
    let sizes: &[usize] = if settings.quick { &QUICK } else { &SIZES };
    let sets: Vec<(Kind, usize)> =
        Kind::ALL.iter().flat_map(|&kind| sizes.iter().map(move |&size| (kind, size))).collect();
    let cases: Vec<Case> = sets.iter().map(|&(kind, size)| case(kind, size, settings)).collect();
    let runs = run_all(settings, &cases)?;
    let curve = |kind: Kind, value: fn(&Point) -> f64| -> Curve {
        let own = sets.iter().zip(&runs).filter(|((k, _), _)| *k == kind);
        own.filter_map(|((_, size), run)| Some(((size / KB) as f64, value(run.points.first()?))))
            .collect()
    };
    let systems: Vec<Clean> = Kind::ALL
        .iter()
        .map(|&kind| Clean { kind, read: curve(kind, |p| p.read), write: curve(kind, |p| p.write) })
        .filter(|system| !system.read.is_empty())
        .collect();
    let labelled: Vec<(String, &Run)> =
        sets.iter().zip(&runs).map(|((_, size), run)| (format!("{} KB", size / KB), run)).collect();
    let panels = vec![panel("read", &systems), panel("write", &systems)];
    let tables = vec![numbers("numbers", "Throughput of a clean store", &labelled)];
    Ok(outcome(panels, tables, claims(&systems), &labelled, settings))
}

fn panel(what: &str, systems: &[Clean]) -> Panel {
    let own = |s: &Clean| if what == "read" { s.read.clone() } else { s.write.clone() };
    let mut all: Vec<_> = systems.iter().map(|s| series(s.kind.name(), own(s))).collect();
    if what == "write" {
        all.push(paper_points("paper: SQL Server", vec![(512.0, 17.7)]));
        all.push(paper_points("paper: NTFS", vec![(512.0, 10.1)]));
    }
    let x = axis_of("object size, KB", Scale::Log2);
    let title = format!("A clean store: {what} throughput");
    lines(what, &title, x, log_axis("MB per second"), all)
}

fn at(curve: &Curve, size: usize) -> Option<f64> {
    let kb = (size / KB) as f64;
    curve.iter().find(|(x, _)| (x - kb).abs() < 0.5).map(|(_, y)| *y)
}

/// Where the first curve, ahead of the second or behind it, changes places with it.
fn crossings(a: &Curve, b: &Curve) -> String {
    let pairs: Vec<(f64, bool)> = a.iter().zip(b).map(|((x, a), (_, b))| (*x, a > b)).collect();
    let Some((_, first)) = pairs.first() else { return "not measured".into() };
    let mut words = vec![if *first { "ahead from 4 KB on" } else { "behind from 4 KB on" }.into()];
    for pair in pairs.windows(2).filter(|p| p[0].1 != p[1].1) {
        let to = if pair[1].1 { "ahead" } else { "behind" };
        words.push(format!("{to} between {} and {} KB", pair[0].0, pair[1].0));
    }
    words.join(", ")
}

fn claims(systems: &[Clean]) -> Vec<Claim> {
    let Some(files) = systems.iter().find(|s| s.kind == FILES) else { return Vec::new() };
    let mut out = Vec::new();
    for own in systems.iter().filter(|s| !matches!(s.kind, Kind::Files(_))) {
        let name = own.kind.name();
        for (what, a, b) in [("read", &own.read, &files.read), ("write", &own.write, &files.write)]
        {
            let id = format!("S1 {name}, {what}");
            let text = format!("{name} against files, clean store, {what}s: where they cross");
            out.push(note(&id, &text, "", crossings(a, b)));
        }
    }
    out.extend(paper_claims(systems, files));
    out
}

/// What the paper says of its database is asked of the best one of today.
fn paper_claims(systems: &[Clean], files: &Clean) -> Vec<Claim> {
    let best = |size: usize, value: fn(&Clean) -> &Curve| -> Option<(f64, &'static str)> {
        let databases = systems.iter().filter(|s| s.kind.is_database());
        let ratio = |s: &Clean| Some(at(value(s), size)? / at(value(files), size)?);
        let all = databases.filter_map(|s| Some((ratio(s)?, s.kind.name())));
        all.max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let mut out = Vec::new();
    let reads: fn(&Clean) -> &Curve = |s| &s.read;
    for (size, paper) in [(64 * KB, ""), (256 * KB, "2 ×")] {
        let Some((of, name)) = best(size, reads) else { continue };
        let id = format!("S1 database ahead at {} KB", size / KB);
        let ours = format!("{name} {} ×", number(of));
        let text = "a database reads small objects of a clean store faster than files do";
        out.push(holds(&id, text, paper, ours, "> 1 ×", of > 1.0).because(format!(
            "the best of the databases reads {} of what files do; {}",
            number(of),
            open_cost(files)
        )));
    }
    if let Some((of, _)) = best(256 * KB, reads) {
        let text = "reads of 256 KB, best database ÷ files";
        out.push(ratio("S1 factor at 256 KB", text, 2.0, of, "×", 0.25).because(open_cost(files)));
    }
    for size in [16 * MB, 64 * MB] {
        let Some((of, name)) = best(size, reads) else { continue };
        let id = format!("S1 files ahead at {} MB", size / MB);
        let text = "files read large objects of a clean store faster than every database";
        let ours = format!("{name} {} ×", number(of));
        let why = format!("{name} reaches {} of the files' rate", number(of));
        out.push(holds(&id, text, "", ours, "< 1 ×", of < 1.0).because(why));
    }
    if let Some((of, name)) = best(512 * KB, |s| &s.write) {
        let text = "bulk load of 512 KB objects: the database writes faster than files";
        let ours = format!("{name} {} ×", number(of));
        let claim = holds("S1 bulk load at 512 KB", text, "1.75 ×", ours, "> 1 ×", of > 1.0);
        out.push(claim.ratio(of / 1.75).because(format!(
            "each object is durable by itself here, so a load is bound by syncs: the best database \
             reaches {} of the files' rate",
            number(of)
        )));
    }
    out
}

/// What part of reading a file of 256 KB an open can be at most: all of reading one of 4 KB.
fn open_cost(files: &Clean) -> String {
    let micros = |size: usize| at(&files.read, size).map(|rate| size as f64 / rate);
    match (micros(4 * KB), micros(256 * KB)) {
        (Some(small), Some(large)) => format!(
            "to open and read a file takes {} µs for 4 KB and {} µs for 256 KB, so that the open, \
             a seek in 2006, is at most {} of it",
            number(small),
            number(large),
            number(small / large)
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::crossings;

    #[test]
    fn crossings_in_words() {
        let b = vec![(4.0, 1.0), (16.0, 1.0), (64.0, 1.0)];
        let a = vec![(4.0, 2.0), (16.0, 2.0), (64.0, 0.5)];
        assert_eq!(crossings(&a, &b), "ahead from 4 KB on, behind between 16 and 64 KB");
        assert_eq!(crossings(&b, &b), "behind from 4 KB on");
        assert_eq!(crossings(&Vec::new(), &b), "not measured");
    }
}
