//! Of a small `results.json`.

use super::*;
use serde_json::{Value, json};

fn stores(values: &[(&str, f64, f64)]) -> Vec<Value> {
    let line = |(store, value, ratio): &(&str, f64, f64)| {
        json!({
            "store": store,
            "value": { "median": value },
            "disk_per_logical": { "median": 1.25 },
            "to_best_peer": { "median": ratio },
        })
    };
    values.iter().map(line).collect()
}

fn row(name: &str, less_is_better: bool, values: &[(&str, f64, f64)]) -> Value {
    let unit = if less_is_better { "ms" } else { "MB/s" };
    json!({
        "row": name, "unit": unit, "less_is_better": less_is_better, "stores": stores(values),
    })
}

fn results(quiet: &Value) -> Value {
    let replace = [
        ("Holdall by name", 50.0, 0.25),
        ("Holdall by OID", 100.0, 0.5),
        ("files", 20.0, 0.1),
        ("fjall", 200.0, 1.0),
        ("bare machine", 900.0, 4.5),
    ];
    let open = [("Holdall by name", 2.0, 4.0), ("redb", 0.5, 1.0), ("LMDB", 1.0, 2.0)];
    let write = [("Holdall by name", 9.0, 3.0), ("LMDB", 3.0, 1.0)];
    let probes = json!([{ "quiet": quiet }]);
    json!({
        "date": "2026-11-22", "commit": "2d44270", "complete": true, "machine": "a machine",
        "quick": false, "rounds": 1,
        "workloads": [
            { "workload": "w4", "rows": [row("replace", false, &replace)], "probes": probes },
            { "workload": "w6", "rows": [
                row("1 MiB: write at age 0", false, &replace),
                row("1 MiB: write at age 10", false, &write),
                row("1 MiB: write at age 4", false, &[("LMDB", 3.0, 1.0)]),
            ], "probes": probes },
            { "workload": "w8", "rows": [
                row("open after a clean close, and one get", true, &open),
            ], "probes": probes },
        ],
    })
}

fn read(value: Value) -> Results {
    serde_json::from_value(value).unwrap()
}

#[test]
fn a_row_for_each_workload() {
    let text = table(&read(results(&json!(true))));
    let has = |line: &str| assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    has("| W4 replace, MB/s | 50 / 100 | fjall 200 | 0.25 / 0.5 | 1.25 / 1.25; 1.25 |");
    has("| W6 1 MiB: write at age 10, MB/s | 9 / – | LMDB 3 | 3 / – | 1.25 / –; 1.25 |");
    // A time four times as long is a quarter as good.
    has("| W8 open after a clean close, and one get, ms | 2 / – | redb 0.5 | 0.25 / – |  |");
    has("The machine was quiet in all rounds.");
    assert!(!text.contains('†') && !text.contains("age 0"), "{text}");
}

#[test]
fn disturbed_rounds_are_told() {
    let text = table(&read(results(&json!(false))));
    assert!(text.contains("| W4 replace †, MB/s |"), "{text}");
    assert!(text.contains("W4 in 1 of 1 rounds, W6 in 1 of 1 rounds"), "{text}");
    let text = table(&read(results(&Value::Null)));
    assert!(text.contains("was not probed"), "{text}");
}

#[test]
fn the_picture_has_every_row_that_can_be_compared() {
    let panel = picture::panel(&read(results(&json!(true))));
    assert_eq!(panel.y.ticks.len(), 4);
    let names: Vec<_> = panel.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["Holdall by name", "Holdall by OID", "files", "fjall", "LMDB", "redb"]);
    assert_eq!(panel.series[0].points, [(0.25, -0.0), (0.25, -1.0), (3.0, -2.0), (0.25, -3.0)]);
    assert_eq!(panel.series[5].points, [(1.0, -3.0)]);
}

#[test]
fn all_files_are_written() {
    let dir = tempfile::tempdir().unwrap();
    assert!(write(dir.path()).is_err(), "there are no results");
    std::fs::write(dir.path().join(RESULTS), results(&json!(true)).to_string()).unwrap();
    let text = write(dir.path()).unwrap();
    assert_eq!(std::fs::read_to_string(dir.path().join(SUMMARY)).unwrap(), text);
    assert!(dir.path().join("ratios.svg").exists() && dir.path().join("ratios.png").exists());
}
