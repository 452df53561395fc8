//! The claims on figures 7 to 12. If two numbers of ours are compared, the paper's column is
//! empty.

use std::fmt::Display;

use anyhow::Result;
use holdall_testkit::CostModel;

use crate::kit::claims;
use crate::large::runs::{MEANS, MixRun, OBJECT, SIZES, eos, esm};
use crate::large::store::Config;
use crate::large::technique::Technique;
use crate::large::workload::Mark;
use holdall_instrument::draw::{number, percent};
use holdall_instrument::experiment::{Claim, Settings};

pub(super) const TEN_K: u64 = 10 * 1024;
pub(super) const HUNDRED_K: u64 = 100 * 1024;

pub(super) fn steady(technique: Technique, mean: u64, settings: &Settings<'_>) -> Result<Mark> {
    MixRun::paper(technique, mean, settings).steady()
}

pub(super) fn read_ms(technique: Technique, mean: u64, settings: &Settings<'_>) -> Result<f64> {
    Ok(steady(technique, mean, settings)?.read.mean_ms(&CostModel::default()))
}

pub(super) fn insert_ms(technique: Technique, mean: u64, settings: &Settings<'_>) -> Result<f64> {
    Ok(steady(technique, mean, settings)?.insert.mean_ms(&CostModel::default()))
}

/// Pages of a segment, on average.
pub(super) fn segment_pages(mark: &Mark) -> f64 {
    OBJECT as f64 / 4096.0 / mark.segments.max(1) as f64
}

/// A claim on two numbers of ours: `found` over `base`, the base named in words.
pub(super) fn beside(name: &str, words: &[&dyn Display], found: f64, base: (&str, f64)) -> Claim {
    let of = found / base.1;
    let ours = format!("{} × ({} ms, {} {} ms)", number(of), number(found), base.0, number(base.1));
    Claim { ours, ..claims::measures(name, words, of) }
}

/// Numbers in words.
pub(super) fn numbers(all: &[f64]) -> String {
    all.iter().map(|n| number(*n)).collect::<Vec<_>>().join(", ")
}

pub(super) fn list(costs: &[f64]) -> String {
    format!("{} ms", numbers(costs))
}

/// The least and the largest.
pub(super) fn span(all: &[f64]) -> (f64, f64) {
    all.iter().fold((f64::MAX, 0.0), |(low, high), n| (low.min(*n), high.max(*n)))
}

pub(super) fn all<T>(items: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    items.into_iter().collect()
}

/// B9 to B11.
pub(super) fn esm_utilization(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    let of = |pages, mean| -> Result<f64> {
        Ok(steady(Technique::Esm(pages), mean, settings)?.utilization * 100.0)
    };
    let said = [
        ("B9", 100, "100-byte", &SIZES[..]),
        ("B10", TEN_K, "10K", &SIZES),
        ("B11", HUNDRED_K, "100K", &[1, 64]),
    ];
    for (id, mean, size, leaves) in said {
        for &pages in leaves {
            let words: [&dyn Display; 3] = [&id, &pages, &size];
            if (mean, pages) != (TEN_K, 4) {
                claims.push(claims::measures("{0} {1}-page", &words, of(pages, mean)?));
                continue;
            }
            let ways = [Technique::Esm, Technique::EsmBasic, Technique::EsmBoth];
            let marks = all(ways.map(|way| steady(way(pages), mean, settings)))?;
            let [one, none, both] = [0, 1, 2].map(|at| number(segment_pages(&marks[at]) * 4096.0));
            let words: [&dyn Display; 6] = [&id, &pages, &size, &one, &none, &both];
            for (at, name) in [(0, "{0} {1}-page"), (2, "{0} {1}-page, both")] {
                claims.push(claims::measures(name, &words, marks[at].utilization * 100.0));
            }
        }
    }
    let falls = all(SIZES.map(|pages| of(pages, HUNDRED_K)))?;
    let so = falls.windows(2).all(|w| w[0] > w[1]);
    claims.push(claims::says("B11 order", &[], numbers(&falls), so));
    Ok(claims)
}

/// B12.
pub(super) fn eos_utilization(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for (mean, _) in MEANS {
        let of = |t| -> Result<f64> { Ok(steady(t, mean, settings)?.utilization * 100.0) };
        let leaf = of(Technique::Esm(1))?;
        for threshold in [1, 16, 64] {
            let mark = steady(Technique::Eos(threshold), mean, settings)?;
            let pages = segment_pages(&mark);
            let half = percent(1.0 - 0.5 / pages);
            let (leaf_is, pages) = (number(leaf), number(pages));
            let words: [&dyn Display; 5] = [&threshold, &mean, &pages, &half, &leaf_is];
            let (name, less) =
                if threshold == 1 { ("B12 T=1 {1}", leaf) } else { ("B12 T={0} {1}", 0.0) };
            claims.push(claims::measures(name, &words, mark.utilization * 100.0 - less));
        }
        let starburst = of(Technique::Starburst)?;
        let found = of(Technique::Eos(64))?;
        let ours = format!("{} and {} %", number(found), number(starburst));
        let so = (found - starburst).abs() <= 2.0;
        claims.push(claims::says("B21 utilization {0}", &[&mean], ours, so));
    }
    Ok(claims)
}

