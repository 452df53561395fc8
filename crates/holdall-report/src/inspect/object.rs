//! Objects and names in words.

use super::text_lines::{Hex, Name, Text};
use crate::date;
use holdall::inspect::{
    LargeObject, NamesPart, NamesStop, NamesTree, ObjectBody, ObjectDump, Slice, TreePart,
};

/// An object: handle, record, descriptor, and its tree drawn with indentation.
pub fn object(o: &ObjectDump) -> String {
    let mut text = Text::default();
    let (bytes, page, slot) = (o.record_bytes, o.place.page, o.place.slot);
    text.line(0, format_args!("{}: record of {bytes} bytes in page {page} slot {slot}", o.oid));
    if let Some(rest) = &o.rest {
        text.line(0, format_args!("divided: goes on in page {} slot {}", rest.page, rest.slot));
    }
    match &o.name {
        Some(name) => text.line(0, format_args!("name {}", Name(name))),
        None => text.line(0, format_args!("no name")),
    }
    match o.modified {
        Some(at) => text.line(0, format_args!("last changed {}", date::millis(at))),
        None => text.line(0, format_args!("no time of last change")),
    }
    for (key, value) in &o.attributes {
        text.line(0, format_args!("attribute {} {}", Name(key.as_bytes()), Name(value)));
    }
    match &o.body {
        ObjectBody::Small(bytes) => {
            text.line(0, format_args!("{} bytes in the record", bytes.len()));
            text.hex(1, bytes, 256);
        }
        ObjectBody::Large(found) => large(&mut text, found),
        // A newer engine may know more.
        _ => text.line(0, format_args!("stored in another way")),
    }
    text.finish()
}

fn large(text: &mut Text, o: &LargeObject) {
    let (size, tail, threshold) = (o.size, o.tail.len(), o.threshold);
    let own = if o.is_default { " (default)" } else { "" };
    text.line(
        0,
        format_args!(
            "{size} bytes, {tail} of them in the record; threshold {threshold}{own}; flags {:#x}",
            o.flags
        ),
    );
    let top = usize::from(o.levels);
    let depth = |level: u8| top.saturating_sub(usize::from(level));
    for part in &o.tree {
        match part {
            TreePart::Node { page, level, count, bytes, .. } => {
                let what = if *level == 0 { "segments" } else { "children" };
                let line =
                    format_args!("page {page}: level {level}, {count} {what}, {bytes} bytes");
                text.line(depth(*level), line);
            }
            TreePart::Unreadable { page, level, error, .. } => {
                let line = format_args!("page {page}: level {level}: {error}");
                text.line(depth(*level).max(1), line);
            }
            TreePart::Segment(start, slice) => segment(text, top + 1, *start, slice, o.page_size),
            // A newer engine may know more.
            _ => {}
        }
    }
    if tail > 0 {
        text.line(1, format_args!("{}..{size} in the record", size - tail as u64));
        text.line(2, format_args!("{}", Hex(o.tail.get(..32).unwrap_or(&o.tail))));
    }
}

fn segment(text: &mut Text, depth: usize, start: u64, slice: &Slice, page_size: u64) {
    let end = start.saturating_add(slice.len);
    if !slice.is_run() {
        return text.line(depth, format_args!("{start}..{end} zeros"));
    }
    let (pages, from) = (slice.pages(page_size), slice.reference);
    let skip = match slice.offset {
        0 => String::new(),
        n => format!(" from byte {n} of the first"),
    };
    let flags =
        if slice.flags == 0 { String::new() } else { format!(", flags {:#x}", slice.flags) };
    text.line(depth, format_args!("{start}..{end} in {pages} pages from {from}{skip}{flags}"));
}

/// The line above a tree of names.
pub fn names(tree: &NamesTree) -> String {
    let mut text = Text::default();
    let name = Name(tree.collection.as_bytes());
    let (number, objects, bytes) = (tree.number, tree.objects, tree.bytes);
    let place = tree.page.map_or("among small ones".into(), |page| format!("in page {page}"));
    text.line(
        0,
        format_args!(
            "collection {name} {place}: number {number}, {objects} objects of {bytes} bytes"
        ),
    );
    if tree.root.is_none() {
        text.line(0, format_args!("no names"));
    }
    text.finish()
}

/// A stop in a tree of names, indented by its depth.
pub fn names_stop(stop: &NamesStop) -> String {
    let (mut text, depth) = (Text::default(), stop.depth);
    match &stop.found {
        NamesPart::Node { page, level, count, used, capacity, prefix, .. } => {
            let what = if *level == 0 { "names" } else { "separators" };
            text.line(
                depth,
                format_args!(
                    "page {page}: level {level}, {count} {what}, {used} of {capacity} bytes used, \
                     prefix {}",
                    Name(prefix)
                ),
            );
        }
        NamesPart::From(low) => text.line(depth, format_args!("from {}", Name(low))),
        NamesPart::Name(key, Ok(oid)) => text.line(depth, format_args!("{} {oid}", Name(key))),
        NamesPart::Name(key, Err(e)) => text.line(depth, format_args!("{} {e}", Name(key))),
        NamesPart::Damaged(page, Some(e)) => text.line(depth, format_args!("page {page}: {e}")),
        NamesPart::Damaged(page, None) => {
            text.line(depth, format_args!("page {page}: damaged: shown above already"));
        }
        // A newer engine may know more.
        _ => {}
    }
    text.finish()
}
