//! The command `gate` with builds that are scripts, and with this build against itself.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A build whose every row of every workload has this value, a little more with each seed.
fn build(dir: &Path, name: &str, value: u32) -> Result<String> {
    let script = format!(
        r#"#!/bin/sh
if [ "$2" = --help ]; then echo "--workload --store --seed --out"; exit 0; fi
while [ $# -gt 0 ]; do
  case "$1" in --seed) seed="$2" ;; --out) out="$2" ;; esac
  shift
done
row() {{ echo '{{"row":"'"$1"'","unit":"PerSecond","value":'"$(({value} + seed))"'}}'; }}
rows="$(row 'ordered keys'),$(row 'random keys'),$(row '1 thread'),$(row '8 threads')"
rows="$rows,$(row 'hot, a snapshot each, 1 thread'),$(row 'W3c: cold, a snapshot each, 1 thread')"
rows="$rows,$(row load),$(row replace),$(row 'puts, beside the stream'),$(row stream)"
echo '{{"figures":['"$rows"'],"error":null}}' > "$out"
"#
    );
    let path = dir.join(name);
    // Another process writes it: a file that this one had open for writing cannot be run while
    // another test's child has yet to close it.
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf %s \"$1\" > \"$0\" && chmod +x \"$0\""]).arg(&path).arg(script);
    ensure!(shell.status()?.success(), "writing {name} failed");
    Ok(path.to_str().context("no UTF-8")?.to_owned())
}

fn gate(dir: &Path, args: &[&str]) -> Result<Output> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_holdall-bench"));
    Ok(command.args(["--quick", "--dir"]).arg(dir).arg("gate").args(args).output()?)
}

fn code(out: &Output) -> Option<i32> {
    out.status.code()
}

#[test]
fn a_slower_build_does_not_pass() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) =
        (build(dir.path(), "old", 1000).unwrap(), build(dir.path(), "new", 900).unwrap());
    let out = gate(dir.path(), &[&old, &new]).unwrap();
    let (text, said) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert_eq!(code(&out), Some(1), "{text}{said}");
    assert_eq!(text.matches("| **worse** |").count(), 10, "{text}");
    assert!(text.contains("| w2/8 threads/Holdall by OID | 1,005 | 905 | 0.900 |"), "{text}");
    assert!(!text.contains(dir.path().to_str().unwrap()), "no paths of the machine: {text}");
    assert!(said.contains("at most 40.0 minutes") && said.contains("pair 9 of 9"), "{said}");

    let out = gate(dir.path(), &[&new, &old, "--json", "w2/8/OID"]).unwrap();
    assert_eq!(code(&out), Some(0));
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(report["rows"].as_array().unwrap().len(), 1);
    assert_eq!(report["rows"][0]["verdict"], "better");
    assert_eq!((&report["worse"], &report["pairs"]), (&Value::Bool(false), &9.into()));
}

#[test]
fn what_shows_nothing_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let old = build(dir.path(), "old", 1000).unwrap();
    for (args, why) in [
        (&[&old, &old, "--rounds", "8"][..], "--rounds 9 or more"),
        (&[&old, &old, "--minutes=-1"], "no number of minutes"),
        (&[&old, &old, "w2/none"], "no row of both builds is w2/none"),
        (&["/bin/sh", &old], "no command `one`"),
    ] {
        let out = gate(dir.path(), args).unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(code(&out) == Some(2) && said.contains(why), "{args:?}: {said}");
        assert!(out.stdout.is_empty(), "{args:?}");
    }
}

/// A real build answers to the call that the gate makes. What small sizes say is not judged.
#[test]
fn this_build_has_turns_with_itself() {
    let dir = tempfile::tempdir().unwrap();
    let own = PathBuf::from(env!("CARGO_BIN_EXE_holdall-bench"));
    let own = own.to_str().unwrap();
    let out = gate(dir.path(), &[own, own, "--json", "w1/ordered/by name"]).unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(code(&out).is_some_and(|code| code < 2), "{said}");
    let report: Value = serde_json::from_slice(&out.stdout).unwrap();
    let row = &report["rows"][0];
    assert_eq!((&row["row"], &row["old"]["runs"]), (&"ordered keys".into(), &9.into()));
    assert_eq!(row["ratios"].as_array().unwrap().len(), 9);
    assert_eq!(report["old"], report["new"]);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "its directories are gone");
}
