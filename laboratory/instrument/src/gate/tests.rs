//! The whole gate with builds that are scripts: each turn takes the next value of a list.

use super::{Build, Gate, Verdict};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A build whose turns give `values` in order, as row `8 threads` of w2. Each turn appends
/// the build's name, workload, store and seed to the file `turns` beside it.
fn build(dir: &Path, name: &str, values: &[f64], unit: &str) -> PathBuf {
    let values: String = values.iter().map(|v| format!("{v}\n")).collect();
    fs::write(dir.join(format!("{name}.values")), values).unwrap();
    let script = format!(
        r#"#!/bin/sh
here='{here}'
if [ "$2" = --help ]; then echo "--workload --store --seed --out"; exit 0; fi
while [ $# -gt 0 ]; do
  case "$1" in
    --workload) workload="$2" ;; --store) store="$2" ;;
    --seed) seed="$2" ;; --out) out="$2" ;;
  esac
  shift
done
echo "{name} $workload $store $seed" >> "$here/turns"
[ -e "$here/{name}.sleeps" ] && exec sleep 600
value=$(head -n 1 "$here/{name}.values")
sed -i 1d "$here/{name}.values"
echo '{{"figures":[{{"row":"8 threads","unit":"{unit}","value":'"$value"'}},' \
  '{{"row":"{name} only","unit":"Ms","value":1}}],"error":null}}' > "$out"
"#,
        here = dir.display()
    );
    let path = dir.join(name);
    // Another process writes it: a file that this one had open for writing cannot be run while
    // another test's child has yet to close it.
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf %s \"$1\" > \"$0\" && chmod +x \"$0\""]).arg(&path).arg(script);
    assert!(shell.status().unwrap().success());
    path
}

struct Case {
    dir: tempfile::TempDir,
    old: Build,
    new: Build,
}

fn case(old: &[f64], new: &[f64], unit: &str) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let find = |name: &str, values: &[f64]| {
        Build::find(build(dir.path(), name, values, unit).to_str().unwrap()).unwrap()
    };
    let (old, new) = (find("old", old), find("new", new));
    Case { dir, old, new }
}

impl Case {
    fn gate<'a>(&'a self, pairs: usize, rows: &[&str]) -> Gate<'a> {
        Gate {
            old: self.old.clone(),
            new: self.new.clone(),
            patterns: rows.iter().map(|r| r.parse().unwrap()).collect(),
            stores: &["Holdall by name", "Holdall by OID"],
            dir: self.dir.path(),
            quick: true,
            pairs,
            whole: Duration::from_secs(600),
        }
    }

    fn verdict(&self) -> Verdict {
        let found = self.gate(9, &["w2/8/OID"]).run().unwrap();
        let judged = found.judged().unwrap();
        assert_eq!(judged.len(), 1);
        judged[0].2
    }

    fn refusal(&self, pairs: usize, rows: &[&str]) -> String {
        format!("{:#}", self.gate(pairs, rows).run().map(|_| ()).unwrap_err())
    }
}

const EVEN: [f64; 9] = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0, 99.0];

#[test]
fn a_loss_is_found_in_speeds_and_in_times() {
    assert_eq!(case(&EVEN, &EVEN.map(|v| v * 0.9), "PerSecond").verdict(), Verdict::Worse);
    assert_eq!(case(&EVEN, &EVEN.map(|v| v * 0.9), "Ms").verdict(), Verdict::Better);
    assert_eq!(case(&EVEN, &EVEN.map(|v| v * 1.1), "Ms").verdict(), Verdict::Worse);
    assert_eq!(case(&EVEN, &EVEN, "PerSecond").verdict(), Verdict::NotWorse);
    let noisy = [60.0, 140.0, 100.0, 70.0, 130.0, 100.0, 60.0, 140.0, 100.0];
    assert_eq!(case(&EVEN, &noisy, "PerSecond").verdict(), Verdict::NotJudged);
}

#[test]
fn turns_are_paired_and_turned_round() {
    let case = case(&EVEN, &EVEN, "PerSecond");
    case.verdict();
    let turns = fs::read_to_string(case.dir.path().join("turns")).unwrap();
    let turns: Vec<_> = turns.lines().collect();
    assert_eq!(turns.len(), 18);
    assert_eq!(
        turns[..4],
        [
            "old w2 Holdall by OID 1",
            "new w2 Holdall by OID 1",
            "new w2 Holdall by OID 2",
            "old w2 Holdall by OID 2"
        ]
    );
    let left = fs::read_dir(case.dir.path()).unwrap().map(|e| e.unwrap().file_name());
    assert_eq!(left.filter(|name| name.to_string_lossy().starts_with('.')).count(), 0);
}

#[test]
fn what_is_said_names_the_rows() {
    let case = case(&EVEN, &EVEN.map(|v| v * 0.5), "PerSecond");
    let found = case.gate(9, &["w2//OID"]).run().unwrap();
    let (text, json) = (found.text().unwrap(), found.json().unwrap());
    let line = "| w2/8 threads/Holdall by OID | 100 | 50 | 0.500 | 0.500–0.500 | **worse** |";
    assert!(text.lines().any(|l| l == line), "{text}");
    assert!(text.contains("Worse by more than 5 %: w2/8 threads/Holdall by OID."), "{text}");
    assert!(text.contains("w2/old only/Holdall by OID (the old build alone)"), "{text}");
    assert!(text.contains("w2/new only/Holdall by OID (the new build alone)"), "{text}");
    assert!(!text.contains("No row"), "{text}");
    assert_eq!(json["worse"], true);
    assert_eq!(json["rows"][0]["verdict"], "worse");
    assert_eq!(json["rows"][0]["ratios"].as_array().unwrap().len(), 9);
    assert_eq!(json["not_compared"].as_array().unwrap().len(), 2);
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let case = case(&EVEN, &EVEN, "PerSecond");
    assert!(case.refusal(8, &["w2"]).contains("8 pairs of turns show nothing"));
    assert!(case.refusal(9, &[]).contains("no row is named"));
    assert!(case.refusal(9, &["w2//LMDB"]).contains("none of the stores"));
    assert!(!case.dir.path().join("turns").exists(), "nothing was run");
    let unknown = case.refusal(9, &["w2/9 threads/OID"]);
    assert!(unknown.contains("w2/8 threads/Holdall by OID"), "{unknown}");
    let turns = fs::read_to_string(case.dir.path().join("turns")).unwrap();
    assert_eq!(turns.lines().count(), 2, "known after one pair");
    let error = Build::find("/bin/true").map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("no command `one`"), "{error}");
    let error = Build::find("no-such-thing").map(|_| ()).unwrap_err().to_string();
    assert!(
        error.contains("no file, no folder and no commit")
            || error.contains("inside the repository"),
        "{error}"
    );
}

#[test]
fn turns_that_end_badly_end_the_gate() {
    // Too few values: the third turn of the new build writes no number.
    let case = case(&EVEN, &EVEN[..2], "PerSecond");
    let error = case.refusal(9, &["w2/8/OID"]);
    assert!(
        error.contains("w2 by Holdall by OID of new") && error.contains("not understood"),
        "{error}"
    );
}

#[test]
fn the_time_limit_is_held() {
    let case = case(&EVEN, &EVEN, "PerSecond");
    fs::write(case.dir.path().join("new.sleeps"), "").unwrap();
    let mut gate = case.gate(9, &["w2/8/OID"]);
    gate.whole = Duration::from_millis(300);
    let error = format!("{:#}", gate.run().map(|_| ()).unwrap_err());
    assert!(error.contains("name fewer rows or give --minutes"), "{error}");
}
