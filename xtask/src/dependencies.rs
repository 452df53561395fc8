//! Crates of others that a program which depends on `holdall` alone is built with.
//!
//! Owns: how many there may be. Cargo is asked; macros, which run at build time, are not counted.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Most of them. Five come with `crc-fast`, which looks for what the processor can only with its
/// feature `std`, and that brings `digest`. `crc32c` needs none, and takes twice the time for a
/// page. `memmap2` gives huge pages, which double the rate of cold reads, without unsafe code here.
const MOST: usize = 21;

/// Their names.
///
/// # Errors
/// Cargo that does not run, or fails, as it does if it cannot load a crate.
pub fn of_holdall(root: &Path) -> Result<BTreeSet<String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let kinds = "normal,no-proc-macro";
    let out = Command::new(cargo)
        .args(["tree", "--quiet", "--locked", "-p", "holdall", "--prefix", "none", "-e", kinds])
        .current_dir(root)
        .output()
        .context("starting cargo")?;
    ensure!(out.status.success(), "cargo tree: {}", String::from_utf8_lossy(&out.stderr));
    Ok(names(&String::from_utf8_lossy(&out.stdout)))
}

/// Names in what `cargo tree` prints, without ours.
fn names(printed: &str) -> BTreeSet<String> {
    let names = printed.lines().filter_map(|line| line.split(' ').next());
    names.filter(|n| !n.is_empty() && !n.starts_with("holdall")).map(str::to_owned).collect()
}

/// The message if there are more than there may be.
///
/// # Errors
/// As [`of_holdall`].
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let found = of_holdall(root)?;
    let too_many = found.len() > MOST;
    let names = || found.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
    let said =
        || format!("holdall needs {} crates of others, at most {MOST}: {}", found.len(), names());
    Ok(too_many.then(said).into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_crate_of_others_counts_once() {
        let printed = "holdall v0.1.0 (/x/crates/holdall)\nlibc v0.2.1\nspin v1.0.0\nlibc v0.2.1 (*)\n\
                       holdall-io v0.1.0 (/x)\n";
        assert_eq!(names(printed).into_iter().collect::<Vec<_>>(), ["libc", "spin"]);
        let found = of_holdall(&crate::root().unwrap()).unwrap();
        assert!(found.contains("parking_lot") && !found.contains("syn"), "{found:?}");
    }
}
