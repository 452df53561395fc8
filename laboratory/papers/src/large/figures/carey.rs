//! What Biliris compares with Carey 1986 (§3.4, §4.5): leaves read and written whole, the basic
//! insert, and what shadowing costs.
//!
//! Owns: the ways of ESM that are set side by side. The parameters are the same in both papers
//! (§4), the cases those that both have: 100 bytes and 10K, leaves of 1 and 4 pages.

use std::fmt::Display;

use anyhow::Result;
use holdall_testkit::CostModel;

use super::assumptions::{Variant, insert_by};
use super::mix_claims::{HUNDRED_K, TEN_K, all, beside, numbers, steady};
use super::tables::ms;
use crate::kit::{claims, notes};
use crate::large::runs::{MixRun, OBJECT, SIZES, build, in_memory};
use crate::large::store::Config;
use crate::large::technique::Technique;
use crate::large::workload::{Cost, Mark};
use holdall_instrument::draw::{number, percent, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

/// The ways; whole leaves and pages over the old ones are Carey's and what neither has.
const WAYS: [Variant; 4] = [
    ("pages, shadowed (Biliris)", |_| ()),
    ("whole leaves (Carey 1986)", |run| {
        if let Technique::Esm(pages) = run.technique {
            run.config.unit = pages.into();
        }
    }),
    ("pages, not shadowed", |run| run.config.shadow = false),
    ("basic insert", |run| insert_by(run, Technique::EsmBasic)),
];

/// The experiment.
pub(super) fn carey(settings: &Settings<'_>) -> Result<Outcome> {
    let (mut rows, mut claims) = (Vec::new(), Vec::new());
    for (turn, mean) in [100, TEN_K].into_iter().enumerate() {
        for pages in [1, 4] {
            let marks = all(WAYS.map(|(_, change)| {
                let mut run = MixRun::paper(Technique::Esm(pages), mean, settings);
                change(&mut run);
                run.steady()
            }))?;
            for (mark, (name, _)) in marks.iter().zip(WAYS) {
                let mut row = vec![mean.to_string(), pages.to_string(), name.to_owned()];
                row.push(percent(mark.utilization));
                row.extend(
                    [mark.read, mark.insert, mark.delete].map(|c| ms(c, &CostModel::default())),
                );
                rows.push(row);
            }
            claims.extend(improved(mean, pages, &marks));
            if pages == 4 {
                claims.extend(whole(mean, &marks));
            }
        }
        (settings.progress)(turn as u64 + 1, 3);
    }
    claims.extend(gaps(settings)?);
    claims.push(segment_size()?);
    let head =
        ["mean (bytes)", "leaf (pages)", "way", "utilization", "read (ms)", "insert", "delete"];
    let tables = vec![table("biliris-carey", "ESM beside Carey 1986", &head, rows)];
    let notes = notes::of("biliris-carey", &[]);
    Ok(Outcome { tables, claims, notes, ..Outcome::default() })
}

fn time(cost: Cost) -> f64 {
    cost.mean_ms(&CostModel::default())
}

/// The improved insert against the basic one (§3.4).
fn improved(mean: u64, pages: u16, marks: &[Mark]) -> [Claim; 2] {
    let (paper, basic) = (&marks[0], &marks[3]);
    let points = (paper.utilization - basic.utilization) * 100.0;
    let (one, other) = (paper.insert.counted(), basic.insert.counted());
    let (dense, less) = (percent(paper.utilization), percent(basic.utilization));
    let words: [&dyn Display; 6] = [&mean, &pages, &one, &other, &dense, &less];
    [
        claims::measures("B26 gain {0}, {1}", &words, points),
        beside("B26 price {0}, {1}", &words, time(paper.insert), ("basic", time(basic.insert))),
    ]
}

/// Pages against whole leaves, 4 pages (§4.5).
fn whole(mean: u64, marks: &[Mark]) -> Vec<Claim> {
    let [paper, whole, bare] = [0, 1, 2].map(|way| &marks[way]);
    let mut claims = Vec::new();
    for (name, of) in [
        ("reads", (|m| m.read) as fn(&Mark) -> Cost),
        ("inserts", |m| m.insert),
        ("deletes", |m| m.delete),
    ] {
        let base = ("whole leaves", time(of(whole)));
        let id = if name == "reads" { "B26 reads {1}" } else { "B26 {0} {1}" };
        let words: [&dyn Display; 4] = [&name, &mean, &of(paper).counted(), &of(whole).counted()];
        claims.push(beside(id, &words, time(of(paper)), base));
    }
    let [paper, whole, bare] = [paper, whole, bare].map(|mark| time(mark.insert));
    let words: [&dyn Display; 4] = [&mean, &number(whole), &number(bare), &number(paper)];
    let taken = (paper - bare) / (whole - bare) * 100.0;
    claims.push(claims::measures("B26 shadowing {0}", &words, taken));
    claims
}

/// How far utilization with larger leaves lies below that of 1-page leaves, by operation size.
fn gaps(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let means = [100, TEN_K, HUNDRED_K];
    let of = |pages| {
        all(means
            .map(|mean| Ok(steady(Technique::Esm(pages), mean, settings)?.utilization * 100.0)))
    };
    let one = of(1)?;
    let mut claims = Vec::new();
    for pages in &SIZES[1..] {
        let more = of(*pages)?;
        let gaps: Vec<f64> = one.iter().zip(&more).map(|(one, more)| one - more).collect();
        let so = gaps.windows(2).all(|w| w[0] < w[1]);
        let ours = format!("{} points", numbers(&gaps));
        let words: [&dyn Display; 3] = [pages, &numbers(&one), &numbers(&more)];
        claims.push(claims::says("B26 gap {0}", &words, ours, so));
    }
    Ok(claims)
}

/// A page updated in a segment of 64 pages against one in a segment of 2 (§3.3).
fn segment_size() -> Result<Claim> {
    let cost = |pages| -> Result<f64> {
        let mut object = in_memory(Technique::Esm(pages), Config::default())?;
        build(object.as_mut(), OBJECT / 10, 256 * 1024)?;
        let before = object.stats();
        object.replace(OBJECT / 20 + 100, &[1; 100])?;
        Ok(CostModel::default().time_ms(&(object.stats() - before)))
    };
    Ok(beside("B27", &[], cost(64)?, ("2 pages", cost(2)?)))
}
