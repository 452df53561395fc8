//! Records of experiments on disk.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use crate::picture::Panel;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::experiment::Outcome;
use crate::files::{remove, replace};
use crate::price::Price;
use crate::{folder, scratch, system};

/// Raised when the record's fields change; records of another format are not used.
const FORMAT: u32 = 3;
const NAME: &str = "outcome.json";
/// Pixels per point of the PNGs.
const ZOOM: u32 = 2;

/// What a run was asked for. Two runs with equal parameters give the same outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameters {
    /// Smaller, for CI.
    pub quick: bool,
    /// Of every random draw.
    pub seed: u64,
    /// Of the program: its number and the hash of its file.
    pub version: String,
    /// The disk of today, if it was given and the experiment asks for it.
    #[serde(default)]
    pub disk: Option<Price>,
    /// How often what is timed is repeated, if the experiment times anything.
    #[serde(default)]
    pub repetitions: Option<u32>,
}

/// When, where and of what an experiment ran, for those who cite it. Nothing in it names the
/// machine or its owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// The day, UTC.
    pub date: String,
    /// Of the directory the program was started in; `unknown` without git.
    pub commit: String,
    /// Processor, memory, kernel, file system.
    pub machine: String,
}

impl Origin {
    /// Now, of this directory's commit, on the file system of `dir`.
    #[must_use]
    pub fn now(dir: &Path) -> Self {
        Self { date: folder::today(), commit: folder::commit(), machine: system::machine(dir) }
    }
}

/// One experiment's run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Of this file.
    pub format: u32,
    /// The experiment's name.
    pub id: String,
    /// Whose it is: the name of a paper.
    pub paper: String,
    /// Above it in the report.
    pub title: String,
    /// What it ran with.
    pub parameters: Parameters,
    /// When, where and of what it ran.
    pub origin: Origin,
    /// How long it ran.
    pub seconds: f64,
    /// What came out.
    pub outcome: Outcome,
}

impl Record {
    /// A record of the format of today.
    #[must_use]
    pub fn new(
        experiment: &dyn crate::experiment::Experiment,
        paper: &str,
        parameters: Parameters,
        origin: Origin,
        seconds: f64,
        outcome: Outcome,
    ) -> Self {
        Self {
            format: FORMAT,
            id: experiment.id().to_string(),
            paper: paper.to_owned(),
            title: experiment.title().to_string(),
            parameters,
            origin,
            seconds,
            outcome,
        }
    }

    /// Reads the record of experiment `id` under `dir`; `None` if there is none that can be
    /// read, or one of another format.
    #[must_use]
    pub fn read(dir: &Path, id: &str) -> Option<Self> {
        let bytes = fs::read(dir.join(id).join(NAME)).ok()?;
        let record: Self = serde_json::from_slice(&bytes).ok()?;
        (record.format == FORMAT && record.id == id).then_some(record)
    }

    /// Reads every record under `dir`, those named by `order` first and in that order.
    ///
    /// # Errors
    /// `dir` cannot be listed.
    pub fn read_all(dir: &Path, order: &[&str]) -> Result<Vec<Self>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir).with_context(|| shown(dir))? {
            let name = entry.with_context(|| shown(dir))?.file_name();
            names.extend(name.into_string().ok());
        }
        let rank = |name: &String| order.iter().position(|id| id == name).unwrap_or(order.len());
        names.sort_by_key(|name| (rank(name), name.clone()));
        Ok(names.iter().filter_map(|name| Self::read(dir, name)).collect())
    }

    /// Writes everything of the experiment under `dir`: per panel a CSV, an SVG and a PNG, per
    /// table a CSV, and at last the record itself. Files of an earlier record that this one no
    /// longer has are removed.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let own = dir.join(&self.id);
        fs::create_dir_all(&own).with_context(|| shown(&own))?;
        let before = Self::read(dir, &self.id).map_or_else(HashSet::new, |old| old.files());
        remove(&own.join(NAME))?;
        self.write_drawings(dir)?;
        for stale in before.difference(&self.files()) {
            remove(&own.join(stale))?;
        }
        let json = serde_json::to_vec_pretty(self).context("writing the record as JSON")?;
        replace(&own.join(NAME), &json)
    }

    /// Writes the drawings and numbers again, as [`Self::write`] does, without the record.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_drawings(&self, dir: &Path) -> Result<()> {
        let own = dir.join(&self.id);
        let (panels, tables) = self.names();
        for (panel, name) in self.outcome.panels.iter().zip(&panels) {
            let (width, height) = panel.size();
            replace(&own.join(format!("{name}.csv")), panel.csv().as_bytes())?;
            replace(&own.join(format!("{name}.svg")), panel.svg().as_bytes())?;
            replace(&own.join(format!("{name}.png")), &panel.png(width * ZOOM, height * ZOOM)?)?;
        }
        for (table, name) in self.outcome.tables.iter().zip(&tables) {
            replace(&own.join(format!("{name}.csv")), table.csv().as_bytes())?;
        }
        Ok(())
    }

    /// Whether every drawing and every CSV is there.
    #[must_use]
    pub fn is_complete(&self, dir: &Path) -> bool {
        let own = dir.join(&self.id);
        self.files().iter().all(|name| own.join(name).is_file())
    }

    /// Names of the files without their endings: of the panels, of the tables. Different ones,
    /// and plain even if an experiment's name for its panel is not.
    #[must_use]
    pub fn names(&self) -> (Vec<String>, Vec<String>) {
        let mut used = HashSet::new();
        let mut name = |id: &str| {
            let plain =
                |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
            let stem: String = id.chars().map(plain).collect();
            let stem = if stem.is_empty() { "panel".to_string() } else { stem };
            let mut name = stem.clone();
            let mut count = 2;
            while !used.insert(name.clone()) {
                name = format!("{stem}-{count}");
                count += 1;
            }
            name
        };
        let panels = self.outcome.panels.iter().map(|p: &Panel| name(&p.id)).collect();
        let tables = self.outcome.tables.iter().map(|t| name(&t.id)).collect();
        (panels, tables)
    }

    fn files(&self) -> HashSet<String> {
        let (panels, tables) = self.names();
        let drawn = panels.iter().flat_map(|n| ["csv", "svg", "png"].map(|e| format!("{n}.{e}")));
        drawn.chain(tables.iter().map(|n| format!("{n}.csv"))).collect()
    }
}

/// Makes `dir` if it is missing and makes sure that files can be written there.
///
/// # Errors
/// It cannot be made, is not a directory, or takes no files.
pub fn prepare(dir: &Path) -> Result<()> {
    let failed = || format!("cannot write to the output directory {}", dir.display());
    fs::create_dir_all(dir).with_context(failed)?;
    scratch::clear(dir);
    let probe = tempfile::NamedTempFile::new_in(dir).with_context(failed)?;
    probe.close().with_context(failed)
}

fn shown(path: &Path) -> String {
    format!("cannot use {}", path.display())
}
