//! What the tree holds that a document may name: files, words of code, members, programs.
//!
//! Owns: [`Tree`]. It takes all from the files that are there, from no list of crates.

use crate::lexer::{Part, parts};
use crate::options::Program;
use crate::source::{self, File};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

/// Kinds of files whose words may be named; Rust's are read apart.
const TEXTS: [&str; 10] = ["py", "pyi", "sh", "js", "css", "html", "toml", "txt", "service", "go"];

/// Those of them in which functions are defined.
const SCRIPTS: [&str; 5] = ["py", "pyi", "sh", "js", "go"];

/// What a source file defines.
#[derive(Debug, Default)]
pub struct Defined {
    /// Types that it defines or has an `impl` of.
    pub types: HashSet<String>,
    /// Functions, types, constants and modules that a path of modules leads to.
    pub items: HashSet<String>,
    /// These, and what types have: methods, fields, variants.
    pub members: HashSet<String>,
}

/// All that may be named.
#[derive(Debug, Default)]
pub struct Tree {
    /// Files, from the repository's folder on.
    pub files: BTreeSet<String>,
    /// Their folders.
    pub folders: BTreeSet<String>,
    /// Names in code, and all words of scripts.
    pub names: HashSet<String>,
    /// These, words of strings, and names of files in them. Rust's comments are left out.
    pub words: HashSet<String>,
    /// By path, what Rust sources define.
    pub defined: BTreeMap<String, Defined>,
    /// Folders of packages by name.
    pub packages: BTreeMap<String, String>,
    /// Crates of others, as `use` names them.
    pub foreign: HashSet<String>,
    /// By package, what its command line takes.
    pub programs: BTreeMap<String, Program>,
    /// What `make` makes.
    pub targets: BTreeSet<String>,
}

impl Tree {
    /// Reads the tree. Cost: all its text files are read once.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn read(root: &Path, sources: &[File]) -> Result<Self> {
        let mut tree = Self::default();
        for path in source::all_paths(root)? {
            let shown = path.to_string_lossy().into_owned();
            let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
            let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
            if name == "Cargo.toml" {
                tree.add_package(&shown, &std::fs::read_to_string(root.join(&path))?);
            }
            if name == "Makefile" || TEXTS.contains(&ending) {
                let text = std::fs::read(root.join(&path))?;
                let text = String::from_utf8_lossy(&text);
                tree.add_words(&text);
                if SCRIPTS.contains(&ending) {
                    tree.names.extend(words(&text).map(str::to_owned));
                }
            }
            tree.add_path(&shown);
        }
        let makefile = std::fs::read_to_string(root.join("Makefile")).unwrap_or_default();
        tree.targets = makefile.lines().filter_map(target).map(str::to_owned).collect();
        for file in sources {
            tree.add_source(file);
        }
        for (package, folder) in &tree.packages {
            let source = format!("{folder}src/");
            tree.programs.insert(package.clone(), Program::of(sources, &source));
        }
        Ok(tree)
    }

    fn add_path(&mut self, path: &str) {
        for (at, _) in path.match_indices('/') {
            self.folders.insert(path[..at].to_owned());
        }
        self.files.insert(path.to_owned());
    }

    fn add_words(&mut self, text: &str) {
        self.words.extend(words(text).map(str::to_owned));
        // Files that commands make.
        let names = text.split(|c: char| !c.is_alphanumeric() && !"_.-".contains(c));
        self.words.extend(names.filter(|n| n.contains('.')).map(str::to_owned));
    }

    fn add_source(&mut self, file: &File) {
        for part in parts(&file.text) {
            match part {
                Part::Name(name) => {
                    self.words.insert(name.to_owned());
                    self.names.insert(name.to_owned());
                }
                // Strings here hold names that do not exist, for tests of this very check.
                Part::Text(text) if !file.path.starts_with("xtask/") => self.add_words(&text),
                Part::Text(_) | Part::Comment(_) => {}
            }
        }
        self.defined.insert(file.path.clone(), defined(&file.text));
    }

    fn add_package(&mut self, path: &str, manifest: &str) {
        let folder = path.trim_end_matches("Cargo.toml");
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            } else if let Some((key, value)) = line.split_once('=') {
                let key = key.split('.').next().unwrap_or_default().trim();
                if section == "[package]" && key == "name" {
                    let name = value.trim().trim_matches('"').to_owned();
                    self.packages.insert(name, folder.to_owned());
                } else if section.contains("dependencies") && !value.contains("path =") {
                    self.foreign.insert(key.replace('-', "_"));
                }
            }
        }
    }

    /// The package whose program this is: its own name, or the name that the command line goes by.
    pub fn program(&self, name: &str) -> Option<&Program> {
        let package = if name == "holdall" { "holdall-cli" } else { name };
        let program = self.programs.get(package)?;
        let has_any = !program.options.is_empty() || !program.subcommands.is_empty();
        has_any.then_some(program)
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.filter(|word| !word.is_empty())
}

/// The name before the colon of a rule.
fn target(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(':')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (!name.is_empty() && !rest.starts_with('=') && name.chars().all(is_name)).then_some(name)
}

/// Reads a source line by line, laid out as rustfmt does.
fn defined(text: &str) -> Defined {
    const PASSED: [&str; 7] =
        ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "static"];
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = Defined::default();
    for line in text.lines().filter(|l| !l.trim_start().starts_with("//")) {
        let passed = |w: &&str| PASSED.contains(w) || w.starts_with("pub(");
        let mut words = line.split_whitespace().skip_while(passed);
        let Some(first) = words.next() else { continue };
        let identifier = |w: &str| w[..w.find(|c| !word(c)).unwrap_or(w.len())].to_owned();
        let mut names: Vec<String> = Vec::new();
        match first {
            "fn" | "mod" | "macro_rules!" => names.extend(words.next().map(identifier)),
            "struct" | "enum" | "trait" | "type" | "union" => {
                names.extend(words.next().map(identifier));
                out.types.extend(names.clone());
            }
            "use" if line.starts_with("pub") => {
                names.extend(line.split(|c| !word(c)).map(str::to_owned));
            }
            _ if first.starts_with("impl") => {
                out.types.extend(line.split(|c| !word(c)).map(str::to_owned));
            }
            // A field, a variant or a constant.
            _ => {
                let name = identifier(first);
                let behind = line[line.find(first).unwrap_or(0) + name.len()..].trim_start();
                let ends = behind.is_empty() || behind.starts_with([',', '(', '{', ':', '=']);
                names.extend(Some(name).filter(|name| !name.is_empty() && ends));
            }
        }
        if !line.starts_with(' ') {
            out.items.extend(names.clone());
        }
        out.members.extend(names);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_define_what_they_define() {
        let text = "pub struct A<T> {\n    pub(crate) field: u8,\n}\nimpl Disk for A<u8> {\n    pub const fn get(&self) { other.call(); }\n}\n\
                    enum B {\n    One,\n    Two(u8),\n}\nconst MOST: u8 = 1;\n// fn gone() {}\n";
        let found = defined(text);
        for name in ["A", "field", "get", "One", "Two", "MOST"] {
            assert!(found.members.contains(name), "{name}");
        }
        for name in ["gone", "call", "other"] {
            assert!(!found.members.contains(name), "{name}");
        }
        assert!(found.types.contains("Disk") && found.types.contains("B"));
        assert!(found.items.contains("MOST") && !found.items.contains("get"));
        assert_eq!(target("s3-tests: x"), Some("s3-tests"));
        assert!(target("\tx: y").is_none() && target("A := b").is_none());
    }
}
