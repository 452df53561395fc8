//! Nodes and lists of retired blobs: round trips, cuts. Checksums are those of their blobs.

use super::super::node::MAX_LIST;
use super::super::{
    Blobs, MAX_FANOUT, Retired, decode_list, decode_node, encode_list, encode_node,
};
use super::{Raw, any_blob, any_raw, any_retired, blob, detail, retired, slices_of};
use holdall::Error;
use holdall_core::segment_tree::{Child, MAX_HEIGHT, MAX_OBJECT, Node, NodeRef, Slice};
use proptest::prelude::*;

fn leaf() -> impl Strategy<Value = (Node, Blobs)> {
    let raw = any_raw().prop_filter("nodes embed nothing", |raw| !matches!(raw, Raw::Embedded(..)));
    prop::collection::vec(raw, 1..30).prop_map(|raw| {
        let (slices, blobs) = slices_of(&raw, 0);
        (Node::Leaf(slices), blobs)
    })
}

fn inner() -> impl Strategy<Value = (Node, Blobs)> {
    let child = (any_blob(), 1..MAX_OBJECT >> 8);
    (1..=MAX_HEIGHT, prop::collection::vec(child, 1..30)).prop_map(|(level, raw)| {
        let mut blobs = Blobs::default();
        let child = |(blob, bytes)| Child { bytes, node: NodeRef(blobs.alias(blob)) };
        let children = raw.into_iter().map(child).collect();
        (Node::Inner { level, children }, blobs)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_node_comes_back((node, blobs) in prop_oneof![leaf(), inner()]) {
        let payload = encode_node(&node, &blobs).unwrap();
        let mut own = Blobs::default();
        prop_assert_eq!(&decode_node(&payload, &mut own, "n").unwrap(), &node);
        prop_assert_eq!(own, blobs);
        for end in 0..payload.len() {
            prop_assert!(decode_node(&payload[..end], &mut Blobs::default(), "n").is_err());
        }
    }

    #[test]
    fn every_list_comes_back(list in prop::collection::vec(any_retired(), 1..40)) {
        let payload = encode_list(&list).unwrap();
        prop_assert_eq!(&decode_list(&payload, "l").unwrap(), &list);
        for end in 0..payload.len() {
            prop_assert!(decode_list(&payload[..end], "l").is_err());
        }
    }
}

#[test]
fn aliases_go_on_where_others_are_known() {
    let mut known = Blobs::default();
    known.alias(blob(9, 9, 9));
    let mut own = Blobs::default();
    let node = Node::Leaf(vec![Slice::run(super::reference(own.alias(blob(1, 1, 10)), 2), 3)]);
    let payload = encode_node(&node, &own).unwrap();
    let read = decode_node(&payload, &mut known, "n").unwrap();
    assert_eq!(read, Node::Leaf(vec![Slice::run(super::reference(2, 2), 3)]));
    assert_eq!(known.find(blob(1, 1, 10).id), Some(blob(1, 1, 10)));
    // The same blob, of another length than others said.
    let mut other = Blobs::default();
    other.alias(blob(1, 1, 11));
    assert!(detail(decode_node(&payload, &mut other, "n")).contains("others of 11"));
}

#[test]
fn nodes_that_cannot_be_written() {
    let blobs = Blobs::default();
    let strange = Node::Leaf(vec![Slice::run(super::reference(7, 0), 1)]);
    assert!(matches!(encode_node(&strange, &blobs), Err(Error::Corrupt { .. })));
    let child = Child { bytes: 1, node: NodeRef(7) };
    let strange = Node::Inner { level: 1, children: vec![child] };
    assert!(matches!(encode_node(&strange, &blobs), Err(Error::Corrupt { .. })));
    for count in [0, MAX_FANOUT + 1] {
        let node = Node::Leaf(vec![Slice::zeros(1); count]);
        assert!(matches!(encode_node(&node, &blobs), Err(Error::TooLarge(_))), "{count}");
    }
    let full = Node::Leaf(vec![Slice::zeros(1); MAX_FANOUT]);
    let payload = encode_node(&full, &blobs).unwrap();
    assert_eq!(decode_node(&payload, &mut Blobs::default(), "n").unwrap(), full);
}

#[test]
fn the_longest_list_comes_back_and_a_longer_one_is_not_written() {
    let entry = |n| retired(blob(1, n, 1), 2);
    let list: Vec<Retired> = (0..MAX_LIST as u32).map(entry).collect();
    assert_eq!(decode_list(&encode_list(&list).unwrap(), "l").unwrap(), list);
    let longer: Vec<Retired> = (0..=MAX_LIST as u32).map(entry).collect();
    assert!(matches!(encode_list(&longer), Err(Error::TooLarge(_))));
    assert!(encode_list(&[]).is_err());
}
