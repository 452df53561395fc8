//! Records: round trips, classes, damage.

use super::super::header::{CRC_AT, sum_of};
use super::super::record::MAX_EMBEDDED;
use super::super::{BlobRef, Blobs, Class, MAX_RECENT, Record, RecordHeader, reference};
use super::{
    Raw, any_blob, any_id, any_raw, any_retired, blob, detail, id, notices_damage, retired,
    slices_of,
};
use holdall::Attributes;
use holdall_core::bytes::put_u32;
use holdall_core::segment_tree::{MAX_HEIGHT, NodeRef, Slice, Top, Tree};
use proptest::prelude::*;

/// What the tree of a record is made of.
#[derive(Debug, Clone)]
enum Shape {
    Gone,
    Inline(Vec<Raw>, Vec<u8>),
    Root(BlobRef, u8, u64),
}

fn shape() -> impl Strategy<Value = Shape> {
    let inline =
        (prop::collection::vec(any_raw(), 0..20), prop::collection::vec(any::<u8>(), 0..200));
    prop_oneof![
        1 => Just(Shape::Gone),
        4 => inline.prop_map(|(raw, embedded)| Shape::Inline(raw, embedded)),
        2 => (any_blob(), 0..=MAX_HEIGHT, 1..1_u64 << 62).prop_map(|(b, h, size)| Shape::Root(b, h, size)),
    ]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    prop::collection::btree_map(any::<String>(), prop::collection::vec(any::<u8>(), 0..30), 0..5)
}

