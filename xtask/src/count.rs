//! Figures of the tree: lines, words, methods, cycles.
//!
//! Owns no state. Lines are those of production code that are not empty, comments included.

use crate::source::{File, LABORATORY, PRODUCT, files};
use crate::{dependencies, documents, layers, sizes};
use anyhow::Result;
use std::path::Path;

/// The engine and what it stands on.
const ENGINE: [&str; 4] =
    ["crates/holdall-memory", "crates/holdall-io", "crates/holdall-core", "crates/holdall"];

/// Prints all figures.
///
/// # Errors
/// Files that cannot be read.
pub fn print(root: &Path) -> Result<()> {
    let files = files(root)?;
    let by_crate = sizes::by_crate(&files);
    println!("{:<28} {:>6} {:>8} {:>9}", "crate", "files", "lines", "longest");
    for house in [PRODUCT, LABORATORY] {
        let own = || by_crate.iter().filter(|(name, _)| name.split('/').next() == Some(house));
        for (name, size) in own() {
            println!("{name:<28} {:>6} {:>8} {:>9}", size.files, size.lines, size.longest);
        }
        let (count, lines) = (own().map(|c| c.1.files), own().map(|c| c.1.lines));
        println!("{house:<28} {:>6} {:>8}\n", count.sum::<usize>(), lines.sum::<usize>());
    }
    let engine: usize = ENGINE.iter().filter_map(|c| by_crate.get(c)).map(|c| c.lines).sum();
    println!("lines of io + core + engine          {engine:>7}");
    layer_lines(&files);
    let documents = documents::files(root)?;
    let words: usize = documents.iter().map(|f| documents::words(&f.text)).sum();
    println!("words of documents                   {words:>7}");
    println!("methods of Disk                      {:>7}", methods(&files, "pub trait Disk"));
    println!("methods of PageRead                  {:>7}", methods(&files, "pub trait PageRead"));
    println!("public modules of holdall            {:>7}", public_modules(&files));
    for house in [PRODUCT, LABORATORY] {
        let rings = sizes::circles(&files, house);
        for ring in &rings {
            println!("files in a circle: {}", ring.join(" "));
        }
        println!("circles of files in {house:<16} {:>7}", rings.len());
    }
    let others = dependencies::of_holdall(root)?.len();
    println!("crates of others that holdall needs  {others:>7}");
    Ok(())
}

fn layer_lines(files: &[File]) {
    for layer in layers::LAYERS {
        let (folder, file) =
            (format!("crates/holdall/src/{layer}/"), format!("crates/holdall/src/{layer}.rs"));
        let own = files.iter().filter(|f| f.path.starts_with(&folder) || f.path == file);
        let own: Vec<usize> = own.filter(|f| !f.is_test()).map(sizes::lines_of).collect();
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
