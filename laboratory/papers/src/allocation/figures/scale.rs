//! Figures 17 and 18: fragmentation by the number of objects (Iyengar §3.3.2). Owns the runs,
//! which the two figures share.

use super::{columns, curves};
use crate::allocation::block::Params;
use crate::allocation::pmflf::Usage;
use crate::allocation::workload::{Pareto, Stream};
use crate::kit::{claims, notes};
use anyhow::{Context, Result};
use holdall_instrument::cache::{Cache, Results, cached};
use holdall_instrument::draw::{number, paper_points, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use std::sync::Arc;

/// Samples in a run.
const SAMPLES: u64 = 20;
/// Free bytes ÷ bytes of the file that are serious; the paper names no number.
const SERIOUS: f64 = 0.2;
/// When free blocks are combined, and the parameters for it.
const MODES: [(&str, bool, f64); 3] = [
    ("when nothing fits", true, f64::INFINITY),
    ("when serious too (footnote 3)", true, SERIOUS),
    ("never, the tail has no end", false, f64::INFINITY),
];

/// A number of objects, and the usage by the number of replacements before it.
#[derive(Debug)]
struct Run {
    mode: &'static str,
    objects: u64,
    curve: Vec<(u64, Usage)>,
    coalesced: u64,
}

type Runs = Arc<Vec<Run>>;

static RUNS: Cache<Runs> = Cache::new(Results::default);

impl Run {
    fn end(&self) -> Usage {
        self.curve.last().map(|(_, usage)| *usage).unwrap_or_default()
    }
}

fn runs(settings: &Settings<'_>) -> Result<Runs> {
    let quick = [500, 2000, 8000];
    let full = [1000, 3000, 10_000, 30_000, 100_000];
    let (numbers, replacements) =
        if settings.quick { (&quick[..], 40_000) } else { (&full[..], 500_000) };
    let key = format!("iyengar scale quick={} seed={}", settings.quick, settings.seed);
    cached(&RUNS, &key, || {
        let mut runs = Vec::new();
        for (mode, bounded, serious) in MODES {
            for &objects in numbers {
                let params = Params { bounded, serious, ..Params::default() };
                let sizes = Pareto::olympic();
                let mut stream = Stream::filled(params, sizes, settings.seed, objects)?;
                let mut curve = vec![(0, stream.usage())];
                for done in 1..=replacements {
                    stream.replace()?;
                    if done % (replacements / SAMPLES) == 0 {
                        curve.push((done, stream.usage()));
                    }
                }
                stream.verify()?;
                let coalesced = stream.store.counts().coalesced;
                runs.push(Run { mode, objects, curve, coalesced });
                (settings.progress)(runs.len() as u64, 3 * numbers.len() as u64);
            }
        }
        Ok(Arc::new(runs))
    })
}

fn outcome(runs: &Runs, what: &str, value: fn(&Usage) -> f64, claims: Vec<Claim>) -> Outcome {
    let mut panels = Vec::new();
    for (number, (mode, ..)) in MODES.iter().enumerate() {
        let line = |run: &Run| {
            let points = run.curve.iter().map(|(done, usage)| (*done as f64, value(usage)));
            series(format!("{} objects", run.objects), points.collect())
        };
        let of_mode = runs.iter().filter(|run| run.mode == *mode);
        let (id, title) = (format!("scale-{}", number + 1), format!("Combined {mode}"));
        panels.push(curves(&id, &title, what, of_mode.map(line).collect()));
    }
    let table = columns(
        "scale",
        "At the end",
        runs,
        &[
            ("free blocks are combined", |r| r.mode.to_owned()),
            ("objects", |r| r.objects.to_string()),
            ("times combined", |r| r.coalesced.to_string()),
            ("internal", |r| format!("{:.4}", r.end().internal())),
            ("external", |r| format!("{:.4}", r.end().external())),
            ("total", |r| format!("{:.4}", r.end().total())),
        ],
    );
    let notes = [notes::of("iyengar", &[]), notes::of("iyengar-17", &[&SERIOUS])].concat();
    Outcome { panels, tables: vec![table], claims, notes }
}

/// The last value of each run of a mode, from few objects to many.
fn ends(runs: &Runs, mode: usize, value: fn(&Usage) -> f64) -> Vec<f64> {
    let of_mode = runs.iter().filter(|run| run.mode == MODES[mode].0);
    of_mode.map(|run| value(&run.end())).collect()
}

fn falls(id: &str, ends: &[f64]) -> Claim {
    let list: Vec<String> = ends.iter().map(|e| format!("{e:.3}")).collect();
    let so = ends.windows(2).all(|pair| pair[1] < pair[0]);
    claims::says(id, &[], list.join(", "), so)
}

/// Figure 17.
pub(super) fn external(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let of = |mode| ends(&runs, mode, Usage::external);
    let why = |mode: usize| {
        let of_mode = runs.iter().filter(|run| run.mode == MODES[mode].0);
        let each = of_mode.map(|run| {
            let end = run.end();
            let free = number(100.0 * end.free as f64 / end.tail as f64);
            format!("{}: combined {} times, {free} % of the file free", run.objects, run.coalesced)
        });
        each.collect::<Vec<_>>().join("; ")
    };
    let most = of(0).last().copied().context("no runs")?;
    let claims = vec![
        falls("I6", &of(0)).because(why(0)),
        falls("I6 footnote 3", &of(1)).because(why(1)),
        falls("I6 endless", &of(2)),
        claims::measures("I6 many", &[], most).because(why(0)),
    ];
    Ok(outcome(&runs, "external fragmentation", Usage::external, claims))
}

/// Figure 18.
pub(super) fn total(settings: &Settings<'_>) -> Result<Outcome> {
    let runs = runs(settings)?;
    let internal = ends(&runs, 0, Usage::internal);
    let many = internal.last().copied().unwrap_or_default();
    let list = |value: fn(&Usage) -> f64| {
        ends(&runs, 0, value).iter().map(|v| format!("{v:.0}")).collect::<Vec<_>>().join(", ")
    };
    let asked = list(|u| u.requested as f64 / u.blocks as f64);
    let waste = list(|u| (u.allocated - u.requested) as f64 / u.blocks as f64);
    let (least, most) =
        internal.iter().fold((f64::MAX, 0.0), |(l, m): (f64, f64), &i| (l.min(i), m.max(i)));
    let claims = vec![
        falls("I6 total", &ends(&runs, 0, Usage::total)),
        claims::measures("I6 internal", &[], most / least).because(format!(
            "From few objects to many, {asked} bytes were asked for in a block at the end, and \
             {waste} bytes wasted in it: the waste is the same, the mean of few objects of a \
             heavy-tailed distribution is not."
        )),
        claims::measures("I4 scale", &[], many),
    ];
    let mut outcome = outcome(&runs, "total fragmentation", Usage::total, claims);
    // What §3.3.2 says of the internal part is the least that the total can be.
    let least = vec![(0.0, 1.07)];
    for panel in &mut outcome.panels {
        panel.series.push(paper_points("paper, internal part", least.clone()));
    }
    Ok(outcome)
}
