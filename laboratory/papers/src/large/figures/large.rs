//! Larger objects and skewed places, over the sparse disk, by both cost models.

use std::sync::LazyLock;

use anyhow::Result;
use holdall_instrument::picture::Table;
use holdall_testkit::CostModel;

use super::tables::ms;
use crate::kit::notes;
use crate::kit::{
    model,
    plot::{heads, zero_axis},
};
use crate::large::runs::{MIB, sparse, steady};
use crate::large::store::Config;
use crate::large::technique::Technique;
use crate::large::workload::{Mark, Mix, Places, run};
use holdall_instrument::cache::{Cache, Results, cached};
use holdall_instrument::draw::{axis, lines, number, percent, series, table};
use holdall_instrument::experiment::{Outcome, Settings};

const TECHNIQUES: [Technique; 5] = [
    Technique::Esm(4),
    Technique::Esm(64),
    Technique::Eos(4),
    Technique::Eos(16),
    Technique::Eos(64),
];
/// Marks of a run.
const MARKS: u64 = 20;

/// The marks of the mix of 10K on an object of zeros.
fn aged(
    technique: Technique,
    size: u64,
    places: Places,
    settings: &Settings<'_>,
    step: &mut dyn FnMut(u64),
) -> Result<Vec<Mark>> {
    static DONE: Cache<Vec<Mark>> = LazyLock::new(Results::default);
    let (seed, ops) = (settings.seed, operations(settings));
    cached(&DONE, &format!("{technique:?} {size} {places:?} {ops} {seed}"), || {
        let mut object = sparse(technique, Config::wide(), size)?;
        let mix = Mix { zeros: true, places, ..Mix::paper(10 * 1024) };
        run(object.as_mut(), &mix, ops, (ops / MARKS).max(1), seed, step)
    })
}

fn operations(settings: &Settings<'_>) -> u64 {
    if settings.quick { 1000 } else { 1_000_000 }
}

fn row(technique: Technique, what: &str, marks: &[Mark], new: &CostModel) -> Vec<String> {
    let (late, old) = (steady(marks), CostModel::default());
    let costs = [late.read, late.insert, late.delete];
    let mut row = vec![technique.name(), what.to_owned(), percent(late.utilization)];
    row.extend(costs.map(|cost| ms(cost, &old)));
    row.extend(costs.map(|cost| number(cost.mean_ms(new) * 1000.0)));
    row
}

fn rows_table(id: &str, title: &str, rows: Vec<Vec<String>>) -> Table {
    let head = heads(
        "technique | object or places | utilization | read (ms, Biliris' disk) | insert | \
         delete | read (µs, today) | insert | delete",
    );
    table(id, title, &head, rows)
}

/// The marks of Starburst, whose updates cost seconds: a few of them are enough.
fn starburst(size: u64, settings: &Settings<'_>) -> Result<Vec<Mark>> {
    let reads = if size > 100 * MIB { 0.998 } else { 0.97 };
    let mut object = sparse(Technique::Starburst, Config::wide(), size)?;
    let mix = Mix { zeros: true, reads, ..Mix::paper(10 * 1024) };
    let ops = operations(settings).min(2000);
    run(object.as_mut(), &mix, ops, ops, settings.seed, &mut |_| ())
}

/// Objects of 100 MiB and 10 GiB.
pub(super) fn large(settings: &Settings<'_>) -> Result<Outcome> {
    // A quick run has no time for Starburst to copy 10 GiB.
    let larger = if settings.quick { (1024 * MIB, "1 GiB") } else { (10_240 * MIB, "10 GiB") };
    let sizes = [(100 * MIB, "100 MiB"), larger];
    let (disk, ops) = (settings.today()?, operations(settings));
    let model = model::of(&disk.price, 4096);
    let total = ops * (sizes.len() * TECHNIQUES.len()) as u64;
    let (mut rows, mut panels, mut done) = (Vec::new(), Vec::new(), 0);
    for (size, name) in sizes {
        let mut curves = Vec::new();
        for technique in TECHNIQUES {
            let mut step = |at| (settings.progress)(done + at, total);
            let marks = aged(technique, size, Places::Uniform, settings, &mut step)?;
            done += ops;
            rows.push(row(technique, name, &marks, &model));
            let points =
                marks.iter().map(|m| (m.ops as f64 / 1000.0, m.updates().mean_ms(&model) * 1000.0));
            curves.push(series(technique.name(), points.collect()));
        }
        rows.push(row(Technique::Starburst, name, &starburst(size, settings)?, &model));
        let id = format!("biliris-large-{}", name.to_lowercase().replace(' ', "-"));
        let (x, y) = (axis("operations (thousands)"), zero_axis("update cost (µs)", &curves));
        let title = format!("Updates of 10K, object of {name}, disk of today");
        panels.push(lines(&id, &title, x, y, curves));
    }
    let tables = vec![
        rows_table("biliris-large", "The mix of 10K on 100 MiB and 10 GiB", rows),
        disk.table(),
    ];
    let notes = [vec![disk.note()], notes::of("biliris-large", &[&ops])].concat();
    Ok(Outcome { panels, tables, notes, ..Outcome::default() })
}

/// Uniform against skewed places.
pub(super) fn skew(settings: &Settings<'_>) -> Result<Outcome> {
    let (disk, mut rows) = (settings.today()?, Vec::new());
    let model = model::of(&disk.price, 4096);
    for (turn, technique) in TECHNIQUES.into_iter().enumerate() {
        for (places, name) in [(Places::Uniform, "uniform"), (Places::Zipf(0.99), "zipf 0.99")] {
            let marks = aged(technique, 100 * MIB, places, settings, &mut |_| ())?;
            rows.push(row(technique, name, &marks, &model));
        }
        (settings.progress)(turn as u64 + 1, TECHNIQUES.len() as u64);
    }
    let tables = vec![
        rows_table("biliris-skew", "Zipf places (0.99) and uniform ones, 100 MiB", rows),
        disk.table(),
    ];
    let notes = [vec![disk.note()], notes::of("biliris-skew", &[&operations(settings)])].concat();
    Ok(Outcome { tables, notes, ..Outcome::default() })
}
