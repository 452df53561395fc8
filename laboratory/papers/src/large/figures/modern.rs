//! The figures again with the cost of a disk of today, and what that makes of T and the page.
//!
//! Owns: the recommendation computed from the runs. The
//! accesses are those of the paper's figures; only their price is another.

use anyhow::Result;
use holdall_testkit::CostModel;

use super::build::panels_by;
use super::mix::{INSERT, READ, panels};
use crate::kit::model;
use crate::large::runs::{MEANS, MixRun, eos, esm};
use crate::large::technique::Technique;
use crate::large::workload::Mark;
use holdall_instrument::draw::{number, percent, table};
use holdall_instrument::experiment::{Figure, Needs, Outcome, Settings};

/// Mean cost of an operation of the mix, 40 % reads.
fn mixed(mark: &Mark, model: &CostModel) -> f64 {
    0.4 * mark.read.mean_ms(model) + 0.6 * mark.insert.and(mark.delete).mean_ms(model)
}

/// One setting of EOS and what it costs.
struct Setting {
    page: u32,
    threshold: u16,
    /// By mean size: cost of the mix in ms, utilization.
    results: Vec<(f64, f64)>,
}

impl Setting {
    fn name(&self) -> String {
        format!("pages of {} KiB, T = {}", self.page / 1024, self.threshold)
    }
}

/// The experiment.
pub(super) const MODERN: Figure = Figure::new(
    "biliris-modern",
    "The figures of Biliris on a disk of today, and what T and the page should be",
    modern,
)
.needs(Needs::PRICE);

fn modern(settings: &Settings<'_>) -> Result<Outcome> {
    let quiet = Settings { progress: &|_, _| (), ..*settings };
    let disk = settings.today()?;
    let model = model::of(&disk.price, 4096);
    let mut all = panels_by(&quiet, &model)?;
    for (id, techniques, what) in [
        ("esm-read", esm(), READ),
        ("eos-read", eos(), READ),
        ("esm-insert", esm(), INSERT),
        ("eos-insert", eos(), INSERT),
    ] {
        let mut more = panels(id, techniques, what, &quiet, &model)?;
        more.iter_mut().for_each(|p| p.title = format!("{id} {}", p.title));
        all.extend(more);
    }
    all.iter_mut().for_each(|p| p.id = format!("biliris-modern-{}", p.id));
    let grid = sweep(settings)?;
    let mut notes = vec![
        disk.note(),
        "Biliris: 33 ms and 1 MiB/s, an access worth 33 KiB of transfer. The accesses are the \
         same."
            .into(),
    ];
    notes.extend(recommendation(&grid));
    notes.extend(turned(settings)?);
    let tables = vec![grid_table(&grid), disk.table()];
    Ok(Outcome { panels: all, tables, notes, ..Outcome::default() })
}

fn sweep(settings: &Settings<'_>) -> Result<Vec<Setting>> {
    let pages: [(u32, &[u16]); 3] =
        [(4096, &[1, 4, 16, 64]), (16_384, &[1, 4, 16]), (65_536, &[1, 4])];
    let total = pages.iter().map(|p| p.1.len() as u64).sum();
    let mut grid = Vec::new();
    let price = settings.today()?.price;
    for (page, thresholds) in pages {
        for threshold in thresholds {
            let mut results = Vec::new();
            for (mean, _) in MEANS {
                let technique = Technique::Eos(*threshold);
                let mut run = MixRun::paper(technique, mean, settings);
                if page != 4096 {
                    run.config.model.page_size = page;
                }
                let mark = run.steady()?;
                results.push((mixed(&mark, &model::of(&price, page as usize)), mark.utilization));
            }
            grid.push(Setting { page, threshold: *threshold, results });
            (settings.progress)(grid.len() as u64, total);
        }
    }
    Ok(grid)
}

fn grid_table(grid: &[Setting]) -> holdall_instrument::picture::Table {
    let rows = grid.iter().map(|s| {
        let mut row = vec![(s.page / 1024).to_string(), s.threshold.to_string()];
        row.extend(s.results.iter().map(|r| number(r.0 * 1000.0)));
        row.extend(s.results.iter().map(|r| percent(r.1)));
        row
    });
    let head = [
        "page (KiB)",
        "T (pages)",
        "mix 100 B (µs)",
        "mix 10K (µs)",
        "mix 100K (µs)",
        "utilization 100 B",
        "10K",
        "100K",
    ];
    table(
        "biliris-modern-grid",
        "EOS by page size and T: cost of an operation of the mix",
        &head,
        rows.collect(),
    )
}

/// The cheapest setting for each size, and the one that is never far from the cheapest.
fn recommendation(grid: &[Setting]) -> Vec<String> {
    const DENSE: f64 = 0.95;
    let mut notes = Vec::new();
    let mut least = Vec::new();
    for (at, (mean, _)) in MEANS.into_iter().enumerate() {
        let cost = |s: &&Setting| s.results[at].0;
        let dense = grid.iter().filter(|s| s.results[at].1 >= DENSE);
        let best = dense.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let any = grid.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let (Some(best), Some(any)) = (best, any) else { continue };
        least.push((at, cost(&best)));
        notes.push(format!(
            "Mix of {mean} bytes: cheapest with utilization of 95 % or more: {}, {} µs at {}; \
             cheapest of all: {}, {} µs at {}.",
            best.name(),
            number(cost(&best) * 1000.0),
            percent(best.results[at].1),
            any.name(),
            number(cost(&any) * 1000.0),
            percent(any.results[at].1),
        ));
    }
    let worst = |s: &Setting| least.iter().map(|(at, c)| s.results[*at].0 / c).fold(0.0, f64::max);
    let dense = grid.iter().filter(|s| s.results.iter().all(|r| r.1 >= DENSE));
    if let Some(all) = dense.min_by(|a, b| worst(a).total_cmp(&worst(b))) {
        notes.push(format!(
            "Recommended for all three: {}; at most {:.2} times the cheapest of each.",
            all.name(),
            worst(all)
        ));
    }
    notes
}

/// Where the price of an access turns a conclusion of the paper round, or does not.
fn turned(settings: &Settings<'_>) -> Result<Vec<String>> {
    let (old, new) = (CostModel::default(), model::of(&settings.today()?.price, 4096));
    let insert = |t: u16, model: &CostModel| -> Result<f64> {
        let mark = MixRun::paper(Technique::Eos(t), 10 * 1024, settings).steady()?;
        Ok(mark.insert.mean_ms(model))
    };
    let mut notes = Vec::new();
    for (a, b) in [(1, 4), (4, 16), (16, 64)] {
        let by = |model: &CostModel| -> Result<f64> { Ok(insert(b, model)? / insert(a, model)?) };
        notes.push(format!(
            "Inserts of 10K, T = {b} against T = {a}: {:.2} times on the paper's disk, {:.2} today.",
            by(&old)?,
            by(&new)?
        ));
    }
    Ok(notes)
}
