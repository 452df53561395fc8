//! Figures 6 and 7: the distribution of sizes, occupancy, and the pool of free objects
//! (Sears §5.3).

use anyhow::Result;

use super::plan::{FILES, FRAGMENTS, Group, KB, MB, Set, base, base_set, counted, outcome, run};
use crate::aging::case::{Case, Run, Sizes};
use crate::aging::system::Kind;
use crate::kit::claims;
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
        let claim = claims::measures("S3 {0}", &[&one.system], b / a);
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
    claims.push(claims::says("S4 97.5 %", &[], fit, true));
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
        let own = kind == Kind::Holdall;
        let so = if own { small <= 1.2 * large } else { small > large };
        let claim = claims::says("S4 pool, {0}", &[&name], ours, so);
        out.push(claim.because(format!("40 free: {}; 400: {}", counted(few), counted(many))));
    }
    if let (Some(low), Some(high)) = (of(0), of(2).or(of(1)))
        && let (Some(a), Some(b)) = (low.fragments(), high.fragments())
    {
        let ours = format!("{} against {}", number(b), number(a));
        let claim = claims::says("S4 occupancy, {0}", &[&name], ours, b >= a);
        out.push(claim.because(format!("half full: {}; full: {}", counted(low), counted(high))));
    }
    out
}
