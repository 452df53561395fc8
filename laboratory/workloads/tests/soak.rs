//! The soak test in its short form: small volumes nearly full, churned while maintenance runs;
//! the program checks what is promised. The long form is `make soak`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::process::{Command, Output};

fn age(args: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdall-bench"));
    command.arg("--dir").arg(dir.path()).args(["age", "--check", "--keep-in-order"]);
    command.args(args).output().unwrap()
}

#[test]
fn promises_hold_after_storage_ages() {
    for (sizes, volume, full) in
        [("mixed", "24", "98"), ("small", "12", "99"), ("web", "12", "97"), ("mib", "24", "95")]
    {
        let args = ["--ages", "2", "--sizes", sizes, "--volume", volume, "--full", full];
        let out = age(&args);
        let errors = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{sizes}: {errors}");
        let lines = String::from_utf8(out.stdout).unwrap();
        let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!(last["age"], 2, "{sizes}");
        assert_eq!(last["refused_fitting"], 0, "{sizes}");
        // Objects of a MiB leave up to one free.
        assert!(last["full"].as_f64().unwrap() > 85.0, "{sizes}: {last}");
    }
}
