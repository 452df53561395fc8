//! Pages in words.

use super::text_lines::{Hex, Name, Text, runs};
use super::volume::superblocks;
use holdall::PageNo;
use holdall::inspect::{
    Body, Handle, HeapContent, HeapSlot, MapRoot, NamesValue, Node, Page, PageContent, PlaceInSpace,
};

/// A page: its header, then its body by kind.
pub fn page(p: &Page) -> String {
    let (mut text, no, at) = (Text::default(), p.number, p.at);
    if let Some(newest) = p.newer {
        text.line(0, format_args!("version {newest} is in memory and not yet in the file"));
    }
    if let Some(image) = p.image {
        text.line(
            0,
            format_args!("the newest version lies in page {image}; this is what was before"),
        );
    }
    if let Some(of) = p.image_of {
        text.line(0, format_args!("the newest version of page {of} lies here"));
    }
    match &p.content {
        PageContent::Superblock(found) => {
            text.line(0, format_args!("page {no} at byte {at}: a copy of the superblock"));
            return text.finish() + &superblocks(found);
        }
        PageContent::Known { kind, lsn, owner, checksum, body: found, damage, .. } => {
            text.line(
                0,
                format_args!(
                    "page {no} at byte {at}: {kind:?}, LSN {lsn}, owner {owner}, checksum \
                     {checksum:08x}"
                ),
            );
            if let Some(found) = found {
                body(&mut text, found);
            }
            if let Some((e, bytes)) = damage {
                text.line(1, format_args!("{e}"));
                text.hex(1, bytes, bytes.len());
            }
        }
        PageContent::Unknown { error, place: known, bytes, .. } => {
            text.line(0, format_args!("page {no} at byte {at}: segment data, free, or damaged"));
            text.line(1, format_args!("as a page: {error}"));
            match known {
                Ok(known) => text.line(1, format_args!("{}", place(known))),
                Err(e) => text.line(1, format_args!("its space: {e}")),
            }
            text.hex(1, bytes, 64);
        }
        // A newer engine may know more.
        _ => text.line(0, format_args!("page {no} at byte {at}")),
    }
    text.finish()
}

fn place(known: &PlaceInSpace) -> String {
    let state = if known.in_use { "in use" } else { "free" };
    match &known.segment {
        None => format!("{state}; its stretch has no segment pages"),
        Some(note) => {
            let (sums, owner, page) = (checksums(&note.checksums), note.owner, note.noted_in);
            format!("{state}; as segment data: checksums {sums}, owner {owner} (in page {page})")
        }
    }
}

fn checksums(sums: &[u32]) -> String {
    sums.iter().map(|s| format!("{s:08x}")).collect::<Vec<_>>().join(" ")
}

fn body(text: &mut Text, body: &Body) {
    match body {
        Body::SpaceDir { space, used, pages, .. } => {
            text.line(1, format_args!("space {space}: {used} of {pages} pages in use"));
        }
        Body::SpaceInfo { stretch, space, pages, entries, .. } => {
            text.line(1, format_args!("stretch {stretch} of space {space}: {pages} pages"));
            for (page, sums, owner) in entries {
                let sums = checksums(sums);
                text.line(1, format_args!("page {page}: {sums}, owner {owner}"));
            }
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
            text.line(1, format_args!("spaces {spaces}, next collection {next_collection}"));
            text.line(1, format_args!("catalog: root page {catalog}, of entries {entries}"));
            text.line(1, format_args!("small collections: page {small}; drop list: {drops}"));
            if let Some(handles) = handles {
                map(text, "handle table", handles);
            }
            images_and_backups(text, *images, backups);
        }
        Body::Collection { objects, unnamed, bytes, names, heap, threshold, .. } => {
            let without = format_args!("{unnamed} without a name");
            text.line(1, format_args!("{objects} objects of {bytes} bytes, {without}"));
            text.line(1, format_args!("names: root page {names}"));
            if let Some(heap) = heap {
                map(text, "heap file", &heap.map);
                let (records, used, capacity) = (heap.records, heap.used, heap.capacity);
                text.line(1, format_args!("{records} records, {used} of {capacity} bytes used"));
                text.line(1, format_args!("segment threshold {threshold}"));
            }
        }
        Body::PageMap { level, base, entries, .. } => {
            text.line(1, format_args!("level {level}, from index {base} on"));
            for (index, entry) in entries {
                let (class, hole) = (entry.tag.class, if entry.tag.hole { ", hole" } else { "" });
                text.line(1, format_args!("{index}: page {}, class {class}{hole}", entry.page));
            }
        }
        Body::Handle { index, free, slots, .. } => handles(text, *index, *free, slots),
        Body::Heap { index, records, free, slots, .. } => {
            text.line(1, format_args!("heap page {index}: {records} records, {free} bytes free"));
            slots.iter().for_each(|slot| heap_slot(text, slot));
        }
        Body::Names { level, count, free, prefix, below, cells, .. } => {
            let prefix = Name(prefix);
            text.line(
                1,
                format_args!("level {level}, {count} cells, {free} bytes free, prefix {prefix}"),
            );
            if let Some(below) = below {
                text.line(1, format_args!("below all: page {below}"));
            }
            cells.iter().for_each(|(key, value)| names_cell(text, &Name(key), value));
        }
        Body::SegmentNode(found) => node(text, found),
        Body::Images { level, entries, .. } => images(text, *level, entries),
        // A newer engine may know more.
        _ => {}
    }
}

