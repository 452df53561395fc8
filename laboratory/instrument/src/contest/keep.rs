//! Cells kept in a directory, so that a run that was cut off goes on where it ended.
//!
//! Owns: [`Keep`] and its files: one for each workload, round and store, and the probes around
//! each round. A cell counts only
//! for the same program on the same machine with the same seed and sizes: a table must not mix
//! builds or machines.

use super::one::Cell;
use super::probe::Attempts;
use crate::files::{remove, replace};
use crate::version;
use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Stands in the place of a store in the name of a round's probes.
const PROBES: &str = "probes";

/// What measured a cell, and with what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Origin {
    /// The program's number and the hash of its file.
    program: String,
    machine: String,
    seed: u64,
    quick: bool,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    origin: Origin,
    cell: Cell,
}

/// A directory of cells.
#[derive(Debug)]
pub struct Keep {
    dir: PathBuf,
    origin: Origin,
}

impl Keep {
    /// Cells in `dir`, which is made if there is none, measured by this very program on
    /// `machine`.
    ///
    /// # Errors
    /// Those of making the directory.
    pub fn new(dir: &Path, machine: &str, seed: u64, quick: bool) -> Result<Self> {
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        let origin =
            Origin { program: version::of_program(), machine: machine.into(), seed, quick };
        Ok(Self { dir: dir.into(), origin })
    }

    fn path(&self, workload: &str, round: usize, store: &str) -> PathBuf {
        let store = store.replace(' ', "-");
        self.dir.join(format!("{workload}-{}-{store}.json", round + 1))
    }

    /// The cell kept for this turn, if there is one.
    ///
    /// # Errors
    /// It is of another program, machine, seed or size, or cannot be read.
    pub fn find(&self, workload: &str, round: usize, store: &str) -> Result<Option<Cell>> {
        let path = self.path(workload, round, store);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e).with_context(|| format!("reading {}", path.display())),
        };
        let kept: Kept = serde_json::from_slice(&bytes).with_context(|| {
            format!("{} holds no result of a run; remove it or keep elsewhere", path.display())
        })?;
        ensure!(
            kept.origin == self.origin,
            "{} was measured by another program or machine, or with another seed or --quick; \
             keep this run's results in another directory",
            path.display()
        );
        Ok(Some(kept.cell))
    }

    /// Keeps the cell of a turn.
    ///
    /// # Errors
    /// Those of writing it.
    pub fn put(&self, workload: &str, round: usize, store: &str, cell: &Cell) -> Result<()> {
        let kept = Kept { origin: self.origin.clone(), cell: cell.clone() };
        replace(&self.path(workload, round, store), &serde_json::to_vec(&kept)?)
    }

    /// Removes the cells of a round.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn forget(&self, workload: &str, round: usize, stores: &[&str]) -> Result<()> {
        for store in stores {
            remove(&self.path(workload, round, store))?;
        }
        Ok(())
    }

    /// The attempts at a round, if it was begun with a probe.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn attempts(&self, workload: &str, round: usize) -> Result<Option<Attempts>> {
        match std::fs::read(self.path(workload, round, PROBES)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Keeps the attempts at a round.
    ///
    /// # Errors
    /// Those of writing them.
    pub fn put_attempts(&self, workload: &str, round: usize, attempts: &Attempts) -> Result<()> {
        replace(&self.path(workload, round, PROBES), &serde_json::to_vec(attempts)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cell, Keep};

    fn cell(error: &str) -> Cell {
        Cell { figures: Vec::new(), error: Some(error.into()) }
    }

    #[test]
    fn a_turn_is_found_again_and_no_other() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        let keep = Keep::new(&dir.path().join("kept"), "here", 1, true)?;
        keep.put("w6", 0, "Holdall by OID", &cell("full"))?;
        let found = keep.find("w6", 0, "Holdall by OID")?;
        assert_eq!(found.and_then(|c| c.error).as_deref(), Some("full"));
        for (workload, round, store) in
            [("w6", 1, "Holdall by OID"), ("w5", 0, "Holdall by OID"), ("w6", 0, "files")]
        {
            assert!(keep.find(workload, round, store)?.is_none(), "{workload} {round} {store}");
        }
        Ok(())
    }

    #[test]
    fn a_cell_of_another_run_is_refused() -> anyhow::Result<()> {
        let dir = tempfile::tempdir()?;
        Keep::new(dir.path(), "here", 1, true)?.put("w1", 0, "files", &cell(""))?;
        for (machine, seed, quick) in [("there", 1, true), ("here", 2, true), ("here", 1, false)] {
            let error = Keep::new(dir.path(), machine, seed, quick)?.find("w1", 0, "files");
            let error = error.err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains("another directory"), "{machine} {seed} {quick}: {error:?}");
        }
        std::fs::write(dir.path().join("w1-1-files.json"), "{}")?;
        assert!(Keep::new(dir.path(), "here", 1, true)?.find("w1", 0, "files").is_err());
        Ok(())
    }
}
