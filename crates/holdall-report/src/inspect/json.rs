//! The structures of [`holdall::inspect`] as JSON, pages aside.
//!
//! Owns: the names of the fields. Bytes are hexadecimal; of what cannot be read `error` says why.

use super::log::block;
use super::text_lines::runs;
use crate::json::remedies;
use crate::name::{self, hex};
use holdall::frag::FragReport;
use holdall::inspect::{
    InPlaceKind, LargeObject, LogDump, LogEnd, LogPart, NamesPart, NamesStop, NamesTree,
    ObjectBody, ObjectDump, Part, Ranges, Record, Sharing, Space, SpaceFigures, Superblocks,
    TreePart,
};
use holdall::{Error, Lsn, Result};
use serde_json::{Map, Value, json};
use std::time::UNIX_EPOCH;

pub use super::json_page::page;
pub use super::json_parts::superblocks;

use super::json_parts::{error, location, named, segment, with};

/// Both copies of the superblock, the holes of the file, and what maintenance has left to do.
pub fn volume(found: &Superblocks, report: &FragReport) -> Value {
    let g = &report.geometry;
    let mut out = superblocks(found);
    if let Some(fields) = out.as_object_mut() {
        fields.insert("hole_pages".into(), g.hole_pages.into());
        fields.insert("holes_assumed".into(), g.holes_assumed.into());
        fields.insert("free_pages".into(), g.free_pages.into());
        fields.insert("remedies".into(), remedies(report).into());
    }
    out
}

/// A space; `used` has the first page and the number of pages of each run in use.
pub fn space(s: &Space) -> Value {
    let used = runs(s.used.iter()).into_iter().filter(|(.., used)| **used);
    let run = |(from, to, _)| json!([s.first.0 + from as u64, to - from + 1]);
    let changes = runs(s.changes.iter()).into_iter().filter(|(.., lsn)| **lsn > Lsn(0));
    let change = |(from, to, lsn): (_, _, &Lsn)| json!({ "from": from, "to": to, "lsn": lsn.0 });
    let stretches = s.stretches.iter().map(|stretch| {
        let content = match &stretch.content {
            Ok((live, info)) => json!({ "segment_pages": live, "checksums_in": info.0 }),
            Err(e) => error(e),
        };
        let (first, last) = (stretch.first.0, stretch.last.0);
        let place = json!({ "first_page": first, "last_page": last, "content": content });
        with("stretch", stretch.number.into(), place)
    });
    let mut out = json!({
        "space": s.number, "first_page": s.first.0, "pages": s.used.len(),
        "directory": s.directory.0, "figures": figures(&s.figures),
        "used": used.map(run).collect::<Vec<_>>(),
        "stretches": stretches.collect::<Vec<_>>(),
        "changes": changes.map(change).collect::<Vec<_>>(),
    });
    if let (Some(e), Some(fields)) = (&s.damage, out.as_object_mut()) {
        fields.insert("error".into(), e.to_string().into());
    }
    out
}

fn figures(f: &SpaceFigures) -> Value {
    json!({
        "used_pages": f.used, "free_pages": f.free, "longest_free_run": f.longest_run,
        "pages_beyond_file": f.beyond,
    })
}

/// An element of the list of all spaces.
pub fn listed(number: u32, found: &Result<SpaceFigures>) -> Value {
    with("space", number.into(), found.as_ref().map_or_else(|e| error(e), figures))
}

/// The shared pages, range by range.
pub fn sharing(s: &Sharing) -> Value {
    let range = |range: &Result<holdall::inspect::SharedPages>| match range {
        Ok(r) => json!({ "page": r.run.start.0, "pages": r.run.len, "references": r.references }),
        Err(e) => error(e),
    };
    let ranges: Vec<Value> = s.ranges.iter().map(range).collect();
    json!({ "tree": s.tree.map(|page| page.0), "ranges": ranges })
}

/// An object; `modified` is in milliseconds since 1970 UTC, null if it is not known.
pub fn object(o: &ObjectDump) -> Value {
    let mut out = Map::new();
    named(&mut out, "name", o.name.as_deref());
    let since = o.modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let modified = since.and_then(|d| u64::try_from(d.as_millis()).ok());
    let mut attributes = Map::new();
    for (key, value) in &o.attributes {
        name::to_json(&mut attributes, key, value);
    }
    let body = match &o.body {
        ObjectBody::Small(bytes) => json!({ "kind": "small", "bytes": hex(bytes) }),
        ObjectBody::Large(found) => large(found),
        // A newer engine may know more.
        _ => json!({ "kind": "other" }),
    };
    out.insert("oid".into(), o.oid.to_string().into());
    out.insert("record_bytes".into(), o.record_bytes.into());
    out.insert("record".into(), location(&o.place));
    out.insert("rest_of_record".into(), o.rest.as_ref().map(location).into());
    out.insert("modified".into(), modified.into());
    out.insert("attributes".into(), attributes.into());
    out.insert("body".into(), body);
    Value::Object(out)
}

fn large(o: &LargeObject) -> Value {
    let part = |part: &TreePart| match part {
        TreePart::Node { page, level, count, bytes, .. } => json!({
            "kind": "node", "page": page.0, "level": level, "entries": count, "bytes": bytes,
        }),
        TreePart::Unreadable { page, level, error, .. } => json!({
            "kind": "node", "page": page.0, "level": level, "error": error.to_string(),
        }),
        TreePart::Segment(start, slice) => segment(*start, slice, o.page_size),
        // A newer engine may know more.
        _ => json!({ "kind": "other" }),
    };
    json!({
        "kind": "large", "size": o.size, "threshold": o.threshold,
        "default_threshold": o.is_default, "flags": o.flags, "levels": o.levels,
        "tree": o.tree.iter().map(part).collect::<Vec<_>>(), "tail": hex(&o.tail),
    })
}