/// B16.
pub(super) fn esm_reads(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let one = read_ms(Technique::Esm(1), TEN_K, settings)?;
    let four = read_ms(Technique::Esm(4), TEN_K, settings)?;
    Ok(vec![claims::measures("B16", &[&number(one), &number(four)], one / four)])
}

/// B17, B18 and the reads of B21.
pub(super) fn eos_reads(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let eos = read_ms(Technique::Eos(1), TEN_K, settings)?;
    let esm = read_ms(Technique::Esm(1), TEN_K, settings)?;
    let found = (1.0 - eos / esm) * 100.0;
    let mark = steady(Technique::Eos(1), TEN_K, settings)?;
    let words: [&dyn Display; 3] = [&number(eos), &number(esm), &number(segment_pages(&mark))];
    let mut claims = vec![claims::measures("B17", &words, found)];
    for (mean, _) in MEANS {
        let starburst = read_ms(Technique::Starburst, mean, settings)?;
        let base = ("Starburst", starburst);
        let run = MixRun::paper(Technique::Eos(16), mean, settings);
        let (mark, model) = (run.steady()?, CostModel::default());
        let pages = segment_pages(&mark);
        let printed = MixRun { config: Config { spill: false, ..run.config }, ..run }.steady()?;
        let words: [&dyn Display; 4] = [
            &mean,
            &number(mean as f64 / 4096.0 / pages),
            &number(pages),
            &number(printed.read.mean_ms(&model) / starburst),
        ];
        claims.push(beside("B18 {0}", &words, mark.read.mean_ms(&model), base));
        let found = read_ms(Technique::Eos(64), mean, settings)?;
        claims.push(beside("B21 reads {0}", &[&mean], found, base));
    }
    Ok(claims)
}

/// B19.
pub(super) fn esm_inserts(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for (mean, best) in [(HUNDRED_K, 16), (TEN_K, 4)] {
        let costs = all(SIZES.map(|p| insert_ms(Technique::Esm(p), mean, settings)))?;
        let least = (0..4).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or(0);
        let ours = format!("{} pages ({})", SIZES[least], list(&costs));
        let claim = claims::says("B19 best {0}", &[&mean, &best], ours, SIZES[least] == best);
        claims.push(claim.judged_when_quick());
    }
    for mean in [100, TEN_K] {
        let costs = all(SIZES.map(|p| insert_ms(Technique::Esm(p), mean, settings)))?;
        let so = costs[..3].iter().all(|c| *c < costs[3]);
        let claim = claims::says("B19 worst {0}", &[&mean], list(&costs), so);
        claims.push(claim.judged_when_quick());
    }
    Ok(claims)
}

/// B20 and the updates of B21.
pub(super) fn eos_inserts(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for (mean, _) in MEANS {
        let marks = all(SIZES.map(|t| steady(Technique::Eos(t), mean, settings)))?;
        let costs: Vec<f64> =
            marks.iter().map(|m| m.insert.mean_ms(&CostModel::default())).collect();
        let [one, four] = [0, 1].map(|at: usize| marks[at].insert.counted());
        let words: [&dyn Display; 3] = [&mean, &one, &four];
        claims.push(beside("B20 equal {0}", &words, costs[1], ("T = 1", costs[0])));
        let so = costs[1] < costs[2] && costs[2] < costs[3];
        claims.push(claims::says("B20 rising {0}", &[&mean], list(&costs), so));
    }
    for (mean, _) in MEANS {
        let starburst = steady(Technique::Starburst, mean, settings)?;
        let eos = steady(Technique::Eos(64), mean, settings)?;
        let model = CostModel::default();
        let cost = |m: &Mark| m.updates().mean_ms(&model);
        let found = cost(&starburst) / cost(&eos);
        claims.push(claims::measures("B21 {0}", &[&mean], found));
    }
    Ok(claims)
}

/// That deletes follow the trends of inserts.
pub(super) fn deletes(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for (name, family) in [("ESM", esm()), ("EOS", eos())] {
        for (mean, _) in &MEANS[..2] {
            let costs = all(family
                .map(|t| Ok(steady(t, *mean, settings)?.delete.mean_ms(&CostModel::default()))))?;
            let so = costs[..3].iter().all(|c| *c < costs[3]);
            claims.push(claims::says("B19 deletes {0} {1}", &[&name, &mean], list(&costs), so));
        }
    }
    let dense = all(eos().map(|t| Ok(steady(t, 100, settings)?.utilization * 100.0)))?;
    let so = dense.windows(2).all(|w| w[0] < w[1]);
    claims.push(claims::says("B12 order", &[], numbers(&dense), so));
    Ok(claims)
}
