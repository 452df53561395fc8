//! What an experiment is: its name, its parameters, and what comes out of it.
//!
//! Owns: the types between experiments and the report. An experiment knows nothing of files,
//! plots or the terminal.

use anyhow::Result;
use holdall_plot::{Panel, Table};
use serde::{Deserialize, Serialize};

use crate::parts::Parts;
use crate::price::{DiskPrice, Priced};

/// Whose experiment it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Paper {
    /// Biliris 1992, large objects.
    Biliris,
    /// McAuliffe 1996, free space.
    McAuliffe,
}

/// Whether a claim of the paper holds here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Within its tolerance.
    Holds,
    /// Outside of it; the explanation says why.
    Fails,
    /// Not a pass or a failure: an observation.
    Note,
}

/// One claim of a paper, checked.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Claim {
    /// As in the list of claims: `B13`; parts as `B13 100 bytes`.
    pub id: String,
    /// What the paper says, in our words.
    pub text: String,
    /// The paper's figure.
    pub paper: String,
    /// Our figure.
    pub ours: String,
    /// Ours ÷ paper's, where both are numbers.
    pub ratio: Option<f64>,
    /// What is allowed: `=`, `5 %`, `shape`.
    pub tolerance: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Where it fails or surprises: what looking into it found. Empty else.
    pub explanation: String,
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
    /// Parameters used, assumptions where the paper leaves something open, what to see.
    pub notes: Vec<String>,
}

/// How an experiment is to run.
pub struct Settings<'a> {
    /// Smaller, for CI: rougher figures, same code; claims become [`Verdict::Note`] where the
    /// size matters to them.
    pub quick: bool,
    /// Of every random draw.
    pub seed: u64,
    /// What an access costs on a disk of today; see [`Settings::today`].
    pub price: &'a DiskPrice,
    /// Keeps what takes long, between runs of the program.
    pub parts: &'a dyn Parts,
    /// Told how much is done of how much, as often as the experiment likes.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

impl Settings<'_> {
    /// The disk of today, measured where nobody gave it.
    ///
    /// # Errors
    /// It cannot be measured.
    pub fn today(&self) -> Result<Priced> {
        self.price.get(self.parts)
    }
}

/// One figure or table of a paper, or one of ours beyond it.
pub trait Experiment: Sync {
    /// What the command line calls it: `biliris-5`, `mcauliffe-14`, `biliris-modern`.
    fn id(&self) -> &'static str;
    /// Whose it is.
    fn paper(&self) -> Paper;
    /// What the report puts above it.
    fn title(&self) -> &'static str;
    /// Whether it asks for the disk of today, whose price then is one of its parameters.
    fn uses_disk(&self) -> bool {
        false
    }
    /// Runs it.
    ///
    /// # Errors
    /// Whatever stops it; nothing of it is kept then.
    fn run(&self, settings: &Settings<'_>) -> Result<Outcome>;
}
