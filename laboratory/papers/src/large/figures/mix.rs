//! Figures 7 to 12 and the deletes: the mix on a 10 MiB object (Biliris §4.4).

use anyhow::Result;
use holdall_instrument::picture::{Axis, Panel};
use holdall_testkit::CostModel;

use super::{mix_claims as claims, statements};
use crate::kit::{notes, plot::zero_axis};
use crate::large::runs::{MEANS, MixRun, SIZES, eos, esm};
use crate::large::technique::Technique;
use crate::large::workload::Mark;
use holdall_instrument::draw::{axis, lines, paper_points, series};
use holdall_instrument::experiment::{Claim, Figure, Outcome, Settings};

/// What a figure shows of a mark.
#[derive(Clone, Copy)]
pub(super) struct What {
    label: &'static str,
    /// Where the axis begins and ends; at zero and behind the largest value without it.
    range: Option<(f64, f64)>,
    of: fn(&Mark, &CostModel) -> f64,
}

/// The same axis in every panel, so that ESM and EOS can be laid side by side.
const UTILIZATION: What = What {
    label: "storage utilization (%), axis from 60",
    range: Some((60.0, 100.0)),
    of: |mark, _| mark.utilization * 100.0,
};
pub(super) const READ: What =
    What { label: "read cost (ms)", range: None, of: |mark, model| mark.read.mean_ms(model) };
pub(super) const INSERT: What =
    What { label: "insert cost (ms)", range: None, of: |mark, model| mark.insert.mean_ms(model) };
const DELETE: What =
    What { label: "delete cost (ms)", range: None, of: |mark, model| mark.delete.mean_ms(model) };

/// What the paper's text gives for the steady state: the panels, what it is of, the figure.
const PAPER: [(&str, &str, f64); 11] = [
    ("biliris-7-b", "1 page", 85.0),
    ("biliris-7-b", "4 pages", 80.0),
    ("biliris-7-b", "16 pages", 80.0),
    ("biliris-7-b", "64 pages", 80.0),
    ("biliris-7-c", "1 page", 96.0),
    ("biliris-7-c", "64 pages", 75.0),
    ("biliris-8-", "16 pages, more than", 98.0),
    ("biliris-10-a", "Starburst", 37.0),
    ("biliris-10-b", "Starburst", 54.0),
    ("biliris-10-c", "Starburst", 201.0),
    // §4.6: a thirtieth of Starburst's updates (table 3).
    ("biliris-12-", "64 pages", 22_300.0 / 30.0),
];

/// The three panels of a figure, by a cost model.
pub(super) fn panels(
    id: &str,
    techniques: [Technique; 4],
    what: What,
    settings: &Settings<'_>,
    model: &CostModel,
) -> Result<Vec<Panel>> {
    let mut panels = Vec::new();
    for (turn, (mean, letter)) in MEANS.into_iter().enumerate() {
        let mut curves = Vec::new();
        for (technique, pages) in techniques.into_iter().zip(SIZES) {
            let marks = MixRun::paper(technique, mean, settings).marks()?;
            let points = marks.iter().map(|m| (m.ops as f64 / 1000.0, (what.of)(m, model)));
            let name = if pages == 1 { "1 page".into() } else { format!("{pages} pages") };
            curves.push(series(name, points.collect()));
        }
        let bytes = if mean < 1024 { mean.to_string() } else { format!("{}K", mean / 1024) };
        let title = format!("({letter}) {bytes}-byte mean operation size");
        let id = format!("{id}-{letter}");
        let x = curves.first().map_or(&[][..], |c| &c.points);
        let late: Vec<f64> = x[x.len() / 2..].iter().map(|p| p.0).collect();
        for (_, name, figure) in PAPER.iter().filter(|point| id.starts_with(point.0)) {
            let points = late.iter().map(|x| (*x, *figure)).collect();
            curves.push(paper_points(format!("paper: {name}"), points));
        }
        let zero = zero_axis(what.label, &curves);
        let y = Axis { range: what.range.or(zero.range), ..zero };
        panels.push(lines(&id, &title, axis("operations (thousands)"), y, curves));
        (settings.progress)(turn as u64 + 1, MEANS.len() as u64);
    }
    Ok(panels)
}

/// Figures 7 to 12, and the deletes, which the paper had no room for.
pub(super) const FIGURES: [Figure; 7] = [
    Figure::new("biliris-7", "Storage utilization of ESM (figure 7)", |s| {
        figure("biliris-7", esm(), UTILIZATION, claims::esm_utilization, s)
    }),
    Figure::new("biliris-8", "Storage utilization of EOS (figure 8)", |s| {
        figure("biliris-8", eos(), UTILIZATION, claims::eos_utilization, s)
    }),
    Figure::new("biliris-9", "Read cost of ESM (figure 9)", |s| {
        figure("biliris-9", esm(), READ, claims::esm_reads, s)
    }),
    Figure::new("biliris-10", "Read cost of EOS (figure 10)", |s| {
        figure("biliris-10", eos(), READ, eos_reads, s)
    }),
    Figure::new("biliris-11", "Insert cost of ESM (figure 11)", |s| {
        figure("biliris-11", esm(), INSERT, claims::esm_inserts, s)
    }),
    Figure::new("biliris-12", "Insert cost of EOS (figure 12)", |s| {
        figure("biliris-12", eos(), INSERT, eos_inserts, s)
    }),
    Figure::new("biliris-deletes", "Delete cost of ESM and EOS (§4.4.3, without graphs)", deletes),
];

fn figure(
    id: &str,
    techniques: [Technique; 4],
    what: What,
    claims: fn(&Settings<'_>) -> Result<Vec<Claim>>,
    settings: &Settings<'_>,
) -> Result<Outcome> {
    let panels = panels(id, techniques, what, settings, &CostModel::default())?;
    let (claims, notes) = (claims(settings)?, parameters(settings));
    Ok(Outcome { panels, claims, notes, ..Outcome::default() })
}

fn deletes(settings: &Settings<'_>) -> Result<Outcome> {
    let mut all = Vec::new();
    for (id, name, techniques) in
        [("biliris-deletes-esm", "ESM", esm()), ("biliris-deletes-eos", "EOS", eos())]
    {
        for mut panel in panels(id, techniques, DELETE, settings, &CostModel::default())? {
            panel.title = format!("{name} {}", panel.title);
            all.push(panel);
        }
    }
    let (claims, notes) = (claims::deletes(settings)?, parameters(settings));
    Ok(Outcome { panels: all, claims, notes, ..Outcome::default() })
}

fn parameters(settings: &Settings<'_>) -> Vec<String> {
    let run = MixRun::paper(Technique::Esm(1), 100, settings);
    notes::of("biliris mix", &[&run.ops, &run.every, &settings.seed])
}

fn eos_reads(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    Ok([claims::eos_reads(settings)?, statements::reads(settings)?].concat())
}

fn eos_inserts(settings: &Settings<'_>) -> Result<Vec<Claim>> {
    Ok([claims::eos_inserts(settings)?, statements::inserts(settings)?].concat())
}
