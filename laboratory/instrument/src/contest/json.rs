//! Results as JSON, for programs.

use super::{Attempts, Line, Outcome, Row, Verdict, markdown, rows, verdicts};
use serde_json::{Value, json};

/// All of an outcome: rows with medians, least and most; goals; and every round's figures.
pub fn json(outcome: &Outcome) -> Value {
    let rows: Vec<Value> = rows(outcome).iter().map(row).collect();
    let goals: Vec<Value> = verdicts(outcome).iter().map(goal).collect();
    let probes: Vec<Value> = outcome.attempts.iter().map(probed).collect();
    let raw: serde_json::Map<String, Value> = outcome
        .stores
        .iter()
        .zip(&outcome.cells)
        .map(|(store, cells)| ((*store).to_owned(), json!(cells)))
        .collect();
    json!({
        "workload": outcome.id,
        "title": outcome.title,
        "remark": outcome.remark,
        "rows": rows,
        "goals": goals,
        "probes": probes,
        "rounds": raw,
    })
}

/// The probes around a round; `quiet` is null if there were none.
fn probed(attempts: &Attempts) -> Value {
    let quiet = attempts.quiet();
    json!({ "quiet": quiet, "disturbed": quiet == Some(false), "attempts": attempts })
}

fn row(row: &Row) -> Value {
    let lines: Vec<Value> = row.lines.iter().map(line).collect();
    json!({ "row": row.name, "unit": row.unit.text(), "less_is_better": row.unit.less_is_better(), "stores": lines })
}

fn line(line: &Line) -> Value {
    json!({
        "store": line.store,
        "value": line.value,
        "p50_us": line.latency.map(|l| l[0]),
        "p99_us": line.latency.map(|l| l[1]),
        "max_us": line.latency.map(|l| l[2]),
        "disk_per_logical": line.disk,
        "device_per_logical": line.device,
        "memory_bytes": line.memory,
        "to_best_peer": line.to_best,
        "to_bare": line.to_bare,
        "notes": line.notes,
    })
}

fn goal(verdict: &Verdict) -> Value {
    let goal = &verdict.goal;
    json!({
        "store": goal.who,
        "row": goal.row,
        "figure": markdown::what(goal.what, &goal.than),
        "goal": goal.bound.text(),
        "got": verdict.got,
        "met": verdict.met(),
    })
}
