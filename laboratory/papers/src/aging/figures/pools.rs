//! Figures 6 and 7: the distribution of sizes, occupancy, and the pool of free objects
//! (Sears §5.3).

use std::fmt::Display;

use anyhow::Result;

use super::plan::{
    FILES, Group, KB, MB, Set, against, base, base_set, counted, fragment_panels, outcome, run,
};
use crate::aging::case::{Case, Run, Sizes};
use crate::aging::system::Kind;
use crate::kit::claims;
use holdall_instrument::draw::number;
use holdall_instrument::experiment::{Claim, Outcome, Settings};

/// Of figure 7; redb cannot be filled to 90 %, and a pool of 40 free objects would be none.
pub(super) const KINDS: [Kind; 4] = [Kind::Holdall, FILES, Kind::Sqlite, Kind::Bytea];

/// What the rows on scale multiply objects and volumes by.
const SCALE: usize = 4;

/// Figure 6.
pub(super) fn sizes(settings: &Settings<'_>) -> Result<Outcome> {
    let sets = [
        base_set("constant size, 10 MB", Sizes::Constant(10 * MB), settings),
        base_set("uniform sizes, mean 10 MB", Sizes::Uniform(10 * MB), settings),
    ];
    let groups = run(settings, &sets)?;
    let claim = |one: &Run| {
        let other = groups[1].named(&one.system)?;
        let (a, b) = one.beside(other)?;
        let claim = claims::measures("S3 {0}", &[&one.system], b / a);
        Some(claim.because(format!("constant: {}; uniform: {}", counted(one), counted(other))))
    };
    let claims = groups[0].ran().filter_map(claim).collect();
    let panels = fragment_panels(&groups);
    Ok(outcome(&groups, panels, claims, "sears prose"))
}

/// Volume and occupancy; 90 % leave 40 and 400 free objects of 256 KB in a full run, as of 10 MB
/// on the paper's 4 and 40 GB. The last two are the same with larger objects and volumes.
fn pool_sets(settings: &Settings<'_>) -> Vec<Set> {
    let (small, large) = if settings.quick { (16, 40) } else { (100, 1000) };
    let ages = if settings.quick { vec![1] } else { vec![1, 2, 3] };
    let set = |(mb, occupancy, scale): (usize, f64, usize)| {
        let case = |kind| Case {
            volume: (mb * MB * scale) as u64,
            occupancy,
            ages: if scale > 1 { vec![1] } else { ages.clone() },
            ..base(kind, Sizes::Constant(256 * KB * scale), settings)
        };
        let (kb, mb, full) = (256 * scale, mb * scale, occupancy * 100.0);
        (format!("objects of {kb} KB, {mb} MB {full} % full"), KINDS.map(case).to_vec())
    };
    let fuller = [(small, 0.5, 1), (small, 0.9, 1), (small, 0.975, 1)];
    let wider = [(large, 0.9, 1), (small, 0.9, SCALE), (large, 0.9, SCALE)];
    fuller.into_iter().chain(wider).map(set).collect()
}

/// Figure 7.
pub(super) fn occupancy(settings: &Settings<'_>) -> Result<Outcome> {
    let groups = run(settings, &pool_sets(settings))?;
    let panels = fragment_panels(&groups);
    let mut claims: Vec<Claim> = KINDS.iter().flat_map(|&k| pool_claims(&groups, k)).collect();
    claims.extend(KINDS.iter().filter_map(|&kind| scale_claim(&groups, kind)));
    Ok(outcome(&groups, panels, claims, "sears prose"))
}

/// What a small pool costs, over what it costs with objects and volumes four times as large.
fn scale_claim(groups: &[Group], kind: Kind) -> Option<Claim> {
    let cost = |few: usize, many: usize| {
        let [few, many] = [few, many].map(|at| groups[at].of(kind)?.at(1.0).map(|p| p.fragments));
        Some(few? / many?)
    };
    let (small, large) = (cost(1, 3)?, cost(4, 5)?);
    let claim = claims::measures("S4 scale, {0}", &[&kind.name()], large / small);
    let words: Vec<_> = groups[4..].iter().filter_map(|g| g.of(kind)).map(counted).collect();
    Some(claim.because(format!(
        "fragments of 40 free over 400 free at age 1: {} at 256 KB, {} four times as large; {}",
        number(small),
        number(large),
        words.join("; ")
    )))
}

fn pool_claims(groups: &[Group], kind: Kind) -> Vec<Claim> {
    let of = |at: usize| groups[at].of(kind);
    let words: [&dyn Display; 1] = [&kind.name()];
    let own = kind == Kind::Holdall;
    let pool = |few, many| if own { few <= 1.2 * many } else { few > many };
    let pools = of(1).zip(of(3)).and_then(|runs| against("S4 pool, {0}", &words, runs, pool));
    let ends = of(2).or(of(1)).zip(of(0));
    let full = ends.and_then(|runs| against("S4 occupancy, {0}", &words, runs, |a, b| a > b));
    pools.into_iter().chain(full).collect()
}
