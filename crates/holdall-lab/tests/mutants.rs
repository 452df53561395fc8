//! Breaks each of the papers' rules and sees the tests of the rules notice: `make lab-mutants`.
//!
//! Owns: one build of the tests with `--cfg holdall_mutations`, in `target/mutants`, and a run
//! of those named `rules` for each mutation. Ignored by default: it builds the lab anew.

use std::path::Path;
use std::process::Command;

use holdall_lab::mutation::{ALL, is};

/// Runs the tests of the rules; whether they pass, and the first that does not.
fn rules(mutation: &str) -> (bool, String) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // A mutation may make a test hang, which counts as noticed.
    let run = Command::new("timeout")
        .current_dir(&root)
        .args(["600", "cargo", "test", "-q", "-p", "holdall-lab", "--lib", "--", "rules"])
        .env("CARGO_TARGET_DIR", root.join("target/mutants"))
        .env("RUSTFLAGS", "--cfg holdall_mutations")
        .env("HOLDALL_LAB_MUTATION", mutation)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    let failed: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("---- ")).collect();
    let said = failed.first().map_or("no test fails", |line| line);
    (run.status.success(), said.trim_end_matches(" stdout ----").to_owned())
}

#[test]
#[ignore = "builds the lab with its mutations: make lab-mutants"]
fn every_broken_rule_is_noticed() {
    assert!(rules("").0, "the rules fail without any mutation");
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut unnoticed = Vec::new();
    for (mutation, name, rule) in ALL.iter().filter(|(_, name, _)| name.contains(&only)) {
        assert!(!is(*mutation), "this build has no mutations");
        let (passes, said) = rules(name);
        println!("{name:<16} | {rule:<84} | {}", if passes { "NOT NOTICED" } else { &said });
        if passes {
            unnoticed.push(*name);
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}
