//! What a transaction frees, until its commit.
//!
//! Owns: [`FreedRuns`], whose memory grows with the gaps between freed pages, not with their number.

use holdall_core::{Error, PageRun, Result, RunSet};

/// Pages that a transaction frees.
#[derive(Debug, Default)]
pub struct FreedRuns {
    pages: RunSet,
    segments: RunSet,
    /// Directories of spaces that it gives up; no other page joins them to a run.
    directories: Vec<PageRun>,
}

impl FreedRuns {
    /// Adds a run, of segment data or of pages.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if any of it is freed already.
    pub fn add(&mut self, run: PageRun, segment: bool) -> Result<()> {
        let twice = |set: &RunSet| set.overlapping(run.start.0, run.end()).next();
        if let Some(twice) = twice(&self.pages).or_else(|| twice(&self.segments)) {
            return Err(Error::page(twice.start, "is in use twice, and was freed twice"));
        }
        let set = if segment { &mut self.segments } else { &mut self.pages };
        set.insert(run);
        Ok(())
    }

    /// Adds directories of spaces that are given up.
    pub(super) fn add_directories(&mut self, directories: Vec<PageRun>) {
        self.directories.extend(directories);
    }

    /// All but directories, and whether a run is of segment data.
    pub fn in_bitmaps(&self) -> impl Iterator<Item = (PageRun, bool)> + '_ {
        let pages = self.pages.iter().map(|run| (run, false));
        pages.chain(self.segments.iter().map(|run| (run, true)))
    }

    /// All, and whether a run is of segment data.
    pub fn iter(&self) -> impl Iterator<Item = (PageRun, bool)> + '_ {
        self.in_bitmaps().chain(self.directories.iter().map(|run| (*run, false)))
    }

    /// The number of directories.
    pub fn spaces(&self) -> u64 {
        self.directories.len() as u64
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }
}
