//! What an experiment is: its name, its parameters, and what comes out of it.
//!
//! Owns: the types between experiments and the report. An experiment knows nothing of the
//! report's files, of plots or of the terminal.

use std::path::Path;

use crate::picture::{Panel, Table};
use anyhow::Result;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::parts::Parts;
use crate::price::{DiskPrice, Priced};
use crate::scratch;

/// Whether a claim of the paper holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Within its tolerance, by the paper's words.
    Holds,
    /// Within its tolerance by a reading of ours; the explanation says which.
    Assumed,
    /// Outside of it; the explanation says why.
    Fails,
    /// Not a pass or a failure: an observation.
    Note,
}

/// One claim of a paper, checked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claim {
    /// As in the list of claims: `B13`; rows of it as `B13 100 bytes`.
    pub id: String,
    /// What the paper says, in our words.
    pub text: String,
    /// Where the paper says it: `§4.2`. Empty for a claim of ours.
    #[serde(default)]
    pub section: String,
    /// The paper's figure, or nothing if it has none.
    pub paper: String,
    /// Our figure.
    pub ours: String,
    /// Ours ÷ paper's, if both are numbers.
    pub ratio: Option<f64>,
    /// What is allowed, fixed before the run: `=`, `5 %`, `80–90 %`, a sentence.
    pub tolerance: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// If it fails or surprises: what looking into it found. Empty else.
    pub explanation: String,
    /// Whether a quick run judges it too.
    #[serde(skip)]
    pub judged_when_quick: bool,
}

/// What an experiment found.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Drawings, each with its numbers.
    pub panels: Vec<Panel>,
    /// Numbers without a drawing.
    pub tables: Vec<Table>,
    /// Claims checked.
    pub claims: Vec<Claim>,
    /// Parameters used, assumptions if the paper leaves something open, what to see.
    pub notes: Vec<String>,
}

/// How an experiment is to run.
pub struct Settings<'a> {
    /// Smaller, for CI: rougher figures, same code. Claims become [`Verdict::Note`] unless they
    /// are judged in quick runs too.
    pub quick: bool,
    /// Of every random draw.
    pub seed: u64,
    /// How often what is timed is repeated, in turns with what it is compared to.
    pub repetitions: u32,
    /// What an access costs on a disk of today; see [`Settings::today`].
    pub price: &'a DiskPrice,
    /// Keeps what takes long, between runs of the program.
    pub parts: &'a dyn Parts,
    /// Where directories for files are made; see [`Settings::scratch`].
    pub dir: &'a Path,
    /// Told how much is done of how much, as often as the experiment likes.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl Settings<'_> {
    /// The disk of today, measured if nobody gave it.
    ///
    /// # Errors
    /// It cannot be measured.
    pub fn today(&self) -> Result<Priced> {
        self.price.get(self.parts)
    }

    /// What was kept as a part under `name`, or what `make` gives, which is then kept.
    ///
    /// # Errors
    /// Those of `make`; it cannot be kept.
    pub fn part<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if let Some(kept) = self.parts.load(name).and_then(|text| serde_json::from_str(&text).ok())
        {
            return Ok(kept);
        }
        let made = make()?;
        self.parts.save(name, &serde_json::to_string(&made)?)?;
        Ok(made)
    }

    /// An empty directory beside the output, on its file system; removed when dropped.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn scratch(&self) -> Result<TempDir> {
        scratch::make(self.dir)
    }
}

/// What an experiment asks of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// The price of the disk of today, which is then one of its parameters.
    pub price: bool,
    /// That no other experiment runs at the same time; repetitions are then a parameter too.
    pub alone: bool,
}

impl Needs {
    /// Nothing.
    pub const NOTHING: Self = Self { price: false, alone: false };
    /// The disk's price.
    pub const PRICE: Self = Self { price: true, alone: false };
    /// The machine for itself.
    pub const ALONE: Self = Self { price: false, alone: true };
}

/// One figure or table of a paper, or one of ours beyond it.
pub trait Experiment: Sync {
    /// What the command line calls it, its paper's name first: `biliris-5`, `mcauliffe-modern`.
    fn id(&self) -> &'static str;
    /// What the report puts above it.
    fn title(&self) -> &'static str;
    /// What it asks of the machine.
    fn needs(&self) -> Needs {
        Needs::NOTHING
    }
    /// Runs it.
    ///
    /// # Errors
    /// Whatever stops it; nothing of it is kept then.
    fn run(&self, settings: &Settings<'_>) -> Result<Outcome>;
}

/// An experiment that is a function.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// As [`Experiment::id`].
    pub id: &'static str,
    /// As [`Experiment::title`].
    pub title: &'static str,
    /// As [`Experiment::needs`].
    pub needs: Needs,
    /// As [`Experiment::run`].
    pub make: fn(&Settings<'_>) -> Result<Outcome>,
}

impl Figure {
    /// One that asks nothing of the machine.
    #[must_use]
    pub const fn new(
        id: &'static str,
        title: &'static str,
        make: fn(&Settings<'_>) -> Result<Outcome>,
    ) -> Self {
        Self { id, title, needs: Needs::NOTHING, make }
    }

    /// With what it asks of the machine.
    #[must_use]
    pub const fn needs(self, needs: Needs) -> Self {
        Self { needs, ..self }
    }

    /// A paper's list.
    #[must_use]
    pub fn list(figures: &[Self]) -> Vec<Box<dyn Experiment>> {
        figures.iter().map(|&f| Box::new(f) as Box<dyn Experiment>).collect()
    }
}

impl Experiment for Figure {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn needs(&self) -> Needs {
        self.needs
    }

    fn run(&self, settings: &Settings<'_>) -> Result<Outcome> {
        (self.make)(settings)
    }
}
