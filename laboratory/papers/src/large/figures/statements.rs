//! What §4.4.2 and §4.4.3 say in passing about reads and inserts: ESM beside EOS, leaf beside
//! leaf. The thresholds are ours: "the same" is within 10 % as for B18, "better" below.

use std::fmt::Display;

use anyhow::Result;

use super::mix_claims::{
    HUNDRED_K, TEN_K, all, beside, insert_ms, list, numbers, read_ms, span, steady,
};
use crate::kit::claims;
use crate::large::runs::{MEANS, MixRun, SIZES};
use crate::large::technique::Technique;
use crate::large::workload::{Cost, Mark};
use holdall_instrument::experiment::{Claim, Settings};
use holdall_testkit::CostModel;

/// What one operation reads and writes, ESM and EOS.
fn counted(
    pages: u16,
    mean: u64,
    of: fn(&Mark) -> Cost,
    settings: &Settings<'_>,
) -> Result<[String; 2]> {
    let one = |technique| -> Result<_> { Ok(of(&steady(technique, mean, settings)?).counted()) };
    Ok([one(Technique::Esm(pages))?, one(Technique::Eos(pages))?])
}

/// Of §4.4.2.
pub(super) fn reads(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    let cost = |technique: fn(u16) -> Technique, mean| {
        all(SIZES.map(|pages| read_ms(technique(pages), mean, settings)))
    };
    let mut gained = [Vec::new(), Vec::new(), Vec::new()];
    for (gained, (mean, _)) in gained.iter_mut().zip(MEANS) {
        let (esm, eos) = (cost(Technique::Esm, mean)?, cost(Technique::Eos, mean)?);
        for (at, pages) in SIZES.into_iter().enumerate() {
            let same = mean == TEN_K && pages > 1;
            let name = if same { "B24 same {0}, {1} pages" } else { "B24 {0}, {1} pages" };
            let [a, b] = counted(pages, mean, |m| m.read, settings)?;
            claims.push(beside(name, &[&mean, &pages, &a, &b], eos[at], ("ESM", esm[at])));
            gained.push(esm[at] / eos[at]);
        }
    }
    let so = (0..3).all(|at| gained[2][at] > gained[1][at]);
    let ours = format!("{} times; {} at 10K", numbers(&gained[2][..3]), numbers(&gained[1][..3]));
    claims.push(claims::says("B24 apart", &[], ours, so));
    for (name, technique) in [("ESM", Technique::Esm as fn(u16) -> _), ("EOS", Technique::Eos)] {
        let costs = cost(technique, 100)?;
        let others = span(&costs[1..]);
        let so = costs[0] > others.1 && costs[0] <= 1.1 * others.1 && others.1 <= 1.1 * others.0;
        let [a, b] = counted(1, 100, |m| m.read, settings)?;
        claims.push(claims::says("B24 tiny, {0}", &[&name, &a, &b], list(&costs), so));
        for mean in [TEN_K, HUNDRED_K] {
            let costs = cost(technique, mean)?;
            let so = costs.windows(2).all(|w| w[1] <= w[0]);
            claims.push(claims::says("B24 larger, {0} {1}", &[&name, &mean], list(&costs), so));
        }
    }
    let first = all(SIZES.map(|t| {
        let run = MixRun::paper(Technique::Eos(t), TEN_K, settings);
        let marks = MixRun { ops: 100, every: 100, ..run }.marks()?;
        Ok(marks.first().map_or(0.0, |m| m.read.mean_ms(&CostModel::default())))
    }))?;
    let (low, high) = span(&first);
    claims.push(claims::says("B24 first", &[], list(&first), high <= 1.1 * low));
    Ok(claims)
}

/// Of §4.4.3.
pub(super) fn inserts(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    let cost = |technique: fn(u16) -> Technique, mean| {
        all(SIZES.map(|pages| insert_ms(technique(pages), mean, settings)))
    };
    for (mean, _) in MEANS {
        let (esm, eos) = (cost(Technique::Esm, mean)?, cost(Technique::Eos, mean)?);
        for (at, pages) in SIZES.into_iter().enumerate() {
            // From 16 pages on ESM is better for small inserts, EOS for large ones.
            let (better, worse, of, base) = match (at, mean) {
                (2.., TEN_K) => continue,
                (2.., 100) => ("ESM", "EOS", esm[at], eos[at]),
                _ => ("EOS", "ESM", eos[at], esm[at]),
            };
            let [a, b] = counted(pages, mean, |m| m.insert, settings)?;
            let words: [&dyn Display; 6] = [&mean, &pages, &better, &worse, &a, &b];
            claims.push(beside("B25 {0}, {1} pages", &words, of, (worse, base)));
        }
    }
    let small = cost(Technique::Esm, 100)?;
    claims.push(beside("B25 converge", &[], small[1], ("1 page", small[0])));
    let base = ("the dearer of both", small[0].max(small[1]));
    let [esm, _] = counted(16, 100, |m| m.insert, settings)?;
    claims.push(beside("B25 slightly", &[&esm], small[2], base));
    let large = cost(Technique::Esm, HUNDRED_K)?;
    let so = large[2] < large[1] && large[1] < large[3] && large[3] < large[0];
    claims.push(claims::says("B25 order", &[], list(&large), so));
    Ok(claims)
}
