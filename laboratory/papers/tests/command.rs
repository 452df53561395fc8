//! The program itself, as a user runs it.

#![expect(clippy::unwrap_used, reason = "helpers of tests, which clippy does not count as tests")]

use holdall_instrument::names::{Captions, matched};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn lab(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_holdall-lab")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Fails with this code and one line, without a trace of our insides.
fn assert_refused(args: &[&str], code: i32, says: &str) {
    let output = lab(args);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {err}");
    assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    assert!(err.starts_with("holdall-lab: ") && err.contains(says), "{args:?}: {err}");
    assert!(output.stdout.is_empty(), "{args:?}");
}

/// Names of all figures.
fn listed() -> Vec<String> {
    let output = lab(&["list", "--json"]);
    assert!(output.status.success());
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let id = |row: &serde_json::Value| row["id"].as_str().unwrap().to_string();
    rows.as_array().unwrap().iter().map(id).collect()
}

#[test]
fn list_names_every_figure_once() {
    let output = lab(&["list"]);
    assert!(output.status.success());
    let first = |line: &str| line.split_whitespace().next().unwrap().to_string();
    let mut ids: Vec<String> = text(&output.stdout).lines().map(first).collect();
    assert_eq!(ids, listed());
    assert!(!ids.is_empty());
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), listed().len());
}

#[test]
fn wrong_usage_is_refused_in_one_line() {
    assert_refused(&["figure", "no-such-figure"], 2, "unknown figure 'no-such-figure' (nearest: ");
    assert_refused(&["figure"], 2, "<ID>");
    assert_refused(&["all", "--jobs", "9"], 2, "9 is not in 1..=2");
    assert_refused(&["all", "--seed", "-1"], 2, "'-1'");
    assert_refused(&["all", "--seed", "many"], 2, "'many'");
    assert_refused(&["paper", "gray"], 2, "[possible values: biliris, mcauliffe, iyengar, eickler");
    assert_refused(&["al"], 2, "'al'");
    assert_refused(&["all", "--disk", "80"], 2, "microseconds and MB/s are wanted");
    assert_refused(&["all", "--disk", "80,0"], 2, "not in 0.01..=1000000");
}

#[test]
fn help_is_no_error() {
    let output = lab(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("Usage:"));
    assert_eq!(lab(&[]).status.code(), Some(2));
}

#[test]
fn a_directory_that_takes_no_files_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, b"kept").unwrap();
    let inside = file.join("lab");
    for out in [&file, &inside] {
        let out = out.to_str().unwrap();
        assert_refused(
            &["all", "--quick", "--out", out],
            1,
            "cannot write to the output directory",
        );
    }
    assert_eq!(fs::read(&file).unwrap(), b"kept");
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let args = ["figure", "biliris-shape", "biliris-table2", "biliris-12", "--quick", "--out", out];
    let mut first = Command::new(env!("CARGO_BIN_EXE_holdall-lab")).args(args).spawn().unwrap();
    let record = dir.path().join("biliris-shape/outcome.json");
    while !record.is_file() && first.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    let before = fs::read(&record).unwrap();
    let second = lab(&args);
    let said = text(&second.stdout);
    assert!(second.status.success(), "{}", text(&second.stderr));
    assert!(said.contains("biliris-shape: already done, kept"), "{said}");
    assert!(said.contains("biliris-12: "), "{said}");
    assert_eq!(fs::read(&record).unwrap(), before);
}

#[test]
fn quick_all() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().to_str().unwrap();
    let all = ["all", "--quick", "--jobs", "2", "--json", "--out", out];
    let first = lab(&all);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let value: serde_json::Value = serde_json::from_slice(&first.stdout).unwrap();
    let results = value["results"].as_array().unwrap();
    assert_eq!(results.len(), listed().len());
    for result in results {
        assert_eq!(result["status"], "ran");
        for claim in result["claims"].as_array().unwrap() {
            let part = |name: &str| claim[name].as_str().unwrap().trim().to_string();
            let fails = part("verdict") == "Fails";
            let exact = part("tolerance").starts_with('=');
            assert!(!(fails && exact), "must be hit exactly: {claim:#}");
            assert!(!fails || !part("explanation").is_empty(), "unexplained: {claim:#}");
        }
    }
    reads_well(dir.path());
    resumes(dir.path(), &all);
}

/// Every plot has a caption, every caption a plot, and points have values; no text shows a number that is none, or
/// a value as the language prints it for its writers.
fn reads_well(dir: &Path) {
    let captions: Captions = toml::from_str(include_str!("../captions.toml")).unwrap();
    for id in listed() {
        let text = fs::read_to_string(dir.join(&id).join("outcome.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let panels = record["outcome"]["panels"].as_array().unwrap();
        for name in captions.get(&id).into_iter().flat_map(|of_it| of_it.keys()) {
            let is = |panel: &serde_json::Value| {
                let drawn = panel["id"].as_str().unwrap();
                drawn == name || matched(name, drawn).is_some()
            };
            assert!(panels.iter().any(is), "{id}: no plot for the caption '{name}'");
        }
        for panel in panels {
            let caption = panel["caption"].as_str().unwrap();
            assert!(!caption.is_empty(), "{id}, {}: a plot without a caption", panel["id"]);
            let points = panel["series"].as_array().unwrap().iter();
            let bad = points.flat_map(|s| s["points"].as_array().unwrap());
            let bad = bad.filter(|p| p[0].is_null() || p[1].is_null()).count();
            assert_eq!(bad, 0, "{id}, {}: points without a value", panel["id"]);
        }
        let dumped = ["NaN", "inf ", "Some(", "None,", "Ok(", " { ", ": [", "\\\"", ".toml"];
        for part in ["claims", "notes", "tables"] {
            let texts = strings(&record["outcome"][part]);
            for text in texts {
                let found = dumped.iter().find(|sign| format!("{text} ").contains(**sign));
                assert_eq!(found, None, "{id}, {part}: {text}");
            }
        }
    }
}

/// All texts in a value.
fn strings(value: &serde_json::Value) -> Vec<&str> {
    match value {
        serde_json::Value::String(text) => vec![text],
        serde_json::Value::Array(all) => all.iter().flat_map(strings).collect(),
        serde_json::Value::Object(all) => all.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

/// A second run runs nothing and leaves the records untouched.
fn resumes(dir: &Path, all: &[&str]) {
    let records = || -> Vec<_> {
        let record = |id: &String| {
            let path = dir.join(id).join("outcome.json");
            (fs::metadata(&path).unwrap().modified().unwrap(), fs::read(&path).unwrap())
        };
        listed().iter().map(record).collect()
    };
    let before = records();
    let plain: Vec<&str> = all.iter().copied().filter(|arg| *arg != "--json").collect();
    let second = lab(&plain);
    assert!(second.status.success());
    let said = text(&second.stdout);
    assert_eq!(said.matches(": already done, kept").count(), before.len(), "{said}");
    assert!(records() == before, "a record changed");
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(!page.contains("<script") && !page.contains("src="));
    for part in page.split("href=\"").skip(1) {
        assert!(part.starts_with('#'), "{}", part.split('"').next().unwrap_or_default());
    }
}
