//! Figures 14 to 16: fragmentation by the distribution of sizes (Iyengar §3.3.1). Owns the
//! runs, which the three figures share.

use super::{columns, parameters};
use crate::allocation::block::Params;
use crate::allocation::workload::{Pareto, Stream};
use crate::kit::claims;
use anyhow::{Context, Result};
use holdall_instrument::cache::{Cache, Results, cached};
use holdall_instrument::draw::{axis, lines, paper_points, percent, series};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::Panel;
use holdall_testkit::SparseDisk;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// M by the most ever allocated instead of what is allocated at the end.
    external_of_most: f64,
    /// Mean bytes of a request.
    mean: f64,
    /// The largest request ÷ all that is allocated.
    largest: f64,
    /// Free bytes ÷ allocated ones: in small blocks, in large ones.
    free_small: f64,
    free_large: f64,
    /// Replacements that went to the tail, as a share.
    tail: f64,
}

static RUNS: Cache<Vec<Point>> = Cache::new(Results::default);

fn points(settings: &Settings<'_>) -> Result<Vec<Point>> {
    let key = format!("iyengar shapes quick={} seed={}", settings.quick, settings.seed);
    cached(&RUNS, &key, || {
        let total = (ALPHAS.len() * CUTOFFS.len()) as u64;
        let mut all = Vec::new();
        for alpha in ALPHAS {
            for cutoff in CUTOFFS {
                all.push(point(settings, alpha, cutoff)?);
                (settings.progress)(all.len() as u64, total);
            }
        }
        Ok(all)
    })
}

fn point(settings: &Settings<'_>, alpha: f64, cutoff: u32) -> Result<Point> {
    let (n, replacements, seeds) =
        if settings.quick { (2000, 10_000, 1) } else { (100_000, 500_000, 3) };
    let name = format!("iyengar shape n={n} alpha={alpha} cutoff={cutoff} seed={}", settings.seed);
    if let Some(kept) = settings.parts.load(&name).and_then(|t| serde_json::from_str(&t).ok()) {
        return Ok(kept);
    }
    let sizes = Pareto::new(alpha, 1 << cutoff);
    let seeds = settings.seed..settings.seed + seeds;
    let runs = seeds.map(|seed| run_of(sizes, cutoff, n, replacements, seed));
    let runs = runs.collect::<Result<Vec<Point>>>()?;
    let mean = |of: fn(&Point) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let point = Point {
        alpha,
        cutoff,
        internal: mean(|p| p.internal),
        external: mean(|p| p.external),
        total: mean(|p| p.total),
        external_of_most: mean(|p| p.external_of_most),
        mean: mean(|p| p.mean),
        largest: mean(|p| p.largest),
        free_small: mean(|p| p.free_small),
        free_large: mean(|p| p.free_large),
        tail: mean(|p| p.tail),
    };
    settings.parts.save(&name, &serde_json::to_string(&point)?)?;
    Ok(point)
}

fn run_of(sizes: Pareto, cutoff: u32, n: u64, replacements: u64, seed: u64) -> Result<Point> {
    let disk = Arc::new(SparseDisk::with_granules(512));
    let params = Params::default();
    let mut stream = Stream::new(disk, params, sizes, seed)?;
    let mut most = 0;
    for _ in 0..n {
        stream.create()?;
    }
    for _ in 0..replacements {
        stream.replace()?;
        most = most.max(stream.usage().allocated);
    }
    stream.verify()?;
    let (usage, lists) = (stream.usage(), stream.store.lists());
    let small = lists.iter().filter(|b| lists.is_small(b.grains));
    let small: u64 = small.map(|b| u64::from(b.grains) * u64::from(params.grain)).sum();
    let of_allocated = |bytes: u64| bytes as f64 / usage.allocated as f64;
    Ok(Point {
        alpha: sizes.alpha,
        cutoff,
        internal: usage.internal(),
        external: usage.external(),
        total: usage.total(),
        external_of_most: usage.most as f64 / most as f64,
        mean: usage.requested as f64 / usage.blocks as f64,
        largest: stream.largest() as f64 / usage.allocated as f64,
        free_small: of_allocated(small),
        free_large: of_allocated(usage.free - small),
        tail: (stream.store.counts().tail - n) as f64 / replacements as f64,
    })
}

fn panel(id: &str, what: &str, points: &[Point], value: fn(&Point) -> f64) -> Panel {
    let line = |&alpha: &f64| {
        let of = points.iter().filter(|p| p.alpha == alpha);
        let curve = of.map(|p| (f64::from(p.cutoff), value(p))).collect();
        series(format!("α = {alpha:.1}"), curve)
    };
    let x = axis("cutoff C, grains, as a power of two");
    lines(id, what, x, axis(what), ALPHAS.iter().map(line).collect())
}

