//! Reports as JSON, with everything in them.
//!
//! Owns: the names of the fields.

use holdall::frag::{Action, CutObject, FragReport, Geometry, SizeClass, VolumeMap};
use holdall::{
    DefragReport, Distribution, GaveBack, Metrics, Oid, Problem, ReaderStat, SalvageReport,
    StoreStat, VerifyReport,
};
use serde_json::{Map, Value, json};

use crate::name;
use crate::words::{KINDS, first_remedy};

/// Figures of a store, with the fields that docs/cli.md names.
pub fn stat(stat: &StoreStat, frag: &FragReport) -> Value {
    let mut all = store(stat);
    all["contract"] = json!({
        "file_bytes": frag.contract.left_bytes,
        "most_bytes": frag.contract.right_bytes,
        "holds": frag.contract.holds,
    });
    all["remedy"] = first_remedy(frag).into();
    all
}

/// As [`stat`], without what only a walk through all objects tells.
pub fn store(stat: &StoreStat) -> Value {
    let collections: Vec<_> = stat
        .collections
        .iter()
        .map(|c| json!({ "name": c.name, "objects": c.objects, "logical_bytes": c.logical_bytes }))
        .collect();
    json!({
        "objects": stat.objects,
        "logical_bytes": stat.logical_bytes,
        "file_bytes": stat.file_bytes,
        "utilization": stat.utilization,
        "heap_utilization": stat.heap_utilization,
        "free_bytes": stat.free_bytes,
        "hole_bytes": stat.hole_bytes,
        "gave_back": gave_back(&stat.gave_back),
        "waiting_bytes": stat.waiting_bytes,
        "page_size": stat.page_size,
        "space_pages": stat.space_pages,
        "spaces": stat.spaces,
        "format_version": stat.format_version,
        "space": {
            "limit_bytes": stat.fullness.limit_bytes,
            "reserve_bytes": stat.fullness.reserve_bytes,
            "metadata_bytes": stat.fullness.metadata_bytes,
            "stored_bytes": stat.fullness.stored_bytes,
            "full": stat.fullness.share(),
        },
        "oldest_reader": {
            "pinned_bytes": stat.pinned_bytes,
            "seconds": stat.readers.first().map_or(0.0, |reader| reader.age.as_secs_f64()),
        },
        "readers": stat.readers.iter().map(reader).collect::<Vec<_>>(),
        "elsewhere": {
            "pages": stat.elsewhere.images,
            "old_version_bytes": stat.elsewhere.scratch_bytes,
        },
        "collections": collections,
        "checkpoint": { "lsn": stat.checkpoint_lsn, "epoch": stat.epoch, "dirty_pages": stat.dirty_pages },
        "log": {
            "durable_lsn": stat.durable_lsn,
            "used_bytes": stat.log_used,
            "capacity_bytes": stat.log_capacity,
            "file_bytes": stat.log_file_bytes,
        },
    })
}

/// What a store does. Times are in seconds.
pub fn metrics(m: &Metrics) -> Value {
    let times = |all| distribution(all, 1e9);
    json!({
        "lookups": m.lookups,
        "page_hits": m.page_hits,
        "page_reads": m.page_reads,
        "dirty_pages": m.dirty_pages,
        "cached_page_bytes": m.cached_page_bytes,
        "group_commits": distribution(&m.group_commits, 1.0),
        "log_bytes": m.log_bytes,
        "log_seconds": times(&m.log_times),
        "commit_wait_seconds": times(&m.commit_waits),
        "writer_wait_seconds": times(&m.writer_waits),
        "sync_seconds": times(&m.sync_times),
        "checkpoint_seconds": times(&m.checkpoint_times),
        "checkpoint_pages": m.checkpoints.pages,
        "readers_given_up": m.readers_given_up,
        "scrubbed_bytes": m.scrubbed_bytes,
        "scrubs": m.scrubs,
        "damage": m.damage,
        "background_failures": m.background_failures,
        "last_failure": m.last_failure,
    })
}

fn distribution(all: &Distribution, unit: f64) -> Value {
    let [half, most] = [0.5, 0.99].map(|q| all.quantile(q) as f64 / unit);
    json!({ "count": all.count(), "sum": all.sum() as f64 / unit, "p50": half, "p99": most })
}

