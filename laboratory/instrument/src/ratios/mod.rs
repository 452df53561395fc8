//! One picture of kept runs, made from their `results.json` alone: every row's ratio to the best
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

/// Draws the runs in `folders` into the folder `into`, which exists. Of a workload that several
/// have, the first one's rows are shown. Workloads of which `space` names the id have a row for
/// disk ÷ logical, too.
///
/// # Errors
/// A folder without a `results.json` of such a run; those of the file system and of drawing.
pub fn draw(folders: &[impl AsRef<Path>], into: &Path, space: &[&str]) -> Result<()> {
    let mut results = Results::default();
    for folder in folders {
        let path = folder.as_ref().join(RESULTS);
        let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let read = serde_json::from_slice(&bytes)
            .with_context(|| format!("{} holds no results of a run", path.display()))?;
        results.add(read);
    }
    let panel = picture::panel(&results, space);
    let (width, height) = panel.size();
    let png = panel.png(width * 2, height * 2)?;
    replace(&into.join(format!("{PICTURE}.svg")), panel.svg().as_bytes())?;
    replace(&into.join(format!("{PICTURE}.png")), &png)
}

#[cfg(test)]
mod tests;
