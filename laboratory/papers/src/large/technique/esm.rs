//! The EXODUS storage manager's large objects (Biliris §2.1, §3.4; Carey 1986): leaves of a
//! fixed number of pages under a positional tree.
//!
//! Owns: [`Esm`], what happens in leaves. The tree above them is the engine's: an edit puts
//! leaves written here in the place of others, at their borders, with a threshold of one page,
//! so that the tree never moves a byte itself. As the paper has it, the code on index pages is
//! one for ESM and EOS. Invariant: every leaf is at least half full, but for a single one.

use anyhow::{Result, ensure};
use holdall_core::techniques::segment_tree::{
    Builder, CheckOptions, Content, Descriptor, Located, Options, Pair, Slice, Top, check, read_at,
    slices, splice, stats,
};

use super::eos::{check_pages, shape_of};
use super::relayout::{Piece, relayout};
use super::{LargeObject, Shape, check_range};
use crate::large::store::{MAX_SEGMENT_PAGES, NoSegments, Peek, Volume};
use crate::mutation::{Mutation, is};

/// What an insert does if a leaf overflows (§3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertRule {
    /// The leaf's bytes and the new ones go evenly to new leaves.
    Basic,
    /// A neighbour's bytes join them if that saves a leaf: of the two the one with more
    /// room (the paper leaves open which).
    Improved,
    /// The same with both neighbours if neither serves alone: beyond the paper, which takes
    /// one of them.
    ImprovedBoth,
}

/// An ESM object.
#[derive(Debug)]
pub struct Esm {
    volume: Volume,
    descriptor: Descriptor,
    pages: u64,
    rule: InsertRule,
}

impl Esm {
    /// An empty object with leaves of `pages` pages.
    /// Errors: leaves of no page or larger than a segment can be.
    pub fn new(volume: Volume, pages: u16, rule: InsertRule) -> Result<Self> {
        let pages = u64::from(pages);
        ensure!((1..=MAX_SEGMENT_PAGES).contains(&pages), "leaves of {pages} pages");
        let descriptor = Descriptor { threshold: 1, ..Descriptor::default() };
        Ok(Self { volume, descriptor, pages, rule })
    }

    /// Bytes of a full leaf.
    fn capacity(&self) -> u64 {
        self.pages * self.volume.page() as u64
    }

    fn options(&self) -> Options {
        Options {
            threshold: 1,
            shuffle_bytes: false,
            max_tail: 0,
            max_inline: self.volume.format().root_fanout(),
            max_segment_pages: self.pages,
        }
    }

    /// The leaves that hold bytes of a range.
    fn leaves(&self, from: u64, to: u64) -> Result<Vec<Located>> {
        let found = slices(&self.volume, &self.descriptor.tree, from..to);
        Ok(found.collect::<Result<_, _>>()?)
    }

    fn leaf(&self, at: u64) -> Result<Option<Located>> {
        Ok(self.leaves(at, at.saturating_add(1))?.pop())
    }

    /// The leaves left and right of a range.
    fn neighbours(&self, from: u64, to: u64) -> Result<[Option<Located>; 2]> {
        let left = if from > 0 { self.leaf(from - 1)? } else { None };
        Ok([left, self.leaf(to)?])
    }

    /// Lays `pieces` of `old` out in leaves of these sizes and puts them in their place.
    fn put(&mut self, old: &[Located], pieces: Vec<Piece<'_>>, sizes: &[u64]) -> Result<()> {
        let leaves: Vec<Slice> = old.iter().map(|l| l.slice).collect();
        let new = relayout(&mut self.volume, self.pages, &leaves, pieces, sizes)?;
        let (from, to) = match (old.first(), old.last()) {
            (Some(first), Some(last)) => (first.start, last.end()),
            _ => (self.size(), self.size()),
        };
        self.index(from, to, new)
    }

    /// Changes the index: these leaves in place of those of a range.
    fn index(&mut self, from: u64, to: u64, new: Vec<Slice>) -> Result<()> {
        let options = self.options();
        let mut segments = NoSegments { page_size: self.volume.page() };
        let mut store = Pair { nodes: &mut self.volume, segments: &mut segments };
        let content = Content::Staged { head: &[], slices: new, tail: &[] };
        self.descriptor = splice(&mut store, &self.descriptor, from..to, content, &options)?;
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let root = match self.descriptor.tree.top {
            Top::Inline(_) => None,
            Top::Root { node, .. } => Some(node),
        };
        Ok(self.volume.end_operation(root)?)
    }

