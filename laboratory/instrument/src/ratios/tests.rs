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
    let mut results = Results::default();
    results.add(serde_json::from_value(value).unwrap());
    results
}

#[test]
fn runs_of_several_workloads_make_one_picture() {
    let mut first = read(results(&Value::Null));
    let mut second = results(&Value::Null);
    second["commit"] = json!("1a2b3c4");
    second["workloads"][0]["workload"] = json!("w5");
    second["workloads"][1]["rows"] = json!([]);
    first.add(serde_json::from_value(second).unwrap());
    let panel = picture::panel(&first, &[]);
    let ticks: Vec<_> = panel.y.ticks.iter().map(|t| &*t.1).collect();
    assert_eq!(ticks[0], "W4 replace");
    assert_eq!(ticks[1], "W5 replace");
    assert_eq!(ticks.len(), 5);
    assert!(panel.title.ends_with("commit 2d44270; 2026-11-22, commit 1a2b3c4"), "{}", panel.title);
}

#[test]
fn disturbed_rounds_are_marked() {
    let panel = picture::panel(&read(results(&json!(false))), &[]);
    assert_eq!(panel.y.ticks[0].1, "W4 replace †");
    assert!(panel.x.label.contains("† disturbed"), "{}", panel.x.label);
    assert!(!picture::panel(&read(results(&Value::Null)), &[]).x.label.contains('†'));
}

#[test]
fn the_picture_has_every_row_that_can_be_compared() {
    let panel = picture::panel(&read(results(&json!(true))), &[]);
    assert_eq!(panel.y.ticks.len(), 4);
    let names: Vec<_> = panel.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["Holdall by name", "Holdall by OID", "files", "fjall", "LMDB", "redb"]);
    assert_eq!(panel.series[0].points, [(0.25, -0.0), (0.25, -1.0), (3.0, -2.0), (0.25, -3.0)]);
    assert_eq!(panel.series[5].points, [(1.0, -3.0)]);
}

#[test]
fn speed_and_space_stand_together() {
    let mut results = results(&json!(true));
    let stores = &mut results["workloads"][0]["rows"][0]["stores"];
    stores[0]["disk_per_logical"]["median"] = json!(1.1);
    stores[2]["disk_per_logical"]["median"] = json!(2.2);
    stores[3]["disk_per_logical"]["median"] = json!(4.4);
    let panel = picture::panel(&read(results), &["w4"]);
    let ticks: Vec<_> = panel.y.ticks.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(ticks[..2], ["W4 replace", "W4 replace: space"]);
    let at = |store: &str| {
        let series = panel.series.iter().find(|s| s.name == store).unwrap();
        series.points.iter().find(|p| p.1 == -1.0).map(|p| p.0)
    };
    assert_eq!(
        (at("Holdall by name"), at("files"), at("fjall")),
        (Some(2.0), Some(1.0), Some(0.5))
    );
}

#[test]
fn files_are_drawn_where_they_are_wanted() {
    let (dir, docs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    assert!(draw(&[dir.path()], docs.path(), &[]).is_err(), "there are no results");
    assert_eq!(std::fs::read_dir(docs.path()).unwrap().count(), 0);
    std::fs::write(dir.path().join(RESULTS), results(&json!(true)).to_string()).unwrap();
    draw(&[dir.path()], docs.path(), &[]).unwrap();
    let svg = std::fs::read_to_string(docs.path().join("ratios.svg")).unwrap();
    assert!(svg.contains("W8 open") && svg.contains("Holdall by OID") && svg.contains("fjall"));
    assert!(docs.path().join("ratios.png").exists());
}
