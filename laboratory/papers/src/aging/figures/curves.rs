//! Figures 2 to 5: throughput and fragments as the store ages (Sears §5.2).

use anyhow::Result;

use super::plan::{FILES, FRAGMENTS, Group, KB, MB, base_set, counted, highest, outcome, run};
use crate::aging::case::{Run, Sizes};
use crate::aging::system::Kind;
use crate::kit::claims;
use holdall_instrument::draw::{number, paper_points};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

/// How much a curve may still rise from age 5 to 10 and be called level.
const LEVEL: f64 = 1.2;
/// Fragments, mean of objects: no more than a difference in rounding.
const SAME: f64 = 0.05;
const PROSE: &str = "The paper's text has no numbers of this figure, only prose.";

/// Both sizes of figures 2 and 5, of which figure 4 and the interleaved appends use the second.
fn base_groups(settings: &Settings<'_>) -> Result<Vec<Group>> {
    let set = |label, size| base_set(label, Sizes::Constant(size), settings);
    run(settings, &[set("objects of 256 KB", 256 * KB), set("objects of 1 MB", MB)])
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
    (rise > SAME).then(|| (end.fragments - middle) / rise)
}

/// Figure 2.
pub(super) fn reads(settings: &Settings<'_>) -> Result<Outcome> {
    let groups = base_groups(settings)?;
    let panels =
        groups.iter().map(|g| g.panel("Reads", "MB per second", |p| p.read, None)).collect();
    let claims = groups.iter().filter_map(read_claim).collect();
    Ok(outcome(&groups, true, panels, claims, PROSE))
}

fn read_claim(group: &Group) -> Option<Claim> {
    let rate = |run: &Run| run.points.last().map(|p| p.read);
    let files = group.of(FILES)?;
    let own = rate(files)?;
    let (other, best) = highest(group.databases(), rate)?;
    let ours = format!("files {} MB/s, {} {} MB/s", number(own), best.system, number(other));
    let young = |run: &Run| run.points.first().map_or(0.0, |p| p.read);
    Some(claims::says("S2 reads when old, {0}", &[&group.label.trim_start_matches("objects of ")], ours, own > other).because(format!(
        "from the filled store to the last age files go from {} to {} MB/s, {} from {} to {}; {}; \
         {}",
        number(young(files)),
        number(own),
        best.system,
        number(young(best)),
        number(other),
        counted(files),
        counted(best)
    )))
}

/// Figure 4.
pub(super) fn writes(settings: &Settings<'_>) -> Result<Outcome> {
    let groups = run(settings, &[base_set("objects of 1 MB", Sizes::Constant(MB), settings)])?;
    let group = &groups[0];
    let faster = |run: &Run| Some(run.points.first()?.write / run.points.last()?.write);
    let claim = highest(group.databases(), faster).map(|(factor, worst)| {
        let kept = 1.0 / factor;
        let ours = group.each(|run| Some(1.0 / faster(run)?));
        let claim = claims::says("S2 writes slow down", &[], ours, kept < 0.7);
        let fragments = |run: &Run| run.fragments();
        let torn = highest(group.databases(), fragments).map_or(String::new(), |(n, run)| {
            let kept = faster(run).map_or(0.0, |factor| 1.0 / factor);
            format!(
                "; the one with most fragments, {} with {} an object, keeps {}",
                run.system,
                number(n),
                number(kept)
            )
        });
        claim.because(format!(
            "the worst keeps {} of its load{torn}; {}",
            number(kept),
            counted(worst)
        ))
    });
    let panels = vec![group.panel("Safe writes", "MB per second", |p| p.write, None)];
    Ok(outcome(&groups, true, panels, claim.into_iter().collect(), PROSE))
}

/// Figure 3.
pub(super) fn fragments_large(settings: &Settings<'_>) -> Result<Outcome> {
    let groups =
        run(settings, &[base_set("objects of 10 MB", Sizes::Constant(10 * MB), settings)])?;
    let panels = vec![groups[0].panel("Fragments", FRAGMENTS, |p| p.fragments, None)];
    let claims = fragment_claims("10 MB", &groups[0]);
    Ok(outcome(&groups, false, panels, claims, PROSE))
}

/// Figure 5.
pub(super) fn fragments_small(settings: &Settings<'_>) -> Result<Outcome> {
    let groups = base_groups(settings)?;
    let mut claims = fragment_claims("256 KB", &groups[0]);
    claims.extend(fragment_claims("1 MB", &groups[1]));
    claims.push(claims::says(
        "S2 256 KB, where it ends",
        &[],
        groups[0].each(Run::fragments),
        true,
    ));
    let four = paper_points("paper: both converge at 4", vec![(10.0, 4.0)]);
    let panels = vec![
        groups[0].panel("Fragments", FRAGMENTS, |p| p.fragments, Some(four)),
        groups[1].panel("Fragments", FRAGMENTS, |p| p.fragments, None),
    ];
    let paper = "Of this figure the paper's text gives one number: where both systems end.";
    Ok(outcome(&groups, true, panels, claims, paper))
}

/// The claims of S2 for one size.
fn fragment_claims(label: &str, group: &Group) -> Vec<Claim> {
    let level = |run: &Run, what: &str, who: &str| {
        let rise = late_rise(run)?;
        let ours = format!("{} ×", number(rise));
        let claim = claims::says("S2 {0}, {1} level", &[&label, &what, &who], ours, rise <= LEVEL);
        Some(claim.because(counted(run)))
    };
    let mut out = Vec::new();
    for own in group.ran().filter(|run| run.system.starts_with(Kind::Holdall.name())) {
        out.extend(level(own, &own.system, "Holdall's"));
        let others = group.ran().filter(|run| !run.system.starts_with(Kind::Holdall.name()));
        let least = highest(others, |run| Some(-run.fragments()?));
        if let (Some((least, other)), Some(fragments)) = (least, own.fragments()) {
            let so = fragments <= -least + SAME;
            let ours = group.each(Run::fragments);
            let claim = claims::says("S2 {0}, {1} lowest", &[&label, &own.system], ours, so);
            out.push(claim.because(format!("{}; {}", counted(own), counted(other))));
        }
    }
    let files = group.of(FILES);
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
