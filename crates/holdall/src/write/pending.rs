//! Edits of one object not yet made: many small ones gathered into one splice.
//!
//! Owns: [`Pending`], the bytes that will stand for one range of the stored object. It does
//! no I/O and knows nothing of transactions.
//!
//! Invariants:
//! - `start + replaced` is at most the stored size, so that the splice is always a valid one;
//! - it holds at most [`LIMIT`] bytes; callers ask [`Pending::room`] first.
//!
//! Threads: none; all state is the caller's.

use std::ops::Range;

/// Most bytes gathered before they are written.
pub(crate) const LIMIT: usize = 1 << 20;

/// One splice to come: the stored bytes `start..start + replaced` become `bytes`.
///
/// Offsets of all calls are those of the object with this splice made.
#[derive(Debug)]
pub(crate) struct Pending {
    start: u64,
    replaced: u64,
    bytes: Vec<u8>,
    page_size: u64,
}

impl Pending {
    pub(crate) fn new(page_size: usize) -> Self {
        Self { start: 0, replaced: 0, bytes: Vec::new(), page_size: page_size as u64 }
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.replaced == 0
    }

    /// First byte behind the gathered ones.
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The object's size with the splice made.
    pub(crate) fn size(&self, stored: u64) -> u64 {
        stored - self.replaced + self.bytes.len() as u64
    }

    /// Bytes that a write or an insert at `at` may bring; `None` if `at` is not inside or
    /// next to what is gathered.
    ///
    /// The gathered bytes end at a multiple of the page size when full, so that a stream of
    /// appends fills its pages.
    pub(crate) fn room(&self, at: u64, over: bool) -> Option<usize> {
        let most = |start: u64| LIMIT - (start % self.page_size) as usize;
        if self.is_empty() {
            return Some(most(self.start_for(at)));
        }
        if !(self.start..=self.end()).contains(&at) {
            return None;
        }
        let free = most(self.start).saturating_sub(self.bytes.len());
        Some(free + if over { (self.end() - at) as usize } else { 0 })
    }

    /// Where the splice begins once something at `at` is gathered.
    fn start_for(&self, at: u64) -> u64 {
        if self.is_empty() { at } else { self.start }
    }

    /// Writes over what is at `at`, beyond the end what is missing.
    pub(crate) fn write(&mut self, at: u64, bytes: &[u8], stored: u64) {
        self.start = self.start_for(at);
        let from = (at - self.start) as usize;
        let inside = bytes.len().min(self.bytes.len() - from);
        let (over, behind) = bytes.split_at(inside);
        self.bytes[from..from + inside].copy_from_slice(over);
        self.bytes.extend_from_slice(behind);
        let left = stored - (self.start + self.replaced);
        self.replaced += left.min(behind.len() as u64);
    }

    /// Puts `bytes` before what is at `at`.
    pub(crate) fn insert(&mut self, at: u64, bytes: &[u8]) {
        self.start = self.start_for(at);
        let from = (at - self.start) as usize;
        let len = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        if from < len {
            self.bytes[from..].rotate_right(bytes.len());
        }
    }

    /// Takes out the bytes `range`, which is inside the object. False, with nothing done,
    /// if it does not touch what is gathered.
    pub(crate) fn delete(&mut self, range: Range<u64>) -> bool {
        self.start = self.start_for(range.start);
        let (start, end) = (self.start, self.end());
        if range.start > end || range.end < start {
            return false;
        }
        let inside = range.start.max(start) - start..range.end.min(end) - start;
        self.bytes.drain(inside.start as usize..inside.end as usize);
        let before = start.saturating_sub(range.start);
        self.start -= before;
        self.replaced += before + range.end.saturating_sub(end);
        true
    }

    /// Ends the object at `len`, which is at most its size. False, with nothing done, if
    /// that is behind what is gathered.
    pub(crate) fn cut(&mut self, len: u64, stored: u64) -> bool {
        self.start = self.start_for(len);
        if len > self.end() {
            return false;
        }
        self.start = self.start.min(len);
        self.bytes.truncate((len - self.start) as usize);
        self.replaced = stored - self.start;
        true
    }

    /// Splits the bytes from `at` on for a read: how many of `len` lie together, and where.
    pub(crate) fn find(&self, at: u64, len: usize) -> (usize, ObjectLocation<'_>) {
        let most = |left: u64| len.min(usize::try_from(left).unwrap_or(usize::MAX));
        if at < self.start {
            return (most(self.start - at), ObjectLocation::Stored(at));
        }
        let gathered = (at - self.start).try_into().ok().and_then(|n: usize| self.bytes.get(n..));
        match gathered {
            Some(bytes) if !bytes.is_empty() => {
                let n = len.min(bytes.len());
                (n, ObjectLocation::Gathered(&bytes[..n]))
            }
            _ => (len, ObjectLocation::Stored(at - self.bytes.len() as u64 + self.replaced)),
        }
    }

    /// The splice, which is then no longer pending: the stored range and its new bytes.
    pub(crate) fn take(&mut self) -> (Range<u64>, Vec<u8>) {
        let range = self.start..self.start + self.replaced;
        self.replaced = 0;
        (range, std::mem::take(&mut self.bytes))
    }

    /// Gives the memory of [`Pending::take`] back for the next bytes.
    pub(crate) fn reuse(&mut self, mut memory: Vec<u8>) {
        memory.clear();
        self.bytes = memory;
    }
}

/// Where bytes of the object are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ObjectLocation<'a> {
    /// In the stored object from this offset on.
    Stored(u64),
    /// Gathered.
    Gathered(&'a [u8]),
}
