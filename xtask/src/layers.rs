//! The order of layers and crates.
//!
//! Owns: the lists. A module knows only those listed before it; a crate depends only on
//! those that its line names.

use crate::imports::{paths, without_comments};
use crate::source::{File, LABORATORY, PRODUCT};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// The engine's layers from the bottom up.
pub const LAYERS: [&str; 22] = [
    "lock",
    "metrics",
    "prefetch",
    "log",
    "cache",
    "images",
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
    "backup",
    "salvage",
];

/// The server's layers from the bottom up. Doors that stand side by side know nothing of each other.
const SERVER: [&[&str]; 11] = [
    &["error"],
    &["refusal"],
    &["config"],
    &["users"],
    &["http"],
    &["objects"],
    &["s3", "dav"],
    &["metrics", "reload"],
    &["web"],
    &["sweep"],
    &["front"],
];

/// The folder of each crate, and which of ours it may depend on.
const CRATES: [(&str, &[&str]); 18] = [
    ("crates/holdall-memory", &[]),
    ("crates/holdall-io", &["holdall-memory"]),
    ("crates/holdall-core", &["holdall-memory"]),
    ("crates/holdall-testkit", &["holdall-io"]),
    ("crates/holdall", &["holdall-io", "holdall-core"]),
    ("crates/holdall-sim", &["holdall-io", "holdall-core", "holdall", "holdall-testkit"]),
    ("crates/holdall-report", &["holdall"]),
    ("crates/holdall-control", &["holdall"]),
    ("crates/holdall-bucket", &["holdall-core", "holdall"]),
    ("crates/holdall-server", &["holdall", "holdall-control", "holdall-report"]),
    ("crates/holdall-object-store", &["holdall", "holdall-bucket"]),
    ("crates/holdall-opendal", &["holdall"]),
    ("crates/holdall-python", &["holdall", "holdall-bucket", "holdall-control", "holdall-report"]),
    (
        "crates/holdall-cli",
        &[
            "holdall-io",
            "holdall-core",
            "holdall",
            "holdall-bucket",
            "holdall-control",
            "holdall-report",
            "holdall-server",
        ],
    ),
    ("laboratory/instrument", &[]),
    ("laboratory/workloads", &["holdall", "holdall-bucket", "holdall-instrument"]),
    ("laboratory/peers", &["holdall-bench"]),
    (
        "laboratory/papers",
        &["holdall-io", "holdall-core", "holdall", "holdall-instrument", "holdall-testkit"],
    ),
];

/// What contradicts the order.
pub fn problems(root: &Path, files: &[File]) -> Result<Vec<String>> {
    let mut out =
        layer_problems(files, "crates/holdall/src/", &LAYERS.each_ref().map(std::slice::from_ref));
    out.extend(layer_problems(files, "crates/holdall-server/src/", &SERVER));
    for house in [PRODUCT, LABORATORY] {
        for entry in std::fs::read_dir(root.join(house))? {
            let folder = entry?.path();
            // The laboratory's folder holds files and its build too.
            if house == PRODUCT || folder.join("Cargo.toml").exists() {
                let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let text = manifest(&folder)?;
                out.extend(crate_problems(&format!("{house}/{name}"), &text));
            }
        }
    }
    out.extend(files.iter().filter_map(facade_problem));
    out.extend(version_problems(&manifest(root)?, &manifest(&root.join(LABORATORY))?));
    out.sort();
    out.dedup();
    Ok(out)
}

/// What in a crate's folder looks upwards, or at a layer beside its own.
fn layer_problems(files: &[File], folder: &str, layers: &[&[&str]]) -> Vec<String> {
    let rank = |name: &str| layers.iter().position(|layer| layer.contains(&name));
    let mut out = Vec::new();
    for file in files.iter().filter(|f| !f.is_test()) {
        let Some(inside) = file.path.strip_prefix(folder) else { continue };
        let own = inside.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        if own == "lib" {
            continue;
        }
        let Some(level) = rank(own) else {
            out.push(format!("{}: {own} is no layer; name it in xtask/src/layers.rs", file.path));
            continue;
        };
        for path in paths(&without_comments(&file.production())) {
            let [first, to, ..] = path.as_slice() else { continue };
            if first == "crate" && to != own && rank(to).is_some_and(|other| other >= level) {
                out.push(format!("{}: layer {own} uses {to}, a layer not below it", file.path));
            }
        }
    }
    out
}

