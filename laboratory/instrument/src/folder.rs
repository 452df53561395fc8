//! The folder of a published run: `<date>-<commit>` with `results.json`, `tables.md`, drawings.
//!
//! Owns: the folder's name, and the state beside the measured files that lets the same command
//! go on where it stopped. The state is removed when the run is complete.

use crate::files::replace;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// All that was measured.
pub const RESULTS: &str = "results.json";
/// What the program prints.
pub const TABLES: &str = "tables.md";
/// The folder of the workloads' drawings.
pub const PLOTS: &str = "plots";
/// Below the directory that is measured: a folder for each run that is not complete.
const STATES: &str = "holdall-bench-kept";
/// In that folder: which results it is of.
const RUN: &str = "run.json";
/// In that folder: locked while the run goes on.
const LOCK: &str = "lock";
/// In that folder: the stores that are measured.
const WORK: &str = "work";

/// When and of what a run was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Begun {
    /// The folder's name.
    pub name: String,
    /// The day, UTC.
    pub date: String,
    /// Seconds since 1970: runs of one day have an order.
    #[serde(default)]
    pub seconds: u64,
    /// The commit of the directory the program was started in.
    pub commit: String,
}

/// A published run.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    state: PathBuf,
    begun: Begun,
    /// Held as long as the run lasts.
    _lock: File,
}

impl Folder {
    /// The folder below `into` of the run that `options` describe, which is begun now or goes
    /// on. Its state lies below `dir`.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn begin(into: &Path, dir: &Path, options: &str) -> Result<Self> {
        std::fs::create_dir_all(into).with_context(|| format!("making {}", into.display()))?;
        let into = into.canonicalize()?;
        let mut hash = DefaultHasher::new();
        (&into, options).hash(&mut hash);
        let state = dir.join(STATES).join(format!("{:016x}", hash.finish()));
        std::fs::create_dir_all(&state).with_context(|| format!("making {}", state.display()))?;
        let lock = File::create(state.join(LOCK))?;
        lock.try_lock().context("the same run goes on in another process")?;
        // What a run that was killed left.
        let work = state.join(WORK);
        if work.exists() {
            std::fs::remove_dir_all(&work)
                .with_context(|| format!("removing {}", work.display()))?;
        }
        std::fs::create_dir(&work)?;
        let run = state.join(RUN);
        let begun = if run.exists() {
            serde_json::from_slice(&std::fs::read(&run)?)
                .with_context(|| format!("reading {}", run.display()))?
        } else {
            let (now, commit) = (SystemTime::now(), commit());
            let date = date(now);
            let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
            let name = free(&into, &name(&date, &commit));
            let begun = Begun { name, date, seconds, commit };
            replace(&run, &serde_json::to_vec(&begun)?)?;
            begun
        };
        let path = into.join(&begun.name);
        std::fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Self { path, state, begun, _lock: lock })
    }

    /// Where the results are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where cells are kept until the run is complete.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Where stores are made; empty at first.
    pub fn work(&self) -> PathBuf {
        self.state.join(WORK)
    }

    /// When and of what the run was begun.
    pub fn begun(&self) -> &Begun {
        &self.begun
    }

    /// Writes a file of the folder, in place of what it held.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        replace(&self.path.join(name), text.as_bytes())
    }

    /// Removes the state: the same command then begins a new run.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn complete(&self) -> Result<()> {
        std::fs::remove_dir_all(&self.state)?;
        if let Some(states) = self.state.parent() {
            // Other runs' states may be there.
            let _ = std::fs::remove_dir(states);
        }
        Ok(())
    }
}

fn name(date: &str, commit: &str) -> String {
    format!("{date}-{commit}")
}

/// Below `into`, a new folder for a run of `what` that began on a day, of a commit.
///
/// # Errors
/// Those of the file system.
pub fn make(into: &Path, date: &str, commit: &str, what: &str) -> Result<PathBuf> {
    std::fs::create_dir_all(into).with_context(|| format!("making {}", into.display()))?;
    let path = into.join(free(into, &format!("{}-{what}", name(date, commit))));
    std::fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
    Ok(path)
}

/// The day of today, UTC.
#[must_use]
pub fn today() -> String {
    date(SystemTime::now())
}

/// `name`, or with a number behind it if another run has that name.
fn free(into: &Path, name: &str) -> String {
    let numbered = (2..).map(|n: u32| format!("{name}-{n}"));
    let mut all = std::iter::once(name.to_owned()).chain(numbered);
    all.find(|name| !into.join(name).exists()).unwrap_or_else(|| name.to_owned())
}

/// The day of a time, UTC.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let mut days = seconds / 86_400;
    let leap = |y: u64| y.is_multiple_of(4) && !y.is_multiple_of(100) || y.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year:04}-{month:02}-{:02}", days + 1)
}

/// The commit of the current directory, with `-dirty` if files of it are changed; "unknown"
/// if there is no git. Files that git does not track are no change: results are such files.
#[must_use]
pub fn commit() -> String {
    let git = |args: &[&str]| {
        let out = Command::new("git").args(args).output().ok()?;
        out.status.success().then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else { return "unknown".into() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
    if changed.is_some_and(|c| c.is_empty()) { commit } else { commit + "-dirty" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn names_are_day_and_commit() {
        let day = |days: u64| date(UNIX_EPOCH + Duration::from_secs(days * 86_400 + 86_399));
        assert_eq!(day(0), "1970-01-01");
        assert_eq!(day(11_016), "2000-02-29");
        assert_eq!(day(11_017), "2000-03-01");
        assert_eq!(day(20_779), "2026-11-22");
        assert_eq!(day(20_818), "2026-12-31");
        assert_eq!(name("2026-11-22", "2d44270-dirty"), "2026-11-22-2d44270-dirty");
    }

    #[test]
    fn a_run_goes_on_in_its_folder_until_it_is_complete() {
        let (dir, into) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let begin = |options| Folder::begin(into.path(), dir.path(), options).unwrap();
        let first = begin("peers");
        assert_eq!(first.begun().name, name(&first.begun().date, &first.begun().commit));
        let begun = first.begun().clone();
        let error = Folder::begin(into.path(), dir.path(), "peers").map(|_| ());
        assert!(error.unwrap_err().to_string().contains("another process"));
        std::fs::write(first.work().join("left"), "").unwrap();
        drop(first);
        let first = begin("peers");
        assert_eq!(first.begun(), &begun);
        assert_eq!(std::fs::read_dir(first.work()).unwrap().count(), 0);
        let other = begin("w8");
        assert_eq!(other.begun().name, format!("{}-2", first.begun().name));
        first.complete().unwrap();
        assert_eq!(begin("peers").begun().name, format!("{}-3", first.begun().name));
        assert!(first.path().exists() && other.state().exists());
    }
}
