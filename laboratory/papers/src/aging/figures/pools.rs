//! Figures 6 and 7: the distribution of sizes, occupancy, and the pool of free objects
//! (Sears §5.3).

use anyhow::Result;

use super::plan::{FILES, FRAGMENTS, Group, KB, MB, Set, base, base_set, counted, outcome, run};
use crate::aging::case::{Case, Run, Sizes};
use crate::aging::system::Kind;
use holdall_instrument::claim::{between, holds, note};
use holdall_instrument::draw::number;
use holdall_instrument::experiment::{Claim, Outcome, Settings};

const PROSE: &str = "The paper's text has no numbers of fragments for this figure, only prose.";
/// Of figure 7.
const KINDS: [Kind; 5] = [Kind::Holdall, FILES, Kind::Sqlite, Kind::Bytea, Kind::Redb];

/// Fragments of two runs at the last age that both reached.
fn pair(a: &Run, b: &Run) -> Option<(f64, f64)> {
    let age = a.points.last()?.age.min(b.points.last()?.age);
    Some((a.at(age)?.fragments, b.at(age)?.fragments))
}

/// Figure 6.
pub(super) fn sizes(settings: &Settings<'_>) -> Result<Outcome> {
    let sets = [
        base_set("constant size, 10 MB", Sizes::Constant(10 * MB), settings),
        base_set("uniform sizes, mean 10 MB", Sizes::Uniform(10 * MB), settings),
    ];
    let groups = run(settings, &sets)?;
    let claim = |one: &Run| {
        let other = groups[1].named(&one.system)?;
        let (a, b) = pair(one, other)?;
        let text = "objects of uniform size have as many fragments as those of constant size";
        let claim = between(&format!("S3 {}", one.system), text, "", b / a, "×", 0.8, 1.2);
        Some(claim.because(format!("constant: {}; uniform: {}", counted(one), counted(other))))
    };
    let claims = groups[0].ran().filter_map(claim).collect();
    let panel = |g: &Group| g.panel("Fragments", FRAGMENTS, |p| p.fragments, None);
    let panels = groups.iter().map(panel).collect();
    Ok(outcome(&groups, false, panels, claims, PROSE))
}

/// Volume and occupancy; 90 % leave 40 and 400 free objects of 256 KB in a full run.
fn pool_sets(settings: &Settings<'_>) -> [Set; 4] {
    let (small, large) = if settings.quick { (16, 40) } else { (100, 1000) };
    let ages = if settings.quick { vec![1] } else { vec![1, 2, 3] };
    let pools = [(small, 0.5), (small, 0.9), (small, 0.975), (large, 0.9)];
    pools.map(|(mb, occupancy)| {
        let case = |kind| Case {
            volume: mb << 20,
            occupancy,
            ages: ages.clone(),
            ..base(kind, Sizes::Constant(256 * KB), settings)
        };
        let label = format!("a volume of {mb} MB, {} % full", occupancy * 100.0);
        (label, KINDS.map(case).to_vec())
    })
}

/// Figure 7.
pub(super) fn occupancy(settings: &Settings<'_>) -> Result<Outcome> {
    let groups = run(settings, &pool_sets(settings))?;
    let panel = |g: &Group| g.panel("Fragments", FRAGMENTS, |p| p.fragments, None);
    let panels = groups.iter().map(panel).collect();
    let mut claims: Vec<Claim> =
        KINDS.iter().flat_map(|&kind| pool_claims(&groups, kind)).collect();
    let fit = groups[2].each(|run| run.points.last().map(|p| p.age));
    let text = "97.5 % full: the age that each system reached";
    claims.push(note("S4 97.5 %", text, "", fit));
    Ok(outcome(&groups, false, panels, claims, PROSE))
}

fn pool_claims(groups: &[Group], kind: Kind) -> Vec<Claim> {
    let name = kind.name();
    let of = |at: usize| groups[at].of(kind);
    let mut out = Vec::new();
    if let (Some(few), Some(many)) = (of(1), of(3))
        && let Some((small, large)) = pair(few, many)
    {
        let ours = format!("{} against {}", number(small), number(large));
        let (text, so, tolerance) = if kind == Kind::Holdall {
            let text = "Holdall does not suffer from a small pool as the paper's systems do";
            (text, small <= 1.2 * large, "40 free ≤ 1.2 × 400 free")
        } else {
            let text = "a pool of 40 free objects fragments more than one of 400, both 90 % full";
            (text, small > large, "40 free > 400 free")
        };
        let claim = holds(&format!("S4 pool, {name}"), text, "", ours, tolerance, so);
        out.push(claim.because(format!("40 free: {}; 400: {}", counted(few), counted(many))));
    }
    if let (Some(low), Some(high)) = (of(0), of(2).or(of(1)))
        && let (Some(a), Some(b)) = (low.fragments(), high.fragments())
    {
        let text = "the fuller the volume, the more fragments: 97.5 % (or 90 %, where that does not \
                    fit) against 50 %";
        let ours = format!("{} against {}", number(b), number(a));
        let claim = holds(&format!("S4 occupancy, {name}"), text, "", ours, "≥ at 50 %", b >= a);
        out.push(claim.because(format!("half full: {}; full: {}", counted(low), counted(high))));
    }
    out
}
