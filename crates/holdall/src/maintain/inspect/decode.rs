//! A page's body by its kind, as far as it can be understood.

use super::body::{Body, HeapContent, HeapRoot, HeapSlot, MapRoot, NamesValue};
use crate::engine::catalog::oid_of;
use crate::heap::HeapFile;
use crate::object::{self, Record};
use crate::page_map::PageMap;
use holdall_core::bytes::{u32_at, u64_at};
use holdall_core::handle_page::{self, HandlePage};
use holdall_core::heap_page::HeapPage;
use holdall_core::heap_record::divided::{Part, part};
use holdall_core::image_node::ImageNode;
use holdall_core::names_node::Node as NamesNode;
use holdall_core::page::{self, HEADER, PageKind};
use holdall_core::page_map_node::{self, Node as MapNode};
use holdall_core::segment_tree::Node;
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::space_info::SpaceInfo;
use holdall_core::{Error, PageNo, Result, collection_page, mark, root_page};

/// What could be understood, and what is wrong.
type Decoded = Result<(Body, Option<Error>)>;

/// What the page says, and what is wrong with it.
pub(super) fn read(
    layout: &SpaceLayout,
    no: PageNo,
    kind: PageKind,
    b: &[u8],
) -> (Option<Body>, Option<Error>) {
    let found = match kind {
        PageKind::SpaceDir => directory(layout, no, b),
        PageKind::SpaceInfo => info(layout, no, b),
        PageKind::Root => Ok(root(b)),
        PageKind::Collection => Ok(collection(b)),
        PageKind::PageMap => map(no, b),
        PageKind::Handle => handles(no, b),
        PageKind::Heap => heap(no, b),
        PageKind::Names => names(no, b),
        PageKind::SegmentNode => node(layout, no, b),
        PageKind::Images => images(no, b),
    };
    match found {
        Ok((body, damage)) => (Some(body), damage),
        Err(e) => (None, Some(e)),
    }
}

/// What comes before the first error, and that.
fn until_error<T>(items: impl Iterator<Item = Result<T>>) -> (Vec<T>, Option<Error>) {
    let (mut found, mut error) = (Vec::new(), None);
    for item in items {
        match item {
            Ok(item) => found.push(item),
            Err(e) => {
                error = Some(e);
                break;
            }
        }
    }
    (found, error)
}

fn directory(layout: &SpaceLayout, no: PageNo, b: &[u8]) -> Decoded {
    let (space, _) = layout.split(no)?;
    let dir = SpaceDir::open(*layout, space, b)?;
    let (used, pages) = (dir.count_allocated(), layout.space_pages());
    Ok((Body::SpaceDir { space, used, pages }, dir.check().err()))
}

fn info(layout: &SpaceLayout, no: PageNo, b: &[u8]) -> Decoded {
    let first = PageNo(u64_at(b, HEADER));
    let (space, index) = layout.split(first)?;
    let (stretch, _) = layout.stretch_of(index);
    let info =
        SpaceInfo::open(*layout, space, stretch, b).map_err(|e| Error::page(no, e.to_string()))?;
    let pages = info.pages();
    let entry = |i: u32| {
        let (sums, owner) = (info.crcs(i, 1)?.collect::<Vec<_>>(), info.owner(i)?);
        Ok((PageNo(first.0 + u64::from(i)), sums, owner))
    };
    let (mut entries, error) = until_error((0..pages).map(entry));
    entries.retain(|(_, sums, owner)| *owner != 0 || sums.iter().any(|s| *s != 0));
    Ok((Body::SpaceInfo { stretch, space, pages, entries }, error))
}

fn root(b: &[u8]) -> (Body, Option<Error>) {
    let (spaces, next_collection) = (root_page::spaces(b), root_page::next_collection(b));
    let (handles, error) = match PageMap::decode(&root_page::handles(b)) {
        Ok(map) => (Some(map_root(&map)), None),
        Err(e) => (None, Some(e)),
    };
    let (catalog, entries) = (root_page::catalog(b), root_page::entries(b));
    let (small, drops) = (root_page::small(b), root_page::drops(b));
    let images = root_page::images(b);
    let (marks, wrong) = match mark::all(b, page::address(b)) {
        Ok(marks) => (marks, None),
        Err(e) => (Vec::new(), Some(e)),
    };
    let backups = marks.iter().map(|mark| (mark.id, mark.lsn)).collect();
    let body = Body::Root {
        spaces,
        next_collection,
        catalog,
        entries,
        small,
        drops,
        handles,
        images,
        backups,
    };
    (body, error.or(wrong))
}

