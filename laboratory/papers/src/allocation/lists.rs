//! The free lists in memory: quick lists of one size each, misc lists of a range of sizes each
//! (Iyengar §2.4, figure 6).
//!
//! Owns every free block the allocator knows of. A list is a stack: blocks come and go at its
//! head, the vector's end. Quick list n - 1 has the blocks of n grains, n ≤ maxQL. The paper
//! leaves the misc ranges open; here each begins where the last ends and is as wide as all
//! before it together, quarter by quarter, up to 2^31 grains. Threads: none.

use super::block::Block;
use crate::mutation::{Mutation, is};

/// Misc lists for each doubling of the size.
const PER_DOUBLING: u32 = 4;

/// The lists.
#[derive(Debug, Clone)]
pub struct FreeLists {
    max_ql: u32,
    /// Smallest size on each misc list.
    lows: Vec<u32>,
    lists: Vec<Vec<Block>>,
    grains: u64,
    blocks: usize,
}

/// A block taken out of a list, and its neighbours there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// The block.
    pub block: Block,
    /// The block that led to it; none if it was the head.
    pub above: Option<Block>,
    /// Address of the block it led to; 0 for none.
    pub below: u64,
}

impl FreeLists {
    /// Empty lists for small blocks of up to `max_ql` grains.
    pub fn new(max_ql: u32) -> Self {
        let mut lows = Vec::new();
        let mut low = u64::from(max_ql) + 1;
        while low <= i32::MAX as u64 {
            let step = low.div_ceil(u64::from(PER_DOUBLING));
            for quarter in 0..u64::from(PER_DOUBLING) {
                let next = low + quarter * step;
                if next <= i32::MAX as u64 && lows.last().is_none_or(|&last| u64::from(last) < next)
                {
                    lows.push(next as u32);
                }
            }
            low += u64::from(PER_DOUBLING) * step;
        }
        let lists = vec![Vec::new(); max_ql as usize + lows.len()];
        Self { max_ql, lows, lists, grains: 0, blocks: 0 }
    }

    /// Number of lists.
    pub fn count(&self) -> usize {
        self.lists.len()
    }

    /// Whether a block of that size, in grains, is small.
    pub fn is_small(&self, grains: u32) -> bool {
        grains <= self.max_ql
    }

    /// The list for blocks of `grains` ≥ 1.
    pub fn class(&self, grains: u32) -> usize {
        if self.is_small(grains) {
            return grains as usize - 1;
        }
        self.max_ql as usize + self.lows.partition_point(|&low| low <= grains) - 1
    }

    /// Sizes of list `class`, first and last, in grains.
    pub fn range(&self, class: usize) -> (u32, u32) {
        match class.checked_sub(self.max_ql as usize) {
            None => (class as u32 + 1, class as u32 + 1),
            Some(i) => (self.lows[i], self.lows.get(i + 1).map_or(i32::MAX as u32, |&n| n - 1)),
        }
    }

    /// Puts a block at the head of its list; gives the list.
    pub fn push(&mut self, block: Block) -> usize {
        let class = self.class(block.grains);
        let at = if is(Mutation::ListHead) { 0 } else { self.lists[class].len() };
        self.lists[class].insert(at, block);
        self.grains += u64::from(block.grains);
        self.blocks += 1;
        class
    }

    /// The head of a list.
    pub fn head(&self, class: usize) -> Option<Block> {
        self.lists[class].last().copied()
    }

    /// Takes the head of a list.
    pub fn pop(&mut self, class: usize) -> Option<Taken> {
        let at = self.lists[class].len().checked_sub(1)?;
        Some(self.remove(class, at))
    }

    /// Takes the first block of `least..=most` grains of a list, from its head on.
    pub fn first_fit(&mut self, class: usize, least: u32, most: u32) -> Option<Taken> {
        let list = &self.lists[class];
        let fits = |b: &Block| (least..=most).contains(&b.grains) && !is(Mutation::MiscFirst);
        let at = list.iter().rposition(fits)?;
        Some(self.remove(class, at))
    }

