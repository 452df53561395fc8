//! Figures of the tree: lines, words, methods, cycles.
//!
//! Owns no state. Lines are those of production code that are not empty, comments included.

use crate::imports::Imports;
use crate::source::{File, files};
use crate::{dependencies, documents, layers};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// The engine and what it stands on.
const ENGINE: [&str; 3] = ["holdall-io", "holdall-core", "holdall"];

/// Prints all figures.
///
/// # Errors
/// Files that cannot be read.
pub fn print(root: &Path) -> Result<()> {
    let files = files(root)?;
    let mut by_crate: BTreeMap<&str, (usize, usize, usize)> = BTreeMap::new();
    for file in files.iter().filter(|f| !f.is_test()) {
        let Some(name) = file.crate_name() else { continue };
        let lines = lines_of(file);
        let entry = by_crate.entry(name).or_default();
        *entry = (entry.0 + 1, entry.1 + lines, entry.2.max(lines));
    }
    println!("{:<16} {:>6} {:>8} {:>9}", "crate", "files", "lines", "longest");
    for (name, (count, lines, longest)) in &by_crate {
        println!("{name:<16} {count:>6} {lines:>8} {longest:>9}");
    }
    let engine: usize = ENGINE.iter().filter_map(|c| by_crate.get(c)).map(|c| c.1).sum();
    println!("\nlines of io + core + engine          {engine:>7}");
    layer_lines(&files);
    let documents = documents::files(root)?;
    let words: usize = documents.iter().map(|f| documents::words(&f.text)).sum();
    println!("words of documents                   {words:>7}");
    println!("methods of Disk                      {:>7}", methods(&files, "pub trait Disk"));
    println!("methods of PageRead                  {:>7}", methods(&files, "pub trait PageRead"));
    println!("public modules of holdall            {:>7}", public_modules(&files));
    let mut rings = 0;
    for name in ENGINE {
        for ring in Imports::of(&files, &format!("crates/{name}/src")).cycles() {
            rings += 1;
            println!("files in a circle: {}", ring.join(" "));
        }
    }
    println!("circles of files in the engine       {rings:>7}");
    let others = dependencies::of_holdall(root)?.len();
    println!("crates of others that holdall needs  {others:>7}");
    Ok(())
}

fn lines_of(file: &File) -> usize {
    file.production().iter().filter(|line| !line.trim().is_empty()).count()
}

fn layer_lines(files: &[File]) {
    for layer in layers::LAYERS {
        let (folder, file) =
            (format!("crates/holdall/src/{layer}/"), format!("crates/holdall/src/{layer}.rs"));
        let own = files.iter().filter(|f| f.path.starts_with(&folder) || f.path == file);
        let own: Vec<usize> = own.filter(|f| !f.is_test()).map(lines_of).collect();
        println!("  {layer:<14} {:>3} files {:>6} lines", own.len(), own.iter().sum::<usize>());
    }
}

/// Methods that a trait declares.
fn methods(files: &[File], declaration: &str) -> usize {
    let with = |f: &&File| f.text.contains(declaration) && !f.path.starts_with("xtask");
    let Some(file) = files.iter().find(with) else { return 0 };
    let body = file.text.split(declaration).nth(1).unwrap_or_default();
    let body = body.split("\n}").next().unwrap_or_default();
    body.lines().filter(|line| line.starts_with("    fn ")).count()
}

fn public_modules(files: &[File]) -> usize {
    let lib = files.iter().find(|f| f.path == "crates/holdall/src/lib.rs");
    lib.map_or(0, |f| f.text.lines().filter(|line| line.starts_with("pub mod ")).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_of_a_trait_are_counted() {
        let text = "//! x\npub trait Disk: Send {\n    fn a(&self);\n    fn b(&self) {\n    }\n}\nfn c() {}\n";
        let file = File { path: "crates/holdall-io/src/disk.rs".into(), text: text.into() };
        assert_eq!(methods(&[file], "pub trait Disk"), 2);
    }
}
