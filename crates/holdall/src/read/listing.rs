//! Names of a snapshot: by prefix, by range, in both directions, rolled up at a delimiter.
//!
//! Owns: [`Entry`], [`NameIter`], [`Listing`].

use crate::engine::catalog::{Collection, oid_of};
use crate::names::{self, Line, ListOptions, after_prefix};
use crate::read::reader::Reader;
use holdall_core::{Oid, PageRead, Result};
use std::ops::{Bound, RangeBounds};
use std::vec;

/// Entries fetched at a time.
const ENTRIES_AT_ONCE: usize = 1000;

/// A name and its object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: Vec<u8>,
    /// The object.
    pub oid: Oid,
}

/// One line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// An object.
    Object(Entry),
    /// A common prefix, the delimiter included, of one or more names.
    Prefix(Vec<u8>),
}

/// A listing, or a part of one; from [`Reader::list`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// In the order of names.
    pub entries: Vec<Listed>,
    /// If there is more: the `start_after` that continues the listing.
    pub next: Option<Vec<u8>>,
}

impl Listing {
    /// Lists names of a collection.
    pub(crate) fn of<R: PageRead + ?Sized>(
        pages: &R,
        c: &Collection,
        options: &ListOptions<'_>,
    ) -> Result<Self> {
        let after = options.start_after.map(|after| c.key(after));
        let (prefix, start_after) = (c.key(options.prefix), after.as_deref());
        let lines =
            c.names.list(pages, &ListOptions { prefix: &prefix, start_after, ..*options })?;
        let before = prefix.len() - options.prefix.len();
        let own = |mut name: Vec<u8>| {
            name.drain(..before);
            name
        };
        let listed = |line| match line {
            Line::Key(name, value) => {
                Ok(Listed::Object(Entry { name: own(name), oid: oid_of(&value)? }))
            }
            Line::Prefix(prefix) => Ok(Listed::Prefix(own(prefix))),
        };
        let entries = lines.entries.into_iter().map(listed).collect::<Result<_>>()?;
        Ok(Self { entries, next: lines.next.map(own) })
    }
}

impl Reader {
    /// Lists names by prefix, start and delimiter, in order. Cost: a step for each entry.
    ///
    /// ```
    /// use holdall::{ListOptions, Listed};
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put_many([("a/1", ""), ("a/2", ""), ("b", "")]))?;
    /// let top = ListOptions { delimiter: Some(b"/"), ..ListOptions::default() };
    /// let listing = store.read()?.list(&top)?;
    /// assert_eq!(listing.entries[0], Listed::Prefix(b"a/".to_vec()));
    /// assert!(matches!(&listing.entries[1], Listed::Object(entry) if entry.name == b"b"));
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), [`Error::Io`](crate::Error::Io).
    pub fn list(&self, options: &ListOptions<'_>) -> Result<Listing> {
        let Some(c) = self.current()? else { return Ok(Listing::default()) };
        Listing::of(&*self.state, c, options)
    }

    /// How many names the collection has; objects without one are not among them. Cost: none, the
    /// count is kept.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put_many([("a", ""), ("b", "")]))?;
    /// assert_eq!(store.read()?.count_names()?, 2);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), [`Error::Io`](crate::Error::Io).
    pub fn count_names(&self) -> Result<u64> {
        Ok(self.current()?.map_or(0, |c| c.named()))
    }

    /// All names that begin with `prefix`, in order, with their objects; backwards by
    /// [`Iterator::rev`]. Cost: a step for each; memory for 1,000 at a time.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put_many([("2024/a", ""), ("2024/b", ""), ("2025/a", "")]))?;
    /// let reader = store.read()?;
    /// assert_eq!(reader.names("2024/").count(), 2);
    /// let last = reader.names("").next_back().transpose()?;
    /// assert!(last.is_some_and(|entry| entry.name == b"2025/a"));
    /// # Ok::<(), holdall::Error>(())
    /// ```
    pub fn names(&self, prefix: impl AsRef<[u8]>) -> NameIter {
        let prefix = prefix.as_ref();
        let end = after_prefix(prefix).map_or(Bound::Unbounded, Bound::Excluded);
        NameIter::new(self, Bound::Included(prefix.to_vec()), end)
    }

    /// As [`Reader::names`], for the names in a range.
    ///
    /// ```
    /// # let store = holdall::Store::in_memory()?;
    /// store.write(|tx| tx.put_many([("a", ""), ("b", ""), ("c", "")]))?;
    /// let reader = store.read()?;
    /// assert_eq!(reader.range("a".."c").count(), 2);
    /// assert_eq!(reader.range("b"..).rev().count(), 2);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    pub fn range<N: AsRef<[u8]>>(&self, range: impl RangeBounds<N>) -> NameIter {
        let own = |bound: Bound<&N>| bound.map(|name| name.as_ref().to_vec());
        NameIter::new(self, own(range.start_bound()), own(range.end_bound()))
    }
}

