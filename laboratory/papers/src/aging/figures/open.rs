//! Request size and size hint (Sears §4.4, §6), and interleaved appends, which the paper leaves
//! open (§7).

use anyhow::Result;
use holdall_instrument::picture::{Scale, Series};

use super::plan::{
    FILES, Group, KB, MB, Set, against, base, fragment_panels, highest, hinted, least, outcome, run,
};
use crate::aging::case::{Case, KNOWN, Run, Sizes};
use crate::aging::system::{Ask, Kind};
use crate::kit::plot::zero_axis;
use holdall_instrument::draw::{axis_of, lines, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

/// Objects that are appended to at once.
const TOGETHER: usize = 16;
/// What interleaved appends may cost Holdall over safe writes, in fragments.
const NEAR: f64 = 1.5;
/// The systems that can be given an object's size before its bytes.
const HINTED: [Kind; 2] = [Kind::Holdall, FILES];
/// Request sizes in bytes.
const REQUESTS: [usize; 4] = [4 * KB, 16 * KB, 64 * KB, MB];

/// The systems that an object reaches by requests of this size, without a hint and, if one can
/// be given, with it; SQLite, redb and bytea take an object whole, and one size stands for all.
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
    let mut cases: Vec<Case> = HINTED.map(|kind| hinted(case(kind))).to_vec();
    cases.extend([Kind::Holdall, FILES, Kind::LargeObjects].map(case));
    if request == 64 * KB {
        cases.extend([Kind::Sqlite, Kind::Redb, Kind::Bytea].map(case));
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
    let curve = |name: String| {
        let point = |(&size, group): (&usize, &Group)| {
            Some(((size / KB) as f64, group.named(&name)?.fragments()?))
        };
        series(name.clone(), sized().filter_map(point).collect())
    };
    let names = Kind::ALL.iter().flat_map(|kind| ["", KNOWN].map(|k| kind.name().to_owned() + k));
    let x = axis_of("a write request in KB, powers of two", Scale::Log2);
    let title = "Objects of 1 MB, 85 % full, at the last age";
    let curves: Vec<Series> = names.map(curve).filter(|s| !s.points.is_empty()).collect();
    let y = zero_axis("fragments per object", &curves);
    let panels = vec![lines("requests", title, x, y, curves)];
    let middle = sized().find(|(size, _)| **size == 64 * KB);
    let mut claims: Vec<Claim> = middle.map_or(Vec::new(), |(_, group)| hint_claims(group));
    if let (Some(first), Some(last)) = (groups.first(), groups.last()) {
        claims.extend(request_claims(first, last));
    }
    Ok(outcome(&groups, panels, claims, "sears-requests"))
}

/// The smallest requests against the largest.
fn request_claims(first: &Group, last: &Group) -> Vec<Claim> {
    let claim = |kind: Kind| {
        let runs = (first.of(kind)?, last.of(kind)?);
        let own = kind == Kind::Holdall;
        let so = |small, large| if own { small <= 1.2 * large } else { small > large };
        against("S5 requests, {0}", &[&kind.name()], runs, so)
    };
    [FILES, Kind::LargeObjects, Kind::Holdall].into_iter().filter_map(claim).collect()
}

fn hint_claims(group: &Group) -> Vec<Claim> {
    let claim = |kind: Kind| {
        let with = group.named(&format!("{}{KNOWN}", kind.name()))?;
        let runs = (with, group.of(kind)?);
        against("S5 hint, {0}", &[&kind.name()], runs, |with, without| with <= 1.02 * without)
    };
    HINTED.into_iter().filter_map(claim).collect()
}

/// S6.
pub(super) fn interleaved(settings: &Settings<'_>) -> Result<Outcome> {
    let (volume, ages) =
        if settings.quick { (34 << 20, vec![1]) } else { (80 << 20, vec![1, 2, 3, 4]) };
    let cases = |together: usize| -> Vec<Case> {
        let case = |kind: Kind| Case {
            volume: if settings.quick { volume } else { least(kind, volume) },
            ages: ages.clone(),
            together,
            ..base(kind, Sizes::Constant(MB), settings)
        };
        let known = [Kind::Holdall, FILES].map(|kind| hinted(case(kind)));
        Kind::ALL.map(case).into_iter().chain(known).collect()
    };
    let sets = [
        ("sixteen objects at once, 64 KB each".to_owned(), cases(TOGETHER)),
        ("safe writes of the same objects, one at a time".to_owned(), cases(1)),
    ];
    let groups = run(settings, &sets)?;
    let mut claims: Vec<Claim> = groups[0].ran().filter_map(|run| near(run, &groups[1])).collect();
    claims.extend(["", KNOWN].iter().filter_map(|known| lowest(&groups[0], known)));
    let panels = fragment_panels(&groups);
    Ok(outcome(&groups, panels, claims, "sears-interleaved"))
}

/// A system's interleaved appends against its safe writes, of as many objects on as large a
/// volume, to the same age.
fn near(run: &Run, safe: &Group) -> Option<Claim> {
    let alone = safe.named(&run.system)?;
    let claim = against("S6 {0}", &[&run.system], (run, alone), |a, b| a <= NEAR * b)?;
    let own = run.system.starts_with(Kind::Holdall.name());
    Some(if own { claim } else { Claim { tolerance: String::new(), ..claim.as_note() } })
}

/// Holdall against the other stores that can append without writing the object anew.
fn lowest(group: &Group, known: &str) -> Option<Claim> {
    let of = |kind: Kind| group.named(&format!("{}{known}", kind.name()));
    let own = of(Kind::Holdall)?;
    let appends = |kind: &Kind| matches!(kind, Kind::Files(_) | Kind::LargeObjects);
    let others = Kind::ALL.into_iter().filter(appends).filter_map(of);
    let (_, other) = highest(others, |run| Some(-run.fragments()?))?;
    against("S6 lowest{0}", &[&known], (own, other), |a, b| a <= b)
}
