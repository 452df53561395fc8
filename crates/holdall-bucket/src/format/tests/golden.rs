//! The exact bytes of each kind of object, with what they mean, in `testdata/format`.
//! HOLDALL_REWRITE_GOLDEN=1 writes the files anew.
//!
//! A line is an offset, a width, a meaning, and the bytes: in hexadecimal, or `N x BB` for N times the
//! same. The files are read back too: what they say must decode to what was written.

use super::super::{
    BlobId, BlobKind, Blobs, Head, Intent, IntentKind, Record, Sizes, UNIT, decode_list,
    decode_node, decode_stored, encode_blob, encode_list, encode_node,
};
use super::{blob, id, intents, records, retired};
use crate::format::{Named, Part, Retired};
use holdall_core::segment_tree::{Child, Node, NodeRef, Top};
use std::fmt::Write as _;
use std::path::PathBuf;

/// A width in bytes, and what these are.
type Field = (usize, &'static str);

fn dump(title: &str, bytes: &[u8], fields: &[Field]) -> String {
    let mut out = format!("{title}, {} bytes\n", bytes.len());
    let mut at = 0;
    for (width, meaning) in fields {
        let part = &bytes[at..at + width];
        let same = part.len() > 32 && part.iter().all(|b| *b == part[0]);
        let hex = match same {
            true => format!("{width} x {:02x}", part[0]),
            false => part.iter().map(|b| format!("{b:02x}")).collect(),
        };
        let _ = writeln!(out, "{at:>6} {width:>5}  {meaning}: {hex}");
        at += width;
    }
    assert_eq!(at, bytes.len(), "{title}: the fields are all there is");
    out
}

/// The bytes that a golden file says.
fn parse(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in text.lines().skip(1) {
        let (_, hex) = line.rsplit_once(": ").unwrap();
        let byte = |hex: &str| u8::from_str_radix(hex, 16).unwrap();
        match hex.split_once(" x ") {
            Some((count, hex)) => {
                bytes.resize(bytes.len() + count.parse::<usize>().unwrap(), byte(hex))
            }
            None => bytes.extend((0..hex.len() / 2).map(|at| byte(&hex[2 * at..2 * at + 2]))),
        }
    }
    bytes
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata/format").join(name)
}

/// Compares with the file, and returns the bytes that it says.
fn golden(name: &str, text: &str) -> String {
    if std::env::var_os("HOLDALL_REWRITE_GOLDEN").is_some() {
        std::fs::create_dir_all(path("")).unwrap();
        std::fs::write(path(name), text).unwrap();
    }
    let expected = std::fs::read_to_string(path(name)).unwrap_or_default();
    for (at, (a, b)) in expected.lines().zip(text.lines()).enumerate() {
        assert_eq!(a, b, "{name} line {}: the format changed", at + 1);
    }
    assert_eq!(expected.len(), text.len(), "{name}: the format changed");
    expected
}

fn golden_bytes(name: &str, bytes: &[u8], fields: &[Field]) -> Vec<u8> {
    parse(&golden(&format!("{name}.txt"), &dump(name, bytes, fields)))
}

const RECORD: [Field; 19] = [
    (4, "magic"),
    (1, "format"),
    (1, "kind"),
    (1, "flags"),
    (1, "0"),
    (4, "CRC-32C of all else"),
    (16, "nonce"),
    (16, "operation"),
    (16, "incarnation"),
    (8, "change"),
    (8, "created"),
    (8, "modified"),
    (8, "size"),
    (1, "recent operations"),
    (16, "their first 8 bytes"),
    (1, "length of the collection"),
    (7, "collection"),
    (1, "length of the name"),
    (4, "name"),
];
/// Two operations, two blobs; the second table has the second blob only.
const TABLE: [Field; 8] = [
    (1, "operations"),
    (32, "operations, 16 bytes each"),
    (1, "blobs"),
    (2, "blob: row of its operation, number"),
    (4, "its length"),
    (2, "blob: row of its operation, number"),
    (2, "its length"),
    (0, "end of the table"),
];
const ONE: [Field; 5] = [
    (1, "operations"),
    (16, "operation"),
    (1, "blobs"),
    (2, "blob: row of its operation, number"),
    (0, "its length follows"),
];
const NO_TABLE: [Field; 2] = [(1, "operations"), (1, "blobs")];
const RETIRED: [Field; 4] = [(1, "retired blobs"), (1, "row"), (2, "kind, level"), (5, "seconds")];

fn record_fields(name: &str) -> Vec<Field> {
    let mut all = RECORD.to_vec();
    let attributes = match name {
        "small" => vec![(1, "attributes"), (5, "key: length, bytes"), (5, "value: length, bytes")],
        _ => vec![(1, "attributes")],
    };
    all.extend(attributes);
    all.push((4, "CRC-32C of the header"));
    let slices = [
        (1, "form: slices"),
        (1, "slices"),
        (6, "of row 0: row + 2, from, length"),
        (3, "of what is embedded: 1, from, length"),
        (3, "zeros: 0, length"),
        (4, "of row 1: row + 2, from, length"),
    ];
    let embedded = [(1, "embedded bytes"), (5, "they")];
    match name {
        "small" => {
            all.extend(NO_TABLE);
            all.extend([(1, "form: slices"), (1, "slices")]);
            all.extend([(3, "of what is embedded: 1, from, length"), (1, "retired blobs")]);
            all.extend(embedded);
        }
        "blobs" | "retired" => {
            all.extend(TABLE);
            all.extend(slices);
            match name {
                "retired" => all.extend(RETIRED),
                _ => all.push((1, "retired blobs")),
            }
            all.extend(embedded);
        }
        "shared" => {
            all.extend(ONE);
            all.extend([(1, "its length"), (1, "form: root"), (1, "height"), (1, "row")]);
            all.extend([(1, "retired blobs"), (1, "embedded bytes")]);
        }
        _ => {
            match name {
                "gone" => all.extend(NO_TABLE),
                _ => {
                    all.extend(ONE);
                    all.push((2, "its length"));
                }
            }
            all.extend([(1, "form: slices"), (1, "slices")]);
            match name {
                "gone" => all.push((1, "retired blobs")),
                _ => all.extend(RETIRED),
            }
            all.push((1, "embedded bytes"));
        }
    }
    all
}

#[test]
fn records_of_each_class() {
    for (name, record) in records::classes() {
        let stored = record.encode().unwrap();
        let mut fields = record_fields(name);
        let used: usize = fields.iter().map(|(width, _)| width).sum();
        fields.push((stored.len() - used, "padding"));
        let read = golden_bytes(&format!("record-{name}"), &stored, &fields);
        assert_eq!(Record::decode(&read, "r").unwrap(), record);
    }
}

#[test]
fn the_example_of_the_document() {
    let document = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bucket-format.md");
    let text = std::fs::read_to_string(document).unwrap();
    let lines = text.split("```").nth(1).unwrap().trim().lines();
    let hex: String = lines.map(|line| line.split_once("  ").unwrap().1.replace(' ', "")).collect();
    let (_, small) = records::classes().swap_remove(0);
    assert_eq!(parse(&format!("example\n: {hex}")), small.encode().unwrap());
}

const BLOB: [Field; 8] = [
    (4, "magic"),
    (1, "format"),
    (1, "kind"),
    (2, "0"),
    (16, "operation"),
    (4, "number"),
    (8, "bytes of payload"),
    (4, "CRC-32C of the header"),
];
const BLOB_SUM: Field = (4, "CRC-32C of place and unit 0");
const ID: BlobId = BlobId { operation: super::Id([0x22; 16]), number: 1 };

#[test]
fn a_segment_of_two_units() {
    let payload = [vec![b'a'; UNIT as usize], vec![b'b']].concat();
    let stored = encode_blob(ID, BlobKind::Segment, &payload);
    let units =
        [(UNIT as usize, "unit 0"), BLOB_SUM, (1, "unit 1"), (4, "CRC-32C of place and unit 1")];
    let read = golden_bytes("segment", &stored, &[&BLOB[..], &units].concat());
    assert_eq!(decode_stored(ID, BlobKind::Segment, &read).unwrap(), payload);
}

fn node(name: &str, node: &Node, blobs: &Blobs, fields: &[Field]) {
    let stored = encode_blob(ID, BlobKind::Node, &encode_node(node, blobs).unwrap());
    let fields = [&BLOB[..], &[(1, "level")], fields, &[BLOB_SUM]].concat();
    let read = golden_bytes(name, &stored, &fields);
    let payload = decode_stored(ID, BlobKind::Node, &read).unwrap();
    let mut own = Blobs::default();
    assert_eq!(decode_node(&payload, &mut own, "n").unwrap(), *node);
    assert_eq!(own, *blobs);
}

#[test]
fn nodes() {
    let (_, large) = records::classes().swap_remove(1);
    let Top::Inline(mut slices) = large.tree.top else { panic!("it has slices") };
    slices.remove(1);
    let fields = [
        (1, "slices"),
        (6, "of row 0: row + 2, from, length"),
        (3, "zeros: 0, length"),
        (4, "of row 1: row + 2, from, length"),
    ];
    node("node-leaf", &Node::Leaf(slices), &large.blobs, &[&TABLE[..], &fields].concat());
    let mut blobs = Blobs::default();
    let mut child = |blob, bytes| Child { bytes, node: NodeRef(blobs.alias(blob)) };
    let children = vec![child(blob(0x22, 2, 8 << 20), 1 << 32), child(blob(0x44, 4, 300), 5)];
    let fields = [(1, "children"), (6, "row, bytes below"), (2, "row, bytes below")];
    node(
        "node-inner",
        &Node::Inner { level: 1, children },
        &blobs,
        &[&TABLE[..], &fields].concat(),
    );
}

#[test]
fn a_list_of_retired_blobs() {
    let tree = Named { blob: blob(0x44, 3, 300), part: Part::Tree(2) };
    let list =
        vec![retired(blob(0x22, 1, 8 << 20), 1_700_000_000), Retired { named: tree, seconds: 5 }];
    let stored = encode_blob(ID, BlobKind::List, &encode_list(&list).unwrap());
    let fields = [
        (1, "entries"),
        (3, "segment: row, kind, level"),
        (5, "seconds"),
        (3, "tree: row, kind, level"),
        (1, "seconds"),
        BLOB_SUM,
    ];
    let read = golden_bytes("list", &stored, &[&BLOB[..], &TABLE, &fields].concat());
    let payload = decode_stored(ID, BlobKind::List, &read).unwrap();
    assert_eq!(decode_list(&payload, "l").unwrap(), list);
}

#[test]
fn intents_of_each_kind_in_each_state() {
    for (name, intent) in intents::all() {
        let stored = intent.encode().unwrap();
        let mut fields: Vec<Field> =
            vec![(4, "magic"), (1, "format"), (1, "state"), (1, "kind"), (1, "0")];
        fields.extend([(4, "CRC-32C of all else"), (16, "nonce")]);
        fields.extend([(1, "length of the collection"), (7, "collection")]);
        fields.extend([(1, "length of the name"), (4, "name")]);
        fields.push((if intent.cycle == 0 { 1 } else { 2 }, "cycle"));
        fields.push((if intent.ends == 0 { 1 } else { 5 }, "end"));
        match intent.kind {
            IntentKind::Write => fields.extend(NO_TABLE),
            IntentKind::Hold => {
                fields.extend(ONE);
                fields.push((1, "its length"));
            }
            IntentKind::Share => {
                fields.extend(ONE);
                fields.extend([(2, "its length"), (2, "blob: row of its operation, number")]);
                fields.push((1, "its length"));
            }
        }
        fields.push((1, "shared blobs"));
        intent.shared.iter().for_each(|_| fields.push((3, "row, kind, level")));
        let read = golden_bytes(&format!("intent-{name}"), &stored, &fields);
        assert_eq!(Intent::decode(&read, "i").unwrap(), intent);
    }
}

#[test]
fn the_head() {
    let head = Head::new(id(7), Sizes::default());
    let text = String::from_utf8(head.encode().unwrap().to_vec()).unwrap();
    let read = golden("head.json", &text);
    assert_eq!(Head::decode(read.as_bytes(), "h").unwrap(), head);
}

#[test]
fn no_golden_file_is_left_over() {
    let found = std::fs::read_dir(path("")).unwrap().count();
    assert_eq!(
        found,
        records::classes().len() + intents::all().len() + 5,
        "files in testdata/format"
    );
    let bytes: Vec<u8> = (0..UNIT).map(|_| 7).collect();
    assert_eq!(parse(&dump("x", &bytes, &[(UNIT as usize, "same")])), bytes);
    assert_eq!(parse(&dump("x", &[1, 2], &[(1, "a: b"), (0, "nothing"), (1, "c")])), [1, 2]);
}
