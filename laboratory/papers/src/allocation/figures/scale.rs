//! Figures 17 and 18: fragmentation by the number of objects (Iyengar §3.3.2). Owns the runs,
//! which the two figures share.

use super::{columns, parameters};
use crate::allocation::block::Params;
use crate::allocation::pmflf::Usage;
use crate::allocation::workload::{Pareto, Stream};
use crate::kit::claims;
use anyhow::Result;
use holdall_instrument::cache::{Cache, Results, cached};
use holdall_instrument::draw::{axis, lines, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_testkit::SparseDisk;
use std::sync::Arc;

/// Samples in a run.
const SAMPLES: u64 = 20;

/// A number of objects, and the usage by the number of replacements before it.
type Run = (u64, Vec<(u64, Usage)>);
type Runs = Arc<Vec<Run>>;

static RUNS: Cache<Runs> = Cache::new(Results::default);

fn runs(settings: &Settings<'_>) -> Result<Runs> {
    let quick = [500, 2000, 8000];
    let full = [1000, 3000, 10_000, 30_000, 100_000];
    let (numbers, replacements) =
        if settings.quick { (&quick[..], 40_000) } else { (&full[..], 500_000) };
    let key = format!("iyengar scale quick={} seed={}", settings.quick, settings.seed);
    cached(&RUNS, &key, || {
        let mut runs = Vec::new();
        for &n in numbers {
            let disk = Arc::new(SparseDisk::with_granules(512));
            let sizes = Pareto::olympic();
            let mut stream = Stream::new(disk, Params::default(), sizes, settings.seed)?;
            for _ in 0..n {
                stream.create()?;
            }
            let mut curve = vec![(0, stream.usage())];
            for done in 1..=replacements {
                stream.replace()?;
                if done % (replacements / SAMPLES) == 0 {
                    curve.push((done, stream.usage()));
                }
            }
            stream.verify()?;
            runs.push((n, curve));
            (settings.progress)(runs.len() as u64, numbers.len() as u64);
        }
        Ok(Arc::new(runs))
    })
}

fn outcome(runs: &Runs, what: &str, value: fn(&Usage) -> f64, claims: Vec<Claim>) -> Outcome {
    let line = |(n, curve): &Run| {
        let points = curve.iter().map(|(done, usage)| (*done as f64, value(usage))).collect();
        series(format!("{n} objects"), points)
    };
    let lines =
        lines("scale", what, axis("replacements"), axis(what), runs.iter().map(line).collect());
    let end = |run: &Run| run.1.last().copied().unwrap_or_default();
    let ends: Vec<(u64, (u64, Usage))> = runs.iter().map(|run| (run.0, end(run))).collect();
    let table = columns(
        "scale",
        "At the end",
        &ends,
        &[
            ("objects", |(n, _)| n.to_string()),
            ("replacements", |(_, (done, _))| done.to_string()),
            ("internal", |(_, (_, usage))| format!("{:.4}", usage.internal())),
            ("external", |(_, (_, usage))| format!("{:.4}", usage.external())),
            ("total", |(_, (_, usage))| format!("{:.4}", usage.total())),
        ],
    );
    let notes = vec![parameters(), "α = 1, C = 2^10 grains.".to_owned()];
    Outcome { panels: vec![lines], tables: vec![table], claims, notes }
}

/// The last value of each run, from few objects to many.
fn ends(runs: &Runs, value: fn(&Usage) -> f64) -> Vec<f64> {
    runs.iter().filter_map(|(_, curve)| curve.last()).map(|(_, usage)| value(usage)).collect()
}

fn falls(id: &str, ends: &[f64]) -> Claim {
    let list: Vec<String> = ends.iter().map(|e| format!("{e:.3}")).collect();
    let so = ends.windows(2).all(|pair| pair[1] < pair[0]);
    claims::says(id, &[], list.join(", "), so)
}

/// Figure 17.
pub(super) fn external(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let claims = vec![falls("I6", &ends(&runs, Usage::external))];
    Ok(outcome(&runs, "external fragmentation", Usage::external, claims))
}

/// Figure 18.
pub(super) fn total(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let internal = ends(&runs, Usage::internal);
    let many = internal.last().copied().unwrap_or_default();
    let list = |value: fn(&Usage) -> f64| {
        ends(&runs, value).iter().map(|v| format!("{v:.0}")).collect::<Vec<_>>().join(", ")
    };
    let asked = list(|u| u.requested as f64 / u.blocks as f64);
    let waste = list(|u| (u.allocated - u.requested) as f64 / u.blocks as f64);
    let (least, most) =
        internal.iter().fold((f64::MAX, 0.0), |(l, m): (f64, f64), &i| (l.min(i), m.max(i)));
    let claims = vec![
        falls("I6 total", &ends(&runs, Usage::total)),
        claims::measures("I6 internal", &[], most / least).because(format!(
            "From few objects to many, {asked} bytes were asked for in a block at the end, and \
             {waste} bytes wasted in it: the waste is the same, the mean of few objects of a \
             heavy-tailed distribution is not."
        )),
        claims::measures("I4 scale", &[], many),
    ];
    Ok(outcome(&runs, "total fragmentation", Usage::total, claims))
}
