//! One page: header, then the body by kind.
//!
//! The newest version is shown: the one in memory where it waits for a checkpoint, else
//! what lies in the file, right or damaged.

use super::text::{Hex, Name, Text, runs};
use crate::engine::catalog::oid_of;
use crate::heap::HeapFile;
use crate::object::{Body, Record};
use crate::page_map::PageMap;
use crate::store::Store;
use holdall_core::bytes::u32_at;
use holdall_core::handle_page::{Handle, HandlePage, Location};
use holdall_core::heap_page::HeapPage;
use holdall_core::heap_record::divided::{Part, part};
use holdall_core::names_node::Node as NamesNode;
use holdall_core::page::{self, HEADER, PageKind};
use holdall_core::page_map_node::{self, Node as MapNode};
use holdall_core::segment_tree::{Node, SliceKind};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::space_info::SpaceInfo;
use holdall_core::{Error, PageNo, Result, collection_page, root_page};

pub(super) fn dump(store: &Store, no: PageNo) -> Result<String> {
    let (pager, layout) = (&store.inner.pager, store.inner.layout);
    let size = layout.page_size();
    let length = pager.volume.disk.len();
    let pages = length.map_err(|e| Error::io("reading the volume's length", e))? / size as u64;
    if no.0 >= pages {
        let text = format!("there is no page {no}; the file has {pages} pages, from 0");
        return Err(Error::Invalid(text));
    }
    let mut text = Text::default();
    let mut bytes = vec![0; size];
    let at = no.0 * size as u64;
    let read = pager.volume.disk.read_at(at, &mut bytes);
    read.map_err(|e| Error::io(format!("reading page {no}"), e))?;
    if let Some((newest, in_place)) = pager.in_place_state(no)
        && newest != in_place
    {
        text.line(0, format_args!("version {newest} is in memory and not yet in the file"));
        let found = (0..=u8::MAX).filter_map(PageKind::from_u8);
        if let Some(newer) = found.filter_map(|kind| pager.newest(no, kind).ok()).next() {
            bytes.copy_from_slice(&newer);
        }
    }
    let superblocks = layout.superblock_pages().map(|index| layout.page_at(0, index));
    if superblocks.contains(&no) {
        text.line(0, format_args!("page {no} at byte {at}: a copy of the superblock"));
        return Ok(text.finish() + &super::superblock::dump(&*pager.volume.disk)?);
    }
    match page::check(&bytes, no) {
        Ok(kind) => {
            header(&mut text, no, at, kind, &bytes);
            body(&mut text, &layout, no, kind, &bytes);
        }
        Err(e) => no_header(&mut text, store, no, at, (&bytes, &e)),
    }
    Ok(text.finish())
}

fn header(text: &mut Text, no: PageNo, at: u64, kind: PageKind, b: &[u8]) {
    let (lsn, owner, sum) = (page::lsn(b), page::owner(b), page::stored_checksum(b));
    text.line(
        0,
        format_args!(
            "page {no} at byte {at}: {kind:?}, LSN {lsn}, owner {owner}, checksum {sum:08x}"
        ),
    );
}

/// What is known of a page that does not say what it is.
fn no_header(text: &mut Text, store: &Store, no: PageNo, at: u64, (b, e): (&[u8], &Error)) {
    text.line(0, format_args!("page {no} at byte {at}: segment data, free, or damaged"));
    text.line(1, format_args!("as a page: {e}"));
    match place(store, no) {
        Ok(known) => text.line(1, format_args!("{known}")),
        Err(e) => text.line(1, format_args!("its space: {e}")),
    }
    text.hex(1, b, 64);
}

/// What directory and info page say of a page.
fn place(store: &Store, no: PageNo) -> Result<String> {
    let (pager, layout) = (&store.inner.pager, store.inner.layout);
    let (space, index) = layout.split(no)?;
    let dir = pager.newest(layout.dir_page(space), PageKind::SpaceDir)?;
    let dir = SpaceDir::open(layout, space, &*dir)?;
    let state = if dir.is_allocated(index) { "in use" } else { "free" };
    let (stretch, place) = layout.stretch_of(index);
    let info = dir.info_page(stretch)?;
    if info.is_none() || dir.segment_pages(stretch)? == 0 {
        return Ok(format!("{state}; its stretch has no segment pages"));
    }
    let bytes = pager.newest(info, PageKind::SpaceInfo)?;
    let info_page = SpaceInfo::open(layout, space, stretch, &*bytes)?;
    let sums: Vec<String> = info_page.crcs(place, 1)?.map(|s| format!("{s:08x}")).collect();
    let (owner, sums) = (info_page.owner(place)?, sums.join(" "));
    Ok(format!("{state}; as segment data: checksums {sums}, owner {owner} (in page {info})"))
}

