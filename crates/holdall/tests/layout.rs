//! The on-disk constants, byte by byte: a change of the format must be a decision.
//! HOLDALL_REWRITE_GOLDEN=1 writes testdata/golden/layout.txt anew.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Attributes, Oid};
use holdall_core::collection_entry::{Counts, Entry, NumberKey};
use holdall_core::handle_page::{self, HandlePageMut, Location};
use holdall_core::heap_page::{self, HeapPageMut};
use holdall_core::heap_record::Head;
use holdall_core::log_format::{self, BlockHeader};
use holdall_core::names_node::{Cell, Key, NodeMut};
use holdall_core::page::{self, PageKind};
use holdall_core::page_map_node::{self, Entry as MapEntry, Tag};
use holdall_core::segment_tree::{Child, Descriptor, Node, NodeRef, Slice, Top, Tree};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::space_info::SpaceInfo;
use holdall_core::superblock::{self, Superblock};
use holdall_core::version::Change;
use holdall_core::{Lsn, PageNo, collection_page, root_page};
use std::fmt::Write as _;

/// Every byte that is not zero, in lines of up to 16 that begin at (offset, meaning).
fn annotate(out: &mut String, title: &str, bytes: &[u8], fields: &[(usize, &str)]) {
    let _ = writeln!(out, "{title}, {} bytes", bytes.len());
    for (i, (at, meaning)) in fields.iter().enumerate() {
        let end = fields.get(i + 1).map_or(bytes.len(), |(next, _)| *next);
        let part = &bytes[*at..end];
        let used = part.iter().rposition(|b| *b != 0).map_or(0, |n| n + 1);
        let hex: String = part[..used.min(64)].iter().map(|b| format!("{b:02x}")).collect();
        let rest = match part.len() - used.min(64) {
            0 => String::new(),
            n if used <= 64 => format!(" and {n} zeros"),
            n => format!(" and {n} bytes"),
        };
        let _ = writeln!(out, "{at:>6} {:>5}  {meaning}: {hex}{rest}", end - at);
    }
}

fn formatted(kind: PageKind) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    page::format(&mut bytes, kind, PageNo(0x0a0b_0c0d), 0x1112_1314);
    bytes
}

const HEADER: [(usize, &str); 7] = [
    (0, "checksum"),
    (4, "kind"),
    (5, "format"),
    (6, "reserved"),
    (8, "address"),
    (16, "LSN"),
    (24, "owner"),
];

fn page_of(out: &mut String, title: &str, bytes: &mut [u8], fields: &[(usize, &str)]) {
    page::seal(bytes, Lsn(0x2122_2324));
    let all: Vec<(usize, &str)> = HEADER.iter().chain(fields).copied().collect();
    annotate(out, title, bytes, &all);
}

