//! Larger objects and skewed places, over the sparse disk, by both cost models.

use std::sync::LazyLock;

use anyhow::Result;
use holdall_instrument::picture::Scale;
use holdall_testkit::CostModel;

use super::tables::ms;
use crate::kit::model;
use crate::large::runs::{MIB, sparse, steady};
use crate::large::store::Config;
use crate::large::technique::Technique;
use crate::large::workload::{Mark, Mix, Places, run};
use holdall_instrument::cache::{Cache, Results, cached};
use holdall_instrument::draw::{axis_of, lines, number, percent, series, table};
use holdall_instrument::experiment::{Figure, Needs, Outcome, Settings};

const TECHNIQUES: [Technique; 5] = [
    Technique::Esm(4),
    Technique::Esm(64),
    Technique::Eos(4),
    Technique::Eos(16),
    Technique::Eos(64),
];
/// Mean size of operations.
const MEAN: u64 = 10 * 1024;
/// Marks of a run.
const MARKS: u64 = 20;

const HEAD: [&str; 9] = [
    "technique",
    "object or places",
    "utilization",
    "read (ms, Biliris' disk)",
    "insert",
    "delete",
    "read (µs, today)",
    "insert",
    "delete",
];

fn aged(
    technique: Technique,
    size: u64,
    places: Places,
    ops: u64,
    settings: &Settings<'_>,
    step: &mut dyn FnMut(u64),
) -> Result<Vec<Mark>> {
    static DONE: Cache<Vec<Mark>> = LazyLock::new(Results::default);
    let seed = settings.seed;
    let name = format!("{technique:?} {size} {places:?} {ops} {seed}");
    cached(&DONE, &name, || {
        let kept = settings.parts.load(&name).and_then(|text| serde_json::from_str(&text).ok());
        if let Some(marks) = kept {
            return Ok(marks);
        }
        let config = Config { wide: true, ..Config::default() };
        let mut object = sparse(technique, config, size)?;
        let mix = Mix { zeros: true, places, ..Mix::paper(MEAN) };
        let marks = run(object.as_mut(), &mix, ops, (ops / MARKS).max(1), seed, step)?;
        settings.parts.save(&name, &serde_json::to_string(&marks)?)?;
        Ok(marks)
    })
}

fn row(technique: Technique, what: &str, marks: &[Mark], new: &CostModel) -> Vec<String> {
    let (late, old) = (steady(marks), CostModel::default());
    let micros = |ms: f64| number(ms * 1000.0);
    vec![
        technique.name(),
        what.to_owned(),
        percent(late.utilization),
        ms(late.read, &old),
        ms(late.insert, &old),
        ms(late.delete, &old),
        micros(late.read.mean_ms(new)),
        micros(late.insert.mean_ms(new)),
        micros(late.delete.mean_ms(new)),
    ]
}

/// A row of Starburst, whose updates cost seconds: a few of them are enough.
fn starburst(
    size: u64,
    what: &str,
    settings: &Settings<'_>,
    new: &CostModel,
) -> Result<Vec<String>> {
    let seed = settings.seed;
    let ops = if settings.quick {
        2
    } else if size > 1024 * MIB {
        4
    } else {
        60
    };
    let mut object =
        sparse(Technique::Starburst, Config { wide: true, ..Config::default() }, size)?;
    let mix = Mix { zeros: true, ..Mix::paper(MEAN) };
    let mut marks = run(object.as_mut(), &Mix { reads: 0.0, ..mix }, ops, ops, seed, &mut |_| ())?;
    let reads = run(object.as_mut(), &Mix { reads: 1.0, ..mix }, 2000, 2000, seed, &mut |_| ())?;
    for (mark, read) in marks.iter_mut().zip(reads) {
        mark.read = read.read;
    }
    Ok(row(Technique::Starburst, what, &marks, new))
}

/// Objects of 100 MiB and 10 GiB.
pub(super) const LARGE: Figure = Figure::new(
    "biliris-large",
    "Objects of 100 MiB and 10 GiB under the mix of 10K operations",
    large,
)
.needs(Needs::PRICE);

fn large(settings: &Settings<'_>) -> Result<Outcome> {
    let ops = if settings.quick { 1000 } else { 1_000_000 };
    // A quick run has no time for Starburst to copy 10 GiB.
    let larger = if settings.quick { (1024 * MIB, "1 GiB") } else { (10_240 * MIB, "10 GiB") };
    let sizes = [(100 * MIB, "100 MiB"), larger];
    let disk = settings.today()?;
    let model = model::of(&disk.price, 4096);
    let total = ops * (sizes.len() * TECHNIQUES.len()) as u64;
    let (mut rows, mut panels, mut done) = (Vec::new(), Vec::new(), 0);
    for (size, name) in sizes {
        let mut curves = Vec::new();
        for technique in TECHNIQUES {
            let mut step = |at| (settings.progress)(done + at, total);
            let marks = aged(technique, size, Places::Uniform, ops, settings, &mut step)?;
            done += ops;
            rows.push(row(technique, name, &marks, &model));
            let points = marks
                .iter()
                .map(|m| (m.ops as f64 / 1000.0, m.insert.and(m.delete).mean_ms(&model) * 1000.0));
            curves.push(series(technique.name(), points.collect()));
        }
        rows.push(starburst(size, name, settings, &model)?);
        let id = format!("biliris-large-{}", name.to_lowercase().replace(' ', "-"));
        let (x, y) = (
            axis_of("operations (thousands)", Scale::Linear),
            axis_of("update cost (µs)", Scale::Linear),
        );
        panels.push(lines(
            &id,
            &format!("Updates of 10K, object of {name}, disk of today"),
            x,
            y,
            curves,
        ));
    }
    let tables = vec![table("biliris-large", LARGE.title, &HEAD, rows), disk.table()];
    let notes = vec![
        disk.note(),
        format!(
            "{ops} operations each, means over the second half; leaf data zeros over the sparse \
         disk; counts and pointers of 8 bytes (the paper's 4 count to 4 GiB only), 255 to a \
         page; Starburst: a few updates only, each copies the object from the change on."
        ),
    ];
    Ok(Outcome { panels, tables, notes, ..Outcome::default() })
}

/// Uniform against skewed places.
pub(super) const SKEW: Figure = Figure::new(
    "biliris-skew",
    "Zipf places (0.99) against uniform ones, 100 MiB, 10K operations",
    skew,
)
.needs(Needs::PRICE);

fn skew(settings: &Settings<'_>) -> Result<Outcome> {
    let ops = if settings.quick { 1000 } else { 1_000_000 };
    let places = [(Places::Uniform, "uniform"), (Places::Zipf(0.99), "zipf 0.99")];
    let disk = settings.today()?;
    let model = model::of(&disk.price, 4096);
    let total = ops * (places.len() * TECHNIQUES.len()) as u64;
    let (mut rows, mut done) = (Vec::new(), 0);
    for technique in TECHNIQUES {
        for (places, name) in places {
            let mut step = |at| (settings.progress)(done + at, total);
            let marks = aged(technique, 100 * MIB, places, ops, settings, &mut step)?;
            done += ops;
            rows.push(row(technique, name, &marks, &model));
        }
    }
    let tables = vec![table("biliris-skew", SKEW.title, &HEAD, rows), disk.table()];
    let notes = vec![
        disk.note(),
        format!(
            "{ops} operations each, means over the second half. Places are drawn by stretches of \
         4 KiB with ranks scattered over the object; as bytes move, a place that is hot stays \
         which it counts from the object's start."
        ),
    ];
    Ok(Outcome { tables, notes, ..Outcome::default() })
}
