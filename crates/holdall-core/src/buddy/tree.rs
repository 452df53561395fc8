//! The free pages of one space, found by buddy order (Biliris 1992 §3.1).
//!
//! Owns: [`BuddyTree`]: one bit per page (set = free) in words of 64, and above the words a
//! complete binary tree. A node holds the *set* of orders of the maximal free blocks below
//! it, as 16 bits: that is what finds the smallest sufficient block in one descent, which a
//! node holding only the largest order could not. A space of 32,768 pages takes 6 KiB.
//!
//! Invariants: a node is the union of its children, but if both are wholly free it is
//! the one block of the next order (so buddies coalesce by construction); pages at or past
//! `limit` are not free; `free` counts the set bits. Every change keeps them, and the state
//! is a function of the bitmap and the limit alone. Not for use by two threads at once.

use super::{MAX_SPACE_PAGES, Run, least_order_for, order_for, word};
use crate::{Error, Result};

/// Free pages of one space. Pages are counted from the start of the space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuddyTree {
    /// Bit set = free; padded with zero words to a power of two.
    words: Vec<u64>,
    /// Heap order: the root is node 1, the node of word `w` is `words.len() + w`.
    nodes: Vec<u16>,
    space_pages: u32,
    limit: u32,
    free: u32,
}

impl BuddyTree {
    /// Builds the tree of a space of `space_pages` pages of which those from `limit` on are
    /// outside the volume. `free_word(w)` gives pages `64 * w..64 * w + 64`, bit set = free;
    /// bits past the limit are ignored. Cost: one visit per word and node.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the space has no page or more than [`MAX_SPACE_PAGES`], or
    /// the limit is larger than the space.
    pub fn from_free_words(
        space_pages: u32,
        limit: u32,
        mut free_word: impl FnMut(usize) -> u64,
    ) -> Result<Self> {
        if space_pages == 0 || space_pages > MAX_SPACE_PAGES || limit > space_pages {
            let text = format!("a buddy space cannot have {limit} of {space_pages} pages");
            return Err(Error::Invalid(text));
        }
        let used = word::count(limit);
        let leaves = word::count(space_pages).next_power_of_two();
        let mut words = vec![0; leaves];
        let mut free = 0;
        for (w, slot) in words.iter_mut().enumerate().take(used) {
            *slot = free_word(w) & word::mask_below(w, limit);
            free += slot.count_ones();
        }
        let nodes = vec![0; 2 * leaves];
        let mut tree = Self { words, nodes, space_pages, limit, free };
        tree.refresh(0, leaves - 1);
        Ok(tree)
    }

    /// Pages free now.
    pub fn free_pages(&self) -> u32 {
        self.free
    }

    /// Pages of the space inside the volume; the others are never free.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Order of the largest free block, `None` if no page is free. Constant cost.
    pub fn largest(&self) -> Option<u8> {
        // At most 15, so the narrowing is exact.
        self.nodes[1].checked_ilog2().map(|k| k as u8)
    }

    /// Pages of the longest free run, which may be longer than the largest block. Cost: one
    /// pass over the words.
    pub fn longest_run(&self) -> u32 {
        self.free_runs().map(|r| r.len).max().unwrap_or(0)
    }

    /// Whether all of `start..start + len` is free. Cost: one visit per word.
    pub fn is_free(&self, start: u32, len: u32) -> bool {
        self.free_from(start, len) == len
    }

