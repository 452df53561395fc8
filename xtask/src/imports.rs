//! Who uses whom: the paths of `use` declarations and of expressions, resolved to files.
//!
//! Owns: [`Imports`]. Sources are read as text, not parsed: `crate::`, `super::` and `self::`
//! paths are followed to the file of the longest module path that exists. Names that macros
//! make, and glob imports of a parent, are not seen.

use crate::source::File;
use std::collections::{BTreeMap, BTreeSet};

/// Which files of one crate use which others.
pub struct Imports {
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Imports {
    /// Reads a crate, `folder` being that of its `lib.rs`.
    pub fn of(files: &[File], folder: &str) -> Self {
        let own: Vec<&File> =
            files.iter().filter(|f| f.path.starts_with(folder) && !f.is_test()).collect();
        let modules: BTreeMap<String, Vec<String>> =
            own.iter().map(|f| (f.path.clone(), module_of(&f.path, folder))).collect();
        let by_module: BTreeMap<&[String], &str> =
            modules.iter().map(|(file, module)| (module.as_slice(), file.as_str())).collect();
        let mut edges = BTreeMap::new();
        for file in &own {
            let code = without_comments(&file.production());
            let mut to = BTreeSet::new();
            for path in paths(&code) {
                let Some(absolute) = absolute(&path, &modules[&file.path]) else { continue };
                let longest =
                    (0..=absolute.len()).rev().find_map(|n| by_module.get(&absolute[..n]));
                if let Some(found) = longest.filter(|found| **found != file.path) {
                    to.insert((*found).to_owned());
                }
            }
            edges.insert(file.path.clone(), to);
        }
        Self { edges }
    }

    /// Groups of files that use each other in a circle.
    pub fn cycles(&self) -> Vec<Vec<&str>> {
        let files: Vec<&String> = self.edges.keys().collect();
        let reach: BTreeMap<&String, BTreeSet<&String>> =
            files.iter().map(|f| (*f, self.reachable(f))).collect();
        let (mut seen, mut out) = (BTreeSet::new(), Vec::new());
        for file in &files {
            if !seen.insert(*file) || !reach[file].contains(file) {
                continue;
            }
            let ring: Vec<&str> = files
                .iter()
                .filter(|g| reach[file].contains(*g) && reach[*g].contains(file))
                .map(|g| g.as_str())
                .collect();
            seen.extend(files.iter().filter(|g| ring.contains(&g.as_str())));
            out.push(ring);
        }
        out
    }

    fn reachable<'a>(&'a self, from: &String) -> BTreeSet<&'a String> {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            for to in self.edges.get(file).into_iter().flatten() {
                if seen.insert(to) {
                    next.push(to);
                }
            }
        }
        seen
    }
}

fn module_of(path: &str, folder: &str) -> Vec<String> {
    let inside = path.trim_start_matches(folder).trim_start_matches('/').trim_end_matches(".rs");
    let mut parts: Vec<String> = inside.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|p| p == "mod" || p == "lib" || p == "main") {
        parts.pop();
    }
    parts
}

/// Lines without comments, put together.
pub fn without_comments(lines: &[&str]) -> String {
    let code = lines.iter().filter(|line| !line.trim_start().starts_with("//"));
    code.map(|line| line.split(" // ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// All paths that begin with `crate`, `super` or `self`, braces expanded.
pub fn paths(code: &str) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    let starts = ["crate::", "super::", "self::"];
    let mut at = 0;
    while let Some((found, _)) =
        starts.iter().filter_map(|s| code[at..].find(s).map(|i| (at + i, s))).min()
    {
        let before = code[..found].chars().next_back();
        let inside = before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
        let end = if inside { found + 6 } else { read(&code[found..], &[], &mut out) + found };
        at = end.max(found + 6);
    }
    out
}

/// Reads one path, or a tree of them, from the start of `code`; returns where it ends.
fn read(code: &str, before: &[String], out: &mut Vec<Vec<String>>) -> usize {
    let (mut path, mut at) = (before.to_vec(), 0);
    loop {
        let rest = &code[at..];
        let space = rest.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        at += space;
        if rest.starts_with('{') {
            at += 1;
            loop {
                let trimmed = code[at..].trim_start();
                at = code.len() - trimmed.len();
                if trimmed.is_empty() {
                    return at;
                }
                if trimmed.starts_with('}') {
                    return at + 1;
                }
                if trimmed.starts_with(',') {
                    at += 1;
                    continue;
                }
                let used = read(trimmed, &path, out);
                at += used.max(1);
            }
        }
        let word = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').count();
        if word == 0 {
            out.push(path);
            return at;
        }
        path.push(rest[..word].to_owned());
        at += word;
        if !code[at..].starts_with("::") {
            out.push(path);
            return at;
        }
        at += 2;
    }
}

/// The path from the crate's root on.
fn absolute(path: &[String], module: &[String]) -> Option<Vec<String>> {
    let (first, rest) = path.split_first()?;
    let mut out = match first.as_str() {
        "crate" => Vec::new(),
        "self" => module.to_vec(),
        "super" => module.split_last()?.1.to_vec(),
        _ => return None,
    };
    for part in rest {
        if part == "super" {
            out.pop();
        } else {
            out.push(part.clone());
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_of_paths_are_expanded() {
        let code = "use super::{a, b::{C, self as d}, e::F};\nlet x = crate::g::h(my_crate::i);";
        let found: Vec<String> = paths(code).into_iter().map(|p| p.join("::")).collect();
        for path in ["super::a", "super::b::C", "super::e::F", "crate::g::h"] {
            assert!(found.iter().any(|f| f == path), "{path}: {found:?}");
        }
        assert!(!found.iter().any(|f| f.ends_with("::i")), "{found:?}");
    }

    #[test]
    fn circles_are_found() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let files = [
            file("c/src/lib.rs", "mod a; mod b; mod d;"),
            file("c/src/a.rs", "use super::b::B;"),
            file("c/src/b.rs", "fn f() { crate::a::g() }"),
            file("c/src/d.rs", "use crate::a::A;"),
        ];
        let imports = Imports::of(&files, "c/src");
        assert_eq!(imports.cycles(), [["c/src/a.rs", "c/src/b.rs"]]);
    }
}
