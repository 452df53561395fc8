//! Figures 2 to 5: throughput and fragments as the store ages (Sears §5.2).

use anyhow::Result;

use super::plan::{
    FILES, HINTED, KB, MB, base_runs, by_age, each, labelled, numbers, of, outcome, ran,
};
use crate::aging::system::Kind;
use crate::aging::workload::{Run, Sizes};
use crate::experiment::{Claim, Outcome, Settings};
use crate::kit::claim::{holds, note};
use crate::kit::draw::{number, paper_points};

/// How much a curve may still rise from age 5 to 10 and be called level.
const LEVEL: f64 = 1.2;
/// Fragments, mean of objects: no more than a difference in rounding.
const SAME: f64 = 0.05;

fn last(run: &Run) -> Option<f64> {
    run.last().map(|p| p.fragments)
}

/// Fragments at the last age over those at half of it.
fn late_rise(run: &Run) -> Option<f64> {
    let end = run.last()?;
    Some(end.fragments / run.at(end.age / 2.0)?.fragments)
}

/// Part of the rise over all ages that falls into the second half; a line has half.
fn late_share(run: &Run) -> Option<f64> {
    let end = run.last()?;
    let (first, middle) = (run.points.first()?.fragments, run.at(end.age / 2.0)?.fragments);
    let rise = end.fragments - first;
    (rise > SAME).then(|| (end.fragments - middle) / rise)
}

/// Figure 2.
pub(super) fn reads(settings: &Settings<'_>) -> Result<Outcome> {
    let small = base_runs(settings, Sizes::Constant(256 * KB))?;
    let large = base_runs(settings, Sizes::Constant(MB))?;
    let mut claims = Vec::new();
    for (label, runs) in [("256 KB", &small), ("1 MB", &large)] {
        if let Some(files) = of(runs, FILES) {
            let old = |run: &Run| run.last().map(|p| p.read);
            let best = ran(runs)
                .filter(|r| Kind::ALL.iter().any(|k| k.is_database() && k.name() == r.system));
            let best = best.filter_map(|r| Some((old(r)?, r.system.clone())));
            let best = best.max_by(|a, b| a.0.total_cmp(&b.0));
            if let (Some((rate, name)), Some(files)) = (best, old(files)) {
                let id = format!("S2 reads when old, {label}");
                let text = "after ageing files of 256 KB and more are read faster than from any \
                            database";
                let ours = format!("files {} MB/s, {name} {} MB/s", number(files), number(rate));
                let claim = holds(&id, text, "", ours, "files ahead", files > rate);
                claims.push(claim.because(format!(
                    "fragments cost little on a disk without an arm; at the last age: {}",
                    each(runs, last)
                )));
            }
        }
    }
    let panels = vec![
        by_age("read-256k", "Reads of 256 KB", "MB per second", &small, |p| p.read, None),
        by_age("read-1m", "Reads of 1 MB", "MB per second", &large, |p| p.read, None),
    ];
    let mut all = labelled("256 KB", &small);
    all.extend(labelled("1 MB", &large));
    let tables = vec![numbers("numbers", "By age", &all)];
    Ok(outcome(panels, tables, claims, &all, settings))
}

/// Figure 4.
pub(super) fn writes(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = base_runs(settings, Sizes::Constant(MB))?;
    let slower = |run: &Run| Some(run.last()?.write / run.points.first()?.write);
    let mut claims = Vec::new();
    let databases: Vec<&Run> =
        Kind::ALL.iter().filter(|k| k.is_database()).filter_map(|&k| of(&runs, k)).collect();
    if let Some(worst) = databases.iter().filter_map(|r| slower(r)).min_by(f64::total_cmp) {
        let text = "a database's safe writes are far slower than its bulk load";
        let ours = each(&runs, slower);
        let claim = holds("S2 writes slow down", text, "", ours, "a database < 0.7 ×", worst < 0.7);
        claims.push(claim.because(format!(
            "each object of the load is synced here too, so that the load is no faster: the worst \
             keeps {} of it",
            number(worst)
        )));
    }
    let all = labelled("1 MB", &runs);
    let panels =
        vec![by_age("write-1m", "Safe writes of 1 MB", "MB per second", &runs, |p| p.write, None)];
    let tables = vec![numbers("numbers", "By age", &all)];
    Ok(outcome(panels, tables, claims, &all, settings))
}