fn body(text: &mut Text, layout: &SpaceLayout, no: PageNo, kind: PageKind, b: &[u8]) {
    let shown = match kind {
        PageKind::SpaceDir => directory(text, layout, no, b),
        PageKind::SpaceInfo => info(text, layout, no, b),
        PageKind::Root => root(text, b),
        PageKind::Collection => collection(text, b),
        PageKind::PageMap => map(text, no, b),
        PageKind::Handle => handles(text, no, b),
        PageKind::Heap => heap(text, no, b),
        PageKind::Names => names(text, no, b),
        PageKind::SegmentNode => node(text, layout, no, b),
    };
    if let Err(e) = shown {
        text.line(1, format_args!("{e}"));
        text.hex(1, b, b.len());
    }
}

fn directory(text: &mut Text, layout: &SpaceLayout, no: PageNo, b: &[u8]) -> Result<()> {
    let (space, _) = layout.split(no)?;
    let dir = SpaceDir::open(*layout, space, b)?;
    let (used, n) = (dir.count_allocated(), layout.space_pages());
    text.line(1, format_args!("space {space}: {used} of {n} pages in use"));
    dir.check()
}

fn info(text: &mut Text, layout: &SpaceLayout, no: PageNo, b: &[u8]) -> Result<()> {
    let first = PageNo(holdall_core::bytes::u64_at(b, HEADER));
    let (space, index) = layout.split(first)?;
    let (stretch, _) = layout.stretch_of(index);
    let info =
        SpaceInfo::open(*layout, space, stretch, b).map_err(|e| Error::page(no, e.to_string()))?;
    text.line(1, format_args!("stretch {stretch} of space {space}: {} pages", info.pages()));
    for i in 0..info.pages() {
        let sums: Vec<u32> = info.crcs(i, 1)?.collect();
        let owner = info.owner(i)?;
        if owner != 0 || sums.iter().any(|s| *s != 0) {
            let page = first.0 + u64::from(i);
            let sums: Vec<String> = sums.iter().map(|s| format!("{s:08x}")).collect();
            text.line(1, format_args!("page {page}: {}, owner {owner}", sums.join(" ")));
        }
    }
    Ok(())
}

fn root(text: &mut Text, b: &[u8]) -> Result<()> {
    let next = root_page::next_collection(b);
    text.line(1, format_args!("spaces {}, next collection {next}", root_page::spaces(b)));
    text.line(1, format_args!("catalog: root page {}", root_page::catalog(b)));
    let map = PageMap::decode(&root_page::handles(b))?;
    show_map(text, "handle table", &map);
    Ok(())
}

fn show_map(text: &mut Text, what: &str, map: &PageMap) {
    let (root, height, len) = (map.root(), map.height(), map.len());
    text.line(1, format_args!("{what}: map of {len} pages, {height} levels, root page {root}"));
}

fn collection(text: &mut Text, b: &[u8]) -> Result<()> {
    let (objects, bytes) = (collection_page::objects(b), collection_page::logical_bytes(b));
    text.line(1, format_args!("{objects} objects of {bytes} bytes"));
    text.line(1, format_args!("names: root page {}", collection_page::names(b)));
    let heap = HeapFile::decode(&collection_page::heap(b), page::owner(b))?;
    let (used, capacity) = heap.utilization(b.len());
    show_map(text, "heap file", heap.map());
    text.line(1, format_args!("{} records, {used} of {capacity} bytes used", heap.records()));
    text.line(1, format_args!("segment threshold {}", collection_page::threshold(b)));
    Ok(())
}

fn map(text: &mut Text, no: PageNo, b: &[u8]) -> Result<()> {
    let (level, base) = (b.get(HEADER).copied().unwrap_or(0), u32_at(b, HEADER + 4));
    let node = MapNode::new(b, no, level, base)?;
    if level >= page_map_node::MAX_HEIGHT {
        return Err(Error::page(no, format!("impossible level {level} of a map node")));
    }
    text.line(1, format_args!("level {level}, from index {base} on"));
    let span = page_map_node::span(b.len(), level);
    for slot in 0..page_map_node::fanout(b.len()) {
        let entry = node.entry(slot)?;
        let index = u64::from(base) + slot as u64 * span;
        let (class, hole) = (entry.tag.class, if entry.tag.hole { ", hole" } else { "" });
        if !entry.page.is_none() || entry.tag.hole {
            text.line(1, format_args!("{index}: page {}, class {class}{hole}", entry.page));
        }
    }
    Ok(())
}

