//! Which nodes lack: against those that reading the slices touches.

use super::*;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Nodes by reference, and which of them were read.
#[derive(Default)]
struct Hand {
    nodes: BTreeMap<NodeRef, Node>,
    read: RefCell<BTreeSet<NodeRef>>,
}

impl NodeRead for Hand {
    fn read_node(&self, node: NodeRef, _level: u8) -> Result<Node> {
        self.read.borrow_mut().insert(node);
        let found = self.nodes.get(&node).cloned();
        found.ok_or_else(|| Error::Invalid(format!("node {node} is not at hand")))
    }

    fn leaf_fanout(&self) -> usize {
        4
    }

    fn inner_fanout(&self) -> usize {
        4
    }
}

impl Hand {
    fn all<S: NodeRead>(store: &S, tree: &Tree) -> Self {
        let mut hand = Self::default();
        walk(store, tree, &mut |visit| {
            if let Visit::Node { node, content, .. } = visit {
                hand.nodes.insert(node, content.clone());
            }
            Ok(())
        })
        .unwrap();
        hand
    }

    fn needed(&self, tree: &Tree, ranges: &[Range<u64>]) -> Result<Vec<Needed>> {
        needed(tree, ranges, |node| self.nodes.get(&node))
    }

    /// What a read of the ranges gives, and the nodes that it touches.
    fn slices(&self, tree: &Tree, ranges: &[Range<u64>]) -> (Vec<Located>, BTreeSet<NodeRef>) {
        self.read.borrow_mut().clear();
        let found = ranges.iter().flat_map(|r| slices(self, tree, r.clone()));
        let found = found.map(|l| l.unwrap()).collect();
        (found, self.read.take())
    }
}

fn height(tree: &Tree) -> usize {
    let Top::Root { height, .. } = tree.top else { panic!("inline") };
    height.into()
}

fn random_ranges(rng: &mut SmallRng, size: u64) -> Vec<Range<u64>> {
    let mut ranges = Vec::new();
    for _ in 0..rng.random_range(1..6) {
        let start = rng.random_range(0..size + 3);
        let len = [0, 1, 40, size / 3, u64::MAX - start][rng.random_range(0..5)];
        ranges.push(start..start + len);
    }
    ranges
}

/// Fetches level by level, beginning with some nodes at hand.
fn agrees<S: NodeRead>(rng: &mut SmallRng, store: &S, tree: &Tree) {
    let all = Hand::all(store, tree);
    for turn in 0..60 {
        let ranges = random_ranges(rng, tree.size);
        let (expected, touched) = all.slices(tree, &ranges);
        let mut hand = Hand::default();
        if turn % 2 == 1 {
            let some = all.nodes.iter().filter(|_| rng.random());
            hand.nodes.extend(some.map(|(node, content)| (*node, content.clone())));
        }
        let lacking: Vec<_> = touched.iter().filter(|n| !hand.nodes.contains_key(n)).collect();
        let (mut fetched, mut trips) = (Vec::new(), 0);
        loop {
            let next = hand.needed(tree, &ranges).unwrap();
            if next.is_empty() {
                break;
            }
            trips += 1;
            assert!(next.is_sorted_by_key(|n| std::cmp::Reverse(n.level)));
            for Needed { node, level, bytes } in next {
                let content = store.read_node(node, level).unwrap();
                assert_eq!((content.level(), content.bytes()), (level, Some(bytes)));
                assert!(hand.nodes.insert(node, content).is_none(), "node {node} twice");
                fetched.push(node);
            }
        }
        fetched.sort_unstable();
        assert!(fetched.iter().eq(lacking), "{ranges:?}");
        assert_eq!(hand.slices(tree, &ranges), (expected, touched.clone()), "{ranges:?}");
        assert!(trips <= height(tree) + 1);
        if turn % 2 == 0 && !touched.is_empty() {
            assert_eq!(trips, height(tree) + 1, "{ranges:?}");
        }
    }
}