    /// Of the neighbours that `serves` lets pass the one with the fewest bytes; whether it is the
    /// left one.
    fn choose(
        neighbours: [Option<Located>; 2],
        serves: impl Fn(u64) -> bool,
    ) -> Option<(Located, bool)> {
        let [left, right] = neighbours;
        let both = [left.map(|l| (l, true)), right.map(|l| (l, false))];
        let serving = both.into_iter().flatten().filter(|(l, _)| serves(l.slice.len));
        serving.min_by_key(|(l, _)| l.slice.len)
    }

    /// Lays out as [`Esm::put`], with a neighbour's bytes at the side it is on.
    fn put_with(
        &mut self,
        mut old: Vec<Located>,
        mut pieces: Vec<Piece<'_>>,
        neighbour: Option<(Located, bool)>,
        leaves: u64,
    ) -> Result<()> {
        if let Some((leaf, left)) = neighbour {
            let at = if left { 0 } else { old.len() };
            if left {
                for piece in &mut pieces {
                    if let Piece::Old(index, _) = piece {
                        *index += 1;
                    }
                }
            }
            old.insert(at, leaf);
            let place = if left { 0 } else { pieces.len() };
            pieces.insert(place, Piece::Old(at, 0..leaf.slice.len));
        }
        let total = pieces.iter().map(piece_len).sum();
        self.put(&old, pieces, &evenly(total, leaves))
    }

    /// As [`Esm::put_with`] with the neighbours on both sides.
    fn put_between(
        &mut self,
        left: Located,
        leaf: Located,
        right: Located,
        mut pieces: Vec<Piece<'_>>,
        leaves: u64,
    ) -> Result<()> {
        pieces.push(Piece::Old(1, 0..right.slice.len));
        self.put_with(vec![leaf, right], pieces, Some((left, true)), leaves)
    }
}

fn piece_len(piece: &Piece<'_>) -> u64 {
    match piece {
        Piece::Old(_, range) => range.end - range.start,
        Piece::New(bytes) => bytes.len() as u64,
    }
}

/// `total` bytes in `leaves` leaves, as evenly as can be.
fn evenly(total: u64, leaves: u64) -> Vec<u64> {
    if is(Mutation::EsmEven) && leaves > 1 {
        let least = total / leaves - total / leaves / 8;
        let mut sizes = vec![least; leaves as usize - 1];
        sizes.insert(0, total - least * (leaves - 1));
        return sizes;
    }
    (0..leaves).map(|i| total / leaves + u64::from(i < total % leaves)).collect()
}

/// `total` bytes at the object's end: all but the last two leaves full, the rest evenly in
/// those (§4.2).
fn full_but_two(total: u64, capacity: u64) -> Vec<u64> {
    let leaves = total.div_ceil(capacity);
    let full = if is(Mutation::EsmFull) { 0 } else { leaves.saturating_sub(2) };
    let mut sizes = vec![capacity; full as usize];
    sizes.extend(evenly(total - full * capacity, leaves - full));
    sizes
}