fn handles(text: &mut Text, no: PageNo, b: &[u8]) -> Result<()> {
    let index = u32_at(b, HEADER);
    let page = HandlePage::new(b, no, index)?;
    text.line(1, format_args!("handle page {index:x}, {} slots free", page.free()));
    let slots = holdall_core::handle_page::capacity(b.len()) as u16;
    let states = (0..slots).map(|slot| page.get(slot)).collect::<Result<Vec<_>>>()?;
    for (from, to, state) in runs(states.into_iter()) {
        match state {
            Handle::Never => text.line(1, format_args!("{from:x} to {to:x}: never used")),
            Handle::Free => text.line(1, format_args!("{from:x} to {to:x}: free")),
            Handle::Live { unique, loc } => {
                let (page, slot) = (loc.page, loc.slot);
                text.line(1, format_args!("{from:x}: unique {unique:x}, page {page} slot {slot}"));
            }
        }
    }
    page.check()
}

fn heap(text: &mut Text, no: PageNo, b: &[u8]) -> Result<()> {
    let page = HeapPage::new(b, no)?;
    let (index, live, free) = (page.index(), page.live(), page.free_bytes());
    text.line(1, format_args!("heap page {index}: {live} records, {free} bytes free"));
    for found in page.iter() {
        let (slot, range) = found?;
        let place = format!("slot {slot}, bytes {}..{}", range.start, range.end);
        let what = match b.get(range) {
            Some(found) => heap_part(found).unwrap_or_else(|e| e.to_string()),
            None => "outside the page".to_owned(),
        };
        text.line(1, format_args!("{place}: {what}"));
    }
    page.check()
}

/// What a slot of a heap page holds, in words.
fn heap_part(found: &[u8]) -> Result<String> {
    match part(found)? {
        (oid, Part::First(Location { page, slot })) => {
            return Ok(format!("{oid}, goes on in page {page} slot {slot}"));
        }
        (oid, Part::Continuation) => return Ok(format!("{oid}, continuation")),
        (_, Part::Whole) => {}
    }
    let record = Record::parse(found)?;
    let name = record.name.map_or("no name".to_owned(), |n| Name(n).to_string());
    let kind = match record.body {
        Body::Small(_) => "small",
        Body::Large(_) => "large",
    };
    let size = match record.size() {
        Ok(size) => format!("{size} bytes"),
        Err(e) => e.to_string(),
    };
    Ok(format!("{}, {name}, {kind}, {size}", record.oid))
}

fn names(text: &mut Text, no: PageNo, b: &[u8]) -> Result<()> {
    let node = NamesNode::open(no, b)?;
    let (level, count, free) = (node.level(), node.count(), node.free());
    let prefix = Name(node.prefix());
    text.line(1, format_args!("level {level}, {count} cells, {free} bytes free, prefix {prefix}"));
    if !node.is_leaf() {
        text.line(1, format_args!("below all: page {}", node.child(0)?));
    }
    for i in 0..count {
        let cell = node.cell(i)?;
        let key = cell.key.to_vec();
        if !node.is_leaf() {
            text.line(1, format_args!("from {}: page {}", Name(&key), node.child(i + 1)?));
            continue;
        }
        match oid_of(&node.value(i)?) {
            Ok(oid) => text.line(1, format_args!("{}: {oid}", Name(&key))),
            Err(_) => text.line(1, format_args!("{}: {}", Name(&key), Hex(cell.payload))),
        }
    }
    node.validate()
}

fn node(text: &mut Text, layout: &SpaceLayout, no: PageNo, b: &[u8]) -> Result<()> {
    let body = b.get(HEADER..).unwrap_or(&[]);
    let node = Node::decode(body, layout.page_size(), &|| format!("page {no}"))?;
    let (level, count, mut at) = (node.level(), node.count(), 0u64);
    text.line(1, format_args!("level {level}, {count} entries, {:?} bytes", node.bytes()));
    match node {
        Node::Leaf(slices) => {
            for s in slices {
                let what = match s.kind {
                    SliceKind::Zero => "zeros".to_owned(),
                    _ => format!("page {}, offset {}, flags {:#x}", s.reference, s.offset, s.flags),
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
    Ok(())
}