/// The claims of S2 for one size.
fn fragment_claims(label: &str, runs: &[Run]) -> Vec<Claim> {
    let mut out = Vec::new();
    let id = |what: &str| format!("S2 {label}, {what}");
    let ours = || each(runs, last);
    for name in [Kind::Holdall.name(), HINTED] {
        let Some(own) = ran(runs).find(|run| run.system == name) else { continue };
        if let Some(rise) = late_rise(own) {
            let text = "Holdall's fragments level off";
            let tolerance = "last age ≤ 1.2 × half of it";
            let rise_text = format!("{} ×", number(rise));
            let id = id(&format!("{name} level"));
            let claim = holds(&id, text, "", rise_text, tolerance, rise <= LEVEL);
            let ends = own.points.first().zip(own.last());
            let ends = ends.map_or((0.0, 0.0), |(a, z)| (a.fragments, z.fragments));
            out.push(claim.because(format!(
                "from {} fragments when filled they rise to {}",
                number(ends.0),
                number(ends.1)
            )));
        }
        let others = ran(runs).filter(|run| !run.system.starts_with("Holdall")).filter_map(last);
        if let (Some(least), Some(own)) = (others.min_by(f64::total_cmp), last(own)) {
            let text = "Holdall levels off at the lowest number of fragments";
            let so = own <= least + SAME;
            let claim =
                holds(&id(&format!("{name} lowest")), text, "", ours(), "≤ every other", so);
            out.push(claim.because(format!(
                "{name} has {} fragments an object, the best other {}",
                number(own),
                number(least)
            )));
        }
    }
    if let Some(rise) = of(runs, FILES).and_then(late_rise) {
        let text = "the file system's fragments level off";
        let ours = format!("{} ×", number(rise));
        let so = rise <= LEVEL;
        let claim = holds(&id("files level"), text, "", ours, "last age ≤ 1.2 × half of it", so);
        out.push(
            claim.because(format!("from half of the ages to all they rise {} ×", number(rise))),
        );
    }
    let databases = Kind::ALL.iter().filter(|k| k.is_database()).filter_map(|&k| of(runs, k));
    let growth = databases.filter_map(|run| {
        let rise = last(run)? / run.points.first()?.fragments;
        Some((rise, late_share(run).unwrap_or(0.0), run.system.as_str()))
    });
    if let Some((rise, share, name)) = growth.max_by(|a, b| (a.0).total_cmp(&b.0)) {
        let text = "a database's fragments grow almost linearly, without a limit in sight";
        let so = rise >= 2.0 && share >= 0.3;
        let ours = format!("{name}: {} ×, second half {} of it", number(rise), number(share));
        let tolerance = "one database ≥ 2 ×, of which ≥ 0.3 in the second half";
        out.push(holds(&id("a database grows"), text, "", ours, tolerance, so).because(format!(
            "the databases of today reach a level: {name}, which grows most, has {} of its growth \
             in the second half",
            number(share)
        )));
    }
    out
}

/// Figure 3.
pub(super) fn fragments_large(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = base_runs(settings, Sizes::Constant(10 * MB))?;
    let all = labelled("10 MB", &runs);
    let unit = "fragments per object";
    let panels = vec![by_age("fragments", "Objects of 10 MB", unit, &runs, |p| p.fragments, None)];
    let tables = vec![numbers("numbers", "By age", &all)];
    Ok(outcome(panels, tables, fragment_claims("10 MB", &runs), &all, settings))
}

/// Figure 5.
pub(super) fn fragments_small(settings: &Settings<'_>) -> Result<Outcome> {
    let small = base_runs(settings, Sizes::Constant(256 * KB))?;
    let large = base_runs(settings, Sizes::Constant(MB))?;
    let mut claims = fragment_claims("256 KB", &small);
    claims.extend(fragment_claims("1 MB", &large));
    let text = "files and database converge at four fragments an object of 256 KB";
    claims.push(note("S2 256 KB, where it ends", text, "4", each(&small, last)));
    let unit = "fragments per object";
    let four = paper_points("paper: both converge at 4", vec![(10.0, 4.0)]);
    let panels = vec![
        by_age("256k", "Objects of 256 KB", unit, &small, |p| p.fragments, Some(four)),
        by_age("1m", "Objects of 1 MB", unit, &large, |p| p.fragments, None),
    ];
    let mut all = labelled("256 KB", &small);
    all.extend(labelled("1 MB", &large));
    let tables = vec![numbers("numbers", "By age", &all)];
    Ok(outcome(panels, tables, claims, &all, settings))
}
