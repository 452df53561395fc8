//! How full removals leave the nodes.

use super::*;
use holdall_core::names_node::Node;
use holdall_core::pages::PageRead;
use holdall_core::{PageKind, PageRef};
use rand::SeedableRng;

impl Pair {
    /// Every node's page.
    fn nodes(&self) -> Vec<(PageNo, PageRef)> {
        let mut all = Vec::new();
        let mut visit = |no| all.push((no, self.pages.page(no, PageKind::Names).unwrap()));
        self.names.check(&self.pages, &mut visit).unwrap();
        all
    }

    /// Loads ascending numbers from `from` on while `more` says so; returns the next one.
    fn ascend(&mut self, from: u32, mut more: impl FnMut(&Self) -> bool) -> u32 {
        let mut i = from;
        while more(self) {
            self.insert(&i.to_be_bytes(), &[1; 40]);
            i += 1;
        }
        i
    }
}

#[test]
fn a_small_leaf_beside_full_ones_is_filled_up() {
    let mut t = Pair::new(4096);
    t.ascend(0, |t| t.model.len() < 4000);
    let stats = t.check();
    let a_leaf = 4000 / stats.leaves as u32;
    // Every fourth leaf loses most of its keys; its neighbours are full and cannot take it.
    for leaf in (1..stats.leaves as u32 - 1).step_by(4) {
        for i in 0..a_leaf * 8 / 10 {
            t.remove(&(leaf * a_leaf + 4 + i).to_be_bytes());
        }
    }
    t.check();
    for (no, page) in t.nodes() {
        let node = Node::open(no, &page).unwrap();
        let fill = node.live() as f64 / node.capacity() as f64;
        assert!(fill > 0.42 || !node.is_leaf() || fill < 0.1 && no == t.names.root, "{fill:.2}");
    }
}

#[test]
fn an_only_child_is_relieved_through_its_parent() {
    let mut t = Pair::new(4096);
    let right_inner = |t: &Pair| {
        let mut no = t.names.root;
        loop {
            let page = t.pages.page(no, PageKind::Names).unwrap();
            let node = Node::open(no, &page).unwrap();
            if node.level() < 2 {
                return (no, node.level(), node.count());
            }
            no = node.child(node.count()).unwrap();
        }
    };
    // Until the right edge, two levels below the root, has a single child.
    let last = t.ascend(0, |t| {
        t.model.is_empty() || {
            let (no, level, count) = right_inner(t);
            level == 0 || no == t.names.root || count > 0
        }
    });
    assert_eq!(t.check().height, 3);
    let last = t.ascend(last, |t| t.model.len() < last as usize + 5);
    let (edge, _, single) = right_inner(&t);
    assert_eq!(single, 0);
    t.remove(&(last - 1).to_be_bytes());
    t.check();
    let (after, _, count) = right_inner(&t);
    assert!(after != edge || count > 0, "the edge keeps a single child");
}

#[test]
fn separators_that_do_not_fit_leave_nodes_as_they_are() {
    // Short separators between groups, long ones inside: evening out would often put a long
    // one in a short one's place.
    let mut rng = SmallRng::seed_from_u64(21);
    let mut t = Pair::new(4096);
    for round in 0..6 {
        for _ in 0..3000 {
            let mut key = rng.random_range(0..300u16).to_be_bytes().to_vec();
            if rng.random_ratio(2, 3) {
                key.resize([300, 1000][rng.random_range(0..2)], b'x');
                key.extend(rng.random_range(0..8u16).to_be_bytes());
            } else {
                key.push(rng.random());
            }
            if rng.random_range(0..10) < [2, 7][round % 2] {
                let near = t.model.range(key.clone()..).next().map(|(k, _)| k.clone());
                t.remove(&near.unwrap_or(key));
            } else {
                t.insert(&key, &[1; 12]);
            }
        }
        t.check();
    }
}