#[expect(clippy::too_many_lines, reason = "one table after the other")]
fn superblock_and_log(out: &mut String) {
    let sb = Superblock {
        store_id: *b"0123456789abcdef",
        incarnation: 0x0101,
        epoch: 0x0202,
        page_size: 4096,
        space_pages: 16384,
        sequence: 0x0303,
        replay: Lsn(0x4000),
        in_place: Lsn(0x0505),
        log_bytes: 0x10_0000,
        log_required: true,
        holes: false,
        unique_ceiling: 0x0707,
        volume_pages: 0x0808,
        spaces: 9,
        root: PageNo(0x0a0a),
        marks: false,
        stamp: None,
    };
    let _ = writeln!(out, "superblock slots at {:?}", superblock::SLOT_AT);
    annotate(
        out,
        "superblock",
        &sb.encode(),
        &[
            (0, "magic"),
            (8, "checksum of the bytes from 12 on"),
            (12, "format version"),
            (16, "compatible features"),
            (24, "read-only features"),
            (32, "incompatible features"),
            (40, "store id"),
            (56, "incarnation"),
            (64, "epoch"),
            (68, "checksum kind"),
            (69, "reserved"),
            (72, "page size"),
            (76, "pages of a space"),
            (80, "sequence"),
            (88, "replay position"),
            (96, "flushed LSN"),
            (104, "bytes of the log"),
            (112, "flags"),
            (116, "reserved"),
            (120, "OID numbers given out"),
            (128, "pages of the volume"),
            (136, "spaces"),
            (140, "reserved"),
            (208, "typed roots"),
        ],
    );
    let header = BlockHeader {
        store_id: *b"0123456789abcdef",
        epoch: 0x0202,
        payload: 0,
        last: false,
        lsn: Lsn(0x4000),
        group: Lsn(0x4000),
        durable: Lsn(0x3000),
        checkpoint: 0x0606,
        previous: 0x0707_0707,
    };
    let mut payload = Vec::new();
    let (old, mut new) = (formatted(PageKind::Heap), formatted(PageKind::Heap));
    new[50..53].fill(0xee);
    page::seal(&mut new, Lsn(0x4001));
    log_format::push_page(&mut payload, PageNo(0x0909), Some(&old), &new);
    log_format::push_segment(&mut payload, PageNo(0x0a0a), &[0xdd; 4]);
    let parts = [
        log_format::Part::Bytes(&[0xcc; 3]),
        log_format::Part::Copy { from: 0x0b0b, len: 0x99 },
        log_format::Part::Zeros(0x88),
    ];
    log_format::push_composed(&mut payload, PageNo(0x0c0c), 0x0d0d_0d0d, &parts);
    log_format::push_commit(&mut payload, Lsn(0x4001));
    annotate(
        out,
        "log block",
        &log_format::build_group(&header, &payload).0,
        &[
            (0, "checksum"),
            (4, "magic"),
            (8, "store id"),
            (24, "epoch"),
            (28, "bytes of payload"),
            (30, "flags: last of its group"),
            (32, "LSN"),
            (40, "LSN of the group"),
            (48, "durable up to"),
            (56, "superblock sequence"),
            (64, "checksum of the group before"),
            (68, "reserved"),
            (72, "record: kind, flags, reserved, length"),
            (80, "page"),
            (88, "checksum of the page then"),
            (92, "offset, length - 1, bytes"),
            (99, "record: kind, flags, reserved, length"),
            (107, "page"),
            (115, "segment bytes"),
            (119, "record: kind, flags, reserved, length"),
            (127, "page"),
            (135, "checksum of all bytes"),
            (139, "new bytes: kind, length, bytes"),
            (144, "bytes to copy: kind, length, address"),
            (149, "zeros: kind, length"),
            (152, "record: kind, flags, reserved, length"),
            (160, "LSN of the commit"),
            (168, "unused"),
        ],
    );
}

fn spaces(out: &mut String) {
    let layout = SpaceLayout::new(4096, 1000).unwrap();
    let mut dir = formatted(PageKind::SpaceDir);
    let mut view = SpaceDir::init(layout, 0, &mut dir[..]).unwrap();
    view.set_range(20, 3, true).unwrap();
    view.set_info_page(1, PageNo(0x1415)).unwrap();
    view.add_segment_pages(1, 2).unwrap();
    view.note_change(20, 3, Lsn(0x1617)).unwrap();
    page_of(
        out,
        "space directory (1,000 pages)",
        &mut dir,
        &[
            (32, "space"),
            (36, "pages of the space"),
            (40, "reserved"),
            (48, "bitmap"),
            (176, "last change by MiB"),
            (208, "stretches: info page, segment pages"),
        ],
    );
    let mut info = formatted(PageKind::SpaceInfo);
    let mut view = SpaceInfo::init(layout, 0, 1, &mut info[..]).unwrap();
    view.set_run(0, 2, 0x2021, &[0x1111_1111, 0x2222_2222]).unwrap();
    page_of(
        out,
        "space info",
        &mut info,
        &[(32, "first page"), (40, "reserved"), (48, "checksums"), (1396, "owners")],
    );
}

