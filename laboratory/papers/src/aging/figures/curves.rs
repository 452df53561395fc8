//! Figures 2 to 5, and a volume whose free space is in pieces: throughput and fragments as the
//! store ages (Sears §5.2).

use std::fmt::Display;

use anyhow::Result;

use super::plan::{
    FILES, Group, KB, MB, Set, against, base, base_set, counted, fragment_panels, highest, outcome,
    rate_panels, run,
};
use super::pools::KINDS;
use crate::aging::case::{Case, Run, Sizes};
use crate::aging::system::Kind;
use crate::kit::claims;
use holdall_instrument::draw::{number, paper_points};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

/// How much a curve may still rise from age 5 to 10 and be called level.
const LEVEL: f64 = 1.2;
/// A rise in fragments that counts as one.
const RISE: f64 = 0.05;

fn constant(size: usize, settings: &Settings<'_>) -> Set {
    let label = if size < MB { format!("{} KB", size / KB) } else { format!("{} MB", size / MB) };
    base_set(&format!("objects of {label}"), Sizes::Constant(size), settings)
}

/// A group's size of objects.
fn size_of(group: &Group) -> &str {
    group.label.trim_start_matches("objects of ")
}

/// Fragments at the last age over those at half of it.
fn late_rise(run: &Run) -> Option<f64> {
    let end = run.points.last()?;
    Some(end.fragments / run.at(end.age / 2.0)?.fragments)
}

/// Part of the rise over all ages that falls into the second half; a line has half.
fn late_share(run: &Run) -> Option<f64> {
    let end = run.points.last()?;
    let (first, middle) = (run.points.first()?.fragments, run.at(end.age / 2.0)?.fragments);
    let rise = end.fragments - first;
    (rise > RISE).then(|| (end.fragments - middle) / rise)
}

/// Figure 2.
pub(super) fn reads(settings: &Settings<'_>) -> Result<Outcome> {
    let groups = run(settings, &[256 * KB, 512 * KB, MB].map(|size| constant(size, settings)))?;
    let panels = rate_panels(&groups, "Reads", |p| p.read);
    let claims = groups.iter().filter_map(read_claim).collect();
    Ok(outcome(&groups, panels, claims, "sears prose"))
}

fn read_claim(group: &Group) -> Option<Claim> {
    let rate = |run: &Run| run.points.last().map(|p| p.read);
    let files = group.of(FILES)?;
    let own = rate(files)?;
    let (other, best) = highest(group.databases(), rate)?;
    let ours = format!("files {} MB/s, {} {} MB/s", number(own), best.system, number(other));
    let claim = claims::says("S2 reads when old, {0}", &[&size_of(group)], ours, own > other);
    let rates = |run: &Run| {
        let young = run.points.first().map_or(0.0, |p| p.read);
        format!("{} MB/s when filled, {}", number(young), counted(run))
    };
    Some(claim.because(format!("{}; {}", rates(files), rates(best))))
}

/// Figure 4.
pub(super) fn writes(settings: &Settings<'_>) -> Result<Outcome> {
    let groups = run(settings, &[MB, 10 * MB].map(|size| constant(size, settings)))?;
    let panels = rate_panels(&groups, "Safe writes", |p| p.write);
    let claims = groups.iter().filter_map(write_claim).collect();
    Ok(outcome(&groups, panels, claims, "sears prose"))
}

fn write_claim(group: &Group) -> Option<Claim> {
    let keeps = |run: &Run| Some(run.points.last()?.write / run.points.first()?.write);
    let (kept, worst) = highest(group.databases(), |run| Some(-keeps(run)?))?;
    let ours = group.each(keeps);
    let claim = claims::says("S2 writes slow down, {0}", &[&size_of(group)], ours, -kept < 0.7);
    Some(claim.because(format!("slowest of them: {}", counted(worst))))
}

/// Figure 3.
pub(super) fn fragments_large(settings: &Settings<'_>) -> Result<Outcome> {
    let groups = run(settings, &[constant(10 * MB, settings)])?;
    let panels = fragment_panels(&groups);
    Ok(outcome(&groups, panels, fragment_claims(&groups[0]), "sears prose"))
}

/// Figure 5.
pub(super) fn fragments_small(settings: &Settings<'_>) -> Result<Outcome> {
    let groups = run(settings, &[256 * KB, MB].map(|size| constant(size, settings)))?;
    let mut claims: Vec<Claim> = groups.iter().flat_map(fragment_claims).collect();
    let ends = groups[0].each(Run::fragments);
    claims.push(claims::says("S2 256 KB, where it ends", &[], ends, true));
    let mut panels = fragment_panels(&groups);
    panels[0].series.push(paper_points("paper: both converge at 4", vec![(10.0, 4.0)]));
    Ok(outcome(&groups, panels, claims, "sears-5"))
}

