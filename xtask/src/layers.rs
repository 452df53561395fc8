//! The order of layers and crates.
//!
//! Owns: the two lists. A module knows only those listed before it; a crate depends only on
//! those that its line names.

use crate::imports::{paths, without_comments};
use crate::source::File;
use anyhow::{Context, Result};
use std::path::Path;

/// The engine's layers from the bottom up.
pub const LAYERS: [&str; 18] = [
    "prefetch",
    "stream",
    "log",
    "cache",
    "txn",
    "space",
    "page_map",
    "handle",
    "heap",
    "names",
    "sharing",
    "segment_tree",
    "object",
    "engine",
    "read",
    "write",
    "store",
    "maintain",
];

/// Each crate, and which of ours it may depend on.
const CRATES: [(&str, &[&str]); 14] = [
    ("holdall-io", &[]),
    ("holdall-core", &[]),
    ("holdall-plot", &[]),
    ("holdall-testkit", &["holdall-io"]),
    ("holdall", &["holdall-io", "holdall-core"]),
    ("holdall-sim", &["holdall-io", "holdall-core", "holdall", "holdall-testkit"]),
    ("holdall-report", &["holdall"]),
    ("holdall-server", &["holdall", "holdall-report"]),
    ("holdall-object-store", &["holdall"]),
    ("holdall-opendal", &["holdall"]),
    ("holdall-python", &["holdall", "holdall-report"]),
    ("holdall-cli", &["holdall-io", "holdall-core", "holdall", "holdall-report", "holdall-server"]),
    ("holdall-bench", &["holdall", "holdall-plot"]),
    ("holdall-lab", &["holdall-io", "holdall-core", "holdall", "holdall-plot", "holdall-testkit"]),
];

/// What contradicts the order.
pub fn problems(root: &Path, files: &[File]) -> Result<Vec<String>> {
    let mut out = Vec::new();
    for file in files.iter().filter(|f| !f.is_test()) {
        let Some(inside) = file.path.strip_prefix("crates/holdall/src/") else { continue };
        let own = inside.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        if own == "lib" {
            continue;
        }
        let Some(rank) = LAYERS.iter().position(|l| *l == own) else {
            out.push(format!("{}: {own} is no layer; name it in xtask/src/layers.rs", file.path));
            continue;
        };
        for path in paths(&without_comments(&file.production())) {
            let [first, to, ..] = path.as_slice() else { continue };
            let above = LAYERS.iter().position(|l| l == to).filter(|r| *r > rank);
            if first == "crate" && above.is_some() {
                out.push(format!("{}: layer {own} uses {to}, a layer above it", file.path));
            }
        }
    }
    for entry in std::fs::read_dir(root.join("crates"))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let manifest = folder.join("Cargo.toml");
        let text = std::fs::read_to_string(&manifest)
            .with_context(|| format!("reading {}", manifest.display()))?;
        out.extend(crate_problems(&name, &text));
    }
    out.sort();
    out.dedup();
    Ok(out)
}

fn crate_problems(name: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = CRATES.iter().find(|(known, _)| *known == name) else {
        return vec![format!("crates/{name}: not in the list of xtask/src/layers.rs")];
    };
    let needed = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let needed = needed.split("\n[").next().unwrap_or_default();
    let ours = needed.lines().filter_map(|line| {
        let dependency = line.split(['.', ' ', '=']).next()?;
        dependency.starts_with("holdall").then_some(dependency)
    });
    ours.filter(|dependency| !allowed.contains(dependency))
        .map(|dependency| format!("crates/{name}: may not depend on {dependency}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_upwards_and_a_crate_too_many_are_told() {
        let text = "//! x\nuse crate::store::Inner;\n".to_owned();
        let files = [File { path: "crates/holdall/src/log/mod.rs".into(), text }];
        let found = problems(&crate::root().unwrap(), &files).unwrap();
        assert_eq!(
            found,
            ["crates/holdall/src/log/mod.rs: layer log uses store, a layer above it"]
        );
        let manifest =
            "[dependencies]\nholdall.workspace = true\nrand = \"1\"\n[dev-dependencies]\n";
        assert_eq!(crate_problems("holdall-core", manifest).len(), 1);
        assert!(crate_problems("holdall-sim", manifest).is_empty());
    }
}
