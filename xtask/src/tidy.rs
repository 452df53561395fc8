//! The rules of the tree, checked one by one.
//!
//! Owns: headers and sizes of files; the rest is in the modules it calls. The length of
//! functions is Clippy's (`too_many_lines`).

use crate::source::File;
use crate::tree::Tree;
use crate::{dependencies, documents, figures, layers, names, sizes, source, words};
use anyhow::Result;
use std::path::Path;

/// Most lines of production code in a file.
const MOST_LINES: usize = 600;

/// Everything that is not as it should be.
///
/// # Errors
/// Files that cannot be read.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let files = source::files(root)?;
    let documents = documents::files(root)?;
    let mut out = of_files(&files);
    out.extend(layers::problems(root, &files)?);
    out.extend(sizes::problems(&files));
    out.extend(words::problems(&files, &documents));
    out.extend(documents::problems(root, &documents));
    out.extend(figures::problems(root, &documents)?);
    out.extend(dependencies::problems(root)?);
    out.extend(names::problems(&Tree::read(root, &files)?, &documents));
    Ok(out)
}

fn of_files(files: &[File]) -> Vec<String> {
    let mut out = Vec::new();
    for file in files {
        let first = file.text.lines().find(|line| !line.is_empty() && !line.starts_with("#!"));
        if !first.is_some_and(|line| line.starts_with("//!")) {
            out.push(format!("{}: has no header (//!) that says what it owns", file.path));
        }
        let lines = file.production().len();
        if lines > MOST_LINES {
            out.push(format!("{}: has {lines} lines, at most {MOST_LINES} are read", file.path));
        }
        for (n, line) in file.text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with("#[allow(") || line.starts_with("#![allow(") {
                out.push(format!("{}:{}: expect with a reason, not allow", file.path, n + 1));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_sizes_and_allows_are_told() {
        let file = |text: String| File { path: "crates/holdall/src/x.rs".into(), text };
        let bad = [
            file("use a;\n".into()),
            file("//! x\n".repeat(601)),
            file("//! x\n#[allow(dead_code)]\nfn f() {}\n".into()),
        ];
        assert_eq!(of_files(&bad).len(), 3);
        assert!(of_files(&[file("//! x\nfn f() {}\n".into())]).is_empty());
    }
}
