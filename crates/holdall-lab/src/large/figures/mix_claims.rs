//! The claims on figures 7 to 12.

use anyhow::Result;
use holdall_testkit::CostModel;

use crate::experiment::{Claim, Settings};
use crate::kit::claim::{between, holds, ratio};
use crate::kit::draw::{number, percent};
use crate::large::runs::{MEANS, MixRun, SIZES, eos, esm};
use crate::large::technique::Technique;
use crate::large::workload::Mark;

const TEN_K: u64 = 10 * 1024;
const HUNDRED_K: u64 = 100 * 1024;

fn steady(technique: Technique, mean: u64, settings: &Settings<'_>) -> Result<Mark> {
    MixRun::paper(technique, mean, settings.quick, settings.seed).steady()
}

fn read_ms(technique: Technique, mean: u64, settings: &Settings<'_>) -> Result<f64> {
    Ok(steady(technique, mean, settings)?.read.mean_ms(&CostModel::default()))
}

fn insert_ms(technique: Technique, mean: u64, settings: &Settings<'_>) -> Result<f64> {
    Ok(steady(technique, mean, settings)?.insert.mean_ms(&CostModel::default()))
}

fn all<T>(items: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    items.into_iter().collect()
}

/// B9 to B11.
pub(super) fn esm_utilization(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    let of = |pages, mean| -> Result<f64> {
        Ok(steady(Technique::Esm(pages), mean, settings)?.utilization * 100.0)
    };
    for pages in SIZES {
        let text = format!("utilization of ESM, 100-byte operations, {pages}-page leaves");
        let id = format!("B9 {pages}-page");
        claims.push(between(&id, &text, "low 80 %", of(pages, 100)?, "%", 78.0, 86.0));
    }
    for pages in SIZES {
        let paper = if pages == 1 { 85.0 } else { 80.0 };
        let text = format!("utilization of ESM, 10K operations, {pages}-page leaves");
        let id = format!("B10 {pages}-page");
        let found = of(pages, TEN_K)?;
        claims.push(
            between(&id, &text, &format!("about {paper} %"), found, "%", paper - 3.0, paper + 3.0)
                .because(
                    "an insert of 10K always overflows a leaf of 16K that is more than three \
                     eighths full, and its bytes seldom fit beside a neighbour's: two leaves at \
                     70 % come out. How full leaves are after deletes depends on details of \
                     Carey 1986 that this paper does not repeat; biliris-assumptions shows the \
                     other rules for choosing a neighbour",
                ),
        );
    }
    for (pages, paper) in [(1, 96.0), (64, 75.0)] {
        let text = format!("utilization of ESM, 100K operations, {pages}-page leaves");
        let id = format!("B11 {pages}-page");
        let found = of(pages, HUNDRED_K)?;
        claims.push(between(
            &id,
            &text,
            &format!("≈{paper} %"),
            found,
            "%",
            paper - 3.0,
            paper + 3.0,
        ));
    }
    let falls = all(SIZES.map(|pages| of(pages, HUNDRED_K)))?;
    let so = falls.windows(2).all(|w| w[0] > w[1]);
    let ours = falls.iter().map(|u| number(*u)).collect::<Vec<_>>().join(", ");
    let text = "100K operations: the larger the leaf, the worse the utilization";
    claims.push(holds("B11 order", text, "falls from 96 % to 75 %", ours, "shape", so));
    Ok(claims)
}

/// B12.
pub(super) fn eos_utilization(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for (mean, _) in MEANS {
        let of = |t| -> Result<f64> { Ok(steady(t, mean, settings)?.utilization * 100.0) };
        let (one, leaf) = (of(Technique::Eos(1))?, of(Technique::Esm(1))?);
        let text =
            format!("{mean}-byte operations, T = 1: as ESM with 1-page leaves ({})", number(leaf));
        claims.push(
            between(
                &format!("B12 T=1 {mean}"),
                &text,
                "about the same",
                one,
                "%",
                leaf - 2.0,
                leaf + 2.0,
            )
            .because(
                "with T = 1 no pair of segments is against the threshold, and only the reshuffling \
                     of bytes joins any, whose rules the paper leaves to its [Bili92]. Ours are \
                     those of ESM's improved insert: bytes alone on a page, of one neighbour, go \
                     along where that saves a page. With 10K operations that packs a little \
                     denser than ESM; taken step by step instead of all together it came to 71 % \
                     and 82 % at 100 B and 10K, with any number of neighbours to 85 % and 88 %, \
                     with none, as in the engine, to a quarter",
            ),
        );
        for (threshold, least) in [(16, 98.0), (64, 99.5)] {
            let text = format!("{mean}-byte operations, T = {threshold}");
            let paper = if threshold == 16 { "above 98 %" } else { "almost 100 %" };
            let id = format!("B12 T={threshold} {mean}");
            claims.push(between(
                &id,
                &text,
                paper,
                of(Technique::Eos(threshold))?,
                "%",
                least - 2.0,
                100.0,
            ));
        }
    }
    Ok(claims)
}

/// B16.
pub(super) fn esm_reads(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let one = read_ms(Technique::Esm(1), TEN_K, settings)?;
    let four = read_ms(Technique::Esm(4), TEN_K, settings)?;
    let text = format!(
        "10K reads of ESM: 1-page ({} ms) against 4-page leaves ({} ms)",
        number(one),
        number(four)
    );
    Ok(vec![ratio("B16", &text, 2.0, one / four, "times", 0.15)])
}

