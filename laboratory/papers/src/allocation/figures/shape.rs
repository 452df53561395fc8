//! Figures 14 to 16: fragmentation by the distribution of sizes (Iyengar §3.3.1). Owns the
//! runs, which the three figures share.

use super::{columns, fragmentation, ranks};
use crate::allocation::block::Params;
use crate::allocation::workload::{Pareto, Stream};
use crate::kit::{claims, notes};
use anyhow::{Context, Result};
use holdall_instrument::cache::{Cache, Results, cached};
use holdall_instrument::draw::{paper_points, percent, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::Series;
use serde::{Deserialize, Serialize};

const ALPHAS: [f64; 5] = [0.8, 1.0, 1.2, 1.4, 1.6];
/// Powers of two of C in grains.
const CUTOFFS: [u32; 9] = [4, 6, 8, 10, 12, 14, 16, 18, 20];

/// What a file of one distribution came to; the mean of several seeds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Point {
    alpha: f64,
    cutoff: u32,
    internal: f64,
    external: f64,
    total: f64,
    /// Mean bytes of a request.
    mean: f64,
    /// The largest request ÷ all that is allocated.
    largest: f64,
    /// Free bytes ÷ allocated ones.
    free: f64,
    /// Replacements that went to the tail, as a share.
    tail: f64,
    /// Times that free blocks were combined.
    coalesced: f64,
}

static RUNS: Cache<Vec<Point>> = Cache::new(Results::default);

fn points(settings: &Settings<'_>) -> Result<Vec<Point>> {
    let key = format!("iyengar shapes quick={} seed={}", settings.quick, settings.seed);
    cached(&RUNS, &key, || {
        let total = (ALPHAS.len() * CUTOFFS.len()) as u64;
        let mut all = Vec::new();
        for alpha in ALPHAS {
            for cutoff in CUTOFFS {
                let name = format!("{key} alpha={alpha} cutoff={cutoff}");
                all.push(settings.part(&name, || point(settings, alpha, cutoff))?);
                (settings.progress)(all.len() as u64, total);
            }
        }
        Ok(all)
    })
}

fn point(settings: &Settings<'_>, alpha: f64, cutoff: u32) -> Result<Point> {
    let (n, replacements, seeds) =
        if settings.quick { (2000, 10_000, 1) } else { (100_000, 500_000, 3) };
    let sizes = Pareto::new(alpha, 1 << cutoff);
    let seeds = settings.seed..settings.seed + seeds;
    let runs = seeds.map(|seed| run_of(sizes, cutoff, n, replacements, seed));
    let runs = runs.collect::<Result<Vec<Point>>>()?;
    let mean = |of: fn(&Point) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    Ok(Point {
        alpha,
        cutoff,
        internal: mean(|p| p.internal),
        external: mean(|p| p.external),
        total: mean(|p| p.total),
        mean: mean(|p| p.mean),
        largest: mean(|p| p.largest),
        free: mean(|p| p.free),
        tail: mean(|p| p.tail),
        coalesced: mean(|p| p.coalesced),
    })
}

fn run_of(sizes: Pareto, cutoff: u32, n: u64, replacements: u64, seed: u64) -> Result<Point> {
    let params = Params { bounded: true, ..Params::default() };
    let mut stream = Stream::filled(params, sizes, seed, n)?;
    for _ in 0..replacements {
        stream.replace()?;
    }
    stream.verify()?;
    let (usage, counts) = (stream.usage(), stream.store.counts());
    Ok(Point {
        alpha: sizes.alpha,
        cutoff,
        internal: usage.internal(),
        external: usage.external(),
        total: usage.total(),
        mean: usage.requested as f64 / usage.blocks as f64,
        largest: stream.largest() as f64 / usage.allocated as f64,
        free: usage.free as f64 / usage.allocated as f64,
        tail: (counts.tail - n) as f64 / replacements as f64,
        coalesced: counts.coalesced as f64,
    })
}

fn at(points: &[Point], alpha: f64, cutoff: u32) -> Result<Point> {
    let found = points.iter().find(|p| p.alpha == alpha && p.cutoff == cutoff);
    found.copied().with_context(|| format!("no run of α = {alpha}, C = 2^{cutoff}"))
}

/// The panel of `value` with `also` in it, the table and the notes.
fn outcome(
    settings: &Settings<'_>,
    points: &[Point],
    what: &str,
    value: fn(&Point) -> f64,
    (also, claims): (Option<Series>, Vec<Claim>),
) -> Outcome {
    let place = |cutoff: u32| f64::from(cutoff / 2 - 2);
    let line = |&alpha: &f64| {
        let of = points.iter().filter(|p| p.alpha == alpha);
        series(format!("α = {alpha:.1}"), of.map(|p| (place(p.cutoff), value(p))).collect())
    };
    let x = ranks("cutoff C, grains", CUTOFFS.map(|c| format!("2^{c}")));
    let lines = ALPHAS.iter().map(line).chain(also).collect();
    let panel = fragmentation(["shape", what, what], x, lines);
    let of = if settings.quick { "iyengar-14 quick" } else { "iyengar-14" };
    let notes = ["iyengar", of, "iyengar shapes"].map(|of| notes::of(of, &[])).concat();
    let table = columns(
        "runs",
        "Fragmentation at the end",
        points,
        &[
            ("α", |p| format!("{:.1}", p.alpha)),
            ("C, grains", |p| format!("2^{}", p.cutoff)),
            ("mean bytes", |p| format!("{:.0}", p.mean)),
            ("internal", |p| format!("{:.4}", p.internal)),
            ("external", |p| format!("{:.4}", p.external)),
            ("total", |p| format!("{:.4}", p.total)),
            ("largest object ÷ allocated", |p| format!("{:.3}", p.largest)),
            ("free ÷ allocated", |p| format!("{:.4}", p.free)),
            ("from the tail", |p| percent(p.tail)),
            ("times combined", |p| format!("{:.0}", p.coalesced)),
        ],
    );
    Outcome { panels: vec![panel], tables: vec![table], claims, notes }
}