    /// The maximal free runs by address. Cost: one pass over the words.
    pub fn free_runs(&self) -> FreeRuns<'_> {
        FreeRuns { tree: self, at: 0 }
    }

    /// The free runs by address from page `start` on; of one that `start` lies in, the rest.
    pub fn free_runs_from(&self, start: u32) -> FreeRuns<'_> {
        FreeRuns { tree: self, at: start }
    }

    /// Takes exactly `len` neighbouring pages: from the start of the smallest sufficient
    /// block, the lowest of them; what the block has more stays free. If no block
    /// suffices, from the start of the shortest sufficient run of neighbouring blocks. `None`
    /// if there is no such run or `len` is 0. Cost: one descent and one visit per 64
    /// pages taken; one pass over the words in the second case.
    pub fn alloc(&mut self, len: u32) -> Option<Run> {
        let run = self.block_for(len).or_else(|| self.straddling_run(len))?;
        self.take(run);
        Some(run)
    }

    /// As [`BuddyTree::alloc`], but if no run of `len` pages is free takes the longest
    /// free run, the lowest of them. `None` only if nothing is free or `len` is 0.
    pub fn alloc_up_to(&mut self, len: u32) -> Option<Run> {
        let run = self.block_for(len).or_else(|| self.best_run(len))?;
        self.take(run);
        Some(run)
    }

    /// As [`BuddyTree::alloc`], but only from a run of free pages that `len` fills for the
    /// most part: the shortest of at most `most` pages, the lowest of them. Cost: one pass
    /// over the words, less if a run fits exactly.
    pub fn alloc_snug(&mut self, len: u32, most: u32) -> Option<Run> {
        if len == 0 || len > self.free {
            return None;
        }
        let mut best: Option<Run> = None;
        for run in self.free_runs().filter(|r| r.len >= len && r.len <= most) {
            if best.is_none_or(|b| run.len < b.len) {
                best = Some(run);
            }
            if run.len == len {
                break;
            }
        }
        let run = Run { start: best?.start, len };
        self.take(run);
        Some(run)
    }

    /// Takes the whole of the shortest free run of at most `most` pages, the lowest of them.
    /// Cost: as [`BuddyTree::alloc_snug`].
    pub fn alloc_shortest(&mut self, most: u32) -> Option<Run> {
        let mut best: Option<Run> = None;
        for run in self.free_runs().filter(|r| r.len <= most) {
            if best.is_none_or(|b| run.len < b.len) {
                best = Some(run);
            }
            if run.len == 1 {
                break;
            }
        }
        let run = best?;
        self.take(run);
        Some(run)
    }

    /// Takes one page: the first of the lowest of the smallest free blocks, so that large
    /// blocks stay whole. Cost: one descent.
    pub fn alloc_lowest(&mut self) -> Option<u32> {
        self.alloc(1).map(|run| run.start)
    }

    /// Takes the pages from `start` on while they are free, at most `len`, and says how
    /// many: the extension of a run that ends before `start`. Cost: one visit per 64 pages
    /// and one ascent.
    pub fn alloc_at(&mut self, start: u32, len: u32) -> u32 {
        let len = self.free_from(start, len);
        self.take(Run { start, len });
        len
    }

    /// Gives any pages back, whatever runs they were taken in. Cost: as
    /// [`BuddyTree::alloc_at`].
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a page is free already or outside the space; nothing is
    /// changed.
    pub fn free(&mut self, start: u32, len: u32) -> Result<()> {
        let end = u64::from(start) + u64::from(len);
        if end > u64::from(self.limit) {
            let detail = format!("pages {start}..{end} of the space of {} pages", self.limit);
            return Err(Error::corrupt("pages given back", detail));
        }
        if word::pieces(start, len).any(|(w, mask)| self.words[w] & mask != 0) {
            let detail = format!("of pages {start}..{end} of the space some are free already");
            return Err(Error::corrupt("pages given back", detail));
        }
        self.put(start, len);
        Ok(())
    }

    /// Follows the volume's end: a larger limit makes the new pages free, a smaller one takes
    /// the pages past it away. Cost: as [`BuddyTree::alloc_at`] for the difference.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the limit is larger than the space, or a page past a smaller
    /// limit is not free; nothing is changed.
    pub fn set_limit(&mut self, limit: u32) -> Result<()> {
        if limit > self.space_pages {
            let text = format!("{limit} pages in a space of {}", self.space_pages);
            return Err(Error::Invalid(text));
        }
        let old = self.limit;
        if limit >= old {
            self.limit = limit;
            self.put(old, limit - old);
        } else if self.is_free(limit, old - limit) {
            self.take(Run { start: limit, len: old - limit });
            self.limit = limit;
        } else {
            let text = format!("pages {limit}..{old} of the space are not all free");
            return Err(Error::Invalid(text));
        }
        Ok(())
    }

    /// The first `len` pages of the lowest of the smallest free blocks that hold them.
    fn block_for(&self, len: u32) -> Option<Run> {
        if len == 0 {
            return None;
        }
        let fits = self.nodes[1] & u16::MAX.checked_shl(u32::from(order_for(len)))?;
        let order = u8::try_from(fits.trailing_zeros()).ok()?;
        let set = 1u16.checked_shl(u32::from(order))?;
        let mut node = 1;
        while node < self.words.len() {
            node = match (self.nodes[2 * node] & set, self.nodes[2 * node + 1] & set) {
                // Neither child has a block of this order: this node is the block.
                (0, 0) => break,
                (0, _) => 2 * node + 1,
                _ => 2 * node,
            };
            visited(2);
        }
        let depth = node.ilog2();
        let first = (node - (1 << depth)) * (self.words.len() >> depth);
        let within =
            if node < self.words.len() { 0 } else { word::lowest_block(self.words[first], order)? };
        Some(Run { start: first as u32 * word::PAGES + within, len })
    }

    /// `len` pages in a run of several blocks, none of which holds them alone.
    fn straddling_run(&self, len: u32) -> Option<Run> {
        // Most spaces that cannot serve are known by their largest block, without the pass.
        if len > self.free || self.largest()? < least_order_for(len) {
            return None;
        }
        self.best_run(len).filter(|r| r.len == len)
    }

    /// Of the runs of at least `len` pages the shortest, else the longest; cut to `len`.
    fn best_run(&self, len: u32) -> Option<Run> {
        let mut best: Option<Run> = None;
        if len == 0 {
            return None;
        }
        for run in self.free_runs() {
            let better = best.is_none_or(|b| match (run.len >= len, b.len >= len) {
                (true, true) => run.len < b.len,
                (_, false) => run.len > b.len,
                (false, true) => false,
            });
            if better {
                best = Some(run);
            }
        }
        best.map(|r| Run { start: r.start, len: r.len.min(len) })
    }

    /// How many pages from `start` on are free, at most `max`.
    fn free_from(&self, start: u32, max: u32) -> u32 {
        let end = start.saturating_add(max).min(self.limit);
        let mut at = start;
        while at < end {
            visited(1);
            let bit = at % word::PAGES;
            let taken = !self.words[(at / word::PAGES) as usize] >> bit;
            let n = taken.trailing_zeros().min(word::PAGES - bit);
            at += n;
            if n < word::PAGES - bit {
                break;
            }
        }
        at.min(end).saturating_sub(start)
    }

    /// Marks pages that are free as taken.
    fn take(&mut self, run: Run) {
        for (w, mask) in word::pieces(run.start, run.len) {
            debug_assert_eq!(self.words[w] & mask, mask, "taken pages were free");
            self.words[w] &= !mask;
        }
        self.free -= run.len;
        self.refresh_pages(run.start, run.len);
    }

    /// Marks pages that are not free, and lie below the limit, as free.
    fn put(&mut self, start: u32, len: u32) {
        for (w, mask) in word::pieces(start, len) {
            self.words[w] |= mask;
        }
        self.free += len;
        self.refresh_pages(start, len);
    }

    fn refresh_pages(&mut self, start: u32, len: u32) {
        if let Some(last) = len.checked_sub(1) {
            let last = (start + last) / word::PAGES;
            self.refresh((start / word::PAGES) as usize, last as usize);
        }
    }

    /// Recomputes the nodes of the words `first..=last` and all above them.
    fn refresh(&mut self, first: usize, last: usize) {
        let leaves = self.words.len();
        for w in first..=last {
            self.nodes[leaves + w] = word::orders(self.words[w]);
        }
        visited(last - first + 1);
        let (mut low, mut high) = (leaves + first, leaves + last);
        let mut order = word::ORDER;
        while low > 1 {
            (low, high) = (low / 2, high / 2);
            let whole = 1u16 << order;
            for node in low..=high {
                let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
                let both = left == whole && right == whole;
                self.nodes[node] = if both { whole << 1 } else { left | right };
            }
            visited(high - low + 1);
            order += 1;
        }
    }
}

/// Iterator over the maximal free runs of a [`BuddyTree`] by address.
#[derive(Debug, Clone)]
pub struct FreeRuns<'a> {
    tree: &'a BuddyTree,
    at: u32,
}

impl Iterator for FreeRuns<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        while self.at < self.tree.limit {
            let rest = self.tree.words[(self.at / word::PAGES) as usize] >> (self.at % word::PAGES);
            if rest == 0 {
                visited(1);
                self.at = (self.at / word::PAGES + 1) * word::PAGES;
                continue;
            }
            let start = self.at + rest.trailing_zeros();
            let len = self.tree.free_from(start, u32::MAX);
            self.at = start + len;
            return Some(Run { start, len });
        }
        None
    }
}

#[cfg(test)]
thread_local! {
    /// Words and nodes looked at or computed on this thread.
    pub(super) static VISITS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts work, for the tests of cost.
#[cfg(test)]
fn visited(n: usize) {
    VISITS.set(VISITS.get() + n);
}

#[cfg(not(test))]
fn visited(_: usize) {}