fn images(text: &mut Text, level: u8, entries: &[(PageNo, PageNo)]) {
    text.line(1, format_args!("level {level}, {} entries", entries.len()));
    let to = if level == 0 { "image at page" } else { "node at page" };
    for (page, target) in entries.iter().filter(|(_, target)| !target.is_none()) {
        text.line(1, format_args!("page {page}: {to} {target}"));
    }
}

/// What a root page has of images and backups.
fn images_and_backups(
    text: &mut Text,
    images: holdall::PageNo,
    backups: &[([u8; 16], holdall::Lsn)],
) {
    if !images.is_none() {
        text.line(1, format_args!("images of pages: root page {images}"));
    }
    for (id, lsn) in backups {
        let id = u128::from_be_bytes(*id);
        text.line(1, format_args!("backup {id:032x}: its mark follows LSN {lsn}"));
    }
}

fn map(text: &mut Text, what: &str, map: &MapRoot) {
    let (len, levels, root) = (map.pages, map.levels, map.root);
    text.line(1, format_args!("{what}: map of {len} pages, {levels} levels, root page {root}"));
}

fn handles(text: &mut Text, index: u32, free: usize, slots: &[Handle]) {
    text.line(1, format_args!("handle page {index:x}, {free} slots free"));
    for (from, to, state) in runs(slots.iter()) {
        match state {
            Handle::Never => text.line(1, format_args!("{from:x} to {to:x}: never used")),
            Handle::Free => text.line(1, format_args!("{from:x} to {to:x}: free")),
            Handle::Live { unique, loc } => {
                let (page, slot) = (loc.page, loc.slot);
                text.line(1, format_args!("{from:x}: unique {unique:x}, page {page} slot {slot}"));
            }
        }
    }
}

fn heap_slot(text: &mut Text, slot: &HeapSlot) {
    let (number, range) = (slot.slot, &slot.bytes);
    let what = match &slot.content {
        None => "outside the page".to_owned(),
        Some(Err(e)) => e.to_string(),
        Some(Ok(HeapContent::Divided(oid, rest))) => {
            format!("{oid}, goes on in page {} slot {}", rest.page, rest.slot)
        }
        Some(Ok(HeapContent::Continuation(oid))) => format!("{oid}, continuation"),
        Some(Ok(HeapContent::Record { oid, name, large, size, .. })) => {
            let name = name.as_ref().map_or("no name".to_owned(), |n| Name(n).to_string());
            let kind = if *large { "large" } else { "small" };
            let size = match size {
                Ok(size) => format!("{size} bytes"),
                Err(e) => e.to_string(),
            };
            format!("{oid}, {name}, {kind}, {size}")
        }
        // A newer engine may know more.
        Some(Ok(_)) => "other content".to_owned(),
    };
    text.line(1, format_args!("slot {number}, bytes {}..{}: {what}", range.start, range.end));
}

fn names_cell(text: &mut Text, key: &Name<'_>, value: &NamesValue) {
    match value {
        NamesValue::Child(page) => text.line(1, format_args!("from {key}: page {page}")),
        NamesValue::Object(oid) => text.line(1, format_args!("{key}: {oid}")),
        NamesValue::Other(value) => text.line(1, format_args!("{key}: {}", Hex(value))),
        // A newer engine may know more.
        _ => text.line(1, format_args!("{key}")),
    }
}

fn node(text: &mut Text, node: &Node) {
    let (level, count, mut at) = (node.level(), node.count(), 0u64);
    text.line(1, format_args!("level {level}, {count} entries, {:?} bytes", node.bytes()));
    match node {
        Node::Leaf(slices) => {
            for s in slices {
                let what = if s.is_run() {
                    format!("page {}, offset {}, flags {:#x}", s.reference, s.offset, s.flags)
                } else {
                    "zeros".to_owned()
                };
                text.line(1, format_args!("{at}: {} bytes, {what}", s.len));
                at = at.saturating_add(s.len);
            }
        }
        Node::Inner { children, .. } => {
            for c in children {
                text.line(1, format_args!("{at}: {} bytes, page {}", c.bytes, c.node));
                at = at.saturating_add(c.bytes);
            }
        }
    }
}
