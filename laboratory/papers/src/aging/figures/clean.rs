//! Figure 1: throughput right after the bulk load, by object size (Sears §5.1).

use anyhow::Result;

use super::plan::{FILES, Group, KB, MB, Set, base, counted, outcome, run};
use crate::aging::case::{Case, Point, Run, Sizes};
use crate::aging::system::Kind;
use crate::kit::claims;
use holdall_instrument::draw::{axis_of, lines, log_axis, number, paper_points, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::{Panel, Scale, Series};

/// Object sizes in bytes.
const SIZES: [usize; 9] =
    [4 * KB, 16 * KB, 64 * KB, 256 * KB, 512 * KB, MB, 4 * MB, 10 * MB, 64 * MB];
/// Those of a quick run.
const QUICK: [usize; 4] = [4 * KB, 64 * KB, 256 * KB, 512 * KB];

type Value = fn(&Point) -> f64;
type Curve = Vec<(f64, f64)>;

fn set(size: usize, settings: &Settings<'_>) -> Set {
    let (count, most, volume) =
        if settings.quick { (16, 8 * MB, 32 * MB) } else { (200, 192 * MB, 400 * MB) };
    let bytes = (size * count).min(most) + size / 2;
    let case = |kind| Case {
        volume: volume as u64,
        occupancy: bytes as f64 / volume as f64,
        ages: Vec::new(),
        ..base(kind, Sizes::Constant(size), settings)
    };
    (format!("{} KB", size / KB), Kind::ALL.map(case).to_vec())
}

/// Throughput of the groups by size in KB.
struct Clean<'g>(Vec<(f64, &'g Group)>);

impl Clean<'_> {
    /// A system's curve.
    fn curve(&self, kind: Kind, value: Value) -> Curve {
        let point = |(kb, group): &(f64, &Group)| Some((*kb, rate(group.of(kind)?, value)?));
        self.0.iter().filter_map(point).collect()
    }

    /// A system and files at `size`, and its rate as a share of theirs.
    fn against_files(&self, kind: Kind, size: usize, value: Value) -> Option<(f64, &Run, &Run)> {
        let (_, group) = self.0.iter().find(|(kb, _)| (kb * KB as f64) as usize == size)?;
        let (own, files) = (group.of(kind)?, group.of(FILES)?);
        Some((rate(own, value)? / rate(files, value)?, own, files))
    }
}

fn rate(run: &Run, value: Value) -> Option<f64> {
    run.points.first().map(value)
}

/// Figure 1.
pub(super) fn throughput(settings: &Settings<'_>) -> Result<Outcome> {
    let sizes: &[usize] = if settings.quick { &QUICK } else { &SIZES };
    let sets: Vec<Set> = sizes.iter().map(|&size| set(size, settings)).collect();
    let groups = run(settings, &sets)?;
    let clean = Clean(sizes.iter().map(|s| (s / KB) as f64).zip(&groups).collect());
    let lines_of = |value: Value| -> Vec<Series> {
        let all = Kind::ALL.iter().map(|&kind| series(kind.name(), clean.curve(kind, value)));
        all.filter(|s| !s.points.is_empty()).collect()
    };
    let mut written = lines_of(|p| p.write);
    written.push(paper_points("paper: SQL Server", vec![(512.0, 17.7)]));
    written.push(paper_points("paper: NTFS", vec![(512.0, 10.1)]));
    let files = clean.curve(FILES, |p| p.read);
    let mut shares = lines_of(|p| p.read);
    for (x, y) in shares.iter_mut().flat_map(|s| &mut s.points) {
        *y /= files.iter().find(|(kb, _)| kb == x).map_or(f64::NAN, |(_, rate)| *rate);
    }
    shares.push(paper_points("paper: SQL Server ÷ NTFS", vec![(256.0, 2.0), (1024.0, 1.0)]));
    let panel = |id: &str, title: &str, y: &str, all: Vec<Series>| -> Panel {
        let x = axis_of("object size in KB, powers of two", Scale::Log2);
        lines(id, title, x, log_axis(&format!("{y}, powers of ten")), all)
    };
    let panels = vec![
        panel("read", "A clean store: read throughput", "MB per second", lines_of(|p| p.read)),
        panel("read-share", "A clean store: reads against files", "× of files on ext4", shares),
        panel("write", "A clean store: write throughput", "MB per second", written),
    ];
    let mut claims = crossing_notes(&clean);
    claims.extend(paper_claims(&clean));
    let mut outcome = outcome(&groups, panels, claims, "sears-1");
    outcome.notes.extend(opens(&files));
    Ok(outcome)
}