fn roots(out: &mut String) {
    let mut root = formatted(PageKind::Root);
    root_page::set_spaces(&mut root, 0x0101);
    root_page::set_next_collection(&mut root, 0x0202);
    root_page::set_catalog(&mut root, PageNo(0x0303));
    root_page::set_handles(&mut root, [4; 16]);
    root_page::set_sharing(&mut root, PageNo(0x0505));
    root_page::set_entries(&mut root, PageNo(0x0606));
    root_page::set_small(&mut root, PageNo(0x0707));
    root_page::set_drops(&mut root, PageNo(0x0808));
    page_of(
        out,
        "root page",
        &mut root,
        &[
            (32, "spaces"),
            (40, "catalog"),
            (48, "handle map"),
            (64, "shared pages"),
            (96, "next collection"),
            (104, "entries"),
            (112, "small collections"),
            (120, "drop list"),
            (128, "unused"),
        ],
    );
    let mut c = formatted(PageKind::Collection);
    collection_page::set_names(&mut c, PageNo(0x0101));
    collection_page::set_heap(&mut c, [2; 40]);
    collection_page::set_objects(&mut c, 0x0303);
    collection_page::set_logical_bytes(&mut c, 0x0404);
    collection_page::set_threshold(&mut c, 0x0505);
    page_of(
        out,
        "collection page",
        &mut c,
        &[
            (32, "names"),
            (40, "heap file"),
            (80, "objects"),
            (88, "bytes"),
            (96, "threshold"),
            (98, "unused"),
        ],
    );
}

#[expect(clippy::too_many_lines, reason = "one table after the other")]
fn nodes(out: &mut String) {
    let mut map = formatted(PageKind::PageMap);
    page_map_node::init(&mut map, 1, 507);
    let tag = Tag { class: 9, hole: true };
    page_map_node::put(&mut map, 0, MapEntry { page: PageNo(0x0102), tag });
    page_of(
        out,
        "page map node",
        &mut map,
        &[(32, "level"), (33, "reserved"), (36, "first index"), (40, "entries: page, class, hole")],
    );
    let mut handles = formatted(PageKind::Handle);
    handle_page::init(&mut handles, 0x0203);
    let mut view = HandlePageMut::new(&mut handles, PageNo(9), 0x0203).unwrap();
    for unique in [0x0a0a, 0x0b0b] {
        view.insert(unique, Location { page: PageNo(0x0405), slot: 6 }).unwrap();
    }
    view.remove(0, 0x0a0a).unwrap();
    page_of(
        out,
        "handle page",
        &mut handles,
        &[
            (32, "index"),
            (36, "live"),
            (38, "touched"),
            (40, "first free + 1"),
            (42, "reserved"),
            (44, "slot 0, free: unique, page, next free"),
            (56, "slot 1: unique, page, slot"),
            (68, "slots never used"),
        ],
    );
    let mut heap = formatted(PageKind::Heap);
    heap_page::init(&mut heap, 0x0203);
    HeapPageMut::new(&mut heap, PageNo(9)).unwrap().insert(&[0xab; 5]).unwrap();
    page_of(
        out,
        "heap page",
        &mut heap,
        &[
            (32, "index"),
            (36, "slots"),
            (38, "free slots"),
            (40, "bytes of records"),
            (42, "holes among them"),
            (44, "slot 0: offset, length"),
            (48, "free"),
            (4091, "record 0"),
        ],
    );
    let mut names = formatted(PageKind::Names);
    let cells = [Cell { key: Key::from(&b"prefix key"[..]), payload: &[7; 12] }];
    NodeMut::new(PageNo(9), &mut names).build(0, PageNo::NONE, &cells, b"prefix ").unwrap();
    page_of(
        out,
        "names leaf",
        &mut names,
        &[
            (32, "level"),
            (33, "reserved"),
            (34, "cells"),
            (36, "bytes of cells and prefix"),
            (38, "holes among them"),
            (40, "length of the prefix"),
            (42, "leftmost child"),
            (48, "slots"),
            (50, "free"),
            (4071, "cell: key length and sharing, value length, key, value"),
            (4089, "prefix"),
        ],
    );
    for node in [
        Node::Leaf(vec![Slice::run(0x0102, 0x0304), Slice::zeros(0x0506)]),
        Node::Inner { level: 1, children: vec![Child { bytes: 0x0708, node: NodeRef(0x090a) }] },
    ] {
        let mut page = formatted(PageKind::SegmentNode);
        node.encode_into(&mut page[page::HEADER..]).unwrap();
        let fields = [
            (32, "level"),
            (33, "format"),
            (34, "entries"),
            (36, "reserved"),
            (40, "bytes below"),
            (48, "entries"),
        ];
        page_of(out, &format!("segment node of level {}", node.level()), &mut page, &fields);
    }
}

