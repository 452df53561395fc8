//! How large each crate is and how many circles of files each house has, with their limits.
//!
//! Owns: the limits. Lines are those of production code that are not empty, comments included.
//! A limit follows its figure down; it is raised only with a reason in the same commit.

use crate::imports::Imports;
use crate::source::{File, LABORATORY, PRODUCT};
use std::collections::BTreeMap;

/// Most lines of a crate, or of a house.
const LINES: [(&str, usize); 5] = [
    // The gate, and the picture of ratios that was the workloads'.
    // Contestants with settings and notes of their own: servers and packages are contests too.
    // A report that can be cited, its counts and failures first, and claims kept for documents; names
    // with places, which were the papers'. Rows that cannot hold today are counted apart.
    // One picture of several runs: all workloads in three rounds take longer than a machine is quiet.
    ("laboratory/instrument", 7_232),
    ("laboratory/peers", 920),
    // What the report prints of claims, plots and experiments is data beside the code.
    ("laboratory/papers", 18_000),
    // A script that prints no figure is ended; each part begins with nothing left to write.
    // One command makes the stores that show the scale.
    // A store in a bucket beside the S3 client and three file systems over buckets.
    // Copies from a mapping as the limit of hot gets.
    // Workloads by choice.
    ("laboratory/workloads", 8_501),
    // With these.
    (LABORATORY, 34_633),
];
/// Most circles of files in a house.
const CIRCLES: [(&str, usize); 2] = [(PRODUCT, 5), (LABORATORY, 0)];

/// What a crate has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Files of production code.
    pub files: usize,
    /// Their lines.
    pub lines: usize,
    /// Lines of the longest.
    pub longest: usize,
}

/// The size of each crate, by its folder.
pub fn by_crate(files: &[File]) -> BTreeMap<&str, Size> {
    let mut sizes: BTreeMap<&str, Size> = BTreeMap::new();
    for file in files.iter().filter(|f| !f.is_test()) {
        let Some(folder) = file.crate_folder() else { continue };
        let (lines, size) = (lines_of(file), sizes.entry(folder).or_default());
        size.files += 1;
        size.lines += lines;
        size.longest = size.longest.max(lines);
    }
    sizes
}

/// Lines of a file that are not empty.
pub fn lines_of(file: &File) -> usize {
    file.production().iter().filter(|line| !line.trim().is_empty()).count()
}

/// Files of each crate of a house that use each other in a circle.
pub fn circles(files: &[File], house: &str) -> Vec<Vec<String>> {
    let mut rings = Vec::new();
    for folder in by_crate(files).keys().filter(|f| f.split('/').next() == Some(house)) {
        let imports = Imports::of(files, &format!("{folder}/src"));
        let found = imports.cycles().into_iter();
        rings.extend(found.map(|ring| ring.into_iter().map(str::to_owned).collect::<Vec<_>>()));
    }
    rings
}

/// What is over its limit.
pub fn problems(files: &[File]) -> Vec<String> {
    let sizes = by_crate(files);
    let mut out = Vec::new();
    for (name, most) in LINES {
        let own = |folder: &str| folder == name || folder.split('/').next() == Some(name);
        let lines: usize = sizes.iter().filter(|s| own(s.0)).map(|s| s.1.lines).sum();
        if lines > most {
            out.push(format!("{name} has {lines} lines, its budget is {most}"));
        }
    }
    for (house, most) in CIRCLES {
        let rings = circles(files, house);
        if rings.len() > most {
            let (found, last) = (rings.len(), rings.last().map(|r| r.join(" ")));
            out.push(format!(
                "{house} has {found} circles of files, at most {most}: one is {}",
                last.unwrap_or_default()
            ));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_circles_are_held_to_their_limits() {
        let file = |path: String, text: String| File { path, text };
        let long = file(format!("{}/src/lib.rs", LINES[0].0), "x\n\n".repeat(LINES[0].1));
        assert_eq!(by_crate(std::slice::from_ref(&long))[LINES[0].0].lines, LINES[0].1);
        assert!(problems(&[long]).is_empty());
        let longer = file(format!("{}/src/lib.rs", LINES[0].0), "x\n".repeat(LINES[0].1 + 1));
        assert_eq!(problems(&[longer]).len(), 1);
        let pair = |n: usize| {
            let path = |name: &str| format!("crates/c{n}/src/{name}.rs");
            [("a", "use super::b::B;"), ("b", "use super::a::A;")]
                .map(|(name, text)| file(path(name), text.into()))
        };
        let rings: Vec<File> = (0..=CIRCLES[0].1).flat_map(pair).collect();
        assert_eq!(circles(&rings, PRODUCT).len(), CIRCLES[0].1 + 1);
        assert!(circles(&rings, LABORATORY).is_empty());
        assert_eq!(problems(&rings).len(), 1, "{:?}", problems(&rings));
    }
}