impl LargeObject for Esm {
    fn size(&self) -> u64 {
        self.descriptor.size()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let (capacity, size, n) = (self.capacity(), self.size(), bytes.len() as u64);
        let last = if size > 0 { self.leaf(size - 1)? } else { None };
        let Some(last) = last else {
            return self.put(&[], vec![Piece::New(bytes)], &full_but_two(n, capacity));
        };
        let mut old = vec![last];
        if last.slice.len + n > capacity
            && last.start > 0
            && let Some(left) = self.leaf(last.start - 1)?
            && left.slice.len < capacity
        {
            old.insert(0, left);
        }
        let mut pieces: Vec<_> =
            old.iter().enumerate().map(|(i, l)| Piece::Old(i, 0..l.slice.len)).collect();
        pieces.push(Piece::New(bytes));
        let total = n + old.iter().map(|l| l.slice.len).sum::<u64>();
        self.put(&old, pieces, &full_but_two(total, capacity))
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn create_zeros(&mut self, len: u64) -> Result<()> {
        ensure!(self.size() == 0, "the object has bytes");
        let (capacity, mut left, mut end) = (self.capacity(), len, 0);
        let mut builder = Builder::new();
        while left > 0 {
            let first = self.volume.leaf().take(self.pages)?;
            end = end.max(first + self.pages);
            // The last two are half full at least, as after appends.
            let now =
                if left > 2 * capacity { capacity } else { left.div_ceil(left.div_ceil(capacity)) };
            builder.push(&mut self.volume, Slice::run(first, now))?;
            left -= now;
        }
        self.volume.leaf().reach(end)?;
        let inline = self.options().max_inline;
        self.descriptor.tree = builder.finish(&mut self.volume, inline)?;
        self.end()
    }

    fn read(&mut self, at: u64, buf: &mut [u8]) -> Result<()> {
        check_range(at, buf.len() as u64, self.size())?;
        Ok(read_at(&self.volume, &self.descriptor, at, buf)?)
    }

    fn replace(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let n = bytes.len() as u64;
        check_range(at, n, self.size())?;
        if n == 0 {
            return Ok(());
        }
        let old = self.leaves(at, at + n)?;
        let (Some(first), Some(last)) = (old.first(), old.last()) else { return Ok(()) };
        let head = Piece::Old(0, 0..at - first.start);
        let tail = Piece::Old(old.len() - 1, at + n - last.start..last.slice.len);
        let sizes: Vec<u64> = old.iter().map(|l| l.slice.len).collect();
        self.put(&old, vec![head, Piece::New(bytes), tail], &sizes)
    }

    fn insert(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        check_range(at, 0, self.size())?;
        if bytes.is_empty() || at == self.size() {
            return self.append(bytes);
        }
        let Some(leaf) = self.leaf(at)? else { return Ok(()) };
        let (capacity, inside) = (self.capacity(), at - leaf.start);
        let total = leaf.slice.len + bytes.len() as u64;
        let pieces = vec![
            Piece::Old(0, 0..inside),
            Piece::New(bytes),
            Piece::Old(0, inside..leaf.slice.len),
        ];
        let leaves = total.div_ceil(capacity);
        if leaves == 1 || self.rule == InsertRule::Basic || is(Mutation::EsmNeighbour) {
            return self.put_with(vec![leaf], pieces, None, leaves);
        }
        let neighbours = self.neighbours(leaf.start, leaf.end())?;
        let neighbour = Self::choose(neighbours, |other| total + other <= leaves * capacity);
        if let (InsertRule::ImprovedBoth, None, [Some(left), Some(right)]) =
            (self.rule, neighbour, neighbours)
            && left.slice.len + total + right.slice.len <= (leaves + 1) * capacity
        {
            return self.put_between(left, leaf, right, pieces, leaves + 1);
        }
        self.put_with(vec![leaf], pieces, neighbour, leaves)
    }

    fn delete(&mut self, at: u64, len: u64) -> Result<()> {
        check_range(at, len, self.size())?;
        if len == 0 {
            return Ok(());
        }
        let capacity = self.capacity();
        let half = if is(Mutation::EsmHalf) { 0 } else { capacity.div_ceil(2) };
        let old = self.leaves(at, at + len)?;
        let (Some(first), Some(last)) = (old.first(), old.last()) else { return Ok(()) };
        let (head, tail) = (at - first.start, last.end() - (at + len));
        let pieces = vec![
            Piece::Old(0, 0..head),
            Piece::Old(old.len() - 1, last.slice.len - tail..last.slice.len),
        ];
        let total = head + tail;
        if total == 0 {
            return self.put(&old, Vec::new(), &[]);
        }
        if total > capacity {
            let both = head >= half && tail >= half;
            let sizes = if both { vec![head, tail] } else { evenly(total, 2) };
            return self.put(&old, pieces, &sizes);
        }
        let around =
            if total < half { self.neighbours(first.start, last.end())? } else { [None, None] };
        let neighbour = Self::choose(around, |_| true);
        let all = total + neighbour.map_or(0, |(l, _)| l.slice.len);
        self.put_with(old, pieces, neighbour, all.div_ceil(capacity))
    }

    fn shape(&self) -> Result<Shape> {
        let stats = stats(&Peek(&self.volume), &self.descriptor, self.volume.page())?;
        Ok(shape_of(&stats, stats.segments * self.pages))
    }

    fn check(&self) -> Result<()> {
        let peek = Peek(&self.volume);
        let options = CheckOptions {
            page_size: self.volume.page(),
            threshold: 1,
            max_segment_pages: self.pages,
            max_inline: self.options().max_inline,
            max_tail: 0,
        };
        let report = check(&peek, &self.descriptor, &options)?;
        ensure!(!report.problems.iter().any(|p| p.is_damage()), "{:?}", report.problems);
        if report.stats.segments > 1 {
            let half = self.capacity() / 2;
            for leaf in slices(&peek, &self.descriptor.tree, 0..self.size()) {
                let leaf = leaf?;
                let len = leaf.slice.len;
                ensure!((half..=self.capacity()).contains(&len), "leaf of {len} bytes");
            }
        }
        let root = u64::from(matches!(self.descriptor.tree.top, Top::Root { .. }));
        check_pages(&self.volume, &self.shape()?, root)
    }

    fn volume(&self) -> &Volume {
        &self.volume
    }
}