    /// Takes the smallest block of at least `least` grains of a list, among equals the one next
    /// to its head.
    pub fn smallest(&mut self, class: usize, least: u32) -> Option<Taken> {
        let list = &self.lists[class];
        let fit = list.iter().enumerate().rev().filter(|(_, b)| b.grains >= least);
        let (at, _) =
            fit.min_by_key(|(_, b)| if is(Mutation::MiscSmallest) { 0 } else { b.grains })?;
        Some(self.remove(class, at))
    }

    fn remove(&mut self, class: usize, at: usize) -> Taken {
        let list = &mut self.lists[class];
        let block = list.remove(at);
        let below = at.checked_sub(1).map_or(0, |i| list[i].at);
        self.grains -= u64::from(block.grains);
        self.blocks -= 1;
        Taken { block, above: list.get(at).copied(), below }
    }

    /// The blocks of a list, tail first.
    pub fn list(&self, class: usize) -> &[Block] {
        &self.lists[class]
    }

    /// Takes everything out, list by list.
    pub fn drain(&mut self) -> Vec<Block> {
        (self.grains, self.blocks) = (0, 0);
        self.lists.iter_mut().flat_map(std::mem::take).collect()
    }

    /// Every free block.
    pub fn iter(&self) -> impl Iterator<Item = Block> + '_ {
        self.lists.iter().flatten().copied()
    }

    /// Grains of all free blocks.
    pub fn grains(&self) -> u64 {
        self.grains
    }

    /// Number of free blocks.
    pub fn blocks(&self) -> usize {
        self.blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(at: u64, grains: u32) -> Block {
        Block { at, grains }
    }

    #[test]
    fn ranges_of_the_lists_follow_each_other() {
        for max_ql in [1, 2, 75, 1000] {
            let lists = FreeLists::new(max_ql);
            assert_eq!(lists.range(max_ql as usize).0, max_ql + 1, "low_1 = (maxQL + 1) g");
            for class in 1..lists.count() {
                assert_eq!(lists.range(class - 1).1 + 1, lists.range(class).0);
            }
            assert_eq!(lists.range(lists.count() - 1).1, i32::MAX as u32);
            for grains in [1, max_ql, max_ql + 1, 5000, 1 << 20, i32::MAX as u32] {
                let (low, high) = lists.range(lists.class(grains));
                assert!((low..=high).contains(&grains), "{grains} on {low}..={high}");
            }
        }
    }

    #[test]
    fn a_list_is_a_stack() {
        let mut lists = FreeLists::new(75);
        for at in [512, 1024, 1536] {
            lists.push(block(at, 1));
        }
        let taken = lists.pop(0).unwrap();
        assert_eq!((taken.block.at, taken.above, taken.below), (1536, None, 1024));
        assert_eq!((lists.blocks(), lists.grains()), (2, 2));
    }

    #[test]
    fn fits_on_a_misc_list() {
        let mut lists = FreeLists::new(4);
        let class = lists.class(100);
        let (low, high) = lists.range(class);
        assert!(low <= 98 && high >= 104, "{low}..={high}");
        for (at, grains) in [(1, 98), (2, 104), (3, 100), (4, 104)] {
            assert_eq!(lists.push(block(at, grains)), class);
        }
        assert_eq!(lists.first_fit(class, 99, 99), None);
        let first = lists.first_fit(class, 99, 104).unwrap();
        assert_eq!((first.block.at, first.above), (4, None), "the first that fits, not the best");
        let best = lists.smallest(class, 98).unwrap();
        assert_eq!((best.block.at, best.above), (1, Some(block(2, 104))));
        assert_eq!(best.below, 0);
        assert_eq!(lists.smallest(class, 105), None);
    }
}