/// Figure 14.
pub(super) fn external(settings: &Settings<'_>) -> Result<Outcome> {
    let points = points(settings)?;
    let counted = |p: &Point| {
        format!(
            "At α = {:.1}, C = 2^{}: external {:.3}, free blocks have {:.3} of the bytes \
             allocated, the largest object {:.3}; combined {:.0} times, {} of the replacements \
             from the tail. ",
            p.alpha,
            p.cutoff,
            p.external,
            p.free,
            p.largest,
            p.coalesced,
            percent(p.tail)
        )
    };
    let worst_of = |most: u32| {
        let of = points.iter().filter(|p| p.cutoff <= most);
        of.max_by(|a, b| a.external.total_cmp(&b.external)).context("no runs")
    };
    let mut claims = Vec::new();
    for alpha in ALPHAS {
        let (small, large) = (at(&points, alpha, 4)?, at(&points, alpha, 20)?);
        let ours = format!("{:.3} to {:.3}", small.external, large.external);
        let so = large.external > small.external;
        let row = "I5 external rises with C, α = {0}";
        let claim = claims::says(row, &[&format!("{alpha:.1}")], ours, so);
        claims.push(claim.because(counted(&small) + &counted(&large)));
    }
    let worst = worst_of(20)?;
    let ours = format!("{:.3} at α = {:.1}, C = 2^{}", worst.external, worst.alpha, worst.cutoff);
    let so = worst.alpha == 1.0 && worst.cutoff >= 18;
    let why = counted(&at(&points, 1.0, 20)?) + &counted(worst);
    claims.push(claims::says("I5 external worst", &[], ours, so).because(why));
    let worst = worst_of(10)?;
    let moderate = claims::measures("I5 moderate C", &[], worst.external);
    claims.push(moderate.because(counted(worst)));
    Ok(outcome(settings, &points, "external fragmentation", |p| p.external, (None, claims)))
}

/// Figure 15.
pub(super) fn internal(settings: &Settings<'_>) -> Result<Outcome> {
    let points = points(settings)?;
    let mut claims = Vec::new();
    let middle = at(&points, 1.0, 10)?;
    claims.push(claims::measures("I4", &[], middle.internal).ratio(middle.internal / 1.07));
    // A thousandth is what one seed differs from another.
    let rises = |pairs: Vec<(Point, Point)>| {
        pairs.iter().map(|(less, more)| less.internal - more.internal).fold(f64::MIN, f64::max)
    };
    let mut by_alpha = Vec::new();
    for cutoff in CUTOFFS {
        for pair in ALPHAS.windows(2) {
            by_alpha.push((at(&points, pair[0], cutoff)?, at(&points, pair[1], cutoff)?));
        }
    }
    let mut by_cutoff = Vec::new();
    for alpha in ALPHAS {
        for pair in CUTOFFS.windows(2) {
            by_cutoff.push((at(&points, alpha, pair[1])?, at(&points, alpha, pair[0])?));
        }
    }
    for (id, pairs) in [("I5 internal, α", by_alpha), ("I5 internal, C", by_cutoff)] {
        let most = rises(pairs);
        let ours = format!("largest step against it {most:+.4}");
        claims.push(claims::says(id, &[], ours, most <= 0.001));
    }
    // C = 2^10 is the fourth.
    let paper = paper_points("paper, α = 1", vec![(3.0, 1.07)]);
    let with = (Some(paper), claims);
    Ok(outcome(settings, &points, "internal fragmentation", |p| p.internal, with))
}

/// Figure 16.
pub(super) fn total(settings: &Settings<'_>) -> Result<Outcome> {
    let points = points(settings)?;
    let middle = at(&points, 1.0, 10)?;
    let of = points.iter().filter(|p| p.cutoff == 10).map(|p| p.total);
    let (least, most) = of.fold((f64::MAX, 0.0), |(l, m): (f64, f64), t| (l.min(t), m.max(t)));
    let spread = (most - least) / middle.total;
    let ours = format!("{least:.3} to {most:.3}");
    let so = spread <= 0.15;
    let claims = vec![claims::says("I5 total", &[], ours, so)];
    Ok(outcome(settings, &points, "total fragmentation", |p| p.total, (None, claims)))
}