/// The claims of S2 for one size.
fn fragment_claims(group: &Group) -> Vec<Claim> {
    let label = size_of(group);
    let level = |run: &Run, what: &str, who: &str| {
        let rise = late_rise(run)?;
        let ours = format!("{} ×", number(rise));
        let claim = claims::says("S2 {0}, {1} level", &[&label, &what, &who], ours, rise <= LEVEL);
        Some(claim.because(counted(run)))
    };
    let is_own = |run: &&Run| run.system.starts_with(Kind::Holdall.name());
    let mut out = Vec::new();
    let files = group.of(FILES);
    for own in group.ran().filter(is_own) {
        out.extend(level(own, &own.system, "Holdall's"));
        let others = group.ran().filter(|run| !is_own(run));
        let fewest = highest(others, |run| Some(-run.fragments()?)).map(|(_, run)| run);
        for (name, other) in [("S2 {0}, {1} lowest", fewest), ("S2 {0}, {1} and ext4", files)] {
            let words: [&dyn Display; 2] = [&label, &own.system];
            out.extend(other.and_then(|run| against(name, &words, (own, run), |a, b| a <= b)));
        }
    }
    out.extend(files.and_then(|run| level(run, "files", "the file system's")));
    let rise = |run: &Run| Some(run.fragments()? / run.points.first()?.fragments);
    if let Some((rise, most)) = highest(group.databases(), rise) {
        let share = late_share(most).unwrap_or(0.0);
        let so = rise >= 2.0 && share >= 0.3;
        let ours =
            format!("{}: {} ×, second half {} of it", most.system, number(rise), number(share));
        let half = most.points.last().and_then(|p| most.at(p.age / 2.0));
        let claim = claims::says("S2 {0}, a database grows", &[&label], ours, so);
        out.push(claim.because(format!(
            "{} fragments already at half of that age; no object can have more than pages; {}",
            number(half.map_or(0.0, |p| p.fragments)),
            counted(most)
        )));
    }
    out
}

/// A volume whose free space is in pieces when the objects come. XFS and Btrfs take no volume as
/// small, redb keeps too little of it.
pub(super) fn gaps(settings: &Settings<'_>) -> Result<Outcome> {
    let case = |kind| {
        let (volume, occupancy) = (if settings.quick { 64 * MB } else { 100 * MB } as u64, 0.2);
        Case { volume, occupancy, in_gaps: true, ..base(kind, Sizes::Constant(MB), settings) }
    };
    let label = "objects of 1 MB, loaded into gaps of 16 KB";
    let groups = run(settings, &[(label.to_owned(), KINDS.map(case).to_vec())])?;
    let claims = groups[0].ran().filter_map(gap_claim).collect();
    let panels = fragment_panels(&groups);
    Ok(outcome(&groups, panels, claims, "sears-gaps"))
}

/// The paper has only files; databases are shown.
fn gap_claim(run: &Run) -> Option<Claim> {
    let (first, last) = (run.points.first()?.fragments, run.fragments()?);
    let ours = format!("from {} to {}", number(first), number(last));
    let so = first >= 2.0 && last < first;
    let claim = claims::says("S2 gaps, {0}", &[&run.system], ours, so);
    let judged = [Kind::Holdall, FILES].map(Kind::name).contains(&run.system.as_str());
    Some(if judged { claim.because(counted(run)) } else { claim.as_note() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aging::case::Point;

    fn run_of(fragments: [f64; 3]) -> Run {
        let point = |(age, fragments)| Point { age, fragments, most: 9, read: 1.0, write: 1.0 };
        let points = [0.0, 5.0, 10.0].into_iter().zip(fragments).map(point).collect();
        Run { points, ..Run::default() }
    }

    #[test]
    fn a_line_and_a_level_are_told_apart() {
        let (line, level) = (run_of([1.0, 6.0, 11.0]), run_of([1.0, 11.0, 11.0]));
        assert!((late_share(&line).unwrap() - 0.5).abs() < 1e-9);
        assert!(late_rise(&line).unwrap() > LEVEL);
        assert!(late_share(&level).unwrap().abs() < 1e-9);
        assert!((late_rise(&level).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(late_share(&run_of([1.0, 1.0, 1.01])), None);
        assert_eq!(late_rise(&Run::default()), None);
    }
}
