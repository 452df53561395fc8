//! One body per parser of a page or record.

use super::Input;
use holdall_core::bytes::Reader;
use holdall_core::handle_page::{self, HandlePage, HandlePageMut, Location};
use holdall_core::heap_page::{self, HeapPage, HeapPageMut};
use holdall_core::heap_record::{Head, Record, divided};
use holdall_core::log_format::{self, BLOCK, BlockHeader, Part};
use holdall_core::names_node::{Cell, Key, Node as NamesNode, NodeMut};
use holdall_core::page::{self, PageKind};
use holdall_core::page_map_node::{self, Entry, Node as MapNode, Tag, Want};
use holdall_core::segment_tree::{Child, Descriptor, Node, NodeRef, Slice, Top, Tree};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::space_info::SpaceInfo;
use holdall_core::superblock::Superblock;
use holdall_core::version::Change;
use holdall_core::{Lsn, Oid, PageNo};

const SIZE: usize = 4096;
const NO: PageNo = PageNo(9);

fn formatted(kind: PageKind) -> Vec<u8> {
    let mut bytes = vec![0; SIZE];
    page::format(&mut bytes, kind, NO, 1);
    bytes
}

/// Superblock slots: damaged ones are none; what is accepted can be written again.
pub fn superblock(data: &[u8]) {
    let mut input = Input(data);
    let sb = Superblock {
        store_id: [7; 16],
        incarnation: 1,
        epoch: 3,
        page_size: 8192,
        space_pages: 32768,
        sequence: 41,
        replay: Lsn(8192),
        in_place: Lsn(8000),
        log_bytes: 1 << 20,
        log_required: true,
        holes: false,
        unique_ceiling: 99,
        volume_pages: 20,
        spaces: 1,
        root: PageNo(4),
        marks: false,
        stamp: None,
    };
    let mut bytes = sb.encode();
    let sealed = input.u8() & 3 != 0;
    input.edit(&mut bytes, 12, 12);
    if sealed {
        let sum = holdall_core::checksum::crc(&bytes[12..]);
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    }
    if let Ok(Some(found)) = Superblock::decode(&bytes) {
        let again = Superblock::decode(&found.encode()).unwrap().unwrap();
        assert_eq!(again, found);
        let _ = (Superblock::read_only_features(&bytes), Superblock::compatible_features(&bytes));
    }
    let _ = Superblock::decode(data);
}

/// Log blocks and the records in them.
pub fn log_blocks(data: &[u8]) {
    let mut input = Input(data);
    let header = BlockHeader {
        store_id: [3; 16],
        epoch: 5,
        payload: 0,
        last: false,
        lsn: Lsn(40960),
        group: Lsn(40960),
        durable: Lsn(40960),
        checkpoint: 9,
        previous: 77,
    };
    let mut payload = Vec::new();
    let mut new = formatted(PageKind::Heap);
    new[100..300].fill(input.u8());
    page::seal(&mut new, Lsn(5));
    log_format::push_page(&mut payload, NO, Some(&formatted(PageKind::Heap)), &new);
    log_format::push_segment(&mut payload, PageNo(77), &[1; 4096]);
    let parts = [Part::Bytes(&[2; 96]), Part::Copy { from: 4096, len: 3000 }, Part::Zeros(1000)];
    log_format::push_composed(&mut payload, PageNo(78), 9, &parts);
    log_format::push_commit(&mut payload, Lsn(40961));
    input.edit(&mut payload, 0, 6);
    records(&payload);
    let (mut blocks, _) = log_format::build_group(&header, &payload);
    let sealed = input.u8() & 3 != 0;
    for block in blocks.chunks_mut(BLOCK) {
        input.edit(block, 4, 4);
        if sealed {
            let sum = holdall_core::checksum::crc(&block[4..]);
            block[..4].copy_from_slice(&sum.to_le_bytes());
        }
        let _ = log_format::may_be_block(block);
        if let Some(header) = BlockHeader::decode_any(block) {
            records(log_format::payload(block, &header));
        }
    }
    records(data);
}

fn records(payload: &[u8]) {
    let (mut reader, mut page) = (Reader::new(payload), vec![0; SIZE]);
    while let Ok(Some(record)) = log_format::next_record(&mut reader) {
        if let log_format::Record::Page { ranges, .. } = record {
            let bytes: usize = ranges.iter().map(|(_, b)| b.len()).sum();
            assert!(bytes <= payload.len());
            let _ = ranges.apply(&mut page);
        } else if let log_format::Record::Composed { parts, .. } = record {
            let all: u64 = parts.iter().flatten().map(|part| part.len()).sum();
            assert!(all <= log_format::MAX_COMPOSED);
        }
    }
}

