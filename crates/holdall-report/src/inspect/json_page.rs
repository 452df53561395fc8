//! Pages as JSON.
//!
//! Owns: the names of the fields.

use super::json_parts::{error, location, named, segment, superblocks};
use super::text_lines::runs;
use crate::name::hex;
use holdall::PageNo;
use holdall::inspect::{
    Body, Handle, HeapContent, HeapSlot, MapRoot, NamesValue, Node, Page, PageContent, PlaceInSpace,
};
use serde_json::{Map, Value, json};

/// A page.
pub fn page(p: &Page) -> Value {
    let content = match &p.content {
        PageContent::Superblock(found) => superblocks(found),
        PageContent::Known { kind, lsn, owner, checksum, body: found, damage, .. } => {
            let damage = damage
                .as_ref()
                .map(|(e, bytes)| json!({ "error": e.to_string(), "bytes": hex(bytes) }));
            json!({
                "kind": format!("{kind:?}"), "lsn": lsn.0, "owner": owner, "checksum": checksum,
                "body": found.as_ref().map(|found| body(found, p.page_size)), "damage": damage,
            })
        }
        PageContent::Unknown { error: why, place: known, bytes, .. } => json!({
            "error": why.to_string(),
            "in_space": known.as_ref().map_or_else(|e| error(e), place),
            "bytes": hex(bytes),
        }),
        // A newer engine may know more.
        _ => Value::Null,
    };
    json!({
        "page": p.number.0, "at": p.at, "newer_in_memory": p.newer.map(|lsn| lsn.0),
        "image": p.image.map(|page| page.0), "image_of": p.image_of.map(|page| page.0),
        "content": content,
    })
}

fn place(known: &PlaceInSpace) -> Value {
    let note = known.segment.as_ref().map(|note| {
        json!({
            "noted_in": note.noted_in.0, "checksums": note.checksums, "owner": note.owner,
        })
    });
    json!({ "in_use": known.in_use, "segment": note })
}

fn body(body: &Body, page_size: u64) -> Value {
    match body {
        Body::SpaceDir { space, used, pages, .. } => {
            json!({ "space": space, "used_pages": used, "pages": pages })
        }
        Body::SpaceInfo { stretch, space, pages, entries, .. } => {
            let entry = |(page, sums, owner): &(holdall::PageNo, Vec<u32>, u64)| json!({ "page": page.0, "checksums": sums, "owner": owner });
            let entries: Vec<Value> = entries.iter().map(entry).collect();
            json!({ "stretch": stretch, "space": space, "pages": pages, "entries": entries })
        }
        Body::Root {
            spaces,
            next_collection,
            catalog,
            entries,
            small,
            drops,
            handles,
            images,
            backups,
            ..
        } => {
            json!({
                "spaces": spaces, "next_collection": next_collection, "catalog": catalog.0,
                "entries": entries.0, "small": small.0, "drops": drops.0,
                "handles": handles.as_ref().map(map),
                "images": (!images.is_none()).then_some(images.0),
                "backups": backups.iter().map(backup).collect::<Value>(),
            })
        }
        Body::Collection { objects, unnamed, bytes, names, heap, threshold, .. } => json!({
            "objects": objects, "unnamed": unnamed, "logical_bytes": bytes, "names": names.0, "threshold": threshold,
            "heap": heap.as_ref().map(|heap| json!({
                "map": map(&heap.map), "records": heap.records, "used_bytes": heap.used,
                "capacity_bytes": heap.capacity,
            })),
        }),
        Body::PageMap { level, base, entries, .. } => {
            let entries: Vec<Value> = entries
                .iter()
                .map(|(index, e)| {
                    let page = (!e.page.is_none()).then_some(e.page.0);
                    json!({ "index": index, "page": page, "class": e.tag.class, "hole": e.tag.hole })
                })
                .collect();
            json!({ "level": level, "base": base, "entries": entries })
        }
        Body::Handle { index, free, slots, .. } => {
            let slots: Vec<Value> = runs(slots.iter()).into_iter().map(handles).collect();
            json!({ "index": index, "free_slots": free, "slots": slots })
        }
        Body::Heap { index, records, free, slots, .. } => json!({
            "index": index, "records": records, "free_bytes": free,
            "slots": slots.iter().map(heap_slot).collect::<Vec<_>>(),
        }),
        Body::Names { level, count, free, prefix, below, cells, .. } => {
            let mut out = Map::new();
            named(&mut out, "prefix", Some(prefix));
            out.insert("level".into(), (*level).into());
            out.insert("cells".into(), (*count).into());
            out.insert("free_bytes".into(), (*free).into());
            out.insert("below_all".into(), below.map(|page| page.0).into());
            out.insert("names".into(), cells.iter().map(names_cell).collect());
            Value::Object(out)
        }
        Body::SegmentNode(found) => node(found, page_size),
        Body::Images { level, entries, .. } => images(*level, entries),
        // A newer engine may know more.
        _ => Value::Null,
    }
}