fn at(points: &[Point], alpha: f64, cutoff: u32) -> Result<Point> {
    let found = points.iter().find(|p| p.alpha == alpha && p.cutoff == cutoff);
    found.copied().with_context(|| format!("no run of α = {alpha}, C = 2^{cutoff}"))
}

fn outcome(settings: &Settings<'_>, points: &[Point], panel: Panel, claims: Vec<Claim>) -> Outcome {
    let notes = vec![
        parameters(),
        format!(
            "{}; the mean of the values at the end. External \
             fragmentation is M ÷ a: M is the highest address ever used and a what is allocated \
             at the end, as the paper's product with the internal one asks for. A column has it \
             by the most that was ever allocated instead.",
            if settings.quick {
                "2,000 objects and 10,000 replacements, one seed"
            } else {
                "100,000 objects and 500,000 replacements, three seeds"
            }
        ),
    ];
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
            ("external, of the most allocated", |p| format!("{:.4}", p.external_of_most)),
            ("largest object ÷ allocated", |p| format!("{:.3}", p.largest)),
            ("free small blocks ÷ allocated", |p| format!("{:.4}", p.free_small)),
            ("free large blocks ÷ allocated", |p| format!("{:.4}", p.free_large)),
            ("from the tail", |p| percent(p.tail)),
        ],
    );
    Outcome { panels: vec![panel], tables: vec![table], claims, notes }
}

/// Figure 14.
pub(super) fn external(settings: &Settings<'_>) -> Result<Outcome> {
    let points = points(settings)?;
    let mut claims = Vec::new();
    for alpha in ALPHAS {
        let (small, large) = (at(&points, alpha, 4)?, at(&points, alpha, 20)?);
        let ours = format!("{:.3} to {:.3}", small.external, large.external);
        let so = large.external > small.external;
        claims.push(
            claims::says(
                "I5 external rises with C, α = {0}",
                &[&format!("{:.1}", alpha)],
                ours,
                so,
            )
            .because(format!(
                "Quick lists hold objects of 1 to 75 grains, one list a size: at C = 2^4 their \
             lengths walk at random. Mean size {:.0} and {:.0} bytes.",
                small.mean, large.mean
            )),
        );
    }
    let worst = points.iter().max_by(|a, b| a.external.total_cmp(&b.external));
    let worst = worst.context("no runs")?;
    let ours = format!("{:.3} at α = {:.1}, C = 2^{}", worst.external, worst.alpha, worst.cutoff);
    let so = worst.alpha == 1.0 && worst.cutoff >= 18;
    let second = at(&points, 1.0, 20)?;
    let why = format!(
        "α = 1, C = 2^20 has {:.3}; its largest object is {:.2} of all that is allocated, at α = \
         {:.1} it is {:.2}. One object of that size more or less decides.",
        second.external, second.largest, worst.alpha, worst.largest
    );
    claims.push(claims::says("I5 external worst", &[], ours, so).because(why));
    let moderate = points.iter().filter(|p| p.cutoff <= 10);
    let worst = moderate.max_by(|a, b| a.external.total_cmp(&b.external)).context("no runs")?;
    let why = format!(
        "At α = {:.1}, C = 2^{} {} of the replacements found no free block on the list of their \
         size and went to the tail. At the end free small blocks have {:.3} of the bytes \
         allocated, free large ones {:.3}; by the most that was ever allocated it is {:.3}.",
        worst.alpha,
        worst.cutoff,
        percent(worst.tail),
        worst.free_small,
        worst.free_large,
        worst.external_of_most
    );
    claims.push(claims::measures("I5 moderate C", &[], worst.external).because(why));
    let panel = panel("external", "external fragmentation", &points, |p| p.external);
    Ok(outcome(settings, &points, panel, claims))
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
    let most = rises(by_alpha);
    let ours = format!("largest step against it {most:+.4}");
    claims.push(claims::says("I5 internal, α", &[], ours, most <= 0.001));
    let mut by_cutoff = Vec::new();
    for alpha in ALPHAS {
        for pair in CUTOFFS.windows(2) {
            by_cutoff.push((at(&points, alpha, pair[1])?, at(&points, alpha, pair[0])?));
        }
    }
    let most = rises(by_cutoff);
    let ours = format!("largest step against it {most:+.4}");
    claims.push(claims::says("I5 internal, C", &[], ours, most <= 0.001));
    let mut panel = panel("internal", "internal fragmentation", &points, |p| p.internal);
    panel.series.push(paper_points("paper, α = 1", vec![(10.0, 1.07)]));
    Ok(outcome(settings, &points, panel, claims))
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
    let panel = panel("total", "total fragmentation", &points, |p| p.total);
    Ok(outcome(settings, &points, panel, claims))
}
