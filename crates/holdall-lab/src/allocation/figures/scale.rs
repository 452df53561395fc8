//! Figures 17 and 18: fragmentation by the number of objects (Iyengar §3.3.2). Owns the runs,
//! which the two figures share.

use super::parameters;
use crate::allocation::block::Params;
use crate::allocation::pmflf::Usage;
use crate::allocation::workload::{Pareto, Stream};
use crate::experiment::{Claim, Outcome, Settings};
use crate::kit::cache::{Cache, Results, cached};
use crate::kit::claim::{between, finish, holds};
use crate::kit::draw::{axis, lines, series, table};
use anyhow::Result;
use holdall_testkit::SparseDisk;
use std::sync::Arc;

/// Samples in a run.
const SAMPLES: u64 = 20;

/// The usage after so many replacements, by number of objects.
type Runs = Arc<Vec<(u64, Vec<(u64, Usage)>)>>;

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

fn outcome(
    settings: &Settings<'_>,
    runs: &Runs,
    what: &str,
    value: fn(&Usage) -> f64,
    claims: Vec<Claim>,
) -> Outcome {
    let line = |(n, curve): &(u64, Vec<(u64, Usage)>)| {
        let points = curve.iter().map(|(done, usage)| (*done as f64, value(usage))).collect();
        series(format!("{n} objects"), points)
    };
    let lines =
        lines("scale", what, axis("replacements"), axis(what), runs.iter().map(line).collect());
    let row = |(n, curve): &(u64, Vec<(u64, Usage)>)| {
        let (done, usage) = curve.last().copied().unwrap_or_default();
        vec![
            n.to_string(),
            done.to_string(),
            format!("{:.4}", usage.internal()),
            format!("{:.4}", usage.external()),
            format!("{:.4}", usage.total()),
        ]
    };
    let head = ["objects", "replacements", "internal", "external", "total"];
    let rows = runs.iter().map(row).collect();
    let notes = vec![parameters(), "α = 1, C = 2^10 grains.".to_owned()];
    let tables = vec![table("scale", "At the end", &head, rows)];
    finish(Outcome { panels: vec![lines], tables, claims, notes }, settings.quick)
}

/// The last value of each run, from few objects to many.
fn ends(runs: &Runs, value: fn(&Usage) -> f64) -> Vec<f64> {
    runs.iter().filter_map(|(_, curve)| curve.last()).map(|(_, usage)| value(usage)).collect()
}

fn falls(id: &str, text: &str, ends: &[f64]) -> Claim {
    let list: Vec<String> = ends.iter().map(|e| format!("{e:.3}")).collect();
    let so = ends.windows(2).all(|pair| pair[1] < pair[0]);
    holds(id, text, "", list.join(", "), "each below the one before", so)
}

/// Figure 17.
pub(super) fn external(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let text = "external fragmentation falls as the number of objects rises";
    let claims = vec![falls("I6", text, &ends(&runs, Usage::external))];
    Ok(outcome(settings, &runs, "external fragmentation", Usage::external, claims))
}

/// Figure 18.
pub(super) fn total(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let internal = ends(&runs, Usage::internal);
    let many = internal.last().copied().unwrap_or_default();
    let request = |u: &Usage| u.requested as f64 / u.blocks as f64;
    let means: Vec<String> = ends(&runs, request).iter().map(|mean| format!("{mean:.0}")).collect();
    let (least, most) =
        internal.iter().fold((f64::MAX, 0.0), |(l, m): (f64, f64), &i| (l.min(i), m.max(i)));
    let text = "total fragmentation falls as the number of objects rises";
    let alike = "internal fragmentation does not depend on the number of objects: most ÷ least";
    let claims = vec![
        falls("I6 total", text, &ends(&runs, Usage::total)),
        between("I6 internal", alike, "", most / least, "", 1.0, 1.02).because(format!(
            "Few objects are a small sample of a heavy-tailed distribution: the mean sizes in the \
             file at the end are {} bytes, from few objects to many.",
            means.join(", ")
        )),
        between("I4 scale", "internal fragmentation, most objects", "≈ 1.07", many, "", 1.05, 1.09),
    ];
    Ok(outcome(settings, &runs, "total fragmentation", Usage::total, claims))
}
