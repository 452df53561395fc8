//! Directories for experiments on a real disk.
//!
//! Owns: their names. One left by a process that was killed is removed by the next run.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::{Builder, TempDir};

const PREFIX: &str = ".scratch-";

/// A new empty directory in `base`, removed when the value is dropped.
///
/// # Errors
/// It cannot be made.
pub fn make(base: &Path) -> Result<TempDir> {
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let made = Builder::new().prefix(&prefix).tempdir_in(base);
    made.with_context(|| format!("cannot make a directory in {}", base.display()))
}

/// Removes the directories in `base` of processes that are no more. What cannot be removed
/// stays: it hinders no run.
pub fn clear(base: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|n| n.strip_prefix(PREFIX)?.split('-').next());
        let Some(owner) = owner.and_then(|o| o.parse::<u32>().ok()) else { continue };
        if !Path::new(&format!("/proc/{owner}")).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_process_left_goes() {
        let base = tempfile::tempdir().unwrap();
        let own = make(base.path()).unwrap();
        let dead = base.path().join(".scratch-4194999-x");
        fs::create_dir(&dead).unwrap();
        fs::write(dead.join("file"), b"x").unwrap();
        clear(base.path());
        assert!(own.path().is_dir());
        assert_eq!(dead.exists(), !Path::new("/proc/self").exists());
    }
}