fn catalog(out: &mut String, oid: Oid) {
    let fields = [
        (0, "page"),
        (4, "slot"),
        (6, "unique"),
        (10, "kind, numbered"),
        (11, "collection"),
        (13, "bytes"),
    ];
    let numbered = Head { collection: 0x0181, ..Head::default() };
    annotate(out, "heap record in a small collection", &numbered.small(oid, b"bytes"), &fields);
    let counts = Counts { objects: 1, logical_bytes: 2, record_bytes: 3, threshold: 4, flags: 5 };
    let fields = [
        (0, "kind"),
        (1, "flags"),
        (2, "threshold"),
        (3, "objects"),
        (4, "record bytes"),
        (5, "bytes"),
    ];
    annotate(out, "catalog entry, small", &Entry::Small(counts).encode(), &fields);
    let fields = [(0, "kind"), (1, "page")];
    annotate(out, "catalog entry, large", &Entry::Large(PageNo(0x0181)).encode(), &fields);
    annotate(
        out,
        "number 0x0f8",
        &NumberKey::new(0xf8),
        &[(0, "bytes that follow"), (1, "number")],
    );
}

fn records(out: &mut String) {
    let oid = Oid { site: 0x0102, page: 0x0304_0506, slot: 0x0708, unique: 0x090a_0b0c };
    let fields = [(0, "site"), (2, "page"), (6, "slot"), (8, "unique")];
    annotate(out, "OID", &oid.to_bytes(), &fields);
    let attributes = Attributes::from([("k".into(), vec![0xee, 0xff])]);
    let attributes = holdall_core::heap_record::encode_attributes(&attributes, 4096).unwrap();
    let head = Head {
        collection: 0,
        name: Some(b"name".as_slice().into()),
        attributes: attributes.into(),
        change: Change { epoch: 0x0b, count: 0x0c },
        time: 0x0d,
    };
    let common = [
        (0, "page"),
        (4, "slot"),
        (6, "unique"),
        (10, "kind, timed, named, attributes, changed"),
        (11, "name"),
        (16, "attributes"),
        (22, "last change: epoch, number"),
        (24, "time of the last change"),
    ];
    let mut small = common.to_vec();
    small.push((25, "bytes"));
    annotate(out, "heap record, small", &head.small(oid, b"bytes"), &small);
    catalog(out, oid);
    let slice = Slice { flags: 3, offset: 2, ..Slice::run(0x0a, 0x64) };
    let tree = Tree { size: 0x64 + 9, top: Top::Inline(vec![slice, Slice::zeros(9)]) };
    let d = Descriptor { flags: 1, threshold: 4, tree, tail: b"tail".to_vec() };
    let mut large = common.to_vec();
    large.extend([
        (25, "descriptor version"),
        (26, "flags"),
        (27, "threshold"),
        (28, "bytes in segments"),
        (29, "form: inline"),
        (30, "slices"),
        (31, "run: kind and bits, flags, offset, page, length"),
        (36, "zeros: kind, page, length"),
        (39, "tail"),
    ]);
    annotate(out, "heap record, large", &head.large(oid, &d), &large);
    let tree = Tree { size: 0x0102, top: Top::Root { node: NodeRef(0x30), height: 2 } };
    let mut bytes = Vec::new();
    Descriptor { flags: 0, threshold: 0, tree, tail: Vec::new() }.encode(&mut bytes);
    let fields = [
        (0, "version"),
        (1, "flags"),
        (2, "threshold"),
        (3, "bytes in segments"),
        (5, "form: root"),
        (6, "height"),
        (7, "node"),
        (8, "tail"),
    ];
    annotate(out, "descriptor with a root", &bytes, &fields);
}

#[test]
fn the_bytes_of_the_format_do_not_move() {
    let mut out = String::new();
    superblock_and_log(&mut out);
    spaces(&mut out);
    roots(&mut out);
    nodes(&mut out);
    records(&mut out);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/golden/layout.txt");
    if std::env::var_os("HOLDALL_REWRITE_GOLDEN").is_some() {
        std::fs::write(path, &out).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    for (i, (a, b)) in expected.lines().zip(out.lines()).enumerate() {
        assert_eq!(a, b, "layout.txt line {}: the format changed", i + 1);
    }
    assert_eq!(expected.len(), out.len(), "layout.txt: the format changed");
}
