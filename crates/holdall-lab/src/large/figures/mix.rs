//! Figures 7 to 12 and the deletes: the mix on a 10 MiB object (Biliris §4.4).

use anyhow::Result;
use holdall_plot::{Axis, Panel, Scale, Series};
use holdall_testkit::CostModel;

use super::mix_claims as claims;
use crate::experiment::{Claim, Experiment, Outcome, Settings};
use crate::kit::draw::{axis_of, lines, series};
use crate::large::runs::{MEANS, MixRun, SIZES, eos, esm};
use crate::large::technique::Technique;
use crate::large::workload::{Cost, Mark};

/// What a figure shows of a mark.
#[derive(Clone, Copy)]
pub(super) enum What {
    Utilization,
    Read,
    Insert,
    Delete,
}

impl What {
    fn of(self, mark: &Mark, model: &CostModel) -> f64 {
        let cost = |cost: &Cost| cost.mean_ms(model);
        match self {
            Self::Utilization => mark.utilization * 100.0,
            Self::Read => cost(&mark.read),
            Self::Insert => cost(&mark.insert),
            Self::Delete => cost(&mark.delete),
        }
    }

    fn axis(self) -> Axis {
        let from_points = |label: &str| axis_of(label, Scale::Linear);
        match self {
            // The same in every panel, so that ESM and EOS can be laid side by side.
            Self::Utilization => {
                Axis { range: Some((60.0, 100.0)), ..from_points("storage utilization (%)") }
            }
            Self::Read => from_points("read cost (ms)"),
            Self::Insert => from_points("insert cost (ms)"),
            Self::Delete => from_points("delete cost (ms)"),
        }
    }
}

/// The four curves of one panel.
fn curves(
    techniques: [Technique; 4],
    mean: u64,
    what: What,
    settings: &Settings<'_>,
    model: &CostModel,
) -> Result<Vec<Series>> {
    let mut all = Vec::new();
    for (technique, pages) in techniques.into_iter().zip(SIZES) {
        let run = MixRun::paper(technique, mean, settings.quick, settings.seed);
        let marks = run.marks()?;
        let points = marks.iter().map(|m| (m.ops as f64 / 1000.0, what.of(m, model)));
        let name = if pages == 1 { "1 page".into() } else { format!("{pages} pages") };
        all.push(series(name, points.collect()));
    }
    Ok(all)
}

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
        let x = axis_of("operations (thousands)", Scale::Linear);
        let curves = curves(techniques, mean, what, settings, model)?;
        let bytes = if mean < 1024 { mean.to_string() } else { format!("{}K", mean / 1024) };
        let title = format!("({letter}) {bytes}-byte mean operation size");
        panels.push(lines(&format!("{id}-{letter}"), &title, x, what.axis(), curves));
        (settings.progress)(turn as u64 + 1, MEANS.len() as u64);
    }
    Ok(panels)
}

type Claims = fn(&Settings<'_>) -> Result<Vec<Claim>>;

/// One figure of the mix.
pub struct MixFigure {
    id: &'static str,
    title: &'static str,
    what: What,
    techniques: fn() -> [Technique; 4],
    claims: Claims,
}

/// Figures 7 to 12.
pub fn figures() -> [MixFigure; 6] {
    let figure =
        |id, title, what, techniques, claims| MixFigure { id, title, what, techniques, claims };
    [
        figure(
            "biliris-7",
            "Storage utilization of ESM (Biliris figure 7)",
            What::Utilization,
            esm,
            claims::esm_utilization,
        ),
        figure(
            "biliris-8",
            "Storage utilization of EOS (Biliris figure 8)",
            What::Utilization,
            eos,
            claims::eos_utilization,
        ),
        figure(
            "biliris-9",
            "Read cost of ESM (Biliris figure 9)",
            What::Read,
            esm,
            claims::esm_reads,
        ),
        figure(
            "biliris-10",
            "Read cost of EOS (Biliris figure 10)",
            What::Read,
            eos,
            claims::eos_reads,
        ),
        figure(
            "biliris-11",
            "Insert cost of ESM (Biliris figure 11)",
            What::Insert,
            esm,
            claims::esm_inserts,
        ),
        figure(
            "biliris-12",
            "Insert cost of EOS (Biliris figure 12)",
            What::Insert,
            eos,
            claims::eos_inserts,
        ),
    ]
}

fn parameters(settings: &Settings<'_>) -> Vec<String> {
    let run = MixRun::paper(Technique::Esm(1), 100, settings.quick, settings.seed);
    vec![format!(
        "{} operations, a mark every {}; 40 % reads, the rest inserts and deletes in turn; object \
         of 10 MiB built by appends of 512 KiB; steady state: the second half; seed {}.",
        run.ops, run.every, settings.seed
    )]
}

impl Experiment for MixFigure {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn run(&self, settings: &Settings<'_>) -> Result<Outcome> {
        let model = CostModel::default();
        let panels = panels(self.id, (self.techniques)(), self.what, settings, &model)?;
        let claims = (self.claims)(settings)?;
        let notes = parameters(settings);
        Ok(Outcome { panels, claims, notes, ..Outcome::default() })
    }
}

/// The figures the paper had no room for: deletes.
pub struct Deletes;

impl Experiment for Deletes {
    fn id(&self) -> &'static str {
        "biliris-deletes"
    }

    fn title(&self) -> &'static str {
        "Delete cost of ESM and EOS (Biliris §4.4.3, graphs left out there)"
    }

    fn run(&self, settings: &Settings<'_>) -> Result<Outcome> {
        let model = CostModel::default();
        let mut all = panels("biliris-deletes-esm", esm(), What::Delete, settings, &model)?;
        all.extend(panels("biliris-deletes-eos", eos(), What::Delete, settings, &model)?);
        for (at, panel) in all.iter_mut().enumerate() {
            panel.title = format!("{} {}", if at < 3 { "ESM" } else { "EOS" }, panel.title);
        }
        let notes = parameters(settings);
        let claims = claims::deletes(settings)?;
        Ok(Outcome { panels: all, claims, notes, ..Outcome::default() })
    }
}