/// The page header check: only a page that was sealed for its address passes.
pub fn page_header(data: &[u8]) {
    let mut input = Input(data);
    let mut bytes = formatted(PageKind::Names);
    page::seal(&mut bytes, Lsn(3));
    let before = bytes.clone();
    input.edit(&mut bytes, 0, 4);
    let address = PageNo(u64::from(input.u8() % 3) + 8);
    let passed = page::check(&bytes, address);
    assert!(passed.is_err() || (bytes == before && address == NO), "{passed:?}");
    page::seal(&mut bytes, Lsn(4));
    let _ = (page::check(&bytes, address), page::kind(&bytes), page::owner(&bytes));
}

/// Heap pages: reading all of a page of nonsense, and changing it.
pub fn heap_page(data: &[u8]) {
    let mut input = Input(data);
    let mut bytes = formatted(PageKind::Heap);
    heap_page::init(&mut bytes, 3);
    let mut page = HeapPageMut::new(&mut bytes, NO).unwrap();
    for _ in 0..input.u8() % 20 {
        let len = usize::from(input.u16()) % 700 + 1;
        let _ = page.insert(&vec![input.u8(); len]);
    }
    if input.u8() & 1 == 1 {
        let _ = page.delete(u16::from(input.u8() % 20));
    }
    assert!(page.view().check().is_ok());
    input.edit(&mut bytes, page::HEADER, 6);
    read_heap(&bytes);
    while !input.is_empty() {
        let Ok(mut page) = HeapPageMut::new(&mut bytes, NO) else { return };
        let slot = u16::from(input.u8() % 24);
        let record = vec![1; usize::from(input.u16()) % 900 + 1];
        let failed = match input.u8() % 3 {
            0 => page.insert(&record).is_err(),
            1 => page.replace(slot, &record).is_err(),
            _ => page.delete(slot).is_err(),
        };
        read_heap(&bytes);
        if failed {
            // A transaction that met damage is given up.
            return;
        }
    }
}

fn read_heap(bytes: &[u8]) {
    let Ok(page) = HeapPage::new(bytes, NO) else { return };
    let _ = (page.check(), page.index(), page.live(), page.room());
    for (slot, range) in page.iter().flatten() {
        assert!(range.end <= bytes.len());
        assert!(page.get(slot).is_ok());
        let _ = divided::part(&bytes[range.clone()]);
        let _ = Record::parse(&bytes[range]).map(|r| (r.attributes(), r.size()));
    }
}

/// Handle pages.
pub fn handle_page(data: &[u8]) {
    let mut input = Input(data);
    let mut bytes = formatted(PageKind::Handle);
    handle_page::init(&mut bytes, 2);
    let mut page = HandlePageMut::new(&mut bytes, NO, 2).unwrap();
    for i in 0..input.u8() % 40 {
        let loc = Location { page: PageNo(u64::from(i) + 5), slot: 1 };
        page.insert(u32::from(i), loc).unwrap();
        let slot = u16::from(i) / 2;
        let live = matches!(page.view().get(slot), Ok(handle_page::Handle::Live { .. }));
        if live && input.u8() & 3 == 0 {
            page.remove(slot, 0).unwrap();
        }
    }
    input.edit(&mut bytes, page::HEADER, 8);
    for _ in 0..8 {
        let Ok(page) = HandlePage::new(&bytes, NO, 2) else { return };
        let _ = (page.check(), page.class(), page.free());
        assert!(page.iter().count() <= handle_page::capacity(SIZE));
        let slot = u16::from(input.u8());
        let live = matches!(page.get(slot), Ok(handle_page::Handle::Live { .. }));
        let Ok(mut page) = HandlePageMut::new(&mut bytes, NO, 2) else { return };
        let loc = Location { page: PageNo(77), slot };
        match input.u8() % 3 {
            0 => drop(page.insert(1, loc)),
            1 if live => {
                page.update(slot, 1, loc);
            }
            2 if live => drop(page.remove(slot, 1)),
            _ => {}
        }
    }
}

