//! The part of an object that an edit touches, and the threshold within it.
//!
//! Owns: [`Window`], a short list of what will lie side by side: slices kept and bytes to
//! be written, with an unchanged neighbour at either end. [`Window::settle`] makes it keep
//! T5 (Biliris §2.3): a small segment goes whole into what is written; what is written, if
//! small itself, borrows just the pages it lacks from a large neighbour, so that an edit
//! copies about T pages and not whole segments. Retires nothing: it lists what is free.

mod shuffle;

use super::find::Finder;
use super::limits::Limits;
use super::store::Piece;
use super::{Descriptor, Options, Pieces, Segments, Slice, SliceKind, Store};
use crate::{Error, PageNo, Result};
use std::collections::VecDeque;
use std::ops::Range;

/// Where a kept slice comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The old tree, unchanged, with its first byte there.
    Old(u64),
    /// Written by the caller before.
    Staged,
    /// What remains of one of these, or new zeros.
    Cut,
}

/// One of the things that will lie side by side.
pub(super) enum Item<'a> {
    /// A slice that stays where it is.
    Kept(Slice, Origin),
    /// Bytes to be written, and how many.
    New(Vec<Piece<'a>>, u64),
}

/// What an edit touches.
pub(super) struct Window<'a> {
    limits: Limits,
    pub page: u64,
    /// The bytes of the tree that the edit takes out.
    pub cut: Range<u64>,
    /// The bytes of the old tree that the window stands for.
    pub old: Range<u64>,
    /// Pages that nothing uses any more.
    pub freed: Vec<Slice>,
    items: VecDeque<Item<'a>>,
    tree: u64,
    tail: &'a [u8],
    /// Whether the descriptor's tail is in the window: the last item is then the object's
    /// end, and its last bytes become the new tail.
    has_tail: bool,
}

/// What to do about a pair of segments against the threshold.
enum PairRemedy {
    /// Copy this kept slice into what is written.
    Absorb(usize),
    /// Copy this many pages of this kept slice into the item on its right, or on its left.
    Borrow { from: usize, pages: u64, to_right: bool },
}

impl<'a> Window<'a> {
    pub(super) fn new(
        descriptor: &'a Descriptor,
        page_size: usize,
        cut: Range<u64>,
        options: &Options,
    ) -> Result<Self> {
        let limits = Limits::for_threshold(descriptor.threshold, page_size, options)?;
        Ok(Self {
            limits,
            page: limits.page,
            old: cut.clone(),
            cut,
            freed: Vec::new(),
            items: VecDeque::new(),
            tree: descriptor.tree.size,
            tail: &descriptor.tail,
            has_tail: false,
        })
    }

    /// Bytes of T pages.
    pub(super) fn least_bytes(&self) -> u64 {
        self.limits.threshold * self.page
    }

    pub(super) fn push(&mut self, item: Item<'a>) {
        self.items.push_back(item);
    }

    /// Puts bytes to be written at the end.
    pub(super) fn push_new(&mut self, piece: Piece<'a>) {
        let len = piece.len();
        match self.items.back_mut() {
            _ if len == 0 => {}
            Some(Item::New(pieces, all)) => {
                pieces.push(piece);
                *all += len;
            }
            _ => self.push(Item::New(vec![piece], len)),
        }
    }

    /// Puts what remains of the tail at the end.
    pub(super) fn push_tail(&mut self, tail: &'a [u8]) {
        self.push_new(Piece::Bytes(tail));
        self.has_tail = true;
    }

    /// Notes that the pages `pages` of a slice, counted from its first, are free.
    pub(super) fn free_pages(&mut self, slice: &Slice, pages: Range<u64>) {
        if slice.is_run() && !pages.is_empty() {
            let (reference, len) =
                (slice.reference + pages.start, (pages.end - pages.start) * self.page);
            self.freed.push(Slice { reference, offset: 0, len, ..*slice });
        }
    }

