//! Figures 6 and 7: the distribution of sizes, occupancy, and the pool of free objects
//! (Sears §5.3).

use anyhow::Result;

use super::plan::{
    FILES, KB, MB, base, base_runs, by_age, each, labelled, numbers, of, outcome, ran, run_all,
};
use crate::aging::system::Kind;
use crate::aging::workload::{Case, Run, Sizes};
use crate::experiment::{Claim, Outcome, Settings};
use crate::kit::claim::{between, holds};
use crate::kit::draw::number;

/// Figure 6.
pub(super) fn sizes(settings: &Settings<'_>) -> Result<Outcome> {
    let constant = base_runs(settings, Sizes::Constant(10 * MB))?;
    let uniform = base_runs(settings, Sizes::Uniform(10 * MB))?;
    let mut claims = Vec::new();
    for one in ran(&constant) {
        let Some(other) = ran(&uniform).find(|run| run.system == one.system) else { continue };
        let age = one.last().map_or(0.0, |p| p.age).min(other.last().map_or(0.0, |p| p.age));
        let (Some(a), Some(b)) = (one.at(age), other.at(age)) else { continue };
        let id = format!("S3 {}", one.system);
        let text = "objects of uniform size have as many fragments as those of constant size";
        let ratio = b.fragments / a.fragments;
        claims.push(between(&id, text, "", ratio, "×", 0.8, 1.2).because(format!(
            "{} fragments of constant size, {} of uniform: {}",
            number(a.fragments),
            number(b.fragments),
            if ratio > 1.0 {
                "what a freed object leaves is of no other object's size, so that a new one takes \
                 several rests"
            } else {
                "fewer"
            }
        )));
    }
    let unit = "fragments per object";
    let panels = vec![
        by_age("constant", "Constant size, 10 MB", unit, &constant, |p| p.fragments, None),
        by_age("uniform", "Uniform sizes, mean 10 MB", unit, &uniform, |p| p.fragments, None),
    ];
    let mut all = labelled("constant", &constant);
    all.extend(labelled("uniform", &uniform));
    let tables = vec![numbers("numbers", "By age", &all)];
    Ok(outcome(panels, tables, claims, &all, settings))
}

/// Volume and occupancy; 90 % leave 40 and 400 free objects of 256 KB in a full run.
fn pools(settings: &Settings<'_>) -> [(&'static str, u64, f64); 4] {
    let (small, large) = if settings.quick { (16, 40) } else { (100, 1000) };
    let volume = |mb: u64| mb << 20;
    [
        ("small, 50 %", volume(small), 0.5),
        ("small, 90 %", volume(small), 0.9),
        ("small, 97.5 %", volume(small), 0.975),
        ("large, 90 %", volume(large), 0.9),
    ]
}

/// Figure 7.
pub(super) fn occupancy(settings: &Settings<'_>) -> Result<Outcome> {
    let kinds = [Kind::Holdall, FILES, Kind::Sqlite, Kind::Bytea, Kind::Redb];
    let pools = pools(settings);
    let ages = if settings.quick { vec![1] } else { vec![1, 2, 3] };
    let mut cases = Vec::new();
    for (_, volume, occupancy) in pools {
        for kind in kinds {
            let ages = ages.clone();
            let base = base(kind, Sizes::Constant(256 * KB), settings);
            cases.push(Case { volume, occupancy, ages, ..base });
        }
    }
    let runs = run_all(settings, &cases)?;
    let groups: Vec<(&str, &[Run])> =
        pools.iter().map(|p| p.0).zip(runs.chunks(kinds.len())).collect();
    let mut panels = Vec::new();
    let mut all = Vec::new();
    for ((label, runs), id) in groups.iter().zip(["small-50", "small-90", "small-975", "large-90"])
    {
        let title = format!("Volume: {label} full");
        let unit = "fragments per object";
        panels.push(by_age(id, &title, unit, runs, |p| p.fragments, None));
        all.extend(labelled(label, runs));
    }
    let claims = pool_claims(&groups, &kinds);
    let tables = vec![numbers("numbers", "By age", &all)];
    Ok(outcome(panels, tables, claims, &all, settings))
}

/// Fragments of a system in two groups at the last age that both reached.
fn pair(a: &[Run], b: &[Run], kind: Kind) -> Option<(f64, f64)> {
    let (a, b) = (of(a, kind)?, of(b, kind)?);
    let age = a.last()?.age.min(b.last()?.age);
    Some((a.at(age)?.fragments, b.at(age)?.fragments))
}

fn pool_claims(groups: &[(&str, &[Run])], kinds: &[Kind]) -> Vec<Claim> {
    let &[(_, half), (_, ninety), (_, most), (_, large)] = groups else { return Vec::new() };
    let mut out = Vec::new();
    for &kind in kinds {
        let name = kind.name();
        if let Some((small, large)) = pair(ninety, large, kind) {
            let ours = format!("{} against {}", number(small), number(large));
            let (text, so, tolerance) = if kind == Kind::Holdall {
                let text = "Holdall does not suffer from a small pool as the paper's systems do";
                (text, small <= 1.2 * large, "40 free ≤ 1.2 × 400 free")
            } else {
                let text =
                    "a pool of 40 free objects fragments more than one of 400, both 90 % full";
                (text, small > large, "40 free > 400 free")
            };
            let why = format!(
                "at 90 % full {name} has {} fragments with 40 free objects and {} with 400",
                number(small),
                number(large)
            );
            out.push(
                holds(&format!("S4 pool, {name}"), text, "", ours, tolerance, so).because(why),
            );
        }
        let at = |group: &[Run]| of(group, kind)?.last().map(|p| p.fragments);
        let (Some(low), Some(high)) = (at(half), at(most).or(at(ninety))) else { continue };
        let text = "the fuller the volume, the more fragments: 97.5 % (or 90 %, where that does not \
                    fit) against 50 %";
        let ours = format!("{} against {}", number(high), number(low));
        let claim =
            holds(&format!("S4 occupancy, {name}"), text, "", ours, "≥ at 50 %", high >= low);
        out.push(claim.because(format!(
            "at 50 % it has {}, nearly full {}",
            number(low),
            number(high)
        )));
    }
    let fit = each(most, |run| run.last().map(|p| p.age));
    let text = "97.5 % full: the age that each system reached";
    out.push(crate::kit::claim::note("S4 97.5 %", text, "", fit));
    out
}