/// Nodes of names trees.
pub fn names_node(data: &[u8]) {
    let mut input = Input(data);
    let mut bytes = formatted(PageKind::Names);
    let level = input.u8() % 2;
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for i in 0..input.u8() % 60 {
        keys.push(
            format!("common prefix {i:03}{}", "x".repeat(usize::from(input.u8() % 9))).into(),
        );
    }
    let payload: &[u8] = if level == 0 { &[7; 12] } else { &[5, 0, 0, 0, 0, 0] };
    let cells: Vec<Cell<'_>> =
        keys.iter().map(|k| Cell { key: Key::from(&k[..]), payload }).collect();
    let leftmost = PageNo(u64::from(level) * 4);
    NodeMut::new(NO, &mut bytes).build(level, leftmost, &cells, b"common prefix ").unwrap();
    assert!(NamesNode::open(NO, &bytes).unwrap().validate().is_ok());
    input.edit(&mut bytes, page::HEADER, 8);
    read_names(&bytes, &keys);
    for _ in 0..6 {
        let Ok(count) = NamesNode::open(NO, &bytes).map(|n| n.count()) else { return };
        let mut node = NodeMut::new(NO, &mut bytes);
        let i = usize::from(input.u8()) % (count + 1);
        let failed = match input.u8() % 3 {
            0 if i < count => node.remove(i..i + 1).is_err(),
            _ => {
                let key = vec![b'k'; usize::from(input.u8())];
                node.insert(i, Key::from(&key[..]), payload).is_err()
            }
        };
        read_names(&bytes, &keys);
        if failed {
            // A transaction that met damage is given up.
            return;
        }
    }
}

fn read_names(bytes: &[u8], keys: &[Vec<u8>]) {
    let Ok(node) = NamesNode::open(NO, bytes) else { return };
    let _ = (node.validate(), node.cells().map(|c| c.len()), node.gap(), node.live());
    for i in 0..node.count().min(200) + 2 {
        let _ = (node.cell(i).map(|c| c.key.to_vec()), node.value(i), node.child(i));
    }
    for key in keys.iter().map(|k| &k[..]).chain([&b""[..], b"zzz"]) {
        let _ = (node.search(key), node.child_index(key));
    }
}

/// Nodes of page maps.
pub fn page_map_node(data: &[u8]) {
    let mut input = Input(data);
    let mut bytes = formatted(PageKind::PageMap);
    page_map_node::init(&mut bytes, 1, 507);
    for slot in 0..usize::from(input.u8()) {
        let tag = Tag { class: input.u8() % 16, hole: false };
        page_map_node::put(&mut bytes, slot, Entry { page: PageNo(u64::from(input.u16())), tag });
    }
    input.edit(&mut bytes, page::HEADER, 8);
    let Ok(node) = MapNode::new(&bytes, NO, 1, 507) else { return };
    let _ = node.summary();
    for slot in 0..page_map_node::fanout(SIZE) {
        let _ = (node.entry(slot), node.next(Want::Class(slot as u8 % 16), slot..600));
    }
}

/// Space directories.
pub fn space_dir(data: &[u8]) {
    let mut input = Input(data);
    let layout = SpaceLayout::new(SIZE, 64 + u32::from(input.u16() % 2000)).unwrap();
    let space = u32::from(input.u8() % 2);
    let mut bytes = formatted(PageKind::SpaceDir);
    let mut dir = SpaceDir::init(layout, space, &mut bytes[..]).unwrap();
    let _ = dir.set_range(20, 30, true);
    let _ = (dir.set_info_page(0, PageNo(20)), dir.add_segment_pages(0, 9));
    input.edit(&mut bytes, page::HEADER, 10);
    let Ok(dir) = SpaceDir::open(layout, space, &bytes[..]) else { return };
    let _ = (dir.check(), dir.count_allocated(), dir.tree(layout.space_pages()));
    for i in 0..layout.stretches().max(layout.granules()) + 1 {
        let _ = (dir.info_page(i), dir.segment_pages(i), dir.last_change(i));
    }
    let Ok(mut dir) = SpaceDir::open(layout, space, &mut bytes[..]) else { return };
    for _ in 0..8 {
        let (start, len) = (input.u32() % 3000, u32::from(input.u16()));
        let _ = dir.set_range(start, len, input.u8() & 1 == 0);
        let _ = dir.note_change(start, len, Lsn(7));
        let _ = dir.add_segment_pages(start % 9, i64::from(input.u8()) - 128);
    }
}

