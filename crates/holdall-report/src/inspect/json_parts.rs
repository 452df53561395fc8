//! Parts of JSON that pages and other structures share.
//!
//! Owns: the names of their fields.

use crate::name::{self, hex};
use holdall::inspect::{Location, Slice, Superblock, SuperblockCopy, Superblocks};
use serde_json::{Map, Value, json};
use std::fmt::Display;

/// An object of one field that says what went wrong.
pub(super) fn error(e: &dyn Display) -> Value {
    json!({ "error": e.to_string() })
}

/// `value` with `field` before its own.
pub(super) fn with(field: &str, first: Value, value: Value) -> Value {
    let mut out = Map::from_iter([(field.to_owned(), first)]);
    match value {
        Value::Object(fields) => out.extend(fields),
        other => drop(out.insert("value".into(), other)),
    }
    Value::Object(out)
}

/// A name, or null if there is none.
pub(super) fn named(fields: &mut Map<String, Value>, field: &str, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => name::to_json(fields, field, bytes),
        None => drop(fields.insert(field.into(), Value::Null)),
    }
}

pub(super) fn location(at: &Location) -> Value {
    json!({ "page": at.page.0, "slot": at.slot })
}

/// Both copies of the superblock.
pub fn superblocks(found: &Superblocks) -> Value {
    let copy = |(at, copy): &(u64, SuperblockCopy)| {
        let damaged = |why: &dyn Display, bytes: &[u8]| json!({ "error": why.to_string(), "bytes": hex(bytes) });
        let value = match copy {
            SuperblockCopy::Whole(sb, features) => superblock(sb, *features),
            SuperblockCopy::Refused(e, bytes) => damaged(e, bytes),
            SuperblockCopy::Torn(bytes) => damaged(&"its checksum is wrong", bytes),
            SuperblockCopy::Other(bytes) => damaged(&"it does not begin as one", bytes),
            // The file ends before it; a newer engine may know more.
            _ => error(&"beyond the end of the file"),
        };
        with("at", (*at).into(), value)
    };
    let copies: Vec<Value> = found.copies.iter().map(copy).collect();
    json!({ "volume_bytes": found.volume_bytes, "superblocks": copies })
}

fn superblock(sb: &Superblock, features: u64) -> Value {
    json!({
        "sequence": sb.sequence, "store_id": hex(&sb.store_id), "incarnation": sb.incarnation,
        "epoch": sb.epoch, "compatible_features": features, "page_size": sb.page_size,
        "space_pages": sb.space_pages, "volume_pages": sb.volume_pages, "spaces": sb.spaces,
        "root": sb.root.0, "replay": sb.replay.0, "in_place": sb.in_place.0,
        "log_bytes": sb.log_bytes, "log_required": sb.log_required, "holes": sb.holes,
        "unique_ceiling": sb.unique_ceiling,
    })
}

/// A segment whose first byte is that of number `start`.
pub(super) fn segment(start: u64, s: &Slice, page_size: u64) -> Value {
    if !s.is_run() {
        return json!({ "kind": "zeros", "start": start, "bytes": s.len });
    }
    json!({
        "kind": "pages", "start": start, "bytes": s.len, "page": s.reference,
        "pages": s.pages(page_size), "offset": s.offset, "flags": s.flags,
    })
}