fn images(no: PageNo, b: &[u8]) -> Decoded {
    let node = ImageNode::new(b, no)?;
    let entries = node.entries().collect();
    Ok((Body::Images { level: node.level(), entries }, node.check_order(no).err()))
}

fn map_root(map: &PageMap) -> MapRoot {
    MapRoot { pages: map.len(), levels: map.height(), root: map.root() }
}

fn collection(b: &[u8]) -> (Body, Option<Error>) {
    let (heap, error) = match HeapFile::decode(&collection_page::heap(b), page::owner(b)) {
        Ok(heap) => {
            let (used, capacity) = heap.utilization(b.len());
            let (map, records) = (map_root(heap.map()), heap.records());
            (Some(HeapRoot { map, records, used, capacity }), None)
        }
        Err(e) => (None, Some(e)),
    };
    let body = Body::Collection {
        objects: collection_page::objects(b),
        unnamed: collection_page::unnamed(b),
        bytes: collection_page::logical_bytes(b),
        names: collection_page::names(b),
        heap,
        threshold: collection_page::threshold(b),
    };
    (body, error)
}

fn map(no: PageNo, b: &[u8]) -> Decoded {
    let (level, base) = (b.get(HEADER).copied().unwrap_or(0), u32_at(b, HEADER + 4));
    let node = MapNode::new(b, no, level, base)?;
    if level >= page_map_node::MAX_HEIGHT {
        return Err(Error::page(no, format!("impossible level {level} of a map node")));
    }
    let span = page_map_node::span(b.len(), level);
    let entry = |slot| Ok((u64::from(base) + slot as u64 * span, node.entry(slot)?));
    let (mut entries, error) = until_error((0..page_map_node::fanout(b.len())).map(entry));
    entries.retain(|(_, entry)| !entry.page.is_none() || entry.tag.hole);
    Ok((Body::PageMap { level, base, entries }, error))
}

fn handles(no: PageNo, b: &[u8]) -> Decoded {
    let index = u32_at(b, HEADER);
    let page = HandlePage::new(b, no, index)?;
    let slots = handle_page::capacity(b.len()) as u16;
    let (slots, error) = until_error((0..slots).map(|slot| page.get(slot)));
    let body = Body::Handle { index, free: page.free(), slots };
    Ok((body, error.or_else(|| page.check().err())))
}

fn heap(no: PageNo, b: &[u8]) -> Decoded {
    let page = HeapPage::new(b, no)?;
    let slot = |found: Result<_>| {
        let (slot, bytes): (u16, std::ops::Range<usize>) = found?;
        let content = b.get(bytes.clone()).map(heap_content);
        Ok(HeapSlot { slot, bytes, content })
    };
    let (index, records, free) = (page.index(), page.live(), page.free_bytes());
    let (slots, error) = until_error(page.iter().map(slot));
    Ok((Body::Heap { index, records, free, slots }, error.or_else(|| page.check().err())))
}

fn heap_content(found: &[u8]) -> Result<HeapContent> {
    match part(found)? {
        (oid, Part::First(rest)) => return Ok(HeapContent::Divided(oid, rest)),
        (oid, Part::Continuation) => return Ok(HeapContent::Continuation(oid)),
        (_, Part::Whole) => {}
    }
    let record = Record::parse(found)?;
    let (name, large) =
        (record.name.map(<[u8]>::to_vec), matches!(record.body, object::Body::Large(_)));
    Ok(HeapContent::Record { oid: record.oid, name, large, size: record.size() })
}

fn names(no: PageNo, b: &[u8]) -> Decoded {
    let node = NamesNode::open(no, b)?;
    let (level, count, free) = (node.level(), node.count(), node.free());
    let cell = |i| {
        let cell = node.cell(i)?;
        let value = if node.is_leaf() {
            oid_of(&node.value(i)?)
                .map_or_else(|_| NamesValue::Other(cell.payload.to_vec()), NamesValue::Object)
        } else {
            NamesValue::Child(node.child(i + 1)?)
        };
        Ok((cell.key.to_vec(), value))
    };
    let below = if node.is_leaf() { Ok(None) } else { node.child(0).map(Some) };
    let (below, (cells, error)) = match below {
        Ok(below) => (below, until_error((0..count).map(cell))),
        Err(e) => (None, (Vec::new(), Some(e))),
    };
    let body = Body::Names { level, count, free, prefix: node.prefix().to_vec(), below, cells };
    Ok((body, error.or_else(|| node.validate().err())))
}

fn node(layout: &SpaceLayout, no: PageNo, b: &[u8]) -> Decoded {
    let body = b.get(HEADER..).unwrap_or(&[]);
    let node = Node::decode(body, layout.page_size(), &|| format!("page {no}"))?;
    Ok((Body::SegmentNode(node), None))
}
