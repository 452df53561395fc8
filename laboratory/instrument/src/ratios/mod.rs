//! One picture of a kept run, made from its `results.json` alone: every row's ratio to the best
//! other store.
//!
//! Owns: the files `ratios.svg` and `ratios.png`. Above one a store is better, also for times and
//! space, so that rows in which we lose are as visible as those in which we win.

mod picture;
mod read;

use crate::files::replace;
use crate::folder::RESULTS;
use anyhow::{Context as _, Result};
use read::Results;
use std::path::Path;

/// The picture's files, without their extensions.
const PICTURE: &str = "ratios";

/// Draws the run in `folder` into the folder `into`, which exists. Workloads of which `space`
/// names the id have a row for disk ÷ logical, too.
///
/// # Errors
/// There is no `results.json` of such a run; those of the file system and of drawing.
pub fn draw(folder: &Path, into: &Path, space: &[&str]) -> Result<()> {
    let path = folder.join(RESULTS);
    let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let results: Results = serde_json::from_slice(&bytes)
        .with_context(|| format!("{} holds no results of a run", path.display()))?;
    let panel = picture::panel(&results, space);
    let (width, height) = panel.size();
    let png = panel.png(width * 2, height * 2)?;
    replace(&into.join(format!("{PICTURE}.svg")), panel.svg().as_bytes())?;
    replace(&into.join(format!("{PICTURE}.png")), &png)
}

#[cfg(test)]
mod tests;
