//! Breaks each of the papers' rules and sees the tests of the rules notice: `make lab-mutants`.
//!
//! Owns: one build of the tests with `--cfg holdall_mutations`, in the laboratory's `target/mutants`, and a run
//! of those named `rules` for each mutation. Ignored by default: it builds the lab anew.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests, which clippy does not count as tests"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use holdall_lab::mutation::{ALL, is};

/// Builds the lab's tests with its mutations; the program.
fn build() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let run = Command::new("cargo")
        .current_dir(&root)
        .args(["test", "-p", "holdall-lab", "--lib", "--no-run", "--message-format=json"])
        .env("CARGO_TARGET_DIR", root.join("target/mutants"))
        .env("RUSTFLAGS", "--cfg holdall_mutations")
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let messages = String::from_utf8(run.stdout).unwrap();
    let program = messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message["executable"].as_str().map(PathBuf::from)
    });
    program.expect("the build names its program")
}

/// Runs the tests of the rules; whether they pass, and the first that does not.
fn rules(program: &Path, mutation: &str) -> (bool, String) {
    // A mutation may make a test hang, which counts as noticed.
    let mut run = Command::new("timeout");
    run.arg("120").arg(program).arg("rules").env("HOLDALL_LAB_MUTATION", mutation);
    let run = run.output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    let failed = text.lines().find_map(|line| line.strip_prefix("---- "));
    let said = failed.unwrap_or("no answer: it hangs").trim_end_matches(" stdout ----");
    (run.status.success(), said.to_owned())
}

#[test]
#[ignore = "builds the lab with its mutations: make lab-mutants"]
fn every_broken_rule_is_noticed() {
    let program = build();
    assert!(rules(&program, "").0, "the rules fail without any mutation");
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut unnoticed = Vec::new();
    for (mutation, name, rule) in ALL.iter().filter(|(_, name, _)| name.contains(&only)) {
        assert!(!is(*mutation), "this build has no mutations");
        let (passes, said) = rules(&program, name);
        println!("{name:<16} | {rule:<84} | {}", if passes { "NOT NOTICED" } else { &said });
        if passes {
            unnoticed.push(*name);
        }
    }
    assert!(unnoticed.is_empty(), "not noticed: {unnoticed:?}");
}
