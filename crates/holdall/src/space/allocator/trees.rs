//! Trees of free pages, no more than may be in memory.
//!
//! Owns: [`Trees`], and how many pages are free in a space whose tree had to go: the figures of
//! fullness (rule 25) count all spaces that were looked at, however many there are.

use holdall_core::buddy::BuddyTree;
use std::collections::BTreeMap;

/// The trees of the spaces looked at last, and what is known of the others.
#[derive(Debug)]
pub(super) struct Trees {
    kept: BTreeMap<u32, BuddyTree>,
    /// Free pages of spaces whose trees are not kept any more.
    gone: BTreeMap<u32, u64>,
    most: usize,
}

impl Trees {
    /// None yet, and never more than `most`.
    pub(super) fn new(most: usize) -> Self {
        Self { kept: BTreeMap::new(), gone: BTreeMap::new(), most: most.max(1) }
    }

    pub(super) fn get(&self, space: u32) -> Option<&BuddyTree> {
        self.kept.get(&space)
    }

    pub(super) fn get_mut(&mut self, space: u32) -> Option<&mut BuddyTree> {
        self.kept.get_mut(&space)
    }

    /// Trees in memory.
    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether the space was looked at.
    pub(super) fn knows(&self, space: u32) -> bool {
        self.kept.contains_key(&space) || self.gone.contains_key(&space)
    }

    /// Spaces looked at.
    pub(super) fn known(&self) -> u64 {
        (self.kept.len() + self.gone.len()) as u64
    }

    /// Keeps a tree; that of another space may have to go. Returns how many free pages of this
    /// space were counted before.
    pub(super) fn insert(&mut self, space: u32, tree: BuddyTree) -> u64 {
        if self.kept.len() >= self.most
            && let Some((other, tree)) = self.kept.pop_first()
        {
            self.gone.insert(other, u64::from(tree.free_pages()));
        }
        self.kept.insert(space, tree);
        self.gone.remove(&space).unwrap_or(0)
    }

    /// Forgets a space. Returns how many free pages of it were counted.
    pub(super) fn remove(&mut self, space: u32) -> u64 {
        let kept = self.kept.remove(&space).map_or(0, |tree| u64::from(tree.free_pages()));
        kept + self.gone.remove(&space).unwrap_or(0)
    }

    /// Counts pages that became free in a space whose tree is not kept. Returns whether they
    /// count: not if the space was never looked at.
    pub(super) fn freed(&mut self, space: u32, pages: u64) -> bool {
        self.gone.get_mut(&space).map(|free| *free += pages).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(free: u32) -> BuddyTree {
        BuddyTree::from_free_words(64, free, |_| u64::MAX).unwrap()
    }

    #[test]
    fn what_is_free_stays_known_when_a_tree_goes() {
        let mut trees = Trees::new(2);
        for (space, free) in [(3, 10), (5, 20), (9, 30)] {
            assert_eq!(trees.insert(space, tree(free)), 0);
        }
        assert_eq!((trees.len(), trees.known()), (2, 3));
        assert!(trees.get(3).is_none() && trees.get_mut(5).is_some() && trees.knows(3));
        assert!(trees.freed(3, 4) && !trees.freed(5, 4) && !trees.freed(7, 4));
        assert_eq!(trees.insert(3, tree(14)), 14, "counted before");
        assert_eq!([3, 5, 9, 7].map(|space| trees.remove(space)), [14, 20, 30, 0]);
        assert_eq!(trees.known(), 0);
    }
}