/// What a file of the laboratory takes of the core beside its facade.
fn facade_problem(file: &File) -> Option<String> {
    let inside = file.path.strip_prefix(LABORATORY)?.starts_with('/');
    let mut taken = file.text.split("holdall_core::").skip(1);
    let other = taken.find(|rest| !rest.starts_with("techniques"))?;
    let name = other.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    let said = "the laboratory takes holdall_core::techniques alone";
    inside.then(|| format!("{}: {said}, not holdall_core::{name}", file.path))
}

fn manifest(folder: &Path) -> Result<String> {
    let path = folder.join("Cargo.toml");
    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
}

/// Packages that both workspaces depend on, in different versions.
fn version_problems(product: &str, laboratory: &str) -> Vec<String> {
    let (product, laboratory) = (versions(product), versions(laboratory));
    let differ = laboratory.iter().filter_map(|(name, version)| {
        let other = product.get(name).filter(|other| *other != version)?;
        Some(format!("{LABORATORY}/Cargo.toml: {name} is {version} there, {other} in Cargo.toml"))
    });
    differ.collect()
}

/// Versions of the dependencies that a workspace shares; a path has none.
fn versions(manifest: &str) -> BTreeMap<&str, &str> {
    let shared = manifest.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let lines = shared.split("\n[").next().unwrap_or_default().lines();
    let pairs = lines.filter_map(|line| {
        let (name, rest) = line.split_once(" = ")?;
        let rest = rest.strip_prefix("{ version = ").unwrap_or(rest);
        Some((name, rest.strip_prefix('"')?.split('"').next()?))
    });
    pairs.collect()
}

fn crate_problems(name: &str, manifest: &str) -> Vec<String> {
    let Some((_, allowed)) = CRATES.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name}: not in the list of xtask/src/layers.rs")];
    };
    let needed = manifest.split("[dependencies]").nth(1).unwrap_or_default();
    let needed = needed.split("\n[").next().unwrap_or_default();
    let ours = needed.lines().filter_map(|line| {
        let dependency = line.split(['.', ' ', '=']).next()?;
        dependency.starts_with("holdall").then_some(dependency)
    });
    ours.filter(|dependency| !allowed.contains(dependency))
        .map(|dependency| format!("{name}: may not depend on {dependency}"))
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
            ["crates/holdall/src/log/mod.rs: layer log uses store, a layer not below it"]
        );
        let door = |path: &str, of: &str| {
            let text = format!("//! x\nuse crate::{of};\n");
            let path = format!("crates/holdall-server/src/{path}");
            layer_problems(&[File { path, text }], "crates/holdall-server/src/", &SERVER).len()
        };
        assert_eq!(door("objects/put.rs", "s3::error::custom"), 1);
        assert_eq!(door("dav/put.rs", "s3::Server"), 1);
        assert_eq!(door("http/body.rs", "objects::put"), 1);
        assert_eq!(door("new.rs", "http::body"), 1);
        assert_eq!(door("dav/put.rs", "objects::put::{Goal, Incoming}"), 0);
        assert_eq!(door("web/mod.rs", "dav::Dav"), 0);
        let manifest =
            "[dependencies]\nholdall.workspace = true\nrand = \"1\"\n[dev-dependencies]\n";
        assert_eq!(crate_problems("crates/holdall-core", manifest).len(), 1);
        assert!(crate_problems("crates/holdall-sim", manifest).is_empty());
    }

    #[test]
    fn the_laboratory_takes_the_facade_of_the_core_alone() {
        let file = |path: &str, of: &str| {
            let text = format!("use holdall_core::techniques::bytes;\nuse holdall_core::{of};\n");
            facade_problem(&File { path: path.into(), text })
        };
        let path = "laboratory/papers/src/lib.rs";
        let said = "laboratory/papers/src/lib.rs: the laboratory takes holdall_core::techniques \
                    alone, not holdall_core::heap_page";
        assert_eq!(file(path, "heap_page::HeapPage").as_deref(), Some(said));
        assert_eq!(file(path, "techniques::Error"), None);
        assert_eq!(file("crates/holdall/src/lib.rs", "heap_page"), None);
    }

    #[test]
    fn the_two_houses_build_with_one_version_of_what_both_use() {
        let product = "[workspace.dependencies]\na = \"1\"\nb = { version = \"2\", x = [] }\n";
        let same =
            "[workspace.dependencies]\nb = \"2\"\nc = \"9\"\nd = { path = \"../d\" }\n\n[x]\n";
        assert!(version_problems(product, same).is_empty());
        let other = same.replace("b = \"2\"", "b = \"3\"");
        let found = version_problems(product, &other);
        assert_eq!(found, ["laboratory/Cargo.toml: b is 3 there, 2 in Cargo.toml"]);
    }
}