/// Names with their objects, in order or backwards; see [`Reader::names`].
#[derive(Debug)]
pub struct NameIter {
    reader: Reader,
    /// What was not fetched yet.
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    /// Fetched from the beginning, in order.
    front: vec::IntoIter<Entry>,
    /// Fetched from the end, backwards.
    back: vec::IntoIter<Entry>,
    /// All was fetched.
    done: bool,
}

impl NameIter {
    fn new(reader: &Reader, from: Bound<Vec<u8>>, to: Bound<Vec<u8>>) -> Self {
        let none = || Vec::new().into_iter();
        Self { reader: reader.clone(), from, to, front: none(), back: none(), done: false }
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Yields nothing more.
    pub(super) fn end(&mut self) {
        self.done = true;
        (self.front, self.back) = (Vec::new().into_iter(), Vec::new().into_iter());
    }

    /// Takes up to [`ENTRIES_AT_ONCE`] of the entries that a walk yields, while they are `inside`,
    /// without the first `before` bytes of each.
    fn take(
        &mut self,
        walk: impl Iterator<Item = Result<(Vec<u8>, names::Value)>>,
        inside: impl Fn(&[u8]) -> bool,
        before: usize,
    ) -> Result<Vec<Entry>> {
        let mut taken = Vec::new();
        for entry in walk.take(ENTRIES_AT_ONCE) {
            let (mut name, value) = entry?;
            if !inside(&name) {
                break;
            }
            if before > 0 {
                name.drain(..before);
            }
            taken.push(Entry { oid: oid_of(&value)?, name });
        }
        self.done = taken.len() < ENTRIES_AT_ONCE;
        Ok(taken)
    }

    /// Fetches more from the beginning, or with `back` from the end.
    fn fill(&mut self, back: bool) -> Result<()> {
        // Until it has worked: after an error the walk has ended.
        self.done = true;
        let reader = self.reader.clone();
        let Some(c) = reader.current()? else { return Ok(()) };
        // The names of a small collection stand behind its number, and so between two bounds.
        let number = c.prefix();
        let (from, to) = match &number {
            None => (self.from.clone(), self.to.clone()),
            Some(number) => {
                let own = |bound: &Bound<Vec<u8>>| bound.as_ref().map(|name| number.with(name));
                let begin = Bound::Included(number.to_vec());
                let end = after_prefix(number).map_or(Bound::Unbounded, Bound::Excluded);
                let or = |bound, other| if bound == Bound::Unbounded { other } else { bound };
                (or(own(&self.from), begin), or(own(&self.to), end))
            }
        };
        let before = number.map_or(0, |number| number.len());
        let (first, last) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
        let taken = if back {
            let inside = |name: &[u8]| (first, Bound::Unbounded).contains(name);
            self.take(c.names.iter_back(&*reader.state, last), inside, before)?
        } else {
            let inside = |name: &[u8]| (Bound::Unbounded, last).contains(name);
            self.take(c.names.iter(&*reader.state, first), inside, before)?
        };
        let (bound, ready) =
            if back { (&mut self.to, &mut self.back) } else { (&mut self.from, &mut self.front) };
        if let Some(last) = taken.last() {
            *bound = Bound::Excluded(last.name.clone());
        }
        *ready = taken.into_iter();
        Ok(())
    }
}

impl Iterator for NameIter {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.front.len() == 0
            && !self.done
            && let Err(e) = self.fill(false)
        {
            return Some(Err(e));
        }
        self.front.next().or_else(|| self.back.next_back()).map(Ok)
    }
}

impl DoubleEndedIterator for NameIter {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.back.len() == 0
            && !self.done
            && let Err(e) = self.fill(true)
        {
            return Some(Err(e));
        }
        self.back.next().or_else(|| self.front.next_back()).map(Ok)
    }
}