    /// Extends the window to an unchanged neighbour at either end and copies, borrows and
    /// joins until no pair in it is against the threshold. Ends because each step takes a
    /// kept slice away or makes what is written large enough.
    pub(super) fn settle<S: Store + ?Sized>(
        &mut self,
        store: &S,
        finder: &mut Finder<'_>,
    ) -> Result<()> {
        self.reach(store, finder)?;
        self.fold_last_page();
        if self.limits.shuffle_bytes {
            self.shuffle_bytes();
        }
        loop {
            self.reach(store, finder)?;
            if self.absorb_zeros() {
                continue;
            }
            self.join();
            match self.next_step(store) {
                None => return Ok(()),
                Some(PairRemedy::Absorb(at)) => self.absorb(at),
                Some(PairRemedy::Borrow { from, pages, to_right }) => {
                    self.borrow(from, pages, to_right)
                }
            }
        }
    }

    /// Checks what the arithmetic on pages relies on: a descriptor is read without knowing
    /// the page size.
    pub(super) fn sound(&self, slice: &Slice) -> Result<()> {
        if u64::from(slice.offset) < self.page {
            return Ok(());
        }
        Err(Error::corrupt("segment tree", format!("offset of {slice:?} is beyond its page")))
    }

    /// Takes in neighbours until an unchanged slice, or the object's end, is at either end.
    fn reach<S: Store + ?Sized>(&mut self, store: &S, finder: &mut Finder<'_>) -> Result<()> {
        let start = |item: Option<&Item<'_>>| match item {
            Some(Item::Kept(_, Origin::Old(at))) => Some(*at),
            _ => None,
        };
        let (from, to) = (self.cut.start, self.cut.end);
        while start(self.items.front()).is_none_or(|at| at >= from) && self.old.start > 0 {
            let l = finder.slice(store, self.old.start - 1)?;
            self.sound(&l.slice)?;
            self.items.push_front(Item::Kept(l.slice, Origin::Old(l.start)));
            self.old.start = l.start;
        }
        while start(self.items.back()).is_none_or(|at| at < to) && self.old.end < self.tree {
            let r = finder.slice(store, self.old.end)?;
            self.sound(&r.slice)?;
            self.items.push_back(Item::Kept(r.slice, Origin::Old(r.start)));
            self.old.end = r.end();
        }
        if self.old.end == self.tree
            && !self.has_tail
            && matches!(self.items.back(), Some(Item::New(..)))
        {
            self.push_tail(self.tail);
        }
        Ok(())
    }

    /// Moves the bytes of a partly filled last page into the tail if all fit there.
    fn fold_last_page(&mut self) {
        if !self.has_tail {
            return;
        }
        let (inline, at) = match self.items.back() {
            Some(Item::New(_, len)) => (*len, self.items.len().checked_sub(2)),
            _ => (0, self.items.len().checked_sub(1)),
        };
        let Some(at) = at else { return };
        let Item::Kept(slice, _) = &self.items[at] else { return };
        if !slice.is_run() || slice.ends_page(self.page) {
            return;
        }
        let last = (u64::from(slice.offset) + slice.len) % self.page;
        if last.min(slice.len) + inline > self.limits.max_tail.min(self.page - 1) {
            return;
        }
        if slice.pages(self.page) == 1 {
            self.absorb(at);
        } else {
            self.borrow(at, 1, true);
        }
        self.join();
    }

    /// Writes out short stretches of zeros beside what is written anyway, so that objects
    /// written here and there do not end in crumbs. Returns whether there were any.
    fn absorb_zeros(&mut self) -> bool {
        let least = self.least_bytes();
        for at in 0..self.items.len() {
            let Item::Kept(Slice { kind: SliceKind::Zero, len, .. }, _) = self.items[at] else {
                continue;
            };
            let beside = |at: Option<usize>| at.is_some_and(|at| self.is_written(at));
            if len < least && (beside(at.checked_sub(1)) || beside(Some(at + 1))) {
                self.absorb(at);
                return true;
            }
        }
        false
    }

    /// Makes one of neighbouring bytes to be written.
    fn join(&mut self) {
        let mut joined: VecDeque<Item<'a>> = VecDeque::with_capacity(self.items.len());
        for item in self.items.drain(..) {
            match (joined.back_mut(), item) {
                (Some(Item::New(pieces, len)), Item::New(more, n)) => {
                    pieces.extend(more);
                    *len += n;
                }
                (_, item) => joined.push_back(item),
            }
        }
        self.items = joined;
    }

    /// Bytes of an item that will lie in segments.
    fn stored(&self, at: usize) -> u64 {
        match &self.items[at] {
            Item::Kept(slice, _) => slice.len,
            Item::New(_, len) => self.stored_of(at, *len),
        }
    }

    fn stored_of(&self, at: usize, len: u64) -> u64 {
        let last = self.has_tail && at + 1 == self.items.len();
        len - if last { self.limits.tail_of(len) } else { 0 }
    }

    fn is_written(&self, at: usize) -> bool {
        matches!(self.items.get(at), Some(Item::New(..))) && self.stored(at) > 0
    }

    /// Bytes and pages of the segment that an item has at its right or left end; `None` if
    /// that is no segment.
    fn edge(&self, at: usize, right: bool) -> Option<(u64, u64)> {
        match &self.items[at] {
            Item::Kept(slice, _) => slice.is_run().then(|| (slice.len, slice.pages(self.page))),
            Item::New(..) => self.edge_of(self.stored(at), right),
        }
    }

    fn edge_of(&self, stored: u64, right: bool) -> Option<(u64, u64)> {
        let most = self.limits.max_bytes();
        let first = stored.min(most);
        let len = if right && stored > 0 { (stored - 1) % most + 1 } else { first };
        (len > 0).then(|| (len, len.div_ceil(self.page)))
    }

    /// The best thing to do about the first pair against the threshold: a small slice goes
    /// whole; else the neighbour that has to give the fewest pages lends them.
    fn next_step<S: Segments + ?Sized>(&self, store: &S) -> Option<PairRemedy> {
        let mut best: Option<(u64, PairRemedy)> = None;
        for at in 1..self.items.len() {
            if !self.too_small(store, at) {
                continue;
            }
            for (kept, other) in [(at - 1, at), (at, at - 1)] {
                let Item::Kept(slice, _) = &self.items[kept] else { continue };
                let pages = slice.pages(self.page);
                if pages < self.limits.threshold {
                    return Some(PairRemedy::Absorb(kept));
                }
                if !matches!(self.items[other], Item::New(..)) {
                    continue;
                }
                let (cost, step) = match self.lacking(kept, other) {
                    Some(n) => {
                        (n, PairRemedy::Borrow { from: kept, pages: n, to_right: kept < other })
                    }
                    None => (pages, PairRemedy::Absorb(kept)),
                };
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, step));
                }
            }
        }
        best.map(|(_, step)| step)
    }

    /// Whether the items left of and at `at` are against the threshold.
    fn too_small<S: Segments + ?Sized>(&self, store: &S, at: usize) -> bool {
        let (Some(left), Some(right)) = (self.edge(at - 1, true), self.edge(at, false)) else {
            return false;
        };
        let fit = (left.0 + right.0).div_ceil(self.page) <= self.limits.max_pages;
        if left.1.min(right.1) >= self.limits.threshold || !fit {
            return false;
        }
        match (&self.items[at - 1], &self.items[at]) {
            (Item::Kept(_, Origin::Staged), Item::Kept(_, Origin::Staged)) => false,
            // Neighbours before: not this edit's business.
            (Item::Kept(l, Origin::Old(start)), Item::Kept(_, Origin::Old(next))) => {
                start + l.len != *next
            }
            (Item::Kept(l, _), Item::New(..)) => !self.extends(store, l, at, right.1),
            _ => true,
        }
    }

    /// Whether what is written at `at`, the object's end, will go on right behind `left` and
    /// so be one segment with it. Nothing else may be written before, to take the place.
    fn extends<S: Segments + ?Sized>(&self, store: &S, left: &Slice, at: usize, n: u64) -> bool {
        self.has_tail
            && at + 1 == self.items.len()
            && !(0..at).any(|other| self.is_written(other))
            && left.ends_page(self.page)
            && left.pages(self.page) + n <= self.limits.max_pages
            && self.stored(at) <= self.limits.max_bytes()
            && store.can_extend(PageNo(left.end_page(self.page)), n)
    }

    /// Pages that what is written at `to` must borrow of the slice at `from` to have T;
    /// `None` if that would leave fewer than T there.
    fn lacking(&self, from: usize, to: usize) -> Option<u64> {
        let (Item::Kept(slice, _), Item::New(_, len)) = (&self.items[from], &self.items[to]) else {
            return None;
        };
        let (all, least) = (slice.pages(self.page), self.limits.threshold);
        let mut pages = 1;
        while all.checked_sub(pages).is_some_and(|left| left >= least) {
            let (front, back) = self.split(slice, if from < to { all - pages } else { pages });
            let more = if from < to { back } else { front };
            let stored = self.stored_of(to, len + more.len);
            let (_, got) = self.edge_of(stored, to < from).unwrap_or((0, 0));
            if got >= least {
                return Some(pages);
            }
            pages += least - got;
        }
        None
    }

    /// A slice's first `pages` pages, and the others; there are some of either.
    fn split(&self, slice: &Slice, pages: u64) -> (Slice, Slice) {
        let len = pages * self.page - u64::from(slice.offset);
        (slice.part(0, len, self.page), slice.part(len, slice.len - len, self.page))
    }

    fn absorb(&mut self, at: usize) {
        let Item::Kept(slice, _) = self.items[at] else { return };
        self.free_pages(&slice, 0..slice.pages(self.page));
        self.items[at] = Item::New(vec![Piece::Copy(slice)], slice.len);
    }

    fn borrow(&mut self, from: usize, pages: u64, to_right: bool) {
        let Item::Kept(slice, _) = self.items[from] else { return };
        let all = slice.pages(self.page);
        let copy = |s: Slice| Item::New(vec![Piece::Copy(s)], s.len);
        let (front, back) = self.split(&slice, if to_right { all - pages } else { pages });
        let (first, second) = if to_right {
            self.free_pages(&slice, all - pages..all);
            (Item::Kept(front, Origin::Cut), copy(back))
        } else {
            self.free_pages(&slice, 0..pages);
            (copy(front), Item::Kept(back, Origin::Cut))
        };
        self.items[from] = first;
        self.items.insert(from + 1, second);
    }

    /// The unchanged slices at the left and the right end.
    pub(super) fn unchanged(&self) -> (Vec<Slice>, Vec<Slice>) {
        let old = |item: &Item<'_>| match item {
            Item::Kept(slice, Origin::Old(at)) => Some((*slice, *at)),
            _ => None,
        };
        let lead = self.items.iter().map_while(old).filter(|(_, at)| *at < self.cut.start);
        let trail = self.items.iter().rev().map_while(old).filter(|(_, at)| *at >= self.cut.end);
        let mut trail: Vec<_> = trail.map(|(slice, _)| slice).collect();
        trail.reverse();
        (lead.map(|(slice, _)| slice).collect(), trail)
    }

    /// Writes what is to be written. Returns the window's slices and the object's tail.
    pub(super) fn write<S: Store + ?Sized>(self, store: &mut S) -> Result<(Vec<Slice>, Vec<u8>)> {
        let mut out = Vec::with_capacity(self.items.len());
        let mut tail = if self.has_tail { Vec::new() } else { self.tail.to_vec() };
        let stored: Vec<u64> = (0..self.items.len()).map(|at| self.stored(at)).collect();
        for (item, stored) in self.items.into_iter().zip(stored) {
            match item {
                Item::Kept(slice, _) => self.limits.push_slice(&mut out, slice),
                Item::New(pieces, len) => {
                    let mut pieces = Pieces::new(pieces, self.page);
                    self.limits.write_runs(store, &mut pieces, stored, None, &mut out)?;
                    if stored < len {
                        tail = self.limits.take_tail(store, &mut pieces)?;
                    }
                }
            }
        }
        Ok((out, tail))
    }
}
