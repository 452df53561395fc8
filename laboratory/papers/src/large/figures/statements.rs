//! What §4.4.2 and §4.4.3 say in passing about reads and inserts: ESM beside EOS, leaf beside
//! leaf. The thresholds are ours: "the same" is within 10 % as for B18, "better" below.

use std::fmt::Display;

use anyhow::Result;

use super::mix_claims::{HUNDRED_K, TEN_K, all, beside, insert_ms, list, read_ms, steady};
use crate::kit::claims;
use crate::large::runs::{MEANS, MixRun, SIZES};
use crate::large::technique::Technique;
use crate::large::workload::{Cost, Mark};
use holdall_instrument::draw::number;
use holdall_instrument::experiment::{Claim, Settings};
use holdall_testkit::CostModel;

/// What one operation reads and writes, ESM and EOS.
fn counted(
    pages: u16,
    mean: u64,
    of: fn(&Mark) -> Cost,
    settings: &Settings<'_>,
) -> Result<String> {
    let one = |technique| -> Result<String> {
        let cost = of(&steady(technique, mean, settings)?);
        let per = |n: u64| number(n as f64 / cost.count.max(1) as f64);
        let (all, index) = (cost.stats, cost.index);
        Ok(format!(
            "{} reads of {} pages and {} writes of {}, of these accesses to index pages {} and {}",
            per(all.reads),
            per(all.pages_read),
            per(all.writes),
            per(all.pages_written),
            per(index.reads),
            per(index.writes)
        ))
    };
    let (esm, eos) = (one(Technique::Esm(pages))?, one(Technique::Eos(pages))?);
    Ok(format!("counted per operation: ESM {esm}; EOS {eos}"))
}

/// Of §4.4.2.
pub(super) fn reads(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    let cost = |technique: fn(u16) -> Technique, mean| {
        all(SIZES.map(|pages| read_ms(technique(pages), mean, settings)))
    };
    for (mean, _) in MEANS {
        for (at, pages) in SIZES.into_iter().enumerate() {
            let (esm, eos) = (cost(Technique::Esm, mean)?[at], cost(Technique::Eos, mean)?[at]);
            let claim = beside("§4.4.2 {0}, {1} pages", &[&mean, &pages], eos, ("ESM", esm));
            claims.push(claim.because(counted(pages, mean, |m| m.read, settings)?));
        }
    }
    for (name, technique) in [("ESM", Technique::Esm as fn(u16) -> _), ("EOS", Technique::Eos)] {
        let costs = cost(technique, 100)?;
        let others = costs[1..].iter().fold((f64::MAX, 0.0_f64), |m, c| (m.0.min(*c), m.1.max(*c)));
        let so = costs[0] > others.1 && costs[0] <= 1.1 * others.1 && others.1 <= 1.1 * others.0;
        claims.push(claims::says("§4.4.2 tiny, {0}", &[&name], list(&costs), so).because(counted(
            1,
            100,
            |m| m.read,
            settings,
        )?));
        for mean in [TEN_K, HUNDRED_K] {
            let costs = cost(technique, mean)?;
            let so = costs.windows(2).all(|w| w[1] <= w[0]);
            claims.push(claims::says("§4.4.2 larger, {0} {1}", &[&name, &mean], list(&costs), so));
        }
    }
    let first = all(SIZES.map(|t| {
        let run = MixRun::paper(Technique::Eos(t), TEN_K, settings);
        let marks = MixRun { ops: 100, every: 100, ..run }.marks()?;
        Ok(marks.first().map_or(0.0, |m| m.read.mean_ms(&CostModel::default())))
    }))?;
    let (low, high) = first.iter().fold((f64::MAX, 0.0_f64), |m, c| (m.0.min(*c), m.1.max(*c)));
    claims.push(claims::says("§4.4.2 first", &[], list(&first), high <= 1.1 * low));
    Ok(claims)
}

/// One technique below the other.
const BELOW: &str = "§4.4.3 {0}, {1} pages";

/// Of §4.4.3.
pub(super) fn inserts(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    let cost = |technique: fn(u16) -> Technique, mean| {
        all(SIZES.map(|pages| insert_ms(technique(pages), mean, settings)))
    };
    for (mean, _) in MEANS {
        let (esm, eos) = (cost(Technique::Esm, mean)?, cost(Technique::Eos, mean)?);
        for at in [0, 1] {
            let words: [&dyn Display; 4] = [&mean, &SIZES[at], &"EOS", &"ESM"];
            let claim = beside(BELOW, &words, eos[at], ("ESM", esm[at]));
            claims.push(claim.because(counted(SIZES[at], mean, |m| m.insert, settings)?));
        }
        if mean != TEN_K {
            let small = mean == 100;
            let (better, worse) = if small { ("ESM", "EOS") } else { ("EOS", "ESM") };
            for at in [2, 3] {
                let (found, base) = if small { (esm[at], eos[at]) } else { (eos[at], esm[at]) };
                let words: [&dyn Display; 4] = [&mean, &SIZES[at], &better, &worse];
                let claim = beside(BELOW, &words, found, (worse, base));
                claims.push(claim.because(counted(SIZES[at], mean, |m| m.insert, settings)?));
            }
        }
    }
    let small = cost(Technique::Esm, 100)?;
    claims.push(beside("§4.4.3 converge", &[], small[1], ("1 page", small[0])));
    let base = ("the dearer of both", small[0].max(small[1]));
    let claim = beside("§4.4.3 slightly", &[], small[2], base);
    claims.push(claim.because(counted(16, 100, |m| m.insert, settings)?));
    let large = cost(Technique::Esm, HUNDRED_K)?;
    let so = large[2] < large[1] && large[1] < large[3] && large[3] < large[0];
    claims.push(claims::says("§4.4.3 order", &[], list(&large), so));
    Ok(claims)
}
