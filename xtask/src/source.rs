//! The Rust sources of the repository, and what of a file is production code.
//!
//! Owns: [`File`]. Test code is what lies in a folder `tests`, `benches`, `examples` or
//! `fuzz_targets`, in a file `tests.rs` or `tests_*.rs`, or below `#[cfg(test)]` to the end of
//! the item.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// One source file.
pub struct File {
    /// From the repository's folder on.
    pub path: String,
    /// All of it.
    pub text: String,
}

/// Where the product's crates lie.
pub const PRODUCT: &str = "crates";
/// Where the crates lie that measure it.
pub const LABORATORY: &str = "laboratory";

/// Folders that hold no sources of ours.
const PASSED_OVER: [&str; 4] = ["target", ".git", "corpus", "artifacts"];

/// All Rust files, sorted by path.
pub fn files(root: &Path) -> Result<Vec<File>> {
    let mut all = Vec::new();
    for path in paths(root, "rs")? {
        let text = std::fs::read_to_string(root.join(&path))
            .with_context(|| format!("reading {}", path.display()))?;
        all.push(File { path: path.to_string_lossy().into_owned(), text });
    }
    Ok(all)
}

/// Files of this extension, relative to `root`, sorted.
pub fn paths(root: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let mut all = all_paths(root)?;
    all.retain(|path| path.extension().is_some_and(|e| e == extension));
    Ok(all)
}

/// All files but hidden and built ones, relative to `root`, sorted.
pub fn all_paths(root: &Path) -> Result<Vec<PathBuf>> {
    // What is hidden is not ours: tools of tests keep files of theirs there.
    let hidden = |name: &std::ffi::OsStr| name.as_encoded_bytes().starts_with(b".");
    let named = |name: &std::ffi::OsStr| PASSED_OVER.iter().any(|p| name == *p) || hidden(name);
    let walk = WalkDir::new(root).into_iter();
    let walk = walk.filter_entry(|e| e.depth() == 0 || !named(e.file_name()));
    let mut all = Vec::new();
    for entry in walk {
        let entry = entry?;
        if !entry.file_type().is_dir() {
            all.push(entry.path().strip_prefix(root)?.to_path_buf());
        }
    }
    all.sort();
    Ok(all)
}

impl File {
    /// Whether all of it is test code or an example.
    pub fn is_test(&self) -> bool {
        let parts: Vec<&str> = self.path.split('/').collect();
        let folder =
            |p: &&str| matches!(*p, "tests" | "benches" | "examples" | "fuzz_targets" | "fuzz");
        let name = parts.last().unwrap_or(&"");
        parts.iter().any(folder)
            || *name == "tests.rs"
            || name.starts_with("tests_")
            || *name == "fixture.rs"
    }

    /// Its lines without test modules.
    pub fn production(&self) -> Vec<&str> {
        if self.is_test() {
            return Vec::new();
        }
        let (mut out, mut lines) = (Vec::new(), self.text.lines());
        while let Some(line) = lines.next() {
            if line.trim() == "#[cfg(test)]" {
                pass_item(&mut lines);
            } else {
                out.push(line);
            }
        }
        out
    }

    /// The folder of its crate, `crates/holdall` or `laboratory/papers`, if it lies in one.
    pub fn crate_folder(&self) -> Option<&str> {
        let (house, rest) = self.path.split_once('/')?;
        let (name, _) = rest.split_once('/')?;
        let known = house == PRODUCT || house == LABORATORY;
        known.then(|| &self.path[..house.len() + 1 + name.len()])
    }
}

/// Passes over the item that follows an attribute.
fn pass_item<'a>(lines: &mut impl Iterator<Item = &'a str>) {
    let (mut depth, mut begun) = (0_i64, false);
    for line in lines {
        let opens = line.matches('{').count() as i64;
        let closes = line.matches('}').count() as i64;
        depth += opens - closes;
        begun |= opens > 0 || line.trim_end().ends_with(';');
        if begun && depth <= 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_modules_are_no_production_code() {
        let text =
            "a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(test)]\nmod tests {\n  fn x() {\n  }\n}\nc\n";
        let file = File { path: "crates/holdall/src/a.rs".into(), text: text.into() };
        assert_eq!(file.production(), ["a", "b", "c"]);
        let file = File { path: "crates/holdall/tests/a.rs".into(), text: text.into() };
        assert!(file.production().is_empty());
    }
}