/// B17, B18 and the reads of B21.
pub(super) fn eos_reads(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let eos = read_ms(Technique::Eos(1), TEN_K, settings)?;
    let esm = read_ms(Technique::Esm(1), TEN_K, settings)?;
    let text =
        format!("10K reads, 1 page: EOS ({} ms) below ESM ({} ms)", number(eos), number(esm));
    let found = (1.0 - eos / esm) * 100.0;
    let mut claims = vec![between("B17", &text, "about 15 %", found, "%", 8.0, 22.0).because(
        "the order is the paper's, the distance larger. 15 % less than ESM is what segments of \
         little more than a page give, and B12 wants them 85 % full, so that the paper's pages \
         are fuller and its segments shorter than ours, where bytes that go along become one \
         segment of two or three pages with the new ones. No rule that we tried gives both: with \
         none of it, as in the engine, EOS reads worse than ESM (biliris-assumptions), with bytes \
         taken along step by step 23 % better at 71 to 82 % utilization",
    )];
    for (mean, _) in MEANS {
        let starburst = read_ms(Technique::Starburst, mean, settings)?;
        let found = read_ms(Technique::Eos(16), mean, settings)?;
        let text = format!("reads of EOS with T = 16 ({mean} bytes) cost what Starburst's do");
        claims.push(ratio(&format!("B18 {mean}"), &text, starburst, found, "ms", 0.10).because(
            "a read of 25 pages goes over 0.7 borders of segments, of about 33 pages each here, \
             and each is one access of 33 ms more than Starburst needs: 11 %, a point over the \
             tolerance. A threshold of 64 pages (B21) closes the gap, as the paper itself \
             advises: T somewhat larger than the reads",
        ));
        let found = read_ms(Technique::Eos(64), mean, settings)?;
        let text = format!("reads of EOS with T = 64 ({mean} bytes) cost what Starburst's do");
        claims.push(ratio(&format!("B21 reads {mean}"), &text, starburst, found, "ms", 0.10));
    }
    Ok(claims)
}

/// B19.
pub(super) fn esm_inserts(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for (mean, best) in [(HUNDRED_K, 16), (TEN_K, 4)] {
        let costs = all(SIZES.map(|p| insert_ms(Technique::Esm(p), mean, settings)))?;
        let least = (0..4).min_by(|a, b| costs[*a].total_cmp(&costs[*b])).unwrap_or(0);
        let text = format!("best leaf of ESM for inserts of {mean} bytes");
        let ours = format!("{} pages ({})", SIZES[least], list(&costs));
        let id = format!("B19 best {mean}");
        claims.push(holds(&id, &text, &format!("{best} pages"), ours, "=", SIZES[least] == best));
    }
    for mean in [100, TEN_K] {
        let costs = all(SIZES.map(|p| insert_ms(Technique::Esm(p), mean, settings)))?;
        let so = costs[..3].iter().all(|c| *c < costs[3]);
        let text = format!("64-page leaves are the worst for inserts of {mean} bytes");
        claims.push(holds(&format!("B19 worst {mean}"), &text, "64 pages", list(&costs), "=", so));
    }
    Ok(claims)
}

fn list(costs: &[f64]) -> String {
    let costs: Vec<String> = costs.iter().map(|c| number(*c)).collect();
    format!("{} ms", costs.join(", "))
}

/// B20 and the updates of B21.
pub(super) fn eos_inserts(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    for (mean, _) in MEANS {
        let costs = all(SIZES.map(|t| insert_ms(Technique::Eos(t), mean, settings)))?;
        let text =
            format!("inserts of {mean} bytes: T = 4 costs what T = 1 does ({})", list(&costs));
        let id = format!("B20 equal {mean}");
        claims.push(ratio(&id, &text, costs[0], costs[1], "ms", 0.15).because(
            "to bring what is written to four pages, three are copied, 24 ms of transfer, in the \
             accesses that are made anyway",
        ));
        let so = costs[1] < costs[2] && costs[2] < costs[3];
        let text = format!("inserts of {mean} bytes: the cost rises with T above 4");
        let id = format!("B20 rising {mean}");
        claims.push(holds(&id, &text, "rises", list(&costs), "shape", so));
    }
    for (mean, _) in MEANS {
        let starburst = steady(Technique::Starburst, mean, settings)?;
        let eos = steady(Technique::Eos(64), mean, settings)?;
        let model = CostModel::default();
        let cost = |m: &Mark| m.insert.and(m.delete).mean_ms(&model);
        let text =
            format!("updates of {mean} bytes: Starburst's cost over that of EOS with T = 64");
        let found = cost(&starburst) / cost(&eos);
        claims.push(between(&format!("B21 {mean}"), &text, "about 30 ×", found, "×", 20.0, 45.0));
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
            let text =
                format!("{name}, {mean} bytes: deletes follow inserts, 64 pages are the worst");
            claims.push(holds(
                &format!("B19 deletes {name} {mean}"),
                &text,
                "same trend",
                list(&costs),
                "shape",
                so,
            ));
        }
    }
    let marks = all(eos().map(|t| Ok(steady(t, 100, settings)?.utilization)))?;
    let so = marks.windows(2).all(|w| w[0] < w[1]);
    let ours = marks.iter().map(|u| percent(*u)).collect::<Vec<_>>().join(", ");
    claims.push(holds(
        "B12 order",
        "EOS: the larger T, the better the utilization",
        "rises",
        ours,
        "shape",
        so,
    ));
    Ok(claims)
}