/// Info pages of stretches.
pub fn space_info(data: &[u8]) {
    let mut input = Input(data);
    let layout = SpaceLayout::new(SIZE, 1000).unwrap();
    let mut bytes = formatted(PageKind::SpaceInfo);
    SpaceInfo::init(layout, 1, 1, &mut bytes[..]).unwrap();
    input.edit(&mut bytes, page::HEADER, 6);
    for stretch in 0..4 {
        let Ok(info) = SpaceInfo::open(layout, 1, stretch, &bytes[..]) else { continue };
        let (index, len) = (u32::from(input.u16()) % 400, u32::from(input.u8()));
        let _ = (info.owner(index), info.crc(index, usize::from(input.u8() % 3)));
        let _ = info.crcs(index, len).map(Iterator::count);
    }
}

/// Nodes of the positional tree.
pub fn segment_node(data: &[u8]) {
    let mut input = Input(data);
    let mut body = vec![0; SIZE - page::HEADER];
    let count = u64::from(input.u8() % 160) + 1;
    let node = if input.u8() & 1 == 0 {
        Node::Leaf((0..count).map(|i| Slice::run(i + 5, 4096)).collect())
    } else {
        let child = |i| Child { bytes: 9, node: NodeRef(i + 5) };
        Node::Inner { level: 1, children: (0..count).map(child).collect() }
    };
    node.encode_into(&mut body).unwrap();
    input.edit(&mut body, 0, 8);
    if let Ok(node) = Node::decode(&body, SIZE, &|| "fuzz".into()) {
        assert!(node.bytes().is_some() && node.count() > 0);
        let mut again = vec![0; body.len()];
        node.encode_into(&mut again).unwrap();
        assert_eq!(Node::decode(&again, SIZE, &|| "fuzz".into()).unwrap(), node);
    }
    let _ = Node::decode(data, SIZE, &|| "fuzz".into());
}

/// Descriptors of large objects.
pub fn descriptor(data: &[u8]) {
    let mut input = Input(data);
    let slices: Vec<Slice> =
        (0..u64::from(input.u8() % 9)).map(|i| Slice::run(i * 100 + 5, 5000 + i)).collect();
    let size = slices.iter().map(|s| s.len).sum();
    let tree = if input.u8() & 1 == 0 {
        Tree { size, top: Top::Inline(slices) }
    } else {
        Tree { size: 9, top: Top::Root { node: NodeRef(5), height: 1 } }
    };
    let d = Descriptor { flags: 0, threshold: 4, tree, tail: vec![3; usize::from(input.u8())] };
    let mut bytes = Vec::new();
    d.encode(&mut bytes);
    input.edit(&mut bytes, 0, 5);
    for bytes in [&bytes[..], data] {
        if let Ok(d) = Descriptor::decode(bytes) {
            let mut again = Vec::new();
            d.encode(&mut again);
            assert_eq!(Descriptor::decode(&again).unwrap(), d);
        }
    }
}

/// Heap records.
pub fn heap_record(data: &[u8]) {
    let mut input = Input(data);
    let oid = Oid { site: 0, page: input.u32(), slot: input.u16(), unique: 7 };
    let name = (input.u8() & 1 == 0).then(|| input.take(20).to_vec());
    let attributes = holdall::Attributes::from([("key".into(), input.take(30).to_vec())]);
    let attributes = holdall_core::heap_record::encode_attributes(&attributes, SIZE).unwrap();
    let change = Change { epoch: input.u32() >> 24, count: u64::from(input.u16()) };
    let (name, attributes) = (name.map(Into::into), attributes.into());
    let (time, collection) = (u64::from(input.u32()), u64::from(input.u32() % 3));
    let head = Head { collection, name, attributes, change, time };
    let mut bytes = head.small(oid, input.take(50));
    input.edit(&mut bytes, 0, 5);
    for bytes in [&bytes[..], data] {
        if let Ok(record) = Record::parse(bytes) {
            let _ = (record.attributes(), record.size(), record.raw_attributes().len());
        }
    }
    // Its two parts, of which either may be changed.
    let record = head.small(oid, &[9; 90]);
    let cut = record.len() - 1 - usize::from(input.u8() % 60);
    let link = Location { page: NO, slot: input.u16() };
    let mut first = divided::first_part(&record, cut, link);
    let mut rest = divided::continuation(&record, cut);
    input.edit(&mut first, 0, 3);
    input.edit(&mut rest, 0, 3);
    for (first, rest) in [(&first[..], &rest[..]), (data, &rest), (&first, data)] {
        let _ = (divided::part(first), divided::part(rest));
        if let Ok(record) = divided::join(first, rest) {
            assert_eq!(record.len() + divided::OVERHEAD, first.len() + rest.len());
            let _ = Record::parse(&record).map(|r| (r.attributes(), r.size()));
        }
    }
}
