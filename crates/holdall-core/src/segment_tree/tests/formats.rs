//! Nodes and descriptors as bytes: round trips, damage, and arbitrary bytes.

use super::*;
use proptest::prelude::*;

fn place() -> String {
    "node 1".into()
}

fn a_slice() -> impl Strategy<Value = Slice> {
    let run = (any::<u8>(), 0..64u32, 0..=MAX_OBJECT, 1..1u64 << 50);
    prop_oneof![
        run.prop_map(|(flags, offset, reference, len)| {
            Slice { kind: SliceKind::Run, flags, offset, reference, len }
        }),
        (1..1u64 << 50).prop_map(Slice::zeros),
    ]
}

fn a_node() -> impl Strategy<Value = Node> {
    let child = (1..1u64 << 50, any::<u64>());
    let child = child.prop_map(|(bytes, node)| Child { bytes, node: NodeRef(node) });
    prop_oneof![
        prop::collection::vec(a_slice(), 1..20).prop_map(Node::Leaf),
        (1..=MAX_HEIGHT, prop::collection::vec(child, 1..30))
            .prop_map(|(level, children)| Node::Inner { level, children }),
    ]
}

fn a_descriptor() -> impl Strategy<Value = Descriptor> {
    let inline = prop::collection::vec(a_slice(), 0..8).prop_map(|slices| Tree {
        size: slices.iter().map(|s| s.len).sum(),
        top: Top::Inline(slices),
    });
    let root = (1..1u64 << 60, any::<u64>(), 0..=MAX_HEIGHT).prop_map(|(size, node, height)| {
        Tree { size, top: Top::Root { node: NodeRef(node), height } }
    });
    let tail = prop::collection::vec(any::<u8>(), 0..40);
    (any::<u8>(), any::<u16>(), prop_oneof![inline, root], tail)
        .prop_map(|(flags, threshold, tree, tail)| Descriptor { flags, threshold, tree, tail })
}

