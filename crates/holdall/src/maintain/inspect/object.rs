//! An object: handle, record, descriptor, and its tree drawn with indentation.

use super::text::{Hex, Name, Text};
use crate::engine::key::Key;
use crate::handle::HandleTable;
use crate::heap::HeapFile;
use crate::object::{Body, Record, read_record};
use crate::page_map::PageMap;
use crate::segment_tree::{DEFAULT_THRESHOLD, TreeRead};
use crate::store::Store;
use holdall_core::heap_record::divided::{Part, part};
use holdall_core::page::PageKind;
use holdall_core::segment_tree::{self, Descriptor, Slice, Top, Visit};
use holdall_core::{PageRead, Result, root_page};

pub(super) fn dump(store: &Store, collection: &str, key: &Key<'_>) -> Result<String> {
    let reader = store.read()?.collection(collection)?;
    let oid = reader.resolve(key)?;
    let pages = &*reader.state;
    let root = pages.page(store.inner.root, PageKind::Root)?;
    let handles = HandleTable { map: PageMap::decode(&root_page::handles(&root))? };
    let loc = handles.lookup(pages, oid)?;
    let bytes = read_record(pages, &handles, oid)?;
    let record = Record::parse(&bytes)?;
    let mut text = Text::default();
    let place =
        format_args!("record of {} bytes in page {} slot {}", bytes.len(), loc.page, loc.slot);
    text.line(0, format_args!("{oid}: {place}"));
    if let (_, Part::First(rest)) = part(&HeapFile::get(pages, loc)?)? {
        text.line(0, format_args!("divided: goes on in page {} slot {}", rest.page, rest.slot));
    }
    match record.name {
        Some(name) => text.line(0, format_args!("name {}", Name(name))),
        None => text.line(0, format_args!("no name")),
    }
    for (key, value) in record.attributes()? {
        text.line(0, format_args!("attribute {} {}", Name(key.as_bytes()), Name(&value)));
    }
    match record.body {
        Body::Small(bytes) => {
            text.line(0, format_args!("{} bytes in the record", bytes.len()));
            text.hex(1, bytes, 256);
        }
        Body::Large(bytes) => {
            let d = Descriptor::decode(bytes)?;
            let size = pages.page_size() as u64;
            large(&mut text, &TreeRead(pages), &d, size)?;
        }
    }
    Ok(text.finish())
}

fn large<S: segment_tree::NodeRead>(
    text: &mut Text,
    store: &S,
    d: &Descriptor,
    page_size: u64,
) -> Result<()> {
    let own = if d.threshold == 0 { " (default)" } else { "" };
    let threshold = if d.threshold == 0 { DEFAULT_THRESHOLD } else { d.threshold };
    let (size, tail) = (d.size(), d.tail.len());
    text.line(
        0,
        format_args!(
            "{size} bytes, {tail} of them in the record; threshold {threshold}{own}; flags {:#x}",
            d.flags
        ),
    );
    let top = match &d.tree.top {
        Top::Inline(_) => 0,
        Top::Root { height, .. } => usize::from(*height) + 1,
    };
    segment_tree::walk(store, &d.tree, &mut |visit| {
        match visit {
            Visit::Node { node, level, bytes, content, .. } => {
                let depth = top - 1 - usize::from(level);
                let what = if level == 0 { "segments" } else { "children" };
                let count = content.count();
                text.line(
                    depth + 1,
                    format_args!("page {node}: level {level}, {count} {what}, {bytes} bytes"),
                );
            }
            Visit::Unreadable { node, level, error } => {
                let depth = top.saturating_sub(1 + usize::from(level));
                text.line(depth + 1, format_args!("page {node}: level {level}: {error}"));
            }
            Visit::Slice { start, slice } => {
                slice_line(text, top + 1, start, &slice, page_size);
            }
        }
        Ok(())
    })?;
    if tail > 0 {
        text.line(1, format_args!("{}..{size} in the record", d.tree.size));
        text.line(2, format_args!("{}", Hex(d.tail.get(..32).unwrap_or(&d.tail))));
    }
    Ok(())
}

fn slice_line(text: &mut Text, depth: usize, start: u64, slice: &Slice, page_size: u64) {
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
