//! Copies that share: taking references to an object's runs for another one.
//!
//! Owns: [`Shares`], a range of an object as runs shared and bytes copied. A shared page is
//! never written, as no segment page is; an edit of a copy writes new pages and gives the
//! old references back.

use super::{Body, Head, ObjectLocation, ObjectWrite, Record, StoredHints, read_record};
use crate::segment_tree::{DEFAULT_THRESHOLD, TreeRead};
use crate::sharing::Sharing;
use holdall_core::mutation::{self, Mutation};
use holdall_core::segment_tree::{self, Descriptor, MAY_HOLD_SHARED_RUNS, Slice};
use holdall_core::{Error, Oid, PageNo, PageRead, PageRun, Result};
use std::ops::Range;

/// A range of an object, ready to become part of another: references to its runs are taken
/// already, so it must be used in the same transaction or the transaction given up.
#[derive(Debug, Default)]
pub struct Shares {
    /// Bytes before the runs: those up to the next page, or all if nothing is shared.
    pub head: Vec<u8>,
    /// The runs.
    pub slices: Vec<Slice>,
    /// Bytes behind them, from the object's tail.
    pub tail: Vec<u8>,
    /// The descriptor's flags that a taker must have.
    pub flags: u8,
    /// The object's hints.
    pub hints: StoredHints,
}

impl Shares {}

impl ObjectWrite<'_> {
    /// Takes references to the runs that hold the bytes `range` of an object. Ranges of fewer
    /// than T pages are copied: edits would copy them anyway.
    ///
    /// Cost: O(height + segments) nodes; an entry of the tree of shared pages for each run;
    /// less than T pages read, none written. Memory: 24 bytes per segment.
    ///
    /// # Errors
    /// [`Error::Range`] if the range is not inside the object; [`Error::Dangling`],
    /// [`Error::Full`], [`Error::Corrupt`], [`Error::Io`].
    pub fn share(&mut self, oid: Oid, range: Range<u64>) -> Result<Shares> {
        let bytes = read_record(&*self.tx, self.handles, oid)?;
        let record = Record::parse(&bytes)?;
        let (start, end, size) = (range.start, range.end, record.size()?);
        if start > end || end > size {
            return Err(Error::Range { object: oid.to_string(), start, end, size });
        }
        let head = record.head();
        match record.body {
            Body::Small(b) => {
                let part = b[start as usize..end as usize].to_vec();
                Ok(Shares { head: part, ..Shares::default() })
            }
            Body::Large(b) => {
                let d = Descriptor::decode(b)?;
                drop(bytes);
                self.share_large(oid, &head, d, range)
            }
        }
    }

    fn share_large(
        &mut self,
        oid: Oid,
        head: &Head<'_>,
        mut d: Descriptor,
        range: Range<u64>,
    ) -> Result<Shares> {
        let page = self.tx.page_size() as u64;
        let threshold = if d.threshold == 0 { DEFAULT_THRESHOLD } else { d.threshold };
        let mut shares = Shares { hints: StoredHints::from_descriptor(&d), ..Shares::default() };
        if range.end - range.start < u64::from(threshold) * page {
            shares.head = self.copied(&d, range)?;
            return Ok(shares);
        }
        let tree = range.start.min(d.tree.size)..range.end.min(d.tree.size);
        let mut slices = Vec::new();
        for located in segment_tree::slices(&TreeRead(&*self.tx), &d.tree, tree.clone()) {
            let located = located?;
            let (from, to) = (located.start.max(tree.start), located.end().min(tree.end));
            slices.push(located.slice.part(from - located.start, to - from, page));
        }
        // A slice begins with its page: what lies before the next one is copied.
        let into = slices.first().filter(|s| s.is_run()).map_or(0, |s| u64::from(s.offset));
        let before = if into > 0 { (page - into).min(slices[0].len) } else { 0 };
        shares.head = self.copied(&d, tree.start..tree.start + before)?;
        if before > 0 {
            let first = slices[0];
            if first.len == before {
                slices.remove(0);
            } else {
                slices[0] = first.part(before, first.len - before, page);
            }
        }
        let tail = range.start.max(d.tree.size)..range.end.max(d.tree.size);
        shares.tail = self.copied(&d, tail)?;
        self.refer(&slices)?;
        shares.slices = slices;
        shares.flags = MAY_HOLD_SHARED_RUNS;
        if d.flags & MAY_HOLD_SHARED_RUNS == 0 && !mutation::is(Mutation::R24Flag) {
            d.flags |= MAY_HOLD_SHARED_RUNS;
            let place = ObjectLocation::find(&*self.tx, self.handles, oid)?;
            self.put_record(place, &head.large(oid, &d))?;
        }
        Ok(shares)
    }

    fn copied(&self, d: &Descriptor, range: Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        segment_tree::read_at(&TreeRead(&*self.tx), d, range.start, &mut bytes)?;
        Ok(bytes)
    }

    /// Enters one more reference to the pages of each run.
    fn refer(&mut self, slices: &[Slice]) -> Result<()> {
        let (root, page) = (self.tx.root(), self.tx.page_size() as u64);
        let mut sharing = Sharing::load(&*self.tx, root)?;
        for slice in slices.iter().filter(|s| s.is_run()) {
            let run = PageRun::new(PageNo(slice.reference), slice.pages(page));
            sharing.share(self.tx, run)?;
        }
        sharing.store(self.tx, root)
    }
}
