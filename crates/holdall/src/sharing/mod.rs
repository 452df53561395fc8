//! Shared segment pages: how many slices refer to each.
//!
//! Owns: [`Sharing`], a B+-tree over ranges of pages that more than one slice refers to. Its
//! root is kept in the root page. A page that is in no range belongs to one slice, so that a
//! store without copies has an empty tree and pays nothing.
//!
//! Invariants, checked by verification: ranges do not overlap; each has at least two
//! references; the references of a page are the slices, of all objects and within one
//! object, whose pages it is among.
//!
//! Key: the range's last page, 8 bytes, most significant first; so the first range that may
//! overlap a run is the first key not below the run's first page. Value: number of pages,
//! references; two varints. Counts are kept by range, so a copy of n segments changes at most n
//! entries. An entry is split where references end, and never joined with its neighbours again.
//!
//! Threads: as [`Names`].

#[cfg(test)]
mod tests;

use crate::names::{Names, Value};
use holdall_core::bytes::{Reader, push_varint};
use holdall_core::page::PageKind;
use holdall_core::{Error, PageNo, PageRead, PageRun, PageWrite, Result, root_page};
use std::ops::Bound;

/// Owner in the headers of the tree's pages.
pub const OWNER: u64 = u64::MAX;

/// Neighbouring pages that equally many slices refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    /// The pages.
    pub run: PageRun,
    /// Slices that refer to each of them, at least 2.
    pub references: u64,
}

impl Shared {
    /// Takes an entry of the tree apart.
    ///
    /// # Errors
    /// [`Error::Corrupt`] for an entry that cannot be.
    pub fn decode(key: &[u8], value: &Value) -> Result<Self> {
        let bad = || Error::corrupt("shared pages", format!("impossible entry {key:x?}"));
        let last = u64::from_be_bytes(key.try_into().map_err(|_| bad())?);
        let mut r = Reader::new(value);
        let (len, references) = r.varint().zip(r.varint()).ok_or_else(bad)?;
        let start = last.checked_sub(len.wrapping_sub(1)).ok_or_else(bad)?;
        let sound = len > 0 && start > 0 && references > 1 && last < PageNo::MAX.0;
        if !sound || !r.rest().is_empty() {
            return Err(bad());
        }
        Ok(Self { run: PageRun::new(PageNo(start), len), references })
    }

    fn key(&self) -> [u8; 8] {
        (self.run.end() - 1).to_be_bytes()
    }

    fn value(&self) -> Vec<u8> {
        let mut value = Vec::with_capacity(12);
        push_varint(&mut value, self.run.len);
        push_varint(&mut value, self.references);
        value
    }
}

/// The tree of shared pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sharing {
    /// The B+-tree.
    pub tree: Names,
}

impl Sharing {
    /// The tree of this state; `root` is the root page.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn load<R: PageRead + ?Sized>(pages: &R, root: PageNo) -> Result<Self> {
        let root = root_page::sharing(&pages.page(root, PageKind::Root)?);
        Ok(Self { tree: Names { root } })
    }

    /// Notes the tree in the root page.
    ///
    /// # Errors
    /// As [`PageWrite::page_mut`].
    pub fn store<W: PageWrite + ?Sized>(&self, pages: &mut W, root: PageNo) -> Result<()> {
        if Self::load(pages, root)? != *self {
            root_page::set_sharing(pages.page_mut(root, PageKind::Root)?, self.tree.root);
        }
        Ok(())
    }

    /// Whether no page is shared.
    pub fn is_empty(&self) -> bool {
        self.tree.root.is_none()
    }

    /// The ranges that overlap `run`, in order. Cost: O(height) pages, and those of the
    /// ranges.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn overlapping<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        run: PageRun,
    ) -> Result<Vec<Shared>> {
        let mut found: Vec<Shared> = Vec::new();
        let from = run.start.0.to_be_bytes();
        for entry in self.tree.iter(pages, Bound::Included(&from)) {
            let (key, value) = entry?;
            let shared = Shared::decode(&key, &value)?;
            if shared.run.start.0 >= run.end() {
                break;
            }
            if found.last().is_some_and(|l| l.run.end() > shared.run.start.0) {
                let place = format!("shared pages from {}", shared.run.start);
                return Err(Error::corrupt(place, "overlap the range before"));
            }
            found.push(shared);
        }
        Ok(found)
    }

    /// Enters one more reference to each page of `run`. Cost: as [`Sharing::overlapping`],
    /// and one entry changed for each range, two more at the run's ends.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::Corrupt`], [`Error::Io`].
    pub fn share<W: PageWrite + ?Sized>(&mut self, pages: &mut W, run: PageRun) -> Result<()> {
        self.change(pages, run, |before| before + 1).map(drop)
    }

    /// Takes one reference away from each page of `run`. Returns the parts that nothing
    /// refers to any more, which are the caller's to free. Cost: as [`Sharing::share`].
    ///
    /// # Errors
    /// As [`Sharing::share`].
    pub fn release<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        run: PageRun,
    ) -> Result<Vec<PageRun>> {
        if self.is_empty() {
            return Ok(vec![run]);
        }
        self.change(pages, run, |before| before - 1)
    }

    /// Sets the references of each page of `run` to what `count` says of those it has.
    /// Returns the parts left without any.
    fn change<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        run: PageRun,
        count: impl Fn(u64) -> u64,
    ) -> Result<Vec<PageRun>> {
        let old = self.overlapping(pages, run)?;
        let mut pieces = Pieces::default();
        let mut at = run.start.0;
        for shared in &old {
            let (from, to) = (shared.run.start.0.max(run.start.0), shared.run.end().min(run.end()));
            pieces.push(shared.run.start.0, from, shared.references);
            pieces.push(at, from, count(1));
            pieces.push(from, to, count(shared.references));
            pieces.push(to, shared.run.end(), shared.references);
            at = to;
        }
        pieces.push(at, run.end(), count(1));
        let new = pieces.shared;
        for shared in old.iter().filter(|o| !new.iter().any(|n| n.key() == o.key())) {
            self.tree.remove(pages, &shared.key())?;
        }
        for shared in new.iter().filter(|n| !old.contains(n)) {
            self.tree.insert(pages, OWNER, &shared.key(), &shared.value())?;
        }
        Ok(pieces.unused)
    }
}

/// What a change makes of the pages it looks at, in order.
#[derive(Default)]
struct Pieces {
    shared: Vec<Shared>,
    unused: Vec<PageRun>,
}

impl Pieces {
    /// Pages `from..to` have this many references; nothing if that is no page.
    fn push(&mut self, from: u64, to: u64, references: u64) {
        if from >= to {
            return;
        }
        let run = PageRun::new(PageNo(from), to - from);
        match (references, self.shared.last_mut()) {
            (0, _) => self.unused.push(run),
            (1, _) => {}
            (n, Some(last)) if last.references == n && last.run.end() == from => {
                last.run.len += run.len;
            }
            (references, _) => self.shared.push(Shared { run, references }),
        }
    }
}