proptest! {
    #[test]
    fn nodes_round_trip(node in a_node()) {
        let mut body = vec![0xff; 16 + 20 * 24];
        node.encode_into(&mut body).unwrap();
        prop_assert_eq!(Node::decode(&body, 64, &place).unwrap(), node);
    }

    #[test]
    fn a_node_with_changed_bytes_is_refused_or_sound(
        node in a_node(), at in 0..300usize, byte in any::<u8>()
    ) {
        let mut body = vec![0; 16 + 20 * 24];
        node.encode_into(&mut body).unwrap();
        body[at] = byte;
        if let Ok(read) = Node::decode(&body, 64, &place) {
            prop_assert!(read.count() > 0 && read.bytes().is_some());
            prop_assert_eq!(read.bytes(), node.bytes());
        }
    }

    #[test]
    fn descriptors_round_trip(d in a_descriptor()) {
        let mut bytes = Vec::new();
        d.encode(&mut bytes);
        prop_assert_eq!(&Descriptor::decode(&bytes).unwrap(), &d);
        for cut in 0..bytes.len() {
            prop_assert!(Descriptor::decode(&bytes[..cut]).is_err());
        }
        bytes.push(0);
        prop_assert!(Descriptor::decode(&bytes).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Node::decode(&bytes, 64, &place).map(|n| n.bytes());
        let _ = Descriptor::decode(&bytes);
        if bytes.len() > 5 {
            // Past the version, so that the rest is looked at.
            bytes[0] = 1;
            bytes[4] &= 1;
            let _ = Descriptor::decode(&bytes);
                bytes[1] = 1;
            bytes[2] = bytes[2] % 10 + 1;
            bytes[3] = 0;
            let _ = Node::decode(&bytes, 64, &place);
        }
    }

    /// Whatever a descriptor says, using it gives an answer or an error.
    #[test]
    fn edits_of_impossible_objects_never_panic(
        d in a_descriptor(), a in any::<u64>(), b in any::<u64>(), edge in any::<bool>(),
        (shape, threshold) in prop_oneof![Just((SHAPE, 4)), Just((BYTES, 1))]
    ) {
        let mut store = InPlace::new(shape);
        let page = shape.page_size;
        let o = options(threshold, 20, page);
        let size = d.size();
        let (a, b) = if edge { (size / 2, size / 2 + size % 7) } else { (a % (size + 1), b % (size + 1)) };
        let _ = read_at(&store, &d, a, &mut [0; 40]);
        let _ = stats(&store, &d, page);
        let _ = check(&store, &d, &check_options(&o, page, false)).unwrap();
        let _ = splice(&mut store, &d, a.min(b)..a.max(b).min(size), Content::Bytes(b"abc"), &o);
        let _ = delete_all(&mut store, &d.tree);
    }
}

fn sample(shape: Shape) -> (InPlace, Descriptor) {
    let mut store = InPlace::new(shape);
    let runs = (0..70).map(|i| Slice::run(1 + 50 * i, 40));
    let tree = build(&mut store, runs, 3).unwrap();
    (store, Descriptor { tree, ..Descriptor::default() })
}

fn damage_is_found(shape: Shape, threshold: u16) {
    let (store, d) = sample(shape);
    let page = shape.page_size;
    let options = check_options(&options(0, 20, page), page, true);
    assert_eq!(check(&store, &d, &options).unwrap().problems, []);
    let Top::Root { node: root, height } = d.tree.top else { panic!("inline") };
    assert!(height >= 2);
    for node in store.nodes() {
        for at in 0..64 {
            let mut bad = store.clone();
            bad.damage_node(node, |body| body[at] ^= 1);
            // Flags, page numbers and offsets mean nothing to the tree; a second owner of a
            // page or node is found if there is one.
            let damaged = check(&bad, &d, &options).unwrap().problems;
            if at < 16 {
                assert!(damaged.iter().any(Problem::is_damage), "node {node} byte {at}");
            }
            let o = super::options(threshold, 20, page);
            let _ = splice(&mut bad, &d, 30..2000, Content::Bytes(b"x"), &o);
            let _ = delete_all(&mut bad, &d.tree);
        }
    }
    // An inner node whose children are all the same one.
    let mut bad = store.clone();
    bad.damage_node(root, |body| {
        let first = body[24..32].to_vec();
        body[40..48].copy_from_slice(&first);
    });
    assert!(check(&bad, &d, &options).unwrap().problems.iter().any(Problem::is_damage));
    assert!(delete_all(&mut bad, &d.tree).is_err());
}

#[test]
fn damaged_nodes_are_found_and_never_followed_for_ever() {
    damage_is_found(SHAPE, 4);
    damage_is_found(BYTES, 1);
}

#[test]
fn problems_are_named() {
    let store = InPlace::new(SHAPE);
    let slices = vec![Slice::run(5, 20), Slice::run(6, 20), Slice::run(20, 900)];
    let tree = Tree { size: 941, top: Top::Inline(slices) };
    let d = Descriptor { tree, tail: vec![0; 9], ..Descriptor::default() };
    let o = CheckOptions { max_inline: 2, ..check_options(&options(3, 20, 16), 16, false) };
    let report = check(&store, &d, &o).unwrap();
    let expected = [
        Problem::Tail(9),
        Problem::Sum { node: None, expected: 941, found: Some(940) },
        Problem::Inline(3),
        Problem::Threshold { at: 20, pages: [2, 2] },
        Problem::PageTwice(6),
    ];
    assert_eq!(report.problems, expected);
}

#[test]
fn layouts_are_as_documented() {
    let slice = Slice { kind: SliceKind::Run, flags: 9, offset: 5, reference: 0x1122, len: 300 };
    let mut body = vec![0; 64];
    Node::Leaf(vec![slice]).encode_into(&mut body).unwrap();
    assert_eq!(body[..16], [0, 1, 1, 0, 0, 0, 0, 0, 0x2c, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(body[16..24], [1, 9, 0, 0, 5, 0, 0, 0]);
    assert_eq!(body[24..40], [0x22, 0x11, 0, 0, 0, 0, 0, 0, 0x2c, 1, 0, 0, 0, 0, 0, 0]);
    let children = vec![Child { bytes: 7, node: NodeRef(3) }];
    Node::Inner { level: 2, children }.encode_into(&mut body).unwrap();
    assert_eq!(body[..9], [2, 1, 1, 0, 0, 0, 0, 0, 7]);
    assert_eq!((body[16], body[24], body[32]), (7, 3, 0));
    let tree = Tree { size: 300, top: Top::Inline(vec![slice]) };
    let mut d = Descriptor { flags: 1, threshold: 4, tree, tail: vec![0xee] };
    let encode = |d: &Descriptor| {
        let mut out = Vec::new();
        d.encode(&mut out);
        out
    };
    let inline = [1, 1, 4, 0xac, 2, 0, 1, 0x0d, 9, 5, 0xa2, 0x22, 0xac, 2, 1, 0xee];
    assert_eq!(encode(&d), inline);
    d.tree.top = Top::Root { node: NodeRef(77), height: 1 };
    assert_eq!(encode(&d), [1, 1, 4, 0xac, 2, 1, 1, 77, 1, 0xee]);
    let reserved = [1, 0, 0, 2, 0, 1, 3, 1, 2, 0];
    assert!(matches!(Descriptor::decode(&reserved), Err(Error::Unsupported { .. })));
    assert!(matches!(Descriptor::decode(&[2]), Err(Error::Unsupported { .. })));
}
