//! The tree alone, against a map, with nodes that are changed in place and with copies.

use super::*;
use holdall_core::PageWrite;
use holdall_core::pages::MemPages;
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::collections::{BTreeMap, BTreeSet};

const SIZE: usize = 4096;

/// Pages of a transaction that copies nodes which are not its own, if `copies`.
struct Tx {
    pages: MemPages,
    own: BTreeSet<PageNo>,
    copies: bool,
}

impl PageRead for Tx {
    fn page_size(&self) -> usize {
        SIZE
    }

    fn page(&self, page: PageNo, kind: PageKind) -> Result<holdall_core::PageRef> {
        self.pages.page(page, kind)
    }
}

impl NodeWrite for Tx {
    fn own(&mut self, no: PageNo) -> Result<PageNo> {
        if !self.copies || self.own.contains(&no) {
            return Ok(no);
        }
        let old = self.pages.page(no, PageKind::Images)?;
        let new = self.new_node()?;
        self.node_mut(new)?[32..].copy_from_slice(&old[32..]);
        self.free_node(no)?;
        Ok(new)
    }

    fn node_mut(&mut self, no: PageNo) -> Result<&mut [u8]> {
        assert!(!self.copies || self.own.contains(&no), "another's node is changed");
        self.pages.page_mut(no, PageKind::Images)
    }

    fn new_node(&mut self) -> Result<PageNo> {
        let no = self.pages.new_page(PageKind::Images, 0, None)?;
        self.own.insert(no);
        Ok(no)
    }

    fn free_node(&mut self, no: PageNo) -> Result<()> {
        self.own.remove(&no);
        self.pages.free_page(no)
    }
}

fn check(tx: &Tx, tree: Images, model: &BTreeMap<PageNo, PageNo>) {
    let all = tree.list(tx, PageNo(0), usize::MAX).unwrap();
    assert_eq!(all, model.iter().map(|(a, b)| (*a, *b)).collect::<Vec<_>>());
    assert_eq!(tree.is_empty(), model.is_empty());
    for no in tx.pages.live() {
        let bytes = tx.pages.page(no, PageKind::Images).unwrap();
        ImageNode::new(&bytes, no).and_then(|node| node.check_order(no)).unwrap();
    }
    if model.is_empty() {
        assert!(tx.pages.live().is_empty(), "nodes are left");
    }
}

#[test]
fn random_use_equals_a_map() {
    for copies in [false, true] {
        let (mut rng, mut tree) = (SmallRng::seed_from_u64(1), Images::default());
        let mut tx = Tx { pages: MemPages::new(SIZE), own: BTreeSet::new(), copies };
        let mut model = BTreeMap::new();
        let mut deep = 0;
        for round in 0..60 {
            // Another transaction: what the last one made is not its own.
            tx.own.clear();
            let shrinks = round % 6 == 5;
            for n in 0..2_000 {
                let page = PageNo(rng.random_range(1..90_000));
                let image = PageNo(rng.random_range(1..1_000_000));
                let known = model.keys().nth(n % model.len().max(1)).copied();
                if let Some(page) = known.filter(|_| shrinks || n % 4 == 0) {
                    assert_eq!(tree.get(&tx, page).unwrap(), model.remove(&page));
                    tree.remove(&mut tx, page).unwrap();
                    assert_eq!(tree.get(&tx, page).unwrap(), None);
                } else {
                    assert_eq!(
                        tree.insert(&mut tx, page, image).unwrap(),
                        model.insert(page, image)
                    );
                    assert_eq!(tree.get(&tx, page).unwrap(), Some(image));
                }
            }
            check(&tx, tree, &model);
            deep = deep.max(tx.pages.live().len());
            let from = PageNo(rng.random_range(1..90_000));
            let some = tree.list(&tx, from, 7).unwrap();
            let want: Vec<_> = model.range(from..).take(7).map(|(a, b)| (*a, *b)).collect();
            assert_eq!(some, want);
        }
        assert!(deep > 100, "too few nodes: {deep}");
        for page in model.keys().copied().collect::<Vec<_>>() {
            tree.remove(&mut tx, page).unwrap();
        }
        check(&tx, tree, &BTreeMap::new());
        assert!(tree.remove(&mut tx, PageNo(4)).is_err(), "nothing is there");
    }
}

#[test]
fn pages_in_order_fill_their_nodes() {
    let mut tree = Images::default();
    let mut tx = Tx { pages: MemPages::new(SIZE), own: BTreeSet::new(), copies: true };
    for n in 1..=2_530 {
        tree.insert(&mut tx, PageNo(n), PageNo(n + 10_000)).unwrap();
    }
    assert_eq!(tx.pages.live().len(), 11, "ten full leaves of 253 and the node above");
}

#[test]
fn damage_is_an_error() {
    let mut tree = Images::default();
    let mut tx = Tx { pages: MemPages::new(SIZE), own: BTreeSet::new(), copies: true };
    for n in 1..=600 {
        tree.insert(&mut tx, PageNo(n), PageNo(n + 10_000)).unwrap();
    }
    let root = tree.root;
    let below = tx.pages.page(root, PageKind::Images).unwrap()[48..56].to_vec();
    // A node that leads to itself.
    tx.node_mut(root).unwrap()[48..56].copy_from_slice(&root.0.to_le_bytes());
    assert!(tree.get(&tx, PageNo(1)).is_err() && tree.list(&tx, PageNo(0), 9).is_err());
    tx.node_mut(root).unwrap()[48..56].copy_from_slice(&below);
    for (at, byte) in [(32, 9), (35, 200)] {
        let was = std::mem::replace(&mut tx.node_mut(root).unwrap()[at], byte);
        assert!(tree.get(&tx, PageNo(1)).is_err(), "byte {at}");
        tx.node_mut(root).unwrap()[at] = was;
    }
    assert_eq!(tree.get(&tx, PageNo(1)).unwrap(), Some(PageNo(10_001)));
}
