//! What the paper leaves open, varied one at a time, and what that changes.

use std::fmt::Display;

use anyhow::Result;
use holdall_core::techniques::segment_tree::Cut;
use holdall_testkit::CostModel;

use super::tables::ms;
use crate::kit::{claims, notes, plot::heads};
use crate::large::runs::{MIB, MixRun, OBJECT, build_and_scan, sparse};
use crate::large::store::Config;
use crate::large::technique::Technique;
use crate::large::workload::{self, Mix};
use holdall_instrument::draw::{number, percent, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};

/// One thing changed, by its name.
pub(super) type Variant = (&'static str, fn(&mut MixRun));

const VARIANTS: [Variant; 14] = [
    ("as assumed", |_| ()),
    ("another seed", |r| r.seed += 1),
    ("a third seed", |r| r.seed += 2),
    ("root outside the pool (12 other frames)", |r| r.config.pool_pages = 13),
    ("pool of 48 frames", |r| r.config.pool_pages = 48),
    ("written leaf pages stay in the pool", |r| r.config.keep_written = true),
    ("updates read in three steps too", |r| r.config.steps_in_updates = true),
    ("three steps at every segment's end", |r| r.config.spill = false),
    ("built by appends of 4 KiB", |r| r.append = 4096),
    ("inserts and deletes drawn, not in turn", |r| r.mix.turns = false),
    ("ESM: both neighbours", |r| insert_by(r, Technique::EsmBoth)),
    ("ESM: basic insert", |r| insert_by(r, Technique::EsmBasic)),
    ("index pages cut in even halves", |r| r.config.cut = Cut::Halves),
    ("EOS: no byte reshuffling (the engine)", |r| {
        if let Technique::Eos(threshold) = r.technique {
            r.technique = Technique::EosEngine(threshold);
        }
    }),
];

/// Gives ESM another rule of insertion.
pub(super) fn insert_by(run: &mut MixRun, rule: fn(u16) -> Technique) {
    if let Technique::Esm(pages) = run.technique {
        run.technique = rule(pages);
    }
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let mut rows = Vec::new();
    // A quick run has one of each sort.
    let variants: Vec<Variant> = match settings.quick {
        true => [0, 5, 7, 10, 13].map(|at| VARIANTS[at]).into(),
        false => VARIANTS.into(),
    };
    for (turn, variant) in variants.iter().enumerate() {
        rows.push(row(variant, settings)?);
        (settings.progress)(turn as u64 + 1, variants.len() as u64 + 1);
    }
    let head = heads(
        "assumption | build ESM 1, 3 KiB (s) | 5 KiB (s) | util ESM 1, 100 B | util ESM 4, \
         10K | util EOS 1, 100 B | util EOS 16, 10K | read ESM 1, 10K (ms) | read EOS 1, \
         10K (ms) | read EOS 16, 100K (ms) | insert ESM 4, 10K (ms) | insert EOS 4, 10K \
         (ms)",
    );
    let claims = directories(settings)?;
    let tables =
        vec![table("biliris-assumptions", "What Biliris leaves open, varied", &head, rows)];
    let notes = notes::of("biliris-assumptions", &[]);
    Ok(Outcome { tables, claims, notes, ..Outcome::default() })
}

fn row(variant: &Variant, settings: &Settings<'_>) -> Result<Vec<String>> {
    let model = CostModel::default();
    let of = |technique, mean| {
        let mut run = MixRun::paper(technique, mean, settings);
        if settings.quick {
            (run.ops, run.every) = (400, 100);
        }
        (variant.1)(&mut run);
        run
    };
    let steady = |technique, mean| of(technique, mean).steady();
    let build = |kib: u64| -> Result<String> {
        let run = of(Technique::Esm(1), 100);
        let done = build_and_scan(run.technique, run.config, OBJECT, kib * 1024)?;
        Ok(number(model.time_ms(&done.build) / 1000.0))
    };
    let (ten, hundred) = (10 * 1024, 100 * 1024);
    let (esm, esm4) = (steady(Technique::Esm(1), ten)?, steady(Technique::Esm(4), ten)?);
    Ok(vec![
        variant.0.to_owned(),
        build(3)?,
        build(5)?,
        percent(steady(Technique::Esm(1), 100)?.utilization),
        percent(esm4.utilization),
        percent(steady(Technique::Eos(1), 100)?.utilization),
        percent(steady(Technique::Eos(16), ten)?.utilization),
        ms(esm.read, &model),
        ms(steady(Technique::Eos(1), ten)?.read, &model),
        ms(steady(Technique::Eos(16), hundred)?.read, &model),
        ms(esm4.insert, &model),
        ms(steady(Technique::Eos(4), ten)?.insert, &model),
    ])
}

/// That an allocation visits one space's directory at most (§3.1), after 10,000 operations of 10K.
fn directories(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    let mut claims = Vec::new();
    let ops = if settings.quick { 400 } else { 10_000 };
    let cases = [
        (Technique::Esm(1), OBJECT),
        (Technique::Esm(16), OBJECT),
        (Technique::Eos(16), OBJECT),
        (Technique::Esm(4), 1024 * MIB),
        (Technique::Eos(4), 1024 * MIB),
        (Technique::Eos(16), 1024 * MIB),
        (Technique::Eos(16), 10_240 * MIB),
        (Technique::Esm(4), 10_240 * MIB),
    ];
    // A quick run has no time for the many leaves of the last.
    for (technique, size) in &cases[..cases.len() - usize::from(settings.quick)] {
        let mut object = sparse(*technique, Config::wide(), *size)?;
        let before = object.volume().visits();
        let mix = Mix { zeros: true, ..Mix::paper(10 * 1024) };
        let marks = workload::run(object.as_mut(), &mix, ops, ops, settings.seed, &mut |_| ())?;
        let updates: u64 = marks.iter().map(|m| m.updates().count).sum();
        let each = (object.volume().visits() - before) as f64 / updates.max(1) as f64;
        let (spaces, most) = object.volume().spaces();
        let ours = format!("{most}; {} visits for an update and what it frees", number(each));
        let words: [&dyn Display; 3] = [&technique.name(), &(size / MIB), &spaces];
        claims.push(claims::says("B23 {0}, {1} MiB", &words, ours, most <= 1));
    }
    Ok(claims)
}