/// The first element of the list of a tree of names.
pub fn names(tree: &NamesTree) -> Value {
    json!({
        "kind": "collection", "collection": tree.collection, "page": tree.page.map(|page| page.0),
        "number": tree.number, "objects": tree.objects,
        "logical_bytes": u64::try_from(tree.bytes).unwrap_or(u64::MAX),
        "root": tree.root.map(|page| page.0),
    })
}

/// An element of the list of a tree of names.
pub fn names_stop(stop: &NamesStop) -> Value {
    let mut out = Map::new();
    let kind = match &stop.found {
        NamesPart::Node { page, level, count, used, capacity, prefix, .. } => {
            named(&mut out, "prefix", Some(prefix));
            let node = json!({
                "page": page.0, "level": level, "cells": count, "used_bytes": used,
                "capacity_bytes": capacity,
            });
            out.extend(node.as_object().cloned().unwrap_or_default());
            "node"
        }
        NamesPart::From(low) => {
            named(&mut out, "name", Some(low));
            "from"
        }
        NamesPart::Name(key, oid) => {
            named(&mut out, "name", Some(key));
            match oid {
                Ok(oid) => out.insert("oid".into(), oid.to_string().into()),
                Err(e) => out.insert("error".into(), e.to_string().into()),
            };
            "name"
        }
        NamesPart::Damaged(page, e) => {
            let why = e.as_ref().map_or_else(|| "met above already".into(), Error::to_string);
            out.insert("page".into(), page.0.into());
            out.insert("error".into(), why.into());
            "damaged"
        }
        // A newer engine may know more.
        _ => "other",
    };
    out.insert("depth".into(), stop.depth.into());
    with("kind", kind.into(), Value::Object(out))
}

/// The first element of the list of a log.
pub fn log(log: &LogDump) -> Value {
    json!({
        "kind": "log", "required": log.required, "file_bytes": log.file_bytes,
        "log_bytes": log.log_bytes, "store_id": hex(&log.store_id), "epoch": log.epoch,
        "replay": log.replay.0, "in_place": log.in_place.0,
    })
}

/// An element of the list of a log; the records of a group follow it.
pub fn log_part(part: &LogPart) -> Value {
    match part {
        LogPart::Group(g) => json!({
            "kind": "group", "lsn": g.lsn.0, "blocks": g.blocks, "bytes": g.payload.len(),
            "durable": g.durable.0, "superblock": g.superblock, "checksum": g.checksum,
        }),
        LogPart::End(at, why) => {
            let (lsn, why) = match why {
                LogEnd::Block(lsn, found) => (Some(lsn.0), block(found)),
                LogEnd::Stray(lsn, group) => (
                    Some(lsn.0),
                    format!("belongs to group {group} or does not follow the one before"),
                ),
                LogEnd::Full => (None, "the log is full".into()),
                // A newer engine may know more.
                _ => (None, "of another sort".into()),
            };
            json!({ "kind": "end", "lsn": at.0, "block": lsn, "why": why })
        }
        LogPart::Short => json!({ "kind": "short" }),
        LogPart::Behind(first, last, found) => json!({
            "kind": "blocks", "first": first.0, "last": last.0, "state": block(found),
        }),
        // A newer engine may know more.
        _ => json!({ "kind": "other" }),
    }
}

fn changes(ranges: &Ranges<'_>) -> Vec<Value> {
    let range = |(at, b): (usize, &[u8])| json!({ "at": at, "bytes": hex(b) });
    ranges.iter().map(range).collect()
}

/// A record of a group, or the bytes that are none.
pub fn record(record: &Result<Record<'_>, (Error, &[u8])>) -> Value {
    let record = match record {
        Ok(record) => record,
        Err((e, rest)) => {
            return json!({ "kind": "damaged", "error": e.to_string(), "bytes": hex(rest) });
        }
    };
    match record {
        Record::Page { page, new, checksum, ranges } => {
            json!({
                "kind": "page", "page": page.0, "new": new, "checksum": checksum,
                "ranges": changes(ranges),
            })
        }
        Record::FromImage { page, image, before, checksum, ranges } => json!({
            "kind": "from_image", "page": page.0, "image": image.0, "before": before,
            "checksum": checksum, "ranges": changes(ranges),
        }),
        Record::Segment { page, bytes } => {
            json!({ "kind": "segment", "page": page.0, "bytes": bytes.len() })
        }
        Record::Composed { page, checksum, parts } => {
            let part = |part: Result<Part<'_>>| match part {
                Ok(Part::Bytes(b)) => json!({ "kind": "bytes", "bytes": b.len() }),
                Ok(Part::Copy { from, len }) => {
                    json!({ "kind": "copy", "from": from, "bytes": len })
                }
                Ok(Part::Zeros(len)) => json!({ "kind": "zeros", "bytes": len }),
                Err(e) => error(&e),
            };
            let parts: Vec<Value> = parts.iter().map(part).collect();
            json!({ "kind": "composed", "page": page.0, "checksum": checksum, "parts": parts })
        }
        Record::InPlace { page, count, kind, checksum } => json!({
            "kind": "in_place", "page": page.0, "pages": count, "checksum": checksum,
            "segment": *kind == InPlaceKind::Units,
        }),
        Record::Commit { lsn } => json!({ "kind": "commit", "lsn": lsn.0 }),
        Record::Skipped => json!({ "kind": "skipped" }),
    }
}