fn reader(reader: &ReaderStat) -> Value {
    json!({
        "thread": reader.thread,
        "seconds": reader.age.as_secs_f64(),
        "pinned_bytes": reader.pinned_bytes,
    })
}

/// What a check found.
pub fn verify(report: &VerifyReport) -> Value {
    let list = |found: &[Problem]| -> Vec<_> {
        found.iter().map(|p| json!({ "place": p.place, "detail": p.detail })).collect()
    };
    let mut out = json!({
        "sound": report.problems.is_empty(),
        "pages": report.pages,
        "blank_pages": report.blank_pages,
        "divided": report.divided,
        "objects": report.objects,
        "bytes_checked": report.bytes_checked,
        "problems": list(&report.problems),
        "notes": list(&report.notes),
    });
    if let (Some(compared), Some(fields)) = (report.compared, out.as_object_mut()) {
        fields.insert("compared".into(), compared.into());
    }
    out
}

/// What a salvage brought and what is lost, with the fields that docs/cli.md names.
pub fn salvage(report: &SalvageReport) -> Value {
    let mut lost = Vec::new();
    for object in &report.lost {
        let mut all = named(object.collection.as_deref(), object.name.as_deref(), object.oid);
        all.insert("size".into(), object.size.into());
        let ranges = object.ranges.iter().map(|range| json!([range.start, range.end]));
        all.insert("lost_ranges".into(), ranges.collect::<Vec<_>>().into());
        all.insert("why".into(), object.why.as_str().into());
        all.insert("brought".into(), object.brought.into());
        lost.push(Value::Object(all));
    }
    let doubtful = report.doubtful.iter().map(|object| {
        let mut all = named(Some(&object.collection), object.name.as_deref(), object.oid);
        all.insert("why".into(), object.why.as_str().into());
        Value::Object(all)
    });
    json!({
        "objects": report.objects,
        "bytes": report.bytes,
        "collections": report.collections,
        "lost": lost,
        "doubtful": doubtful.collect::<Vec<_>>(),
        "damaged": report.notes,
        "unreadable_bytes": report.unreadable,
    })
}

/// An object by collection, name and OID.
fn named(collection: Option<&str>, name: Option<&[u8]>, oid: Oid) -> Map<String, Value> {
    let mut all = Map::new();
    all.insert("collection".into(), collection.into());
    match name {
        Some(bytes) => name::to_json(&mut all, "name", bytes),
        None => drop(all.insert("name".into(), Value::Null)),
    }
    all.insert("oid".into(), oid.to_string().into());
    all
}

/// What a defragmentation moved, and what it left.
pub fn defrag(report: &DefragReport) -> Value {
    let moved = &report.moved;
    json!({
        "heap_pages_emptied": moved.heap_pages,
        "record_bytes_moved": moved.record_bytes,
        "objects_joined": moved.objects,
        "pieces_joined": moved.pieces,
        "segment_bytes_moved": moved.segment_bytes,
        "page_bytes_moved": moved.page_bytes,
        "objects_shared": report.shared,
        "objects_without_room": report.no_room,
        "file_bytes_before": report.blocks_before,
        "moves_given_up": report.given_up,
        "file_bytes_after": report.blocks_after,
        "gave_back": gave_back(&report.gave_back),
    })
}

/// What could not be given back to the file system.
fn gave_back(told: &GaveBack) -> Value {
    json!({
        "cannot_punch": told.cannot_punch,
        "failed_runs": told.failed_runs,
        "failed_bytes": told.failed_bytes,
        "failure": told.failure.as_deref().unwrap_or_default(),
    })
}

/// One object with the fields that docs/cli.md names.
pub fn frag(r: &FragReport) -> Value {
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
            "objects": c.objects, "data_bytes": c.data_bytes,
            "metadata_bytes": c.metadata_bytes, "waiting_bytes": c.waiting_bytes,
            "kept_bytes": c.kept_bytes, "constant_bytes": c.constant_bytes,
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

/// What would help, and how much.
pub(crate) fn remedies(r: &FragReport) -> Vec<Value> {
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