#[test]
fn a_trip_per_level_brings_the_nodes_that_slices_read_and_no_other() {
    for seed in 0..12 {
        let mut rng = SmallRng::seed_from_u64(seed);
        let (leaf_fanout, inner_fanout) = (rng.random_range(4..7), rng.random_range(4..7));
        let page = [SHAPE, BYTES][seed as usize % 2].page_size;
        let shape = Shape { page_size: page, leaf_fanout, inner_fanout, ..SHAPE };
        let runs = |n| (0..n).map(|i| Slice::run(1 + 9 * i, 1 + i * 7 % 50));
        let mut store = InPlace::new(shape);
        let tree = build(&mut store, runs([5, 60, 700][seed as usize % 3]), 3).unwrap();
        agrees(&mut rng, &store, &tree);
        let mut store = Immutable::new(shape, seed, 3);
        let o = Options { max_inline: 0, ..options(1, 30, page) };
        for _ in 0..120 {
            let old = store.descriptor().unwrap();
            let edit = random_edit(&mut rng, &store, &old, page, 20_000);
            let new = apply(&mut store, &old, &edit, &o).unwrap();
            store.swap(&new);
        }
        let tree = store.descriptor().unwrap().tree;
        agrees(&mut rng, &store, &tree);
    }
}

#[test]
fn nothing_is_needed_for_no_bytes_or_inline_slices() {
    let mut store = InPlace::new(SHAPE);
    let tree = build(&mut store, (0..30).map(|i| Slice::run(1 + 9 * i, 40)), 3).unwrap();
    let (hand, whole) = (Hand::default(), std::slice::from_ref(&(0..u64::MAX)));
    let backwards = Range { start: 9, end: 3 };
    for none in [&[][..], &[7..7, backwards], &[1200..1201, 5000..u64::MAX]] {
        assert_eq!(hand.needed(&tree, none).unwrap(), []);
    }
    assert_eq!(hand.needed(&Tree::empty(), whole).unwrap(), []);
    let root = hand.needed(&tree, &[0..1, 0..u64::MAX, 1199..1200]).unwrap();
    let Top::Root { node, height } = tree.top else { panic!("inline") };
    assert_eq!(root, [Needed { node, level: height, bytes: 1200 }]);
    let slices = vec![Slice::run(1, 40), Slice::zeros(9)];
    let inline = |size| Tree { size, top: Top::Inline(slices.clone()) };
    assert_eq!(hand.needed(&inline(49), whole).unwrap(), []);
    assert!(hand.needed(&inline(50), whole).unwrap_err().is_corrupt());
}

#[test]
fn a_node_that_is_not_what_its_parent_says_is_corrupt() {
    let mut store = InPlace::new(SHAPE);
    let tree = build(&mut store, (0..70).map(|i| Slice::run(1 + 9 * i, 40)), 3).unwrap();
    assert!(height(&tree) >= 2);
    let all = || Hand::all(&store, &tree);
    let whole = std::slice::from_ref(&(0..u64::MAX));
    let corrupt = |hand: &Hand, tree: &Tree| hand.needed(tree, whole).unwrap_err().is_corrupt();
    assert_eq!(all().needed(&tree, whole).unwrap(), []);
    assert!(corrupt(&all(), &Tree { size: tree.size + 1, ..tree.clone() }));
    for (at, node) in all().nodes {
        let mut hand = all();
        let wrong_sum = match node.clone() {
            Node::Leaf(mut slices) => {
                slices[1].len += 1;
                Node::Leaf(slices)
            }
            Node::Inner { level, mut children } => {
                children[1].bytes -= 1;
                Node::Inner { level, children }
            }
        };
        hand.nodes.insert(at, wrong_sum);
        assert!(corrupt(&hand, &tree), "node {at}");
        // The sum holds, the level does not.
        let children = vec![Child { bytes: node.bytes().unwrap(), node: NodeRef(999) }];
        let wrong_level = Node::Inner { level: node.level() + 1, children };
        hand.nodes.insert(at, wrong_level);
        assert!(corrupt(&hand, &tree), "node {at}");
        // It hangs twice below its parent.
        if let Node::Inner { level, mut children } = node {
            children[1].node = children[0].node;
            let mut hand = all();
            hand.nodes.insert(at, Node::Inner { level, children });
            assert!(corrupt(&hand, &tree), "node {at}");
        }
    }
}