fn images(level: u8, entries: &[(PageNo, PageNo)]) -> Value {
    let live = entries.iter().filter(|(_, target)| !target.is_none());
    let to = if level == 0 { "image" } else { "node" };
    let entries: Vec<Value> =
        live.map(|(page, target)| json!({ "page": page.0, to: target.0 })).collect();
    json!({ "level": level, "entries": entries })
}

/// A backup that the root page names.
fn backup((id, lsn): &([u8; 16], holdall::Lsn)) -> Value {
    json!({ "id": format!("{:032x}", u128::from_be_bytes(*id)), "lsn": lsn.0 })
}

fn map(map: &MapRoot) -> Value {
    json!({ "pages": map.pages, "levels": map.levels, "root": map.root.0 })
}

fn handles((from, to, state): (usize, usize, &Handle)) -> Value {
    match state {
        Handle::Never => json!({ "from": from, "to": to, "state": "never used" }),
        Handle::Free => json!({ "from": from, "to": to, "state": "free" }),
        Handle::Live { unique, loc } => json!({
            "from": from, "to": to, "state": "live", "unique": unique, "record": location(loc),
        }),
    }
}

fn heap_slot(slot: &HeapSlot) -> Value {
    let mut out = Map::new();
    out.insert("slot".into(), slot.slot.into());
    out.insert("from".into(), slot.bytes.start.into());
    out.insert("to".into(), slot.bytes.end.into());
    let mut put = |field: &str, value: Value| drop(out.insert(field.into(), value));
    match &slot.content {
        None => put("error", "outside the page".into()),
        Some(Err(e)) => put("error", e.to_string().into()),
        Some(Ok(HeapContent::Divided(oid, rest))) => {
            put("oid", oid.to_string().into());
            put("goes_on", location(rest));
        }
        Some(Ok(HeapContent::Continuation(oid))) => {
            put("oid", oid.to_string().into());
            put("continuation", true.into());
        }
        Some(Ok(HeapContent::Record { oid, name, large, size, .. })) => {
            put("oid", oid.to_string().into());
            put("large", (*large).into());
            match size {
                Ok(size) => put("size", (*size).into()),
                Err(e) => put("error", e.to_string().into()),
            }
            named(&mut out, "name", name.as_deref());
        }
        // A newer engine may know more.
        Some(Ok(_)) => {}
    }
    Value::Object(out)
}

fn names_cell((key, value): &(Vec<u8>, NamesValue)) -> Value {
    let mut out = Map::new();
    named(&mut out, "name", Some(key));
    match value {
        NamesValue::Child(page) => out.insert("page".into(), page.0.into()),
        NamesValue::Object(oid) => out.insert("oid".into(), oid.to_string().into()),
        NamesValue::Other(value) => out.insert("value".into(), hex(value).into()),
        // A newer engine may know more.
        _ => None,
    };
    Value::Object(out)
}

fn node(node: &Node, page_size: u64) -> Value {
    let mut start = 0u64;
    let mut next = |len: u64| {
        let at = start;
        start = start.saturating_add(len);
        at
    };
    let entries: Vec<Value> = match node {
        Node::Leaf(slices) => slices.iter().map(|s| segment(next(s.len), s, page_size)).collect(),
        Node::Inner { children, .. } => children
            .iter()
            .map(|c| {
                let start = next(c.bytes);
                json!({ "kind": "node", "start": start, "bytes": c.bytes, "page": c.node.0 })
            })
            .collect(),
    };
    json!({ "level": node.level(), "bytes": node.bytes(), "entries": entries })
}
