//! The S3 part at its smallest, on the real server: that rows come and say that puts were synced,
//! and that a server killed under load keeps what it answered. Figures are not judged.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::process::Command;

fn run(args: &[&str]) -> Value {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdall-bench"));
    command.args(["--quick", "--json", "--dir"]).arg(dir.path()).args(args);
    let out = command
        .arg("--server")
        .arg(holdall_bench::product::command(false).unwrap())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{args:?}:\n{errors}");
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 0, "the run's own directory is gone");
    serde_json::from_slice(&out.stdout).unwrap()
}

#[test]
fn rows_are_measured_and_puts_are_synced() {
    let report = run(&["s3", "--phases", "small,insert"]);
    let of = |at: usize| report["workloads"][at]["rows"].as_array().unwrap();
    let rows: Vec<&Value> = of(0).iter().chain(of(1)).collect();
    assert_eq!(rows.len(), 3, "{report:#}");
    for row in &rows {
        for server in row["stores"].as_array().unwrap() {
            assert!(server["value"]["median"].as_f64().unwrap() > 0.0, "{row:#}");
        }
    }
    assert_eq!(rows[0]["row"], "put 4 KB, 32 clients, durable", "it was found to sync");
    let servers = |row: usize| rows[row]["stores"].as_array().unwrap().len();
    assert_eq!([servers(0), servers(1), servers(2)], [2, 2, 1], "no bare handler inserts");
    assert!(report["settings"].as_str().unwrap().contains("**Holdall**: holdall "), "{report:#}");
}

#[test]
fn a_killed_server_keeps_what_it_answered() {
    let report = run(&["s3-kill", "--rounds", "2", "--clients", "8"]);
    assert_eq!(report["rounds"], 2);
    assert_eq!(report["violations"].as_array().unwrap().len(), 0, "{report:#}");
    assert!(report["answered"]["puts"].as_u64().unwrap() > 0, "{report:#}");
}
