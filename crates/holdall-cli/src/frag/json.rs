//! The report as JSON, with everything in it.
//!
//! Owns: the names of its fields.

use holdall::frag::{Action, CutObject, FragReport, Geometry, SizeClass, VolumeMap};
use serde_json::{Map, Value, json};

use super::words::KINDS;
use crate::name;

/// One object with the fields that docs/cli.md names.
pub fn value(r: &FragReport) -> Value {
    let (o, s, c) = (&r.objects, &r.score, &r.contract);
    json!({
        "score": {
            "value": s.value, "pieces": s.pieces, "space": s.space,
            "needed_bytes": s.needed_bytes, "excess_free_bytes": s.excess_free_bytes,
            "spare_bytes": s.spare_bytes,
        },
        "geometry": geometry(&r.geometry),
        "free_runs": {
            "runs": r.free_runs.runs, "longest_bytes": r.free_runs.longest_bytes,
            "classes": classes(&r.free_runs.classes),
        },
        "objects": {
            "large": o.large, "small": o.small, "bytes": o.bytes, "pieces": o.pieces,
            "fewest": o.fewest, "excess": o.excess, "mean_excess": o.mean_excess,
            "cut_bytes": o.cut_bytes, "shared_bytes": o.shared_bytes,
            "saved_bytes": o.saved_bytes, "classes": classes(&o.classes),
            "most_cut": o.most_cut.iter().map(cut).collect::<Vec<_>>(),
        },
        "heap": heap(r),
        "contract": {
            "holds": c.holds, "left_bytes": c.left_bytes, "right_bytes": c.right_bytes,
            "factor": c.factor, "stored_bytes": c.stored_bytes, "name_bytes": c.name_bytes,
            "objects": c.objects, "waiting_bytes": c.waiting_bytes,
            "constant_bytes": c.constant_bytes,
        },
        "remedies": remedies(r),
        "map": map(&r.map),
    })
}

fn geometry(g: &Geometry) -> Value {
    json!({
        "page_size": g.page_size, "volume_pages": g.volume_pages, "block_bytes": g.block_bytes,
        "free_pages": g.free_pages, "hole_pages": g.hole_pages,
        "holes_assumed": g.holes_assumed, "waiting_pages": g.waiting_pages,
        "pinned_pages": g.pinned_pages, "reserved_pages": g.reserved_pages,
        "metadata_pages": g.metadata_pages, "heap_pages": g.heap_pages,
        "segment_pages": g.segment_pages,
    })
}

fn heap(r: &FragReport) -> Value {
    let collections: Vec<Value> = r
        .heap
        .collections
        .iter()
        .map(|c| {
            json!({
                "name": c.name, "records": c.records, "pages": c.pages,
                "fresh_pages": c.fresh_pages, "utilization": c.utilization,
                "slack_bytes": c.slack_bytes,
            })
        })
        .collect();
    json!({
        "utilization": r.heap.utilization, "slack_bytes": r.heap.slack_bytes,
        "slack_cost": r.heap.slack_cost, "collections": collections,
    })
}

fn classes(classes: &[SizeClass]) -> Vec<Value> {
    let one = |c: &SizeClass| json!({ "least": c.least, "count": c.count, "bytes": c.bytes });
    classes.iter().map(one).collect()
}

fn cut(object: &CutObject) -> Value {
    let mut out = Map::new();
    match &object.name {
        Some(name) => name::to_json(&mut out, "name", name),
        None => drop(out.insert("name".into(), Value::Null)),
    }
    out.insert("collection".into(), object.collection.clone().into());
    out.insert("oid".into(), object.oid.to_string().into());
    out.insert("bytes".into(), object.bytes.into());
    out.insert("pieces".into(), object.pieces.into());
    out.insert("fewest".into(), object.fewest.into());
    Value::Object(out)
}

fn remedies(r: &FragReport) -> Vec<Value> {
    let name = |action| match action {
        Action::JoinPieces => "join_pieces",
        Action::EmptyHeapPages => "empty_heap_pages",
        Action::Compact => "compact",
        Action::CloseOldestReader => "close_oldest_reader",
        // A newer engine may know more.
        _ => "other",
    };
    let one = |r: &holdall::frag::Remedy| {
        json!({
            "action": name(r.action), "gain_bytes": r.gain_bytes, "gain_pieces": r.gain_pieces,
            "cost_bytes": r.cost_bytes,
        })
    };
    r.remedies.iter().map(one).collect()
}

/// Each cell as its pages by kind, in the order of `kinds`; and which cells are cut.
fn map(map: &VolumeMap) -> Value {
    let cells = map.cells.iter().map(|c| KINDS.map(|(_, _, pages)| pages(c)));
    let cut = map.cells.iter().enumerate().filter(|(_, c)| c.cut).map(|(at, _)| at);
    json!({
        "pages_per_cell": map.pages_per_cell,
        "kinds": KINDS.map(|(kind, ..)| kind),
        "cells": cells.collect::<Vec<_>>(),
        "cut_cells": cut.collect::<Vec<_>>(),
    })
}