/// Where the first curve, ahead of the second or behind it, changes places with it.
fn crossings(a: &Curve, b: &Curve) -> String {
    let other = |x: f64| b.iter().find(|p| (p.0 - x).abs() < 0.5);
    let pairs: Vec<(f64, bool)> =
        a.iter().filter_map(|(x, rate)| Some((*x, *rate > other(*x)?.1))).collect();
    let Some((_, first)) = pairs.first() else { return "not measured".into() };
    let mut words = vec![if *first { "ahead from 4 KB on" } else { "behind from 4 KB on" }.into()];
    for pair in pairs.windows(2).filter(|p| p[0].1 != p[1].1) {
        let to = if pair[1].1 { "ahead" } else { "behind" };
        words.push(format!("{to} between {} and {} KB", pair[0].0, pair[1].0));
    }
    words.join(", ")
}

fn crossing_notes(clean: &Clean<'_>) -> Vec<Claim> {
    let mut out = Vec::new();
    for kind in Kind::ALL.into_iter().filter(|k| !matches!(k, Kind::Files(_))) {
        let values: [(&str, Value); 2] = [("read", |p| p.read), ("write", |p| p.write)];
        for (what, value) in values {
            let (own, files) = (clean.curve(kind, value), clean.curve(FILES, value));
            if own.is_empty() || files.is_empty() {
                continue;
            }
            let name = kind.name();
            out.push(claims::says("S1 {0}, {1}", &[&name, &what], crossings(&own, &files), true));
        }
    }
    out
}

/// What is asked of a database of today against files.
enum Rule {
    Ahead,
    Behind,
    /// Near the paper's factor.
    Factor,
}

/// What the paper says of its database is asked of each one of today: none of them stands for it.
fn paper_claims(clean: &Clean<'_>) -> Vec<Claim> {
    use Rule::{Ahead, Behind, Factor};
    let (reads, writes): (Value, Value) = (|p| p.read, |p| p.write);
    let rows = [
        ("S1 ahead at 64 KB, {0}", 64 * KB, reads, Ahead, None),
        ("S1 ahead at 256 KB, {0}", 256 * KB, reads, Ahead, Some(2.0)),
        ("S1 factor at 256 KB, {0}", 256 * KB, reads, Factor, Some(2.0)),
        ("S1 parity at 1 MB, {0}", MB, reads, Factor, None),
        ("S1 behind at 10 MB, {0}", 10 * MB, reads, Behind, None),
        ("S1 bulk load at 512 KB, {0}", 512 * KB, writes, Ahead, Some(1.75)),
    ];
    let claim = |row: &(&str, usize, Value, Rule, Option<f64>), kind: Kind| {
        let (id, size, value, rule, paper) = row;
        let (of, own, files) = clean.against_files(kind, *size, *value)?;
        let (name, ours) = (kind.name(), format!("{} ×", number(of)));
        let claim = match rule {
            Factor => claims::measures(id, &[&name], of),
            Ahead => claims::says(id, &[&name], ours, of > 1.0),
            Behind => claims::says(id, &[&name], ours, of < 1.0),
        };
        let claim = paper.map_or(claim.clone(), |paper| claim.ratio(of / paper));
        Some(claim.because(explained(*size, own, files)))
    };
    let databases = || Kind::ALL.into_iter().filter(|kind| kind.is_database());
    rows.iter().flat_map(|row| databases().filter_map(|kind| claim(row, kind))).collect()
}

/// Milliseconds of a read, and what was counted of both.
fn explained(size: usize, own: &Run, files: &Run) -> String {
    let one = |run: &Run| {
        let ms = run.points.first().map_or(0.0, |p| size as f64 / p.read / 1e3);
        format!("{} reads an object in {} ms; {}", run.system, number(ms), counted(run))
    };
    format!("{}; {}", one(own), one(files))
}

/// What part of reading a file of 256 KB an open can be at most: all of reading one of 4 KB.
fn opens(files: &Curve) -> Option<String> {
    let micros = |kb: f64| {
        let (_, rate) = files.iter().find(|(x, _)| (x - kb).abs() < 0.5)?;
        Some(kb * KB as f64 / rate)
    };
    let (small, large) = (micros(4.0)?, micros(256.0)?);
    Some(format!(
        "To open and read a file takes {} µs for 4 KB and {} µs for 256 KB: the open is at most \
         {} of the latter.",
        number(small),
        number(large),
        number(small / large)
    ))
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
