//! Results as drawings: throughput against age, latency distributions, space.

use super::{BARE, Outcome};
use super::{Plot, Source};
use crate::picture::{Axis, Kind, Panel, Scale, Series};
use crate::spread::Spread;
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Pixels of a PNG's width; its height follows.
const WIDTH: u32 = 1520;

/// Draws the workload's drawings into `dir`, as SVG and PNG. Returns the SVG files.
///
/// # Errors
/// Those of the file system and of drawing.
pub fn draw(outcome: &Outcome, dir: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(dir)?;
    let mut files = Vec::new();
    for plot in &outcome.plots {
        let panel = panel(outcome, plot);
        let svg = dir.join(format!("{}.svg", plot.id));
        std::fs::write(&svg, panel.svg())?;
        let (width, height) = panel.size();
        let png = panel.png(WIDTH, height * WIDTH / width)?;
        std::fs::write(dir.join(format!("{}.png", plot.id)), png)?;
        files.push(svg);
    }
    Ok(files)
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.into(), scale, range: None, ticks: Vec::new() }
}

fn panel(outcome: &Outcome, plot: &Plot) -> Panel {
    let (mut x, y, kind) = match &plot.source {
        Source::Points { x, y, ticks } if ticks.is_empty() => {
            (axis(x, Scale::Linear), axis(y, Scale::Linear), Kind::Lines)
        }
        Source::Points { x, y, .. } => {
            (axis(x, Scale::Ordinal), axis(y, Scale::Linear), Kind::Bars)
        }
        Source::Latency(_) => (
            axis("operations to one that took longer", Scale::Log10),
            axis("latency in µs", Scale::Log10),
            Kind::Lines,
        ),
    };
    if let Source::Points { ticks, .. } = &plot.source {
        x.ticks = ticks.iter().enumerate().map(|(i, t)| (i as f64, (*t).into())).collect();
    }
    let series = outcome.stores.iter().map(|store| Series {
        name: (*store).into(),
        reference: false,
        points: points(outcome, plot, store),
    });
    let series = series.filter(|s| !s.points.is_empty()).collect();
    Panel {
        id: plot.id.clone(),
        title: plot.title.clone(),
        caption: String::new(),
        kind,
        x,
        y,
        series,
    }
}

/// A store's points: for each x the median of the rounds.
fn points(outcome: &Outcome, plot: &Plot, store: &'static str) -> Vec<(f64, f64)> {
    let mut all: BTreeMap<u64, (f64, Vec<f64>)> = BTreeMap::new();
    // Points come in order and x is never negative: its bits have the order of its values.
    let mut add = |x: f64, y: f64| all.entry(x.to_bits()).or_insert((x, Vec::new())).1.push(y);
    match &plot.source {
        Source::Points { .. } if store == BARE => {}
        Source::Points { .. } => {
            let i = outcome.stores.iter().position(|s| *s == store);
            let cells = i.map(|i| &outcome.cells[i][..]).unwrap_or_default();
            let points = cells.iter().flat_map(|c| &c.figures).flat_map(|f| &f.points);
            points.filter(|p| p.plot == plot.id).for_each(|p| add(p.x, p.y));
        }
        Source::Latency(row) => {
            let curves = outcome.of(store, row).filter_map(|f| f.latency.as_ref());
            curves.flat_map(|l| &l.curve).for_each(|(x, y)| add(*x, *y));
        }
    }
    all.into_values().map(|(x, ys)| (x, Spread::of(&ys).median)).collect()
}
