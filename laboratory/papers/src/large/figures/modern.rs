//! The figures again with the cost of a disk of today, and what that makes of T and the page.
//!
//! Owns: the recommendation computed from the runs. The accesses are those of the paper's figures;
//! only their price is another.

use anyhow::Result;
use holdall_testkit::CostModel;

use super::build::panels_by;
use super::mix::{INSERT, READ, panels};
use crate::kit::notes;
use crate::kit::{model, plot::heads};
use crate::large::runs::{MEANS, MixRun, eos, esm};
use crate::large::technique::Technique;
use crate::large::workload::Mark;
use holdall_instrument::draw::{number, percent, table};
use holdall_instrument::experiment::{Outcome, Settings};
use holdall_instrument::picture::Table;

/// Mean cost of an operation of the mix, 40 % reads.
fn mixed(mark: &Mark, model: &CostModel) -> f64 {
    0.4 * mark.read.mean_ms(model) + 0.6 * mark.updates().mean_ms(model)
}

/// One setting of EOS and what it costs.
struct Setting {
    page: u32,
    threshold: u16,
    /// By mean size: cost of the mix in µs, utilization.
    results: Vec<(f64, f64)>,
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
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
    let mut notes = [vec![disk.note()], notes::of("biliris-modern", &[])].concat();
    notes.extend(recommendation(&grid));
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
        for &threshold in thresholds {
            let mut results = Vec::new();
            for (mean, _) in MEANS {
                let mut run = MixRun::paper(Technique::Eos(threshold), mean, settings);
                run.config.model.page_size = page;
                let mark = run.steady()?;
                let cost = mixed(&mark, &model::of(&price, page as usize)) * 1000.0;
                results.push((cost, mark.utilization));
            }
            grid.push(Setting { page, threshold, results });
            (settings.progress)(grid.len() as u64, total);
        }
    }
    Ok(grid)
}

fn grid_table(grid: &[Setting]) -> Table {
    let rows = grid.iter().map(|s| {
        let mut row = vec![(s.page / 1024).to_string(), s.threshold.to_string()];
        row.extend(s.results.iter().map(|r| number(r.0)));
        row.extend(s.results.iter().map(|r| percent(r.1)));
        row
    });
    let head = heads(
        "page (KiB) | T (pages) | mix 100 B (µs) | mix 10K (µs) | mix 100K (µs) | \
         utilization 100 B | 10K | 100K",
    );
    let title = "EOS by page size and T: cost of an operation of the mix";
    table("biliris-modern-grid", title, &head, rows.collect())
}

/// Of the settings with utilization of 95 % or more for all sizes, the one that is never far from
/// the cheapest dense one of each.
fn recommendation(grid: &[Setting]) -> Option<String> {
    const DENSE: f64 = 0.95;
    let least = |at: usize| {
        let dense = grid.iter().map(|s| s.results[at]).filter(|r| r.1 >= DENSE);
        dense.map(|r| r.0).fold(f64::MAX, f64::min)
    };
    let worst = |s: &Setting| {
        s.results.iter().enumerate().map(|(at, r)| r.0 / least(at)).fold(0.0, f64::max)
    };
    let dense = grid.iter().filter(|s| s.results.iter().all(|r| r.1 >= DENSE));
    let best = dense.min_by(|a, b| worst(a).total_cmp(&worst(b)))?;
    Some(format!(
        "Recommended: pages of {} KiB, T = {}, with utilization of 95 % or more for all three \
         sizes, and at most {:.2} times as dear as the cheapest such setting of each.",
        best.page / 1024,
        best.threshold,
        worst(best)
    ))
}
