//! Request size and size hint (Sears §4.4, §6), and interleaved appends, which the paper leaves
//! open (§7).

use anyhow::Result;
use holdall_instrument::picture::Scale;

use super::plan::{
    FILES, FRAGMENTS, Group, KB, MB, Set, base, base_set, counted, hinted, outcome, run,
};
use crate::aging::case::{Case, Run, Sizes};
use crate::aging::system::{Ask, Kind};
use crate::kit::claims;
use holdall_instrument::draw::{axis, axis_of, lines, number, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

/// Objects that are appended to at once.
const TOGETHER: usize = 16;
/// What interleaved appends may cost Holdall over safe writes, in fragments.
const NEAR: f64 = 1.5;
/// The systems that can be given an object's size.
const HINTED: [Kind; 4] = [Kind::Holdall, FILES, Kind::Sqlite, Kind::Redb];
/// Request sizes in bytes.
const REQUESTS: [usize; 4] = [4 * KB, 16 * KB, 64 * KB, MB];

/// The systems that an object reaches by requests of this size, without a hint and, if one can
/// be given, with it. SQLite, redb and bytea take an object whole: one size stands for all.
fn request_set(request: usize, settings: &Settings<'_>) -> Set {
    let (volume, ages) =
        if settings.quick { (40 << 20, vec![1]) } else { (100 << 20, vec![1, 2, 3, 4]) };
    let case = |kind| Case {
        volume,
        occupancy: 0.85,
        ask: Ask { request, hint: false },
        ages: ages.clone(),
        ..base(kind, Sizes::Constant(MB), settings)
    };
    let told: &[Kind] = if request == 64 * KB { &HINTED } else { &HINTED[..2] };
    let mut cases: Vec<Case> = told.iter().map(|&kind| hinted(case(kind))).collect();
    cases.extend(told.iter().map(|&kind| case(kind)));
    cases.push(case(Kind::LargeObjects));
    if request == 64 * KB {
        cases.push(case(Kind::Bytea));
    }
    (format!("{} KB", request / KB), cases)
}

/// S5.
pub(super) fn requests(settings: &Settings<'_>) -> Result<Outcome> {
    let sizes: Vec<usize> =
        REQUESTS.into_iter().filter(|r| !settings.quick || [4 * KB, 64 * KB].contains(r)).collect();
    let sets: Vec<Set> = sizes.iter().map(|&size| request_set(size, settings)).collect();
    let groups = run(settings, &sets)?;
    let sized = || sizes.iter().zip(&groups);
    let mut names: Vec<&str> = Vec::new();
    for run in groups.iter().rev().flat_map(Group::ran) {
        if !names.contains(&run.system.as_str()) {
            names.push(&run.system);
        }
    }
    let point = |name: &str, size: usize, group: &Group| {
        Some(((size / KB) as f64, group.named(name)?.fragments()?))
    };
    let curve = |name: &str| {
        series(name, sized().filter_map(|(&size, group)| point(name, size, group)).collect())
    };
    let x = axis_of("bytes of a write request, KB", Scale::Log2);
    let title = "Objects of 1 MB, 85 % full, at the last age";
    let curves = names.into_iter().map(curve).collect();
    let panels = vec![lines("requests", title, x, axis(FRAGMENTS), curves)];
    let paper = "The paper's text says that request size matters, without numbers.";
    let claims = sized().find(|(size, _)| **size == 64 * KB).map(|(_, g)| hint_claims(g));
    let mut claims = claims.unwrap_or_default();
    if let (Some(first), Some(last)) = (groups.first(), groups.last()) {
        claims.extend(request_claims(first, last));
    }
    Ok(outcome(&groups, false, panels, claims, paper))
}

/// The smallest requests against the largest.
fn request_claims(first: &Group, last: &Group) -> Vec<Claim> {
    let claim = |kind: Kind| {
        let (few, many) = (last.of(kind)?, first.of(kind)?);
        let (large, small) = (few.fragments()?, many.fragments()?);
        let ours = format!("{} {}, {} {}", first.label, number(small), last.label, number(large));
        let own = kind == Kind::Holdall;
        let so = if own { small <= 1.2 * large } else { small > large };
        let claim = claims::says("S5 requests, {0}", &[&kind.name()], ours, so);
        Some(claim.because(format!(
            "{}: {}; {}: {}",
            first.label,
            counted(many),
            last.label,
            counted(few)
        )))
    };
    [FILES, Kind::LargeObjects, Kind::Holdall].into_iter().filter_map(claim).collect()
}

fn hint_claims(group: &Group) -> Vec<Claim> {
    let claim = |kind: Kind| {
        let without = group.of(kind)?;
        let with = group.named(&format!("{}, size known", kind.name()))?;
        let (a, b) = (without.fragments()?, with.fragments()?);
        let ours = format!("without {}, with {}", number(a), number(b));
        let claim = claims::says("S5 hint, {0}", &[&kind.name()], ours, b <= a * 1.02);
        Some(claim.because(format!("{}; {}", counted(without), counted(with))))
    };
    HINTED.into_iter().filter_map(claim).collect()
}

/// S6.
pub(super) fn interleaved(settings: &Settings<'_>) -> Result<Outcome> {
    let (volume, ages) =
        if settings.quick { (34 << 20, vec![1]) } else { (80 << 20, vec![1, 2, 3, 4]) };
    let case = |kind: Kind| Case {
        volume,
        ages: ages.clone(),
        together: TOGETHER,
        ..base(kind, Sizes::Constant(MB), settings)
    };
    let mut cases = Kind::ALL.map(case).to_vec();
    cases.extend([Kind::Holdall, FILES].map(|kind| hinted(case(kind))));
    let sets = [
        ("sixteen objects at once, 64 KB each".to_owned(), cases),
        base_set("safe writes, one at a time", Sizes::Constant(MB), settings),
    ];
    let groups = run(settings, &sets)?;
    let mut claims: Vec<Claim> = groups[0].ran().filter_map(|run| near(run, &groups[1])).collect();
    claims.extend(lowest(&groups[0]));
    let panel = |g: &Group| g.panel("Fragments", FRAGMENTS, |p| p.fragments, None);
    let panels = groups.iter().map(panel).collect();
    let paper = "The paper leaves this question open, so there is nothing of it to compare with.";
    Ok(outcome(&groups, true, panels, claims, paper))
}

/// A system's interleaved appends against its safe writes.
fn near(run: &Run, safe: &Group) -> Option<Claim> {
    let alone = safe.named(run.system.trim_end_matches(", size known"))?;
    let (together, apart) = (run.fragments()?, alone.fragments()?);
    let ratio = together / apart;
    let ours = format!("{} against {}: {} ×", number(together), number(apart), number(ratio));
    let claim = claims::says("S6 {0}", &[&run.system], ours, ratio <= NEAR);
    if !run.system.starts_with(Kind::Holdall.name()) {
        return Some(Claim { tolerance: String::new(), ..claim.as_note() });
    }
    Some(claim.because(format!(
        "sixteen appends make an object, each a commit of its own; {}; safe writes: {}",
        counted(run),
        counted(alone)
    )))
}

/// Holdall against the other stores that can append without writing the object anew.
fn lowest(group: &Group) -> Option<Claim> {
    let own = group.of(Kind::Holdall)?;
    let others = [FILES, Kind::LargeObjects].into_iter().filter_map(|kind| group.of(kind));
    let least = others.filter_map(Run::fragments).min_by(f64::total_cmp)?;
    // A twentieth is rounding: one fragment in one of twenty objects.
    let so = own.fragments()? <= least * 1.05;
    let ours = group.each(Run::fragments);
    Some(claims::says("S6 lowest", &[], ours, so).because(counted(own)))
}
