//! Parts of experiments that take long, kept so that a run that was broken off goes on.
//!
//! Owns: [`Parts`] and the two there are: none, and files in a directory. A part is a text under
//! a name that says all it depends on; one written by another version of the program is not
//! there.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::files::replace;

/// Keeps results under names.
pub trait Parts: Sync {
    /// What was kept under `name`.
    fn load(&self, name: &str) -> Option<String>;

    /// Keeps `text` under `name`.
    ///
    /// # Errors
    /// It cannot be written.
    fn save(&self, name: &str, text: &str) -> Result<()>;
}

/// Keeps nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoParts;

impl Parts for NoParts {
    fn load(&self, _name: &str) -> Option<String> {
        None
    }

    fn save(&self, _name: &str, _text: &str) -> Result<()> {
        Ok(())
    }
}

/// One file each.
#[derive(Debug, Clone)]
pub struct PartFiles {
    /// Where; made when the first is kept.
    pub dir: PathBuf,
    /// Of the program.
    pub version: String,
    /// Whether what an earlier run kept is not used.
    pub afresh: bool,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: String,
    name: String,
    text: String,
}

impl PartFiles {
    fn path(&self, name: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        self.dir.join(name.chars().map(plain).collect::<String>() + ".json")
    }
}

impl Parts for PartFiles {
    fn load(&self, name: &str) -> Option<String> {
        if self.afresh {
            return None;
        }
        let file: File = serde_json::from_slice(&fs::read(self.path(name)).ok()?).ok()?;
        (file.version == self.version && file.name == name).then_some(file.text)
    }

    fn save(&self, name: &str, text: &str) -> Result<()> {
        fs::create_dir_all(&self.dir)
            .with_context(|| format!("cannot use {}", self.dir.display()))?;
        let file = File { version: self.version.clone(), name: name.into(), text: text.into() };
        replace(&self.path(name), &serde_json::to_vec(&file).context("writing a part as JSON")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_there_for_its_name_and_version_only() {
        let dir = tempfile::tempdir().unwrap();
        let parts = PartFiles { dir: dir.path().join("p"), version: "1".into(), afresh: false };
        assert_eq!(parts.load("a b"), None);
        parts.save("a b", "text").unwrap();
        assert_eq!(parts.load("a b").as_deref(), Some("text"));
        // The same file name, another name.
        assert_eq!(parts.load("a-b"), None);
        assert_eq!(PartFiles { version: "2".into(), ..parts.clone() }.load("a b"), None);
        assert_eq!(PartFiles { afresh: true, ..parts.clone() }.load("a b"), None);
        fs::write(parts.path("a b"), b"{\"version").unwrap();
        assert_eq!(parts.load("a b"), None);
    }

    #[test]
    fn two_experiments_may_keep_the_same_part_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let parts = PartFiles { dir: dir.path().into(), version: "1".into(), afresh: false };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..200).for_each(|_| parts.save("shared", "text").unwrap()));
            }
        });
        assert_eq!(parts.load("shared").as_deref(), Some("text"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing temporary is left");
    }
}