fn record() -> impl Strategy<Value = Record> {
    let ids = (any_id(), any_id(), any_id(), any::<bool>());
    let numbers = (0..1_u64 << 62, any::<u64>(), any::<u64>());
    let texts = (any::<String>(), any::<String>(), attributes());
    let recent = prop::collection::vec(any::<u64>(), 0..=MAX_RECENT);
    let retired = prop::collection::vec(any_retired(), 0..6);
    (ids, numbers, texts, recent, retired, shape()).prop_map(
        |(ids, numbers, texts, recent, retired, shape)| {
            let (tree, blobs, embedded) = match &shape {
                Shape::Gone => (Tree::empty(), Blobs::default(), Vec::new()),
                Shape::Inline(raw, embedded) => {
                    let (slices, blobs) = slices_of(raw, embedded.len() as u64);
                    let size = slices.iter().map(|s| s.len).sum();
                    (Tree { size, top: Top::Inline(slices) }, blobs, embedded.clone())
                }
                Shape::Root(root, height, size) => {
                    let mut blobs = Blobs::default();
                    let node = NodeRef(blobs.alias(*root));
                    (
                        Tree { size: *size, top: Top::Root { node, height: *height } },
                        blobs,
                        Vec::new(),
                    )
                }
            };
            let gone = matches!(shape, Shape::Gone);
            Record {
                gone,
                shared: ids.3,
                nonce: ids.0,
                operation: ids.1,
                incarnation: ids.2,
                change: numbers.0,
                created: numbers.1,
                modified: numbers.2,
                recent,
                collection: texts.0,
                name: texts.1,
                attributes: if gone { Attributes::new() } else { texts.2 },
                tree,
                blobs,
                embedded: embedded.into(),
                retired,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_record_comes_back(record in record()) {
        let stored = record.encode().unwrap();
        prop_assert_eq!(&Record::decode(&stored, "r").unwrap(), &record);
        prop_assert_eq!(Class::of_len(stored.len() as u64), Some(record.class()));
        prop_assert_eq!(Record::decode(&stored, "r").unwrap().encode().unwrap(), stored);
    }
}

/// One record of each class.
pub(super) fn classes() -> Vec<(&'static str, Record)> {
    let plain = Record {
        nonce: id(0x11),
        operation: id(0x22),
        incarnation: id(0x33),
        change: 2,
        created: 0x0102_0304_0506_0708,
        modified: 0x1112_1314_1516_1718,
        recent: vec![0x4444_4444_4444_4444, id(0x22).short()],
        collection: "default".into(),
        name: "film".into(),
        ..Record::default()
    };
    let small = Record {
        attributes: Attributes::from([("type".into(), b"text".to_vec())]),
        tree: Tree { size: 5, top: Top::Inline(vec![Slice::run(reference(0, 0), 5)]) },
        embedded: b"hello".as_slice().into(),
        ..plain.clone()
    };
    let mut blobs = Blobs::default();
    let (a, b) = (blobs.alias(blob(0x22, 1, 8 << 20)), blobs.alias(blob(0x44, 3, 300)));
    let slices = vec![
        Slice::run(reference(a, 0), 8 << 20),
        Slice::run(reference(0, 0), 5),
        Slice::zeros(1000),
        Slice::run(reference(b, 100), 200),
    ];
    let size = (8 << 20) + 5 + 1000 + 200;
    let tree = Tree { size, top: Top::Inline(slices) };
    let large = Record { tree, blobs, embedded: b"hello".as_slice().into(), ..plain.clone() };
    let mut nodes = Blobs::default();
    let top = Top::Root { node: NodeRef(nodes.alias(blob(0x22, 9, 77))), height: 1 };
    let tree = Tree { size: 0x1_0000_0000, top };
    let shared = Record { shared: true, tree, blobs: nodes, ..plain.clone() };
    let old = vec![retired(blob(0x44, 3, 300), 1_700_000_000)];
    let gone = Record { gone: true, ..plain.clone() };
    vec![
        ("small", small),
        ("blobs", large.clone()),
        ("retired", Record { retired: old.clone(), ..large }),
        ("shared", shared),
        ("gone", gone.clone()),
        ("gone-retired", Record { retired: old, ..gone }),
    ]
}

#[test]
fn lengths_tell_classes() {
    let names = [
        Class::Small,
        Class::Blobs,
        Class::Retired,
        Class::Shared,
        Class::Gone,
        Class::GoneRetired,
    ];
    for ((name, record), class) in classes().into_iter().zip(names) {
        // Whatever the padding has to be.
        for len in 0..9 {
            let record = Record { name: "n".repeat(len), ..record.clone() };
            let stored = record.encode().unwrap();
            assert_eq!(Class::of_len(stored.len() as u64), Some(class), "{name}");
            assert_eq!(record.class(), class, "{name}");
            assert_eq!(Record::decode(&stored, "r").unwrap(), record, "{name}");
            assert_eq!(class.is_object(), !record.gone, "{name}");
        }
    }
    assert_eq!(Class::of_len(6), None);
    assert_eq!(Class::of_len(7), None);
}

#[test]
fn damage_of_any_byte_is_noticed() {
    for (_, record) in classes() {
        notices_damage(&record.encode().unwrap(), |stored| Record::decode(stored, "r"));
    }
}

#[test]
fn a_header_is_read_without_the_rest() {
    for (name, record) in classes() {
        let stored = record.encode().unwrap();
        let expected = Some(RecordHeader::from(&record));
        let ends = (0..=stored.len()).filter(|end| {
            let read = RecordHeader::decode(&stored[..*end]);
            assert!(read.is_none() || read == expected, "{name}: cut to {end}");
            read.is_some()
        });
        let len = ends.min().unwrap();
        let mut flipped = stored[..len].to_vec();
        for bit in (0..len * 8).filter(|bit| !(CRC_AT..CRC_AT + 4).contains(&(bit / 8))) {
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(RecordHeader::decode(&flipped), None, "{name}: bit {bit}");
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
        // A reader of the whole record must refuse what a reader of headers refuses.
        let mut changed = stored.to_vec();
        changed[len - 1] ^= 1;
        let sum = sum_of(&changed);
        put_u32(&mut changed, CRC_AT, sum);
        assert!(detail(Record::decode(&changed, "r")).contains("header"), "{name}");
    }
}

#[test]
fn what_a_record_remembers() {
    let mut record = Record::default();
    for n in 0..20 {
        record.changed_by(id(n));
    }
    assert_eq!((record.change, record.recent.len(), record.operation), (20, MAX_RECENT, id(19)));
    assert!(record.remembers(id(4)) && record.remembers(id(19)));
    assert!(!record.remembers(id(3)));
    assert_eq!(record.slices(), 0);
}

#[test]
fn the_longest_embedded_bytes_come_back() {
    let embedded = vec![7; MAX_EMBEDDED as usize];
    let tree = Tree {
        size: MAX_EMBEDDED,
        top: Top::Inline(vec![Slice::run(reference(0, 0), MAX_EMBEDDED)]),
    };
    let record = Record { tree, embedded: embedded.into(), ..Record::default() };
    assert_eq!(Record::decode(&record.encode().unwrap(), "r").unwrap(), record);
}
