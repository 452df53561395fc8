//! Keys as they lie in a node (prefix and rest), cells, and the choice of a prefix.
//!
//! Owns: [`Key`], [`Cell`], [`Plan`]. All borrow from pages; nothing here writes one.

use super::{MAX_KEY, SLOT, cell_header};
use std::cmp::Ordering;

/// A key in two pieces: the node's prefix (or nothing) and the bytes of its cell.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    head: &'a [u8],
    tail: &'a [u8],
}

impl<'a> From<&'a [u8]> for Key<'a> {
    fn from(key: &'a [u8]) -> Self {
        Self { head: &[], tail: key }
    }
}

impl<'a> Key<'a> {
    /// The key `head` followed by `tail`.
    pub(super) fn new(head: &'a [u8], tail: &'a [u8]) -> Self {
        Self { head, tail }
    }

    /// Bytes of the whole key.
    #[expect(clippy::len_without_is_empty, reason = "the empty key is a key like any other")]
    pub fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// Compares with a whole key, bytewise.
    pub fn cmp_bytes(&self, other: &[u8]) -> Ordering {
        if self.head.is_empty() {
            return self.tail.cmp(other);
        }
        match other.split_at_checked(self.head.len()) {
            Some((head, tail)) => self.head.cmp(head).then_with(|| self.tail.cmp(tail)),
            None => match self.head[..other.len()].cmp(other) {
                Ordering::Equal => Ordering::Greater,
                order => order,
            },
        }
    }

    /// Whether the key begins with `prefix`.
    pub fn starts_with(&self, prefix: &[u8]) -> bool {
        // Comparing nothing is not free: the library may load from where an empty slice points,
        // which is no memory, and the processor then takes a hundred cycles to ignore it.
        if prefix.is_empty() {
            return true;
        }
        if self.head.is_empty() {
            return self.tail.starts_with(prefix);
        }
        match prefix.split_at_checked(self.head.len()) {
            Some((head, tail)) => self.head == head && self.tail.starts_with(tail),
            None => self.head.starts_with(prefix),
        }
    }

    /// Replaces the content of `out` by the whole key.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.head);
        out.extend_from_slice(self.tail);
    }

    /// The whole key.
    pub fn to_vec(&self) -> Vec<u8> {
        [self.head, self.tail].concat()
    }

    /// Bytes that `self` and `other` have in common from the start.
    pub fn common(&self, other: &Self) -> usize {
        let (a, b) = (self.head.iter().chain(self.tail), other.head.iter().chain(other.tail));
        a.zip(b).take_while(|(x, y)| x == y).count()
    }

    /// The shortest key above `below` and not above `self`, which must be the larger: the
    /// separator between two leaves (Bayer and Unterauer 1977, suffix truncation).
    pub fn separator(&self, below: &Self) -> Vec<u8> {
        let mut key = self.to_vec();
        key.truncate(self.common(below) + 1);
        key
    }

    /// The two pieces that follow the first `skip` bytes; `skip` is at most the length.
    pub(super) fn after(&self, skip: usize) -> (&'a [u8], &'a [u8]) {
        match self.head.split_at_checked(skip) {
            Some((_, rest)) => (rest, self.tail),
            None => (&[], &self.tail[skip - self.head.len()..]),
        }
    }
}

/// A key with its value (leaf) or its child (inner node).
#[derive(Debug, Clone, Copy)]
pub struct Cell<'a> {
    /// The key, or separator.
    pub key: Key<'a>,
    /// The value, or the child's page number in [`super::CHILD`] bytes.
    pub payload: &'a [u8],
}

impl Cell<'_> {
    /// Bytes the cell takes, slot included, in a node of this level and prefix.
    pub fn cost(&self, level: u8, prefix: &[u8]) -> usize {
        self.cost_without(level, self.shared(prefix))
    }

    /// Bytes of the key that a node of this prefix does not store again.
    pub(super) fn shared(&self, prefix: &[u8]) -> usize {
        if self.key.starts_with(prefix) { prefix.len() } else { 0 }
    }

    /// As [`Cell::cost`], if the node does not store the first `shared` bytes of the key.
    pub(super) fn cost_without(&self, level: u8, shared: usize) -> usize {
        cell_header(level) + SLOT + self.key.len() - shared + self.payload.len()
    }
}

/// How a node would hold some cells: the prefix stored once, and the bytes then taken.
#[derive(Debug)]
pub struct Plan {
    /// The prefix.
    pub prefix: Vec<u8>,
    /// Bytes for prefix, cells and slots.
    pub size: usize,
}

impl Plan {
    /// The best of these prefixes: none, those `tried` (the present ones, so that a plan is
    /// never larger than what there is), what all cells share, what the middle half shares
    /// (so that one stranger at either end does not spoil it). Cost: four passes over the
    /// cells.
    pub fn best(level: u8, cells: &[Cell<'_>], tried: &[&[u8]]) -> Self {
        let n = cells.len();
        let plain: usize = cells.iter().map(|c| c.cost(level, &[])).sum();
        let mut best = Self { prefix: Vec::new(), size: plain };
        let mut consider = |prefix: &[u8]| {
            let sharing = cells.iter().filter(|c| c.key.starts_with(prefix)).count();
            let size = plain + prefix.len() - sharing * prefix.len();
            if size < best.size && prefix.len() <= MAX_KEY {
                best = Self { prefix: prefix.to_vec(), size };
            }
        };
        tried.iter().for_each(|prefix| consider(prefix));
        for (a, b) in [(0, n.saturating_sub(1)), (n / 4, n * 3 / 4)] {
            if let (Some(a), Some(b)) = (cells.get(a), cells.get(b)) {
                let mut prefix = a.key.to_vec();
                prefix.truncate(a.key.common(&b.key));
                consider(&prefix);
            }
        }
        best
    }
}

/// Bytes compared as one number.
pub(super) const HEAD: usize = 8;

/// The word at `at`, which is there.
#[inline]
pub(super) fn word_at(chunk: &[u8; 3 + HEAD], at: usize) -> u64 {
    let mut word = [0; HEAD];
    word.copy_from_slice(&chunk[at..at + HEAD]);
    u64::from_be_bytes(word)
}

/// As a word at `at`, of which the bytes may not have all.
#[cold]
pub(super) fn last_word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; HEAD];
    for (to, from) in word.iter_mut().zip(bytes.get(at..).unwrap_or(&[])) {
        *to = *from;
    }
    u64::from_be_bytes(word)
}

/// The head of `len` bytes of which a word has the first: what follows them does not count.
#[inline]
pub(super) fn cut(word: u64, len: usize) -> u64 {
    if len < HEAD { word & !(u64::MAX >> (8 * len)) } else { word }
}
