//! Which parts of a page a change may have touched.
//!
//! Owns: [`Marks`], 64 parts of a page. A commit compares a page with what it was before only
//! where it is marked: marks too many cost time, one too few would lose a change from the log.
//! So whoever does not know marks all, and debug builds compare the rest as well. Pure.

use std::ops::Range;

/// Parts of a page: bit `i` stands for the `i`-th 64th of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks(u64);

const PARTS: usize = u64::BITS as usize;

impl Marks {
    /// No part.
    pub const NONE: Self = Self(0);
    /// All of the page.
    pub const ALL: Self = Self(u64::MAX);

    /// Marks the bytes `range` of a page of `size` bytes.
    #[inline]
    pub fn add(&mut self, range: Range<usize>, size: usize) {
        if range.is_empty() {
            return;
        }
        let part = size.div_ceil(PARTS).max(1);
        let (first, last) = (range.start / part, (range.end - 1) / part);
        let (first, last) = (first.min(PARTS - 1), last.min(PARTS - 1));
        self.0 |= (u64::MAX << first) & (u64::MAX >> (PARTS - 1 - last));
    }

    /// Marks what `other` marks.
    #[inline]
    pub fn join(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// The marked bytes of a page of `size` bytes; stretches do not touch each other.
    pub fn stretches(self, size: usize) -> impl Iterator<Item = Range<usize>> {
        let (part, mut left) = (size.div_ceil(PARTS).max(1), self.0);
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let first = left.trailing_zeros() as usize;
            let end = first + (left >> first).trailing_ones() as usize;
            left &= u64::MAX.checked_shl(end as u32).unwrap_or(0);
            Some((first * part).min(size)..(end * part).min(size))
        })
    }

    /// Whether two versions of a page differ in what is marked.
    pub fn any_differs(self, old: &[u8], new: &[u8]) -> bool {
        old.len() != new.len() || self.stretches(new.len()).any(|r| old[r.clone()] != new[r])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    #[test]
    fn what_is_added_is_marked_and_little_else() {
        let mut rng = SmallRng::seed_from_u64(1);
        for _ in 0..3000 {
            let size = 4096 << rng.random_range(0..5);
            let (mut marks, mut model) = (Marks::NONE, vec![false; size]);
            for _ in 0..rng.random_range(0..6) {
                let from = rng.random_range(0..size);
                let to = rng.random_range(from..=size.min(from + size / 3));
                marks.add(from..to, size);
                model[from..to].fill(true);
            }
            let part = size / PARTS;
            let want: Vec<bool> = model.chunks(part).map(|c| c.contains(&true)).collect();
            let mut found = vec![false; PARTS];
            let mut end = None;
            for r in marks.stretches(size) {
                assert!(r.start < r.end && end.is_none_or(|e| e < r.start), "{r:?} after {end:?}");
                found[r.start / part..r.end / part].fill(true);
                end = Some(r.end);
            }
            assert_eq!(found, want);
        }
        assert!(Marks::ALL.stretches(8192).eq(std::iter::once(0..8192)));
        assert_eq!(Marks::NONE.stretches(8192).next(), None);
    }

    #[test]
    fn only_what_is_marked_is_compared() {
        let (old, mut new) = (vec![0; 4096], vec![0; 4096]);
        new[100] = 1;
        let mut marks = Marks::NONE;
        assert!(!marks.any_differs(&old, &new));
        marks.add(100..101, 4096);
        assert!(marks.any_differs(&old, &new) && Marks::ALL.any_differs(&old, &new));
        assert!(!marks.any_differs(&new, &new));
    }
}
